"""Specifications sent to workers, and the results that they return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal

from bench_core.arrays import Array


class Status(StrEnum):
    """How a fit or trial ended. Only ``ok`` is final: the others are tried again."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out-of-memory"
    CRASHED = "crashed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class FitSpec:
    """Everything ``run_fit`` needs, as JSON values.

    ``learner`` from ``references.encode``; ``needs`` maps the canonical JSON of an encoded
    learner to its FitKey; ``data`` is the folder of the prepared data; ``prices`` replaces the
    prepared prices where a cost file was given; ``states`` is the folder of fitted models.
    """

    key: str
    title: str
    learner: Mapping[str, Any]
    learner_name: str
    dataset: str
    data: str
    metric: str
    seed: int
    states: str
    threads: int = 1
    needs: Mapping[str, str] = field(default_factory=dict)
    prices: Mapping[str, Any] | None = None
    plugins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """Everything ``run_trial`` needs, and what the export says about it."""

    key: str
    title: str
    fit: str
    learner: str
    learner_version: str
    params: Mapping[str, Any]
    dataset: str
    fold: int
    seed: int
    fingerprint: str
    stand_in: bool
    task: str
    data: str
    states: str
    metrics: tuple[str, ...]
    unit: str
    accounting: str = "path"
    audit: str = "sample"
    splits: tuple[str, ...] = ("valid", "test")
    threads: int = 1
    prices: Mapping[str, Any] | None = None
    plugins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FitResult:
    """What a fit cost: wall-clock seconds of ``fit`` alone, and the peak of resident memory."""

    seconds: float
    peak_rss_mb: float


@dataclass(frozen=True, slots=True, eq=False)
class StoredValues:
    """Values per unit of a split: see ``store.PointValues``. ``metric`` and ``cost`` are float32
    (p, m) for the points ``points`` (p,)."""

    split: str
    points: tuple[int, ...]
    metric: Array
    cost: Array
    weights: Array
    rows: Array


@dataclass(frozen=True, slots=True, eq=False)
class TrialResult:
    """The rows of a trial, values per unit on its validation frontier, and the audit.

    ``predict_seconds`` leaves training rows out, which only the reference is scored on.
    """

    rows: tuple[PointRow, ...]
    values: tuple[StoredValues, ...]
    audit: str
    audit_error: str
    predict_seconds: float
    peak_rss_mb: float


@dataclass(frozen=True, slots=True)
class PointRow:
    """One operating point on one split, as it is exported. Costs are per row."""

    index: int
    point: Mapping[str, int | float]
    split: str
    metrics: Mapping[str, float]
    feature_cost: float
    evaluation_cost: float
    total_cost: float
    cost_p95: float
    cost_max: float
    features_used: int


Kind = Literal["fit", "score", "audit"]


Result = Any
"""FitResult, TrialResult or audit.Verdict, by the kind of the job; None where it failed."""


@dataclass(frozen=True, slots=True)
class Job:
    """One piece of work. ``needs`` are keys of jobs that must have ended well before."""

    kind: Kind
    spec: FitSpec | TrialSpec
    needs: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """Its identity among the jobs of a run."""
        return f"{self.kind}:{self.spec.key}"

    @property
    def learner(self) -> str:
        """The learner's name."""
        spec = self.spec
        return spec.learner_name if isinstance(spec, FitSpec) else spec.learner


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """How a job ended: ``error`` is one line, ``trace`` a traceback where there is one, ``output``
    the end of what the job wrote to stdout and stderr."""

    job: Job
    status: Status
    error: str = ""
    trace: str = ""
    result: Result = None
    seconds: float = 0.0
    output: str = ""
