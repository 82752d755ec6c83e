"""The contracts: what a data set, a learner, a model and a metric must offer.

Everything here is structural (``typing.Protocol``): a plugin implements the shape and inherits
from nothing. Members with a default may be left out: ``contracts.py`` reads them with it.
``bench_core.conformance`` checks a class against these contracts.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import Array, FloatArray
from bench_core.costs.bill import Prediction
from bench_core.costs.model import SensorPrices
from bench_core.data import Examples, Features, Queries, Task
from bench_core.splits import Splits

if TYPE_CHECKING:
    from pandas import DataFrame

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
    def folder(self) -> Path:
        """The data folder."""

    @property
    def say(self) -> Callable[[str], None]:
        """Takes a line on how far long work is."""


@runtime_checkable
class Dataset(Protocol):
    """What a data set must have. Called in the parent process, by the prepared-data cache.

    Its constructor takes no argument that has no default. The fields of a dataclass are options
    (``bench_core.param``).
    """

    name: ClassVar[str]  # on boards, in files, for --data
    task: ClassVar[Task]

    @abstractmethod
    def prepare(self, source: Source, size: Size, fold: int, seed: int) -> Splits:
        """Read or generate the three splits and the prices."""


class CompleteDataset(Dataset, Protocol):
    """What a data set may also have, each with its default."""

    title: ClassVar[str] = ""
    """One line for lists."""
    folds: ClassVar[int] = 1
    code: ClassVar[tuple[str, ...]] = ()
    """Modules or packages, beyond its own module, whose source decides what it prepares."""
    version: ClassVar[int] = 1
    """Rises when the prepared arrays would change."""
    depends_on: ClassVar[tuple[str, ...]] = ("size", "fold", "seed")
    """Those of ``prepare``'s arguments that change the arrays."""
    stand_in_for: ClassVar[str] = ""
    """The licensed data set that this one replaces where its files are absent."""
    optimum: Mapping[str | tuple[str, str], Sequence[tuple[float, float]]] = MappingProxyType({})
    """By metric the best quality that any model can expect, where it is known exactly: corners
    (mean cost per row, quality), costs rising; between two of them they are mixed, beyond the last
    it stays. By ``(metric, "cap")`` the same under caps, where nothing is mixed. It holds for the
    data set's own prices; that of ``Splits.truth`` is computed, for any."""
    places: ClassVar[tuple[str, ...]] = ()
    """Options that name where files are; they do not make it another data set."""

    files: ClassVar[tuple[str, ...]] = ()
    """Paths that ``prepare`` reads, relative to the data folder; none: bundled or generated."""
    home: ClassVar[str] = ""
    """The folder that the files are put into; by default the name. Where other data sets have
    files of the same names, those in ``files`` begin with it."""
    place: ClassVar[str] = ""
    """For messages: the table that names a user's own files, "" for a publisher's."""
    homepage: ClassVar[str] = ""
    """Where a person gets the files."""
    downloads: ClassVar[tuple[Any, ...]] = ()
    """What the publisher offers (``Download``); none where a licence has to be accepted."""
    sums: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """sha256 by file or archive, where known."""
    facts: ClassVar[Any] = None
    """What is known of the whole set (``Facts``)."""

    def stamp(self, source: Source) -> str:
        """Text that enters the cache key in place of the identity of ``files``, unless empty."""
        return ""

    def complete(self, source: Source) -> bool:
        """Whether the files that ``prepare`` cannot do without are there."""
        return all(source.has(name) for name in self.files)

    def faults(self, source: Source) -> list[str]:
        """What is wrong with the files; by default reads them all and compares ``facts``."""
        splits = self.prepare(source, "paper", 0, 0)
        return self.facts.faults(splits) if self.facts else []


@runtime_checkable
class Report(Protocol):
    """A format that finished runs are shown in. A report is a value: a module's or an instance."""

    name: str
    """What ``bench list reports`` shows."""
    suffixes: tuple[str, ...]
    """Of the files that it writes (``(".html", ".htm")``), "" for the terminal."""

    @abstractmethod
    def write(
        self,
        run: Any,
        frame: DataFrame,
        output: Path | None,
        *,
        sections: Sequence[Section],
        verbose: bool,
        store: Any = None,
    ) -> None:
        """Write ``frame`` (one row per trial, split and operating point, as ``bench export``
        writes it) of a run (``RunInfo``) to a file, or to the terminal where there is none.
        ``sections`` of plugins stand below the boards. ``store`` (``Store``) has the values per
        query or row. A report may leave out keyword arguments that it does not need; one that has
        ``registry`` is given all plugins (``Registry``)."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report: a summary of one line and a table, which may be empty.

    ``hint`` names the command that shows more. ``rows`` are pairs of a unique key (an anchor) and
    cells; the first line of a cell is its text, lines below it are secondary. The cells of column
    ``marked`` are single words, shown as badges.
    """

    name: str
    title: str
    summary: str
    hint: str = ""
    note: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, tuple[str, ...]], ...] = ()
    marked: int = -1


SectionOf = Callable[..., Section | None]
"""Makes a plugin's section of the report on a run (``RunInfo``) and its export frame; None where
there is nothing to report. One that has a parameter ``store`` is also given the run's ``Store``."""


class FitContext(Protocol):
    """What the harness offers a learner while it fits."""

    task: Task
    classes: int  # 2 or more, 0 where labels are numbers
    metric: Metric  # for early stopping
    seed: int
    threads: int  # at most; results must not depend on it

    @property
    def feature_names(self) -> tuple[str, ...]:
        """The features' names in column order, () where the data has none."""

    @property
    def splits(self) -> Splits:
        """All that is known of the data, without test rows."""

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
    """A fitted model. Called in a worker process, on blocks of whole queries."""

    @abstractmethod
    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per operating point: at most 100, the same sequence for every block,
        the last one the full model. A query's result depends on nothing outside it."""

    @abstractmethod
    def state(self) -> State:
        """Everything needed to rebuild the model: arrays and JSON only."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Self:
        """The inverse of ``state``."""


DIVERGED = "diverged"
"""The mark of a model whose training broke down: no savings are measured against it."""


class StageTree(NamedTuple):
    """The stages that rows go through, for pictures.

    Of each stage the one that leads to it (``parent``, -1 for the first; lower than its own
    number), how many ``sensors`` the way to its end may buy, and the ``price`` of all of them.
    """

    parent: tuple[int, ...]
    sensors: tuple[int, ...]
    price: tuple[float, ...]


class CompleteModel(BudgetedModel, Protocol):
    """What a model may also have, each with its default."""

    concurrent: bool = False
    """True if it may be called on several blocks at once, in threads."""
    independent_rows: bool = False
    """True if the rows of a query do not influence each other: scores and purchases of a row are
    the same whatever the others are. Under a cap they then stop one by one, elsewhere a query stops
    as a whole."""
    marks: tuple[str, ...] = ()
    """Words that boards show beside its figures (``DIVERGED`` or others): at most 5, each of up to
    24 lower-case letters, digits, spaces and hyphens, none of them a verdict."""
    stage_tree: StageTree | None = None
    """At most 100 stages, for pictures; predictions of a model that has them have a ``stage``."""


@runtime_checkable
class BudgetedLearner(Protocol):
    """What a learner must have: a frozen dataclass, whose fields are its hyper-parameters (see
    ``bench_core.param``). ``name`` is its one spelling everywhere."""

    name: ClassVar[str]
    tasks: ClassVar[frozenset[Task]]

    @abstractmethod
    def fit(
        self, train: Examples, valid: Examples, prices: SensorPrices, context: FitContext
    ) -> BudgetedModel:
        """Learn from ``train``; ``valid`` may steer early stopping or pruning only."""


class CompleteLearner(BudgetedLearner, Protocol):
    """What a learner may also have, each with its default."""

    code: ClassVar[tuple[str, ...]] = ()
    """Modules or packages, beyond its own module, whose source decides what it computes."""
    role: ClassVar[str] = ""
    """``"reference"``: what a run without a suite is compared with; ``"own"``: a model of the user,
    which is so before it. ``"baseline"``: a trivial method, listed below the others."""
    version: ClassVar[str] = ""
    """Enters the content key where no installed distribution registers the learner."""
    numerics: ClassVar[tuple[str, ...]] = ()
    """What decides the bits of its results beside code and parameters: distributions, whose
    versions then enter the content key, and ``"cpu"``, the features of the processor by which numpy
    and BLAS choose the order of their sums. () for one that sums in an order of its own."""

    def needs(self) -> tuple[BudgetedLearner, ...]:
        """Fits that this one stands on (Cronus on a GBRT)."""
        return ()

    def stamp(self) -> str:
        """Text that enters the content key because something outside code and parameters decides
        too (a file's content, a peer's version).

        Where that is missing, raises UsageError or InputError: a learner asked for by name then
        ends the run with that line, another one is left out with a note.
        """
        return ""

    def notes(self, splits: Splits) -> Iterable[tuple[str, bool]]:
        """Lines for the user about this learner on these data, and whether each is a warning.

        Raises InputError where it cannot work on them, which ends the run before any work.
        """
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class MetricValues:
    """Per-query or per-row ``values`` (m,) and their ``weights`` (m,); the metric is their
    weighted mean."""

    values: FloatArray
    weights: FloatArray

    @property
    def mean(self) -> float:
        """The metric over all queries or rows; NaN where nothing could be judged."""
        total = float(self.weights.sum())
        return float((self.values * self.weights).sum() / total) if total > 0 else float("nan")


@runtime_checkable
class Metric(Protocol):
    """A metric is a value; ``name`` is its identity, column and command-line spelling."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Canonical spelling, such as ``ndcg@5``."""

    @property
    @abstractmethod
    def higher_is_better(self) -> bool:
        """Direction of the metric."""

    @property
    @abstractmethod
    def tasks(self) -> frozenset[Task]:
        """Tasks it applies to."""

    @abstractmethod
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


class CompleteMetric(Metric, Protocol):
    """What a metric may also have, each with its default."""

    pictures: bool = False
    """True if it is asked only about data whose rows are pixels of frames."""
    bounds: tuple[float, float] | None = None
    """The numbers between which its mean lies."""
    order_only: bool = False
    """True if only the order of the scores (n,) matters, within each query or overall: an
    increasing function of them changes nothing."""

    def undefined(self, y: FloatArray) -> str:
        """Why it has no value on labels (n,), whatever the scores, or nothing: a plan says it."""
        return ""


SuiteKey = Callable[[Any, Set[str], Set[str]], None]
"""Checks the value of a plugin's key in a suite file, given the names of the suite's data sets and
learners. Raises UsageError."""
