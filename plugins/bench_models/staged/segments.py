"""Stages compiled for walking: segments that the same rows go through, and what the ways cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench_core import Prices
from bench_core.arrays import BitArray, BoolArray, Float32Array, FloatArray, IntArray
from bench_models.dictionary import sensor_bits
from bench_models.staged.stages import Stage, parents

if TYPE_CHECKING:
    from bench_trees import Ensemble
    from bench_trees.inference import Layout, Needs, Steps, Walked

_LONGEST = 34  # stages; bounds the buffers of a walk: 34 points of 8000 rows are about 20 MB


class StageTerms:
    """What one stage evaluates: its entries of non-zero weight over a dictionary of T trees, trees
    and columns numbered apart."""

    def __init__(self, stage: Stage, trees: int) -> None:
        entries = np.asarray(stage.entries, dtype=np.int64)
        weights = np.asarray(stage.weights, dtype=np.float64)
        tree = (weights != 0) & (entries < trees)
        column = (weights != 0) & (entries >= trees)
        self.trees, self.tree_weights = entries[tree], weights[tree]
        self.columns, self.column_weights = entries[column] - trees, weights[column]


class StageCosts:
    """Costs of the way to each of S stages; all count the stages before it too."""

    def __init__(
        self,
        stages: Sequence[Stage],
        uses: Sequence[StageTerms],
        ensemble: Ensemble,
        prices: Prices,
    ) -> None:
        from bench_trees.inference import lay_out

        tree_bits = sensor_bits(ensemble, prices)
        seen = np.zeros((len(stages), ensemble.trees), dtype=bool)
        # (S, w) sensors of every tree and column on the way
        self.bits = np.zeros((len(stages), tree_bits.shape[1]), dtype=np.uint64)
        # by stage, for each of its trees: not evaluated before on the way
        self.fresh: list[BoolArray] = []
        for k, parent in enumerate(parents(stages)):
            if parent >= 0:
                seen[k], self.bits[k] = seen[parent], self.bits[parent]
            trees = uses[k].trees
            first = np.zeros(len(trees), dtype=bool)
            first[np.unique(trees, return_index=True)[1]] = True
            self.fresh.append(first & ~seen[k, trees])
            seen[k, trees] = True
            self.bits[k] |= np.bitwise_or.reduce(tree_bits[trees], axis=0, initial=0)
            self.bits[k] |= prices.acquired(uses[k].columns).bits[0]
        # (S,) trees with a split, and the sum over trees of multipliers on their longest paths
        self.trees = (seen & (np.diff(ensemble.start) > 1)).sum(axis=1).astype(float)
        paths = lay_out(ensemble, _needs(prices)).paths()[1] if ensemble.trees else np.zeros(0)
        self.splits: FloatArray = (seen * paths).sum(axis=1)


def _needs(prices: Prices) -> Needs:
    from bench_trees.inference import Needs

    return Needs(prices.start, prices.needed, prices.multiplier, prices.sensors)


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Stages ``first..stop - 1``; no gate before the last. One that reads columns is alone."""

    first: int
    stop: int
    layout: Layout
    steps: Steps
    use: StageTerms  # of the last stage: its columns
    column_bits: BitArray  # (w,)

    def run(self, X: Float32Array, rows: IntArray | None, before: Walked) -> Walked:
        """Walk ``rows`` of X (None: all), whose state is ``before``."""
        from bench_trees.inference import add_columns, walk

        done = walk(self.layout, self.steps, X, before, rows)
        if len(self.use.columns):
            picked = np.arange(len(X), dtype=np.int64) if rows is None else rows
            use = self.use
            add_columns(done.scores[-1], X, picked, use.columns, use.column_weights)
            done.bits[-1] |= self.column_bits
        return done


def segments(
    stages: Sequence[Stage],
    uses: Sequence[StageTerms],
    costs: StageCosts,
    ensemble: Ensemble,
    prices: Prices,
) -> list[Segment]:
    """Cut the stages into segments."""
    from bench_trees.inference import Steps, lay_out

    needs, found = _needs(prices), []
    for first, stop in _cuts(stages, uses):
        these, part = uses[first:stop], stages[first:stop]
        steps = Steps(
            ends=np.cumsum([len(u.trees) for u in these]).astype(np.int64),
            bias=np.array([s.bias for s in part], dtype=np.float64),
            carry=np.array([s.carry for s in part], dtype=np.bool_),
        )
        layout = lay_out(
            ensemble,
            needs,
            np.concatenate([u.trees for u in these]),
            np.concatenate([u.tree_weights for u in these]),
            np.concatenate(costs.fresh[first:stop]),
        )
        bits = prices.acquired(these[-1].columns).bits[0]
        found.append(Segment(first, stop, layout, steps, these[-1], bits))
    return found


def _cuts(stages: Sequence[Stage], uses: Sequence[StageTerms]) -> list[tuple[int, int]]:
    cuts, first = [], 0
    for k, stage in enumerate(stages):
        straight = stage.bar is None and stage.then == k + 1
        columns = any(len(u.columns) for u in uses[k : k + 2])
        if not straight or columns or k + 1 - first == _LONGEST:
            cuts.append((first, k + 1))
            first = k + 1
    return cuts
