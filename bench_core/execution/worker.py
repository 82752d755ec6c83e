"""A worker process, and the messages between it and its pool.

A worker takes jobs from its standard input until that ends. It never outlives its parent: the
system kills it with the parent where it can (Linux), and a thread that waits for more input ends it
when the pipe closes. A message is a JSON header and raw arrays, no pickle:

    8 bytes length of the header | header | arrays one after another

The header's ``arrays`` lists name, type and shape of each.
"""

import contextlib
import faulthandler
import json
import math
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, BinaryIO

import numpy as np

from bench_core._io.machine import limit_memory
from bench_core.arrays import Array
from bench_core.execution.failures import failure
from bench_core.execution.trial import perform
from bench_core.results.records import (
    VALUE_ARRAYS,
    FitResult,
    FitSpec,
    Job,
    PointRow,
    Result,
    Sensors,
    Status,
    StoredValues,
    TrialResult,
    TrialSpec,
    Verdict,
    with_tuples,
)

_LENGTH = 8
PROGRESS_SECONDS = 0.1


def main(parent: int, memory: int) -> None:
    """Serve jobs. ``parent`` is the process id of the caller, ``memory`` bytes or 0."""
    die_with(parent)
    if hasattr(signal, "SIGINT"):
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    source, sink = _private_pipes()
    faulthandler.enable()
    jobs: queue.Queue[dict[str, Any]] = queue.Queue()
    threading.Thread(target=_listen, args=(source, jobs), daemon=True).start()
    if memory:
        limit_memory(memory)
    while True:
        _serve(jobs.get(), sink)


def die_with(parent: int) -> None:
    """Ask the system to kill this process when its parent dies."""
    if sys.platform.startswith("linux"):
        import ctypes

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if hasattr(os, "getppid") and os.name == "posix" and os.getppid() != parent:
        os._exit(1)


def _private_pipes() -> tuple[BinaryIO, BinaryIO]:
    """The two pipes to the parent, out of the way of anything a learner prints or reads."""
    source = os.fdopen(os.dup(0), "rb")
    sink = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return source, sink


def _listen(source: BinaryIO, jobs: queue.Queue[dict[str, Any]]) -> None:
    """Take in jobs; when the pipe closes, end this process and whatever it started."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            jobs.put(receive(source)[0])
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os._exit(1)


def _serve(message: dict[str, Any], sink: BinaryIO) -> None:
    send(sink, {"event": "started"})
    started = last = time.perf_counter()

    def progress(done: int, total: int) -> None:
        nonlocal last
        now = time.perf_counter()
        if now - last >= PROGRESS_SECONDS or done >= total:
            last = now
            send(sink, {"event": "progress", "done": int(done), "total": int(total)})

    try:
        result = perform(job_from_json(message), progress)
        header, arrays = result_to_wire(result)
        answer = {"event": "done", "status": Status.OK, "result": header}
    except BaseException as error:
        status, line, trace = failure(error)
        answer = {"event": "done", "status": status, "error": line, "trace": trace}
        arrays = {}
    with contextlib.suppress(OSError, ValueError):  # the job may have closed them
        sys.stdout.flush()
        sys.stderr.flush()
    send(sink, {**answer, "seconds": time.perf_counter() - started}, arrays)


def send(pipe: BinaryIO, message: Mapping[str, Any], arrays: Mapping[str, Array] = {}) -> None:
    """Write one message and flush it. NaN and infinities travel as Python's JSON spells them."""
    solid = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    listed = [[name, array.dtype.str, list(array.shape)] for name, array in solid.items()]
    header = json.dumps({**message, "arrays": listed}).encode()
    pipe.write(len(header).to_bytes(_LENGTH, "little") + header)
    for array in solid.values():
        if array.size:
            pipe.write(array.reshape(-1).view(np.uint8).data)
    pipe.flush()


def receive(pipe: BinaryIO) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read one message. Raises EOFError where the other side is gone."""
    header = json.loads(_exactly(pipe, int.from_bytes(_exactly(pipe, _LENGTH), "little")))
    arrays = {}
    for name, kind, shape in header.pop("arrays"):
        dtype = np.dtype(kind)
        raw = _exactly(pipe, dtype.itemsize * math.prod(shape))
        arrays[name] = np.frombuffer(raw, dtype=dtype).reshape(shape)
    return header, arrays


def _exactly(pipe: BinaryIO, count: int) -> bytes:
    data = pipe.read(count)
    if len(data) < count:
        raise EOFError
    return data


def job_to_json(job: Job) -> dict[str, Any]:
    """A job as JSON (what it needs is left out: it is done when the job is sent)."""
    return {"kind": job.kind, "spec": asdict(job.spec)}


def job_from_json(message: Mapping[str, Any]) -> Job:
    """The inverse of ``job_to_json``."""
    cls = FitSpec if message["kind"] == "fit" else TrialSpec
    return Job(message["kind"], cls(**with_tuples(message["spec"])))


def result_to_wire(result: Result) -> tuple[dict[str, Any], dict[str, Array]]:
    """A result as JSON and arrays."""
    kind = {"type": type(result).__name__}
    if not isinstance(result, TrialResult):
        return kind | asdict(result), {}
    arrays = {
        f"{i}.{name}": getattr(stored, name)
        for i, stored in enumerate(result.values)
        for name in VALUE_ARRAYS
    }
    values = [{"split": stored.split, "points": stored.points} for stored in result.values]
    return kind | asdict(replace(result, values=())) | {"values": values}, arrays


def result_from_wire(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Result:
    """The inverse of ``result_to_wire``."""
    fields = {k: v for k, v in header.items() if k != "type"}
    if header["type"] != "TrialResult":
        return {"FitResult": FitResult, "Verdict": Verdict}[header["type"]](**fields)
    fields["rows"] = tuple(PointRow(**row) for row in header["rows"])
    fields["values"] = tuple(
        StoredValues(
            stored["split"],
            tuple(stored["points"]),
            **{name: arrays[f"{i}.{name}"] for name in VALUE_ARRAYS},
        )
        for i, stored in enumerate(header["values"])
    )
    fields["marks"] = tuple(header["marks"])
    fields["sensors"] = Sensors(*map(tuple, header["sensors"]))
    return TrialResult(**fields)
