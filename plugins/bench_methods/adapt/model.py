"""The model that is served: cheap pairs in front of f0.

At an operating point a pair's gate is asked about every row; rows with g above the point's
threshold go to f0, the others to f1. So a row pays for the gate and for whichever model answers, a
shared sensor once. The last point sends everything to f0 without asking any gate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from bench_models.staged import StagedModel
from bench_models.staged.state import prices_from, prices_state
from numpy.typing import NDArray

from bench_core import (
    Acquired,
    Bill,
    Features,
    Prediction,
    Prices,
    find_class,
    remember_class,
)
from bench_methods.adapt.calibration import Platt
from bench_methods.adapt.q_step import Floats, full_prediction

Bits = NDArray[np.uint64]
RELEASED = "adapt-released"


@dataclass(frozen=True, slots=True, eq=False)
class Served:
    """A gate (none: every row is kept) and a classifier on ``features`` features.

    ``gates``: (threshold, share of the training rows that it sends), by rising share. A row is
    sent iff its gate score exceeds the threshold.
    """

    classifier: StagedModel
    gate: StagedModel | None
    features: int
    gates: Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, eq=False)
class Charges:
    """One bill with an entry for each of n rows."""

    bits: Bits  # (n, w)
    splits: Floats
    trees: Floats

    @classmethod
    def of(cls, bill: Bill, rows: int) -> Charges:
        """Spread a bill over its rows."""
        words = bill.acquired.bits
        spread = [np.broadcast_to(np.asarray(v, float), rows) for v in (bill.splits, bill.trees)]
        return cls(np.broadcast_to(words, (rows, words.shape[1])), *spread)

    @classmethod
    def nothing(cls, rows: int, words: int) -> Charges:
        """Before anything is bought."""
        bits = np.zeros((rows, words), dtype=np.uint64)
        return cls(bits, np.zeros(rows), np.zeros(rows))

    def plus(self, other: Charges) -> Charges:
        """Both: a sensor is paid once, evaluations add."""
        return Charges(self.bits | other.bits, self.splits + other.splits, self.trees + other.trees)

    def where(self, chosen: NDArray[np.bool_], other: Charges) -> Charges:
        """These where ``chosen`` (n,), elsewhere the other's."""
        return Charges(
            np.where(chosen[:, None], self.bits, other.bits),
            np.where(chosen, self.splits, other.splits),
            np.where(chosen, self.trees, other.trees),
        )

    def bill(self, sensors: int) -> Bill:
        """As a bill."""
        return Bill(Acquired(self.bits, sensors), self.splits, self.trees)


@dataclass(frozen=True, slots=True, eq=False)
class Answers:
    """Scores (n,) and charges by the name of the bill."""

    scores: Floats
    charges: Mapping[str, Charges]

    @classmethod
    def of(cls, model: Any, features: Features) -> Answers:
        """The full model's answers for all rows."""
        said, n = full_prediction(model, features), len(features)
        charges = {name: Charges.of(bill, n) for name, bill in said.bills.items()}
        return cls(np.asarray(said.scores, dtype=np.float64), charges)


class Asked:
    """f0's answers for the rows of a block that have been sent to it so far, in log-odds."""

    def __init__(
        self, f0: Any, X: NDArray[np.float32], words: int, calibration: Platt | None
    ) -> None:
        self.f0, self.X, self.calibration = f0, X, calibration
        self.known = np.zeros(len(X), dtype=bool)
        self.scores = np.zeros(len(X))
        self.empty = Charges.nothing(len(X), words)
        self.charges: dict[str, Charges] = {}

    def answers(self, sent: NDArray[np.bool_]) -> Answers:
        """Scores and charges, valid at the rows ``sent`` (n,); asks about new ones only."""
        new = np.flatnonzero(sent & ~self.known)
        if len(new):
            said = Answers.of(self.f0, Features(self.X[new]))
            self.known[new] = True
            line = self.calibration
            self.scores[new] = said.scores if line is None else line(said.scores)
            for name, some in said.charges.items():
                self.charges[name] = _put(self.charges.get(name, self.empty), new, some)
        return Answers(self.scores, self.charges)


def _put(charges: Charges, rows: NDArray[np.int64], some: Charges) -> Charges:
    bits, splits, trees = charges.bits.copy(), charges.splits.copy(), charges.trees.copy()
    bits[rows], splits[rows], trees[rows] = some.bits, some.splits, some.trees
    return Charges(bits, splits, trees)


@dataclass(frozen=True, eq=False)
class AdaptModel:
    """Pairs in front of ``f0``, which answers every row by itself.

    Points: for each pair each of its gates, ``{"features": k, "sent": share}``, then
    ``{"features": 0, "sent": 1.0}``, everything to f0. Bills: ``path``; ``model`` where f0 has it;
    ``adapt-released``, in which a row that is sent pays for f0 alone, not for the gate. The
    bills of f0 are those of its last point. ``facts`` are JSON values that the learner wants kept.
    On ranking data ``calibration`` turns f0's scores into log-odds of relevance, at every point.
    """

    pairs: Sequence[Served]
    f0: Any
    prices: Prices
    facts: Mapping[str, Any] = field(default_factory=dict)
    calibration: Platt | None = None

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per gate, then f0's own."""
        n, words = len(features), Acquired.nothing(self.prices.sensors).bits.shape[1]
        asked = Asked(self.f0, features.X, words, self.calibration)
        alone = Features(features.X)
        for pair in self.pairs:
            kept = Answers.of(pair.classifier, alone)
            gate = None if pair.gate is None else Answers.of(pair.gate, alone)
            for threshold, share in pair.gates:
                sent = np.zeros(n, dtype=bool) if gate is None else gate.scores > threshold
                point = {"features": pair.features, "sent": share}
                yield self._routed(point, sent, gate, kept, asked.answers(sent), words)
        everybody = np.ones(n, dtype=bool)
        nothing = Answers(np.zeros(n), {})
        point = {"features": 0, "sent": 1.0}
        yield self._routed(point, everybody, None, nothing, asked.answers(everybody), words)

    def _routed(
        self,
        point: Mapping[str, int | float],
        sent: NDArray[np.bool_],
        gate: Answers | None,
        kept: Answers,
        f0: Answers,
        words: int,
    ) -> Prediction:
        """Join what the gate, f1 and f0 say and charge."""
        nothing = Charges.nothing(len(sent), words)

        def charged(answers: Answers | None, name: str) -> Charges:
            if answers is None or not answers.charges:
                return nothing
            return answers.charges.get(name, answers.charges["path"])

        bills = {}
        for name in ("path", "model"):
            if f0.charges and name not in f0.charges:
                continue
            answered = charged(f0, name).where(sent, charged(kept, name))
            bills[name] = charged(gate, name).plus(answered).bill(self.prices.sensors)
        cheap = charged(gate, "path").plus(charged(kept, "path"))
        released = charged(f0, RELEASED).where(sent, cheap)
        bills[RELEASED] = released.bill(self.prices.sensors)
        return Prediction(point, np.where(sent, f0.scores, kept.scores), bills)

    def state(self) -> dict[str, Any]:
        """Arrays and JSON; ``from_state`` is the inverse."""
        state: dict[str, Any] = {
            **prices_state(self.prices),
            "facts": dict(self.facts),
            "f0.class": remember_class(type(self.f0)),
        }
        state |= _below("f0.state", self.f0.state())
        if self.calibration is not None:
            state["f0.line"] = [self.calibration.slope, self.calibration.intercept]
        pairs = []
        for k, pair in enumerate(self.pairs):
            state |= _below(f"pair{k}.f1", pair.classifier.state())
            if pair.gate is not None:
                state |= _below(f"pair{k}.g", pair.gate.state())
            gates = [list(g) for g in pair.gates]
            pairs.append(
                {"gated": pair.gate is not None, "features": pair.features, "gates": gates}
            )
        return state | {"pairs": pairs}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild the pairs, and f0's model by its own class."""
        pairs = [
            Served(
                StagedModel.from_state(_under(f"pair{k}.f1", state)),
                StagedModel.from_state(_under(f"pair{k}.g", state)) if p["gated"] else None,
                int(p["features"]),
                [(float(threshold), float(share)) for threshold, share in p["gates"]],
            )
            for k, p in enumerate(state["pairs"])
        ]
        f0: Any = find_class(state["f0.class"])
        return cls(
            pairs,
            f0.from_state(_under("f0.state", state)),
            prices_from(state),
            state["facts"],
            Platt(*map(float, state["f0.line"])) if "f0.line" in state else None,
        )


def _below(name: str, state: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{name}.{key}": value for key, value in state.items()}


def _under(name: str, state: Mapping[str, Any]) -> dict[str, Any]:
    mark = f"{name}."
    return {k[len(mark) :]: v for k, v in state.items() if k.startswith(mark)}
