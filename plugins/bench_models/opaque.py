"""A scikit-learn estimator of unknown form: it pays for every feature of every row.

Its state is arrays and JSON: the estimator's path and arguments, the training rows, and its
predictions for the first rows. A loaded model refits on one thread at its first use and is refused
if the predictions differ.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bench_core import Acquired, Bill, Features, InputError, Prediction, Prices, Task, UsageError
from bench_core.arrays import FloatArray, IntArray
from bench_models.states import Stored

if TYPE_CHECKING:
    from bench_core.serving import Program

_LEAST = 1e-12  # probabilities are clipped there
_PROBED = 100  # training rows whose predictions a refit must repeat


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
