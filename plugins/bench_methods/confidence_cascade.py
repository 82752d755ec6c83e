"""Cascades of existing models by confidence: the practitioner's default, in two forms.

Without any method for test-time cost one would evaluate a cheap model first, and a larger one only
if the cheap one is not confident. Confidence is the largest class probability p, which for two
classes rises with |log-odds|. No gate is learned.

``confidence-cascade`` puts prefixes of a cost-aware booster (``base``) before a large model.
With a prefix f1, the large model f0 and a threshold t

    f(x) = f1(x)  if p(f1(x)) > t,  else f0(x)

An operating point is a prefix and a threshold. The thresholds of a prefix send about 1, 2, ... of
``gates + 1`` equal shares of the training rows. "sent 0" is the prefix alone, and the last point
is the large model alone.

``selection-cascade`` evaluates models on nested sets of features, one after the other, until one is
confident. The models are from ``forward-selection`` or another learner with a model per set. An
operating point is the largest set allowed and one threshold for all models. Without a threshold it
is the base's own point.

A row pays for all models evaluated on it, each sensor once. Both learners need classes: models of
grades and numbers have no probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from bench_models.boosting import OnEngine, OnTrees, ensemble_of, prefix_chain
from bench_models.large_model import GatedModel, LargeModel, confidence, thresholds
from bench_models.nested_sets.routes import NestedBoosters, Route
from bench_models.path_of_models import PathOfModels
from bench_models.staged import MOST_POINTS
from bench_models.staged.exits import check_thresholds

from bench_core import (
    BudgetedLearner,
    Examples,
    Features,
    FitContext,
    Prices,
    Task,
    UsageError,
    inside,
    param,
    provide_learners,
)

if TYPE_CHECKING:
    pass

NOBODY = 0.0
"""A threshold that no probability reaches."""


@dataclass(frozen=True)
class ConfidenceCascade(OnTrees):
    """A cheap booster, and a large model for rows of low confidence."""

    name: ClassVar[str] = "confidence-cascade"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.MULTICLASS})
    adds_up: ClassVar[bool] = False

    base: BudgetedLearner = param(
        "cegb", "learner whose boosted trees are the cheap model", search=inside()
    )
    large: BudgetedLearner = param("gbrt", "large model for rows of low confidence")
    prefixes: int = param(
        8, "prefixes of the base; numbers of trees grow by a constant factor", least=1
    )
    gates: int = param(11, "thresholds of each prefix", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prefixes * (self.gates + 1) >= MOST_POINTS:
            raise ValueError(f"prefixes x (gates + 1) must be below {MOST_POINTS}")

    def needs(self) -> tuple[BudgetedLearner, ...]:
        """The cheap trees and the large model."""
        return (*super().needs(), self.large)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> LargeModel:
        """Find thresholds from the cells of ``train``; labels and ``valid`` are not used."""
        ensemble = ensemble_of(self.name, self.base, context, single=False)
        outputs, most = ensemble.outputs_count, ensemble.trees // ensemble.outputs_count
        sizes = np.geomspace(max(1, most), 1, self.prefixes + 1)[:-1]
        ends = outputs * np.unique(np.minimum(np.round(sizes), most)).astype(np.int64)
        cheap = prefix_chain(ensemble, ends.tolist(), prices, {}, all_points=True)
        share = train.weights / train.weights.sum()
        gates = [
            # a high gate score means low confidence
            thresholds(-confidence(prefix.scores), share, self.gates)
            for prefix in cheap.predict_path(Features(train.X))
        ]
        context.progress(1, 1)
        large, everything = context.fitted(self.large), {"trees": 0, "sent": 1.0}
        return LargeModel(self.name, [GatedModel(cheap, None, gates)], large, everything, prices)


@dataclass(frozen=True)
class SelectionCascade(OnEngine):
    """Models on nested sets of features, evaluated in turn until one is confident."""

    name: ClassVar[str] = "selection-cascade"
    tasks: ClassVar[frozenset[Task]] = ConfidenceCascade.tasks
    adds_up: ClassVar[bool] = False

    base: BudgetedLearner = param(
        "forward-selection", "learner with a model per set of features", search=inside()
    )
    thresholds: tuple[float, ...] = param(
        (0.6, 0.75, 0.85, 0.9, 0.95, 0.98, 0.995),
        "a row stops once its largest class probability exceeds the threshold",
        least=0,
        most=1,
    )

    def __post_init__(self) -> None:
        check_thresholds(self.thresholds)

    def needs(self) -> tuple[BudgetedLearner, ...]:
        """The learner of the models."""
        return (self.base,)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> NestedBoosters:
        """Chain the base's models; neither ``train`` nor ``valid`` is used."""
        from bench_trees import Ensemble

        base = context.fitted(self.base)
        if not isinstance(base, PathOfModels):
            raise UsageError(
                f"{self.name}: base {self.base.name!r} has no models on sets of features; "
                "choose forward-selection or greedy-order"
            )
        names = [model.points[-1].values for model in base.models]
        parts = [model.dictionary for model in base.models]
        start = np.cumsum([0, *(part.trees for part in parts)])
        useful = [t for t in self.thresholds if t * max(2, parts[0].outputs_count) > 1]
        # skip the constant of a base without free features
        first = 1 if parts[0].trees == 0 and len(parts) > 1 else 0
        points = len(parts) + len(useful) * (len(parts) - 1 - first)
        if points > MOST_POINTS:
            raise UsageError(
                f"{self.name}: {len(parts)} sets of features and {len(useful)} thresholds make "
                f"{points} points, at most {MOST_POINTS}; give fewer thresholds or sets"
            )
        chain = range(first, len(parts))
        settings = [(k, t) for k in chain[1:] for t in useful]
        exits = [[t if i < k else NOBODY for i in chain[:-1]] for k, t in settings]
        named = [{**names[k], "threshold": t} for k, t in settings]
        routes = [Route(list(chain), values=exits, points=named)] if settings else []
        routes += [Route([k], full=name) for k, name in enumerate(names)]
        context.progress(1, 1)
        ones = np.ones(len(parts), dtype=np.int64)
        return NestedBoosters(Ensemble.concat(parts), start, ones, prices, routes)


bench_learners = provide_learners(ConfidenceCascade, SelectionCascade, family="cascades")
