"""Cronus: a cascade of re-weighted boosted trees that minimises loss plus test-time cost.

M. Chen, Z. Xu, K. Q. Weinberger, O. Chapelle, D. Kedem: Classifier Cascade for Minimizing Feature
Evaluation Cost, AISTATS 2012. ``cronus-single`` is the single stage of section 3.1 (eq. 4-7),
``cronus-init`` the cascade after Algorithm 2 (eq. 13, 14), ``cronus`` the cascade after Algorithm 1
(eq. 8, 9, 11), warm-started from it. The dictionary is another learner's boosted trees, learning
rate included, so weights of 1 give that learner; there is also a free constant.

Equations
    4-7           bench_models.priced_squares.priced_loss     one stage as if it were the last
    8             cascade.true_loss           with bench_models.problem.relaxed_cost
    p, d, q       cascade.flow, cascade.CascadeFlow.exit
    9             cascade.StageObjective      (8) as a function of one stage, by (11)
    10, 11        bench_models.problem.auxiliaries    kappa and eta; sigma is |b|
    13, 14        bench_models.priced_squares.priced_ridge, bench_models.priced_squares._reweight
    Algorithm 1   cascade.optimise, bench_models.descent.improve_in_turns
    Algorithm 2   initialise.initialise
    section 3.4   best over initialisations; units of rho: initialise.critical_rho

The paper's lambda is ``tradeoff * L0 / prices.everything`` with L0 the constant predictor's mean
training loss, because a row's weight is m w / N: m its multiplicity, w its class weight, N the sum
of m. The paper does not give the unit of its lambda (1e-4 * 1.3^-(0..9) on Yahoo). It cannot be
ours: ``tradeoff`` would be 24 to 2, but even a single stage stays empty above about .15, for any
number of trees.

The unit of rho_1 (all stages but the last) and rho_K is the critical rho. It is the smallest rho
that leaves the first stage of the initialisation without a tree at ``tradeoff`` 0. As in
section 3.4 every pair of ``rho_first`` and ``rho_last`` is initialised. Only the one with the best
validation metric is optimised. Validation rows have no other use.

Departures
- lambda_k = lambda delta^(K-k). The printed rule (lambda_1 = lambda delta^-K, then falling)
  contradicts its own text, which inflates early stages and reaches lambda at the last.
- Tree weights below ``cut_off`` are set to exact zeros, before any cost is counted: re-weighted
  least squares only approaches zero.
- Stages of the initialisation are solved on working sets of trees, which grow until the optimality
  conditions hold for all trees. The cut-off applies in every iteration. A tree cut off is tried
  once more if it would lower the loss.
- Columns that are constant on the rows that reach a stage are left out of it. A singular Gram
  matrix gets the smallest sufficient jitter of 1e-10, 1e-8, ... of its diagonal.
- A stage without trees after the initialisation gets an accept-all threshold immediately, and
  the optimisation does not revive it. Such stages are removed from the served model; its ``facts``
  list them.
- Updates of the optimisation that raise eq. (8) are dropped.
- The class weight 3.5 is the paper's for rare relevant documents. Binary tasks default to 1, the
  paper's usual choice for balanced data: other weights shift shrunken scores away from zero.
- d_k uses the rows' multiplicity but not the class weights: cost does not depend on classes.
- The tree price e_t is the price of a tree plus the splits on the training rows' mean path.
- ``drop`` is reduced if the initial gates would leave fewer rows than ``keep`` times the share of
  positives, since the paper's 15 percent assumes rare positives (``keep = 0``: as printed).
- For ranking, rejected rows are ordered below all survivors, by exit stage and then stage score.
  ``rejected = "minus-one"`` is the printed rule, -1 for all of them, as always in binary tasks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from itertools import product
from math import inf, isnan
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from bench_models.boosting import TRADEOFF, OnTrees, ensemble_of
from bench_models.descent import DescentSettings, JointlyOptimised
from bench_models.dictionary import dictionary
from bench_models.least_squares import one_blas_thread
from bench_models.problem import Problem, needed, positives
from bench_models.staged import END, Point, Stage, StagedModel
from bench_models.tradeoff import price_of_cost

from bench_core import (
    BudgetedLearner,
    Examples,
    FitContext,
    Prices,
    Task,
    log,
    param,
    provide_learners,
)
from bench_methods.cronus.cascade import Cascade, CascadePenalty, Fitted, optimise
from bench_methods.cronus.initialise import critical_rho, initialise

if TYPE_CHECKING:
    from bench_trees import Ensemble


Shares = tuple[float, float]
"""rho_1 and rho_K as shares of the critical value."""
_NO_FIRST: tuple[float, ...] = (0.0,)
_RHO = "l1 weights to try {}, as shares of the one that empties the first stage; validation chooses"


@dataclass(frozen=True)
class CronusSingle(OnTrees):
    """Boosted trees re-weighted to minimise loss plus cost, one stage (eq. 4-7)."""

    name: ClassVar[str] = "cronus-single"
    numerics: ClassVar[tuple[str, ...]] = ("scipy", "cpu")
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.RANKING, Task.BINARY})
    adds_up: ClassVar[bool] = False

    tradeoff: float = param(0.2, TRADEOFF, least=0, search=log(0.003, 3))
    rho_last: tuple[float, ...] = param(
        (0.003, 0.01), _RHO.format("in the last (here: only) stage"), least=0
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
        1e-4, "smaller tree weights become exact zeros (1 is the base's weight)", above=0
    )
    iterations: int = param(200, "maximum re-weighted least-squares solutions per stage", least=1)

    # parameters of cascades: a single stage has no gate
    stages, rho_first, drop, delta, gate_slope, keep = 1, _NO_FIRST, 0.0, 1.0, 50.0, 0.0
    rejected = "out"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.rho_first or not self.rho_last:
            raise ValueError("rho_first and rho_last need at least one value each")

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> StagedModel:
        """Re-weight (and for cascades re-order) the trees of ``base``; ``valid`` chooses rho.

        Raises InputError if only one class is present, UsageError if ``base`` has no trees.
        """
        ensemble = ensemble_of(self.name, self.base, context)
        with one_blas_thread():
            problem = self._problem(ensemble, train, prices, context)
            critical = critical_rho(problem, context.threads)
            first = self.rho_first if self.stages > 1 else _NO_FIRST
            penalties = {
                shares: self._penalty(problem, prices, critical, shares)
                for shares in product(first, self.rho_last)
            }
            starts = self._initialised(problem, penalties, context)

            def judge(start: Cascade) -> float:
                return quality(self._served(start, ensemble, prices, context), valid, context)

            rho = best(starts, judge)
            end = optimise(problem, penalties[rho], starts[rho], DescentSettings(cycles=0))
        facts = self._facts(end, penalties[rho], critical, rho)
        return self._served(end.model, ensemble, prices, context, facts)

    def _positive_weight(self, context: FitContext) -> float:
        usual = 3.5 if context.task == Task.RANKING else 1.0
        return usual if self.positive_weight is None else self.positive_weight

    def _problem(
        self, ensemble: Ensemble, train: Examples, prices: Prices, context: FitContext
    ) -> Problem:
        positive = positives(self.name, train, context.task, self.relevant_grade)
        share = train.weights / train.weights.sum()
        trees = dictionary(ensemble, train.X, share, prices, context.threads)
        sensor_cost, needs = needed(prices.sensor, trees.needs)
        return Problem(
            columns=trees.columns,
            y=np.where(positive, 1.0, -1.0),
            weight=share * np.where(positive, self._positive_weight(context), 1.0),
            share=share,
            tree_cost=trees.tree_cost,
            sensor_cost=sensor_cost,
            needs=needs,
            slope=self.gate_slope,
        )

    def _penalty(
        self, problem: Problem, prices: Prices, critical: float, shares: Shares
    ) -> CascadePenalty:
        lam = price_of_cost(self.tradeoff, problem.constant_loss, prices.everything)
        # rho_1 in all stages but the last, as in the paper
        rho = np.append(np.full(self.stages - 1, shares[0]), shares[1])
        return CascadePenalty(lam, critical * rho)

    def _initialised(
        self, problem: Problem, penalties: Mapping[Shares, CascadePenalty], context: FitContext
    ) -> dict[Shares, Cascade]:
        # gates must be able to pass all positives
        survivors = self.keep * float(problem.share[problem.y > 0].sum())
        firsts = list(dict.fromkeys(first for first, _ in penalties))
        cascades: dict[Shares, Cascade] = {}
        solved = self.stages - 1 + len(self.rho_last)

        def after(begun: int) -> Callable[[int], None]:
            return lambda done: context.progress(begun + done, len(firsts) * solved)

        for tried, first in enumerate(firsts):
            group = [shares for shares in penalties if shares[0] == first]
            starts = initialise(
                problem,
                [penalties[shares] for shares in group],
                delta=self.delta,
                drop=gentle_drop(self.drop, self.stages, survivors),
                cut_off=self.cut_off,
                iterations=self.iterations,
                threads=context.threads,
                progress=after(tried * solved),
            )
            cascades |= dict(zip(group, starts, strict=True))
        return cascades

    def _served(
        self,
        cascade: Cascade,
        ensemble: Ensemble,
        prices: Prices,
        context: FitContext,
        facts: Mapping[str, Any] = MappingProxyType({}),
    ) -> StagedModel:
        return staged(
            cascade,
            ensemble=ensemble,
            prices=prices,
            binary=context.task == Task.BINARY,
            positive_weight=self._positive_weight(context),
            rejected=self.rejected,
            facts=facts,
        )

    def _facts(
        self, end: Fitted, penalty: CascadePenalty, critical: float, rho: Shares
    ) -> dict[str, Any]:
        return {
            "loss": "squared",
            "lambda": penalty.lam,
            "rho_critical": critical,
            "rho": list(rho),
            "objective": end.loss,
            "stages": end.model.stages,
            "vanished": end.model.vanished(),
            "arriving": end.rows.arriving.tolist(),
            "trees_per_stage": np.count_nonzero(end.model.weights, axis=1).tolist(),
        }


@dataclass(frozen=True)
class CronusInit(CronusSingle):
    """A cascade of re-weighted trees, each stage fitted as if it were the last (Algorithm 2)."""

    name: ClassVar[str] = "cronus-init"

    rho_first: tuple[float, ...] = param(
        (0.01, 0.03, 0.1), _RHO.format("in all stages but the last"), least=0
    )
    stages: int = param(10, "number of stages K; stages without effect are removed", least=1)
    drop: float = param(
        0.15, "share of the arriving rows that each initial gate rejects", least=0, below=1
    )
    delta: float = param(
        1.3, "factor delta^(K-k) of cost in stage k of the initialisation", least=1
    )
    gate_slope: float = param(50.0, "steepness of the soft gates during training", above=0)
    keep: float = param(
        1.25, "initial gates pass at least this multiple of the share of positives", least=0
    )
    rejected: Literal["out", "minus-one", "score"] = param(
        "out",
        "rejected rows: out (ranking: below survivors, by stage and score; binary: -1), "
        "minus-one (all -1, as printed) or score (their stage's score)",
    )


@dataclass(frozen=True)
class Cronus(JointlyOptimised, CronusInit):
    """A cascade of re-weighted trees with jointly optimised stages and gates (Algorithm 1)."""

    name: ClassVar[str] = "cronus"

    @property
    def start(self) -> CronusInit:
        """The learner of the initialisation."""
        return CronusInit(**{f.name: getattr(self, f.name) for f in fields(CronusInit)})

    def needs(self) -> tuple[BudgetedLearner, ...]:
        """The initialisation with the same parameters."""
        return (self.start,)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> StagedModel:
        """Optimise the stages and gates of ``start`` jointly."""
        begin: StagedModel = context.fitted(self.start)
        ensemble, total = begin.ensemble, self.stages * self.cycles
        assert ensemble is not None
        critical, rho = begin.facts["rho_critical"], tuple(begin.facts["rho"])
        units = units_of(context.task == Task.BINARY, self._positive_weight(context))
        with one_blas_thread():
            # trees without a weight never get one
            problem = self._problem(ensemble, train, prices, context)
            penalty = self._penalty(problem, prices, critical, rho)
            end = optimise(
                problem,
                penalty,
                cascade_of(begin, ensemble.trees, *units),
                DescentSettings.of(self, context.threads),
                progress=lambda done: context.progress(done, total),
            )
        context.progress(total, total)  # it may have ended early
        facts = self._facts(end, penalty, critical, rho)
        return self._served(end.model, ensemble, prices, context, facts)


def quality(model: StagedModel, valid: Examples, context: FitContext) -> float:
    """The run's metric on the validation rows, higher is better; NaN if it is undefined."""
    *_, prediction = model.predict_path(valid.features)
    found = context.metric.values(prediction.scores, valid.y, valid.units, valid.multiplicity)
    return found.mean if context.metric.higher_is_better else -found.mean


def best(starts: Mapping[Shares, Cascade], judge: Callable[[Cascade], float]) -> Shares:
    """The setting of the cascade with the highest quality (section 3.4); ties, or all NaN: the
    first."""
    first, *others = starts
    if not others:
        return first
    # NaN: the metric is undefined on every query
    values = {shares: judge(start) for shares, start in starts.items()}
    return max(values, key=lambda shares: -inf if isnan(values[shares]) else values[shares])


def gentle_drop(drop: float, stages: int, survivors: float) -> float:
    """``drop``, reduced so that K-1 gates together pass at least the share ``survivors``."""
    if stages < 2:
        return drop
    return min(drop, 1.0 - float(min(1.0, survivors) ** (1.0 / (stages - 1))))


def staged(
    cascade: Cascade,
    *,
    ensemble: Ensemble,
    prices: Prices,
    binary: bool,
    positive_weight: float,
    rejected: str,
    facts: Mapping[str, Any] = MappingProxyType({}),
) -> StagedModel:
    """A chain of hard gates: a row goes on iff its stage score is at least the threshold.

    Vanished stages and trees without a weight are left out. Scores are ``f`` in units of the
    labels +1 and -1 for ranking. For binary tasks they are ``2 f - log(w+)``: with ``f`` the mean
    of labels weighted w+ : 1, the log-odds are ``2 artanh(f) - log(w+)``, and this is the tangent
    at 0. Rejected rows get the paper's prediction -1, or in ranking a score below all survivors of
    their query (``"out"``), or their stage's score (``"score"``).
    """
    vanished = set(cascade.vanished())
    live = [k for k in range(cascade.stages) if k not in vanished]
    scale, shift = units_of(binary, positive_weight)
    used = np.flatnonzero(cascade.weights[live].any(axis=0))  # trees with a weight in a live stage
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
                bar=None if last or bar == -np.inf else bar,
                then=END if last else place + 1,
            )
        )
    ordered = rejected == "out" and not binary
    out: Literal["below"] | float = "below" if ordered else shift - scale
    return StagedModel(
        stages=stages,
        points=[Point(len(stages) - 1, {"stages": len(stages)})],
        prices=prices,
        ensemble=ensemble.select(used),
        rejected="score" if rejected == "score" else out,
        facts=dict(facts),
    )


def units_of(binary: bool, positive_weight: float) -> tuple[float, float]:
    """Factor and shift from scores for labels of +-1 to served scores."""
    return (2.0, -math.log(positive_weight)) if binary else (1.0, 0.0)


def cascade_of(model: StagedModel, trees: int, scale: float, shift: float) -> Cascade:
    """The cascade that ``staged`` served, over its ``trees``. Vanished stages have no bias."""
    stages, vanished = model.facts["stages"], model.facts["vanished"]
    weights, bias = np.zeros((stages, trees)), np.zeros(stages)
    threshold = np.full(stages, -np.inf)
    live = [k for k in range(stages) if k not in vanished]
    for k, stage in zip(live, model.stages, strict=True):
        weights[k, stage.entries] = stage.weights / scale
        bias[k] = (stage.bias[0] - shift) / scale
        if stage.bar is not None:
            threshold[k] = (stage.bar - shift) / scale
    return Cascade(weights, bias, threshold)


bench_learners = provide_learners(CronusSingle, CronusInit, Cronus, family="cascades")
