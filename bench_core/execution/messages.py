"""Messages between a pool and its workers, over a pipe: a JSON header and raw arrays, no pickle.

    8 bytes length of the header | header | arrays one after another

The header's ``arrays`` lists name, type and shape of each.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, BinaryIO

import numpy as np

from bench_core.arrays import Array
from bench_core.results.records import (
    VALUE_ARRAYS,
    FitResult,
    FitSpec,
    Job,
    PointRow,
    Result,
    StoredValues,
    TrialResult,
    TrialSpec,
    Verdict,
    with_tuples,
)

_LENGTH = 8


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
    return TrialResult(**fields)
