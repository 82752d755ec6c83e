"""ASTC: the tree of classifiers solved greedily, one node after the other, in closed form.

M. J. Kusner, W. Chen, Q. Zhou, Z. Xu, K. Q. Weinberger, Y. Chen: Feature-Cost Sensitive Learning
with Submodular Trees of Classifiers, AAAI 2014. The text was not at hand: everything here is
recalled [M]. Node k, with the set A of columns bought so far on its path, takes

    a* = argmax [ z_k(A + a) - z_k(A) ] / c_a,   z_k(A) = Var_k(y) - min_b sum_i (y_i - phi_i.b)^2

with orthogonalised columns, so that a gain is (q.r)^2 / |q|^2, until its budget is spent; columns
bought on the path are free; the threshold sends half of its rows to each child. There is no
optimiser, and the work grows linearly with the rows.

Departures
- ``tradeoff`` is another reason to stop, beside ``budget``: a column must lower the mean loss by
  tau per unit of mean cost, tau as in ``bench_methods.cstc``. Without it a node spends its budget
  whatever it gains; with it alone the tree needs no budget.
- Costs are those of sensors and of evaluating trees; what the path has paid is free.
- A column must lower its node's loss by the share ``tolerance``, free ones too.
- A node that tells no rows apart becomes a leaf; nodes that do not help on validation are pruned.
- Routing is hard in training too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from bench_models.boosting import OnTrees
from bench_models.least_squares import one_blas_thread
from bench_models.tradeoff import price_of_cost

from bench_core import BudgetedLearner, Examples, FitContext, Prices, Task, param
from bench_methods.cstc.finish import finished, pruned
from bench_methods.cstc.greedy import Rule, greedy_tree, moments
from bench_methods.cstc.inputs import inputs, label_variance, problem_of, shared
from bench_methods.cstc.learner import TASKS
from bench_methods.cstc.serving import staged
from bench_methods.cstc.tree import Shape, stump

if TYPE_CHECKING:
    from bench_models.problem import Problem
    from bench_models.staged import StagedModel

    from bench_core.arrays import FloatArray
    from bench_methods.cstc.inputs import Inputs


@dataclass(frozen=True)
class ASTC(OnTrees):
    """A tree of linear classifiers whose columns are picked greedily for gain per cost."""

    name: ClassVar[str] = "astc"
    tasks: ClassVar[frozenset[Task]] = TASKS
    adds_up: ClassVar[bool] = False

    base: BudgetedLearner | None = param(
        "gbrt", "learner whose boosted trees are the inputs; none: the raw features"
    )
    tradeoff: float = param(
        0.1, "price of all features in units of the constant's training loss", least=0
    )
    budget: float | None = param(
        None,
        "most that a classifier spends itself, as a share of all features' price; none: all",
        least=0,
    )
    depth: int = param(3, "classifiers on the way from the root to a leaf", least=1, most=8)
    tolerance: float = param(
        1e-4, "least gain of a column as a share of its classifier's loss", least=0
    )
    constant: bool = param(True, "every classifier has a free constant")
    standardise: bool = param(False, "divide raw features by their standard deviation")
    prune: bool = param(True, "remove classifiers that do not help on validation")

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> StagedModel:
        """Grow the tree on ``train``, prune it on ``valid``.

        Raises UsageError where ``base`` has no trees.
        """
        shape = Shape.balanced(self.depth)
        with one_blas_thread():
            found = inputs(
                self.name, self.base, train, prices, context, standardise=self.standardise
            )
            problem = problem_of(found, train, prices, context.task)
            tau = price_of_cost(self.tradeoff, problem.constant_loss, prices.everything)
            if label_variance(problem) == 0.0:
                tree = stump(problem, float(problem.y[0]))
            else:
                tree = greedy_tree(
                    problem,
                    shape,
                    self._rule(tau, prices),
                    whole=self._moments(problem, found, context),
                    constant=self.constant,
                    threads=context.threads,
                    progress=lambda done: context.progress(done, shape.nodes),
                )
            # its classifiers are least squares already, and terminals return their parent's
            model = finished(
                problem, tree, refit=False, constant=self.constant, threads=context.threads
            )
            if self.prune:
                model = pruned(model, found, valid, context)
        facts = {
            "loss": "squared",
            "tau": tau,
            "nodes": model.tree.shape.nodes,
            "columns_per_node": np.count_nonzero(model.tree.weights, axis=1).tolist(),
        }
        return staged(model, found, prices, task=context.task, facts=facts)

    def _moments(self, problem: Problem, found: Inputs, context: FitContext) -> FloatArray:
        # of all rows: the labels and columns decide, no trade-off does
        rows = np.arange(len(problem.y))
        sums: FloatArray = shared(
            context,
            f"moments-{context.task}-{found.name}",
            8 * (problem.trees + 2) ** 2,
            lambda: {"sums": moments(problem, rows, context.threads)},
        )["sums"]
        return sums

    def _rule(self, tau: float, prices: Prices) -> Rule:
        budget = np.inf
        if self.budget is not None and prices.everything > 0:
            budget = self.budget * prices.everything
        return Rule(tau, budget, self.tolerance)
