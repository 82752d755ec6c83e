"""Prepared data: training, validation and test splits with their costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import Array, FloatArray, IntArray
from bench_core.costs.by_row import ByRow
from bench_core.costs.cost_file import ASSUMED_COSTS
from bench_core.costs.model import Acquired, CostModel, SensorPrices
from bench_core.data import Examples, Task
from bench_core.encoding import ColumnEncoding
from bench_core.errors import UsageError, option

SPLITS = ("train", "valid", "test")
KNOWS = "knows the distribution"
"""Mark of a model that used ``Splits.truth``: a reference, not comparable with learned ones."""
_SHOWN = (0.5, 0.95)  # quantiles of prices by row
MOST_CLASSES = 20
"""Largest number of distinct integer labels that count as classes if no task is given."""

ORACLE = "oracle"
"""Name of the row of a choice's board that takes the best answer of each row, after seeing all."""


class Note(NamedTuple):
    """One line for the user; ``kind`` is what code asks for, "" if no code does."""

    kind: str
    text: str

    def __str__(self) -> str:
        return self.text

    @classmethod
    def of(cls, value: Any) -> Note:
        """Return a note from a text, or from a kind and a text as JSON keeps them."""
        return cls("", value) if isinstance(value, str) else cls(*value)


SAMPLE = "sample"
"""Kind of notes that rows are part of a larger data set; boards and claims are marked."""
STAND_IN = "stand-in"
"""Kind of notes that data are generated; boards have a notice of their own."""
CAUTION = "caution"
"""Kind of notes that results are less certain than they look, which the page shows first."""
CUT = "cut"
"""Kind of the note that rows were divided here, by a hash."""
UNUSED = "unused"
"""Kind of notes that prices are of features which the data do not have."""


@dataclass(frozen=True, slots=True, eq=False)
class Splits:
    """Training, validation and test splits, their costs and metadata.

    ``Splits(train, valid, test, prices)`` is sufficient: by default ``task`` and ``classes`` come
    from the data set's class and the labels. Learners train on ``prices``. ``cost_model`` computes
    the bills if costs are not additive; ``prices`` are then its surrogate. ``costs_assumed`` is
    True if no costs were given. ``fingerprint`` is a digest of all arrays except costs, set by
    the prepared-data cache. ``encodings`` describe how columns of a user's table became features,
    () if features are columns. ``price_columns`` (c,) name those of the rows
    (``Examples.price_columns``). ``class_names`` are a user's labels by class number, for a choice
    the names of the sources: a feature of this name, or features whose names begin with it and
    ``_``, come from a source's call (``calls``). ``notes`` are lines for the user: texts, or
    ``Note(SAMPLE, text)`` for a part of a larger data set.

    ``truth`` is the distribution of rows, if a generator knows it. Either ``table`` (v1, .., vd, K)
    holds the joint probabilities of all feature values (0, 1, ..) and classes. Or ``label`` (h,),
    ``mean`` and ``sd`` (h, d) describe equally likely hypotheses, given which features are
    independent and normal (``sd`` NaN: uniform on [0, 1)). Boards compute the optimum from it
    (``bench_core.optimum``). Models of a learner that reads it are marked ``KNOWS``.
    """

    train: Examples
    valid: Examples
    test: Examples
    prices: SensorPrices
    task: Task = cast(Task, None)  # noqa: RUF009 - until ``complete`` sets it
    classes: int = 0  # 2 for binary, K for multiclass and choice, 0 otherwise
    feature_names: tuple[str, ...] = ()
    stand_in: bool = False  # generated in place of licensed data
    notes: tuple[str | Note, ...] = ()
    fingerprint: str = ""
    cost_model: CostModel | None = None
    costs_assumed: bool = False
    encodings: tuple[ColumnEncoding, ...] = ()
    class_names: tuple[str, ...] = ()
    truth: Mapping[str, Array] = field(default_factory=dict)
    price_columns: tuple[str, ...] = ()

    def complete(self, task: Task | None = None) -> Splits:
        """Set task and number of classes: its own values, else ``task``, else from the labels."""
        task, classes = self.task or task, self.classes
        if not task:
            queries = self.train.queries is not None
            task = Task.RANKING if queries else task_of_labels(self.train.y)[0]
        if not classes and task is Task.CHOICE:
            classes = self.train.y.shape[-1]
        if not classes and task is Task.BINARY:
            classes = 2
        elif not classes and task is Task.MULTICLASS:
            y = np.concatenate([part.y for part in (self.train, self.valid, self.test)])
            sound = y.dtype.kind in "biuf" and np.isfinite(y).all()
            classes = int(y.max()) + 1 if sound else 0
        return replace(self, task=task, classes=classes)

    @property
    def constant(self) -> FloatArray:
        """Best constant, () or (K,), from the training labels: mean target or grade, log-odds, or
        logarithms of the class frequencies."""
        y, copies = self.train.y, self.train.weights
        if self.task in (Task.REGRESSION, Task.RANKING):
            return np.asarray(np.average(y, weights=copies))
        if self.task is Task.CHOICE:
            return two_as_one(np.average(y, axis=0, weights=copies))
        classes = max(self.classes, 2)
        shares = np.bincount(y.astype(np.int64), copies, minlength=classes) / copies.sum()
        logs = np.log(np.maximum(shares, 0.5 / copies.sum()))  # a class may have no training row
        return two_as_one(logs)

    @property
    def calls(self) -> IntArray:
        """Feature (K,) that the call of each source yields: the feature of the source's name, else
        the most expensive of those whose names begin with it and ``_``; -1 without one."""
        price, columns = self.prices.feature_price(), self.columns
        calls = np.full(len(self.class_names), -1)
        for k, column in enumerate(source_columns(self.class_names, columns)):
            if column:
                features = [j for j, name in enumerate(columns) if name in column]
                calls[k] = max(features, key=lambda j: price[j])
        return calls

    @property
    def costs(self) -> CostModel:
        """Cost model that computes bills."""
        return self.prices if self.cost_model is None else self.cost_model

    @property
    def names(self) -> tuple[str, ...]:
        """Feature names; numbers from 1 if the data has none."""
        d = self.train.X.shape[1]
        return self.feature_names or tuple(str(j) for j in range(1, d + 1))

    @property
    def origins(self) -> tuple[str, ...]:
        """Source column of each feature, () if features are columns."""
        return tuple(own.name for own in self.encodings for _ in own.features)

    @property
    def offsets(self) -> tuple[float, ...]:
        """Offset subtracted from each feature, () for 0."""
        offsets = tuple(own.offset for own in self.encodings for _ in own.features)
        return offsets if any(offsets) else ()

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that cost files name, one per feature."""
        return self.origins or self.names

    @property
    def all_notes(self) -> tuple[Note, ...]:
        """Notes, including notes on costs."""
        notes = (*self.notes, ASSUMED_COSTS) if self.costs_assumed else self.notes
        if isinstance(self.cost_model, ByRow):
            what = "prices by row, mean (median, 95% quantile)"
            notes += (f"{what}: {', '.join(self.prices_by_row)}; learners train on the means",)
        elif self.cost_model is not None:  # such as prices shared by the rows of a query
            name = self.cost_model.name
            notes += (f"costs by model {name!r}; learners trained on additive prices instead",)
        return tuple(map(Note.of, notes))

    @property
    def prices_by_row(self) -> list[str]:
        """Mean, median and 95% quantile of each column of prices in training, as text."""
        costs, texts = self.cost_model, list[str]()
        if not isinstance(costs, ByRow) or self.train.price_columns is None:
            return texts
        for column, quoted in zip(costs.column.tolist(), costs.quoted.tolist(), strict=True):
            prices, when = self.train.price_columns[:, column], "quoted" if quoted else "metered"
            shown = (np.average(prices, weights=self.train.weights), *np.quantile(prices, _SHOWN))
            mean, median, high = (f"{value:.3g}" for value in shown)
            texts.append(f"{self.price_columns[column]} {mean} ({median}, {high}; {when})")
        return texts

    @property
    def sources(self) -> dict[str, dict[str, float]]:
        """Mean score, regret and cost on test rows of each source of a choice alone, and of
        ``ORACLE``, the cheapest best answer of each row; {} for other tasks."""
        if self.task is not Task.CHOICE or not len(self.test):
            return {}
        test, costs, n = self.test, self.costs, len(self.test)
        if isinstance(costs, ByRow) and test.price_columns is not None:
            costs = costs.on(test.price_columns)
        mask, paid = np.zeros((n, costs.sensors), dtype=bool), []
        for feature in self.calls.tolist():
            mask[:] = False
            mask[:, costs.sensors_of(feature)] = True
            paid.append(costs.feature_cost(Acquired.pack(mask), test.queries))
        price, best = np.column_stack(paid), test.y.max(axis=1)
        cheapest = np.where(test.y == best[:, None], price, np.inf).min(axis=1)
        names = [f"{name} alone" for name in self.class_names]
        pairs = [*zip(names, test.y.T, price.T, strict=True), (ORACLE, best, cheapest)]
        return {
            name: {
                figure: float(np.average(values, weights=test.weights))
                for figure, values in (("score", y), ("regret", best - y), ("cost", cost))
            }
            for name, y, cost in pairs
        }

    def in_unit(self, unit: str) -> Splits:
        """The same data with prices in ``unit``."""
        if self.cost_model is not None:
            raise UsageError(
                f"{option('unit')}: cost model {self.costs.name!r} has a unit of its own"
            )
        return replace(self, prices=replace(self.prices, unit=unit))

    def under(self, costs: CostModel) -> Splits:
        """The same data with another cost model."""
        # learners need additive prices, whatever the cost model
        prices = costs.surrogate(self.train)
        other = None if prices is costs else costs
        return replace(self, prices=prices, cost_model=other, costs_assumed=False)


def source_columns(sources: Sequence[str], columns: Sequence[str]) -> list[set[str]]:
    """Return the columns that the call of each source yields: the column of its name, else those
    that begin with it and ``_``, and with no longer name of a source."""
    begun: dict[str, set[str]] = {source: {source} & {*columns} for source in sources}
    for column in columns:
        owner = max((s for s in sources if column.startswith(f"{s}_")), key=len, default="")
        if owner and owner not in columns and column not in sources:
            begun[owner].add(column)
    return [begun[source] for source in sources]


def two_as_one(scores: FloatArray) -> FloatArray:
    """Return scores (.., K) as predictions hold them: for K = 2 the second less the first (..)."""
    return scores if scores.shape[-1] > 2 else np.asarray(scores[..., 1] - scores[..., 0])


def task_of_labels(labels: NDArray[Any]) -> tuple[Task, str]:
    """Task inferred from labels (n,) or (n, K) without queries, and the reason."""
    if labels.ndim == 2:
        return Task.CHOICE, "each row holds the scores of several answers"
    # two labels may be 0 and 1, -1 and 1 or two words
    values = np.unique(labels)
    if len(values) == 2:
        return Task.BINARY, "there are two different labels"
    if labels.dtype.kind not in "fiu":
        return Task.MULTICLASS, "labels are text"
    if len(values) <= MOST_CLASSES and bool(np.all(values == np.round(values))):
        return Task.MULTICLASS, f"there are {len(values)} different whole labels"
    return Task.REGRESSION, "labels are numbers"
