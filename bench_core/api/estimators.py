"""scikit-learn estimators: a learner at its best operating point within a budget.

``fit`` trains the learner at each of its settings on a part of the rows. On the other rows, the
validation part, it chooses the setting and operating point with the best quality within the budget.
``predict`` uses that point; ``row_costs`` returns the cost of each row. A cap is enforced for every
row (``execution.caps``): a row follows the path as long as the cap allows, or stays at one point.

The budget decides nothing before that choice, so ``at`` chooses again without training, and clones
of one estimator, as in a grid search over budgets, share their models (``Fits``).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import lru_cache
from itertools import islice
from os import PathLike
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self
from weakref import ref

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_is_fitted,
)

from bench_core import __version__
from bench_core.api.arguments import checked_metric, costs_of, priced_names
from bench_core.api.budget_choice import Fits, Trained, key_of, served_program
from bench_core.api.estimator_rows import RowReader, as_value_errors, copies_of, in_groups
from bench_core.arrays import BoolArray, FloatArray
from bench_core.costs.by_row import with_known_prices
from bench_core.costs.error_costs import ErrorCosts, error_costs, error_costs_text
from bench_core.data import Examples, Features, Queries, Task
from bench_core.datasets.pricing import by_transformer, unit_prices, with_costs
from bench_core.datasets.splitting import cut, cut_by_class
from bench_core.datasets.traced_columns import (
    output_names,
    steps_before,
    traced,
    under_input_costs,
)
from bench_core.datasets.user_arrays import row_values
from bench_core.encoding import ColumnEncoding, plain_encodings
from bench_core.errors import InputError
from bench_core.execution.caps import Caps
from bench_core.execution.predict import blocks, gather, predict_split
from bench_core.execution.trial import sensors_of
from bench_core.metrics import Labels, default_metric, evaluate, parse_metric
from bench_core.metrics.rows import TOTAL_COST
from bench_core.parameters import encode, resolved
from bench_core.planning.resolve_learners import instances_of, require_learner
from bench_core.plugins import Registry, load_registry
from bench_core.protocols import Metric
from bench_core.results.budgets import CAP, COLUMNS
from bench_core.serving.predictor import probabilities
from bench_core.splits import Splits

if TYPE_CHECKING:
    from numpy.typing import ArrayLike
    from pandas import DataFrame

    from bench_core.serving import Predictor


@dataclass(eq=False, repr=False)
class _Budgeted(RowReader):
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
        tags.input_tags.allow_nan = tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _fit(self, rows: Examples, valid: Examples | None, task: Task, classes: int = 0) -> Self:
        """Train, and choose the operating point on ``valid``, or on a part of the rows."""
        self._check_budget()
        if self.decimal not in ("", ".", ","):
            raise ValueError(f"decimal must be '.' or ',', not {self.decimal!r}")
        given: Any = self.parameters
        if not isinstance(given or {}, Mapping):
            kind = type(given).__name__
            raise ValueError(f"parameters must map names to values or lists of them, not a {kind}")
        if self.positive is not None and task is not Task.BINARY:
            raise ValueError(f"positive={self.positive!r}: a {task} task has no positive class")
        seed = self._seed()
        train, valid = self._divided(rows, classes > 0, seed) if valid is None else (rows, valid)
        d, encodings = train.X.shape[1], self.encodings_
        steps = steps_before(self)
        columns = getattr(self, "feature_names_in_", None)
        columns = output_names(steps, d) if columns is None else columns
        names = tuple(
            f for encoding in encodings or plain_encodings(columns) for f in encoding.features
        )
        prices = unit_prices(d, encodings)
        facts = prices, task, classes, names
        splits = Splits(train, valid, valid, *facts, encodings=encodings)
        splits = replace(splits, price_columns=self._price_columns)
        with as_value_errors():
            registry = _installed()
            splits, self._sensors = self._priced(splits, registry, steps)
            train, valid = (with_known_prices(part, splits.costs) for part in (train, valid))
            splits = replace(splits, train=train, valid=valid, test=valid)
            metric: Metric = (
                checked_metric(self.metric)
                if self.metric is not None and not isinstance(self.metric, str)
                else parse_metric(self.metric or default_metric(task).name, registry.metrics, task)
            )
            if task not in metric.tasks:
                able = ", ".join(sorted(metric.tasks))
                raise ValueError(f"metric {metric.name} judges {able}, not {task}")
            learners = self._learners(registry, task)
            errors = self._errors(splits)
            if errors is not None and self.metric is None:
                metric = parse_metric(TOTAL_COST)
        self.cost_model_, self.task_ = splits.costs, task
        self._names = splits.names
        sizes = [len(encoding.features) for encoding in encodings] or [1] * d
        self._first = np.cumsum([0, *sizes[:-1]])  # the first feature of each column
        self.feature_costs_ = splits.prices.feature_price()[self._first]
        how = learners, splits, metric, seed, self.threads, errors
        fits, key = self.__dict__.pop("_fits", None), None
        if fits is not None and (key := key_of(*how)) in fits:
            self._trained = fits[key]
        else:
            self._trained = Trained.of(*how)
        if fits is not None and key is not None:
            fits[key] = self._trained
        self._choose()
        return self

    def _errors(self, splits: Splits) -> ErrorCosts | None:
        """Return the costs of a classifier's errors, None for none."""
        return None

    def _check_budget(self) -> None:
        """Raise ValueError for a budget that is none."""
        if self.budget_kind not in COLUMNS:
            raise ValueError(f"budget_kind must be mean or cap, not {self.budget_kind!r}")
        if self.budget is not None and not (
            isinstance(self.budget, int | float | np.number) and self.budget >= 0
        ):
            raise ValueError(f"budget must be a number >= 0, not {self.budget!r}")

    def _priced(
        self, splits: Splits, registry: Registry, steps: list[Any]
    ) -> tuple[Splits, tuple[str, ...]]:
        """Return the data under ``costs``, and the names of the sensors. Behind the ``steps`` of a
        pipeline costs may be those of its input columns."""
        if self.costs is None:
            return splits, sensors_of(splits).names
        models, fault = registry.cost_models, None
        places = self._price_places  # of outputs that are not features
        if (before := traced(steps, self.n_features_in_ + len(places))) is not None:
            kept = (made_of for k, made_of in enumerate(before.sources) if k not in places)
            before = before._replace(sources=tuple(kept))
            sizes = [len(encoding.features) for encoding in self.encodings_] or [
                1
            ] * self.n_features_in_
            try:
                costs = costs_of(self.costs)
                priced, inputs = under_input_costs(splits, costs, models, before, sizes)
            except InputError as error:
                fault = error
            else:
                for note in (*inputs.notes, *before.notes):
                    warnings.warn(f"costs: {note}", stacklevel=4)
                return priced, sensors_of(inputs).names
        splits = by_transformer(splits, priced_names(self.costs))
        try:
            priced = with_costs(splits, costs_of(self.costs), models)
        except InputError as error:
            names = priced_names(self.costs) if isinstance(self.costs, Mapping) else []
            unused = [name for name in names if name not in splits.columns]
            if fault is not None and not any("__" in name for name in unused):
                raise fault from error
            misspelt = "did you mean" in str(error)
            if not unused or misspelt or any("__" in name for name in splits.columns):
                raise
            hint = f"if {unused[0]!r} is a transformer, set verbose_feature_names_out=True"
            if not hasattr(self, "feature_names_in_"):
                hint = "in a pipeline, set_output(transform='pandas') gives them"
                hint = f"X has no names; {hint}"
            raise InputError(f"{error}; {hint}") from error
        for note in priced.notes[len(splits.notes) :]:
            warnings.warn(f"costs: {note}", stacklevel=4)
        return priced, sensors_of(priced).names

    def _divided(self, rows: Examples, by_class: bool, seed: int) -> tuple[Examples, Examples]:
        """Return the training and validation part: by query or group, or stratified by class."""
        share = self.validation_fraction
        if not isinstance(share, int | float) or not 0 < share < 1:
            raise ValueError(f"validation_fraction must be between 0 and 1, not {share!r}")
        shares = 1 - share, share
        if rows.groups and len(rows.groups) == 1:
            raise ValueError("groups holds one id, which cannot be divided; give X_val and y_val")
        whole = rows.units if rows.units and len(rows.units) > 1 else None
        n, by_class = len(whole or rows), by_class and whole is None
        parts = cut_by_class(rows.y, shares, seed) if by_class else cut(n, shares, seed)
        if not all(map(len, parts)):
            parts = cut(n, (0.5, 0.5), seed)  # very few rows
        divided = []
        for part in parts:
            block, chosen, _ = gather(Features(rows.X, whole), part)
            units = block.queries or Queries(np.array([0, len(chosen)]))
            copies = None if rows.multiplicity is None else rows.multiplicity[chosen]
            paid = None if rows.price_columns is None else rows.price_columns[chosen]
            more = rows.queries and units, copies, rows.groups and units, paid
            divided.append(Examples(block.X, rows.y[chosen], *more))
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

    def _choose(self, depth: int = 4) -> None:
        """Keep the best model and point within the budget on the validation part. The user's call
        is ``depth`` frames above."""
        chosen, trained = self._trained.within(self.budget, self.budget_kind), self._trained
        point, row, capped = chosen.point, chosen.point.row, self.budget_kind == CAP
        limits = (np.inf if self.budget is None else float(self.budget),) if capped else ()
        self.caps_ = Caps(limits, trained.constant)
        self.model_, self.learner_, self.metric_ = point.model, point.learner, trained.metric
        self._point, self.position_, self.quality_ = point, row.number, chosen.quality
        self.point_ = dict(row.point) | dict.fromkeys([CAP] * capped, *limits)
        self.cost_ = float(getattr(row, COLUMNS[self.budget_kind]))
        named = zip(self._sensors, point.bought.tolist(), strict=True)
        self.purchases_ = {k: v for k, v in sorted(named, key=lambda item: -item[1]) if v > 0}
        sensors = map(trained.costs.sensors_of, self._first.tolist())
        self.feature_importances_ = np.array(
            [point.bought[ids].min(initial=1.0) for ids in sensors]
        )
        if chosen.warning:
            warnings.warn(chosen.warning, stacklevel=depth)

    def at(self, budget: float | None, budget_kind: str | None = None) -> Self:
        """Return the fitted estimator at another budget, without training.

        ``fit`` trains for all budgets. Among its models this chooses again, on the same validation
        part.
        """
        check_is_fitted(self)
        kind = self.budget_kind if budget_kind is None else budget_kind
        other: Self = copy(self).set_params(budget=budget, budget_kind=kind)
        other._check_budget()
        other._choose(3)
        return other

    def __sklearn_clone__(self) -> Self:
        """Return an unfitted copy, which shares trained models with its own and other copies as
        long as one of them is not fitted."""
        other: Self = super().__sklearn_clone__()
        known = self.__dict__
        fits: Fits | None = known.get("_fits") or known.get("_fits_of_clones", lambda: None)()
        other._fits = Fits() if fits is None else fits
        self._fits_of_clones = ref(other._fits)
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what clones share."""
        state: dict[str, Any] = super().__getstate__()
        return {k: v for k, v in state.items() if k not in ("_fits", "_fits_of_clones")}

    def _predicted(self, X: Any, queries: Any = None) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return scores (n,) or (n, K) at the chosen point, the cost of each row (n,), and the
        sensors that it buys (n, s)."""
        check_is_fitted(self)
        X, paid = self._unlabelled(X)
        order, groups = np.arange(len(X)), None
        if self.task_ == Task.RANKING:
            order, groups = in_groups(queries, len(X))
        back = np.argsort(order)  # the caller's order
        of_rows = np.zeros(len(X)), groups, None, None, None if paid is None else paid[order]
        unlabelled = with_known_prices(Examples(X[order], *of_rows), self.cost_model_)
        scores, cost, bought = self._at_point(unlabelled)
        return scores[back], cost[back], bought[back]

    def _at_point(self, unlabelled: Examples) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Return scores, costs and purchases of all rows at the chosen point."""
        position, whole, parts = self.position_, self.model_, []
        costs, classes = self.cost_model_, len(getattr(self, "classes_", ()))
        first, last = 0, max(position, 0) + 1  # the path ends where it was chosen
        alone = CAP in self.point_ and len(self.point_) > 1 and position >= 0
        if alone:  # the answer under the cap follows the point
            first, position = position, 1
        if alone or not self.caps_.limits:
            whole = SimpleNamespace(
                predict_path=lambda rows: islice(self.model_.predict_path(rows), first, last)
            )
        for here, rows in blocks(unlabelled.features):
            paid = unlabelled.price_columns
            paid = None if paid is None else paid[here]
            of_rows = unlabelled.y[here], rows.queries, None, None, paid, rows.prices
            part = Examples(rows.X, *of_rows)
            path = predict_split(whole, part, costs, classes, caps=self.caps_, kept=position)
            assert path.acquired is not None
            each = path.scores[position].copy(), path.cost[position].copy(), path.acquired.unpack()
            parts.append(each)
        scores, cost, bought = (np.concatenate(each) for each in zip(*parts, strict=True))
        calibration = self._point.calibration
        return scores if calibration is None else calibration.of(scores), cost, bought

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def row_costs(self, X: ArrayLike, queries: Any = None) -> FloatArray:
        """Return the cost of predicting each row (n,), in the unit of the costs."""
        return self._predicted(X, queries)[1]

    def row_purchases(self, X: ArrayLike, queries: Any = None) -> DataFrame:
        """Return what each row buys: True or False, a column for each sensor by its columns.

        The index is that of a data frame X. Under a cap, without purchases for a point that the cap
        cut short.
        """
        import pandas as pd

        index = X.index if isinstance(X, pd.DataFrame) else None
        return pd.DataFrame(self._predicted(X, queries)[2], index, [*self._sensors])

    def export(self, folder: str | PathLike[str] | None = None) -> Predictor:
        """Return the model at the chosen point as a ``bench_core.serving.Predictor``, and write it
        into a folder if one is given (an older model there is replaced).

        It asks for the columns of X as ``fit`` had them, in a pipeline for those of the last step.
        Raises ValueError if the model cannot be exported, or the folder contains other files.
        """
        check_is_fitted(self)
        from bench_core.serving import Folder, Predictor, write_folder
        from bench_core.serving.folder import check_folder
        from bench_core.serving.spending import expected_spending

        trained, point, names = self._trained, self._point, self._names
        encodings = self.encodings_
        limit = self.caps_.limits[0] if self.caps_.limits else None
        with as_value_errors():
            program = served_program(point, limit, trained.constant, len(names))
            if folder is not None:
                check_folder(Path(folder))
        if not encodings and self.offsets_.any():
            pairs = zip(names, self.offsets_.tolist(), strict=True)
            encodings = tuple(ColumnEncoding(name, offset=offset) for name, offset in pairs)
            names = tuple(feature for own in encodings for feature in own.features)
        content = Folder(program, trained.costs, names, self._about(limit), encodings)
        with as_value_errors():
            spending = expected_spending(Predictor(content), trained.valid)
        content = replace(content, about={**content.about, "spending": spending})
        if folder is not None:
            write_folder(Path(folder), content)
        return Predictor(content)

    @property
    def _names_of_classes(self) -> list[str]:
        """Labels of the classes by the numbers that learners see."""
        labels = [str(label) for label in getattr(self, "classes_", ())]
        return labels[::-1] if getattr(self, "turned_", False) else labels

    def _about(self, limit: float | None) -> dict[str, Any]:
        """Return the facts of an exported model; figures are those of the validation part."""
        learner, row, amount = (
            self.learner_,
            self._point.row,
            self.budget if limit is None else limit,
        )
        labels, errors = self._names_of_classes, self._trained.errors
        return {
            "marks": [],
            "learner": learner.name,
            "params": encode(learner)["fields"],
            "point": {**self.point_},
            "dataset": "data",
            "task": str(self.task_),
            "classes": len(labels),
            "class_names": labels,
            "stand_in": False,
            "unit": self.cost_model_.unit,
            "everything": self.cost_model_.everything,
            "price_columns": self._price_columns,
            "provenance": {"version": __version__},
            "budget": None
            if amount is None
            else {"amount": float(amount), "kind": self.budget_kind},
            "error_costs": errors
            and {"matrix": errors.matrix.tolist(), "column": errors.column.tolist()},
            "metric": self.metric_.name,
            "higher_is_better": self.metric_.higher_is_better,
            "audit": "",
            "valid": {"quality": self.quality_, "cost": row.cost, "cost_max": row.cost_max},
            "test": None,
            "reference": None,
        }


@dataclass(eq=False, repr=False)
class BudgetedClassifier(ClassifierMixin, _Budgeted):
    """A classifier whose predictions cost at most ``budget`` per row, on average or each.

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
    error_costs         costs of errors, as in ``bench_core.run``: the point of least total cost
                        is chosen, and ``predict`` answers at least expected cost
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

    error_costs: Any = field(default=None, kw_only=True)

    def _errors(self, splits: Splits) -> ErrorCosts | None:
        if self.error_costs is None:
            return None
        matrix = error_costs(error_costs_text(self.error_costs), self._names_of_classes)
        return ErrorCosts.of(matrix, splits.train, ())

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_val: ArrayLike | None = None,
        y_val: Any = None,
        sample_weight: ArrayLike | None = None,
        groups: Any = None,
    ) -> Self:
        """Fit to X (n, d), NaN = missing, labels y (n,) and the number of copies of each row. Rows
        of a group (n,), such as a patient, stay in one part."""
        rows, labels, paid = self._checked(X, y)
        check_classification_targets(labels)
        if sample_weight is not None:
            copies = copies_of(sample_weight, rows)
            if groups is not None:
                with as_value_errors():
                    groups = row_values(groups, "groups", len(rows)).to_numpy()[copies > 0]
            paid = None if paid is None else paid[copies > 0]
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
            others, y_val, of_val = self._checked(X_val, y_val, reset=False)
            if unknown := set(np.unique(y_val)) - set(self.classes_):
                raise ValueError(f"y_val holds {min(unknown)!r}, which is not a class of y")
            y_val = self._turned(np.searchsorted(self.classes_, y_val))
            valid = Examples(others, y_val, price_columns=of_val)
        task = Task.BINARY if len(self.classes_) == 2 else Task.MULTICLASS
        known = self._rows(rows, self._turned(numbers), paid, groups, sample_weight, False)
        return self._fit(known, valid, task, len(self.classes_))

    def _turned(self, numbers: Any) -> FloatArray:
        return np.asarray(1 - numbers if self.turned_ else numbers, dtype=np.float64)

    def decision_function(self, X: ArrayLike) -> FloatArray:
        """Return log-odds of the second class (n,), or logits of all classes (n, K)."""
        scores = self._predicted(X)[0]
        return -scores if self.turned_ else scores

    def predict(self, X: ArrayLike) -> Any:
        """Return the class of each row (n,): the most likely, or of least expected cost."""
        scores, errors = self.decision_function(X), self._trained.errors
        if errors is not None:
            number = errors.answers(-scores if self.turned_ else scores)
            return self.classes_[1 - number if self.turned_ else number]
        number = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return self.classes_[number]

    def predict_proba(self, X: ArrayLike) -> FloatArray:
        """Return the probability of each class (n, K)."""
        return probabilities(self.decision_function(X), str(self.task_))


class BudgetedRegressor(RegressorMixin, _Budgeted):
    """A regressor whose predictions cost at most ``budget`` per row, on average or each.

    Parameters and attributes are those of ``BudgetedClassifier``.
    """

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        X_val: ArrayLike | None = None,
        y_val: Any = None,
        sample_weight: ArrayLike | None = None,
        groups: Any = None,
    ) -> Self:
        """Fit to X (n, d), NaN = missing, targets y (n,) and the number of copies of each row. Rows
        of a group (n,), such as a patient, stay in one part."""
        rows, valid = self._examples(X, y, groups, sample_weight, ranking=False), None
        if X_val is not None:
            valid = self._examples(X_val, y_val, ranking=False, reset=False)
        return self._fit(rows, valid, Task.REGRESSION)

    def predict(self, X: ArrayLike) -> FloatArray:
        """Return the predicted target of each row (n,)."""
        return self._predicted(X)[0]


class BudgetedRanker(_Budgeted):
    """A ranker whose scores cost at most ``budget`` per row, on average or each.

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
        scores, (order, groups) = self.predict(X, queries), in_groups(queries, len(np.asarray(y)))
        labels = Labels(np.asarray(y, dtype=np.float64)[order], groups)
        return evaluate([self.metric_], scores[order], labels)[self.metric_.name].mean


@lru_cache(1)
def _installed() -> Registry:
    """Return the installed plugins, for all fits: loading them takes as long as a small fit."""
    return load_registry()
