"""A job, how it ended, and how both travel between processes: JSON and arrays, no pickle."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from bench_core.arrays import Array
from bench_core.execution.trial import run_audit, run_fit, run_trial
from bench_core.results.records import (
    FitResult,
    FitSpec,
    Job,
    Result,
    StoredValues,
    TrialResult,
    TrialSpec,
)

Progress = Callable[[int, int], None]
Arrays = dict[str, Array]


def perform(job: Job, progress: Progress) -> Result:
    """Do a job in this process; raises whatever goes wrong."""
    if isinstance(job.spec, FitSpec):
        return run_fit(job.spec, progress)
    if job.kind == "audit":
        return run_audit(job.spec, progress)
    return run_trial(job.spec, progress)


def job_to_json(job: Job) -> dict[str, Any]:
    """A job as JSON (what it needs is left out: it is done when the job is sent)."""
    return {"kind": job.kind, "spec": asdict(job.spec)}


def job_from_json(message: Mapping[str, Any]) -> Job:
    """The inverse of ``job_to_json``."""
    cls = FitSpec if message["kind"] == "fit" else TrialSpec
    return Job(message["kind"], spec_from_json(cls, message["spec"]))


def spec_from_json(cls: type[Any], fields: Mapping[str, Any]) -> Any:
    """A specification from its JSON, lists turned into tuples."""
    return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()})


def result_to_wire(result: Result) -> tuple[dict[str, Any], Arrays]:
    """A result as JSON and arrays."""
    if not isinstance(result, TrialResult):
        return {"type": type(result).__name__, **asdict(result)}, {}
    arrays: Arrays = {}
    values = []
    for i, stored in enumerate(result.values):
        for name in ("metric", "cost", "weights", "rows"):
            arrays[f"{i}.{name}"] = getattr(stored, name)
        values.append({"split": stored.split, "points": list(stored.points)})
    header = {
        "type": "TrialResult",
        "rows": [asdict(row) for row in result.rows],
        "values": values,
        "audit": result.audit,
        "audit_error": result.audit_error,
        "predict_seconds": result.predict_seconds,
        "peak_rss_mb": result.peak_rss_mb,
    }
    return header, arrays


def result_from_wire(header: Mapping[str, Any], arrays: Mapping[str, Array]) -> Result:
    """The inverse of ``result_to_wire``."""
    from bench_core.execution.audit import Verdict
    from bench_core.results.records import PointRow

    fields = {k: v for k, v in header.items() if k != "type"}
    if header["type"] == "FitResult":
        return FitResult(**fields)
    if header["type"] == "Verdict":
        return Verdict(**fields)
    fields["rows"] = tuple(PointRow(**row) for row in header["rows"])
    fields["values"] = tuple(
        StoredValues(
            stored["split"],
            tuple(stored["points"]),
            **{name: arrays[f"{i}.{name}"] for name in ("metric", "cost", "weights", "rows")},
        )
        for i, stored in enumerate(header["values"])
    )
    return TrialResult(**fields)
