"""Specifications sent to workers, and the results that they return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from bench_core.arrays import Float32Array, FloatArray

COSTS = ("feature_cost", "evaluation_cost", "total_cost", "cost_p95", "cost_max")
CELLS = (*COSTS, "features_used")
"""The columns of a point's cells that stand behind its metrics."""


class Status(StrEnum):
    """How a fit or trial ended. Only ``ok`` is final: the others are tried again."""

    OK = "ok"
    FAILED = "failed"
    TIMEOUT = "timeout"
    OUT_OF_MEMORY = "out-of-memory"
    CRASHED = "crashed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What the store keeps about a run: fields that its plan and its row share.

    ``metrics`` holds all of the run, ``metrics`` in ``datasets`` those that suit a data set, the
    primary one first. ``absent`` are data sets of the suite whose files were not there.
    """

    suite: str
    title: str
    paper: str = ""
    profile: str
    reference: str
    accounting: str
    metrics: tuple[str, ...]
    higher_is_better: Mapping[str, bool]
    datasets: tuple[Any, ...]  # of a plan DatasetUse, of a stored run their JSON
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)  # values of plugins' suite keys
    baselines: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FitSpec:
    """Everything ``run_fit`` needs, as JSON values.

    ``learner`` from ``class_names.encode``; ``needs`` maps the canonical JSON of an encoded
    learner to its FitKey; ``data`` is the folder of the prepared data; ``states`` is the folder of
    fitted models, where the cost model lies under its key ``costs`` ("": that of the data).
    ``modules`` are those of objects that the request holds: with those of ``plugins`` they are the
    only ones, beside installed plugins, whose classes a state may name.
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
    costs: str = ""
    plugins: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """Everything ``run_trial`` needs, and what the export says about it.

    ``costs`` and ``modules`` as in ``FitSpec``; ``surrogate``: the learner trained on other prices
    than those; ``caps``: what no row may cost, each a further point; ``workers``: how many jobs run
    at the same time. ``code`` is a digest of the learner's source, ``libraries`` what decides
    beside it (``Facts.libraries``).
    """

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
    surrogate: bool = False
    accounting: str = "path"
    audit: str = "sample"
    splits: tuple[str, ...] = ("valid", "test")
    threads: int = 1
    costs: str = ""
    plugins: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    caps: tuple[float, ...] = ()
    workers: int = 1
    code: str = ""
    libraries: str = ""


@dataclass(frozen=True, slots=True)
class FitResult:
    """What a fit cost: wall-clock seconds of ``fit`` alone, without those that passed while modules
    or kernels were loaded, and the peak of resident memory."""

    seconds: float
    peak_rss_mb: float


@dataclass(frozen=True, slots=True, eq=False)
class StoredValues:
    """Values per query or row of a split, at the ``points`` (p,) that budgets choose on validation.

    All arrays are float32: ``metric`` (p, m) of the primary metric with ``weights`` (m,), ``cost``
    (p, m) per row of each unit with ``rows`` (m,), its rows counted with multiplicity. Neighbours
    are averaged where there are more than ``score.VALUE_UNITS`` units. ``bought`` (p, s) is the
    share of rows that buy each sensor.
    """

    split: str
    points: tuple[int, ...]
    metric: Float32Array
    cost: Float32Array
    weights: Float32Array
    rows: Float32Array
    bought: Float32Array


VALUE_ARRAYS = ("metric", "cost", "weights", "rows", "bought")
"""The arrays of ``StoredValues``."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """``word``: verified (every query and point), sampled, declared (not audited) or failed,
    then with the reason in one line."""

    word: str
    reason: str = ""


class Sensors(NamedTuple):
    """What could be bought: of each sensor the features that need it, and its additive price."""

    names: tuple[str, ...] = ()
    price: tuple[float, ...] = ()


class Stages(NamedTuple):
    """What a model's rows go through (``protocols.StageTree``), and by operating point that values
    are kept of the share of test rows that ``reached`` each stage."""

    parent: tuple[int, ...] = ()
    sensors: tuple[int, ...] = ()
    price: tuple[float, ...] = ()
    reached: Mapping[Any, Sequence[float]] = {}


@dataclass(frozen=True, slots=True, eq=False)
class TrialResult:
    """The rows of a trial, values per unit at its choosable points, and the audit.

    ``marks`` and ``stages`` (the fields of ``Stages``) are the model's. ``predict_seconds`` leaves
    training rows out, which only the reference is scored on.
    """

    rows: tuple[PointRow, ...]
    values: tuple[StoredValues, ...]
    audit: str
    audit_error: str
    predict_seconds: float
    peak_rss_mb: float
    marks: tuple[str, ...] = ()
    sensors: Sensors = field(default_factory=Sensors)
    stages: Mapping[str, Any] = field(default_factory=dict)


MORE_THREADS = "more threads than granted"
"""The mark of a trial whose fit or model kept more threads busy than it was to have."""


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
"""FitResult, TrialResult or Verdict, by the kind of the job; None where it failed."""


def with_tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that were read from JSON, which has lists in place of tuples."""
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}


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
    """How a job ended: ``error`` is one line, of a fit that is ok about threads that it was not to
    have; ``trace`` a traceback where there is one, ``output`` the end of what the job wrote to
    stdout and stderr; of its ``seconds`` it ``waited`` for a processor (``waited_seconds``)."""

    job: Job
    status: Status
    error: str = ""
    trace: str = ""
    result: Result = None
    seconds: float = 0.0
    output: str = ""
    waited: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo(RunRecord):
    """A run as the store remembers it.

    ``state`` is running, interrupted (also by a kill) or finished. ``planned`` counts its trials,
    ``counts`` those that have ended, by status.
    """

    run: str
    number: int
    created_at: str
    updated_at: str
    state: str
    planned: int
    counts: Mapping[str, int]
    request: Mapping[str, Any]

    @property
    def stand_in(self) -> bool:
        """Whether any of its data sets is a stand-in."""
        return any(d["stand_in"] for d in self.datasets)


@dataclass(frozen=True, slots=True, eq=False)
class Bought:
    """What rows buy at the kept points ``settings`` (p,) of one trial: the ``share`` (p, s) of test
    rows that buy each of the ``sensors``, and where its model has ``stages``, who reaches them;
    ``trial`` as in the export."""

    trial: str
    learner: str
    params: Mapping[str, Any]
    fold: int
    seed: int
    settings: tuple[Mapping[str, float], ...]
    share: FloatArray
    sensors: Sensors
    stages: Stages | None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a trial of a run ended."""

    title: str
    status: str
    error: str
    audit: str


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: the ``attempt``-th of its fit, trial (``score``) or audit.

    ``error`` is one line, ``trace`` a traceback that begins with the plugin's frames, ``output``
    the end of what was written to stdout and stderr; each is empty where there is none. Of its
    ``seconds`` it ``waited`` while others had the processor, as far as the system says (Linux).
    """

    kind: str
    key: str
    title: str
    status: str
    error: str
    trace: str
    output: str
    seconds: float
    waited: float
    created_at: str
    machine: str
    attempt: int
