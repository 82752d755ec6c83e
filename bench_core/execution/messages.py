"""Messages between a worker and its parent: JSON and arrays, no pickle.

8 bytes length | a .npz archive of the arrays, in which ``json`` is the rest of the message
"""

import io
import json
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


def send(pipe: BinaryIO, message: Mapping[str, Any], arrays: Mapping[str, Array] = {}) -> None:
    """Write one message and flush it. NaN and infinities travel as Python's JSON spells them."""
    archive = io.BytesIO()
    text = np.frombuffer(json.dumps(message).encode(), dtype=np.uint8)
    contents: Any = {"json": text, **arrays}
    np.savez(archive, **contents)
    pipe.write(archive.tell().to_bytes(_LENGTH, "little") + archive.getbuffer())
    pipe.flush()


def receive(pipe: BinaryIO) -> tuple[dict[str, Any], dict[str, Array]]:
    """Read one message. Raises EOFError where the other side is gone."""
    length = int.from_bytes(_exactly(pipe, _LENGTH), "little")
    with np.load(io.BytesIO(_exactly(pipe, length)), allow_pickle=False) as archive:
        arrays = {**archive}
    return json.loads(arrays.pop("json").tobytes()), arrays


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
    """A result as JSON and arrays: of a trial what it measured, ``0.cost`` the costs of the first
    of its values."""
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
    values: list[Any] = [
        with_tuples(stored) | {name: arrays[f"{i}.{name}"] for name in VALUE_ARRAYS}
        for i, stored in enumerate(header["values"])
    ]
    made: dict[str, Any] = {
        "points": tuple(OperatingPoint(**point) for point in header["points"]),
        "values": tuple(StoredValues(**stored) for stored in values),
        "marks": tuple(header["marks"]),
        "sensors": Sensors(*map(tuple, header["sensors"])),
    }
    return Trial.of(job.spec, **{**header, **made})
