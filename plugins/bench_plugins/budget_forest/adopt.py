"""Other learners' forests as forests that can be pruned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bench_core import BudgetedLearner, Examples, UsageError
from bench_plugins.budget_forest.forest import Forest, share_counts
from bench_plugins.budget_forest.problem import leaves_reached

if TYPE_CHECKING:
    from bench_trees.threads import Workers

Floats = NDArray[np.float64]


def forest_of(base: BudgetedLearner, model: Any, train: Examples, crew: Workers) -> Forest:
    """The forest of ``model``. Raises UsageError where it is none of classification trees.

    It is ``model.forest``, or else a forest that averages class shares: ``model.average`` true,
    ``model.link`` "probability", and ``model.numbers.ensemble`` with leaf values that number
    rows of ``model.vectors`` (m, K), or (m, 1) with the share of class 1. Such leaves keep their
    shares; how much each weighs in the nodes above is counted over all of ``train``.
    """
    forest = getattr(model, "forest", None)
    if isinstance(forest, Forest):
        return forest
    if getattr(model, "link", "") != "probability" or not getattr(model, "average", False):
        raise UsageError(
            f"budget-prune: base {base.name!r} is no forest that averages class shares on this "
            "task; choose budget-rf, or random-forest where the task has classes"
        )
    trees = model.numbers.ensemble
    shares = np.asarray(model.vectors, dtype=np.float64)
    if shares.shape[1] == 1:
        shares = np.hstack([1.0 - shares, shares])
    empty = Forest(
        start=trees.start,
        feature=trees.feature,
        threshold=trees.threshold,
        left=trees.left,
        right=trees.right,
        missing_left=trees.missing_left,
        counts=np.zeros((trees.nodes, shares.shape[1])),
        features=trees.features,
    )
    leaf = leaves_reached(empty, train.X, crew)
    ends = np.flatnonzero(trees.feature < 0)
    mass = np.zeros(len(ends))
    for tree in leaf.T:
        mass += np.bincount(tree, train.weights, minlength=len(ends))
    own = shares[trees.value[ends].astype(np.int64)]
    return share_counts(empty, np.maximum(mass, 1.0)[:, None] * own)
