"""ASTC's classifiers: columns picked one by one for gain per cost, least squares in closed form.

All sums over rows are in one matrix of second moments (T + 2, T + 2): the columns, a constant and
the labels. A child's is its parent's less its sibling's, so a level costs half a pass. Columns are
then orthogonalised against those picked, by a partial Cholesky factorisation that grows by one
row per pick: with r the residual and q a column's remainder, the gain is (q.r)^2 / |q|^2 / 2.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench_plugins.cronus.normal import BLOCK, add_gram
from bench_plugins.cronus.objective import FloatArray, IntArray, Problem
from bench_plugins.cstc.initialise import splitting_threshold
from bench_plugins.cstc.tree import Shape, Tree, scores_of

Bools = NDArray[np.bool_]

_DEPENDENT = 1e-10
"""A column of which less than this share is left is a combination of those picked."""


@dataclass(frozen=True, slots=True)
class Rule:
    """When a node stops: ``tau``, the least gain in loss per unit of cost; ``budget``, the most it
    spends per row; ``tolerance``, the least gain as a share of its loss without columns."""

    tau: float
    budget: float
    tolerance: float


@dataclass(frozen=True, slots=True, eq=False)
class Paid:
    """What the path to a node has bought: ``columns`` (T,) evaluated and ``sensors`` (s,)."""

    columns: Bools
    sensors: Bools

    def price(self, problem: Problem) -> FloatArray:
        """What each column costs now, (T,)."""
        sensors = np.where(self.sensors, 0.0, problem.sensor_cost) @ problem.needs
        return np.asarray(np.where(self.columns, 0.0, problem.tree_cost) + sensors)

    def plus(self, problem: Problem, column: int) -> Paid:
        """After one more column."""
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
) -> Tree:
    """Fit the nodes in order; each threshold sends half of the rows to either child.

    A node that tells no rows apart becomes a leaf.
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
            scores = scores_of(problem.columns[:, rows[k]], weights[[k]], bias[[k]])[0]
            found = splitting_threshold(scores, problem.share[rows[k]], 0.5)
            if found is None:
                gone |= shape.below(k) - {k}
            elif not shape.is_leaf(k):
                threshold[k] = found
                upper, lower = shape.upper[k], shape.lower[k]
                rows[upper], rows[lower] = rows[k][scores > found], rows[k][scores <= found]
                small, large = sorted((upper, lower), key=lambda c: len(rows[c]))
                sums[small] = moments(problem, rows[small], threads)
                sums[large] = sums[k] - sums[small]
                paid[upper] = paid[lower] = after
            del sums[k]
        progress(k + 1)
    return Tree(shape, weights, bias, threshold).without(gone)


def moments(problem: Problem, rows: IntArray, threads: int) -> FloatArray:
    """Second moments of columns, constant and labels over ``rows``, weighted by their share;
    (T + 2, T + 2), symmetric."""
    size = problem.trees + 2
    found = np.zeros((size, size))
    with ThreadPoolExecutor(max(1, threads)) as pool:
        for i in range(0, len(rows), BLOCK):
            some = rows[i : i + BLOCK]
            root = np.sqrt(problem.share[some])
            piece = np.empty((size, len(some)))
            np.multiply(problem.columns[:, some], root, out=piece[:-2])
            piece[-2] = root
            piece[-1] = problem.y[some] * root
            add_gram(found, piece, pool)
    lower = np.tril(found)
    full: FloatArray = lower + np.tril(lower, -1).T
    return full


def pick(
    problem: Problem, sums: FloatArray, paid: Paid, rule: Rule, *, constant: bool
) -> tuple[FloatArray, float, Paid]:
    """One node: its weights (T,), its constant, and what is bought afterwards."""
    columns, mass = problem.trees, float(sums[-2, -2])
    basis = _Basis.of(sums)
    if constant:
        basis.add(columns)
    least = max(rule.tolerance * 0.5 * basis.left, 1e-14 * float(sums[-1, -1]))
    spent, price = 0.0, paid.price(problem)
    taken = np.zeros(columns, dtype=bool)
    while len(basis.picked) < columns + constant:
        gain = np.where(taken, 0.0, basis.gains()[:columns])
        worth = (gain > least) & (gain >= rule.tau * mass * price)
        worth &= spent + price <= rule.budget * (1 + 1e-12)
        if not worth.any():
            break
        best = _best(gain, price, worth)
        if price[best] > 0:
            spent += float(price[best])
            paid = paid.plus(problem, best)
            price = paid.price(problem)
        taken[best] = True
        basis.add(best)
    weights, found = np.zeros(columns + 1), basis.solve()
    weights[basis.picked] = found
    return weights[:-1], float(weights[-1]), paid


def _best(gain: FloatArray, price: FloatArray, worth: Bools) -> int:
    """The column with the most gain per cost; among free ones the most gain."""
    free = worth & (price == 0)
    if free.any():
        return int(np.argmax(np.where(free, gain, -1.0)))
    rate = np.divide(gain, price, out=np.full(len(gain), -1.0), where=worth)
    return int(np.argmax(rate))


@dataclass(slots=True, eq=False)
class _Basis:
    """A Cholesky factor of the columns picked so far, extended to all columns.

    ``factor`` rows are the orthonormal directions' products with every column (and constant, and
    labels); ``rest`` the squared norms and ``with_label`` the products with the residual of what
    is left of each column.
    """

    sums: FloatArray
    factor: FloatArray
    rest: FloatArray
    with_label: FloatArray
    least: FloatArray
    picked: list[int]

    @classmethod
    def of(cls, sums: FloatArray) -> _Basis:
        """With nothing picked."""
        norms = sums.diagonal()[:-1].copy()
        return cls(
            sums, np.zeros((64, len(sums))), norms, sums[-1, :-1].copy(), _DEPENDENT * norms, []
        )

    @property
    def left(self) -> float:
        """The squared norm of the residual."""
        done = self.factor[: len(self.picked), -1]
        return max(0.0, float(self.sums[-1, -1] - done @ done))

    def gains(self) -> FloatArray:
        """How much each column, or the constant, would lower the loss, (T + 1,)."""
        new = self.rest > self.least
        half = 0.5 * self.with_label**2
        return np.divide(half, self.rest, out=np.zeros_like(half), where=new)

    def add(self, column: int) -> None:
        """Pick a column that has something left."""
        count = len(self.picked)
        if count == len(self.factor):
            self.factor = np.concatenate([self.factor, np.zeros_like(self.factor)])
        known = self.factor[:count]
        row = (self.sums[column] - known[:, column] @ known) / np.sqrt(self.rest[column])
        self.factor[count] = row
        self.rest = self.rest - row[:-1] ** 2
        self.with_label = self.with_label - row[:-1] * row[-1]
        self.picked.append(column)

    def solve(self) -> FloatArray:
        """The least-squares weights of the picked columns, in the order picked."""
        from scipy.linalg import solve_triangular

        count = len(self.picked)
        if count == 0:
            return np.zeros(0)
        upper = self.factor[:count, self.picked]
        found: FloatArray = solve_triangular(upper, self.factor[:count, -1], check_finite=False)
        return found
