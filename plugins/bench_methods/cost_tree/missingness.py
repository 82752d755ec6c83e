"""A tree that avoids features that are often missing; every node has an answer.

``ma-tree``: L. Stempfle, A. Matsson, N. Mwai, F. Johansson, "Prediction models that learn to avoid
missing values", ICML 2025 (MA-DT), as in the authors' package. A node is split on the feature and
cut of the highest

    score of the split - alpha (share of the node's rows in which the feature is missing)

and the node answers rows with a missing cell, and rows that cannot pay for the cell.

Departures
- Scores are as in ``cost-tree``, by default the information gain in bits over (c + 1)^w, with c
  the marginal price in units of the median price. With ``price_power`` = 0 it is the authors'
  ``info_gain``; their default is the Gini impurity.
- Rows with a missing cell stay at the node in training. They are not imputed.
- Operating points are the nested prunings of ``cost-tree``, by loss and price on the training rows,
  after reduced error pruning on validation rows. The authors prune by leaves.
- A row is answered by the deepest node that its purchases reach, and is charged the splits of the
  longest path.
- Only trees: the authors' forest, boosting and lasso with this penalty are not implemented.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from bench_models.dictionary import layout_of, sums
from bench_models.states import Stored

from bench_core import STOP, Evaluated, Prices, Purchases
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_methods.cost_tree.model import CostedTree

if TYPE_CHECKING:
    from bench_trees import Ensemble
    from bench_trees.inference import Layout

    from bench_core.serving import PolicyProgram


@dataclass(frozen=True, eq=False)
class NodePolicy(Stored):
    """Buys the feature of the node that a row has reached; leaves have ``feature`` (N,) -1."""

    nested: ClassVar[bool] = True

    leaves: Sequence[float]  # number in each pruning, rising
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
        """The policy of a tree and the splits (N,) of its prunings, rising."""
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
        """Evaluation of the longest path, without the tests for missing cells."""
        most = np.zeros(len(self.feature))
        for u in np.flatnonzero(self.feature >= 0)[::-1].tolist():  # children before parents
            own = np.isfinite(self.threshold[u]) * self.prices.multiplier[self.feature[u]]
            most[u] = own + max(most[self.left[u]], most[self.right[u]])
        return Evaluated(float(most[0]), float(most[0] > 0))

    def act(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray, stop: float
    ) -> IntArray:
        """The first missing purchase of each row's node, or ``STOP``, (n,)."""
        lacking = self._reached(cells, bought, self.leaves.index(stop), 5)
        return np.where(lacking < bought.shape[1], lacking, STOP)

    def predict(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """Log-odds or numbers (n,), or logarithms of the classes' shares (n, K)."""
        found = self.score[self._reached(cells, bought, len(self.leaves), 4)]
        return found[:, 0] if found.shape[1] == 1 else found

    def program(self, prices: Prices, stop: float) -> PolicyProgram:
        """A tree whose leaves are purchases or stopping, and a tree that answers."""
        from bench_core.serving import PolicyProgram, Sums

        k, answers = self._serve.shape[1], len(self.leaves)
        asked, nodes = self._unrolled(self.leaves.index(stop), 5), self._unrolled(answers, 4)
        values = Sums(asked, np.zeros(k + 1), np.eye(k + 1))
        answer = Sums(nodes, np.zeros(self.score.shape[1]), self.score)
        return PolicyProgram.of([values], answer, prices, np.arange(k), "class")

    def _unrolled(self, pruning: int, value: int) -> Ensemble:
        """The splits of a pruning as a tree. Columns from d on test if the purchases of a node were
        made. A leaf's value is its node (``value`` 4) or its missing purchase, k for none (5)."""
        from bench_trees import Ensemble

        d, k = self._serve.shape
        places: list[list[float]] = [[-1, 0.0, -1, -1, 0, k]]  # feature, threshold, left, right

        def split(place: int, feature: int, threshold: float) -> tuple[int, int]:
            low, high = len(places), len(places) + 1
            places[place][:4] = feature, threshold, low, high
            places.extend([-1, 0.0, -1, -1, *places[place][4:]] for _ in range(2))
            return low, high

        stack = [(0, frozenset[int]())]
        while stack:
            place, bought = stack.pop()
            node = int(places[place][4])
            if self.feature[node] < 0 or self.rank[node] > pruning:
                continue
            for purchase in np.flatnonzero(self._serve[self.feature[node]]).tolist():
                if purchase not in bought:
                    lacking, place = split(place, d + purchase, 0.5)
                    places[lacking][5] = purchase
                    bought |= {purchase}
            sides = split(place, self.feature[node], self.threshold[node])
            for side, below in zip(sides, (self.left[node], self.right[node]), strict=True):
                places[side][4] = int(below)
                stack.append((side, bought))
        table, names = np.array(places).T, ("feature", "threshold", "left", "right")
        nodes = dict(zip(names, table, strict=False))
        tree = SimpleNamespace(**nodes, value=table[value], missing_left=np.zeros(len(places)))
        return Ensemble.of_trees([tree], [0], np.zeros(1), d + k)

    def _reached(
        self, cells: Float32Array, bought: BoolArray, pruning: int, value: int
    ) -> IntArray:
        """Values (n,) of the leaves that rows reach with their purchases."""
        if (pruning, value) not in self._layouts:
            self._layouts[pruning, value] = layout_of(self._unrolled(pruning, value))
        X = np.hstack([cells, bought.astype(np.float32)])
        return sums(self._layouts[pruning, value], np.zeros(1), X)[:, 0].astype(np.int64)

    @cached_property
    def _layouts(self) -> dict[tuple[int, int], Layout]:
        return {}

    @cached_property
    def _serve(self) -> BoolArray:
        """Mask of the purchases that serve each feature, (d, k)."""
        sets = Purchases.of(self.prices).sets
        lacking = (self.prices.needs.toarray() == 0).astype(np.float64)
        return np.asarray(lacking @ sets.T == 0)
