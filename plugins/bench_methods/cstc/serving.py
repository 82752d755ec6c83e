"""From a finished tree to the staged model that is served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core import Prices, Task
from bench_methods.cstc.finish import Finished, Predictor
from bench_methods.cstc.inputs import Inputs, per_label
from bench_methods.cstc.tree import NONE

if TYPE_CHECKING:
    from bench_models.staged import StagedModel


def staged(
    model: Finished, inputs: Inputs, prices: Prices, *, task: Task, facts: Mapping[str, Any]
) -> StagedModel:
    """Level by level first what its nodes predict, then where they send their rows::

        show 0 | gate 0 | show 1, show 2 | gate 1, gate 2 | show 3 ... 6

    A path point ends each group of shows: the tree pruned to that depth. Whatever a show stage
    evaluates its gate uses again at no cost. A terminal element at one side of a node is a show
    stage of its own. Scores are ``factor`` times the predictions.
    """
    from bench_models.staged import END, Gate, Point, Stage, StagedModel

    tree, shape, factor = model.tree, model.tree.shape, per_label(task)
    order, ends = _layout(model)
    number = {what: i for i, what in enumerate(order)}

    def stage(predictor: Predictor, **onward: Any) -> Stage:
        weights = factor * predictor.weights / inputs.scale
        used = np.flatnonzero(weights).astype(np.int64)
        return Stage(
            entries=used, weights=weights[used], bias=np.array([factor * predictor.bias]), **onward
        )

    stages = []
    for what in order:
        k = what.node
        if what.gate:
            above = np.nextafter(factor * tree.threshold[k], np.inf)  # strictly above passes
            then, otherwise = (number[_side(model, k, up)] for up in (True, False))
            router = Predictor(tree.weights[k], float(tree.bias[k]))
            gate = Gate("score", float(above))
            stages.append(stage(router, gate=gate, then=then, otherwise=otherwise))
        elif what.side is not None:
            stages.append(stage(model.sides[k, what.side]))
        else:
            onward = END if shape.is_leaf(k) else number[_Place(k, gate=True)]
            stages.append(stage(model.nodes[k], then=onward))
    points = [Point(end, {"levels": level + 1}) for level, end in enumerate(ends)]
    return StagedModel(stages, points, prices, inputs.ensemble, facts=dict(facts))


@dataclass(frozen=True, slots=True)
class _Place:
    """A stage: the gate of a node, or what a node or one of its sides predicts."""

    node: int
    gate: bool = False
    side: bool | None = None


def _side(model: Finished, k: int, up: bool) -> _Place:
    child = (model.tree.shape.upper if up else model.tree.shape.lower)[k]
    return _Place(k, side=up) if child == NONE else _Place(child)


def _layout(model: Finished) -> tuple[list[_Place], list[int]]:
    """The stages in order, and the number of the last show stage of each level."""
    order: list[_Place] = []
    ends = []
    group = [_Place(0)]
    while group:
        order += group
        ends.append(len(order) - 1)
        inner = [p.node for p in group if p.side is None and not model.tree.shape.is_leaf(p.node)]
        order += [_Place(k, gate=True) for k in inner]
        group = [_side(model, k, up) for k in inner for up in (True, False)]
    return order, ends
