"""The contracts: what a data set, a learner, a model and a metric must offer.

Everything here is structural (``typing.Protocol``): a plugin implements the shape and inherits
from nothing. ``bench_core.conformance`` checks a class against these contracts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import Array, FloatArray
from bench_core.costs.bill import Prediction
from bench_core.costs.model import Prices
from bench_core.data import Examples, Features, Queries, Task
from bench_core.splits import Splits

State = Mapping[str, Any]
"""A model's state: numpy arrays (no object dtype) and JSON values, by name."""

Size = str
"""How much data a profile asks for: ``"quick"``, ``"standard"`` or ``"paper"``."""


class Source(Protocol):
    """Where a data set looks for its publisher's files."""

    def find(self, *names: str) -> Path:
        """The one file that has one of these relative paths (or that plus ``.gz``).

        Raises InputError that says which file to put where; two matches are an error.
        """

    def has(self, *names: str) -> bool:
        """Whether ``find`` would succeed."""

    def find_folder(self, name: str) -> Path:
        """The one folder of this path: absolute, in the current folder, or where data lie."""

    @property
    def say(self) -> Callable[[str], None]:
        """Takes a line on how far long work is."""


@runtime_checkable
class Dataset(Protocol):
    """A registered data set. Called by the prepared-data cache, in the parent process.

    ``files`` are the publisher's relative paths that ``prepare`` reads (empty: bundled or
    generated). ``stand_in_for`` names the licensed data set this one replaces when its files
    are absent, else "". ``version`` rises when the prepared arrays would change.
    """

    name: ClassVar[str]
    task: ClassVar[Task]
    title: ClassVar[str]
    folds: ClassVar[int]
    files: ClassVar[tuple[str, ...]]
    stand_in_for: ClassVar[str]
    version: ClassVar[int]

    def prepare(self, source: Source, size: Size, fold: int, seed: int) -> Splits:
        """Read or generate the three splits and the prices."""


class FitContext(Protocol):
    """What the harness offers a learner while it fits."""

    task: Task
    classes: int
    metric: Metric
    seed: int
    threads: int

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features' names in column order, () where the data has none."""

    def fitted(self, learner: BudgetedLearner) -> Any:
        """The model of one of ``needs()``, trained once and shared by all trials."""

    def shared(self, name: str, build: Callable[[], Mapping[str, Array]]) -> Mapping[str, Array]:
        """Arrays that depend on the TRAINING DATA and ``name`` alone, built once, read-only.

        ``name`` must spell every setting that the arrays depend on (``"codes-255"``).
        """

    def progress(self, done: int, total: int) -> None:
        """Say how far the fit is; cheap enough to call after every tree."""


@runtime_checkable
class BudgetedModel(Protocol):
    """A fitted model. Called in a worker process, on blocks of whole queries.

    One that says ``concurrent = True`` is called on several blocks at once, in threads.
    """

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per operating point: at most 100, the same sequence for every block,
        the last one the full model. A query's result depends on nothing outside it."""

    def state(self) -> State:
        """Everything needed to rebuild the model: arrays and JSON only."""

    @classmethod
    def from_state(cls, state: State) -> Self:
        """The inverse of ``state``."""


@runtime_checkable
class BudgetedLearner(Protocol):
    """A frozen dataclass; its fields are its hyper-parameters (see ``bench_core.param``).

    ``name`` is its one spelling everywhere. ``code`` lists modules or packages, beyond its own
    module, whose source decides what it computes (they enter the content key).

    A learner may have ``stamp() -> str``: a text that enters the content key because something
    outside code and parameters decides too (a file's content, a peer's version). Where that is
    missing it raises UsageError or InputError: a learner asked for by name then ends the run with
    that line, another one is left out with a note.

    It may have a ``role``: ``"reference"`` is what a run without a suite is compared with,
    ``"rung"`` needs no method and stands below the others on leaderboards, for them to beat.
    """

    name: ClassVar[str]
    tasks: ClassVar[frozenset[Task]]
    code: ClassVar[tuple[str, ...]]

    def needs(self) -> tuple[BudgetedLearner, ...]:
        """Fits that this one stands on (Cronus on a GBRT)."""

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> BudgetedModel:
        """Learn from ``train``; ``valid`` may steer early stopping or pruning only."""


@dataclass(frozen=True, slots=True, eq=False)
class MetricValues:
    """Per-query or per-row ``values`` (m,) and their ``weights`` (m,); the metric is their
    weighted mean. ``unjudged`` counts queries without a relevant document."""

    values: FloatArray
    weights: FloatArray
    unjudged: int = 0

    @property
    def mean(self) -> float:
        """The metric over all queries or rows; NaN where nothing could be judged."""
        total = float(self.weights.sum())
        return float((self.values * self.weights).sum() / total) if total > 0 else float("nan")


@runtime_checkable
class Metric(Protocol):
    """A metric is a value; ``name`` is its identity, column and command-line spelling.

    One that says ``pictures = True`` is asked only about data whose rows are pixels of frames.
    """

    @property
    def name(self) -> str:
        """Canonical spelling, such as ``ndcg@5``."""

    @property
    def higher_is_better(self) -> bool:
        """Direction of the metric."""

    @property
    def tasks(self) -> frozenset[Task]:
        """Tasks it applies to."""

    def values(
        self,
        scores: FloatArray,
        y: FloatArray,
        queries: Queries | None = None,
        multiplicity: NDArray[np.int64] | None = None,
    ) -> MetricValues:
        """Judge scores (n,) or (n, K) against labels (n,).

        Where rows are pixels, ``queries`` are the ``Frames`` they make up.
        """
