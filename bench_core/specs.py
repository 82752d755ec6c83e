"""What a fit and a trial are told, and what they answer: values that travel between processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from bench_core.protocols import Array

if TYPE_CHECKING:
    from bench_core.scoring import PointRow


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
