"""The served model: cheap pairs in front of f0, and the thresholds of their gates.

At an operating point a pair's gate scores every row. Rows with g above the point's threshold go to
f0, the others to f1. A row pays for the gate and for the model that answers, a shared sensor once.
The last point sends everything to f0 without a gate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from bench_models.calibration import Line
from bench_models.large_model import bill_of, both, last_prediction, where, whole_program
from bench_models.staged import StagedModel
from bench_models.states import Stored

from bench_core import Features, Prediction, Prices

if TYPE_CHECKING:
    from bench_core.serving import Program

RELEASED = "adapt-released"


@dataclass(frozen=True, slots=True, eq=False)
class GatedPair(Stored):
    """A gate and a classifier on ``features`` features.

    ``gates``: (threshold, share of the training rows sent to f0), by rising share. A row is sent
    iff its gate score exceeds the threshold.
    """

    classifier: StagedModel
    gate: StagedModel
    features: int
    gates: Sequence[tuple[float, float]]


@dataclass(frozen=True, eq=False)
class AdaptModel(Stored):
    """Pairs in front of ``f0``.

    Points: each gate of each pair, ``{"features": k, "sent": share}``, then
    ``{"features": 0, "sent": 1.0}``, everything to f0. Bills: ``path``; ``model`` if f0 has it;
    ``adapt-released``, in which a row sent to f0 pays only for f0, not for the gate. f0's bills are
    from its last point. ``facts`` are JSON values from the learner. On ranking data the line
    ``calibration`` turns f0's scores into log-odds of relevance, at every point.
    """

    pairs: Sequence[GatedPair]
    f0: Any
    prices: Prices
    facts: Mapping[str, Any] = field(default_factory=dict)
    calibration: Sequence[float] | None = None

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per gate, then f0's own."""
        alone = Features(features.X)
        # all rows at once, as the last point sends every row
        f0 = last_prediction(self.f0, alone)
        if self.calibration is not None:
            f0 = replace(f0, scores=Line(*self.calibration)(f0.scores))
        names = ["path", *({"model"} & f0.bills.keys())]
        for pair in self.pairs:
            kept, gate = (last_prediction(m, alone) for m in (pair.classifier, pair.gate))
            # bills of rows sent to f0, and of the others
            paid = {
                name: tuple(both(bill_of(gate, name), bill_of(m, name)) for m in (f0, kept))
                for name in names
            }
            paid[RELEASED] = bill_of(f0, RELEASED), paid["path"][1]
            for threshold, share in pair.gates:
                # (n,), the routing of this point
                sent = gate.scores > threshold
                bills = {name: where(sent, *two) for name, two in paid.items()}
                yield Prediction(
                    {"features": pair.features, "sent": share},
                    np.where(sent, f0.scores, kept.scores),
                    bills,
                )
        bills = {name: bill_of(f0, name) for name in (*names, RELEASED)}
        yield Prediction({"features": 0, "sent": 1.0}, f0.scores, bills)

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The gate, then the classifier or f0, for serving."""
        from bench_models.staged.program import place_of

        gates = [(k, *gate) for k, pair in enumerate(self.pairs) for gate in pair.gates]
        known = [{"features": self.pairs[k].features, "sent": sent} for k, _, sent in gates]
        place = place_of(point, [*known, {"features": 0, "sent": 1.0}])
        if place == len(gates):
            return self._served_f0
        k, threshold, _ = gates[place]
        if k not in self._routes:
            d, pair = self.prices.features, self.pairs[k]
            gate = whole_program(pair.gate, d, "adapt: its gate")
            kept = whole_program(pair.classifier, d, "adapt: its classifier")
            self._routes[k] = _routed(gate, kept, self._served_f0), len(gate.steps) - 1
        program, decides = self._routes[k]
        steps = list(program.steps)
        steps[decides] = replace(steps[decides], value=float(np.nextafter(threshold, np.inf)))
        return replace(program, steps=steps)

    @cached_property
    def _routes(self) -> dict[int, tuple[Program, int]]:
        """Programs of pairs at any threshold, and the step that compares with it."""
        return {}

    @cached_property
    def _served_f0(self) -> Program:
        whole = whole_program(self.f0, self.prices.features, "adapt: its f0")
        return _calibrated(whole, *(self.calibration or (1.0, 0.0)))


def _calibrated(program: Program, slope: float, intercept: float) -> Program:
    """The program with linearly transformed scores."""
    from bench_core.serving import Finish

    if (slope, intercept) == (1.0, 0.0):
        return program
    plain = Finish((0.0,) * program.outputs)
    steps = [
        replace(step, finish=(step.finish or plain).lined(slope, intercept))
        for step in program.steps
    ]
    return replace(program, steps=steps)


def _routed(gate: Program, kept: Program, f0: Program) -> Program:
    """A program that sends rows to f0 by their gate score."""
    from bench_core.serving import joined

    # gate | kept | f0: the gate's last step jumps to one of the others
    first = len(gate.steps)
    program = joined([gate, kept, f0])
    decides = replace(
        program.steps[first - 1], gate="score", then=first + len(kept.steps), otherwise=first
    )
    steps = [*program.steps[: first - 1], decides, *program.steps[first:]]
    return replace(program, steps=steps)
