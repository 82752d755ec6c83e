"""The model that is served, cheap pairs in front of f0, and the thresholds of their gates.

At an operating point a pair's gate scores every row; rows with g above the point's threshold go to
f0, the others to f1. So a row pays for the gate and for the model that answers, a shared sensor
once. The last point sends everything to f0 without a gate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from bench_models.calibration import Line
from bench_models.staged import StagedModel
from bench_models.states import nest, unnest

from bench_core import Acquired, Bill, Features, Prediction, Prices, find_class, remember_class
from bench_core.arrays import BitArray, BoolArray, Float32Array, FloatArray
from bench_methods.adapt.q_step import last_prediction

if TYPE_CHECKING:
    from bench_core.serving import Program

RELEASED = "adapt-released"


@dataclass(frozen=True, slots=True, eq=False)
class GatedPair:
    """A gate (none: every row is kept) and a classifier on ``features`` features.

    ``gates``: (threshold, share of the training rows that it sends), by rising share. A row is
    sent iff its gate score exceeds the threshold.
    """

    classifier: StagedModel
    gate: StagedModel | None
    features: int
    gates: Sequence[tuple[float, float]]


def thresholds(
    g: FloatArray, share: FloatArray, count: int, *, zero: bool = True
) -> list[tuple[float, float]]:
    """(threshold, share of rows with a higher g) by rising share, for gate scores ``g`` (n,).

    With ``zero`` threshold 0 is among them; ``count`` others send as near as possible to 1, 2, ...
    of ``count + 1`` equal shares, each halfway between two neighbouring scores. Equal ways to cut
    the rows are listed once, and one that sends all rows is left out.
    """
    values, place = np.unique(g, return_inverse=True)
    mass = np.bincount(place, share, minlength=len(values))
    above = np.append(np.cumsum(mass[::-1])[::-1], 0.0)  # share of rows from value k on
    by_cut: dict[int, tuple[float, float]] = {}
    for k in range(count):
        wanted = (k + 1) / (count + 1)
        cut = int(np.argmin(np.abs(above - wanted)))
        if 0 < cut < len(values):
            low, high = map(float, values[cut - 1 : cut + 1])
            middle = low + (high - low) / 2
            by_cut[cut] = (middle if low <= middle < high else low, round(float(above[cut]), 6))
    if zero:
        cut = int(np.searchsorted(values, 0.0, side="right"))
        by_cut[cut] = (0.0, round(float(above[cut]), 6))
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
        words = bill.acquired.bits
        spread = [np.broadcast_to(np.asarray(v, float), rows) for v in (bill.splits, bill.trees)]
        return cls(np.broadcast_to(words, (rows, words.shape[1])), *spread)

    @classmethod
    def nothing(cls, rows: int, sensors: int) -> RowBills:
        """Before anything is bought."""
        bits = np.repeat(Acquired.nothing(sensors).bits, rows, axis=0)
        return cls(bits, np.zeros(rows), np.zeros(rows))

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
    """Scores (n,) and the rows' bills by their names."""

    scores: FloatArray
    bills: Mapping[str, RowBills]

    @classmethod
    def of(cls, model: Any | None, features: Features) -> Outputs:
        """The full model's for all rows; without a model 0, for which nothing is paid."""
        n = len(features)
        if model is None:
            return cls(np.zeros(n), {})
        output = last_prediction(model, features)
        bills = {name: RowBills.of(bill, n) for name, bill in output.bills.items()}
        return cls(np.asarray(output.scores, dtype=np.float64), bills)


class LazyF0:
    """f0's outputs, in log-odds, for the rows of a block that have been sent to it so far."""

    def __init__(self, model: AdaptModel, X: Float32Array) -> None:
        self.model, self.X = model, X
        self.known, self.scores = np.zeros(len(X), dtype=bool), np.zeros(len(X))
        self.bills: dict[str, RowBills] = {}

    def outputs(self, sent: BoolArray) -> Outputs:
        """Valid at the rows ``sent`` (n,); only new ones are predicted."""
        new = np.flatnonzero(sent & ~self.known)
        if len(new):
            output = Outputs.of(self.model.f0, Features(self.X[new]))
            self.known[new] = True
            line, sensors = self.model.calibration, self.model.prices.sensors
            self.scores[new] = output.scores if line is None else line(output.scores)
            for name, some in output.bills.items():
                known = self.bills.setdefault(name, RowBills.nothing(len(self.X), sensors))
                for whole, part in zip(known, some, strict=True):
                    whole[new] = part
        return Outputs(self.scores, self.bills)


@dataclass(frozen=True, eq=False)
class AdaptModel:
    """Pairs in front of ``f0``, which answers every row by itself.

    Points: for each pair each of its gates, ``{"features": k, "sent": share}``, then
    ``{"features": 0, "sent": 1.0}``, everything to f0. Bills: ``path``; ``model`` where f0 has it;
    ``adapt-released``, in which a row that is sent pays for f0 alone, not for the gate. The
    bills of f0 are those of its last point. ``facts`` are JSON values that the learner wants kept.
    On ranking data ``calibration`` turns f0's scores into log-odds of relevance, at every point.
    """

    pairs: Sequence[GatedPair]
    f0: Any
    prices: Prices
    facts: Mapping[str, Any] = field(default_factory=dict)
    calibration: Line | None = None

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per gate, then f0's own."""
        f0, alone = LazyF0(self, features.X), Features(features.X)
        for pair in self.pairs:
            kept, gate = Outputs.of(pair.classifier, alone), Outputs.of(pair.gate, alone)
            for threshold, share in pair.gates:
                point = {"features": pair.features, "sent": share}
                yield self._routed(point, gate, threshold, kept, f0)
        nothing = Outputs.of(None, alone)
        yield self._routed({"features": 0, "sent": 1.0}, nothing, -np.inf, nothing, f0)

    def _routed(
        self,
        point: Mapping[str, int | float],
        gate: Outputs,
        threshold: float,
        kept: Outputs,
        large: LazyF0,
    ) -> Prediction:
        """The prediction of a point from the outputs of gate, f1 and f0."""
        sent = gate.scores > threshold
        f0, nothing = large.outputs(sent), RowBills.nothing(len(sent), self.prices.sensors)

        def bill_of(outputs: Outputs, name: str) -> RowBills:
            return outputs.bills.get(name, outputs.bills.get("path", nothing))

        bills = {}
        for name in ("path", "model"):
            if f0.bills and name not in f0.bills:
                continue
            answered = bill_of(f0, name).where(sent, bill_of(kept, name))
            bills[name] = bill_of(gate, name).plus(answered).bill(self.prices.sensors)
        cheap = bill_of(gate, "path").plus(bill_of(kept, "path"))
        released = bill_of(f0, RELEASED).where(sent, cheap)
        bills[RELEASED] = released.bill(self.prices.sensors)
        return Prediction(point, np.where(sent, f0.scores, kept.scores), bills)

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The gate, then the classifier or f0, for serving."""
        from bench_models.staged.program import place_of

        from bench_methods.adapt.program import calibrated, routed, whole

        gates = [(pair, *gate) for pair in self.pairs for gate in pair.gates]
        known = [{"features": pair.features, "sent": sent} for pair, _, sent in gates]
        place = place_of(point, [*known, {"features": 0, "sent": 1.0}])
        d, f0 = self.prices.features, whole(self.f0, self.prices.features)
        f0 = f0 if self.calibration is None else calibrated(f0, *self.calibration)
        if place == len(gates):
            return f0
        pair, threshold, _ = gates[place]
        if pair.gate is None:
            return f0 if threshold < 0.0 else whole(pair.classifier, d)
        return routed(whole(pair.gate, d), threshold, whole(pair.classifier, d), f0)

    def state(self) -> dict[str, Any]:
        """Arrays and JSON; ``from_state`` is the inverse."""
        state: dict[str, Any] = {
            **nest("prices", self.prices.state()),
            "facts": dict(self.facts),
            "f0.class": remember_class(type(self.f0)),
        }
        state |= nest("f0.state", self.f0.state())
        if self.calibration is not None:
            state["f0.line"] = [self.calibration.slope, self.calibration.intercept]
        pairs = []
        for k, pair in enumerate(self.pairs):
            state |= nest(f"pair{k}.f1", pair.classifier.state())
            if pair.gate is not None:
                state |= nest(f"pair{k}.g", pair.gate.state())
            about = {"gated": pair.gate is not None, "features": pair.features}
            pairs.append({**about, "gates": [list(gate) for gate in pair.gates]})
        return state | {"pairs": pairs}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild the pairs, and f0's model by its own class."""
        pairs = [
            GatedPair(
                StagedModel.from_state(unnest(f"pair{k}.f1", state)),
                StagedModel.from_state(unnest(f"pair{k}.g", state)) if p["gated"] else None,
                int(p["features"]),
                [(float(threshold), float(share)) for threshold, share in p["gates"]],
            )
            for k, p in enumerate(state["pairs"])
        ]
        f0: Any = find_class(state["f0.class"])
        return cls(
            pairs,
            f0.from_state(unnest("f0.state", state)),
            Prices.from_state(unnest("prices", state)),
            state["facts"],
            Line(*map(float, state["f0.line"])) if "f0.line" in state else None,
        )
