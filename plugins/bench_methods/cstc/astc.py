"""ASTC: the tree of classifiers solved greedily, one node after the other, in closed form.

M. J. Kusner, W. Chen, Q. Zhou, Z. Xu, K. Q. Weinberger, Y. Chen: Feature-Cost Sensitive Learning
with Submodular Trees of Classifiers, AAAI 2014. The text was not available: everything here is
recalled [M]. Node k, with the set A of columns bought so far on its path, takes

    a* = argmax [ z_k(A + a) - z_k(A) ] / c_a,   z_k(A) = Var_k(y) - min_b sum_i (y_i - phi_i.b)^2

with orthogonalised columns, so that a gain is (q.r)^2 / |q|^2, until its budget is spent. Columns
bought on the path are free. The threshold sends half of its rows to each child. There is no
optimiser, and the time grows linearly with the rows.

All sums over rows are in one matrix of second moments (T + 2, T + 2): the columns, a constant and
the labels. A child's matrix is its parent's minus its sibling's, so a level costs half a pass. A
partial Cholesky factorisation, one row per pick, orthogonalises columns against the picked ones.
With r the residual and q a column's remainder, the gain is (q.r)^2 / |q|^2 / 2.

Departures
- ``tradeoff`` is a second stopping rule besides ``budget``: a column must lower the mean loss by
  tau per unit of mean cost, tau as in ``bench_methods.cstc``. Without it a node spends its budget
  whatever it gains; with it the tree needs no budget.
- Sensors and evaluations of trees cost; both are free once the path has paid them.
- Every column, free ones included, must lower its node's loss by the share ``tolerance``.
- A node with equal scores for all rows becomes a leaf. Nodes that do not help on validation are
  pruned.
- Routing is hard in training too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from bench_models.boosting import TRADEOFF
from bench_models.least_squares import weighted_gram
from bench_models.problem import Problem

from bench_core import FitContext, Prices, log, param
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_methods.cstc.learner import TreeOfClassifiers
from bench_methods.cstc.serving import label_variance
from bench_methods.cstc.tree import ClassifierTree, Shape, splitting_threshold, stump

_DEPENDENT = 1e-10
"""A column with a smaller remainder, as a share of it, is a combination of the picked columns."""


@dataclass(frozen=True)
class ASTC(TreeOfClassifiers):
    """A tree of linear classifiers whose columns are picked greedily for gain per cost."""

    name: ClassVar[str] = "astc"

    tradeoff: float = param(0.1, TRADEOFF, least=0, search=log(1e-3, 3))
    budget: float | None = param(
        None,
        "a classifier's own budget, as a share of all features' price; none: no limit",
        least=0,
    )
    depth: int = param(3, "classifiers from the root to a leaf", least=1, most=8)
    tolerance: float = param(
        1e-4, "least gain of a column as a share of its classifier's loss", least=0
    )
    prune: bool = param(True, "remove classifiers that do not help on validation")

    # no refit: classifiers are least squares already, and terminals return their parent's

    def _fitted(
        self, problem: Problem, price: float, prices: Prices, context: FitContext
    ) -> tuple[ClassifierTree, dict[str, Any]]:
        if label_variance(problem) == 0.0:
            return stump(problem, float(problem.y[0])), {"tau": price}
        shape = Shape.balanced(self.depth)
        budget = np.inf if self.budget is None else self.budget * prices.everything
        tree = greedy_tree(
            problem,
            shape,
            Rule(price, budget if prices.everything > 0 else np.inf, self.tolerance),
            constant=self.constant,
            threads=context.threads,
            progress=lambda done: context.progress(done, shape.nodes),
        )
        return tree, {"tau": price}


@dataclass(frozen=True, slots=True)
class Rule:
    """Stopping rule of a node: ``tau``, the least gain in loss per unit of cost; ``budget``, its
    limit per row; ``tolerance``, the least gain as a share of its loss without columns."""

    tau: float
    budget: float
    tolerance: float


@dataclass(frozen=True, slots=True, eq=False)
class Paid:
    """Purchases on the path to a node: ``columns`` (T,) evaluated and ``sensors`` (s,)."""

    columns: BoolArray
    sensors: BoolArray

    def price(self, problem: Problem) -> FloatArray:
        """Current price of each column, (T,)."""
        sensors = np.where(self.sensors, 0.0, problem.sensor_cost) @ problem.needs
        return np.asarray(np.where(self.columns, 0.0, problem.tree_cost) + sensors)

    def plus(self, problem: Problem, column: int) -> Paid:
        """The purchases with one more column."""
        columns = self.columns.copy()
        columns[column] = True
        return Paid(columns, self.sensors | (problem.needs[:, column] > 0))


def greedy_tree(
    problem: Problem,
    shape: Shape,
    rule: Rule,
    *,
    constant: bool,
    threads: int = 1,
    progress: Callable[[int], None] = lambda done: None,
) -> ClassifierTree:
    """Fit the nodes in order; each threshold sends half of the rows to each child.

    A node with equal scores for all rows becomes a leaf.
    """
    count, columns = shape.nodes, problem.trees
    weights, bias, threshold = np.zeros((count, columns)), np.zeros(count), np.zeros(count)
    nothing = Paid(np.zeros(columns, dtype=bool), np.zeros(len(problem.sensor_cost), dtype=bool))
    rows = {0: np.arange(len(problem.y))}
    paid = {0: nothing}
    sums = {0: moments(problem, rows[0], threads)}
    gone: set[int] = set()
    for k in range(count):
        if k not in gone:
            weights[k], bias[k], after = pick(problem, sums[k], paid[k], rule, constant=constant)
            scores, cut = problem.score(weights[k], bias[k])[rows[k]], None
            if not shape.is_leaf(k):
                cut = splitting_threshold(scores, problem.share[rows[k]], 0.5)
            if cut is None:
                gone |= shape.below(k) - {k}
            else:
                threshold[k] = cut
                upper, lower = shape.upper[k], shape.lower[k]
                rows[upper], rows[lower] = rows[k][scores > cut], rows[k][scores <= cut]
                # only the smaller child's rows are summed
                small, large = sorted((upper, lower), key=lambda c: len(rows[c]))
                sums[small] = moments(problem, rows[small], threads)
                sums[large] = sums[k] - sums[small]
                paid[upper] = paid[lower] = after
            del sums[k]
        progress(k + 1)
    return ClassifierTree(weights, bias, threshold, shape).without(gone)


def moments(problem: Problem, rows: IntArray, threads: int) -> FloatArray:
    """Weighted second moments of columns, constant and labels over ``rows``: (T + 2, T + 2),
    symmetric."""
    gram = weighted_gram(
        lambda some: problem.columns[:, rows[some]],
        [np.ones(len(rows)), problem.y[rows]],
        np.sqrt(problem.share[rows]),
        threads,
    )
    lower = np.tril(gram)
    full: FloatArray = lower + np.tril(lower, -1).T
    return full


def pick(
    problem: Problem, sums: FloatArray, paid: Paid, rule: Rule, *, constant: bool
) -> tuple[FloatArray, float, Paid]:
    """One node: its weights (T,), its constant, and the purchases after it."""
    columns, mass = problem.trees, float(sums[-2, -2])
    basis = _Basis(sums)
    if constant:
        basis.add(columns)
    basis.rest[columns] = np.inf  # the constant is picked first or never
    least = max(rule.tolerance * 0.5 * basis.left, 1e-14 * float(sums[-1, -1]))
    spent = 0.0
    while columns:  # a base without any split has no trees
        price, gains = paid.price(problem), basis.gains()[:columns]
        # the least gain that is worth a column's price
        enough = np.maximum(np.nextafter(least, np.inf), rule.tau * mass * price)
        enough[spent + price > rule.budget * (1 + 1e-12)] = np.inf
        worth = np.where(gains >= enough, gains, 0.0)
        if not (free := worth * (price == 0)).any():  # else the free column with the most gain
            free = np.divide(worth, price, out=np.zeros(columns), where=price > 0)
        best = int(free.argmax())
        if free[best] <= 0:
            break
        if price[best] > 0:
            spent += float(price[best])
            paid = paid.plus(problem, best)
        basis.add(best)
    weights, found = np.zeros(columns + 1), basis.solve()
    weights[basis.picked] = found
    return weights[:-1], float(weights[-1]), paid


class _Basis:
    """A Cholesky factor of the columns picked so far, extended to all columns.

    Rows of ``factor``: products of the orthonormal directions with all columns, the constant and
    the labels. ``rest``: squared norms of the columns' remainders; ``with_label``: their products
    with the residual. A column without a remainder has ``rest`` infinity: its gain is 0.
    """

    def __init__(self, sums: FloatArray) -> None:
        self.sums, self.factor, self.picked = sums, np.empty((64, len(sums))), list[int]()
        self.rest, self.with_label = sums.diagonal()[:-1].copy(), sums[-1, :-1].copy()
        self.least = _DEPENDENT * self.rest
        self.rest[self.rest <= 0] = np.inf

    @property
    def left(self) -> float:
        """Squared norm of the residual."""
        done = self.factor[: len(self.picked), -1]
        return max(0.0, float(self.sums[-1, -1] - done @ done))

    def gains(self) -> FloatArray:
        """Loss reduction by each column and the constant, (T + 1,)."""
        found: FloatArray = self.with_label * self.with_label
        found /= self.rest
        found *= 0.5
        return found

    def add(self, column: int) -> None:
        """Pick a column with a remainder."""
        count = len(self.picked)
        if count == len(self.factor):
            self.factor = np.concatenate([self.factor, np.empty_like(self.factor)])
        # the new direction's product with every column
        row = self.factor[count]
        np.dot(self.factor[:count, column], self.factor[:count], out=row)
        np.subtract(self.sums[column], row, out=row)
        row *= 1.0 / math.sqrt(self.rest[column])
        self.rest -= row[:-1] * row[:-1]
        self.with_label -= row[:-1] * row[-1]
        self.rest[self.rest <= self.least] = np.inf
        self.rest[column] = np.inf
        self.picked.append(column)

    def solve(self) -> FloatArray:
        """Least-squares weights of the picked columns, in the order of picking."""
        from scipy.linalg import solve_triangular

        count = len(self.picked)
        if count == 0:
            return np.zeros(0)
        upper = self.factor[:count, self.picked]
        found: FloatArray = solve_triangular(upper, self.factor[:count, -1], check_finite=False)
        return found
