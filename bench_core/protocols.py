"""Protocols of plugins: data sets, learners, models, metrics and reports.

The protocols are structural (``typing.Protocol``): a plugin implements the members and inherits
from nothing. Members with a default are optional; ``contracts.py`` supplies the defaults.
``bench_core.conformance`` checks a class against these protocols.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

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
"""Amount of data that a profile uses: ``"quick"``, ``"standard"`` or ``"paper"``."""


class Source(Protocol):
    """Locations of a data set's files."""

    def find(self, *names: str) -> Path:
        """Return the one file with one of these relative paths (or a path plus ``.gz``).

        Raises InputError, which names the file and its folder, if none or several match.
        """

    def has(self, *names: str) -> bool:
        """True if ``find`` would succeed."""

    def find_folder(self, name: str) -> Path:
        """Return the folder of this path: absolute, or in the current or the data folder."""

    @property
    def folder(self) -> Path:
        """The data folder."""

    @property
    def say(self) -> Callable[[str], None]:
        """Function that prints a line about progress."""


@runtime_checkable
class Dataset(Protocol):
    """Required members of a data set. Its methods run in the parent process.

    The constructor takes no required argument. The fields of a dataclass are options
    (``bench_core.param``).
    """

    name: ClassVar[str]  # in reports, in files, for --data
    task: ClassVar[Task]

    @abstractmethod
    def prepare(self, source: Source, size: Size, fold: int, seed: int) -> Splits:
        """Read or generate the three splits and the prices."""


class CompleteDataset(Dataset, Protocol):
    """Optional members of a data set, with their defaults."""

    title: ClassVar[str] = ""
    """One-line description for lists."""
    folds: ClassVar[int] = 1
    code: ClassVar[tuple[str, ...]] = ()
    """Modules or packages besides its own whose source affects the prepared data."""
    version: ClassVar[int] = 1
    """Version of the prepared arrays: increase it when they change."""
    depends_on: ClassVar[tuple[str, ...]] = ("size", "fold", "seed")
    """Arguments of ``prepare`` that change the arrays."""
    stand_in_for: ClassVar[str] = ""
    """Licensed data set that this one replaces if its files are missing."""
    optimum: Mapping[str | tuple[str, str], Sequence[tuple[float, float]]] = MappingProxyType({})
    """Best expected quality of any model, by metric, if known exactly: corners (mean cost per row,
    quality) by ascending cost. Models are mixed between corners; quality is constant after the
    last. ``(metric, "cap")`` gives the optimum under caps, without mixing. It is valid for the data
    set's own prices; an optimum computed from ``Splits.truth`` is valid for any prices."""
    places: ClassVar[tuple[str, ...]] = ()
    """Options that locate files; they are not part of the data set's identity."""

    files: ClassVar[tuple[str, ...]] = ()
    """Paths that ``prepare`` reads, relative to the data folder; () if bundled or generated."""
    home: ClassVar[str] = ""
    """Folder of the files; the name by default. Paths in ``files`` begin with it if other data sets
    have files of the same names."""
    place: ClassVar[str] = ""
    """Table that names a user's own files, for messages; "" for a publisher's files."""
    homepage: ClassVar[str] = ""
    """Address of the publisher's page."""
    licence: ClassVar[str] = ""
    """Licence that the publisher states, "none stated" if none; "" if this does not say."""
    downloads: ClassVar[tuple[Any, ...]] = ()
    """Files that can be downloaded (``Download``); () if a licence has to be accepted."""
    sums: ClassVar[Mapping[str, str]] = MappingProxyType({})
    """sha256 by file or archive, if known."""

    def stamp(self, source: Source) -> str:
        """Text that replaces the identity of ``files`` in the cache key, if not empty."""
        return ""

    def complete(self, source: Source) -> bool:
        """True if all files that ``prepare`` requires are present."""
        return all(source.has(name) for name in self.files)


@runtime_checkable
class Report(Protocol):
    """Output format of finished runs: a module or an instance."""

    name: str
    """Description in ``bench list reports``."""
    suffixes: tuple[str, ...]
    """Suffixes of its files (``(".html", ".htm")``), "" for the terminal."""

    @abstractmethod
    def write(
        self,
        run: Any,
        frame: DataFrame,
        output: Path | None,
        *,
        sections: Sequence[Section],
        store: Any = None,
    ) -> None:
        """Write the results of a run (``RunInfo``) to a file, or to the terminal without one.

        ``frame`` has one row per trial, split and operating point, as in ``bench export``. Plugins'
        ``sections`` follow the boards. ``store`` (``Store``) holds the values per query or row.
        Unused keyword arguments may be omitted. An argument ``registry`` receives all plugins,
        ``columns`` and ``against`` what ``bench report`` asks of tables."""


@dataclass(frozen=True, slots=True)
class Section:
    """Part of a report: a one-line summary and a table, which may be empty.
    ``hint`` names the command that shows more. ``rows`` are pairs of a unique key (an anchor) and
    cells. The first line of a cell is its text; further lines are secondary. Cells of column
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
"""Function that returns a plugin's section, or None, for a run (``RunInfo``) and its export frame.
A function with a parameter ``store`` also receives the run's ``Store``."""


ColumnsOf = Callable[[Any], Iterable[Any]]
"""Function that returns a plugin's columns (``leaderboard.columns.Column``) of a ``Board``."""


class FitContext(Protocol):
    """Services of the harness for a learner's ``fit``."""

    task: Task
    classes: int  # at least 2, 0 for numeric targets
    metric: Metric  # for early stopping
    seed: int
    threads: int  # at most; results must not depend on it

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Feature names in column order, () if the data has none."""

    @property
    def splits(self) -> Splits:
        """The data set without its test rows."""

    def fitted(self, learner: BudgetedLearner) -> Any:
        """Return the model of one of ``needs()``, trained once and shared by all trials."""

    def shared(self, inputs: Any, build: Callable[[], Mapping[str, Array]]) -> Mapping[str, Array]:
        """Return read-only arrays, built once for all fits on these data.

        ``inputs`` hold everything that the arrays depend on, by content: JSON, arrays, examples,
        learners, prices and models, such as ``("codes", 255, train.X)``. So a learner that fits
        another one on other rows, or over another model, never gets arrays of the first.
        """

    def trained(
        self, inputs: Any, build: Callable[[], Mapping[str, Array]], size: int = 1
    ) -> Mapping[str, Array]:
        """Return arrays as ``shared``, built once in a run.

        They may also depend on seed and metric. Arrays of a larger ``size``, such as more trees,
        are returned if they exist, and the caller uses their first part.
        """

    def progress(self, done: int, total: int) -> None:
        """Report the progress of the fit; cheap enough to call after every tree."""


@runtime_checkable
class BudgetedModel(Protocol):
    """A fitted model. It runs in a worker process, on blocks of complete queries."""

    @abstractmethod
    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """Yield one prediction per operating point: at most 100, the same sequence for every block,
        the full model last. A query's result does not depend on other queries."""

    @abstractmethod
    def state(self) -> State:
        """Return everything needed to rebuild the model: arrays and JSON only."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Self:
        """Inverse of ``state``."""


DIVERGED = "diverged"
"""Mark of a model whose training diverged; savings are not measured against it."""
ELSEWHERE = "trained elsewhere"
"""Mark of an existing model, as it is."""


class CompleteModel(BudgetedModel, Protocol):
    """Optional members of a model, with their defaults."""

    concurrent: bool = False
    """True if threads may call it on several blocks at once."""
    independent_rows: bool = False
    """True if a row's scores and purchases do not depend on other rows of its query. Under a cap,
    rows then stop separately; otherwise a query stops as a unit."""
    marks: tuple[str, ...] = ()
    """Words that boards show with the model's results (such as ``DIVERGED``): at most 5, each of up
    to 24 lower-case letters, digits, spaces and hyphens, and not a verdict."""


@runtime_checkable
class BudgetedLearner(Protocol):
    """Required members of a learner: a frozen dataclass whose fields are its hyper-parameters
    (``bench_core.param``). ``name`` identifies it in files, commands and reports."""

    name: ClassVar[str]
    tasks: ClassVar[frozenset[Task]]

    @abstractmethod
    def fit(
        self, train: Examples, valid: Examples, prices: SensorPrices, context: FitContext
    ) -> BudgetedModel:
        """Fit on ``train``; use ``valid`` for early stopping or pruning only."""


class CompleteLearner(BudgetedLearner, Protocol):
    """Optional members of a learner, with their defaults."""

    code: ClassVar[tuple[str, ...]] = ()
    """Modules or packages besides its own whose source affects its results."""
    role: ClassVar[str] = ""
    """``"reference"``: runs without a suite compare with it; ``"own"``: a user's model, preferred
    as reference. ``"baseline"``: a trivial method, listed below the others."""
    family: ClassVar[str] = ""
    """Kind of method in ``bench list learners``; the plugin's name if empty."""
    version: ClassVar[str] = ""
    """Version in the content key if no installed distribution registers the learner."""
    tradeoffs: ClassVar[tuple[float, ...]] = ()
    """Default grid of the parameter ``tradeoff``; () for the grid of all learners."""
    numerics: ClassVar[tuple[str, ...]] = ()
    """Further influences on the exact bits of results. Versions of distributions named here enter
    the content key. ``"cpu"`` adds the processor features by which numpy and BLAS order sums. () if
    the learner fixes the order of its sums."""

    def needs(self) -> tuple[BudgetedLearner, ...]:
        """Learners whose fitted models this one uses (Cronus needs a GBRT)."""
        return ()

    def stamp(self) -> str:
        """Text for the content key, for influences outside code and parameters (a file's content, a
        peer library's version).

        Raises UsageError or InputError if they are missing. The run then ends if the learner was
        requested by name; otherwise the learner is skipped with a note.
        """
        return ""

    @staticmethod
    def warm_up(say: Callable[[str], None]) -> None:
        """Compile kernels or load a library once, before the first fit; ``say`` prints a line."""

    def notes(self, splits: Splits) -> Iterable[tuple[str, bool]]:
        """Lines for the user about this learner on these data, each with True for a warning.

        Raises InputError if it cannot handle the data, which ends the run before any work.
        """
        return ()


@dataclass(frozen=True, slots=True, eq=False)
class MetricValues:
    """``values`` and ``weights`` (m,) per query or row; the metric is their weighted mean."""

    values: FloatArray
    weights: FloatArray

    @property
    def mean(self) -> float:
        """Metric over all queries or rows; NaN if all weights are zero."""
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
        """Tasks that the metric applies to."""

    @abstractmethod
    def values(
        self,
        scores: FloatArray,
        y: FloatArray,
        queries: Queries | None = None,
        multiplicity: NDArray[np.int64] | None = None,
    ) -> MetricValues:
        """Evaluate scores (n,) or (n, K) against labels (n,).

        For data with groups, such as the pixels of a picture, ``queries`` are the groups.
        """


class CompleteMetric(Metric, Protocol):
    """Optional members of a metric, with their defaults."""

    bounds: tuple[float, float] | None = None
    """Lower and upper bound of the mean."""
    in_money: bool = False
    """True for costs of answers, in the unit of prices. What a row pays for features is added, and
    the least mean is best: there is no reference, and no share of quality to keep. Learners stop
    early by the next metric."""
    order_only: bool = False
    """True if only the order of the scores (n,) matters, within each query or overall: an
    increasing transformation of the scores does not change the result."""

    def unsuitable(self, examples: Examples) -> str:
        """Reason why the metric does not apply to such data, or "". Suites skip it there."""
        return ""

    def undefined(self, y: FloatArray) -> str:
        """Reason why the metric is undefined on labels (n,), or ""; plans show it."""
        return ""


Export = Callable[[Any, Path], str | None]
"""Function that writes an exported model (``serving.Folder``) into an empty folder. It may return a
remark for the user. Raises UsageError with the reason if its format cannot hold the model. The
first paragraph of its docstring describes the format."""

SuiteKey = Callable[[Any, Set[str], Set[str]], None]
"""Function that checks a plugin's key of a suite file, given the names of the suite's data sets
and learners. Raises UsageError."""
