"""A fitted model in a process of its own, as the process sees it that judges it.

A stranger's model must not live where labels, metrics, bills and verdicts are: there it could read
or change them. It gets blocks of cells through a socket and answers with plain arrays, one point
at a time and only when asked, so that nothing piles up and the waiting is the time it takes. It
learns neither where data nor where its state lies. Where the system offers it (Linux) it can write
to private folders alone, so that it leaves no notes for the next. ``host.py`` is the other end.
"""

import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from bench_core._io.machine import peak_rss_mb
from bench_core._io.namespaces import NOT_POSSIBLE, hidden
from bench_core._io.plugin_folders import for_a_process
from bench_core._io.processes import descendants
from bench_core.arrays import Array
from bench_core.costs.acquired import Acquired
from bench_core.costs.bill import Bill, Prediction
from bench_core.data import Features
from bench_core.execution.contract import ContractError, HostedError, plain_marks
from bench_core.execution.messages import receive, send
from bench_core.results.records import Status
from bench_core.results.store_files import read_state

POSSIBLE, _LINUX = os.name == "posix", sys.platform.startswith("linux")
_impossible: list[bool] = []  # whether private processes were tried in vain
_START = (
    "import json, sys; a = json.loads(sys.argv[1]); sys.path[:] = a['path']; "
    "from bench_core.execution.start import start_model; start_model(a)"
)


class Hosted:
    """The model whose state a file holds, rebuilt in a fresh interpreter; ``threads`` may ask it
    at the same time if it is ``concurrent``. Besides plugins, only the ``named`` modules may be
    imported for it, those that it ``runs`` (by default all) with their folders on its path. Raises
    HostedError where it cannot be rebuilt.

    ``private``: whether it is to have nothing to write to that others read, and whether it has;
    ``hides`` are then out of its sight, where this process does not hide more.
    ``load_seconds`` is what rebuilding took, without imports; ``peak_rss_mb`` the host's memory.
    """

    def __init__(
        self,
        state: Path,
        threads: int = 1,
        named: Sequence[str] = (),
        runs: Sequence[str] = (),
        private: bool = True,
        hides: Sequence[str] = (),
    ) -> None:
        self._hides = hides if hidden() is None else hidden()
        header, arrays = read_state(state)
        must = hidden() is not None
        self.private = must or (private and _LINUX and not _impossible)
        self.peak_rss_mb = 0.0
        try:
            if not self._start(threads):  # what is half confined is of no use
                if must:
                    raise self._died()
                self.close()
                _impossible.append(True)
                self.private = False
                self._start(threads)
            asked = {"model": header["model"], "named": [*named], "runs": [*(runs or named)]}
            hello = self._begin(asked, header, arrays)
            self.marks = plain_marks(hello.get("marks", ()))
        except BaseException:
            self.close()
            raise
        self.concurrent = hello.get("concurrent") is True
        self.independent_rows = hello.get("independent_rows") is True

    def _start(self, threads: int) -> bool:
        """Start the process; whether it could be made as private as it is to be."""
        pairs = [socket.socketpair() for _ in range(max(1, threads))]
        there = [other.fileno() for _, other in pairs]
        about = {"parent": os.getpid(), "sockets": there, **for_a_process()}
        view = {"hidden": self._hides, "shown": (), "places": (), "private": True}
        about["view"] = view if self.private else None
        about["must"] = hidden() is not None
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, json.dumps(about)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,  # a log that processes share could be read by each
            stderr=subprocess.STDOUT,
            env={k: v for k, v in os.environ.items() if not k.startswith("BENCH_")},
            pass_fds=there,
        )
        self._output = threading.Thread(target=_pass_on, args=(self._process.stdout,), daemon=True)
        self._output.start()
        self._free: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._sockets = [own for own, _ in pairs]
        pipes: list[Any] = [own.makefile("rwb") for own, _ in pairs]
        for pipe, (_, other) in zip(pipes, pairs, strict=True):
            other.close()
            self._free.put(pipe)
        try:
            receive(pipes[0])
        except (EOFError, OSError):
            died = self._died()
            if self._process.poll() != NOT_POSSIBLE:
                raise died from None
            return False
        return True

    def _begin(
        self, asked: Mapping[str, Any], header: Mapping[str, Any], arrays: Mapping[str, Array]
    ) -> dict[str, Any]:
        pipe = self._free.get()
        self._ask(pipe, {"event": "import", **asked})
        started = time.perf_counter()
        turned = [name for name, array in arrays.items() if array.flags.fnc]
        values = {"event": "load", "values": header["values"], "turned": turned}
        solid = {k: array.T if array.flags.fnc else array for k, array in arrays.items()}
        hello, _ = self._ask(pipe, values, solid)
        self.load_seconds = time.perf_counter() - started
        self._free.put(pipe)
        return hello

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """What the model yields for a block, in plain arrays."""
        pipe = self._free.get()
        arrays: dict[str, Array] = {"X": features.X}
        if features.queries is not None:
            arrays["queries"] = features.queries.boundaries
        ended = False
        try:
            self._send(pipe, {"event": "block"}, arrays)
            while True:
                try:
                    message, found = self._ask(pipe, {"event": "next"})
                except BaseException:
                    ended = True
                    raise
                if message.get("event") == "end":
                    ended = True
                    self._look()
                    return
                yield _prediction(message, found)
        finally:
            if not ended:
                self._send(pipe, {"event": "stop"})
            self._free.put(pipe)

    def _look(self) -> None:
        """See how much memory it has used, with all that it started; nobody asks it."""
        if _LINUX:
            number = self._process.pid
            peaks = (peak_rss_mb(process) for process in (number, *descendants(number)))
            self.peak_rss_mb = max(self.peak_rss_mb, *peaks)

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        self._output.join(timeout=1)  # something that it started may still hold the pipe
        while not self._free.empty():
            with suppress(OSError):
                self._free.get().close()
        for own in self._sockets:
            own.close()

    def __enter__(self) -> "Hosted":
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def _send(
        self, pipe: BinaryIO, message: Mapping[str, Any], arrays: Mapping[str, Array] = {}
    ) -> None:
        try:
            send(pipe, message, arrays)
        except OSError:
            raise self._died() from None

    def _ask(
        self, pipe: BinaryIO, message: Mapping[str, Any], arrays: Mapping[str, Array] = {}
    ) -> tuple[dict[str, Any], dict[str, Array]]:
        """Its answer. Raises ContractError or HostedError for what went wrong there."""
        self._send(pipe, message, arrays)
        try:
            answer, found = receive(pipe)
        except (EOFError, OSError):
            raise self._died() from None
        except Exception as error:
            raise ContractError(f"its process sent what is no message ({error})") from error
        if answer.get("event") != "failed":
            return answer, found
        line = str(answer.get("error"))
        if answer.get("contract"):
            raise ContractError(line)
        known = answer.get("status") in (Status.FAILED, Status.OUT_OF_MEMORY)
        status = Status(answer["status"]) if known else Status.FAILED
        raise HostedError(status, line, str(answer.get("trace")))

    def _died(self) -> HostedError:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        return HostedError.of_exit(self._process.poll())


def _pass_on(output: BinaryIO) -> None:
    """What the process writes, to where this one does."""
    with output, suppress(OSError):
        while written := os.read(output.fileno(), 1 << 16):
            os.write(2, written)


def _prediction(message: Mapping[str, Any], arrays: Mapping[str, Array]) -> Prediction:
    try:
        bills = {}
        for k, (name, sensors) in enumerate(message["bills"]):
            splits, trees = arrays[f"{k}.splits"], arrays[f"{k}.trees"]
            bought: Any = arrays[f"{k}.bits"]
            bills[str(name)] = Bill(Acquired(bought, int(sensors)), splits, trees)
        return Prediction(dict(message["point"]), arrays["scores"], bills)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ContractError(f"its process sent what is no prediction ({error!r:.80})") from error
