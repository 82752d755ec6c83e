"""The learners trained with the joint loss: one classifier, a chain and a tree of them."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from bench_models.boosting import TRADEOFF, OnTrees
from bench_models.descent import DescentSettings, JointlyOptimised
from bench_models.least_squares import one_blas_thread
from bench_models.problem import Problem
from bench_models.staged import StagedModel
from bench_models.tradeoff import price_of_cost

from bench_core import BudgetedLearner, Examples, FitContext, Prices, Task, inside, log, param
from bench_core.arrays import FloatArray
from bench_methods.cstc.serving import finished, inputs, label_variance, pruned, staged
from bench_methods.cstc.tree import (
    ClassifierTree,
    Shape,
    Solve,
    TreePenalty,
    initialise,
    optimise,
    stump,
)

UNIT_VARIANCE = 6.0
"""Label variance of the paper's synthetic problem. ``rho`` and ``gate_slope`` are in its units, so
results do not depend on the scale of the labels."""


@dataclass(frozen=True)
class TreeOfClassifiers(OnTrees):
    """Base class: inputs, refitting and pruning, and defaults of parameters that a learner
    lacks."""

    name: ClassVar[str]
    numerics: ClassVar[tuple[str, ...]] = ("scipy", "cpu")
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.REGRESSION, Task.RANKING, Task.BINARY})
    adds_up: ClassVar[bool] = False

    base: BudgetedLearner | None = param(  # type: ignore[assignment]
        "gbrt",
        "learner whose boosted trees are the inputs; none: the raw features",
        search=inside(),
    )
    tradeoff: float = param(0.2, TRADEOFF, least=0, search=log(1e-3, 3))
    constant: bool = param(True, "every classifier has a free constant")
    standardise: bool = param(False, "divide raw features by their standard deviation")

    refit, prune = False, False

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> StagedModel:
        """Train on ``train``, prune on ``valid``, refit the predictors.

        Raises UsageError if ``base`` has no trees.
        """
        with one_blas_thread():
            encoder, problem = inputs(
                self.name, self.base, train, prices, context, standardise=self.standardise
            )
            price = price_of_cost(self.tradeoff, problem.constant_loss, prices.everything)
            tree, facts = self._fitted(problem, price, prices, context)
            model = finished(
                problem, tree, refit=self.refit, constant=self.constant, threads=context.threads
            )
            if self.prune:
                model = pruned(model, encoder, valid, context)
        facts = {
            "loss": "squared",
            **facts,
            "nodes": model.tree.shape.nodes,
            "columns_per_node": np.count_nonzero(model.tree.weights, axis=1).tolist(),
        }
        return staged(model, encoder, prices, task=context.task, facts=facts)

    def _fitted(
        self, problem: Problem, price: float, prices: Prices, context: FitContext
    ) -> tuple[ClassifierTree, dict[str, Any]]:
        """The trained tree and facts about it; ``price`` is the price of a cost unit in loss."""
        raise NotImplementedError


@dataclass(frozen=True)
class CSTCSingle(TreeOfClassifiers):
    """One linear classifier over trees that minimises loss plus cost (eq. 4)."""

    name: ClassVar[str] = "cstc-single"

    rho: float = param(1e-3, "l1 weight, for labels of variance 6", least=0, search=log(1e-4, 0.1))
    refit: bool = param(True, "refit predicting classifiers without penalty; zeros stay zeros")
    cut_off: float = param(1e-4, "smaller weights become exact zeros (1 is a tree's own)", above=0)
    iterations: int = param(
        200, "re-weighted least-squares solutions per classifier, at most", least=1
    )

    # parameters of the other learners: without a gate and joint optimisation
    depth, gate_slope, onward = 1, 1.0, 0.5
    cycles, reweightings, steps, tolerance = 0, 5, 20, 1e-4
    ftol = 1e-6  # of descents

    @property
    def _shape(self) -> Shape:
        return Shape.balanced(self.depth)

    def _fitted(
        self, problem: Problem, price: float, prices: Prices, context: FitContext
    ) -> tuple[ClassifierTree, dict[str, Any]]:
        variance = label_variance(problem)
        if variance == 0.0:
            return stump(problem, float(problem.y[0])), {"lambda": price, "objective": 0.0}
        # solvers have absolute tolerances; scaling by a power of two is exact
        unit = float(np.exp2(np.round(0.5 * np.log2(variance))))
        of_paper = variance / unit**2 / UNIT_VARIANCE
        problem = replace(
            problem,
            columns=problem.columns / np.float32(unit),
            y=problem.y / unit,
            slope=self.gate_slope / of_paper**0.5,
        )
        penalty = TreePenalty(price / unit**2, self.rho * of_paper)
        shape = self._shape
        total = shape.nodes * (1 + self.cycles)
        # a node without gates above it does not depend on their slope
        how = [penalty, self.constant, self.cut_off, self.iterations, replace(problem, slope=0.0)]

        def shared(level: int, solve: Solve) -> tuple[FloatArray, float]:
            # a chain and a tree have the same upper nodes, all learners the same root
            gates = [self.gate_slope, self.onward] if level > 1 else []
            solution = context.trained(
                ["node", level, *how, *gates],
                lambda: dict(zip(("weights", "bias"), map(np.asarray, solve()), strict=True)),
            )
            return solution["weights"], float(solution["bias"])

        start = initialise(
            problem,
            penalty,
            shape,
            upward=self.onward,
            constant=self.constant,
            cut_off=self.cut_off,
            iterations=self.iterations,
            threads=context.threads,
            shared=shared,
            progress=lambda done: context.progress(done, total),
        )
        end = optimise(
            problem,
            penalty,
            start,
            DescentSettings.of(self, context.threads),
            progress=lambda done: context.progress(min(shape.nodes + done, total), total),
        )
        context.progress(total, total)
        tree = replace(end.model, bias=end.model.bias * unit, threshold=end.model.threshold * unit)
        return tree, {"lambda": price, "objective": end.loss * unit**2}


@dataclass(frozen=True)
class Gated(JointlyOptimised, CSTCSingle):
    """Parameters shared by the chain and the tree."""

    gate_slope: float = param(
        10.0, "steepness of the gates in training, for labels of variance 6", above=0
    )
    tolerance: float = param(
        1e-3, "a pass or round that gains less than this share is the last", least=0
    )
    prune: bool = param(True, "remove classifiers that do not help on validation")


@dataclass(frozen=True)
class CSTC(Gated):
    """A tree of linear classifiers over trees, each buying the features that its rows need."""

    name: ClassVar[str] = "cstc"

    depth: int = param(3, "classifiers from the root to a leaf", least=1, most=8)


@dataclass(frozen=True)
class CSCC(Gated):
    """A chain of linear classifiers over trees: rows of high score go on to the next."""

    name: ClassVar[str] = "cscc"

    stages: int = param(4, "classifiers in the chain", least=1, most=100)
    onward: float = param(
        0.5, "share of rows that each gate passes on before optimisation", above=0, below=1
    )

    @property
    def _shape(self) -> Shape:
        return Shape.chain(self.stages)
