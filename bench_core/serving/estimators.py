"""Exported models as scikit-learn estimators. Only this module needs scikit-learn.

They are already trained: ``fit`` opens the folder and checks the number of columns. ``spent_`` (n,)
is the cost of each row in the last ``predict``. Rows are served singly; for a model that compares
the documents of a query use ``Predictor.predict_query``.
"""

from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from bench_core.arrays import FloatArray
from bench_core.serving.predictor import Predictor, load, probabilities


class _Served(BaseEstimator):  # type: ignore[misc]
    """The model in ``folder``; no row costs more than ``cap``."""

    def __init__(self, folder: str | Path = "", cap: float | None = None) -> None:
        self.folder, self.cap = folder, cap

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Open the folder. Raises InputError where it is none."""
        self.model_: Predictor = load(self.folder)
        self.n_features_in_ = len(self.model_.names)
        self.feature_names_in_ = np.array(self.model_.names, dtype=object)
        return self

    def _scores(self, X: Any) -> FloatArray:
        check_is_fitted(self)
        answers = self.model_.predict_rows(X, cap=self.cap)
        self.spent_ = answers.spent
        return answers.scores


class ServedRegressor(RegressorMixin, _Served):  # type: ignore[misc]
    """A served regressor, or a ranker that predicts scores."""

    def predict(self, X: Any) -> FloatArray:
        """Return scores (n,)."""
        return self._scores(X)


class ServedClassifier(ClassifierMixin, _Served):  # type: ignore[misc]
    """A served classifier. Classes are the table's labels, as numbers if all are integers."""

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Open the folder. Raises InputError where it is none."""
        super().fit(X, y)
        names = self.model_.classes
        whole = all(name.isdecimal() and str(int(name)) == name for name in names)
        self.classes_ = np.array([*map(int, names)] if whole else names)
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Return log-odds (n,), or a score per class (n, K)."""
        return self._scores(X)

    def predict_proba(self, X: Any) -> FloatArray:
        """Return probabilities (n, K)."""
        return probabilities(self._scores(X), str(self.model_.about["task"]))

    def predict(self, X: Any) -> Any:
        """Return the most likely class (n,)."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
