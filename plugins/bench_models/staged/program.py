"""Stages as the steps of a program for serving."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core import Prices, UsageError
from bench_core.serving import END, REJECT, Columns, Program, Step, Stop, Trees, compact
from bench_models.staged.segments import StageCosts, StageTerms
from bench_models.staged.stages import Stage

if TYPE_CHECKING:
    from bench_trees import Ensemble


def place_of(point: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> int:
    """Where a point stands on a path. Raises UsageError where it does not."""
    for place, other in enumerate(points):
        if dict(other) == dict(point):
            return place
    raise UsageError(f"the model has no operating point {dict(point)}")


def steps_of(stages: Sequence[Stage], trees: Ensemble, prices: Prices, last: int) -> list[Step]:
    """Stages ``0..last`` over ``trees``; the gate of the last one is not applied."""
    uses = [StageTerms(stage, trees.trees) for stage in stages]
    costs = StageCosts(stages, uses, trees, prices)

    def later(onward: int, ended: int) -> int:
        return ended if onward == END else onward if onward <= last else END

    steps = []
    for k, (stage, use) in enumerate(zip(stages[: last + 1], uses, strict=False)):
        gated = k < last and stage.bar is not None
        step = Step(
            trees=use.trees,
            weights=use.tree_weights,
            fresh=costs.fresh[k],
            bias=np.asarray(stage.bias, dtype=np.float64),
            columns=Columns.raw(
                use.columns, np.zeros(len(use.columns), np.int64), use.column_weights
            ),
            carry=stage.carry,
            gate="score" if gated else "always",
            value=stage.bar if gated and stage.bar is not None else 0.0,
            then=later(stage.then, END),
            otherwise=later(stage.otherwise, REJECT) if gated else END,
        )
        steps.append(step)
    return steps


def program_of(
    trees: Ensemble,
    prices: Prices,
    steps: Sequence[Step],
    stops: Sequence[Stop],
    rejected: str | float,
) -> Program:
    """Steps over trees; a row that buys nothing has the first one's constant for an answer."""
    return compact(
        Program(
            outputs=len(steps[0].bias),
            steps=steps,
            trees=Trees.joined([trees]),
            multiplier=prices.multiplier,
            stops=stops,
            rejected=rejected,
            nothing=steps[0].bias,
        )
    )
