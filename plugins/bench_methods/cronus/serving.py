"""From soft gates to the cascade that is served."""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from bench_core import Prices
from bench_methods.cronus.objective import Cascade

if TYPE_CHECKING:
    from bench_models.staged import StagedModel
    from bench_trees import Ensemble


def staged(
    cascade: Cascade,
    ensemble: Ensemble,
    prices: Prices,
    *,
    binary: bool,
    positive_weight: float,
    rejected: Literal["out", "score"],
    facts: Mapping[str, Any],
) -> StagedModel:
    """A chain of hard gates: a row goes on iff its stage score is at least the threshold.

    Vanished stages and trees without a weight are left out. Scores are ``f`` in units of the
    labels +1 and -1 for ranking. For binary tasks they are ``2 f - log(w+)``: with ``f`` the mean
    of labels weighted w+ : 1, the log-odds are ``2 artanh(f) - log(w+)``, of which this is the
    tangent at 0. Rejected rows score below all survivors of their query, or for binary tasks as
    the paper's prediction -1.
    """
    from bench_models.staged import END, Gate, Point, Stage, StagedModel

    vanished = set(cascade.vanished())
    live = [k for k in range(cascade.stages) if k not in vanished]
    scale, shift = (2.0, -log(positive_weight)) if binary else (1.0, 0.0)
    used = np.flatnonzero(cascade.weights[live].any(axis=0))
    stages = []
    for place, k in enumerate(live):
        weights = cascade.weights[k][used]
        entries = np.flatnonzero(weights).astype(np.int64)
        last = place == len(live) - 1
        # gates between live stages may still be open: minus infinity passes all
        bar = scale * float(cascade.threshold[k]) + shift
        stages.append(
            Stage(
                entries=entries,
                weights=scale * weights[entries],
                bias=np.array([scale * cascade.bias[k] + shift]),
                gate=Gate("always") if last or bar == -np.inf else Gate("score", bar),
                then=END if last else place + 1,
            )
        )
    out: Literal["below"] | float = -scale + shift if binary else "below"
    return StagedModel(
        stages=stages,
        points=[Point(len(stages) - 1, {"stages": len(stages)})],
        prices=prices,
        ensemble=ensemble.select(used),
        rejected="score" if rejected == "score" else out,
        facts=dict(facts),
    )
