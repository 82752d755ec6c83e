"""Messages between a worker and its pool: a JSON header and raw arrays, no pickle.

    8 bytes length of the header | header | arrays one after another

The header's ``arrays`` lists name, type and shape of each. A job's header has a random ``token``,
and so has every message about that job; ``result_of`` takes nothing that is no answer to it.
"""

import json
import math
from collections.abc import Iterable, Mapping
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
MOST_HEADER = 1 << 27
MOST_ARRAYS = 1 << 34
"""Bytes that a message may have, so that a worker cannot fill its parent's memory by a number."""

_LONGEST = 1e12  # seconds or MiB


class ForeignAnswerError(Exception):
    """What a worker sent answers another job, or none."""


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
    """Read one message. Raises EOFError where the other side is gone, other errors for what is no
    message."""
    length = int.from_bytes(_exactly(pipe, _LENGTH), "little")
    if length > MOST_HEADER:
        raise ValueError(f"a header of {length} bytes")
    header = json.loads(_exactly(pipe, length))
    listed = [(name, np.dtype(kind), shape) for name, kind, shape in header.pop("arrays")]
    sizes = [kind.itemsize * math.prod(shape) for _, kind, shape in listed]
    if sum(sizes) > MOST_ARRAYS or min(sizes, default=0) < 0:
        raise ValueError(f"arrays of {sum(sizes)} bytes")
    arrays = {}
    for (name, kind, shape), size in zip(listed, sizes, strict=True):
        arrays[name] = np.frombuffer(_exactly(pipe, size), dtype=kind).reshape(shape)
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
    if not isinstance(result, Trial):
        return kind | asdict(result), {}
    arrays = {
        f"{i}.{name}": getattr(stored, name)
        for i, stored in enumerate(result.values)
        for name in VALUE_ARRAYS
    }
    values = [{"split": stored.split, "points": stored.points} for stored in result.values]
    told = asdict(replace(result, values=()))
    return kind | {name: told[name] for name in MEASURED} | {"values": values}, arrays


def result_of(job: Job, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Result:
    """The result of a job, its types and shapes checked. Raises ForeignAnswerError."""
    wanted = {"fit": "FitResult", "score": "Trial", "audit": "Trial"}[job.kind]
    try:
        _need(header["type"] == wanted, f"a {header['type']}")
        result = _result_from_wire(job, header, arrays)
        _CHECKS[wanted](job.spec, result)
    except ForeignAnswerError:
        raise
    except Exception as error:
        raise ForeignAnswerError(f"{type(error).__name__}: {error}") from error
    return result


def _result_from_wire(job: Job, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Result:
    fields = {k: v for k, v in header.items() if k != "type"}
    if header["type"] == "FitResult":
        return FitResult(**fields)
    fields["points"] = tuple(OperatingPoint(**point) for point in header["points"])
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
    assert isinstance(job.spec, TrialSpec)
    return Trial.of(job.spec, **fields)


def _need(holds: bool, what: str) -> None:
    if not holds:
        raise ForeignAnswerError(what)


def _need_numbers(values: Iterable[Any], what: str, least: float = -math.inf) -> None:
    for value in values:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        _need(number and not value < least, f"{what} {value!r:.40}")


def progress_of(header: Mapping[str, Any]) -> tuple[int, int]:
    """What of how much is done. Raises ForeignAnswerError for numbers that nothing can have."""
    done, total = header["done"], header["total"]
    for count in (done, total):
        _need(type(count) is int and 0 <= count < 1 << 53, f"progress {count!r:.40}")
    return done, total


def _check_fit(spec: Any, result: FitResult) -> None:
    for cost in (result.seconds, result.peak_rss_mb):
        _need_numbers((cost,), "a cost of fitting", 0.0)
        _need(cost < _LONGEST, f"a cost of fitting {cost!r:.40}")  # nor is it NaN


_WORDS = {
    "off": ("declared",),
    "sample": ("sampled", "declared", "failed"),
    "full": ("verified", "declared", "failed"),
}
_COSTS = ("feature_cost", "evaluation_cost", "total_cost", "cost_p95", "cost_max", "features_used")


def _check_trial(spec: TrialSpec, result: Trial) -> None:
    _need(result.audit in _WORDS[spec.audit_mode], f"verdict {result.audit!r}")
    _need(isinstance(result.error, str), "a verdict's reason")
    _need_numbers((result.predict_seconds, result.peak_rss_mb), "a cost of predicting", 0.0)
    _need(all(isinstance(mark, str) for mark in result.marks), "marks")
    points: dict[str, list[Any]] = {name: [] for name in spec.splits}
    for row in result.points:
        points[row.split].append((row.number, dict(row.point)))
        _need(row.metrics.keys() == set(spec.metrics), f"metrics {sorted(row.metrics)}")
        _need_numbers((*row.metrics.values(), *row.point.values()), "a metric or setting")
        _need_numbers((getattr(row, name) for name in _COSTS), "a cost", 0.0)
    first = points[spec.splits[0]]
    _need(len(first) > 0 and all(p == first for p in points.values()), "points of its splits")
    _need([index for index, _ in first] == list(range(len(first))), "numbers of its points")
    sensors = len(result.sensors.price)
    _need(sensors == len(result.sensors.names), "names of its sensors")
    _need_numbers(result.sensors.price, "a price", 0.0)
    for stored in result.values:
        p, m, rows = len(stored.points), len(stored.weights), len(stored.rows)
        shapes = [(p, m), (p, rows), (m,), (rows,), (p, sensors)]
        found = [getattr(stored, name) for name in VALUE_ARRAYS]
        _need(stored.split in ("valid", "test"), f"values of {stored.split!r:.40}")
        _need(set(stored.points) <= set(range(len(first))), "points of its values")
        _need([a.shape for a in found] == shapes, "shapes of its values")
        _need(all(a.dtype == np.float32 for a in found), "types of its values")


_CHECKS: dict[str, Any] = {
    "FitResult": _check_fit,
    "Trial": _check_trial,
}
