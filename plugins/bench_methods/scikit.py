"""scikit-learn: random forests, and any of its estimators by import path.

L. Breiman, "Random forests", Machine Learning 45 (2001), as scikit-learn trains them: bootstrap
samples, a random subset of features at each split, averaged class shares or means.

Estimators made of trees (trees, forests, GradientBoosting, HistGradientBoosting) are imported and
billed by each row's path through all their trees. Any other estimator is opaque and pays for every
feature of every row. Scores: probabilities give log-odds, or logarithms for K classes, clipped
(forests at 1e-6, others at 1e-12). Estimators without probabilities give their decision function,
for a support vector machine a margin, not log-odds. For ranking a regressor learns the grades.

Departures
- Copies of rows are made physically, so a bootstrap draws copies.
- ``random-forest`` tries a third of the features at each split for numbers, the square root of
  their number for classes, as is common. scikit-learn's default for numbers is all features.
- For estimators not made of trees, missing cells are replaced by the feature's mean, and features
  are scaled to unit variance (``prepare = false`` turns this off).
- ``sklearn`` fits on one thread, so results do not depend on the number of threads.
- A model not made of trees is stored as arrays and JSON, not pickled: the estimator's path and
  arguments, the training rows, and its predictions for the first rows. It is refitted on one thread
  at the first use after loading, and refused if the predictions differ.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from bench_models.boosting import OnEngine
from bench_models.libraries import (
    LibraryModel,
    check_classes,
    library_errors,
    serve,
    version_of,
    with_physical_copies,
)
from bench_models.states import Stored
from numpy.typing import NDArray

from bench_core import (
    Acquired,
    Bill,
    BudgetedModel,
    Examples,
    Features,
    FitContext,
    InputError,
    Prediction,
    Prices,
    Task,
    UsageError,
    linear,
    log,
    param,
    provide_learners,
)
from bench_core.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from bench_core.serving import Program

_CLASSES = (Task.BINARY, Task.MULTICLASS)
_LEAST = 1e-12  # probabilities are clipped there
_PROBED = 100  # training rows whose predictions a refit must repeat


@dataclass(frozen=True)
class RandomForest(OnEngine):
    """scikit-learn's random forest, ignoring cost."""

    name: ClassVar[str] = "random-forest"

    trees: int = param(300, "number of trees", least=1)
    depth: int | None = param(None, "most split levels of a tree, none = no limit", least=1)
    min_rows: int = param(1, "least rows (copies counted) in a leaf", least=1, search=log(1, 30))
    features: float | None = param(
        None,
        "share of features tried at each split; none: a third, for classes the square root",
        above=0,
        most=1,
        search=linear(0.1, 1),
    )

    def stamp(self) -> str:
        """The library's version."""
        return version_of(self.name, "scikit-learn")

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> LibraryModel:
        """Grow the trees on ``train``; ``valid`` is not used."""
        from bench_trees.importers import from_scikit

        check_classes(self.name, train, context.task)
        with library_errors(self.name):
            forest = self._grown(with_physical_copies(train), context)
        return serve(from_scikit(forest, context.classes), prices, {})

    def _grown(self, rows: Examples, context: FitContext) -> Any:
        from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

        classes = context.task in _CLASSES
        usual = "sqrt" if classes else 1 / 3
        forest = (RandomForestClassifier if classes else RandomForestRegressor)(
            n_estimators=self.trees,
            max_depth=self.depth,
            min_samples_leaf=self.min_rows,
            max_features=usual if self.features is None else self.features,
            n_jobs=context.threads,
            random_state=context.seed,
        )
        X = np.require(rows.X, requirements=["C", "W"])  # trees reject read-only arrays
        forest.fit(X, rows.y.astype(np.int64) if classes else rows.y)
        context.progress(1, 1)
        return forest


@dataclass(frozen=True)
class ScikitLearn(OnEngine):
    """Any scikit-learn estimator, named by its import path."""

    name: ClassVar[str] = "sklearn"
    numerics: ClassVar[tuple[str, ...]] = ("scipy", "cpu")

    estimator: str = param(
        "auto", "import path, such as sklearn.svm.SVC; auto: logistic or ridge regression"
    )
    arguments: dict[str, Any] | None = param(
        None, "its arguments as a table, such as {C = 10.0}; none: the library's defaults"
    )
    prepare: bool = param(True, "impute means and scale features; not for imported trees")

    def __post_init__(self) -> None:
        module, dot, _ = self.estimator.rpartition(".")
        if self.estimator != "auto" and not (dot and module.partition(".")[0] == "sklearn"):
            raise ValueError(
                f"estimator must be a path as sklearn.svm.SVC, got {self.estimator!r}; a class "
                "that is not scikit-learn's needs a learner: 'bench new learner' writes one"
            )

    def __hash__(self) -> int:
        return hash((self.estimator, json.dumps(self.arguments, sort_keys=True), self.prepare))

    def stamp(self) -> str:
        """The library's version."""
        return version_of(self.name, "scikit-learn")

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> BudgetedModel:
        """Fit the estimator on ``train``; ``valid`` is not used."""
        from bench_trees.importers import ModelError, from_scikit
        from bench_trees.importers.scikit import is_known
        from sklearn.base import is_classifier
        from threadpoolctl import threadpool_limits

        check_classes(self.name, train, context.task)
        classes = context.task in _CLASSES
        usual = "sklearn.linear_model." + ("LogisticRegression" if classes else "Ridge")
        path = usual if self.estimator == "auto" else self.estimator
        recipe = Recipe(path, self.arguments or {}, context.seed, self.prepare)
        with library_errors(self.name):
            estimator = recipe.unfitted()
        if is_classifier(estimator) != classes:
            kind = "classifier" if classes else "regressor"
            raise UsageError(f"sklearn: a {context.task} task wants a {kind}, not {path}")
        rows = with_physical_copies(train)
        y = rows.y.astype(np.int64) if classes else rows.y
        with library_errors(self.name):
            # trees are imported and billed by path
            if is_known(type(estimator).__name__):
                recipe = replace(recipe, prepare=False)
                with threadpool_limits(1), suppress(ModelError):  # fall through: not importable
                    estimator.fit(np.array(rows.X), y)
                    return serve(from_scikit(estimator, context.classes), prices, {})
            about = prices, context.task, context.classes
            return EstimatorModel.of(recipe, np.array(rows.X), np.array(y), *about)


@dataclass(frozen=True)
class Recipe:
    """The estimator's class, arguments, seed and preparation."""

    path: str  # such as sklearn.svm.SVC
    arguments: Mapping[str, Any]
    seed: int
    prepare: bool  # impute missing cells and scale features first

    def unfitted(self) -> Any:
        """The estimator, seeded if it takes a seed.

        Raises UsageError unless it is an estimator of scikit-learn.
        """
        package, _, rest = self.path.partition(".")
        module, _, name = self.path.rpartition(".")
        try:
            cls = getattr(import_module(module if package == "sklearn" and rest else ""), name)
        except (ImportError, AttributeError, ValueError):
            raise UsageError(f"sklearn: there is no {self.path}") from None
        if not (inspect.isclass(cls) and hasattr(cls, "fit") and hasattr(cls, "predict")):
            raise UsageError(f"sklearn: {self.path} is not an estimator that predicts")
        if self.arguments.get("memory") is not None:
            raise UsageError("sklearn: memory would read pickles from a folder; leave it out")
        made: Any = cls(**self.arguments)
        if made.get_params().get("random_state", 0) is None:
            made.set_params(random_state=self.seed)
        return made

    def fitted(self, X: NDArray[Any], y: NDArray[Any]) -> Any:
        """The estimator or pipeline, fitted on one thread in float64. There a block and a single
        row agree to the last bits."""
        from threadpoolctl import threadpool_limits

        made = self.unfitted()
        whole = _prepared(made) if self.prepare else made
        with threadpool_limits(1):
            return whole.fit(X.astype(np.float64), y)


def _prepared(estimator: Any) -> Any:
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    filled = SimpleImputer(keep_empty_features=True)
    return make_pipeline(filled, StandardScaler(), estimator)


@dataclass(frozen=True, eq=False)
class EstimatorModel(Stored):
    """A fitted estimator as a path of one point that buys everything."""

    recipe: Mapping[str, Any]  # the fields of a Recipe
    X: NDArray[Any]  # the training rows (n, d)
    y: NDArray[Any]
    probe: FloatArray  # its predictions for the first of them
    task: str
    classes: int
    prices: Prices

    @classmethod
    def of(
        cls, recipe: Recipe, X: NDArray[Any], y: NDArray[Any], prices: Prices, task: Task, k: int
    ) -> Self:
        """Fit on these rows with ``k`` classes."""
        made = cls(asdict(recipe), X, y, np.zeros(0), str(task), k, prices)
        fitted = recipe.fitted(X, y)
        made.__dict__["estimator"] = fitted
        done = replace(made, probe=made._scores(X[:_PROBED]))
        done.__dict__["estimator"] = fitted
        return done

    @cached_property
    def estimator(self) -> Any:
        """The estimator, refitted. Raises InputError where it differs from the saved one."""
        recipe = Recipe(**self.recipe)
        fitted = self.__dict__["estimator"] = recipe.fitted(self.X, self.y)
        if not np.array_equal(self._scores(self.X[:_PROBED]), self.probe):
            raise InputError(
                f"sklearn: {recipe.path}, fitted again on the same rows, predicts other values (no "
                "random_state, another processor or release): run with --fresh, or choose another"
            )
        return fitted

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """The one prediction."""
        everything = np.ones((1, self.prices.sensors), dtype=bool)
        bill = Bill(Acquired.pack(everything))
        yield Prediction({"model": 1}, self._scores(features.X), {"path": bill, "model": bill})

    def program(self, point: Mapping[str, int | float]) -> Program:
        """Raise UsageError: the estimator's form is unknown."""
        raise UsageError(
            "sklearn: an estimator without trees buys every feature for every row, and cannot "
            "be exported; serve it with scikit-learn"
        )

    def _scores(self, X: NDArray[Any]) -> FloatArray:
        from threadpoolctl import threadpool_limits

        if len(X) == 0:
            return np.zeros((0, self.classes) if self.task == Task.MULTICLASS else 0)
        X = X.astype(np.float64)
        with threadpool_limits(1):
            if self.task not in (Task.BINARY, Task.MULTICLASS):
                return np.asarray(self.estimator.predict(X), dtype=np.float64).reshape(len(X))
            columns = self.estimator.classes_.astype(np.int64)
            if not hasattr(self.estimator, "predict_proba"):
                return self._margins(X, columns)
            shares = np.zeros((len(X), max(2, self.classes)))
            shares[:, columns] = self.estimator.predict_proba(X)
        logs = np.log(np.clip(shares, _LEAST, 1.0))
        return logs if self.task == Task.MULTICLASS else logs[:, 1] - logs[:, 0]

    def _margins(self, X: NDArray[Any], columns: IntArray) -> FloatArray:
        """Decision functions; with two of K classes the first has the negative of the second."""
        raw = np.asarray(self.estimator.decision_function(X), dtype=np.float64)
        if self.task == Task.BINARY:
            return raw.reshape(len(X))
        if raw.ndim == 1:
            raw = np.stack([-raw, raw], axis=1)
        scores = np.full((len(X), self.classes), raw.min(axis=1, keepdims=True) - 1.0)
        scores[:, columns] = raw
        return scores


bench_learners = provide_learners(RandomForest, ScikitLearn, family="libraries")
