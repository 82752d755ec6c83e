"""A learner that breaks in many ways, and how the row of each must end.

``FIT`` and ``PREDICT`` hold, by way of breaking, the expected status and a part of the error. Each
may cost its own trial and no other, and leaves no process behind.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from helpers.toys import ALL_TASKS, Prefix, PrefixModel

import bench_core
from bench_core import Features, Prediction, Task, param

GIB = 1 << 30
MEMORY = GIB  # the limit that these are run under
LONG = 3600


class _OddError(BaseException):
    pass


class _MuteError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def _raise(error: BaseException) -> None:
    raise error


def _recurse() -> None:
    _recurse()


def _recurse_deeply() -> None:
    sys.setrecursionlimit(10**9)
    threading.stack_size(1 << 20)
    deep: Any = []
    for _ in range(10**6):
        deep = [deep]
    repr(deep)


def _deaf(number: int) -> None:
    for one in range(1, 32):
        if one not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(one, signal.SIG_IGN)
    time.sleep(number)


def _children(number: int, each: int) -> None:
    for _ in range(number):
        if os.fork() == 0:
            held = np.ones(each // 8)
            time.sleep(LONG * held[0])
            os._exit(0)
    time.sleep(LONG)


def _detached(number: int = 1, megabytes: int = 0) -> None:
    """Processes in sessions of their own, whose parents are gone."""
    for _ in range(number):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                held = np.ones(max(1, megabytes << 17))
                time.sleep(LONG * held[0])
            os._exit(0)
        os.wait()


def _detached_eater() -> None:
    _detached(4, 400)
    time.sleep(LONG)


def _print(megabytes: int) -> None:
    for _ in range(megabytes):
        os.write(1, b"x" * (1 << 20))


def _pipes() -> list[int]:
    found = [int(f.name) for f in Path("/proc/self/fd").iterdir()]
    return [fd for fd in found if fd > 2 and _is_pipe(fd)]


def _is_pipe(fd: int) -> bool:
    try:
        return str(Path(f"/proc/self/fd/{fd}").readlink()).startswith("pipe:")
    except OSError:
        return False


def _write_to_pipes(content: bytes) -> None:
    for fd in _pipes():
        try:
            os.write(fd, content)
        except OSError:  # the one that is read from
            continue
    time.sleep(0.5)


def _lose_files() -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


def _thread() -> None:
    threading.Thread(target=time.sleep, args=(LONG,), daemon=True).start()


def _alarm() -> None:
    signal.alarm(1)
    time.sleep(LONG)


def _replace_streams() -> None:
    sys.stdout = sys.stderr = None  # type: ignore[assignment]


def _grow() -> None:
    held = []
    while True:
        held.append(np.ones(1 << 22))


def _chain() -> None:
    error: BaseException | None = None
    for number in range(3000):
        new = ValueError(number)
        new.__cause__ = error
        error = new
    raise error or ValueError


def _group() -> None:
    raise ExceptionGroup("many", [ValueError("x" * 1000) for _ in range(2000)])


def _hang_import() -> None:
    Path("slow_to_import.py").write_text("import time\ntime.sleep(3600)\n")
    sys.path.insert(0, str(Path.cwd()))
    __import__("slow_to_import")


Way = tuple[Callable[[], Any], str, str]

FIT: dict[str, Way] = {
    "raise": (lambda: _raise(RuntimeError("deliberate")), "failed", "RuntimeError: deliberate"),
    "raise-base": (lambda: _raise(_OddError("odd")), "failed", "_OddError: odd"),
    "raise-interrupt": (lambda: _raise(KeyboardInterrupt()), "failed", "KeyboardInterrupt"),
    "raise-exit": (lambda: sys.exit(0), "failed", "SystemExit: 0"),
    "raise-generator-exit": (lambda: _raise(GeneratorExit()), "failed", "GeneratorExit"),
    "raise-long": (lambda: _raise(ValueError("x" * 50_000_000)), "failed", "ValueError: xxx"),
    "raise-mute": (lambda: _raise(_MuteError()), "failed", "_MuteError, whose text"),
    "raise-chain": (_chain, "failed", "ValueError"),
    "raise-group": (_group, "failed", "ExceptionGroup: many"),
    "raise-lines": (lambda: _raise(ValueError("a\n\x1b[2Jb")), "failed", "ValueError: a \\x1b"),
    "raise-memory": (lambda: _raise(MemoryError("no")), "out-of-memory", "out of memory: no"),
    "recurse": (_recurse, "failed", "RecursionError"),
    "recurse-deeply": (_recurse_deeply, "crashed", ""),
    "hang": (lambda: time.sleep(LONG), "timeout", "and was ended"),
    "hang-busy": (lambda: sum(range(10**13)), "timeout", "and was ended"),
    "hang-deaf": (lambda: _deaf(LONG), "timeout", "and was ended"),
    "hang-import": (_hang_import, "timeout", "and was ended"),
    "hang-lock": (lambda: [threading.Lock().acquire() for _ in "x"] and _stuck(), "timeout", ""),
    "stop-itself": (lambda: os.kill(os.getpid(), signal.SIGSTOP), "timeout", "and was ended"),
    "kill-itself": (lambda: os.kill(os.getpid(), signal.SIGKILL), "crashed", "SIGKILL"),
    "terminate": (lambda: os.kill(os.getpid(), signal.SIGTERM), "crashed", "SIGTERM"),
    "alarm": (_alarm, "crashed", "SIGALRM"),
    "segfault": (lambda: ctypes.string_at(0), "crashed", "SIGSEGV"),
    "abort": (os.abort, "crashed", "SIGABRT"),
    "exit-0": (lambda: os._exit(0), "crashed", "ended with status 0"),
    "exit-3": (lambda: os._exit(3), "crashed", "ended with status 3"),
    "memory-heap": (_grow, "out-of-memory", "memory"),
    "memory-at-once": (lambda: np.ones(1 << 42), "out-of-memory", "memory"),
    "memory-children": (lambda: _children(4, 400 << 20), "out-of-memory", "more than 1024 MiB"),
    "memory-detached": (_detached_eater, "out-of-memory", "more than 1024 MiB"),
    "close-pipes": (lambda: [os.close(fd) for fd in _pipes()], "crashed", ""),
    "close-all": (lambda: os.closerange(0, 256), "crashed", ""),
    "lose-files": (_lose_files, "failed", "Too many open files"),
    "garbage": (lambda: _write_to_pipes(b"\xff" * 4096), "crashed", "invalid reply"),
    "garbage-text": (lambda: _write_to_pipes(b"hello" * 99), "crashed", "invalid reply"),
    "return-none": (lambda: None, "failed", ""),
    "fork": (lambda: _children_left(3), "ok", ""),
    "fork-both-return": (os.fork, "ok", ""),
    "detach": (lambda: _detached(50), "ok", ""),
    "thread": (_thread, "ok", ""),
    "print": (lambda: _print(200), "ok", ""),
    "streams": (_replace_streams, "ok", ""),
    "chdir": (lambda: os.chdir("/"), "ok", ""),
    "environ": (os.environ.clear, "ok", ""),
}
"""By what happens in ``fit``: what is called, the status, and what the error holds."""


def _children_left(number: int) -> None:
    for _ in range(number):
        if os.fork() == 0:
            time.sleep(LONG)
            os._exit(0)


def _stuck() -> None:
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()


PREDICT: dict[str, tuple[str, str]] = {
    name: FIT[name][1:]
    for name in (
        *("raise", "raise-base", "recurse", "hang", "hang-busy", "segfault", "exit-0"),
        *("memory-heap", "garbage", "fork-both-return", "detach"),
    )
}
"""The same in ``predict_path``."""

FEW = ("raise-base", "raise-long", "exit-0", "garbage", "detach")
"""Those of the default test run."""


@dataclass
class HostileModel(PrefixModel):
    """Breaks as its ``how`` says, when it is asked for the first time."""

    how: str = ""

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        how, self.how = self.how, ""
        if how:
            FIT[how][0]()
        return super().predict_path(features)

    def state(self) -> dict[str, Any]:
        return {**super().state(), "how": self.how}


@dataclass(frozen=True)
class Hostile(Prefix):
    """Breaks in ``fit``, or lets its model do so."""

    name: ClassVar[str] = "hostile"
    tasks: ClassVar[frozenset[Task]] = ALL_TASKS
    how: str = param("raise", "one of FIT")
    later: bool = param(False, "in predict_path instead")

    def fit(self, *given: Any) -> Any:
        model = super().fit(*given)
        if not self.later:
            FIT[self.how][0]()
        if self.how == "return-none":
            return None
        how = self.how if self.later else ""
        return HostileModel(model.order, model.weight, model.needs, how)


@bench_core.hookimpl
def bench_learners() -> list[type[Any]]:
    """The learner of this module."""
    return [Hostile]
