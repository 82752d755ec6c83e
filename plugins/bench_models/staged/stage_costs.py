"""Stages as steps of a program, and the most that the routes through them cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bench_core import Prices
from bench_core.arrays import FloatArray
from bench_core.serving import REJECT, Step, WeightedColumns
from bench_models.dictionary import sensor_bits
from bench_models.scaling import Scaling
from bench_models.staged.stages import END, Stage, parents

if TYPE_CHECKING:
    from bench_trees import Ensemble


class StageCosts:
    """The ``steps`` of S stages, and costs of the route to each, earlier stages included."""

    def __init__(
        self, stages: Sequence[Stage], ensemble: Ensemble, scaling: Scaling, prices: Prices
    ) -> None:
        from bench_trees.inference import Needs, lay_out

        tree_bits, self.steps = sensor_bits(ensemble, prices), list[Step]()
        seen = np.zeros((len(stages), ensemble.trees), dtype=bool)
        # (S, w) sensors of every tree and column on the route
        self.bits = np.zeros((len(stages), tree_bits.shape[1]), dtype=np.uint64)
        for k, (stage, parent) in enumerate(zip(stages, parents(stages), strict=True)):
            if parent >= 0:
                seen[k], self.bits[k] = seen[parent], self.bits[parent]
            step = _step(stage, seen[k], scaling)
            seen[k, step.trees] = True
            self.bits[k] |= np.bitwise_or.reduce(tree_bits[step.trees], axis=0, initial=0)
            self.bits[k] |= prices.acquired(step.columns.feature).bits[0]
            self.steps.append(step)
        # (S,) trees with a split, and the sum over trees of multipliers on their longest paths
        self.trees = (seen & (np.diff(ensemble.start) > 1)).sum(axis=1).astype(float)
        needs = Needs(prices.start, prices.needed, prices.multiplier, prices.sensors)
        paths = lay_out(ensemble, needs).paths()[1] if ensemble.trees else np.zeros(0)
        self.splits: FloatArray = (seen * paths).sum(axis=1)


def _step(stage: Stage, seen: FloatArray, scaling: Scaling) -> Step:
    """A stage as a step, where trees (T,) were ``seen`` earlier on the route."""
    entries = np.asarray(stage.entries, dtype=np.int64)
    weights = np.asarray(stage.weights, dtype=np.float64)
    tree, column = (weights != 0) & (entries < len(seen)), (weights != 0) & (entries >= len(seen))
    trees, columns = entries[tree], entries[column] - len(seen)
    first = np.zeros(len(trees), dtype=bool)
    first[np.unique(trees, return_index=True)[1]] = True
    gated = stage.bar is not None
    return Step(
        trees=trees,
        weights=weights[tree],
        fresh=first & ~seen[trees],
        bias=np.asarray(stage.bias, dtype=np.float64),
        columns=WeightedColumns(
            feature=columns,
            output=np.zeros(len(columns), np.int64),
            weight=weights[column],
            mean=scaling.mean[columns],
            factor=scaling.factor[columns],
        ),
        carry=stage.carry,
        gate="score" if gated else "always",
        value=stage.bar or 0.0,
        then=stage.then,
        otherwise=REJECT if gated and stage.otherwise == END else stage.otherwise,
    )
