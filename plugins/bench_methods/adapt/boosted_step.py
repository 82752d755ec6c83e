"""ADAPT-GBRT's step: boosted g and f1 for a given q (Algorithm 2), which share what they buy.

With r the negative derivatives of the logistic losses, per row and without the paper's 1/N,

    f1 (1):  y (1 - q) sigma(-y f1)        g (2):  q sigma(-g) - (1 - q) sigma(g)

each tree is a regression tree on r under Greedy Miser's impurity; what f1's tree buys is free for
g's of the same round and for both later. Neither residual depends on the other function, so it does
not matter that both are computed at the start of a round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from bench_models.staged import Point, Stage, StagedModel
from numpy.typing import NDArray

from bench_core import Examples, Features, Prices
from bench_core.arrays import FloatArray
from bench_methods.adapt.model import Outputs
from bench_methods.adapt.q_step import F0Limit, KullbackLeibler, TrainingRows, sigmoid

if TYPE_CHECKING:
    from bench_trees import Bins, Ensemble, Ledger, Penalty, Settings
    from bench_trees.losses import Gradients, Labels
    from bench_trees.threads import Workers

F1, GATE = 0, 1
TINY = 1e-15  # least share of a class or side, so that its log-odds are finite
_SETTLED = 1e-3  # mean change of q at which the alternation ends


@dataclass(frozen=True, slots=True, eq=False)
class JointLoss:
    """f1 (output 0) and g (output 1) for a given ``q`` (n,): the first part of (OPT2)."""

    q: FloatArray
    outputs: int = 2

    def base(self, labels: Labels) -> FloatArray:
        """The best constants: log-odds of the ones that are kept, and of being sent."""
        kept = labels.mass * (1 - self.q)
        ones = float(kept @ labels.y) / max(float(kept.sum()), TINY)
        sent = float(labels.mass @ self.q) / float(labels.mass.sum())
        share = np.clip(np.array([ones, sent]), TINY, 1 - TINY)
        return np.asarray(np.log(share / (1 - share)), dtype=np.float64)

    def gradients(self, scores: FloatArray, labels: Labels, crew: Workers) -> Gradients:
        """Minus the residuals above; hessian 1."""
        f1, g = scores
        by_f1 = (1 - self.q) * (sigmoid(f1) - labels.y)  # (1)
        return np.stack([by_f1, sigmoid(g) - self.q]), None  # (2)


def one_stage(ensemble: Ensemble, prices: Prices) -> StagedModel:
    """All trees in one stage."""
    stage = Stage(
        entries=np.arange(ensemble.trees, dtype=np.int64),
        weights=np.ones(ensemble.trees),
        bias=ensemble.base,
    )
    return StagedModel([stage], [Point(0, {"trees": ensemble.trees})], prices, ensemble)


@dataclass(frozen=True, slots=True, eq=False)
class Booster:
    """What stays the same from one step to the next."""

    train: Examples
    bins: Bins
    codes: NDArray[np.uint8]
    penalty: Penalty
    settings: Settings
    prices: Prices
    threads: int
    progress: Callable[[int, int], None]

    def boost(self, loss: Any) -> tuple[Ensemble, Ledger]:
        """Boost from the constants, with nothing bought yet."""
        from bench_trees import Ledger, boost

        ledger = Ledger(self.penalty, len(self.train), self.train.multiplicity)
        ensemble = boost(
            self.codes,
            self.bins,
            self.train.y,
            loss=loss,
            settings=self.settings,
            penalty=self.penalty,
            multiplicity=self.train.multiplicity,
            ledger=ledger,
            threads=self.threads,
            progress=self.progress,
        )
        return ensemble, ledger


@dataclass(frozen=True, slots=True, eq=False)
class BoostedFit:
    """A classifier, its gate (None: no row is sent), and ``objective`` after each step."""

    f1: StagedModel
    gate: StagedModel | None
    objective: list[float]


def fit_boosted_pair(
    booster: Booster, rows: TrainingRows, p_full: float | None, tau: float, iterations: int
) -> BoostedFit:
    """Algorithm 2: from Greedy Miser as f1 and g = 0, step over q and over (g, f1) in turn.

    Every step over (g, f1) starts afresh, so the objective may rise; the pair of the lowest one
    is kept. With ``p_full`` 0 there is no step: it is Greedy Miser.
    """
    from bench_trees import Logistic

    D, prices = KullbackLeibler(), booster.prices
    pair = PairOutputs.of(booster, one_stage(booster.boost(Logistic())[0], prices), None)
    objective: list[float] = []
    best, lowest, q = pair, np.inf, np.full(len(rows.share), np.inf)
    for _ in range(iterations if p_full != 0 else 0):
        limit = F0Limit(p_full, pair.premium(rows, prices, tau) if p_full is None else None)
        last, q = q, limit.q(D, rows, pair.kept.scores, pair.g)  # OPT1
        if rows.mean(np.abs(q - last)) <= _SETTLED:
            break
        both, ledger = booster.boost(JointLoss(q))
        f1, gate = (one_stage(output_of(both, k), prices) for k in (F1, GATE))
        pair = PairOutputs.of(booster, f1, gate)
        features = tau * float(prices.sensor[ledger.bought].sum())
        objective.append(limit.objective(D, rows, pair.kept.scores, pair.g, q) + features)
        if objective[-1] < lowest:
            best, lowest = pair, objective[-1]
    return BoostedFit(best.f1, best.gate, objective)


@dataclass(frozen=True, slots=True, eq=False)
class PairOutputs:
    """A pair, and its outputs for the training rows."""

    f1: StagedModel
    gate: StagedModel | None
    kept: Outputs
    gated: Outputs | None

    @classmethod
    def of(cls, booster: Booster, f1: StagedModel, gate: StagedModel | None) -> PairOutputs:
        """Predict the training rows by both."""
        rows = Features(booster.train.X)
        return cls(f1, gate, Outputs.of(f1, rows), None if gate is None else Outputs.of(gate, rows))

    @property
    def g(self) -> FloatArray:
        """The gate's scores, 0 before there is one."""
        return np.zeros(len(self.kept.scores)) if self.gated is None else self.gated.scores

    def premium(self, rows: TrainingRows, prices: Prices, tau: float) -> FloatArray:
        """What f0 costs more than f1 for each row, in loss units; the gate is in both."""
        f1 = self.kept.bills["path"]
        bits = np.zeros_like(f1.bits) if self.gated is None else self.gated.bills["path"].bits
        cost1 = f1.bill(prices.sensors).evaluation_cost(prices, len(rows.share))
        return rows.premium(bits, bits | f1.bits, cost1, prices, tau)


def output_of(ensemble: Ensemble, output: int) -> Ensemble:
    """The trees of one output as an ensemble of their own, without those that never split."""
    split = np.diff(ensemble.start) > 1
    trees = ensemble.select(np.flatnonzero((ensemble.output == output) & split))
    return replace(trees, output=0 * trees.output, base=ensemble.base[output : output + 1])
