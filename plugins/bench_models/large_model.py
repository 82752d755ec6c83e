"""Cheap models that send some rows to a large model by a gate.

At an operating point a gate scores every row. Rows with a score above the point's threshold go to
the large model, and the cheap model answers the others. A row pays for the cheap model or the gate
and for the model that answers, a shared sensor once. The last point sends everything to the large
model without a gate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core import Acquired, Bill, Features, Prediction, Prices, UsageError
from bench_core.arrays import BoolArray, FloatArray
from bench_core.serving.gates import largest_probability
from bench_models.calibration import Line
from bench_models.staged import StagedModel
from bench_models.staged.program import place_of
from bench_models.states import Stored

if TYPE_CHECKING:
    from bench_core.serving import Program

Cut = tuple[float, float]
"""A threshold, and the share of the training rows with a higher gate score."""


@dataclass(frozen=True, slots=True, eq=False)
class GatedModel(Stored):
    """A cheap model, its gate, and the thresholds of each of its points, by rising share.

    Without a ``gate`` a row's gate score is minus the largest class probability of the model.
    """

    model: StagedModel
    gate: StagedModel | None
    cuts: Sequence[Sequence[Cut]]

    def scored(self, features: Features) -> Iterator[tuple[Prediction, Prediction | None]]:
        """Predictions at each point, and the gate's."""
        gate = None if self.gate is None else last_prediction(self.gate, features)
        for kept in self.model.predict_path(features):
            yield kept, gate


@dataclass(frozen=True, eq=False)
class LargeModel(Stored):
    """Gated models in front of a ``large`` one.

    Points: each threshold of each point of a gated model, named as that point and ``{"sent":
    share}``, then ``everything``. Bills: ``path``; ``model`` if the large model has it; and, if it
    has a name, the ``ungated`` one, in which a row sent on pays only for the large model. The large
    model's bills are from its last point. The line ``calibration`` transforms its scores. ``facts``
    are JSON values from the learner, whose ``name`` begins messages.
    """

    name: str
    gated: Sequence[GatedModel]
    large: Any
    everything: Mapping[str, int | float]
    prices: Prices
    facts: Mapping[str, Any] = field(default_factory=dict)
    calibration: Sequence[float] | None = None
    ungated: str = ""

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per threshold, then the large model's own."""
        alone, points = Features(features.X), iter(self._points)
        # all rows at once, as the last point sends every row
        large = last_prediction(self.large, alone)
        if self.calibration is not None:
            large = replace(large, scores=Line(*self.calibration)(large.scores))
        names = ["path", *({"model"} & large.bills.keys())]
        for cheap in self.gated:
            for (kept, gate), cuts in zip(cheap.scored(alone), cheap.cuts, strict=True):
                g = -confidence(kept.scores) if gate is None else gate.scores
                # bills of rows sent on, and of the others
                paid = {name: _sides(name, kept, gate, large) for name in names}
                if self.ungated:
                    paid[self.ungated] = bill_of(large, self.ungated), paid["path"][1]
                for threshold, _ in cuts:
                    sent, scores = g > threshold, kept.scores.copy()
                    scores[sent] = large.scores[sent]
                    bills = {name: where(sent, a, b) for name, (a, b) in paid.items()}
                    yield Prediction(next(points), scores, bills)
        bills = {name: bill_of(large, name) for name in (*names, self.ungated) if name}
        yield Prediction(next(points), large.scores, bills)

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The cheap model, its gate, and the large model, for serving."""
        place = place_of(point, self._points)
        if place == len(self._routes):
            return self._served
        cheap, stage, (threshold, _) = self._routes[place]
        if cheap.gate is not None:
            return self._with_gate(cheap, threshold)
        from bench_core.serving import joined

        kept = cheap.model.program(cheap.model.points[stage].values)
        if threshold >= 0:  # no probability is below 0
            return kept
        # the gate also passes rows at its value; here only rows below the threshold pass
        value, end = float(np.nextafter(-threshold, -np.inf)), len(kept.steps)
        program = joined([kept, self._served])
        steps = [*program.steps]
        steps[end - 1] = replace(steps[end - 1], gate="class", value=value, then=end)
        return replace(program, steps=steps, stops=kept.stops)

    def _with_gate(self, cheap: GatedModel, threshold: float) -> Program:
        """The gate, then the cheap or the large model."""
        from bench_core.serving import joined

        d = self.prices.features
        if cheap not in self._joined:
            gate = whole_program(cheap.gate, d, f"{self.name}: its gate")
            kept = whole_program(cheap.model, d, f"{self.name}: its classifier")
            program = joined([gate, kept, self._served])
            self._joined[cheap] = program, len(gate.steps), len(kept.steps)
        # gate | kept | large: the gate's last step jumps to one of the others
        program, first, then = self._joined[cheap]
        value, steps = float(np.nextafter(threshold, np.inf)), [*program.steps]
        steps[first - 1] = replace(
            steps[first - 1], gate="score", value=value, then=first + then, otherwise=first
        )
        return replace(program, steps=steps)

    @cached_property
    def _routes(self) -> list[tuple[GatedModel, int, Cut]]:
        """The gated model, its point and the threshold of every point but the last."""
        return [(m, k, cut) for m in self.gated for k, cuts in enumerate(m.cuts) for cut in cuts]

    @property
    def _points(self) -> list[Mapping[str, int | float]]:
        named = [{**m.model.points[k].values, "sent": cut[1]} for m, k, cut in self._routes]
        return [*named, self.everything]

    @cached_property
    def _joined(self) -> dict[GatedModel, tuple[Program, int, int]]:
        """Programs at any threshold, and the numbers of steps of gate and cheap model."""
        return {}

    @cached_property
    def _served(self) -> Program:
        """The large model with calibrated scores."""
        from bench_core.serving import Finish

        program = whole_program(self.large, self.prices.features, f"{self.name}: its large model")
        if self.calibration is None:
            return program
        plain, line = Finish((0.0,) * program.outputs), self.calibration
        steps = [replace(s, finish=(s.finish or plain).lined(*line)) for s in program.steps]
        return replace(program, steps=steps)


def confidence(scores: FloatArray) -> FloatArray:
    """Largest class probability (n,) of log-odds (n,) or scores (n, K)."""
    return largest_probability(scores[:, None] if scores.ndim == 1 else scores)


def _sides(
    name: str, kept: Prediction, gate: Prediction | None, large: Prediction
) -> tuple[Bill, Bill]:
    """Bills of that name if the large model answers, and if the cheap one does."""
    cheap, first = bill_of(kept, name), bill_of(gate or kept, name)
    return both(bill_of(large, name), first), cheap if gate is None else both(first, cheap)


def thresholds(g: FloatArray, share: FloatArray, count: int) -> list[Cut]:
    """(threshold, share of rows with a higher g) by rising share, for gate scores ``g`` (n,).

    Threshold 0 is among them. ``count`` others send as near as possible to 1, 2, ... of ``count +
    1`` equal shares, each halfway between two neighbouring scores. Equal cuts are listed once. A
    cut that sends all rows is left out.
    """
    values, place = np.unique(g, return_inverse=True)  # rows with equal scores stay together
    mass = np.bincount(place, share, minlength=len(values))
    above = np.append(np.cumsum(mass[::-1])[::-1], 0.0)  # share of rows from value k on
    by_cut: dict[int, Cut] = {}
    for k in range(count):
        # equal shares between none and all
        wanted = (k + 1) / (count + 1)
        cut = int(np.argmin(np.abs(above - wanted)))
        if 0 < cut < len(values):
            low, high = map(float, values[cut - 1 : cut + 1])
            middle = low + (high - low) / 2
            by_cut[cut] = (middle if low <= middle < high else low, round(float(above[cut]), 6))
    cut = int(np.searchsorted(values, 0.0, side="right"))
    by_cut[cut] = (0.0, round(float(above[cut]), 6))
    # cut 0 sends all rows, as the last point of the path does
    by_cut.pop(0, None)
    by_share = {sent: (threshold, sent) for threshold, sent in by_cut.values()}
    return [by_share[sent] for sent in sorted(by_share)]


def both(one: Bill, other: Bill) -> Bill:
    """The union of two bills of n rows each: a sensor is paid once, evaluations add."""
    acquired = Acquired(one.acquired.bits | other.acquired.bits, one.acquired.sensors)
    return Bill(acquired, one.splits + other.splits, one.trees + other.trees)


def where(chosen: BoolArray, first: Bill, second: Bill) -> Bill:
    """The first bill's rows where ``chosen`` (n,), otherwise the second's."""
    bits = np.where(chosen[:, None], first.acquired.bits, second.acquired.bits)
    splits = np.where(chosen, first.splits, second.splits)
    trees = np.where(chosen, first.trees, second.trees)
    return Bill(Acquired(bits, first.acquired.sensors), splits, trees)


def bill_of(output: Prediction, name: str = "path") -> Bill:
    """The bill with that name, or the path's, with purchases (n, w)."""
    bill = output.bills.get(name, output.bills["path"])
    return replace(bill, acquired=bill.acquired.rows(len(output.scores)))


def last_prediction(model: Any, features: Features) -> Prediction:
    """The last point of a model's path. Raises ValueError where its path is empty."""
    last = deque[Prediction](model.predict_path(features), maxlen=1)
    if not last:
        raise ValueError(f"the path of {type(model).__name__} is empty")
    return replace(last[0], scores=np.asarray(last[0].scores, dtype=np.float64))


def whole_program(model: Any, features: int, name: str) -> Program:
    """A model at the last point of its path, for serving behind a gate.

    Raises UsageError, beginning with ``name``, where it cannot be served there.
    """
    from bench_core.serving import Exportable, Program

    if not isinstance(model, Exportable):
        raise UsageError(f"{name}, a {type(model).__name__}, cannot be exported")
    # an empty table suffices to learn the name of the last point
    nobody = Features(np.zeros((0, features), dtype=np.float32))
    program = model.program(last_prediction(model, nobody).point)
    if not isinstance(program, Program):
        raise UsageError(f"{name} is a policy and cannot be served behind a gate")
    rejected = "score" if program.rejected == "below" else program.rejected  # a row is alone
    program = replace(program, rejected=rejected)
    if program.in_queries:
        raise UsageError(f"{name} compares the documents of a query; choose another")
    return program
