"""Greedy Miser: boosted trees charged for every feature that the model buys.

Z. Xu, K. Weinberger, O. Chapelle, "The greedy miser: learning under test-time budgets", ICML 2012.
Stage-wise regression on the residuals r_i = -dl/dH(x_i) (algorithm 1). Tree t minimises eq. 5,

    g(h_t) = 1/2 sum_i (r_i - h_t(x_i))^2 + lambda sum_a rho_a c_a F_at,

rho_a = 1 iff feature a is unused in earlier trees, F_at = 1 iff tree t uses it; H <- H + eta h_t,
eta = 0.1. A feature once bought is free in all later trees, for every row. lambda = 0 is plain
stage-wise regression. With K classes one tree per class is grown in each iteration, and all
share purchases.

Equations
    r_i             bench_trees.losses.Squared.gradients, without the sign; one class per loss
    algorithm 1     bench_trees.boosting.boost
    eq. 5, 1/2 sum  bench_trees.kernels.splitting.best_cuts, with hessians 1
    eq. 5, rho c F  bench_trees.penalties.Ledger.coupled_owed

The paper's lambda is N tau, with tau as in ``bench_models.boosting``. Its loss has the factor 1/2
and sums over the N rows (copies included), while the cost is paid once per model, for all rows.

Departures
- Eq. 5 is minimised greedily: level by level, nodes from left to right, a node is split iff its
  gain exceeds the price of the sensors not bought so far. A sensor bought in this tree is free
  immediately for the rest of it, and unsplit nodes are then evaluated again (``charge = "tree"``).
  The released code charges at every node of the tree, and always splits (``charge = "node"``).
- Sensors are charged, so shared, discounted and derived features cost what rows pay: the second
  feature of a discounted group costs only its own sensor.
- For classes the impurity is in units of squared residuals, as printed, while tau comes from
  the log-loss of the constant: at equal ``tradeoff`` features cost more than for ``cegb``.
- For classes ``l2`` = 1 is added to the rows of a leaf, in its value and in its gain; eq. 5 has no
  such term (``l2 = 0``). For squared loss it is 0.
- Trees have ``depth`` split levels, 4 by default, so at most 16 leaves.
- ``steps = "newton"`` (an addition, off by default) takes splits and leaf values from second
  derivatives, as ``gbrt`` and ``cegb`` do; a split must then leave a sum of .1 of them on both
  sides. Printed gradient steps are at most a quarter as large for two classes: they need a
  ``learning_rate`` of about 2 to converge in as many trees. For squared loss both are equal.
- Boosting starts at the best constant, not at H = 0.
- Training ends when no split is worth its price. The number of trees is an operating point,
  chosen on validation like the paper's best iteration.
- Evaluating trees is not charged in training. The paper counts 1 for each tree. Here a tree's bill
  is the number of splits on a row's path (accounting ``path``) or on its longest branch
  (``model``), times their price.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from bench_models.boosting import TRADEOFF, BoostedTrees
from bench_models.staged import StagedModel

from bench_core import Examples, FitContext, Prices, linear, log, param, provide_learners


@dataclass(frozen=True, kw_only=True)
class GreedyMiser(BoostedTrees):
    """Boosted trees that pay for each feature once, for all rows."""

    name: ClassVar[str] = "miser"

    tradeoff: float = param(0.1, TRADEOFF, least=0, search=log(1e-3, 3))
    depth: int = param(4, "split levels of a tree", least=1, search=linear(3, 10))
    charge: Literal["tree", "node"] = param(
        "tree", "pay a feature once per tree, or at every node of the first tree using it"
    )
    steps: Literal["gradient", "newton"] = param(
        "gradient", "trees fit the gradient, or also the second derivatives (classes, lambdarank)"
    )

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> StagedModel:
        """Boost on ``train``; ``valid`` is not used."""
        from bench_trees import Penalty

        row = self.loss_prices(self.tradeoff, train, prices, context)
        # the loss sums over N rows, the purchase is made once
        total_weight = float(train.weights.sum())
        settings = self.settings(
            context.task,
            2**self.depth,
            second_order=self.steps == "newton",
            order="level",
            charge=self.charge,
        )
        penalty = Penalty.over(
            prices.start, prices.needed, prices.sensors, coupled=total_weight * row.sensor
        )  # eq. 5: lambda c_a
        facts = {"tau": row.tau, "lambda": total_weight * row.tau}
        return self.boosted(train, prices, context, settings, penalty, facts)


bench_learners = provide_learners(GreedyMiser, family="boosted trees")
