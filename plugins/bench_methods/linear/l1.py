"""The l1 path: a linear model with each weight penalised by its feature's price.

R. Tibshirani, "Regression shrinkage and selection via the lasso", JRSS B 58 (1996), with the
penalty of each weight in proportion to its feature's price:

    min  (1/N) sum_i m_i l(y_i, b0 + b.z_i) + tau sum_j c_j |b_j|,

squared loss for ranking (on grades) and regression, logistic and softmax loss for classes; z are
standardised columns, N counts copies. It is the baseline "L1" of Z. Xu et al. (ICML 2012) and of
F. Nan and V. Saligrama (NIPS 2017). They do not state the scale of the penalty [M].

tau = tradeoff x (mean loss of the best constant) / (price of all features), as everywhere. One
fit decreases ``tradeoff`` from the value at which every weight is 0. Its values are the operating
points, the last the least penalised. (With columns scaled by 1/c this is a lasso of alpha = tau,
or a logistic regression of C = 1/(N tau).) Targets and grades are divided by their standard
deviation, so weights and their prices are dimensionless.

Equations
    the path      bench_methods.linear.l1.L1._path
    a point       bench_models.l1_regression.minimise
    c_j           bench_methods.linear.l1.MarginalPrices.charges

Departures
- ``refit``: at each point the weights of the chosen features are refitted without penalty, to undo
  shrinkage. Points with the same features are merged.
- c_j is the price of feature j bought alone. It becomes 0 once features bought earlier on the path
  have paid for all of its sensors (shared ones, the parents of a derived feature). The points then
  do not minimise one convex function. Partial discounts are ignored: a small price, proportional
  to |b|, would admit features early whose gain is only of order b^2.
- The charge is proportional to the weight, although the actual price does not depend on it.
- Free features and refits have only a ridge penalty of 1e-6. If everything is free, all features
  are charged equally.
- Missing cells count as the training mean. With K classes a feature has K weights, charged each.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from bench_models.boosting import loss_of
from bench_models.l1_regression import LinearScores, PenalisedLoss, minimise
from bench_models.least_squares import one_blas_thread
from bench_models.scaling import Scaling
from bench_models.staged import MOST_POINTS
from bench_models.tradeoff import constant_loss, labels_of

from bench_core import Examples, FitContext, Prices, Task, among, param
from bench_core.arrays import BoolArray, FloatArray
from bench_methods.linear.model import LinearPath

NOBODY = -1


@dataclass(frozen=True)
class L1:
    """A linear model with l1 penalties by price; one fit gives a path of trade-offs."""

    name: ClassVar[str] = "l1"
    numerics: ClassVar[tuple[str, ...]] = ("numpy", "cpu")
    tasks: ClassVar[frozenset[Task]] = frozenset(Task)
    adds_up: ClassVar[bool] = False

    points: int = param(60, "values of the trade-off on the path", least=1, most=MOST_POINTS - 1)
    least: float = param(
        1e-4, "smallest trade-off, as a share of the largest with a purchase", above=0, below=1
    )
    refit: bool = param(
        True,
        "refit the weights of the chosen features without penalty",
        search=among(True, False),
    )
    steps: int = param(300, "most gradient steps per point", least=1)
    tolerance: float = param(
        1e-4, "stop after a step that moves no weight by more than this share", above=0, below=1
    )

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> LinearPath:
        """Follow the path on ``train``; ``valid`` is not used."""
        name, objective = loss_of(context.task, "auto", context.classes)
        constant = constant_loss(name, objective, train)
        with one_blas_thread():
            scaling = Scaling.of(train.X, train.weights)
            # the constant's loss is then about 1, so one tolerance fits all labels
            spread = float(np.sqrt(2 * constant)) if name == "squared" and constant > 0 else 1.0
            base = np.asarray(objective.base(labels_of(train)), dtype=np.float64)
            start = LinearScores(base / spread, np.zeros((len(base), train.X.shape[1])))
            # classes have no unit
            squared = name == "squared"
            target = (train.y - base[0]) / spread if squared else train.y
            problem = PenalisedLoss(train, scaling, target, start.bias, squared)
            # no feature is usable if all labels are equal
            usable = (scaling.scale > 0) & (constant > 1e-12)
            marginal, worth = MarginalPrices(prices), constant / spread**2
            path = self._path(problem, start, marginal, worth, usable, context)
        points = [
            {"tradeoff": float(f"{t:.6g}"), "features": sum(chosen(scores))} for t, scores in path
        ]
        return LinearPath(
            weights=spread * np.array([scores.weights for _, scores in path]),
            bias=spread * np.array([scores.bias for _, scores in path]),
            points=points,
            scaling=scaling,
            prices=prices,
            facts={"loss": name},
        )

    def _path(
        self,
        problem: PenalisedLoss,
        start: LinearScores,
        marginal: MarginalPrices,
        worth: float,
        usable: BoolArray,
        context: FitContext,
    ) -> list[tuple[float, LinearScores]]:
        """The points, from the largest trade-off down. ``worth`` is the penalty of all features at
        a trade-off of 1."""
        # penalty of a weight of 1 at a trade-off of 1
        unit = marginal.charges() * worth
        out = np.where(usable, 0.0, np.inf)
        free = np.where(unit > 0, np.inf, out)
        now = minimise(problem, free, start, self.steps, self.tolerance)
        paid = usable & (unit > 0)
        largest = float((problem.slopes(now)[paid] / unit[paid]).max(initial=0.0))
        if largest <= 0:
            return [(0.0, now)]
        path = [(largest, now)]
        grid = np.geomspace(largest, largest * self.least, self.points + 1)[1:]
        for k, t in enumerate(grid.tolist()):
            cheaper = True
            while cheaper:
                penalty = t * marginal.charges() * worth + out
                now = minimise(problem, penalty, now, self.steps, self.tolerance)
                cheaper = marginal.buy(now.weights)  # a purchase may make other features free
            if not self.refit:
                path.append((t, now))
            elif chosen(now) == chosen(path[-1][1]):
                path[-1] = (t, path[-1][1])
            else:
                only = np.where(now.weights.any(axis=0), 0.0, np.inf)
                path.append((t, minimise(problem, only, now, self.steps, self.tolerance)))
            context.progress(k + 1, self.points)
        return path


def chosen(fitted: LinearScores) -> list[bool]:
    """Flag of each feature: True if it has a weight."""
    return [bool(column.any()) for column in fitted.weights.T]


class MarginalPrices:
    """Pairs of a feature and a priced sensor that it needs, and the payer (s,) of each sensor, the
    feature that bought it first. All features together have price 1.

    Nothing is bought at first. If everything is free, features are charged equally.
    """

    def __init__(self, prices: Prices) -> None:
        if prices.everything == 0:
            prices = Prices.additive(np.ones(prices.features))
        priced = prices.sensor[prices.needed] > 0
        self.alone = prices.feature_price() / max(prices.everything, 1e-300)  # (d,) bought alone
        self.feature = np.repeat(np.arange(prices.features), np.diff(prices.start))[priced]
        self.sensor = prices.needed[priced]  # (pairs,) as feature
        self.payer = np.full(prices.sensors, NOBODY)

    def charges(self) -> FloatArray:
        """Charge for a weight of 1 on each feature (d,): 0 if others pay for all of its sensors,
        else its price alone."""
        payer = self.payer[self.sensor]
        owes = (payer == NOBODY) | (payer == self.feature)
        some = np.bincount(self.feature, owes, len(self.alone)) > 0
        return np.where(some, self.alone, 0.0)

    def buy(self, weights: FloatArray) -> bool:
        """Record purchases by features with weights (K, d), the largest weight first. Return True
        if this makes a feature free."""
        before = self.charges()
        strength = np.abs(weights).max(axis=0)[self.feature]
        for i in np.argsort(-strength, kind="stable")[: np.count_nonzero(strength)]:
            if self.payer[self.sensor[i]] == NOBODY:
                self.payer[self.sensor[i]] = self.feature[i]
        return bool(np.any(self.charges() < before))
