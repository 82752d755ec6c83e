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
- A model not made of trees is stored as its training rows and refitted when loaded; nothing is
  pickled.
"""

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, ClassVar

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
from bench_models.opaque import EstimatorModel, Recipe

from bench_core import (
    BudgetedModel,
    Examples,
    FitContext,
    Prices,
    Task,
    UsageError,
    linear,
    log,
    param,
    provide_learners,
)

_CLASSES = (Task.BINARY, Task.MULTICLASS)


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


bench_learners = provide_learners(RandomForest, ScikitLearn, family="libraries")
