"""The learner ``budget-rf``; see the docstring of the package."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from bench_models.boosting import BINS, RELEVANT, OnEngine, binned, chain
from bench_models.tree_average import TreeAverage
from numpy.typing import NDArray

from bench_core import Acquired, Examples, FitContext, InputError, Prices, Task, log, param
from bench_core.arrays import FloatArray, Int32Array, IntArray
from bench_methods.budget_forest.forest import classifying

if TYPE_CHECKING:
    from bench_trees import Bins, Ensemble

Counted = tuple["Ensemble", FloatArray]
"""A tree, and the training rows of each class in its nodes (nodes, K)."""


@dataclass(frozen=True)
class BudgetRF(OnEngine):
    """Random forest whose splits weigh the price of a feature against the gain in purity."""

    name: ClassVar[str] = "budget-rf"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.MULTICLASS, Task.RANKING})

    trees: int = param(40, "most trees; their number is an operating point", least=1)
    alpha: float = param(
        0.0, "class counts up to this add no impurity: trees stop earlier", least=0
    )
    budget: float | None = param(
        None,
        "stop before the tree that makes validation rows cost more; a share of all features' price",
        least=0,
    )
    significance: float = param(
        0.05,
        "significance level of a cut; features with significant cuts take precedence; "
        "1: no test, as printed",
        above=0,
        most=1,
        search=log(0.01, 1),
    )
    depth: int | None = param(None, "most split levels of a tree, none = no limit", least=1)
    min_rows: int = param(
        3,
        "least rows (copies counted) on each side of a split; 1: as printed",
        least=1,
        search=log(1, 30),
    )
    relevant_grade: int = param(1, RELEVANT)
    max_bins: int = param(255, BINS, least=2, most=255)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> TreeAverage:
        """Grow trees on bootstrap samples of ``train``; only ``budget`` uses ``valid``."""
        from bench_trees import Ensemble

        if len(train) == 0:
            raise InputError(f"{self.name}: there are no training rows")
        classes = max(context.classes, 2)
        wanted = train.y >= self.relevant_grade if context.task == Task.RANKING else train.y
        label = np.asarray(wanted, dtype=np.int32)
        if label.min() < 0 or label.max() >= classes:  # compiled code indexes by label, unchecked
            raise InputError(f"{self.name}: training labels must be classes 0 to {classes - 1}")
        bins, codes = binned(train, self.max_bins, context)
        grower = _Grower(self, bins, np.asarray(codes), label, classes, prices)
        kept = []
        for tree in self._affordable(self._grown(grower, train, context), valid, prices):
            kept.append(tree)
            context.progress(len(kept), self.trees)
        without_a_split = [] if kept else [grower.tree(np.ones(len(train), np.int64), depth=0)]
        forest, counts = zip(*(kept or without_a_split), strict=True)
        trees = Ensemble.concat(forest)
        facts = {"trees": len(kept), "nodes": trees.nodes}
        return classifying(trees, np.concatenate(counts), prices, facts)

    def _grown(self, grower: _Grower, train: Examples, context: FitContext) -> Iterator[Counted]:
        """Yield the trees in order, ``threads`` at a time, each with its own random numbers."""

        def tree(number: int) -> Counted:
            return grower.tree(
                bag(np.random.default_rng([context.seed, number]), train), self.depth
            )

        with ThreadPoolExecutor(context.threads) as pool:
            for first in range(0, self.trees, context.threads):
                yield from pool.map(tree, range(first, min(self.trees, first + context.threads)))

    def _affordable(
        self, trees: Iterator[Counted], valid: Examples, prices: Prices
    ) -> Iterator[Counted]:
        """Yield trees until ``valid`` rows would pay more than ``budget``, a share of the price of
        all features."""
        if self.budget is None or prices.everything == 0 or len(valid) == 0:
            yield from trees
            return
        # purchases of the rows for the trees so far
        bits: Any = 0
        for tree, counts in trees:
            *_, walked = chain(tree, prices, {}).stage_by_stage(valid.features)
            bits = bits | walked.bits
            cost = Acquired(bits, prices.sensors).cost(prices.sensor)
            if np.average(cost, weights=valid.weights) > self.budget * prices.everything:
                return
            yield tree, counts


@dataclass(frozen=True)
class _Grower:
    """Inputs shared by all trees of a forest."""

    learner: BudgetRF
    bins: Bins
    codes: NDArray[np.uint8]
    label: Int32Array
    classes: int
    prices: Prices

    def tree(self, copies: IntArray, depth: int | None) -> Counted:
        """Grow the tree of one bag, given the ``copies`` (n,) of each row."""
        from bench_trees import Ensemble

        from bench_methods.budget_forest.kernels import grow

        rows = np.flatnonzero(copies).astype(np.int32)
        bag = rows, self.label[rows], copies[rows].astype(np.int32), np.zeros(0)
        # a tree of n leaves has 2 n - 1 nodes
        room = 2 * len(rows)
        if depth is not None and depth < 31:
            room = min(room, 2 ** (depth + 1))
        feature, cut, left, right = (np.empty(room, np.int32) for _ in range(4))
        missing_left = np.empty(room, np.bool_)
        counts = np.empty((room, self.classes), np.int64)
        unit = self.prices.everything or 1.0
        used = grow(
            self.codes,
            self.bins.counts,
            bag,
            self.prices.feature_price() / unit,
            float(self.learner.alpha),
            -1 if depth is None else depth,
            self.learner.min_rows,
            least_statistics(self.learner.significance, self.bins.features, self.classes),
            (feature, cut, missing_left, left, right),
            counts,
        )
        grown = SimpleNamespace(
            feature=feature[:used],
            threshold=self.bins.threshold(feature[:used], cut[:used]),
            left=left[:used],
            right=right[:used],
            missing_left=missing_left[:used],
            value=np.zeros(used),
        )
        trees = Ensemble.of_trees([grown], [0], np.zeros(1), self.bins.features)
        return trees, counts[:used].astype(np.float64)


def least_statistics(significance: float, features: int, classes: int) -> FloatArray:
    """Critical likelihood ratio statistics (K,), indexed by the number of classes minus one.

    Cuts of pure noise on any of the features reach them with probability ``significance`` at most.
    Twice the quantile of chi squared: a bootstrap sample varies around the training rows as much
    as these vary around the population. All pass at 1.
    """
    from scipy.special import chdtri

    if significance == 1:
        return np.full(classes, -np.inf)
    quantile = chdtri(np.arange(1, classes), significance / features)
    return np.concatenate([[0.0], 2 * np.asarray(quantile, dtype=np.float64)])


def bag(rng: np.random.Generator, train: Examples) -> IntArray:
    """Multiplicity of each row (n,) in a bootstrap sample of all copies."""
    n, m = len(train), train.multiplicity
    if m is None:
        return np.bincount(rng.integers(0, n, n), minlength=n)
    owner = np.cumsum(m)
    drawn = np.searchsorted(owner, rng.integers(0, owner[-1], owner[-1]), side="right")
    return np.bincount(drawn, minlength=n)
