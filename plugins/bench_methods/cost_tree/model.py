"""One tree, grown node by node on the feature of the highest gain per price, and its prunings.

Splits that do not lower the validation loss are removed; the rest gives a path of nested prunings
by price.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np
from bench_models import links
from bench_models.pruned_path import PrunedPath
from bench_models.staged import MOST_POINTS
from bench_models.tradeoff import entropy
from bench_models.tree_average import TreeAverage

from bench_core import Examples, FitContext, Prices, Task
from bench_core.arrays import Array, BoolArray, FloatArray, Int32Array, IntArray

if TYPE_CHECKING:
    from bench_trees import Bins


_HUGE = 1e200
_ROUNDING = 1e-9  # tolerance for sums of shares
LEAST_SHARE = 1e-6
"""Probabilities are clipped to [1e-6, 1 - 1e-6] before their logarithm is taken."""
ROUNDING = 1e-9
"""Relative tolerance within which two features are equally good."""

CRITERIA: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "eg2": lambda gain: 2**gain - 1,
    "cs-id3": lambda gain: gain**2,
    "idx": lambda gain: gain,
}


@dataclass(frozen=True, slots=True)
class GrowthSettings:
    """The learner's parameters of growing."""

    criterion: str
    price_power: float
    depth: int | None
    min_rows: int


@dataclass(frozen=True, slots=True)
class TrainingLabels:
    """Labels: ``label`` (n,) of ``classes`` > 0, or ``value`` (n,); ``weight`` (n,) are the copies
    of each row."""

    label: Int32Array
    value: FloatArray
    weight: FloatArray
    classes: int

    @classmethod
    def of(cls, rows: Examples, context: FitContext) -> Self:
        """The labels of training rows."""
        classes = context.classes if context.task in (Task.BINARY, Task.MULTICLASS) else 0
        label = rows.y.astype(np.int32) if classes else np.zeros(len(rows), np.int32)
        return cls(
            label, np.zeros(len(rows)) if classes else np.array(rows.y), rows.weights, classes
        )

    def members(self, rows: IntArray, mean: float) -> tuple[Array, Array, FloatArray, FloatArray]:
        """The rows with their class and copies and, of numbers, copies times number - ``mean``."""
        weight = self.weight[rows]
        number = np.zeros(0) if self.classes else weight * (self.value[rows] - mean)
        return rows.astype(np.int32), self.label[rows], weight, number

    def summed(self, rows: IntArray) -> FloatArray:
        """The rows of each class (K,), or the mean of the values (1,)."""
        if self.classes:
            counts = np.bincount(self.label[rows], self.weight[rows], minlength=self.classes)
            return np.asarray(counts, np.float64)
        return np.array([np.average(self.value[rows], weights=self.weight[rows])])

    def loss(self, rows: IntArray, summed: FloatArray) -> float:
        """Training loss of these rows if ``summed`` answers: in nats, or half the squares."""
        if self.classes:
            return entropy(summed / summed.sum()) * float(summed.sum())
        return float((self.weight[rows] * (self.value[rows] - summed[0]) ** 2).sum()) / 2


@dataclass(slots=True)
class CostedTree:
    """Nodes in lists, parents before their children; feature -1 at a leaf. ``summed`` is a node's
    answer, ``loss`` its rows' total loss by it, ``cost`` their total payment at its split."""

    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    missing_left: list[bool] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    summed: list[FloatArray] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)

    @property
    def value(self) -> IntArray:
        """Numbers of the nodes."""
        return np.arange(len(self.feature))

    def add(self, summed: FloatArray, loss: float) -> int:
        """Add a leaf and return its number."""
        for numbers in (self.feature, self.left, self.right):
            numbers.append(-1)
        for values in (self.threshold, self.cost):
            values.append(0.0)
        self.missing_left.append(False)
        self.summed.append(summed)
        self.loss.append(loss)
        return len(self.loss) - 1


class CostTreeGrower:
    """Grows one tree."""

    def __init__(
        self,
        bins: Bins,
        codes: Array,
        target: TrainingLabels,
        prices: Prices,
        how: GrowthSettings,
        progress: Callable[[int, int], None],
    ) -> None:
        self.bins, self.target, self.prices, self.how = bins, target, prices, how
        self.codes = np.asarray(codes)
        self.progress = progress
        paid = prices.sensor[prices.sensor > 0]
        # prices in units of the median: c + 1 does not depend on the currency
        self.unit = float(np.median(paid)) if len(paid) else 1.0

    def tree(self) -> CostedTree:
        """The tree of all rows."""
        tree, n = CostedTree(), len(self.target.weight)
        nothing = np.zeros(self.prices.sensors, dtype=bool)
        # node, its rows, sensors bought on its path, level
        stack = [(self._add(tree, np.arange(n)), np.arange(n), nothing, 0)]
        done = 0
        while stack:
            node, rows, bought, level = stack.pop()
            choice = self._choice(tree, node, rows, bought, level)
            if choice is None:
                done += len(rows)
                self.progress(done, n + 1)
                continue
            feature, cut, default = choice
            code = self.codes[feature, rows]
            # the code after the last bin is for missing cells
            left = np.where(code == self.bins.counts[feature], default, code <= cut)
            more = bought.copy()
            more[self.prices.sensors_of(feature)] = True
            price = float(self.prices.marginal(bought)[feature])
            tree.cost[node] = price * float(self.target.weight[rows].sum())
            tree.feature[node], tree.missing_left[node] = feature, default
            tree.threshold[node] = float(self.bins.threshold(feature, cut))
            sides = [rows[left], rows[~left]]
            tree.left[node], tree.right[node] = (self._add(tree, side) for side in sides)
            stack.append((tree.right[node], sides[1], more, level + 1))
            stack.append((tree.left[node], sides[0], more, level + 1))
        return tree

    def _add(self, tree: CostedTree, rows: IntArray) -> int:
        summed = self.target.summed(rows)
        return tree.add(summed, self.target.loss(rows, summed))

    def _choice(
        self, tree: CostedTree, node: int, rows: IntArray, bought: BoolArray, level: int
    ) -> tuple[int, int, bool] | None:
        """The feature to split on, its bin and where missing values go; None at a leaf."""
        from bench_trees.kernels.table_cuts import ENTROPY, SQUARES, best_cuts

        target, d = self.target, self.prices.features
        mass = float(target.weight[rows].sum())
        if level == self.how.depth or mass < 2 * self.how.min_rows or tree.loss[node] <= 0:
            return None
        gain, cut, missing_left = np.zeros(d), np.zeros(d, np.int64), np.zeros(d, dtype=bool)
        best_cuts(
            self.codes,
            self.bins.counts,
            target.members(rows, float(tree.summed[node][0])),
            ENTROPY if target.classes else SQUARES,
            target.classes or 2,
            float(self.how.min_rows),
            (gain, cut, missing_left),
        )
        # gains as shares of the node's own entropy or squares
        gain /= mass if target.classes else 2 * tree.loss[node]
        gain[gain < ROUNDING] = 0.0
        price = self.prices.marginal(bought) / self.unit
        worth = CRITERIA[self.how.criterion](gain) / (price + 1) ** self.how.price_power
        # the first of equally good features
        best = worth.max()
        feature = int(np.argmax(worth >= best - abs(best) * ROUNDING))
        if gain[feature] == 0.0:
            return None
        return feature, int(cut[feature]), bool(missing_left[feature])


def pruned_path(
    tree: CostedTree, score: FloatArray, prunings: Sequence[BoolArray], prices: Prices
) -> PrunedPath:
    """The model with these prunings, the splits (nodes,) of each, rising, as points.

    ``score`` (nodes, K) is each node's answer.
    """
    from bench_trees import Ensemble

    splits = np.array(prunings)
    # a leaf's value is its number; the constant answers rows that buy nothing
    one = Ensemble.of_trees([tree], [0], score[0], prices.features)
    trees = one.with_vectors(score - score[0])
    whole = TreeAverage(trees, prices, average=False, link="identity", per_round=1, facts={})
    rank = np.where(splits.any(axis=0), splits.argmax(axis=0), len(splits)).astype(np.int32)
    names = [{"leaves": int(own.sum()) + 1} for own in splits]
    return PrunedPath(whole, rank, names, np.zeros((0, 2), dtype=np.int64))


def losses(tree: CostedTree, score: FloatArray, rows: Examples, classes: int) -> FloatArray:
    """Loss of these rows at each node (nodes,) that they pass: in nats, or half the squared error
    in the unit of the labels."""
    feature, left, right = map(np.array, (tree.feature, tree.left, tree.right))
    threshold, missing_left = np.array(tree.threshold, np.float32), np.array(tree.missing_left)
    total, at, who = np.zeros(len(feature)), np.zeros(len(rows), np.int64), np.arange(len(rows))
    while len(who):
        node, y = at[who], rows.y[who]
        raw = score[node]
        if not classes:
            lost = (y - raw[:, 0]) ** 2 / 2
        else:
            lost = links.log_loss(raw if raw.shape[1] > 1 else raw[:, 0], y)
        total += np.bincount(node, rows.weights[who] * lost, minlength=len(total))
        who = who[feature[node] >= 0]
        node = at[who]
        x = rows.X[who, feature[node]]
        goes_left = np.where(np.isnan(x), missing_left[node], x <= threshold[node])
        at[who] = np.where(goes_left, left[node], right[node])
    return total


def scores_of(summed: FloatArray, target: TrainingLabels) -> FloatArray:
    """Answers of nodes (nodes, K): log-odds, logarithms of shares, or means."""
    if not target.classes:
        return summed
    prior = np.bincount(target.label, target.weight, minlength=target.classes)
    # smoothing: K extra rows in the training proportions
    more = target.classes * prior / prior.sum()
    shares = (summed + more) / (summed.sum(axis=1, keepdims=True) + target.classes)
    return links.scores_of(shares, LEAST_SHARE).reshape(len(shares), -1)


class Pruning(NamedTuple):
    """A subtree: its splits (nodes,), training loss and training cost."""

    loss: float
    cost: float
    splits: BoolArray


def without_useless(tree: CostedTree, loss: FloatArray) -> BoolArray:
    """Mask of the splits (nodes,) that lower the loss of held-out rows.

    ``loss`` (nodes,) is the loss of these rows if the node is a leaf.
    """
    return _best(tree, np.array(tree.feature) >= 0, loss, np.zeros(len(loss)), 0.0)


def nested_prunings(tree: CostedTree, kept: BoolArray) -> list[BoolArray]:
    """The splits (nodes,) of the optimal prunings as lambda falls to 0, rising, each once.

    They are corners of the convex hull of loss and cost. A corner between two others is optimal at
    the lambda at which these two are equally good. Between adjacent corners the larger pruning is
    built level by level from the smaller one, to have points for budgets between them.
    """
    loss, cost = np.array(tree.loss), np.array(tree.cost)
    cost /= max(float(cost.sum()), 1e-300)  # as shares

    def pruned(price: float) -> Pruning:
        splits = _best(tree, kept, loss, cost, price)
        leaves = np.zeros_like(kept)
        leaves[0] = True
        for child in (tree.left, tree.right):
            leaves[np.array(child)[splits]] = True
        return Pruning(float(loss[leaves & ~splits].sum()), float(cost[splits].sum()), splits)

    # the root alone, and all splits with a gain
    hull = [pruned(_HUGE), pruned(0.0)]
    between = deque([(hull[0], hull[1])])
    while between and len(hull) < MOST_POINTS:
        a, b = between.popleft()
        if a.cost < b.cost:
            # the price at which both are equally good
            c = pruned((a.loss - b.loss) / (b.cost - a.cost))
            if a.cost + _ROUNDING < c.cost < b.cost - _ROUNDING:
                hull.append(c)
                between += [(a, c), (c, b)]
    path = sorted(hull, key=lambda p: p.cost)
    corners = [p.splits for k, p in enumerate(path) if not k or p.cost > path[k - 1].cost]
    prunings = corners[:1]
    for small, large in pairwise(corners):
        prunings += _levels(tree, small, large, cost)
    chosen = np.unique(np.linspace(0, len(prunings) - 1, MOST_POINTS).round().astype(np.int64))
    return [prunings[k] for k in chosen]


def _levels(
    tree: CostedTree, small: BoolArray, large: BoolArray, cost: FloatArray
) -> list[BoolArray]:
    """Prunings from ``small``, exclusive, to ``large``, each adding levels that cost more."""
    depth = np.zeros(len(small), np.int64)
    for u in np.flatnonzero(large).tolist():
        depth[[tree.left[u], tree.right[u]]] = depth[u] + 1
    prunings, last = [large], float(cost[large].sum())
    for level in range(int(depth.max()), -1, -1):
        splits = small | (large & (depth < level))
        paid = float(cost[splits].sum())
        if float(cost[small].sum()) + _ROUNDING < paid < last - _ROUNDING:
            prunings.append(splits)
            last = paid
    return prunings[::-1]


def _best(
    tree: CostedTree, kept: BoolArray, leaf: FloatArray, split: FloatArray, price: float
) -> BoolArray:
    """Splits of the subtree at the root with the least sum of leaf + price x split; ties: the
    smaller one."""
    total, stays = leaf.copy(), np.zeros_like(kept)
    for u in np.flatnonzero(kept)[::-1].tolist():  # children before their parents
        whole = price * split[u] + total[tree.left[u]] + total[tree.right[u]]
        stays[u] = whole < total[u]
        total[u] = min(whole, total[u])
    reached = np.zeros_like(kept)
    reached[0] = True
    for u in np.flatnonzero(stays).tolist():
        if reached[u]:
            reached[[tree.left[u], tree.right[u]]] = True
    return np.asarray(stays & reached)
