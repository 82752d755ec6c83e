"""The model that is served, cheap pairs in front of f0, and the thresholds of their gates.

At an operating point a pair's gate scores every row; rows with g above the point's threshold go to
f0, the others to f1. So a row pays for the gate and for the model that answers, a shared sensor
once. The last point sends everything to f0 without a gate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from bench_models.calibration import Line
from bench_models.staged import StagedModel
from bench_models.states import Stored

from bench_core import Acquired, Bill, Features, Prediction, Prices, UsageError
from bench_core.arrays import BitArray, BoolArray, FloatArray
from bench_methods.adapt.q_step import last_prediction

if TYPE_CHECKING:
    from bench_core.serving import Program

RELEASED = "adapt-released"
ROW_GATES = ("always", "score", "class")


@dataclass(frozen=True, slots=True, eq=False)
class GatedPair(Stored):
    """A gate and a classifier on ``features`` features.

    ``gates``: (threshold, share of the training rows that it sends), by rising share. A row is
    sent iff its gate score exceeds the threshold.
    """

    classifier: StagedModel
    gate: StagedModel
    features: int
    gates: Sequence[tuple[float, float]]


def thresholds(g: FloatArray, share: FloatArray, count: int) -> list[tuple[float, float]]:
    """(threshold, share of rows with a higher g) by rising share, for gate scores ``g`` (n,).

    Threshold 0 is among them; ``count`` others send as near as possible to 1, 2, ...
    of ``count + 1`` equal shares, each halfway between two neighbouring scores. Equal ways to cut
    the rows are listed once, and one that sends all rows is left out.
    """
    values, place = np.unique(g, return_inverse=True)  # rows with equal scores cannot be told apart
    mass = np.bincount(place, share, minlength=len(values))
    above = np.append(np.cumsum(mass[::-1])[::-1], 0.0)  # share of rows from value k on
    by_cut: dict[int, tuple[float, float]] = {}
    for k in range(count):
        # equal shares between nobody and everybody
        wanted = (k + 1) / (count + 1)
        cut = int(np.argmin(np.abs(above - wanted)))
        if 0 < cut < len(values):
            low, high = map(float, values[cut - 1 : cut + 1])
            middle = low + (high - low) / 2
            by_cut[cut] = (middle if low <= middle < high else low, round(float(above[cut]), 6))
    cut = int(np.searchsorted(values, 0.0, side="right"))
    by_cut[cut] = (0.0, round(float(above[cut]), 6))
    # cut 0 sends everybody, as the last point of the path does
    by_cut.pop(0, None)
    by_share = {sent: (threshold, sent) for threshold, sent in by_cut.values()}
    return [by_share[sent] for sent in sorted(by_share)]


class RowBills(NamedTuple):
    """One bill with an entry for each of n rows."""

    bits: BitArray  # (n, w)
    splits: FloatArray
    trees: FloatArray

    @classmethod
    def of(cls, bill: Bill, rows: int) -> RowBills:
        """Spread a bill over its rows."""
        spread = [np.broadcast_to(np.asarray(v, float), rows) for v in (bill.splits, bill.trees)]
        return cls(bill.acquired.rows(rows).bits, *spread)

    def plus(self, other: RowBills) -> RowBills:
        """Both: a sensor is paid once, evaluations add."""
        return RowBills(
            self.bits | other.bits, self.splits + other.splits, self.trees + other.trees
        )

    def where(self, chosen: BoolArray, other: RowBills) -> RowBills:
        """These where ``chosen`` (n,), elsewhere the other's."""
        return RowBills(
            np.where(chosen[:, None], self.bits, other.bits),
            np.where(chosen, self.splits, other.splits),
            np.where(chosen, self.trees, other.trees),
        )

    def bill(self, sensors: int) -> Bill:
        """As a bill."""
        return Bill(Acquired(self.bits, sensors), self.splits, self.trees)


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """Scores (n,) of a model's last point, and the rows' bills by their names."""

    scores: FloatArray
    bills: Mapping[str, RowBills]

    @classmethod
    def of(cls, model: Any, features: Features) -> Outputs:
        """For all rows."""
        output = last_prediction(model, features)
        bills = {name: RowBills.of(bill, len(features)) for name, bill in output.bills.items()}
        return cls(np.asarray(output.scores, dtype=np.float64), bills)

    def bill(self, name: str) -> RowBills:
        """The bill of that name, or the path's."""
        return self.bills.get(name, self.bills["path"])


@dataclass(frozen=True, eq=False)
class AdaptModel(Stored):
    """Pairs in front of ``f0``, which answers every row by itself.

    Points: for each pair each of its gates, ``{"features": k, "sent": share}``, then
    ``{"features": 0, "sent": 1.0}``, everything to f0. Bills: ``path``; ``model`` where f0 has it;
    ``adapt-released``, in which a row that is sent pays for f0 alone, not for the gate. The
    bills of f0 are those of its last point. ``facts`` are JSON values that the learner wants kept.
    On ranking data the line ``calibration`` turns f0's scores into log-odds of relevance, at every
    point.
    """

    pairs: Sequence[GatedPair]
    f0: Any
    prices: Prices
    facts: Mapping[str, Any] = field(default_factory=dict)
    calibration: Sequence[float] | None = None

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per gate, then f0's own."""
        alone, sensors = Features(features.X), self.prices.sensors
        # all rows at once: the last point sends every one
        f0 = Outputs.of(self.f0, alone)
        if self.calibration is not None:
            f0 = replace(f0, scores=Line(*self.calibration)(f0.scores))
        names = ["path", *({"model"} & f0.bills.keys())]
        for pair in self.pairs:
            kept, gate = Outputs.of(pair.classifier, alone), Outputs.of(pair.gate, alone)
            cheap = gate.bill("path").plus(kept.bill("path"))
            for threshold, share in pair.gates:
                # (n,), the routing of this point
                sent = gate.scores > threshold
                bills = {
                    name: gate.bill(name).plus(f0.bill(name).where(sent, kept.bill(name)))
                    for name in names
                }
                bills[RELEASED] = f0.bill(RELEASED).where(sent, cheap)
                yield Prediction(
                    {"features": pair.features, "sent": share},
                    np.where(sent, f0.scores, kept.scores),
                    {name: bill.bill(sensors) for name, bill in bills.items()},
                )
        bills = {name: f0.bill(name) for name in (*names, RELEASED)}
        last = {name: bill.bill(sensors) for name, bill in bills.items()}
        yield Prediction({"features": 0, "sent": 1.0}, f0.scores, last)

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The gate, then the classifier or f0, for serving."""
        from bench_models.staged.program import place_of

        gates = [(pair, *gate) for pair in self.pairs for gate in pair.gates]
        known = [{"features": pair.features, "sent": sent} for pair, _, sent in gates]
        place = place_of(point, [*known, {"features": 0, "sent": 1.0}])
        d = self.prices.features
        f0 = _calibrated(_whole(self.f0, d), *(self.calibration or (1.0, 0.0)))
        if place == len(gates):
            return f0
        pair, threshold, _ = gates[place]
        return _routed(_whole(pair.gate, d), threshold, _whole(pair.classifier, d), f0)


def _whole(model: Any, features: int) -> Program:
    """A model at the last point of its path. Raises UsageError where it cannot be served."""
    from bench_core.serving import Exportable

    if not isinstance(model, Exportable):
        raise UsageError(f"adapt: its f0, a {type(model).__name__}, cannot be exported")
    # no rows are enough to learn the name of the last point
    nobody = Features(np.zeros((0, features), dtype=np.float32))
    program = model.program(last_prediction(model, nobody).point)
    if program.in_queries and any(step.gate not in ROW_GATES for step in program.steps):
        raise UsageError("adapt: its f0 compares the documents of a query; choose another f0")
    return replace(program, rejected="score" if program.rejected == "below" else program.rejected)


def _calibrated(program: Program, slope: float, intercept: float) -> Program:
    """With answers on a line."""
    from bench_core.serving import Finish

    if (slope, intercept) == (1.0, 0.0):
        return program
    plain = Finish((0.0,) * program.outputs)
    steps = [
        replace(step, finish=(step.finish or plain).lined(slope, intercept))
        for step in program.steps
    ]
    return replace(program, steps=steps)


def _routed(gate: Program, threshold: float, kept: Program, f0: Program) -> Program:
    """Rows whose gate score is above the threshold go to f0, the others stay."""
    from bench_core.serving import joined

    # gate | kept | f0: the gate's last step jumps over one of the others
    first = len(gate.steps)
    program = joined([gate, kept, f0])
    decides = replace(
        program.steps[first - 1],
        gate="score",
        value=float(np.nextafter(threshold, np.inf)),
        then=first + len(kept.steps),
        otherwise=first,
    )
    steps = [*program.steps[: first - 1], decides, *program.steps[first:]]
    return replace(program, steps=steps, nothing=kept.nothing)
