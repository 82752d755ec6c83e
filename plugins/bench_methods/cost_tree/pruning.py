"""Which splits stay: what validation rows do not confirm goes, then a path of prunings by price."""

from collections import deque
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from bench_models.staged import MOST_POINTS

from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_methods.cost_tree.grower import Tree

_HUGE = 1e200
_ROUNDING = 1e-9  # of sums of shares


class Pruning(NamedTuple):
    """A subtree by its splits (nodes,), what it loses on training rows and what these pay."""

    loss: float
    cost: float
    splits: BoolArray


def without_useless(tree: Tree, loss: FloatArray) -> BoolArray:
    """The splits (nodes,) that stay: those below which other rows lose less than at the node.

    ``loss`` (nodes,) is what these rows lose if the node is a leaf.
    """
    return _best(tree, np.array(tree.feature) >= 0, loss, np.zeros(len(loss)), 0.0)


def nested_prunings(tree: Tree, kept: BoolArray) -> list[BoolArray]:
    """The splits (nodes,) of the best prunings as lambda falls to 0, rising, each once.

    They are corners of the convex hull of loss and cost: between two of them lies another, where
    there is one, at the lambda at which these two are equally good. Where there is none the larger
    one is grown out of the smaller level by level, so that budgets between them have a point.
    """
    loss, cost = np.array(tree.loss), np.array(tree.cost)
    cost /= max(float(cost.sum()), 1e-300)  # in shares

    def pruned(price: float) -> Pruning:
        splits = _best(tree, kept, loss, cost, price)
        leaves = np.zeros_like(kept)
        leaves[0] = True
        for child in (tree.left, tree.right):
            leaves[np.array(child)[splits]] = True
        return Pruning(float(loss[leaves & ~splits].sum()), float(cost[splits].sum()), splits)

    found = [pruned(_HUGE), pruned(0.0)]
    between = deque([(found[0], found[1])])
    while between and len(found) < MOST_POINTS:
        a, b = between.popleft()
        if a.cost < b.cost:
            c = pruned((a.loss - b.loss) / (b.cost - a.cost))
            if a.cost + _ROUNDING < c.cost < b.cost - _ROUNDING:
                found.append(c)
                between += [(a, c), (c, b)]
    path = sorted(found, key=lambda one: one.cost)
    corners = [one.splits for k, one in enumerate(path) if not k or one.cost > path[k - 1].cost]
    prunings = corners[:1]
    for small, large in pairwise(corners):
        prunings += _levels(tree, small, large, cost)
    chosen = np.unique(np.linspace(0, len(prunings) - 1, MOST_POINTS).round().astype(np.int64))
    return [prunings[k] for k in chosen]


def _levels(tree: Tree, small: BoolArray, large: BoolArray, cost: FloatArray) -> list[BoolArray]:
    """From a pruning, exclusive, to a larger one: its levels that cost more than those above."""
    depth = np.zeros(len(small), np.int64)
    for u in np.flatnonzero(large).tolist():
        depth[[tree.left[u], tree.right[u]]] = depth[u] + 1
    found, last = [large], float(cost[large].sum())
    for level in range(int(depth.max()), -1, -1):
        splits = small | (large & (depth < level))
        paid = float(cost[splits].sum())
        if float(cost[small].sum()) + _ROUNDING < paid < last - _ROUNDING:
            found.append(splits)
            last = paid
    return found[::-1]


def _best(
    tree: Tree, kept: BoolArray, leaf: FloatArray, split: FloatArray, price: float
) -> BoolArray:
    """The splits, reached from the root, of the subtree of least leaf + price x split sums; the
    smaller one where two are equal."""
    total, stays = leaf.copy(), np.zeros_like(kept)
    for u in _upwards(kept):
        whole = price * split[u] + total[tree.left[u]] + total[tree.right[u]]
        stays[u] = whole < total[u]
        total[u] = min(whole, total[u])
    reached = np.zeros_like(kept)
    reached[0] = True
    for u in np.flatnonzero(stays).tolist():
        if reached[u]:
            reached[[tree.left[u], tree.right[u]]] = True
    return np.asarray(stays & reached)


def _upwards(kept: BoolArray) -> list[int]:
    """The splits, children before their parents."""
    splits: IntArray = np.flatnonzero(kept)[::-1]
    return [int(u) for u in splits]
