"""scikit-learn estimators: a learner at its best operating point within a budget.

``fit`` trains the learner at each of its settings on a part of the rows. On the other rows, the
validation part, it chooses the setting and operating point with the best quality within the budget.
``predict`` uses that point; ``row_costs`` returns the cost of each row. A cap is enforced for every
row (``execution.caps``): a row follows the path as long as the cap allows, or stays at one point.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    check_array,
    check_is_fitted,
    check_X_y,
    validate_data,
)

from bench_core.api.arguments import checked_metric, costs_of, priced_names, spelling_checked
from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.data import Examples, Features, Queries, Task
from bench_core.datasets.pricing import by_transformer, unit_prices, with_costs
from bench_core.datasets.readers.number_formats import with_days, with_decimal_commas
from bench_core.datasets.readers.tables import (
    NUMBERS,
    DataColumn,
    DataTable,
    float32_offset,
    read_features,
)
from bench_core.datasets.splitting import cut, cut_by_class
from bench_core.datasets.user_arrays import data_frame, grouped_rows
from bench_core.datasets.user_data import LARGEST_GRADE, frame_encodings
from bench_core.encoding import ColumnEncoding, plain_encodings
from bench_core.errors import BenchError, InputError
from bench_core.execution.caps import Caps
from bench_core.execution.fitting import fit_in_process
from bench_core.execution.predict import blocks, gather, predict_split
from bench_core.execution.trial import score_split, sensors_of
from bench_core.metrics import Labels, default_metric, evaluate, parse_metric
from bench_core.metrics.frontier import best_within
from bench_core.parameters import resolved
from bench_core.planning.resolve_learners import instances_of, require_learner
from bench_core.plugins import Registry, load_registry
from bench_core.protocols import Metric
from bench_core.results.budgets import CAP, COLUMNS
from bench_core.sequential import ROUNDING
from bench_core.serving.predictor import probabilities
from bench_core.serving.raw_rows import RawColumns, columns_by_name
from bench_core.splits import Splits

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


@dataclass(eq=False, repr=False)
class _Budgeted(BaseEstimator):
    """Base of the three estimators, with the parameters of ``BudgetedClassifier``."""

    learner: Any = "cegb"
    _: KW_ONLY
    budget: float | None = None
    budget_kind: str = "mean"
    costs: Any = None
    parameters: Mapping[str, Any] | None = None
    metric: str | Metric | None = None
    positive: Any = None
    decimal: str = ""
    dates: bool = False
    validation_fraction: float = 0.2
    random_state: Any = 0
    threads: int = 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.target_tags.required = True
        return tags

    def _fit(self, rows: Examples, valid: Examples | None, task: Task, classes: int = 0) -> Self:
        """Train, and choose the operating point on ``valid``, or on a part of the rows."""
        if self.budget_kind not in COLUMNS:
            raise ValueError(f"budget_kind must be mean or cap, not {self.budget_kind!r}")
        if self.decimal not in ("", ".", ","):
            raise ValueError(f"decimal must be '.' or ',', not {self.decimal!r}")
        given: Any = self.parameters
        if not isinstance(given or {}, Mapping):
            kind = type(given).__name__
            raise ValueError(f"parameters must map names to values or lists of them, not a {kind}")
        if self.positive is not None and task is not Task.BINARY:
            raise ValueError(f"positive={self.positive!r}: a {task} task has no positive class")
        if self.budget is not None and not (
            isinstance(self.budget, int | float | np.number) and self.budget >= 0
        ):
            raise ValueError(f"budget must be a number >= 0, not {self.budget!r}")
        train, valid = self._divided(rows, classes > 0) if valid is None else (rows, valid)
        d, encodings = train.X.shape[1], self.encodings_
        columns = getattr(self, "feature_names_in_", [f"x{j}" for j in range(d)])
        names = tuple(f for own in encodings or plain_encodings(columns) for f in own.features)
        prices = unit_prices(d, encodings)
        splits = Splits(train, valid, valid, prices, task, classes, names, encodings=encodings)
        with _as_value_errors():
            registry = load_registry()
            if self.costs is not None:
                splits = by_transformer(splits, priced_names(self.costs))
                try:
                    costs = costs_of(self.costs)
                    noted = len(splits.notes)
                    splits = with_costs(splits, costs, registry.cost_models)
                    for note in splits.notes[noted:]:
                        warnings.warn(f"costs: {note}", stacklevel=3)
                except InputError as error:
                    unused = [x for x in priced_names(self.costs) if x not in splits.columns]
                    if not unused or any("__" in name for name in splits.columns):
                        raise
                    hint = f"if {unused[0]!r} is a transformer, set verbose_feature_names_out=True"
                    if not hasattr(self, "feature_names_in_"):
                        hint = "in a pipeline, set_output(transform='pandas') gives them"
                        hint = f"X has no names; {hint}"
                    raise InputError(f"{error}; {hint}") from error
            metric: Metric = (
                checked_metric(self.metric)
                if self.metric is not None and not isinstance(self.metric, str)
                else parse_metric(self.metric or default_metric(task).name, registry.metrics, task)
            )
            if task not in metric.tasks:
                able = ", ".join(sorted(metric.tasks))
                raise ValueError(f"metric {metric.name} judges {able}, not {task}")
            learners = self._learners(registry, task)
        self.cost_model_, self.task_ = splits.costs, task
        self._choose(learners, splits, metric)
        return self

    def _divided(self, rows: Examples, by_class: bool) -> tuple[Examples, Examples]:
        """Return the training and validation part: by query, or stratified by class."""
        share = self.validation_fraction
        if not isinstance(share, int | float) or not 0 < share < 1:
            raise ValueError(f"validation_fraction must be between 0 and 1, not {share!r}")
        seed, shares = self._seed(), (1 - share, share)
        whole = rows.queries if rows.queries and len(rows.queries) > 1 else None
        n = len(whole or rows)
        parts = cut_by_class(rows.y, shares, seed) if by_class else cut(n, shares, seed)
        if not all(map(len, parts)):
            parts = cut(n, (0.5, 0.5), seed)  # very few rows
        divided = []
        for part in parts:
            block, chosen, _ = gather(Features(rows.X, whole), part)
            groups = block.queries or Queries(np.array([0, len(chosen)]))
            copies = None if rows.multiplicity is None else rows.multiplicity[chosen]
            divided.append(Examples(block.X, rows.y[chosen], rows.queries and groups, copies))
        return divided[0], divided[1]

    def _learners(self, registry: Registry, task: Task) -> Sequence[Any]:
        """Return the learner at each of its settings."""
        instances: Sequence[Any]
        if isinstance(self.learner, str):
            cls, where = registry.learner(self.learner), f"learner {self.learner}"
            instances = instances_of(cls, self.parameters or {}, (), 0, registry, where)
        else:
            require_learner(self.learner, "learner")
            if self.parameters:
                raise ValueError("parameters need a learner given by name")
            instances = [resolved(self.learner, registry.learner)]
        if task not in instances[0].tasks:
            able = ", ".join(sorted(instances[0].tasks))
            raise ValueError(f"learner {instances[0].name} does {able}, not {task}")
        return instances

    def _choose(self, learners: Sequence[Any], splits: Splits, metric: Metric) -> None:
        """Keep the best model and point within the budget on the validation part."""
        limit = np.inf if self.budget is None else float(self.budget)
        limits = (limit,) if self.budget_kind == "cap" else ()
        self.caps_ = Caps(limits, splits.constant)
        shared: dict[str, Any] = {}  # fits shared by several settings
        classes, points, bought = splits.classes, [], []
        for learner in learners:
            model = fit_in_process(learner, splits, metric, self._seed(), self.threads, shared)
            path = predict_split(model, splits.valid, splits.costs, classes, caps=self.caps_)
            score = {"valid": score_split(path, splits.valid, splits.costs, [metric], "valid")}
            found = score["valid"].rows
            within = limit * (1 + ROUNDING) if limits else np.inf
            rows = [row for row in found if CAP in row.point or row.cost_max <= within]
            points += [(model, learner, row) for row in rows]
            bought += [path.bought[row.number] for row in rows]
        mean = np.array([row.total_cost for _, _, row in points])
        quality = np.array([row.metrics[metric.name] for _, _, row in points])
        budget = np.inf if limits else limit  # all rows are within a cap
        at = best_within(mean, quality[None], budget, metric.higher_is_better)[0]
        if at < 0:
            raise ValueError(f"{metric.name} is not defined on the validation part")
        self.model_, self.learner_, row = points[at]
        self.metric_, self.position_ = metric, row.number
        self.point_ = dict(row.point) | ({CAP: limit} if limits else {})
        self.cost_ = float(getattr(row, COLUMNS[self.budget_kind]))
        self.quality_, share = float(quality[at]), bought[at]
        named = zip(sensors_of(splits).names, share.tolist(), strict=True)
        self.purchases_ = {k: v for k, v in sorted(named, key=lambda item: -item[1]) if v > 0}
        sizes = [len(encoding.features) for encoding in self.encodings_] or [1] * len(splits.names)
        first = np.cumsum([0, *sizes[:-1]])  # the first feature of each column
        self.feature_costs_ = splits.prices.feature_price()[first]
        sensors = map(splits.prices.sensors_of, first.tolist())
        self.feature_importances_ = np.array([share[ids].min(initial=1.0) for ids in sensors])

    def _predicted(self, X: Any, queries: Any = None) -> tuple[FloatArray, FloatArray]:
        """Return scores (n,) or (n, K) at the chosen point, and the cost of each row (n,)."""
        check_is_fitted(self)
        X, named = self._table(X), self.encodings_
        how = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
        X = validate_data(
            self, X, reset=False, skip_check_array=bool(named), **({} if named else how)
        )
        X = self._cells(check_array(self._features(X), estimator=self, **how) if named else X)
        order, groups = np.arange(len(X)), None
        if self.task_ == Task.RANKING:
            order, groups = _order(queries, len(X))
        scores, cost = self._at_point(X[order], groups)
        back = np.argsort(order)  # the caller's order
        return scores[back], cost[back]

    def _at_point(self, X: Any, groups: Queries | None) -> tuple[FloatArray, FloatArray]:
        """Return scores and costs of all rows at the chosen point."""
        position, whole, parts = self.position_, self.model_, []
        classes = len(getattr(self, "classes_", ()))
        first, last = 0, max(position, 0) + 1  # the path ends where it was chosen
        alone = CAP in self.point_ and len(self.point_) > 1 and position >= 0
        if alone:  # the answer under the cap follows the point
            first, position = position, 1
        if alone or not self.caps_.limits:
            whole = SimpleNamespace(
                predict_path=lambda rows: islice(self.model_.predict_path(rows), first, last)
            )
        for _, rows in blocks(Features(X, groups)):
            unlabelled = Examples(rows.X, np.zeros(len(rows)), rows.queries)
            path = predict_split(whole, unlabelled, self.cost_model_, classes, caps=self.caps_)
            parts.append((path.scores[position].copy(), path.cost[position].copy()))
        scores, cost = (np.concatenate(each) for each in zip(*parts, strict=True))
        return scores, cost

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def row_costs(self, X: ArrayLike, queries: Any = None) -> FloatArray:
        """Return the cost of predicting each row (n,), in the unit of the costs."""
        return self._predicted(X, queries)[1]

    def _examples(
        self, X: Any, y: Any, queries: Any = None, weight: Any = None, *, ranking: bool, **more: Any
    ) -> Examples:
        """Return X as float32 (n, d) and y (n,) as rows to learn from. Raises ValueError."""
        rows, y = self._checked(X, y, y_numeric=True, **more)
        return self._rows(rows, y.astype(np.float64), queries, weight, ranking)

    def _rows(self, X: Any, y: Any, queries: Any, weight: Any, ranking: bool) -> Examples:
        """Return rows that represent ``weight`` copies each; rows of weight 0 are left out."""
        if ranking and not bool(np.all((y >= 0) & (y <= LARGEST_GRADE))):
            raise ValueError(f"y holds grades, which must be from 0 to {LARGEST_GRADE:g}")
        copies = None if weight is None else _copies(weight, X)
        order, groups = _order(queries, len(X)) if ranking else (np.arange(len(X)), None)
        if copies is not None:
            order = order[copies[order] > 0]
            if groups is not None:
                groups = _order(
                    None if queries is None else np.asarray(queries)[order], len(order)
                )[1]
        return Examples(X[order], y[order], groups, None if copies is None else copies[order])

    def _checked(self, X: Any, y: Any, reset: bool = True, **more: Any) -> tuple[Any, Any]:
        """Return X as float32 (n, d), text encoded, and y (n,). ``reset``: fit the encodings."""
        X = self._table(X, reset)
        if reset:
            self.encodings_ = self._text_encodings(X)
        how = {"dtype": np.float64, "ensure_all_finite": "allow-nan", "ensure_min_samples": 2}
        if self.encodings_:
            validate_data(self, X, reset=reset, skip_check_array=True)
            X, y = check_X_y(self._features(X), y, **how, **more)
        else:
            X, y = validate_data(self, X, y, reset=reset, **how, **more)
        if reset:
            found = [float32_offset(column) for column in X.T]
            self.offsets_ = np.array([offset or 0.0 for offset in found])
            if (lost := [j for j, offset in enumerate(found) if offset == 0]) != []:
                warnings.warn(f"float32 merges values of the columns {lost} of X", stacklevel=3)
        return self._cells(X), y

    def _table(self, X: Any, reset: bool = False) -> Any:
        """Return tables that numpy cannot convert as pandas frames, anything else unchanged."""
        objects = isinstance(X, np.ndarray) and X.dtype == object and X.ndim == 2
        text = objects and any(isinstance(cell, str) for cell in X.ravel().tolist())
        if columns_by_name(X) is None and not text:
            return X
        with _as_value_errors():
            frame, named = data_frame(X, "X")
        if not named and not reset and [*frame] != [*getattr(self, "feature_names_in_", ())]:
            return X  # in the order of the columns in ``fit``
        return X if hasattr(X, "__array__") and not _has_text(frame) else frame

    def _text_encodings(self, X: Any) -> tuple[ColumnEncoding, ...]:
        """Return the encodings of a frame's columns, () if all are numbers."""
        frame = columns_by_name(X)
        if frame is None or not _has_text(frame):
            return ()
        table = DataTable(Path("X"), X, lambda row: f"X, row {row}")
        with _as_value_errors():
            table = with_decimal_commas(table) if self.decimal == "," else table
            table, _ = with_days(table, texts=self.dates)
            (read,) = read_features([table], table.names)
        return frame_encodings(read, [], formats=table.formats)

    def _features(self, X: Any) -> FloatArray:
        """Return a table with columns of text as numbers (n, d)."""
        raw, columns = RawColumns(self.encodings_), columns_by_name(X)
        with _as_value_errors():
            cells = raw.table(X if columns is None else columns, range(len(raw.names)))
        return cells.astype(np.float64)

    def _cells(self, X: FloatArray) -> Float32Array:
        """Return cells as float32, minus ``offsets_``, which keep the values of a column
        distinct."""
        with np.errstate(over="ignore"):
            cells: Float32Array = (X - self.offsets_).astype(np.float32)
        if np.isinf(cells).any():
            raise ValueError("X holds a value too large for float32; scale its column")
        return cells


_Budgeted.__init__ = spelling_checked(_Budgeted.__init__)  # type: ignore[method-assign]


class BudgetedClassifier(ClassifierMixin, _Budgeted):
    """A classifier whose predictions cost at most ``budget`` per row.

    ==================  ==========================================================================
    parameter           meaning
    ==================  ==========================================================================
    learner             a registered name, or an instance
    budget              largest cost per row; None: no limit
    budget_kind         cost that is limited: ``"mean"`` over the validation part, or ``"cap"``:
                        every predicted row
    costs               by feature (mapping, series), a list in order, a cost model or a file;
                        None: every feature costs 1
    parameters          the learner's parameters by name; lists are grids. By default a learner
                        with a ``tradeoff`` is trained at seven values of it
    metric              metric that chooses the point, a name or an object; None: accuracy
                        (mse, ndcg@5)
    positive            label of the class that cascades look for; None: the second one
    decimal             decimal mark of numbers in text columns: ``","`` as 1.234,50
    dates               True: texts of dates are days since 1970-01-01, as typed dates always are
    validation_fraction share of rows in the validation part, unless ``fit`` gets validation rows
    random_state        seed of that division and of the learner
    threads             threads while training
    ==================  ==========================================================================

    After ``fit``: ``model_``, ``learner_`` (with the chosen setting), ``point_`` and its
    ``position_`` on the path (behind its points under a cap), ``cost_`` (of the budget's kind) and
    ``quality_`` on the validation part, ``classes_``, ``purchases_`` (share of the validation rows
    that buy each measurement, by its columns), ``feature_importances_`` (the same for each column
    of X, not scaled) and ``feature_costs_`` (of each column of X). Text, categories, dates and
    decimal commas of a data frame are encoded as in ``bench_core.run``, by the texts of all rows
    given to ``fit`` (``encodings_``). Learners see float32: ``offsets_`` (d,) are subtracted first,
    so that values such as times in seconds stay distinct. ``sample_weight`` (n,) counts copies:
    integers, 0 leaves a row out.
    """

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_val: ArrayLike | None = None,
        y_val: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit to X (n, d), NaN = missing, labels y (n,) and the number of copies of each row."""
        rows, labels = self._checked(X, y)
        check_classification_targets(labels)
        if sample_weight is not None:
            copies = _copies(sample_weight, rows)
            rows, labels, sample_weight = rows[copies > 0], labels[copies > 0], copies[copies > 0]
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError("y holds one class; a classifier needs at least two")
        if self.positive is not None and self.positive not in self.classes_:
            raise ValueError(f"positive={self.positive!r} is not a class of y")
        # learners see the positive class as 1; scikit-learn's scorers need sorted ``classes_``
        self.turned_ = self.positive is not None and self.positive == self.classes_[0]
        valid = None
        if X_val is not None:
            others, y_val = self._checked(X_val, y_val, reset=False)
            if unknown := set(np.unique(y_val)) - set(self.classes_):
                raise ValueError(f"y_val holds {min(unknown)!r}, which is not a class of y")
            valid = Examples(others, self._turned(np.searchsorted(self.classes_, y_val)))
        task = Task.BINARY if len(self.classes_) == 2 else Task.MULTICLASS
        known = self._rows(rows, self._turned(numbers), None, sample_weight, False)
        return self._fit(known, valid, task, len(self.classes_))

    def _turned(self, numbers: Any) -> FloatArray:
        return np.asarray(1 - numbers if self.turned_ else numbers, dtype=np.float64)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return log-odds of the second class (n,), or logits of all classes (n, K)."""
        scores = self._predicted(X)[0]
        return -scores if self.turned_ else scores

    def predict(self, X: ArrayLike) -> Any:
        """Return the class of each row (n,)."""
        scores = self.decision_function(X)
        number = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[number]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the probability of each class (n, K)."""
        return probabilities(self.decision_function(X), str(self.task_))


class BudgetedRegressor(RegressorMixin, _Budgeted):
    """A regressor whose predictions cost at most ``budget`` per row.

    Parameters and attributes are those of ``BudgetedClassifier``.
    """

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_val: ArrayLike | None = None,
        y_val: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit to X (n, d), NaN = missing, targets y (n,) and the number of copies of each row."""
        rows, valid = self._examples(X, y, None, sample_weight, ranking=False), None
        if X_val is not None:
            valid = self._examples(X_val, y_val, ranking=False, reset=False)
        return self._fit(rows, valid, Task.REGRESSION)

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return the predicted target of each row (n,)."""
        return self._predicted(X)[0]


class BudgetedRanker(_Budgeted):
    """A ranker whose scores cost at most ``budget`` per row.

    Parameters and attributes are those of ``BudgetedClassifier``. ``queries`` (n,) are the rows'
    query ids; the validation part consists of complete queries. Without ids all rows are one query,
    whose rows are divided.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        queries: Any = None,
        X_val: ArrayLike | None = None,
        y_val: Any = None,
        queries_val: Any = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit to X (n, d), NaN = missing, grades y (n,) of at least 0, and the number of copies of
        each row."""
        rows, valid = self._examples(X, y, queries, sample_weight, ranking=True), None
        if X_val is not None:
            valid = self._examples(X_val, y_val, queries_val, ranking=True, reset=False)
        return self._fit(rows, valid, Task.RANKING)

    def predict(self, X: ArrayLike, queries: Any = None) -> FloatArray:
        """Return the score of each row (n,): within a query, higher is better."""
        return self._predicted(X, queries)[0]

    def score(self, X: ArrayLike, y: ArrayLike, queries: Any = None) -> float:
        """Return the metric that chose the point, averaged over queries."""
        scores, (order, groups) = self.predict(X, queries), _order(queries, len(np.asarray(y)))
        labels = Labels(np.asarray(y, dtype=np.float64)[order], groups)
        return evaluate([self.metric_], scores[order], labels)[self.metric_.name].mean


def _order(queries: Any, n: int) -> tuple[IntArray, Queries]:
    """Return an order of the rows that groups queries, and the queries; without ids all rows are
    one query."""
    with _as_value_errors():
        order, groups = grouped_rows(queries, n)
    return order, groups or Queries(np.array([0, n]))


def _has_text(frame: Any) -> bool:
    return any(DataColumn(frame[name], name, "X", str).kind not in NUMBERS for name in frame)


def _copies(sample_weight: Any, X: Any) -> IntArray:
    """Return the number of copies of each row of X (n,)."""
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise ValueError("sample_weight must have a number above 0, all are zero")
    if (part := weight[weight != np.rint(weight)]).size:
        raise ValueError(
            f"sample_weight holds {part[0]:g}: weights count copies of rows; scale and round "
            "them to whole numbers, as numpy.rint(10 * weight)"
        )
    return np.asarray(weight, dtype=np.int64)


@contextmanager
def _as_value_errors() -> Iterator[None]:
    """Raise our errors as ValueError, as scikit-learn does."""
    try:
        yield
    except BenchError as error:
        raise ValueError(str(error)) from error
