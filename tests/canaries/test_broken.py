"""Broken learners cost their own trials and no other, and leave no process behind.

This module is also the plugin of the learner ``broken``, which breaks as its ``how`` says.
"""

import ctypes
import json
import os
import secrets
import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from helpers.toys import ALL_TASKS, Prefix, PrefixModel

import bench_core
from bench_core import Task, param
from bench_core.results.store import Store

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="limits as tried here are Linux's"
)

GIB = 1 << 30
LONG = 3600


class _OddError(BaseException):
    pass


def _raise(error):
    raise error


def _recurse():
    _recurse()


def _ignore_signals():
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    time.sleep(LONG)


def _grow():
    held = []
    while True:
        held.append(np.ones(1 << 22))


def _start():
    """Processes in sessions of their own, whose parents are gone."""
    for _ in range(20):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(LONG)
            os._exit(0)
        os.wait()


def _children():
    """Of 400 MiB each."""
    for _ in range(4):
        if os.fork() == 0:
            held = np.ones(400 << 17)
            time.sleep(LONG * held[0])
    time.sleep(LONG)


def _print():
    for _ in range(200):
        os.write(1, b"x" * (1 << 20))


def _replace_streams():
    sys.stdout = sys.stderr = None


WAYS = {
    "raise": (lambda: _raise(RuntimeError("deliberate")), "failed", "RuntimeError: deliberate"),
    "raise-base": (lambda: _raise(_OddError("odd")), "failed", "_OddError: odd"),
    "raise-interrupt": (lambda: _raise(KeyboardInterrupt()), "failed", "KeyboardInterrupt"),
    "raise-exit": (lambda: sys.exit(0), "failed", "SystemExit: 0"),
    "raise-long": (lambda: _raise(ValueError("x" * 50_000_000)), "failed", "ValueError: xxx"),
    "raise-lines": (lambda: _raise(ValueError("a\n\x1b[2Jb")), "failed", "ValueError: a \\x1b"),
    "raise-memory": (lambda: _raise(MemoryError("no")), "out-of-memory", "out of memory: no"),
    "recurse": (_recurse, "failed", "RecursionError"),
    "hang": (lambda: time.sleep(LONG), "timeout", "exceeded the time limit"),
    "hang-busy": (lambda: sum(range(10**13)), "timeout", "exceeded the time limit"),
    "hang-deaf": (_ignore_signals, "timeout", "exceeded the time limit"),
    "kill-itself": (lambda: os.kill(os.getpid(), signal.SIGKILL), "crashed", "SIGKILL"),
    "segfault": (lambda: ctypes.string_at(0), "crashed", "SIGSEGV"),
    "exit-0": (lambda: os._exit(0), "crashed", "ended with status 0"),
    "memory": (_grow, "out-of-memory", "memory"),
    "memory-at-once": (lambda: np.ones(1 << 42), "out-of-memory", "memory"),
    "memory-children": (_children, "out-of-memory", "more than 1024 MiB"),
    "return-none": (lambda: None, "failed", ""),
    "start": (_start, "ok", ""),
    "thread": (
        lambda: threading.Thread(target=time.sleep, args=(9,), daemon=True).start(),
        *("ok", ""),
    ),
    "print": (_print, "ok", ""),
    "streams": (_replace_streams, "ok", ""),
    "chdir": (lambda: os.chdir("/"), "ok", ""),
}
"""By what happens in ``fit``: what is called, the status, and what the error holds."""

LATER = ("raise", "raise-base", "recurse", "hang", "segfault", "exit-0", "memory", "start")
"""Those that are also tried in ``predict_path``."""


@dataclass
class BrokenModel(PrefixModel):
    """Breaks when it is asked for the first time."""

    how: str = ""

    def predict_path(self, features):
        how, self.how = self.how, ""
        if how:
            WAYS[how][0]()
        return super().predict_path(features)

    def state(self):
        return {**super().state(), "how": self.how}


@dataclass(frozen=True)
class Broken(Prefix):
    """Breaks in ``fit``, or lets its model do so."""

    name: ClassVar[str] = "broken"
    tasks: ClassVar[frozenset[Task]] = ALL_TASKS
    how: str = param("raise", "one of WAYS")
    later: bool = param(False, "in predict_path instead")

    def fit(self, *given):
        model = super().fit(*given)
        if not self.later:
            WAYS[self.how][0]()
        if self.how == "return-none":
            return None
        how = self.how if self.later else ""
        return BrokenModel(model.order, model.weight, model.needs, how)


@bench_core.hookimpl
def bench_learners():
    return [Broken]


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A working folder, and a mark that all processes of this test have."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("BROKEN_MARK", secrets.token_hex(16))
    return tmp_path


def left_behind():
    """Processes with the mark, apart from this one (which has it in ``os.environ`` alone)."""
    mark, found = os.environ["BROKEN_MARK"].encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            ended = (process / "stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
            if mark in (process / "environ").read_bytes() and not ended:
                found.append(int(process.name))
        except OSError:
            continue
    return found


def check(ways, later=False):
    """Each way ends as it must, beside a learner that does not break."""
    once = {"tradeoff": 1.0}  # each end of a worker is a new process
    learners = {"broken": {"how": [*ways], "later": later, **once}, "toy-prefix": once}
    plugins = ("helpers.toys", "canaries.test_broken")
    how = {"timeout": 30, "memory": GIB, "workers": 2, "audit": "off"}
    result = bench_core.run(data="toy-binary", plugins=plugins, learners=learners, **how)
    frame = result.frame().drop_duplicates(["learner", "params"])
    assert set(frame.loc[frame["learner"] == "toy-prefix", "status"]) == {"ok"}
    broken = frame[frame["learner"] == "broken"]
    found = {json.loads(row["params"])["how"]: row for _, row in broken.iterrows()}
    for name in ways:
        _, status, text = WAYS[name]
        assert (name, found[name]["status"]) == (name, status)
        assert text in (found[name]["error"] or "")
    until = time.monotonic() + 60
    while left_behind() and time.monotonic() < until:
        time.sleep(0.1)
    assert not left_behind()


@pytest.mark.slow  # test_execution has five of these ways
@pytest.mark.parametrize("part", range(3))
def test_broken_learners_cost_their_own_trials_alone(home, part):
    check([*WAYS][part::3])
    assert max(len(attempt.trace) for attempt in Store().attempts()) < 50_000


@pytest.mark.slow
def test_models_that_break_later_cost_their_own_trials_alone(home):
    check(LATER, later=True)
