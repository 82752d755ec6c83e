"""The three learners, and from the soft gates of their training the cascade that is served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from bench_models.boosting import OnTrees, ensemble_of
from bench_models.descent import Settings
from bench_models.dictionary import dictionary
from bench_models.least_squares import one_blas_thread
from bench_models.problem import Problem, positives
from bench_models.staged import END, Gate, Point, Stage, StagedModel
from bench_models.tradeoff import price_of_cost

from bench_core import BudgetedLearner, Examples, FitContext, Prices, Task, param
from bench_methods.cronus.cascade import Cascade, Penalty, Position, optimise
from bench_methods.cronus.initialise import initialise

if TYPE_CHECKING:
    from bench_trees import Ensemble


@dataclass(frozen=True)
class CronusSingle(OnTrees):
    """Boosted trees weighted anew to minimise loss plus cost, one stage (eq. 4-7)."""

    name: ClassVar[str] = "cronus-single"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.RANKING, Task.BINARY})
    adds_up: ClassVar[bool] = False

    base: BudgetedLearner = param("gbrt", "learner whose boosted trees are the dictionary")
    tradeoff: float = param(
        0.2, "price of all features in units of the constant's training loss", least=0
    )
    rho_last: float = param(
        1e-4, "l1 weight of the last (here: only) stage; set it on validation", least=0
    )
    positive_weight: float | None = param(
        None,
        "loss weight of positive rows (w+), negatives 1; none: 3.5 for ranking, 1 for binary",
        above=0,
    )
    relevant_grade: int = param(
        3, "ranking: a document is positive iff its grade is at least this", least=1
    )
    cut_off: float = param(
        1e-4, "smaller tree weights become exact zeros (1 is the base's own)", above=0
    )
    iterations: int = param(200, "re-weighted least-squares solutions per stage, at most", least=1)

    # what cascades have parameters for: one stage has no gate and is never optimised
    stages, rho_first, drop, delta, gate_slope, keep = 1, 0.0, 0.0, 1.0, 50.0, 0.0
    cycles, reweightings, steps, tolerance, rejected = 0, 5, 20, 1e-4, "out"

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> StagedModel:
        """Re-weight (and for cascades re-order) the trees of ``base``; ``valid`` is not used.

        Raises InputError where only one class is present, UsageError where ``base`` has no trees.
        """
        ensemble = ensemble_of(self.name, self.base, context)
        positive = positives(self.name, train, context.task, self.relevant_grade)
        with one_blas_thread():
            share = train.weights / train.weights.sum()
            trees = dictionary(ensemble, train.X, share, prices, context.threads)
            problem = Problem(
                columns=trees.columns,
                y=np.where(positive, 1.0, -1.0),
                weight=share * np.where(positive, self._weight(context.task), 1.0),
                share=share,
                tree_cost=trees.tree_cost,
                sensor_cost=prices.sensor,
                needs=trees.needs,
                slope=self.gate_slope,
            )
            lam = price_of_cost(self.tradeoff, problem.constant_loss, prices.everything)
            end = self._fitted(problem, lam, context)
        cascade = end.cascade
        facts = {
            "loss": "squared",
            "lambda": lam,
            "objective": end.loss,
            "stages": cascade.stages,
            "vanished": cascade.vanished(),
            "arriving": end.rows.arriving.tolist(),
            "trees_per_stage": np.count_nonzero(cascade.weights, axis=1).tolist(),
        }
        return staged(
            cascade,
            ensemble,
            prices,
            binary=context.task == Task.BINARY,
            positive_weight=self._weight(context.task),
            rejected=self.rejected,
            facts=facts,
        )

    def _weight(self, task: Task) -> float:
        usual = 3.5 if task == Task.RANKING else 1.0
        return usual if self.positive_weight is None else self.positive_weight

    def _fitted(self, problem: Problem, lam: float, context: FitContext) -> Position:
        rho = np.append(np.full(self.stages - 1, self.rho_first), self.rho_last)
        penalty, total = Penalty(lam, rho), self.stages * (1 + self.cycles)
        positives = float(problem.share[problem.y > 0].sum())
        start = initialise(
            problem,
            penalty,
            delta=self.delta,
            drop=gentle_drop(self.drop, self.stages, self.keep * positives),
            cut_off=self.cut_off,
            iterations=self.iterations,
            threads=context.threads,
            progress=lambda done: context.progress(done, total),
        )
        end = optimise(
            problem,
            penalty,
            start,
            Settings(
                cut_off=self.cut_off,
                cycles=self.cycles,
                reweightings=self.reweightings,
                steps=self.steps,
                tolerance=self.tolerance,
                threads=context.threads,
            ),
            progress=lambda done: context.progress(self.stages + done, total),
        )
        if self.cycles > 0:  # which may have ended early
            context.progress(total, total)
        return end


@dataclass(frozen=True)
class CronusInit(CronusSingle):
    """A cascade of re-weighted trees, each stage fitted as if it were the last (Algorithm 2)."""

    name: ClassVar[str] = "cronus-init"

    rho_first: float = param(
        1e-4, "l1 weight of all stages but the last; set it on validation", least=0
    )
    stages: int = param(10, "number of stages K; needless ones vanish", least=1)
    drop: float = param(
        0.15, "share of the arriving rows that each initial gate rejects", least=0, below=1
    )
    delta: float = param(
        1.3, "cost counts delta^(K-k) times more in stage k of the initialisation", least=1
    )
    gate_slope: float = param(50.0, "steepness of the soft gates during training", above=0)
    keep: float = param(
        1.25, "initial gates leave this many times the share of positives, or all", least=0
    )
    rejected: Literal["out", "score"] = param(
        "out", "rejected rows: out (below survivors; binary: predicted -1) or score (their stage's)"
    )


@dataclass(frozen=True)
class Cronus(CronusInit):
    """A cascade of re-weighted trees whose stages and gates are optimised jointly (Algorithm 1)."""

    name: ClassVar[str] = "cronus"

    cycles: int = param(10, "passes over all stages, at most", least=0)
    reweightings: int = param(
        5, "rounds of auxiliary variables per stage and pass, at most", least=1
    )
    steps: int = param(20, "descent steps per round, at most", least=1)
    tolerance: float = param(
        1e-4, "a pass or round that gains less than this share is the last", least=0
    )


def gentle_drop(drop: float, stages: int, survivors: float) -> float:
    """``drop``, or less, so that K-1 gates together leave at least the share ``survivors``."""
    if stages < 2:
        return drop
    return min(drop, 1.0 - float(min(1.0, survivors) ** (1.0 / (stages - 1))))


def staged(
    cascade: Cascade,
    ensemble: Ensemble,
    prices: Prices,
    *,
    binary: bool,
    positive_weight: float,
    rejected: str,
    facts: Mapping[str, Any],
) -> StagedModel:
    """A chain of hard gates: a row goes on iff its stage score is at least the threshold.

    Vanished stages and trees without a weight are left out. Scores are ``f`` in units of the
    labels +1 and -1 for ranking. For binary tasks they are ``2 f - log(w+)``: with ``f`` the mean
    of labels weighted w+ : 1, the log-odds are ``2 artanh(f) - log(w+)``, of which this is the
    tangent at 0. Rejected rows score below all survivors of their query, or for binary tasks as
    the paper's prediction -1.
    """
    vanished = set(cascade.vanished())
    live = [k for k in range(cascade.stages) if k not in vanished]
    scale, shift = (2.0, -log(positive_weight)) if binary else (1.0, 0.0)
    used = np.flatnonzero(cascade.weights[live].any(axis=0))
    stages = []
    for place, k in enumerate(live):
        weights = cascade.weights[k][used]
        entries = np.flatnonzero(weights).astype(np.int64)
        last = place == len(live) - 1
        # gates between live stages may still be open: minus infinity passes all
        bar = scale * float(cascade.threshold[k]) + shift
        stages.append(
            Stage(
                entries=entries,
                weights=scale * weights[entries],
                bias=np.array([scale * cascade.bias[k] + shift]),
                gate=Gate("always") if last or bar == -np.inf else Gate("score", bar),
                then=END if last else place + 1,
            )
        )
    out: Literal["below"] | float = -scale + shift if binary else "below"
    return StagedModel(
        stages=stages,
        points=[Point(len(stages) - 1, {"stages": len(stages)})],
        prices=prices,
        ensemble=ensemble.select(used),
        rejected="score" if rejected == "score" else out,
        facts=dict(facts),
    )
