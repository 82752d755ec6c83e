"""A tree that avoids what is often missing, walked node by node; every node has an answer.

``ma-tree``: L. Stempfle, A. Matsson, N. Mwai, F. Johansson, "Prediction models that learn to avoid
missing values", ICML 2025 (MA-DT), as in the authors' package. A node is split on the feature and
cut of the highest

    score of the split - alpha (share of the node's rows in which the feature is missing)

and a row whose cell is missing is answered by the node itself. So is a row that cannot pay for it.

Departures
- The score is that of ``cost-tree``, by default the information gain in bits over (c + 1)^w, where
  c is the marginal price in units of the median price. With ``price_power`` = 0 it is the authors'
  ``info_gain``; their default is the Gini impurity.
- Rows without a cell stay at the node. There they are not imputed, and do not go on in training.
- Operating points are the nested prunings of ``cost-tree``, by loss and price on the training rows
  after what validation rows do not confirm is cut off; the authors prune by leaves.
- A row is answered by the last node that what it has bought leads to, and is charged the splits of
  the longest path.
- Trees alone: the authors' forest, boosting and lasso with this penalty are not here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from bench_models.states import Stored

from bench_core import STOP, Evaluated, Prices, Purchases
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_methods.cost_tree.model import CostedTree

if TYPE_CHECKING:
    from bench_trees import Ensemble

    from bench_core.serving import PolicyProgram


class Unrolled:
    """A tree over cells and marks in lists; its leaves are known by node and by purchase."""

    def __init__(self, features: int) -> None:
        self.features = features
        self.feature, self.left, self.right = list[int](), list[int](), list[int]()
        self.threshold = list[float]()
        self.node, self.purchase = dict[int, int](), dict[int, int]()

    def add(self) -> int:
        """A new leaf's place."""
        for numbers in (self.feature, self.left, self.right):
            numbers.append(-1)
        self.threshold.append(0.0)
        return len(self.feature) - 1

    def split(self, place: int, feature: int, threshold: float) -> tuple[int, int]:
        """Split a leaf; the new leaves at or below the threshold, and above it or missing."""
        self.feature[place], self.threshold[place] = feature, threshold
        self.left[place], self.right[place] = self.add(), self.add()
        return self.left[place], self.right[place]

    def tree(self, leaf: Mapping[int, int]) -> Ensemble:
        """The tree, its leaves with these numbers."""
        from bench_trees import Ensemble

        self.value = [leaf[place] if own < 0 else 0 for place, own in enumerate(self.feature)]
        self.missing_left = np.zeros(len(self.feature), dtype=bool)
        return Ensemble.of_trees([self], [0], np.zeros(1), self.features)


@dataclass(frozen=True, eq=False)
class NodePolicy(Stored):
    """Buys what the node asks for that a row has come to; nodes (N,) have feature -1 at a leaf."""

    nested: ClassVar[bool] = True

    leaves: Sequence[float]  # of each pruning, rising
    feature: IntArray
    threshold: FloatArray
    left: IntArray
    right: IntArray
    score: FloatArray  # (N, K)
    rank: IntArray  # (N,), the first pruning that splits the node
    prices: Prices

    @classmethod
    def of(
        cls, tree: CostedTree, score: FloatArray, prunings: Sequence[BoolArray], prices: Prices
    ) -> Self:
        """Of a tree and the splits (N,) of its prunings, rising."""
        splits = np.array(prunings)
        rank = np.where(splits.any(axis=0), splits.argmax(axis=0), len(splits))
        leaves = [float(own.sum()) + 1 for own in splits]
        kept = np.where(rank < len(splits), np.array(tree.feature), -1)
        nodes = np.array(tree.threshold), np.array(tree.left), np.array(tree.right)
        return cls(leaves, kept, *nodes, score, rank, prices)

    @property
    def stops(self) -> Mapping[str, Sequence[float]]:
        """Numbers of leaves."""
        return {"leaves": self.leaves}

    @cached_property
    def each_answer(self) -> Evaluated:
        """The longest path, without the tests for missing cells."""
        most = np.zeros(len(self.feature))
        for u in np.flatnonzero(self.feature >= 0)[::-1].tolist():  # children before parents
            own = np.isfinite(self.threshold[u]) * self.prices.multiplier[self.feature[u]]
            most[u] = own + max(most[self.left[u]], most[self.right[u]])
        return Evaluated(float(most[0]), float(most[0] > 0))

    def act(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray, stop: float
    ) -> IntArray:
        """The first purchase that the row's node still lacks, or ``STOP``."""
        at = self._nodes(cells, bought, self.leaves.index(stop))
        feature = self.feature[at]
        lacks = self._serve[feature] & ~bought
        asks = (feature >= 0) & (self.rank[at] <= self.leaves.index(stop)) & lacks.any(axis=1)
        return np.where(asks, lacks.argmax(axis=1), STOP)

    def predict(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """Log-odds or numbers (n,), or logarithms of the classes' shares (n, K)."""
        found = self.score[self._nodes(cells, bought, len(self.leaves))]
        return found[:, 0] if found.shape[1] == 1 else found

    def program(self, prices: Prices, stop: float) -> PolicyProgram:
        """One tree whose leaves are purchases, the last one stopping, and one that answers."""
        from bench_core.serving import PolicyProgram, Sums

        k = self._serve.shape[1]
        asked, nodes = self._unrolled(self.leaves.index(stop)), self._unrolled(len(self.leaves))
        values = Sums(asked.tree(asked.purchase), np.zeros(k + 1), np.eye(k + 1))
        answer = Sums(nodes.tree(nodes.node), np.zeros(self.score.shape[1]), self.score)
        return PolicyProgram.of([values], answer, prices, np.arange(k), "class")

    def _unrolled(self, pruning: int) -> Unrolled:
        """The splits of a pruning as a tree that also tests, behind the d cells, whether the
        purchases were made that a node needs."""
        (d, k), found = self._serve.shape, Unrolled(sum(self._serve.shape))
        stack = [(0, found.add(), frozenset[int]())]
        while stack:
            node, place, made = stack.pop()
            found.node[place], found.purchase[place] = node, k
            if self.feature[node] < 0 or self.rank[node] > pruning:
                continue
            for purchase in np.flatnonzero(self._serve[self.feature[node]]).tolist():
                if purchase not in made:
                    lacking, place = found.split(place, d + purchase, 0.5)
                    found.node[lacking], found.purchase[lacking] = node, purchase
                    made |= {purchase}
            sides = found.split(place, int(self.feature[node]), float(self.threshold[node]))
            below = int(self.left[node]), int(self.right[node])
            stack += [(*side, made) for side in zip(below, sides, strict=True)]
        return found

    def _nodes(self, cells: Float32Array, bought: BoolArray, pruning: int) -> IntArray:
        """How far down rows (n,) get by what they have bought, on splits of a pruning."""
        at, who = np.zeros(len(cells), np.int64), np.arange(len(cells))
        while len(who):
            feature = self.feature[at[who]]
            lacks = (self._serve[feature] & ~bought[who]).any(axis=1)
            who = who[(feature >= 0) & (self.rank[at[who]] <= pruning) & ~lacks]
            node = at[who]
            # a missing cell is no number below any threshold
            below = cells[who, self.feature[node]] <= self.threshold[node].astype(np.float32)
            at[who] = np.where(below, self.left[node], self.right[node])
        return at

    @cached_property
    def _serve(self) -> BoolArray:
        """Which purchases a feature needs (d, k)."""
        sets = Purchases.of(self.prices).sets
        lacking = (self.prices.needs.toarray() == 0).astype(np.float64)
        return np.asarray(lacking @ sets.T == 0)
