"""ADAPT-GBRT's step: boosted g and f1 for a given q, grown in turn from one purse.

With r the negative derivatives of the logistic losses, per row and without the paper's 1/N,

    f1:  y (1 - q) sigma(-y f1)        g:  q sigma(-g) - (1 - q) sigma(g)

each tree is a regression tree on r under Greedy Miser's impurity; what f1's tree buys is free for
g's of the same round and for both later. Neither residual depends on the other function, so it does
not matter that both are computed at the start of a round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from bench_models.staged import Point, Stage, StagedModel
from numpy.typing import NDArray

from bench_core import Examples, Features, Prices
from bench_methods.adapt.model import Answers
from bench_methods.adapt.q_step import Budget, Divergence, Floats, Rows, sigmoid

if TYPE_CHECKING:
    from bench_trees import Bins, Ensemble, Ledger, Penalty, Settings
    from bench_trees.losses import Gradients, Labels
    from bench_trees.threads import Workers

F1, GATE = 0, 1
METRIC = Divergence()
TINY = 1e-15
_SETTLED = 1e-3  # mean change of q at which the alternation ends


@dataclass(frozen=True, slots=True, eq=False)
class JointLoss:
    """f1 (output 0) and g (output 1) for a given ``q`` (n,): the first part of (OPT2)."""

    q: Floats
    outputs: int = 2

    def base(self, labels: Labels) -> Floats:
        """The best constants: log-odds of the ones that are kept, and of being sent."""
        kept = labels.mass * (1 - self.q)
        ones = float(kept @ labels.y) / max(float(kept.sum()), TINY)
        sent = float(labels.mass @ self.q) / float(labels.mass.sum())
        share = np.clip(np.array([ones, sent]), TINY, 1 - TINY)
        return np.asarray(np.log(share / (1 - share)), dtype=np.float64)

    def gradients(self, scores: Floats, labels: Labels, crew: Workers) -> Gradients:
        """Minus the residuals above; hessian 1."""
        f1, g = scores
        return np.stack([(1 - self.q) * (sigmoid(f1) - labels.y), sigmoid(g) - self.q]), None


def output_of(ensemble: Ensemble, output: int) -> Ensemble:
    """The trees of one output as an ensemble of their own, without those that never split."""
    from bench_trees import Ensemble

    sizes = np.diff(ensemble.start)
    trees = np.flatnonzero((ensemble.output == output) & (sizes > 1))
    kept = np.zeros(ensemble.nodes, dtype=bool)
    for tree in trees:
        kept[ensemble.start[tree] : ensemble.start[tree + 1]] = True
    start = np.concatenate([[0], np.cumsum(sizes[trees])]).astype(np.int32)
    moved = np.repeat(ensemble.start[trees] - start[:-1], sizes[trees])

    def children(nodes: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.where(nodes[kept] < 0, -1, nodes[kept] - moved).astype(np.int32)

    return Ensemble(
        start=start,
        feature=ensemble.feature[kept],
        threshold=ensemble.threshold[kept],
        left=children(ensemble.left),
        right=children(ensemble.right),
        missing_left=ensemble.missing_left[kept],
        value=ensemble.value[kept],
        output=np.zeros(len(trees), dtype=np.int32),
        base=ensemble.base[output : output + 1],
        features=ensemble.features,
    )


def whole(ensemble: Ensemble, prices: Prices) -> StagedModel:
    """All trees in one stage."""
    stage = Stage(
        entries=np.arange(ensemble.trees, dtype=np.int64),
        weights=np.ones(ensemble.trees),
        bias=ensemble.base,
    )
    return StagedModel([stage], [Point(0, {"trees": ensemble.trees})], prices, ensemble)


@dataclass(frozen=True, slots=True, eq=False)
class Trees:
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
class Grown:
    """A classifier and its gate (None: nobody is sent), ``objective`` after each step."""

    f1: StagedModel
    gate: StagedModel | None
    objective: list[float]


def alternate(trees: Trees, rows: Rows, p_full: float | None, tau: float, iterations: int) -> Grown:
    """From Greedy Miser as f1 and g = 0, step over q and over (g, f1) in turn.

    Every step over (g, f1) starts afresh, so the objective may rise; the pair of the lowest one
    is kept. With ``p_full`` 0 there is no step: it is Greedy Miser.
    """
    from bench_trees import Logistic

    state = State.of(trees, whole(trees.boost(Logistic())[0], trees.prices), None)
    objective: list[float] = []
    best, lowest, q = state, np.inf, np.full(len(rows.share), np.inf)
    for _ in range(iterations if p_full != 0 else 0):
        price = state.premium(rows, trees.prices, tau) if p_full is None else None
        budget = Budget(p_full, price)
        last, q = q, budget.q(METRIC, rows, state.kept.scores, state.g)
        if rows.mean(np.abs(q - last)) <= _SETTLED:
            break
        both, ledger = trees.boost(JointLoss(q))
        f1, gate = (whole(output_of(both, k), trees.prices) for k in (F1, GATE))
        state = State.of(trees, f1, gate)
        features = tau * float(trees.prices.sensor[ledger.bought].sum())
        loss = budget.objective(METRIC, rows, state.kept.scores, state.g, q)
        objective.append(loss + features)
        if objective[-1] < lowest:
            best, lowest = state, objective[-1]
    return Grown(best.f1, best.gate, objective)


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """A pair, and what it says and charges on the training rows."""

    f1: StagedModel
    gate: StagedModel | None
    kept: Answers
    gated: Answers | None

    @classmethod
    def of(cls, trees: Trees, f1: StagedModel, gate: StagedModel | None) -> State:
        """Ask both."""
        rows = Features(trees.train.X)
        return cls(f1, gate, Answers.of(f1, rows), None if gate is None else Answers.of(gate, rows))

    @property
    def g(self) -> Floats:
        """The gate's scores, 0 before there is one."""
        return np.zeros(len(self.kept.scores)) if self.gated is None else self.gated.scores

    def premium(self, rows: Rows, prices: Prices, tau: float) -> Floats:
        """What f0 costs more than f1 for each row, in loss units; the gate is in both."""
        f1 = self.kept.charges["path"]
        bits = np.zeros_like(f1.bits) if self.gated is None else self.gated.charges["path"].bits
        cost1 = f1.bill(prices.sensors).evaluation_cost(prices, len(rows.share))
        return rows.premium(bits, bits | f1.bits, cost1, prices, tau)
