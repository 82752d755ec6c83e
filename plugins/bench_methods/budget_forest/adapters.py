"""Other learners' trees as trees that can be pruned: what a node loses, and how they are served."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from bench_models.boosting import chain
from bench_models.staged import StagedModel
from bench_models.tree_average import LinkedTrees

from bench_core import BudgetedLearner, Examples, FitContext, Prices, UsageError
from bench_methods.budget_forest.additive import with_means
from bench_methods.budget_forest.forest import Forest, ForestModel, summed
from bench_methods.budget_forest.problem import Bools, NodeLoss, errors, leaf_mass, pruned_shape

if TYPE_CHECKING:
    from bench_trees.threads import Workers

    from bench_methods.budget_forest.forest import Trees

Model = ForestModel | LinkedTrees | StagedModel
Serve = Callable[[Bools, Prices, Mapping[str, Any]], Model]


@dataclass(frozen=True)
class Prunable:
    """Trees, what their nodes lose, and ``serve``: the model that keeps some of the splits.

    ``additive``: leaves hold what is added, not classes.
    """

    trees: Trees
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
    if isinstance(model, ForestModel):
        return _forest(model.forest)
    if isinstance(model, LinkedTrees):
        if model.link == "probability":
            return _forest(_of_shares(model, train, crew))
        return _linked(model, train, crew)
    if isinstance(model, StagedModel) and model.adds_up:
        return _chain(model, train, crew)
    raise UsageError(
        f"budget-prune: base {base.name!r} has no trees whose leaves are added or averaged; choose "
        "budget-rf, random-forest, gbrt, lightgbm or imported"
    )


def _forest(forest: Forest) -> Prunable:
    def serve(kept: Bools, prices: Prices, facts: Mapping[str, Any]) -> ForestModel:
        return ForestModel(pruned(forest, kept), prices, facts)

    return Prunable(forest, errors(forest), serve, additive=False)


def pruned(forest: Forest, kept: Bools) -> Forest:
    """The forest whose splits are the ``kept`` (D,) of its inner nodes only."""
    stays, shape = pruned_shape(forest, kept)
    return replace(forest, counts=forest.counts[stays], **shape)


def _of_shares(model: LinkedTrees, train: Examples, crew: Workers) -> Forest:
    """Leaves keep their shares; all of ``train`` says how much each weighs in the nodes above."""
    trees, shares = model.numbers.ensemble, np.asarray(model.vectors, dtype=np.float64)
    assert trees is not None
    if shares.shape[1] == 1:
        shares = np.hstack([1.0 - shares, shares])
    own = shares[trees.value[trees.feature < 0].astype(np.int64)]
    return Forest(
        start=trees.start,
        feature=trees.feature,
        threshold=trees.threshold,
        left=trees.left,
        right=trees.right,
        missing_left=trees.missing_left,
        counts=summed(trees, leaf_mass(trees, train, crew)[:, None] * own),
        features=trees.features,
    )


def _chain(model: StagedModel, train: Examples, crew: Workers) -> Prunable:
    trees = model.ensemble
    assert trees is not None
    value, loss = with_means(trees, trees.value[trees.feature < 0, None], train, crew)

    def serve(kept: Bools, prices: Prices, facts: Mapping[str, Any]) -> StagedModel:
        stays, shape = pruned_shape(trees, kept)
        leaves = np.where(shape["feature"] < 0, value[stays, 0], 0.0)
        return chain(replace(trees, value=leaves, **shape), prices, {**model.facts, **facts})

    return Prunable(trees, loss, serve, additive=True)


def _linked(model: LinkedTrees, train: Examples, crew: Workers) -> Prunable:
    trees = model.numbers.ensemble
    assert trees is not None
    own = model.vectors[trees.value[trees.feature < 0].astype(np.int64)]
    value, loss = with_means(trees, own, train, crew)

    def serve(kept: Bools, prices: Prices, facts: Mapping[str, Any]) -> LinkedTrees:
        stays, shape = pruned_shape(trees, kept)
        leaf = shape["feature"] < 0
        numbers = replace(trees, value=np.where(leaf, np.cumsum(leaf) - 1.0, 0.0), **shape)
        return model.of_leaves(numbers, value[stays][leaf], {**model.facts, **facts})

    return Prunable(trees, loss, serve, additive=True)
