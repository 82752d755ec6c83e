"""The trees of another learner, cut into a chain of stages that rows may leave."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core import BudgetedLearner, Examples, Features, FitContext, Prices, UsageError
from bench_core.arrays import FloatArray
from bench_models.staged.model import StagedModel
from bench_models.staged.stages import END, Point, Stage

if TYPE_CHECKING:
    from bench_trees import Ensemble

_BLOCK = 8000


def ensemble_of(
    name: str, base: BudgetedLearner, context: FitContext, *, single: bool = True
) -> Ensemble:
    """The trees of ``base``, of one output where ``single``. ``name`` is who asks for them.

    Raises UsageError where it has none.
    """
    model = context.fitted(base)
    ensemble = getattr(model, "ensemble", None)
    if ensemble is None or (isinstance(model, StagedModel) and not model.adds_up):
        raise UsageError(
            f"{name}: base {base.name!r} has no trees that add up to its scores; "
            "choose gbrt, miser or cegb"
        )
    found: Ensemble = ensemble
    if single and found.outputs_count != 1:
        raise UsageError(f"{name}: base {base.name!r} has {found.outputs_count} outputs, not one")
    return found


def prefix_chain(
    ensemble: Ensemble,
    ends: Sequence[int],
    prices: Prices,
    facts: Mapping[str, Any],
    *,
    all_points: bool = False,
) -> StagedModel:
    """The ensemble as stages that carry, one per prefix of ``ends`` trees; the last is all.

    Operating points are the last stage or, with ``all_points``, every stage.
    """
    starts = [0, *ends[:-1]]
    outputs = ensemble.outputs_count
    stages = [
        Stage(
            entries=np.arange(start, end, dtype=np.int64),
            weights=np.ones(end - start),
            bias=ensemble.base if k == 0 else np.zeros(outputs),
            carry=k > 0,
            then=END if k == len(ends) - 1 else k + 1,
        )
        for k, (start, end) in enumerate(zip(starts, ends, strict=True))
    ]
    points = [Point(k, {"trees": int(end)}) for k, end in enumerate(ends)]
    reported = points if all_points else points[-1:]
    return StagedModel(stages, reported, prices, ensemble, facts=facts)


def partial_scores(chain: StagedModel, rows: Examples) -> Iterator[tuple[slice, FloatArray]]:
    """Scores (E, m, K) after every stage, block of m rows by block."""
    for start in range(0, len(rows), _BLOCK):
        here = slice(start, min(start + _BLOCK, len(rows)))
        walk = chain.stage_by_stage(Features(np.asarray(rows.X[here])))
        yield here, np.stack([scores for scores, _, _ in walk])
