"""The estimators keep scikit-learn's promises, and their own: the budget."""

from __future__ import annotations

from typing import Any

from sklearn.utils.estimator_checks import parametrize_with_checks

from bench_core.api.estimators import BudgetedClassifier, BudgetedRanker, BudgetedRegressor

FAST: dict[str, Any] = {"parameters": {"trees": 15, "tradeoff": 0.1}}


@parametrize_with_checks(
    [BudgetedClassifier(**FAST), BudgetedRegressor(**FAST), BudgetedRanker(**FAST)]
)
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    check(estimator)
