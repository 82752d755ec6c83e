"""Growing the tree: node by node, on the feature of the highest gain per price."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np
from bench_models.tradeoff import entropy

from bench_core import Examples, FitContext, Prices, Task
from bench_core.arrays import Array, BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from bench_trees import Bins

ROUNDING = 1e-9
"""By this share the worth of two features may differ where they are equal."""

CRITERIA: Mapping[str, Callable[[FloatArray], FloatArray]] = {
    "eg2": lambda gain: 2**gain - 1,
    "cs-id3": lambda gain: gain**2,
    "idx": lambda gain: gain,
}


@dataclass(frozen=True, slots=True)
class GrowthSettings:
    """The learner's parameters that growing needs."""

    criterion: str
    price_power: float
    depth: int | None
    min_rows: int


@dataclass(frozen=True, slots=True)
class Target:
    """What is to be predicted: ``label`` (n,) of ``classes`` > 0, or ``value`` (n,); ``weight``
    (n,) copies of each row."""

    label: IntArray
    value: FloatArray
    weight: FloatArray
    classes: int

    @classmethod
    def of(cls, rows: Examples, context: FitContext) -> Self:
        """Of training rows."""
        classes = context.classes if context.task in (Task.BINARY, Task.MULTICLASS) else 0
        label = rows.y.astype(np.int64) if classes else np.zeros(len(rows), np.int64)
        return cls(
            label, np.zeros(len(rows)) if classes else np.array(rows.y), rows.weights, classes
        )

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
class Tree:
    """Nodes in lists, parents before their children; feature -1 at a leaf. ``summed`` is the answer
    of a node, ``loss`` what its rows lose by it, ``cost`` what they pay together at its split."""

    feature: list[int] = field(default_factory=list)
    threshold: list[float] = field(default_factory=list)
    missing_left: list[bool] = field(default_factory=list)
    left: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)
    summed: list[FloatArray] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)

    def add(self, summed: FloatArray, loss: float) -> int:
        """A new leaf's number."""
        for numbers in (self.feature, self.left, self.right):
            numbers.append(-1)
        for values in (self.threshold, self.cost):
            values.append(0.0)
        self.missing_left.append(False)
        self.summed.append(summed)
        self.loss.append(loss)
        return len(self.loss) - 1


class Grower:
    """Grows one tree."""

    def __init__(
        self,
        bins: Bins,
        codes: Array,
        target: Target,
        prices: Prices,
        how: GrowthSettings,
        progress: Callable[[int, int], None],
    ) -> None:
        self.bins, self.target, self.prices, self.how = bins, target, prices, how
        self.codes = np.asarray(codes)
        self.progress = progress
        paid = prices.sensor[prices.sensor > 0]
        self.unit = float(np.median(paid)) if len(paid) else 1.0

    def tree(self) -> Tree:
        """The tree of all rows."""
        tree, n = Tree(), len(self.target.weight)
        nothing = np.zeros(self.prices.sensors, dtype=bool)
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
            left = np.where(code == self.bins.counts[feature], default, code <= cut)
            more = bought.copy()
            more[self.prices.sensors_of(feature)] = True
            tree.feature[node], tree.missing_left[node] = feature, default
            tree.threshold[node] = self.bins.threshold(feature, cut)
            price = float(self.prices.marginal(bought)[feature])
            tree.cost[node] = price * float(self.target.weight[rows].sum())
            sides = [rows[left], rows[~left]]
            tree.left[node], tree.right[node] = (self._add(tree, side) for side in sides)
            stack.append((tree.right[node], sides[1], more, level + 1))
            stack.append((tree.left[node], sides[0], more, level + 1))
        return tree

    def _add(self, tree: Tree, rows: IntArray) -> int:
        summed = self.target.summed(rows)
        return tree.add(summed, self.target.loss(rows, summed))

    def _choice(
        self, tree: Tree, node: int, rows: IntArray, bought: BoolArray, level: int
    ) -> tuple[int, int, bool] | None:
        """The feature to split on, its bin and where missing values go; None at a leaf."""
        from bench_methods.cost_tree.kernels import best_cuts

        target, d = self.target, self.prices.features
        mass = float(target.weight[rows].sum())
        if level == self.how.depth or mass < 2 * self.how.min_rows or tree.loss[node] <= 0:
            return None
        found = np.zeros(d), np.zeros(d, np.int64), np.zeros(d, dtype=bool)
        data = rows, target.label, target.value, target.weight
        how = float(tree.summed[node][0]), target.classes, float(self.how.min_rows)
        best_cuts(self.codes, self.bins.counts, data, how, found)
        whole = mass if target.classes else 2 * tree.loss[node]
        gain = found[0] / whole
        gain[gain < ROUNDING] = 0.0
        price = self.prices.marginal(bought) / self.unit
        worth = CRITERIA[self.how.criterion](gain) / (price + 1) ** self.how.price_power
        feature = int(np.argmax(worth >= worth.max() * (1 - ROUNDING)))
        if gain[feature] == 0.0:
            return None
        return feature, int(found[1][feature]), bool(found[2][feature])
