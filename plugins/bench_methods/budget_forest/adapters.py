"""Other learners' trees as trees that can be pruned: what a node loses, and how they are served."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from bench_models.boosting import chain
from bench_models.staged import StagedModel
from bench_models.tree_average import TreeAverage

from bench_core import BudgetedLearner, Examples, FitContext, Prices, UsageError
from bench_core.arrays import BoolArray
from bench_methods.budget_forest.additive import with_means
from bench_methods.budget_forest.forest import CountedForest, summed
from bench_methods.budget_forest.problem import NodeLoss, errors, leaf_mass, pruned_shape

if TYPE_CHECKING:
    from bench_trees import Ensemble
    from bench_trees.threads import Workers

Model = TreeAverage | StagedModel
Serve = Callable[[BoolArray, Prices, Mapping[str, Any]], Model]


@dataclass(frozen=True)
class Prunable:
    """Trees, what their nodes lose, and ``serve``: the model that keeps some of the splits.

    ``additive``: leaves hold what is added, not classes.
    """

    trees: Ensemble
    loss: NodeLoss
    serve: Serve
    additive: bool


def prunable(
    base: BudgetedLearner, context: FitContext, train: Examples, crew: Workers
) -> Prunable:
    """What is to be pruned of ``base``: class counts, class shares, or what leaves add.

    Raises UsageError where it has no such trees.
    """
    model = context.fitted(base)
    if isinstance(model, TreeAverage):
        if model.link == "probability":
            return _forest(_of_shares(model, train, crew))
        return _linked(model, train, crew)
    if isinstance(model, StagedModel) and model.adds_up:
        return _chain(model, train, crew)
    raise UsageError(
        f"budget-prune: base {base.name!r} has no trees whose leaves are added or averaged; choose "
        "budget-rf, random-forest, gbrt, lightgbm or imported"
    )


def _forest(forest: CountedForest) -> Prunable:
    def serve(kept: BoolArray, prices: Prices, facts: Mapping[str, Any]) -> TreeAverage:
        return pruned(forest, kept).served(prices, facts)

    return Prunable(forest.trees, errors(forest), serve, additive=False)


def pruned(forest: CountedForest, kept: BoolArray) -> CountedForest:
    """The forest whose splits are the ``kept`` (D,) of its inner nodes only."""
    stays, shape = pruned_shape(forest.trees, kept)
    trees = replace(forest.trees, value=np.zeros(int(stays.sum())), **shape)
    return CountedForest(trees, forest.counts[stays])


def _of_shares(model: TreeAverage, train: Examples, crew: Workers) -> CountedForest:
    """Its own counts, or leaves keep their shares and all of ``train`` weighs the nodes above."""
    trees, shares = model.numbers.ensemble, np.asarray(model.vectors, dtype=np.float64)
    assert trees is not None
    if model.counts is not None:
        return CountedForest(trees, model.counts)
    if shares.shape[1] == 1:
        shares = np.hstack([1.0 - shares, shares])
    own = shares[trees.value[trees.feature < 0].astype(np.int64)]
    return CountedForest(trees, summed(trees, leaf_mass(trees, train, crew)[:, None] * own))


def _chain(model: StagedModel, train: Examples, crew: Workers) -> Prunable:
    trees = model.ensemble
    assert trees is not None
    value, loss = with_means(trees, trees.value[trees.feature < 0, None], train, crew)

    def serve(kept: BoolArray, prices: Prices, facts: Mapping[str, Any]) -> StagedModel:
        stays, shape = pruned_shape(trees, kept)
        leaves = np.where(shape["feature"] < 0, value[stays, 0], 0.0)
        return chain(replace(trees, value=leaves, **shape), prices, {**model.facts, **facts})

    return Prunable(trees, loss, serve, additive=True)


def _linked(model: TreeAverage, train: Examples, crew: Workers) -> Prunable:
    trees = model.numbers.ensemble
    assert trees is not None
    own = model.vectors[trees.value[trees.feature < 0].astype(np.int64)]
    value, loss = with_means(trees, own, train, crew)

    def serve(kept: BoolArray, prices: Prices, facts: Mapping[str, Any]) -> TreeAverage:
        stays, shape = pruned_shape(trees, kept)
        leaf = shape["feature"] < 0
        numbers = replace(trees, value=np.where(leaf, np.cumsum(leaf) - 1.0, 0.0), **shape)
        return model.of_leaves(numbers, value[stays][leaf], {**model.facts, **facts})

    return Prunable(trees, loss, serve, additive=True)
