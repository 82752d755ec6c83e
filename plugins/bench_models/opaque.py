"""A scikit-learn estimator of which nothing is known: it pays for every feature of every row.

Its state is an array of bytes, what pickle makes of the estimator, and scikit-learn's version.
Unpickling is a matter of trust: a state file is written by this project's own store, and on loading
only classes of scikit-learn and the array types of NumPy and SciPy are let in, so that a file
from elsewhere cannot name any other function. All the same, do not load states from people whom
you do not trust.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from bench_core import Acquired, Bill, Features, InputError, Prediction, Prices, Task, UsageError
from bench_core.arrays import FloatArray, IntArray
from bench_models.states import Stored

if TYPE_CHECKING:
    from bench_core.serving import Program

_LEAST = 1e-12  # probabilities are clipped there

_ARRAYS = {"ndarray", "dtype", "scalar", "_reconstruct", "_frombuffer"}
_NUMBERS = {"float64", "float32", "int64", "int32", "bool", "bool_", "str_"}
_RANDOM = {"RandomState", "Generator", "MT19937", "PCG64"}
_RANDOM_MAKERS = {"__randomstate_ctor", "__bit_generator_ctor", "__generator_ctor"}
_MAKERS = {"newObj"}  # of scikit-learn's search trees
_BUILT_IN = {"set", "frozenset", "slice", "complex", "bytearray", "object", "int", "float", "str"}


@dataclass(frozen=True, eq=False)
class EstimatorModel(Stored):
    """A fitted estimator as a path of one point that buys everything."""

    pickled: NDArray[np.uint8]
    version: str
    task: str
    classes: int
    prices: Prices

    @classmethod
    def of(cls, estimator: Any, prices: Prices, task: Task, classes: int) -> Self:
        """From a fitted estimator or pipeline."""
        import sklearn

        data = np.frombuffer(pickle.dumps(estimator, protocol=5), dtype=np.uint8)
        made = cls(data, str(sklearn.__version__), str(task), classes, prices)
        _ = made.estimator  # refused now rather than when it is to predict
        return made

    @cached_property
    def estimator(self) -> Any:
        """The estimator itself. Raises InputError where another version of scikit-learn made it."""
        import sklearn

        if sklearn.__version__ != self.version:
            raise InputError(
                f"sklearn: the model was fitted by scikit-learn {self.version}, this is "
                f"{sklearn.__version__}: run again --fresh"
            )
        return _Careful(io.BytesIO(self.pickled.tobytes())).load()

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """The one prediction."""
        everything = np.ones((1, self.prices.sensors), dtype=bool)
        bill = Bill(Acquired.pack(everything))
        yield Prediction({"model": 1}, self._scores(features.X), {"path": bill, "model": bill})

    def program(self, point: Mapping[str, int | float]) -> Program:
        """Raises UsageError: of an estimator nothing is known."""
        raise UsageError(
            "sklearn: an estimator without trees buys every feature for every row and is kept as a "
            "pickle; serve it by scikit-learn itself"
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
        """Decision functions; one of two classes of K says the opposite of the other."""
        raw = np.asarray(self.estimator.decision_function(X), dtype=np.float64)
        if self.task == Task.BINARY:
            return raw.reshape(len(X))
        if raw.ndim == 1:
            raw = np.stack([-raw, raw], axis=1)
        scores = np.full((len(X), self.classes), raw.min(axis=1, keepdims=True) - 1.0)
        scores[:, columns] = raw
        return scores


class _Careful(pickle.Unpickler):
    """Lets in classes of scikit-learn, and what arrays, sparse matrices and trees are made of."""

    def find_class(self, module: str, name: str) -> Any:
        package = module.partition(".")[0]
        allowed = {
            "sklearn": "." not in name and not module.startswith("sklearn.externals"),
            "numpy": name in _ARRAYS | _NUMBERS | _RANDOM | _RANDOM_MAKERS,
            "scipy": module.startswith(("scipy.sparse", "scipy.interpolate")) and name[:1] != "_",
            "builtins": name in _BUILT_IN,
            "collections": name in ("OrderedDict", "defaultdict"),
        }
        if not allowed.get(package, False):
            raise InputError(f"sklearn: a model's state wants {module}.{name}, which is not let in")
        found = super().find_class(module, name)
        if package == "sklearn" and not (
            isinstance(found, type) or name in _MAKERS or "unpickle" in name
        ):
            raise InputError(f"sklearn: a model's state calls {module}.{name}, which is not let in")
        return found
