"""Records of a run: specifications for workers, and results that are stored and shown.

The store keeps the fields of ``RunInfo``, ``Trial``, ``OperatingPoint`` and ``Attempt``
(``tables.py``). Workers send the fields of a trial and its points, and the data frame has those
outside ``INTERNAL`` as columns: a new field appears in all of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from bench_core._io.digests import canonical
from bench_core.arrays import Float32Array, FloatArray
from bench_core.costs.error_costs import Matrix
from bench_core.data import Task
from bench_core.results.budgets import SHARE
from bench_core.splits import Note

COSTS = ("feature_cost", "evaluation_cost", "cost", "cost_max")
"""Fields of an operating point that are costs per row."""

TRIAL_DIGITS = 12
"""Digits of a trial's key in exports and logs."""

INTERNAL = frozenset(
    (
        *("key", "title", "fit", "task", "data", "states", "metrics", "audit_mode", "splits"),
        *("costs", "plugins", "caps", "error_costs", "libraries", "seconds", "sensors", "number"),
        *("points", "values"),
    )
)
"""Fields of trials and operating points that are not columns of the data frame."""


class Status(StrEnum):
    """Status of a fit or trial. Only ``ok`` is final; others are tried again."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out-of-memory"
    CRASHED = "crashed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class DatasetUse:
    """One data set as used by a run."""

    name: str = ""
    title: str = ""
    task: str = ""
    stand_in: bool = False  # generated in place of licensed data
    stand_in_for: str = ""  # their name
    fold: int = 0
    seed: int = 0
    size: str = ""  # size of the profile
    fingerprint: str = ""  # a digest of rows and labels
    features: int = 0
    classes: int = 0  # 0 if the task has none
    rows: Mapping[str, int] = field(default_factory=dict)  # by split
    # by split, queries or groups of rows that depend on each other; 0 for independent rows
    queries: Mapping[str, int] = field(default_factory=dict)
    test_classes: Mapping[str, int] = field(default_factory=dict)  # test rows by class
    price_of_everything: float = 0.0  # all sensors for one row
    unit: str = ""  # unit of all prices and costs
    metrics: tuple[str, ...] = ()  # the run's metrics for this task, the primary one first
    reference: str = ""  # the learner that savings are measured against, "" for none
    error_costs: Matrix = ()  # () if errors have no cost
    undefined: Mapping[str, str] = field(default_factory=dict)  # why not defined, by metric
    notes: tuple[Note, ...] = ()
    optimum: Mapping[str, Any] = field(default_factory=dict)  # by metric, or ``metric cap``
    ends: Mapping[str, Any] = field(
        default_factory=dict
    )  # by learner: operating_points.search_marks
    # of a choice: score, regret and cost on test of each source alone, and of the oracle
    sources: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    caps: tuple[float, ...] = ()  # maximum cost of each row, measured in addition to paths
    budgets: tuple[str, ...] = ()  # shown budgets (results/budgets.py), in the prices' unit
    accounting: str = "path"
    cheapest_price: float = 0.0  # of a feature that is not free; 0: unknown
    counted: bool = False  # costs are numbers of features: each is a sensor of price 1
    same_as: str = ""  # name of the data under the run's first accounting

    def units(self, split: str) -> tuple[int, str]:
        """Return the number of units of a split that statistics draw, and what they are."""
        if not any(self.queries.values()):
            return self.rows.get(split, 0), "rows"
        return self.queries.get(split, 0), "queries" if self.task == Task.RANKING else "groups"

    @classmethod
    def of(cls, stored: Mapping[str, Any]) -> DatasetUse:
        """Return the use that a store or a job file keeps as JSON."""
        use = cls(**with_tuples(stored))
        return replace(use, notes=tuple(map(Note.of, use.notes)))

    def under(self, accounting: str) -> DatasetUse:
        """The same data under another accounting, which becomes part of the name."""
        options = self.name.removesuffix(")") + ("," if self.name.endswith(")") else "(")
        name = f"{options}accounting={accounting})"
        return replace(self, name=name, accounting=accounting, same_as=self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """Fields common to a run's plan and its row in the store."""

    suite: str
    title: str
    paper: str = ""
    profile: str
    accounting: str
    metrics: tuple[str, ...]  # metrics of all data sets, the primary one first
    higher_is_better: Mapping[str, bool]
    in_money: tuple[str, ...] = ()  # metrics that are costs
    datasets: tuple[DatasetUse, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)  # values of plugins' suite keys
    baselines: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()  # data sets of the suite with missing files


def record_of(about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a run that a store or a job file keeps as JSON, with its request."""
    return with_tuples(about) | {"datasets": tuple(map(DatasetUse.of, about["datasets"]))}


@dataclass(frozen=True, slots=True)
class FitSpec:
    """Input of ``run_fit``, as JSON values."""

    key: str
    title: str
    learner: Mapping[str, Any]  # from class_names.encode
    learner_name: str
    dataset: str
    data: str  # folder of the prepared data
    metric: str
    seed: int
    states: str  # folder of fitted models
    threads: int = 1
    needs: Mapping[str, str] = field(default_factory=dict)  # FitKeys by encoded learner
    costs: str = ""  # key of the cost model in states; "": the data's
    plugins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """Input of ``run_trial``, and its description in exports; see also ``FitSpec``."""

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
    cost_model: str = "sensor"
    surrogate: bool = False  # trained on prices other than the cost model's
    accounting: str = "path"
    audit_mode: str = "sample"  # off, sample, full
    splits: tuple[str, ...] = ("valid", "test")
    threads: int = 1
    costs: str = ""
    plugins: tuple[str, ...] = ()
    caps: tuple[float, ...] = ()  # further points
    error_costs: Matrix = ()  # () if errors have no cost
    workers: int = 1  # jobs at the same time
    code: str = ""  # digest of the learner's source
    libraries: str = ""


@dataclass(frozen=True, slots=True)
class FitResult:
    """Time and memory of a fit."""

    seconds: float  # wall clock of ``fit``, without loading modules and kernels
    peak_rss_mb: float  # resident


@dataclass(frozen=True, slots=True, eq=False)
class StoredValues:
    """Values per query or row of a split, at the ``points`` (p,) that budgets choose on validation.

    Neighbours are averaged if there are more than ``execution.trial.VALUE_UNITS`` units.
    """

    split: str
    points: tuple[int, ...]
    metric: FloatArray | Float32Array  # (p, m) the primary metric; float64 if values are huge
    cost: Float32Array  # (p, m) per row of each unit
    weights: Float32Array  # (m,) of the metric
    rows: Float32Array  # (m,) rows of each unit, with multiplicity
    bought: Float32Array  # (p, s) fraction of rows that buy each sensor
    # with a known order (p, 1 + t, s): the mean of each sensor's step over rows, then the fraction
    # of rows that buy it in each of the first t steps
    steps: Float32Array | None = None
    nothing: Float32Array | None = None  # (p, s) fraction that buys it and gets no value
    paid: Float32Array | None = None  # (p, s) mean paid by a row, if prices differ by row
    right: Float32Array | None = None  # (p, classes) rows with the right answer, of classifiers

    @property
    def arrays(self) -> dict[str, FloatArray | Float32Array]:
        """Arrays by name."""
        named = {f.name: getattr(self, f.name) for f in fields(StoredValues)[2:]}
        return {name: array for name, array in named.items() if array is not None}


@dataclass(frozen=True, slots=True)
class Verdict:
    """Result of a trial's audit."""

    # verified (every query and point), sampled, declared (not audited, or order of purchases
    # unknown) or failed
    word: str
    reason: str = ""  # one line, if declared or failed, or asked in the audit's own process


class Sensors(NamedTuple):
    """Sensors that could be bought."""

    names: tuple[str, ...] = ()  # features that need each sensor
    price: tuple[float, ...] = ()  # additive


@dataclass(frozen=True, slots=True)
class OperatingPoint:
    """One operating point on one split. Costs are per row."""

    number: int  # position on the path
    point: Mapping[str, int | float]
    split: str
    metrics: Mapping[str, float]
    feature_cost: float
    evaluation_cost: float
    cost: float
    cost_max: float
    cap: float | None  # maximum cost of each row, if enforced
    over_cap: float = 0.0  # share of rows that cost more than the cap, as the last price is metered
    excess: float = 0.0  # mean of what these rows cost more
    features_used: int = 0  # columns of the user's data that any row could read


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial(TrialSpec):
    """A finished trial: its specification and results.

    A worker sets the fields ``MEASURED``; the writer adds time, machine and the job's outcome.
    """

    status: str = "ok"
    error: str = ""  # reason of a failure or of the audit's verdict
    audit: str = ""
    marks: tuple[str, ...] = ()
    fit_seconds: float | None = None
    predict_seconds: float | None = None  # without training rows
    peak_rss_mb: float | None = None
    seconds: float = 0.0
    cpu: str = ""
    machine: str = ""
    versions: str = ""
    created_at: str = ""
    sensors: Sensors = field(default_factory=Sensors)
    points: tuple[OperatingPoint, ...] = ()
    values: tuple[StoredValues, ...] = ()

    @property
    def short(self) -> str:
        """Name in exports and logs: the beginning of its key."""
        return self.key[:TRIAL_DIGITS]

    @classmethod
    def of(cls, spec: TrialSpec, **ended: Any) -> Trial:
        """Create a trial from a specification and further fields."""
        return cls(**{f.name: getattr(spec, f.name) for f in fields(TrialSpec)}, **ended)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TrialValues(StoredValues):
    """Stored values of one trial on one split, with their metadata.

    Units have the same order in all trials on one data set, fold, seed and split.
    """

    trial: Trial
    settings: tuple[Mapping[str, Any], ...]  # (p,) operating points


MEASURED = tuple(f.name for f in fields(Trial)[len(fields(TrialSpec)) :])
"""Fields of a trial that are not in its specification."""

AUDITS = ("failed", "", "declared", "sampled", "verified")
"""Verdicts of audits, from weakest to strongest."""

Kind = Literal["fit", "score", "audit"]

Result = Any
"""FitResult, Trial or Verdict, by the kind of the job; None if it failed."""


def with_tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert lists in fields read from JSON to tuples."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}


@dataclass(frozen=True, slots=True)
class Job:
    """One unit of work."""

    kind: Kind
    spec: FitSpec | TrialSpec
    needs: tuple[str, ...] = ()  # keys of jobs that must succeed first

    @property
    def key(self) -> str:
        """Unique key among the jobs of a run."""
        return f"{self.kind}:{self.spec.key}"

    @property
    def learner(self) -> str:
        """Name of the learner."""
        spec = self.spec
        return spec.learner_name if isinstance(spec, FitSpec) else spec.learner


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Result of a job."""

    job: Job
    status: Status
    error: str = ""  # one line
    trace: str = ""  # traceback, beginning with the plugin's frames
    result: Result = None
    seconds: float = 0.0
    output: str = ""  # the end of what the job wrote to stdout and stderr
    stored: bool = False  # already stored, from the shard of a task


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo(RunRecord):
    """A run in the store."""

    run: str
    number: int
    created_at: str
    state: str  # running, interrupted (also by a kill) or finished
    request: Mapping[str, Any]
    planned: int = 0  # trials; ``counts`` has finished ones
    counts: Mapping[str, int] = field(default_factory=dict)

    @property
    def stand_in(self) -> bool:
        """True if any of its data sets is a stand-in."""
        return any(use.stand_in for use in self.datasets)

    @property
    def keep(self) -> float:
        """Share of the reference's quality that answers keep."""
        return float(self.request.get("keep") or SHARE)

    def keeping(self, share: float) -> Self:
        """Return the run as if it had named this share; 0 leaves its own."""
        return replace(self, request={**self.request, "keep": share}) if share else self


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a fit, trial or audit; texts as in ``Outcome``."""

    run: str
    kind: str
    key: str
    title: str
    status: str
    error: str
    trace: str
    output: str
    seconds: float
    created_at: str
    machine: str
    attempt: int = 0  # number for this fit, trial or audit, from 1


TOLERANCE = 1e-9
"""Maximum relative difference between results of one model on two processors."""


class Unlike(NamedTuple):
    """A differing value: location, name, old and new value."""

    where: str
    what: str
    then: Any
    now: Any


def differences(then: Trial, now: Trial, tolerance: float = 0.0) -> Iterator[Unlike]:
    """Yield differences in the points and values of two results; NaN equals NaN."""
    before, after = dict(_figures(then)), dict(_figures(now))
    for where, what in {**before, **after}:
        a, b = before.get((where, what)), after.get((where, what))
        arrays = isinstance(a, np.ndarray) or isinstance(b, np.ndarray)  # stored as float32
        if not _close(a, b, 1e-6 if arrays and tolerance else tolerance):
            yield Unlike(where, what, *(("other values", "these") if arrays else (a, b)))


def _figures(trial: Trial) -> Iterator[tuple[tuple[str, str], Any]]:
    """Yield location, name and value of the numbers of all points, and of all arrays."""
    for point in trial.points:
        where = f"{point.split} at {canonical(point.point)}"
        numbers = {name: getattr(point, name) for name in (*COSTS, "features_used")}
        for name, value in {**point.metrics, **numbers}.items():
            yield (where, name), value
    for values in trial.values:
        for name, array in {"points": np.array(values.points), **values.arrays}.items():
            yield (values.split, f"{name} by query or row"), array


def _close(a: Any, b: Any, tolerance: float) -> bool:
    if a is None or b is None or np.shape(a) != np.shape(b):
        return False
    return bool(np.allclose(a, b, rtol=tolerance, atol=tolerance * 1e-3, equal_nan=True))
