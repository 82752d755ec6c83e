"""Messages between a worker and its parent: a JSON header and raw arrays, no pickle.

    8 bytes length of the header | header | arrays one after another

The header's ``arrays`` lists name, type and shape of each.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any, BinaryIO

import numpy as np

from bench_core.arrays import Array
from bench_core.results.records import (
    MEASURED,
    VALUE_ARRAYS,
    FitResult,
    FitSpec,
    Job,
    OperatingPoint,
    Result,
    Sensors,
    StoredValues,
    Trial,
    TrialSpec,
    with_tuples,
)

_LENGTH = 8
_MOST_HEADER = 1 << 27  # bytes: what a learner wrote to the pipe begins with any number


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
    """Read one message. Raises EOFError where the other side is gone, ValueError or another error
    for what is no message."""
    length = int.from_bytes(_exactly(pipe, _LENGTH), "little")
    if length > _MOST_HEADER:
        raise ValueError(f"a header of {length} bytes")
    header = json.loads(_exactly(pipe, length))
    arrays = {}
    for name, text, shape in header.pop("arrays"):
        kind = np.dtype(text)
        content = _exactly(pipe, kind.itemsize * math.prod(shape))
        arrays[name] = np.frombuffer(content, dtype=kind).reshape(shape)
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
    if not isinstance(result, Trial):
        return asdict(result), {}
    arrays = {
        f"{i}.{name}": getattr(stored, name)
        for i, stored in enumerate(result.values)
        for name in VALUE_ARRAYS
    }
    values = [{"split": stored.split, "points": stored.points} for stored in result.values]
    told = asdict(replace(result, values=()))
    return {name: told[name] for name in MEASURED} | {"values": values}, arrays


def result_of_wire(job: Job, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Result:
    """The result of a job, the inverse of ``result_to_wire``."""
    if isinstance(job.spec, FitSpec):
        return FitResult(**header)
    made: dict[str, Any] = {
        "points": tuple(OperatingPoint(**point) for point in header["points"]),
        "values": tuple(
            StoredValues(
                stored["split"],
                tuple(stored["points"]),
                **{name: arrays[f"{i}.{name}"] for name in VALUE_ARRAYS},
            )
            for i, stored in enumerate(header["values"])
        ),
        "marks": tuple(header["marks"]),
        "sensors": Sensors(*map(tuple, header["sensors"])),
    }
    return Trial.of(job.spec, **{**header, **made})
