"""phi: the columns that classifiers are linear in, from boosted trees or the raw features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from bench_models.boosting import ensemble_of
from bench_models.dictionary import dictionary, tree_columns
from bench_models.problem import Problem, needed

from bench_core import BudgetedLearner, Examples, FitContext, Prices, Task
from bench_core.arrays import Float32Array, FloatArray

if TYPE_CHECKING:
    from bench_trees import Ensemble


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """The T columns: the trees of ``ensemble``, or where that is None features in units of
    ``scale`` (T,)."""

    ensemble: Ensemble | None
    scale: FloatArray

    def of(self, X: Float32Array, threads: int) -> Float32Array:
        """The columns for rows (n, d), float32 (T, n)."""
        if self.ensemble is None:
            return raw_columns(X, self.scale)
        return tree_columns(self.ensemble, X, threads)


def inputs(
    name: str,
    base: BudgetedLearner | None,
    train: Examples,
    prices: Prices,
    context: FitContext,
    *,
    standardise: bool,
) -> tuple[Inputs, Problem]:
    """The trees of ``base``, or for None the raw features, at which a missing cell is 0; and the
    problem over them. Binary labels are -1 and +1."""
    share = train.weights / train.weights.sum()
    if base is None:
        scale = deviations(train.X, share) if standardise else np.ones(prices.features)
        found, cost = Inputs(None, scale), np.zeros(prices.features)
        columns, needs = raw_columns(train.X, scale), prices.needs.toarray().T.copy()
    else:
        ensemble = ensemble_of(name, base, context)
        made = dictionary(ensemble, train.X, share, prices, context.threads)
        found, cost = Inputs(ensemble, np.ones(ensemble.trees)), made.tree_cost
        columns, needs = made.columns, made.needs
    sensor_cost, needs = needed(prices.sensor, needs)
    problem = Problem(
        columns=columns,
        y=2.0 * train.y - 1.0 if context.task == Task.BINARY else train.y,
        weight=share,
        share=share,
        tree_cost=cost,
        sensor_cost=sensor_cost,
        needs=needs,
    )
    return found, problem


def raw_columns(X: Float32Array, scale: FloatArray) -> Float32Array:
    """Features as columns (d, n), in units of ``scale`` (d,)."""
    columns = np.nan_to_num(X.T, nan=0.0, posinf=np.inf, neginf=-np.inf)
    return np.ascontiguousarray(columns / scale[:, None], dtype=np.float32)


def deviations(X: Float32Array, share: FloatArray) -> FloatArray:
    """Standard deviation of each feature (d,) over rows of weights ``share``, 1 where it is 0."""
    cells = np.nan_to_num(X.astype(np.float64))
    found = np.sqrt(share @ (cells - share @ cells) ** 2)
    return np.where(found > 0, found, 1.0)


def label_variance(problem: Problem) -> float:
    """Variance of the labels, copies counted; exactly 0 where all are the same."""
    if problem.y.min() == problem.y.max():
        return 0.0
    mean = float(problem.share @ problem.y)
    return float(problem.share @ (problem.y - mean) ** 2)


def per_label(task: Task) -> float:
    """What a prediction in label units is multiplied by to be a score of the task.

    Binary labels are -1 and +1. With f the mean label the log-odds are 2 artanh(f), of which 2 f
    is the tangent at 0.
    """
    return 2.0 if task == Task.BINARY else 1.0
