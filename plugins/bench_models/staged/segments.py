"""Segments: stages that the same rows go through one after the other, compiled for one walk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bench_core import Prices
from bench_core.arrays import BitArray, Float32Array, FloatArray, IntArray
from bench_models.staged.stage_costs import StageCosts, StageTerms
from bench_models.staged.stages import Stage

if TYPE_CHECKING:
    from bench_trees import Ensemble
    from bench_trees.kernels.records import Layout, Steps, Walked

_LONGEST = 16  # stages; bounds the buffers of a walk: 16 points of 8000 rows are about 10 MB


@dataclass(frozen=True, slots=True, eq=False)
class Segment:
    """Stages ``first..stop - 1``; no gate before the last. One that reads columns is alone."""

    first: int
    stop: int
    layout: Layout
    steps: Steps
    use: StageTerms  # of the last stage: its columns
    column_bits: BitArray  # (w,)

    def run(self, X: Float32Array, rows: IntArray | None, before: Walked, threads: int) -> Walked:
        """Walk ``rows`` of X (None: all), whose state is ``before``."""
        from bench_trees.inference import add_columns, walk

        done = walk(self.layout, self.steps, X, before, rows, threads)
        if len(self.use.columns):
            picked = np.arange(len(X), dtype=np.int64) if rows is None else rows
            use = self.use
            add_columns(
                done.scores[-1], X, picked, use.columns, use.column_outputs, use.column_weights
            )
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
    from bench_trees.inference import Needs, lay_out
    from bench_trees.kernels.records import Steps

    needs = Needs(prices.start, prices.needed, prices.multiplier, prices.sensors)
    found = []
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
        straight = stage.gate.kind == "always" and stage.then == k + 1
        columns = any(len(u.columns) for u in uses[k : k + 2])
        if not straight or columns or k + 1 - first == _LONGEST:
            cuts.append((first, k + 1))
            first = k + 1
    return cuts


def no_trees(outputs: int, features: int) -> Ensemble:
    """The dictionary of a model of raw columns only."""
    from bench_trees import Ensemble

    ints, bools = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.bool_)
    none: FloatArray = np.zeros(0)
    return Ensemble(
        start=np.zeros(1, dtype=np.int32),
        feature=ints,
        threshold=np.zeros(0, dtype=np.float32),
        left=ints,
        right=ints,
        missing_left=bools,
        value=none,
        output=ints,
        base=np.zeros(outputs),
        features=features,
    )
