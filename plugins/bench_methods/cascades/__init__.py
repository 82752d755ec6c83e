"""Cascades with predefined stages: Soft-Cascade and AND-OR.

The trees of another learner are assigned to stages by the price of their most expensive feature.
Stage k may use all trees up to the k-th limit (in the Cronus paper, AISTATS 2012, five stages and
prices 5, 20, 50, 150, 200). A stage is a linear function f_k = w_k.h + b_k of its trees' outputs h.
The weights of all stages are learned jointly, by cyclic descent over stages.

``soft-cascade``: V. Raykar, B. Krishnapuram, S. Yu, "Designing efficient cascaded classifiers:
tradeoff between accuracy and cost", KDD 2010 [formulas recalled, not verified in its text]. A
row is positive with probability p_i = prod_k sigma(f_ik). The objective per row is

    - log-likelihood + beta (c_1 + sum_{k>=2} c_k prod_{j<k} sigma(f_ij)) + ridge / 2 sum_k |w_k|^2

c_k is the price of the sensors and trees that stage k adds. beta is tau = ``tradeoff`` times the
constant's log-loss / price of all features, because the loss is a mean over rows.

``and-or``: M. Dundar, J. Bi, "Joint optimization of cascaded classifiers for computer aided
detection", CVPR 2007 [formulas from its patent]. With y = +-1 and e_ik = 1 - y_i f_ik it minimises

    sum_neg prod_k max(0, e_ik) + nu sum_pos max(0, e_i1, .., e_iK) + ridge / 2 sum_k |w_k|^2

(means over rows): one stage must reject a negative, all must pass a positive. It ignores cost.

Equations
    soft-cascade    objectives.Soft.value, one stage's part objectives.Soft.stage
    and-or          objectives.Hinges.value, one stage's part objectives.Hinges.stage
    stages, c_k     stage_trees, stage_costs
    cycles          objectives.descend, objectives.StageDescent.improved

A served row is rejected once an upper bound of its score is below a threshold: p_i so far for
soft-cascade, the smallest f_ik so far for and-or (papers: 0). Both only fall from stage to stage,
so rows that would end above the threshold are never rejected. Every threshold is an operating point
of the same fit; the last point is the model without rejection.

Departures
- The serving rule and the thresholds are our own. Cronus' authors varied AND-OR's weights.
- Stages: ``limits = none`` orders the trees by their most expensive feature, then by position in
  the ensemble; stage k has the first k / K of them. If all prices are equal a stage is a prefix of
  the ensemble. Stages that add no trees are left out.
- |w_k|^2 is in units in which a stage's columns have mean variance 1 (one scale for all, so trees
  of small variance are shrunk most). Columns that are constant on the training rows are dropped.
  The constant b_k is free.
- By default soft-cascade tries four values of ``tradeoff``. On letters, spambase and breast-cancer
  its frontier is that of the seven values of other learners.
- Both are minimised by L-BFGS, stage by stage, starting with each stage fitted alone. It ends when
  no entry of the gradient, in whitened coordinates, exceeds 1e-4; with 1e-10 the mean accuracy over
  budgets is the same within .0001 on these three. A stage that passes all rows has no gradient.
- and-or therefore starts each update also from the initial stage; soft-cascade does so once for
  each stage, after a failed update. With a second start of every update soft-cascade takes a third
  longer, and its accuracy is at no budget higher on letters, spambase and magic. Updates that raise
  the objective are dropped. The hinge is smoothed over a width of 0.1 in descents. Another order of
  sums moves the accuracy of and-or within a small budget by up to .013 on these three, without one
  by .0007.
- In training a stage pays for all its trees' features, for any path of a row (as in the papers).
  Reported costs are exact.
- Ranking: positive means a grade of at least ``relevant_grade``. Rejected documents rank below all
  others, by stage and then by score. Scores are the log-odds of p_i for soft-cascade. For and-or
  they are the last stage's in ranking, else the smallest f_ik, converted to log-odds by Platt
  scaling on the training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from bench_models.boosting import TRADEOFF, OnTrees, ensemble_of
from bench_models.calibration import Line, platt
from bench_models.dictionary import dictionary, tested_features
from bench_models.least_squares import one_blas_thread
from bench_models.links import logit
from bench_models.problem import positives
from bench_models.staged import END, Point, Stage, StagedModel
from bench_models.staged.exits import ExitModel, ExitRule, check_thresholds
from bench_models.tradeoff import entropy, price_of_cost

from bench_core import Examples, FitContext, Prices, Task, UsageError, log, param, provide_learners
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_methods.cascades.objectives import (
    FittedStages,
    Hinges,
    Loss,
    Soft,
    StageDescent,
    StageDesign,
    descend,
    stage_designs,
)

if TYPE_CHECKING:
    from bench_trees import Ensemble


@dataclass(frozen=True, kw_only=True)
class _Cascade(OnTrees):
    """Base class of both learners; subclasses define the loss and the served scores."""

    name: ClassVar[str]
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.RANKING, Task.BINARY})
    adds_up: ClassVar[bool] = False

    thresholds: tuple[float, ...]
    limits: tuple[float, ...] | None = param(
        None,
        "maximum price of a feature in each stage; none: equal shares of the trees",
        least=0,
    )
    stages: int = param(5, "number of stages without limits", least=1)
    ridge: float = param(
        0.03,
        "weight of the squared tree weights (unit: columns of variance 1)",
        above=0,
        search=log(1e-3, 1),
    )
    relevant_grade: int = param(
        3, "ranking: a document is positive iff its grade is at least this", least=1
    )
    cycles: int = param(10, "maximum passes over all stages", least=0)
    steps: int = param(200, "maximum descent steps per stage and pass", least=1)
    tolerance: float = param(1e-3, "stop after a pass with a relative gain below this", least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        limits = self.limits
        if limits is not None and not (limits and list(limits) == sorted(set(limits))):
            raise ValueError("limits must rise")
        check_thresholds(self.thresholds)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> ExitModel:
        """Learn the tree weights of all stages jointly; ``valid`` is not used.

        Raises InputError if only one class is present, UsageError if ``base`` has no trees.
        """
        ensemble = ensemble_of(self.name, self.base, context)
        positive = positives(self.name, train, context.task, self.relevant_grade)
        chosen = stage_trees(ensemble, prices, self.limits, self.stages)
        total = len(chosen) * (1 + self.cycles)
        with one_blas_thread():
            share = train.weights / train.weights.sum()
            trees = dictionary(ensemble, train.X, share, prices, context.threads)
            cost = stage_costs(chosen, trees.tree_cost, trees.needs, prices.sensor)
            loss = self._loss(positive, share, cost, prices)
            designs = stage_designs(trees.columns, chosen, share, loss.curvature, self.ridge)
            fitted = descend(
                StageDescent(designs, loss, self.ridge, self.steps),
                self.cycles,
                self.tolerance,
                progress=lambda done: context.progress(done, total),
            )
            line = self._line(fitted.scores, positive, train.weights, context.task)
        context.progress(total, total)
        facts = {
            "objective": fitted.loss,
            "trees_per_stage": [len(own) for own in chosen],
            "cost_per_stage": cost.tolist(),
        }
        stages = served(fitted, designs, line)
        chain = StagedModel(stages, [Point(len(stages) - 1, {})], prices, ensemble, facts=facts)
        return self._with_exits(chain, line, context.task)

    def _with_exits(self, chain: StagedModel, line: Line, task: Task) -> ExitModel:
        """The chain with exits below each threshold."""
        count = len(chain.stages)
        thresholds = self.thresholds if count > 1 else ()
        # thresholds in units of the served scores
        bars = line(self._bars(np.array(thresholds, dtype=np.float64)))
        return ExitModel(
            chain=chain,
            rule=ExitRule("score", np.repeat(bars[:, None], count - 1, axis=1)),
            points=[{"threshold": float(t)} for t in thresholds],
            full={"stages": count},
            combine=self._combine(task),
        )

    def _loss(
        self, positive: BoolArray, share: FloatArray, cost: FloatArray, prices: Prices
    ) -> Loss:
        raise NotImplementedError

    def _bars(self, thresholds: FloatArray) -> FloatArray:
        return thresholds

    def _combine(self, task: Task) -> str:
        raise NotImplementedError

    def _line(self, scores: FloatArray, positive: BoolArray, mass: FloatArray, task: Task) -> Line:
        return Line(1.0, 0.0)


@dataclass(frozen=True, kw_only=True)
class SoftCascade(_Cascade):
    """A cascade of predefined stages that maximises likelihood minus expected cost."""

    name: ClassVar[str] = "soft-cascade"
    tradeoffs: ClassVar[tuple[float, ...]] = (0.03, 0.3, 1.0, 3.0)  # its thresholds make the path

    tradeoff: float = param(0.5, TRADEOFF, least=0, search=log(1e-3, 3))
    thresholds: tuple[float, ...] = param(
        (0.5, 0.4, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01),
        "operating points: a row is rejected once its probability is below this",
        above=0,
        below=1,
    )

    def _loss(
        self, positive: BoolArray, share: FloatArray, cost: FloatArray, prices: Prices
    ) -> Loss:
        part = float(share[positive].sum())
        constant = entropy(np.array([1 - part, part]))  # the constant's log-loss
        tau = price_of_cost(self.tradeoff, constant, prices.everything)
        return Soft(positive, share, cost, tau)

    def _combine(self, task: Task) -> str:
        return "and"

    def _bars(self, thresholds: FloatArray) -> FloatArray:
        return logit(thresholds)


@dataclass(frozen=True, kw_only=True)
class AndOr(_Cascade):
    """A cascade of predefined stages: one must reject a negative, all must pass a positive."""

    name: ClassVar[str] = "and-or"
    numerics: ClassVar[tuple[str, ...]] = ()

    positive_weight: float | None = param(
        None,
        "weight of positives in the loss (nu), negatives 1; none: equal total weights",
        above=0,
    )
    thresholds: tuple[float, ...] = param(
        (1.0, 0.75, 0.5, 0.25, 0.0, -0.25, -0.5, -0.75, -1.0, -1.5, -2.0),
        "operating points: a row is rejected once a stage's score is below this",
    )

    def _loss(
        self, positive: BoolArray, share: FloatArray, cost: FloatArray, prices: Prices
    ) -> Loss:
        part = float(share[positive].sum())
        # equal total weights of positives and negatives
        alike = (1 - part) / part
        return Hinges(
            positive, share, alike if self.positive_weight is None else self.positive_weight
        )

    def _combine(self, task: Task) -> str:
        # survivors are ranked by the last stage: a minimum at a weak stage would give many ties
        return "min" if task is Task.BINARY else "last"

    def _line(self, scores: FloatArray, positive: BoolArray, mass: FloatArray, task: Task) -> Line:
        if task is not Task.BINARY:
            return Line(1.0, 0.0)
        return platt(scores.min(axis=0), positive, mass)


def stage_trees(
    ensemble: Ensemble, prices: Prices, limits: Sequence[float] | None, stages: int
) -> list[IntArray]:
    """The trees of each stage, every stage with more than the one before.

    With ``limits``: trees with features that all cost at most the stage's limit. Without: the first
    1/K, 2/K, ... of the trees by most expensive feature. Raises UsageError if no tree qualifies.
    """
    # the price of each tree's most expensive feature, bought alone
    highest = np.where(tested_features(ensemble, slice(None)), prices.feature_price(), 0.0).max(
        axis=1
    )
    if limits is None:
        order = np.argsort(highest, kind="stable")
        # the first k / K of the trees, rounded up
        ends = -(-np.arange(1, stages + 1) * len(order) // stages)
        trees = [np.sort(order[:end]) for end in ends]
    else:
        trees = [np.flatnonzero(highest <= limit) for limit in limits]
        if len(highest) and len(trees[-1]) == 0:
            raise UsageError(
                f"no tree has only features of price <= {limits[-1]:g} (the least that covers a "
                f"tree is {highest.min():g}); raise limits or use a base of small trees"
            )
    more = [len(t) > (len(trees[k - 1]) if k else 0) for k, t in enumerate(trees)]
    return [t for t, keep in zip(trees, more, strict=True) if keep] or [trees[-1]]


def stage_costs(
    stages: Sequence[IntArray], tree_cost: FloatArray, needs: FloatArray, sensor: FloatArray
) -> FloatArray:
    """Additional cost of each stage for a row, (K,): new sensors and new trees.

    ``tree_cost`` (T,), ``needs`` (s, T) 1.0 where a tree needs a sensor, prices ``sensor`` (s,).
    """
    totals = [
        float(tree_cost[trees].sum() + sensor[needs[:, trees].any(axis=1)].sum())
        for trees in stages
    ]
    return np.diff(totals, prepend=0.0)


def served(fitted: FittedStages, designs: Sequence[StageDesign], line: Line) -> list[Stage]:
    """Served stages over the trees' raw outputs, with scores transformed by ``line``."""
    stages = []
    for k, (linear, design) in enumerate(zip(fitted.stages, designs, strict=True)):
        weights, bias = linear.on_trees(design)
        then = END if k == len(designs) - 1 else k + 1
        weights, constant = line.slope * weights, line(np.array([bias]))
        stages.append(Stage(design.trees, weights, constant, then=then))
    return stages


bench_learners = provide_learners(SoftCascade, AndOr, family="cascades")
