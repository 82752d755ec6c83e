"""What the way to each stage costs under the ``model`` accounting, and who pays first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench_core import Prices
from bench_core.arrays import BitArray, BoolArray, FloatArray, IntArray
from bench_models.staged.stages import Stage, parents

if TYPE_CHECKING:
    from bench_trees import Ensemble


@dataclass(frozen=True, slots=True, eq=False)
class StageTerms:
    """What one stage evaluates: its dictionary entries of non-zero weight."""

    trees: IntArray
    tree_weights: FloatArray
    columns: IntArray
    column_weights: FloatArray
    column_outputs: IntArray

    @classmethod
    def of(cls, stage: Stage, trees: int) -> StageTerms:
        """Split a stage's entries over a dictionary of ``trees`` trees."""
        entries = np.asarray(stage.entries, dtype=np.int64)
        weights = np.asarray(stage.weights, dtype=np.float64)
        into = np.asarray(stage.into, dtype=np.int64)
        tree = (weights != 0) & (entries < trees)
        column = (weights != 0) & (entries >= trees)
        return cls(
            entries[tree], weights[tree], entries[column] - trees, weights[column], into[column]
        )


@dataclass(frozen=True, slots=True, eq=False)
class StageCosts:
    """Costs of the way to each of S stages; all count the stages before it too.

    ``bits`` (S, w): the sensors of every tree and column on the way. ``trees`` (S,): the trees
    with a split. ``splits`` (S,): the sum over trees of their longest path. ``fresh``: for each
    stage and tree of it whether the tree was not evaluated before on the way.
    """

    bits: BitArray
    trees: FloatArray
    splits: FloatArray
    fresh: list[BoolArray]

    @classmethod
    def of(
        cls, stages: Sequence[Stage], uses: Sequence[StageTerms], ensemble: Ensemble, prices: Prices
    ) -> StageCosts:
        """Add up along every way."""
        tree_bits = _tree_sensors(ensemble, prices)
        seen = np.zeros((len(stages), ensemble.trees), dtype=bool)
        bits = np.zeros((len(stages), tree_bits.shape[1]), dtype=np.uint64)
        fresh = []
        for k, parent in enumerate(parents(stages)):
            if parent >= 0:
                seen[k], bits[k] = seen[parent], bits[parent]
            trees = uses[k].trees
            first = np.zeros(len(trees), dtype=bool)
            first[np.unique(trees, return_index=True)[1]] = True
            fresh.append(first & ~seen[k, trees])
            seen[k, trees] = True
            bits[k] |= np.bitwise_or.reduce(tree_bits[trees], axis=0, initial=0)
            bits[k] |= prices.acquired(uses[k].columns).bits[0]
        splitting = np.diff(ensemble.start) > 1
        longest = _longest_paths(ensemble, prices.multiplier)
        return cls(
            bits, (seen & splitting).sum(axis=1).astype(float), (seen * longest).sum(axis=1), fresh
        )


def _tree_sensors(ensemble: Ensemble, prices: Prices) -> BitArray:
    """Which sensors each tree needs in all, packed (T, w)."""
    tested = np.zeros((ensemble.trees, ensemble.features), dtype=bool)
    owner, inner = (
        np.repeat(np.arange(ensemble.trees), np.diff(ensemble.start)),
        ensemble.feature >= 0,
    )
    tested[owner[inner], ensemble.feature[inner]] = True
    return prices.acquired(tested).bits


def _longest_paths(ensemble: Ensemble, multiplier: FloatArray) -> FloatArray:
    """The largest sum of multipliers on a path of each tree, (T,)."""
    if ensemble.trees == 0:
        return np.zeros(0)
    from bench_trees.inference import Needs, lay_out

    plain = Needs.plain(ensemble.features)
    layout = lay_out(ensemble, Needs(plain.start, plain.needed, multiplier, plain.sensors))
    longest: FloatArray = np.maximum.reduceat(layout.splits, layout.table[:-1])
    return longest
