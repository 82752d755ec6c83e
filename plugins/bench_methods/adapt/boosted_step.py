"""ADAPT-GBRT: boosted g and f1 with shared purchases for a given q (Algorithm 2).

With r the negative derivatives of the logistic losses, per row and without the paper's 1/N,

    f1 (1):  y (1 - q) sigma(-y f1)        g (2):  q sigma(-g) - (1 - q) sigma(g)

each tree is a regression tree on r under Greedy Miser's impurity. Purchases of f1's tree are free
for g's tree of the same round and for both later. Neither residual depends on the other function,
so both can be computed at the start of a round.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from bench_models.boosting import BINS, binned, prefix_chain
from bench_models.large_model import LargeModel, bill_of, last_prediction
from bench_models.links import logit, sigmoid
from bench_models.staged import MOST_POINTS, Point, Stage, StagedModel
from bench_models.tradeoff import LossPrices

from bench_core import Examples, Features, FitContext, Prediction, Prices, linear, log, param
from bench_core.arrays import FloatArray
from bench_methods.adapt.learners import GATES, P_FULL, TRADEOFF, Adapt, loss_prices
from bench_methods.adapt.q_step import F0Limit, KullbackLeibler, TrainingRows

if TYPE_CHECKING:
    from bench_trees import Ensemble, Ledger
    from bench_trees.losses import Gradients, Labels
    from bench_trees.threads import Workers

F1, GATE = 0, 1
TINY = 1e-15  # least share of a class or side, for finite log-odds
_SETTLED = 1e-3  # mean change of q at which the alternation ends


@dataclass(frozen=True, slots=True, eq=False)
class JointLoss:
    """f1 (output 0) and g (output 1) for a given ``q`` (n,): the first part of (OPT2)."""

    q: FloatArray
    outputs: int = 2

    def base(self, labels: Labels) -> FloatArray:
        """Best constants: log-odds of label 1 among kept rows, and of being sent."""
        # a row counts for f1 with its probability of being kept
        kept = labels.mass * (1 - self.q)
        ones = float((kept * labels.y).sum()) / max(float(kept.sum()), TINY)
        sent = float((labels.mass * self.q).sum()) / float(labels.mass.sum())
        share = np.clip(np.array([ones, sent]), TINY, 1 - TINY)
        return logit(share)

    def gradients(self, scores: FloatArray, labels: Labels, pool: Workers) -> Gradients:
        """Minus the residuals above; hessian 1."""
        f1, g = scores
        by_f1 = (1 - self.q) * (sigmoid(f1) - labels.y)  # (1)
        return np.stack([by_f1, sigmoid(g) - self.q]), None  # (2)


def one_stage(ensemble: Ensemble, prices: Prices) -> StagedModel:
    """All trees in one stage."""
    return prefix_chain(ensemble, [ensemble.trees], prices, {})


@dataclass(frozen=True, slots=True, eq=False)
class PairOutputs:
    """A pair and its outputs for the training rows."""

    f1: StagedModel
    gate: StagedModel
    kept: Prediction
    gated: Prediction

    @classmethod
    def of(cls, rows: Features, f1: StagedModel, gate: StagedModel) -> PairOutputs:
        """Predict the training rows by both."""
        return cls(f1, gate, last_prediction(f1, rows), last_prediction(gate, rows))

    def premium(self, rows: TrainingRows, prices: Prices, tau: float) -> FloatArray:
        """Extra cost of f0 over f1 for each row, in loss units; both include the gate."""
        f1, bits = bill_of(self.kept), bill_of(self.gated).acquired.bits
        cost1 = f1.evaluation_cost(prices, len(rows.share))
        return rows.premium(bits, bits | f1.acquired.bits, cost1, prices, tau)


@dataclass(frozen=True)
class AdaptGBRT(Adapt):
    """Boosted gate and classifier with shared purchases, in front of a large model."""

    name: ClassVar[str] = "adapt-gbrt"

    tradeoff: float = param(0.03, TRADEOFF, least=0, search=log(1e-3, 3))
    p_full: float | None = param(0.5, P_FULL, least=0, most=1, search=linear(0.1, 0.9))
    trees: int = param(100, "boosting rounds, each one tree of f1 and one of g", least=0)
    learning_rate: float = param(1.0, "shrinkage of every tree's output (eta)", above=0)
    depth: int = param(4, "split levels of a tree", least=1)
    iterations: int = param(10, "maximum steps over q", least=1)
    gates: int = param(19, GATES, least=0, most=MOST_POINTS - 2)
    min_rows: int = param(20, "least rows (copies counted) on each side of a split", least=1)
    max_bins: int = param(255, BINS, least=2, most=255)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> LargeModel:
        """Alternate on ``train``; ``valid`` is used only for rankings, to calibrate f0."""
        train, rows, f0 = self._prepared(train, valid, prices, context)
        price = loss_prices(train, prices, self.tradeoff)
        pair, objective = self._pair(train, rows, prices, price, context)
        used = [m.ensemble.feature for m in (pair.f1, pair.gate) if m.ensemble is not None]
        features = np.unique(np.concatenate(used))
        count = int(np.count_nonzero(features >= 0))
        one = self._gated(pair.f1, pair.gate, count, train, rows)
        total_weight = float(train.weights.sum())
        facts = {"tau": price.tau, "lambda": total_weight * price.tau, "objective": objective}
        return self._before(f0, [one], rows, prices, facts)

    def _pair(
        self,
        train: Examples,
        rows: TrainingRows,
        prices: Prices,
        price: LossPrices,
        context: FitContext,
    ) -> tuple[PairOutputs, list[float]]:
        """Algorithm 2: from Greedy Miser as f1 and g = 0, alternate steps over q and (g, f1).

        Every step over (g, f1) restarts, so the objective may rise; the pair of the lowest one is
        kept. All objectives are returned. ``p_full`` 0 takes no step: it is Greedy Miser.
        """
        from bench_trees import Logistic

        D, p_full, features = KullbackLeibler(), self.p_full, Features(train.X)
        boosted = self._booster(train, prices, price, context)
        nobody = StagedModel(
            [Stage(np.arange(0), np.zeros(0), np.zeros(1))], [Point(0, {})], prices
        )
        pair = PairOutputs.of(features, one_stage(boosted(Logistic())[0], prices), nobody)
        objective: list[float] = []
        best, lowest, q = pair, np.inf, np.full(len(rows.share), np.inf)
        for _ in range(self.iterations if p_full != 0 else 0):
            premium = pair.premium(rows, prices, price.tau) if p_full is None else None
            limit = F0Limit(p_full, premium)
            last, q = q, limit.q(D, rows, pair.kept.scores, pair.gated.scores)  # OPT1
            if rows.mean(np.abs(q - last)) <= _SETTLED:
                break
            both, ledger = boosted(JointLoss(q))
            f1, gate = (one_stage(output_of(both, k), prices) for k in (F1, GATE))
            pair = PairOutputs.of(features, f1, gate)
            bought = price.tau * float(prices.sensor[ledger.bought].sum())
            now = limit.objective(D, rows, pair.kept.scores, pair.gated.scores, q) + bought
            objective.append(now)
            if now < lowest:
                best, lowest = pair, now
        return best, objective

    def _booster(
        self, train: Examples, prices: Prices, price: LossPrices, context: FitContext
    ) -> Callable[[Any], tuple[Ensemble, Ledger]]:
        """A function that boosts with a given loss, from the constants and without purchases."""
        from bench_trees import Ledger, Penalty, Settings, boost

        bins, codes = binned(train, self.max_bins, context)
        coupled = float(train.weights.sum()) * price.sensor
        # a purchase is paid once, for all N rows
        penalty = Penalty.over(prices.start, prices.needed, prices.sensors, coupled=coupled)
        settings = Settings(
            trees=self.trees,
            learning_rate=self.learning_rate,
            max_depth=self.depth,
            max_leaves=2**self.depth,
            min_rows=self.min_rows,
            second_order=False,
            order="level",
        )
        total = self.trees * (1 + (self.iterations if self.p_full != 0 else 0))
        # trees grown by earlier calls, for progress
        begins = count(0, self.trees)

        def boosted(loss: Any) -> tuple[Ensemble, Ledger]:
            before = next(begins)
            ledger = Ledger(penalty, len(train), train.multiplicity)
            ensemble = boost(
                codes,
                bins,
                train.y,
                loss=loss,
                settings=settings,
                penalty=penalty,
                multiplicity=train.multiplicity,
                ledger=ledger,
                threads=context.threads,
                progress=lambda done, _: context.progress(min(before + done, total), total),
            )
            return ensemble, ledger

        return boosted


def output_of(ensemble: Ensemble, output: int) -> Ensemble:
    """The trees of one output as a separate ensemble, without trees of one node."""
    split = np.diff(ensemble.start) > 1
    trees = ensemble.select(np.flatnonzero((ensemble.output == output) & split))
    return replace(trees, output=0 * trees.output, base=ensemble.base[output : output + 1])
