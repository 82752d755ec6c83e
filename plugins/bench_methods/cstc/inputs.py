"""phi: the columns that classifiers are linear in, from boosted trees or the raw features."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from bench_models.boosting import ensemble_of
from bench_models.dictionary import dictionary, needs_of, tree_columns
from bench_models.problem import Problem, needed

from bench_core import BudgetedLearner, Examples, FitContext, Prices, Task
from bench_core.arrays import Float32Array, FloatArray

if TYPE_CHECKING:
    from bench_trees import Ensemble

_MOST = 1 << 28
"""Larger arrays, in bytes, are not left on disk for the next fit."""


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """The T columns: the trees of ``ensemble``, or where that is None features in units of
    ``scale`` (T,). ``name`` spells what they depend on beside the rows."""

    ensemble: Ensemble | None
    scale: FloatArray
    name: str = ""

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
        found = Inputs(None, scale, f"raw-{standardise}")
        columns, cost = raw_columns(train.X, scale), np.zeros(prices.features)
        needs = prices.needs.toarray().T.copy()
    else:
        ensemble = ensemble_of(name, base, context)
        evaluation = np.append(prices.multiplier, [prices.tree, prices.split])
        trees = f"trees-{digest(*ensemble.to_state().values(), evaluation)}"

        def walk() -> dict[str, Any]:
            made = dictionary(ensemble, train.X, share, prices, context.threads)
            return {"columns": made.columns, "cost": made.tree_cost}

        walked = shared(context, trees, 4 * ensemble.trees * len(train), walk)
        found = Inputs(ensemble, np.ones(ensemble.trees), trees)
        columns, cost, needs = walked["columns"], walked["cost"], needs_of(ensemble, prices)
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


def shared(
    context: FitContext, name: str, size: int, build: Callable[[], dict[str, Any]]
) -> dict[str, Any]:
    """The arrays of that name, about ``size`` bytes, built once for all fits if not too large."""
    found = context.shared(name, build) if 0 < size <= _MOST else build()
    return {key: np.asarray(array) for key, array in found.items()}


def digest(*parts: Any) -> str:
    """A short name for these arrays' type, shape and contents."""
    h = hashlib.blake2b(digest_size=16)
    for part in map(np.ascontiguousarray, parts):
        h.update(f"{part.dtype.str}{part.shape}".encode())
        h.update(part.reshape(-1).view(np.uint8).data)
    return h.hexdigest()


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
