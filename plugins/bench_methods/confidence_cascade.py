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

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from bench_models.boosting import OnTrees, ensemble_of, prefix_chain
from bench_models.boosting import bench_warm_up as bench_warm_up
from bench_models.large_model import (
    bill_of,
    both,
    last_prediction,
    thresholds,
    where,
    whole_program,
)
from bench_models.nested_sets.routes import NestedBoosters, Route
from bench_models.path_of_models import PathOfModels
from bench_models.priced_boosting import CheapStarts
from bench_models.staged import MOST_POINTS, StagedModel
from bench_models.staged.exits import check_thresholds
from bench_models.states import Stored

from bench_core import (
    BudgetedLearner,
    Examples,
    Features,
    FitContext,
    Prediction,
    Prices,
    Task,
    UsageError,
    inside,
    param,
    provide_learners,
)
from bench_core.arrays import FloatArray
from bench_core.serving.gates import largest_probability

if TYPE_CHECKING:
    from bench_core.serving import Program

NOBODY = 0.0
"""A threshold that no probability reaches."""


@dataclass(frozen=True)
class ConfidenceCascade(OnTrees):
    """A cheap booster, and a large model for rows of low confidence."""

    name: ClassVar[str] = "confidence-cascade"
    numerics: ClassVar[tuple[str, ...]] = ("numpy", "cpu")
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

    def fit(self, train: Examples, valid: Examples, prices: Prices, context: FitContext) -> SentOn:
        """Find thresholds from the cells of ``train``; labels and ``valid`` are not used."""
        ensemble = ensemble_of(self.name, self.base, context, single=False)
        outputs, most = ensemble.outputs_count, ensemble.trees // ensemble.outputs_count
        sizes = np.geomspace(max(1, most), 1, self.prefixes + 1)[:-1]
        ends = outputs * np.unique(np.minimum(np.round(sizes), most)).astype(np.int64)
        cheap = prefix_chain(ensemble, ends.tolist(), prices, {}, all_points=True)
        share = train.weights / train.weights.sum()
        gates = []
        for prefix in cheap.predict_path(Features(train.X)):
            # a high gate score means low confidence
            found = thresholds(-confidence(prefix.scores), share, self.gates)
            gates.append([(-threshold, sent) for threshold, sent in found])
        context.progress(1, 1)
        return SentOn(cheap, gates, context.fitted(self.large), prices)


@dataclass(frozen=True, eq=False)
class SentOn(Stored):
    """Prefixes of a cheap model, followed by a large one.

    ``gates`` has (threshold, share of the training rows sent on) for each prefix. A row is sent on
    iff its largest class probability is below the threshold. Points: each gate of each prefix,
    ``{"trees": prefix, "sent": share}``, then the large model, ``{"trees": 0, "sent": 1.0}``.
    """

    cheap: StagedModel
    gates: Sequence[Sequence[tuple[float, float]]]
    large: Any
    prices: Prices

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per gate, then the large model's own."""
        alone, points = Features(features.X), iter(self._points)
        large = last_prediction(self.large, alone)
        names = ["path", *({"model"} & large.bills.keys())]
        for prefix, gates in zip(self.cheap.predict_path(alone), self.gates, strict=True):
            sure, kept = confidence(prefix.scores), {name: bill_of(prefix, name) for name in names}
            paid = {name: (both(bill_of(large, name), kept[name]), kept[name]) for name in names}
            for threshold, _ in gates:
                sent, scores = sure < threshold, prefix.scores.copy()
                scores[sent] = large.scores[sent]
                bills = {name: where(sent, *two) for name, two in paid.items()}
                yield Prediction(next(points), scores, bills)
        yield Prediction(next(points), large.scores, {name: bill_of(large, name) for name in names})

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The prefix, then the large model for rows below the threshold, for serving."""
        from bench_models.staged.program import place_of

        from bench_core.serving import joined

        place, gates = place_of(point, self._points), [g for own in self.gates for g in own]
        large = whole_program(
            self.large, self.prices.features, "confidence-cascade: its large model"
        )
        if place == len(gates):
            return large
        (prefix,) = (p for p in self.cheap.points if p.values["trees"] == point["trees"])
        cheap, threshold = self.cheap.program(prefix.values), gates[place][0]
        if threshold <= NOBODY:
            return cheap
        program, last = joined([cheap, large]), len(cheap.steps) - 1
        # the gate also passes rows at its value; here only rows below the threshold pass
        below = float(np.nextafter(threshold, -np.inf))
        decides = replace(program.steps[last], gate="class", value=below, then=last + 1)
        steps = [*program.steps[:last], decides, *program.steps[last + 1 :]]
        return replace(program, steps=steps, stops=cheap.stops)

    @property
    def _points(self) -> list[Mapping[str, int | float]]:
        points = zip(self.cheap.points, self.gates, strict=True)
        found = [{**p.values, "sent": sent} for p, gates in points for _, sent in gates]
        return [*found, {"trees": 0, "sent": 1.0}]


@dataclass(frozen=True)
class SelectionCascade:
    """Models on nested sets of features, evaluated in turn until one is confident."""

    name: ClassVar[str] = "selection-cascade"
    numerics: ClassVar[tuple[str, ...]] = ("numpy", "cpu")
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
        if not isinstance(base, PathOfModels) or isinstance(base, CheapStarts):
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


def confidence(scores: FloatArray) -> FloatArray:
    """Largest class probability (n,) of log-odds (n,) or scores (n, K)."""
    return largest_probability(scores[:, None] if scores.ndim == 1 else scores)


bench_learners = provide_learners(ConfidenceCascade, SelectionCascade, family="cascades")
