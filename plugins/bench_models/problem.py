"""The training problem of cascades and trees of classifiers: rows, a dictionary, relaxed costs.

Let ``squares`` (T,) be the sums of each tree's squared weights over stages. The relaxed cost of
sparse weights is a mixed norm over trees and one over sensors,

    sum_t e_t sqrt(squares_t) + sum_a c_a sqrt(sum_t F_at squares_t).

sqrt(g) = min_{z > 0} (g / z + z) / 2 is attained at z = sqrt(g). With auxiliary variables kappa
(T,) and eta (s,) at that optimum the cost is a quadratic form in the weights. Its diagonal is
``quadratic_price``. |b| is treated in the same way, by sigma.
"""

from dataclasses import dataclass

import numpy as np

from bench_core import Examples, InputError, Task
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray

_CHUNK = 250_000
"""Number of values in float64 copies of the float32 columns at a time (2 MB, to fit in caches)."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """Training data of a cascade: n rows, T trees, the s sensors that any tree needs."""

    columns: Float32Array  # (T, n) outputs of the trees
    y: FloatArray  # (n,) +1 or -1
    weight: FloatArray  # (n,) m w / N, the weight of a row's loss
    share: FloatArray  # (n,) m / N, the row's weight in every mean
    tree_cost: FloatArray  # (T,) prices
    sensor_cost: FloatArray  # (s,)
    needs: FloatArray  # (s, T) 1.0 where a tree needs a sensor
    slope: float = 50.0  # of gates

    @property
    def trees(self) -> int:
        """Number of columns T."""
        return len(self.columns)

    @property
    def constant_loss(self) -> float:
        """Half the weighted squared error of the best constant."""
        mean = float(self.weight @ self.y) / float(self.weight.sum())
        return 0.5 * float(self.weight @ (self.y - mean) ** 2)

    def outputs(self, trees: IntArray, rows: IntArray) -> FloatArray:
        """The columns of some trees for some rows, (c, m)."""
        found = np.empty((len(trees), len(rows)))
        for tree, own in zip(trees.tolist(), found, strict=True):
            own[:] = self.columns[tree].take(rows)  # several times as fast as with np.ix_
        return found

    def score(self, weights: FloatArray, bias: float) -> FloatArray:
        """``f = h.b + bias`` of every row, shape (n,); only trees with a weight are read."""
        used = np.flatnonzero(weights)
        step = max(1, _CHUNK // max(1, self.columns.shape[1]))
        total = np.zeros(self.columns.shape[1])
        for i in range(0, len(used), step):
            piece = used[i : i + step]
            total += weights[piece] @ self.columns[piece].astype(np.float64)
        return bias + total


def needed(sensor_cost: FloatArray, needs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A problem's ``sensor_cost`` and ``needs`` without unneeded sensors. Of thousands of features
    a dictionary reads some hundreds."""
    some = needs.any(axis=1)
    return sensor_cost[some], needs[some]


def auxiliaries(problem: Problem, squares: FloatArray) -> tuple[FloatArray, FloatArray]:
    """kappa (T,) and eta (s,), equal to the square roots."""
    return np.sqrt(squares), np.sqrt(problem.needs @ squares)


def relaxed_cost(problem: Problem, squares: FloatArray) -> float:
    """The two mixed norms of weights with these squares (T,)."""
    kappa, eta = auxiliaries(problem, squares)
    return float(problem.tree_cost @ kappa + problem.sensor_cost @ eta)


def quadratic_price(problem: Problem, kappa: FloatArray, eta: FloatArray) -> FloatArray:
    """e_t / kappa_t + sum_a c_a F_at / eta_a: the cost per b_t^2 / 2, (T,)."""
    by_sensor = _divided(problem.sensor_cost, eta)
    return _divided(problem.tree_cost, kappa) + by_sensor @ problem.needs


def ridge(sigma: FloatArray, rho: float, lam: float, price: FloatArray) -> FloatArray:
    """rho / sigma_t + lam price_t: the cost per b_t^2 / 2 with its l1 norm, sigma (T,) at |b|."""
    return _divided(np.full(len(sigma), rho), sigma) + lam * price


def _divided(numerator: FloatArray, denominator: FloatArray) -> FloatArray:
    return np.divide(numerator, denominator, out=np.zeros_like(numerator), where=denominator > 0)


def positives(learner: str, train: Examples, task: Task, relevant_grade: int) -> BoolArray:
    """Rows labelled +1, (n,): grades of at least ``relevant_grade``, or class 1.

    Raises InputError, naming the ``learner``, where all rows have one label.
    """
    ranking = task == Task.RANKING
    positive = train.y >= relevant_grade if ranking else train.y > 0.5
    if positive.any() and not positive.all():
        return positive
    if not ranking:
        fault = f"all training labels are {train.y[0]:g}; it needs both classes"
    elif positive.all():
        fault = f"every training document reaches grade {relevant_grade}; raise relevant_grade"
    else:
        highest = f"(the highest is {train.y.max():g}); lower relevant_grade"
        fault = f"no training document reaches grade {relevant_grade} {highest}"
    raise InputError(f"{learner}: {fault}")
