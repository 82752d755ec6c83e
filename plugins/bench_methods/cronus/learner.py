"""The three learners: single stage, cascade after initialisation, cascade after optimisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from bench_models.boosting import OnTrees, ensemble_of
from bench_models.descent import Settings
from bench_models.dictionary import dictionary
from bench_models.least_squares import one_blas_thread
from bench_models.problem import Problem, positives
from bench_models.tradeoff import price_of_cost

from bench_core import BudgetedLearner, Examples, FitContext, Prices, Task, param
from bench_methods.cronus.initialise import initialise
from bench_methods.cronus.objective import Cascade, Penalty
from bench_methods.cronus.optimise import optimise, position
from bench_methods.cronus.serving import staged

if TYPE_CHECKING:
    from bench_models.staged import StagedModel


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
                slope=self._slope,
            )
            lam = price_of_cost(self.tradeoff, problem.constant_loss, prices.everything)
            cascade, penalty = self._fitted(problem, lam, context)
            end = position(problem, penalty, cascade)
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
            rejected=self._rejected,
            facts=facts,
        )

    def _weight(self, task: Task) -> float:
        usual = 3.5 if task == Task.RANKING else 1.0
        return usual if self.positive_weight is None else self.positive_weight

    @property
    def _slope(self) -> float:
        return 1.0  # no gate

    @property
    def _rejected(self) -> Literal["out", "score"]:
        return "out"

    def _fitted(self, problem: Problem, lam: float, context: FitContext) -> tuple[Cascade, Penalty]:
        penalty = Penalty(lam, np.array([self.rho_last]))
        cascade = initialise(
            problem,
            penalty,
            delta=1.0,
            drop=0.0,
            cut_off=self.cut_off,
            iterations=self.iterations,
            threads=context.threads,
            progress=lambda done: context.progress(done, 1),
        )
        return cascade, penalty


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

    @property
    def _slope(self) -> float:
        return self.gate_slope

    @property
    def _rejected(self) -> Literal["out", "score"]:
        return self.rejected

    @property
    def _updates(self) -> int:
        return 0

    def _fitted(self, problem: Problem, lam: float, context: FitContext) -> tuple[Cascade, Penalty]:
        rho = np.full(self.stages, self.rho_first)
        rho[-1] = self.rho_last
        penalty = Penalty(lam, rho)
        positives = float(problem.share[problem.y > 0].sum())
        cascade = initialise(
            problem,
            penalty,
            delta=self.delta,
            drop=gentle_drop(self.drop, self.stages, self.keep * positives),
            cut_off=self.cut_off,
            iterations=self.iterations,
            threads=context.threads,
            progress=lambda done: context.progress(done, self.stages + self._updates),
        )
        return cascade, penalty


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

    @property
    def _updates(self) -> int:
        return self.cycles * self.stages

    def _fitted(self, problem: Problem, lam: float, context: FitContext) -> tuple[Cascade, Penalty]:
        start, penalty = super()._fitted(problem, lam, context)
        total = self.stages + self._updates
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
        context.progress(total, total)
        return end.cascade, penalty


def gentle_drop(drop: float, stages: int, survivors: float) -> float:
    """``drop``, or less, so that K-1 gates together leave at least the share ``survivors``."""
    if stages < 2:
        return drop
    return min(drop, 1.0 - float(min(1.0, survivors) ** (1.0 / (stages - 1))))
