"""From a request to fits and trials with content keys."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bench_core.trial import FitSpec, TrialSpec


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The options of ``bench run``, all optional.

    Give ``suite`` or ``data`` (registered names or files; with a suite it restricts it).
    ``learners`` holds registered names, ``"all"`` or learner instances. ``seeds`` and ``folds``
    None: as the suite's profile says. ``workers`` and ``threads`` 0: chosen from the cores at
    hand. ``timeout`` in seconds and ``memory`` in bytes hold for each job, 0 is no limit.
    """

    suite: str = ""
    data: tuple[str, ...] = ()
    test: str = ""
    valid: str = ""
    label: str = ""
    query: str = ""
    split: str = ""
    task: str = ""
    metrics: tuple[str, ...] = ()
    index_base: int = 1
    costs: str = ""
    learners: tuple[Any, ...] = ()
    profile: str = ""
    settings: tuple[str, ...] = ()
    seeds: tuple[int, ...] | None = None
    folds: tuple[int, ...] | None = None
    workers: int = 0
    threads: int = 0
    executor: str = "local"
    timeout: float = 0.0
    memory: int = 0
    audit: str = "sample"
    fresh: bool = False
    strict_data: bool = False
    data_dir: str = ""
    store: str = ""
    plugins: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DatasetUse:
    """One data set as a run uses it."""

    name: str
    title: str
    task: str
    stand_in: bool
    stand_in_for: str
    fold: int
    seed: int
    size: str
    fingerprint: str
    features: int
    classes: int
    rows: dict[str, int]  # by split
    queries: dict[str, int]  # by split, 0 where rows are independent
    price_of_everything: float
    unit: str
    metrics: tuple[str, ...]  # those of the run that suit the task, the primary one first
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run will do.

    ``fits`` come in an order in which every fit follows those it stands on. ``finished`` holds the
    keys of trials that the store already has. ``seconds`` estimates the work left from earlier
    timings in the store, None where there are none for some of it.
    """

    run: str
    suite: str
    title: str
    profile: str
    reference: str
    accounting: str
    metrics: tuple[str, ...]
    datasets: tuple[DatasetUse, ...]
    fits: tuple[FitSpec, ...]
    trials: tuple[TrialSpec, ...]
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    finished: frozenset[str] = frozenset()
    finished_fits: frozenset[str] = frozenset()
    seconds: float | None = None
    claims: tuple[dict[str, Any], ...] = ()
    paper: str = ""
    skipped: tuple[tuple[str, str], ...] = field(default=())  # (trial key, reason)
