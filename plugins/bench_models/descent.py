"""Block descent: cycles over the parts of a model, and a few quasi-Newton steps on one part."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from bench_core.arrays import FloatArray
from bench_models.least_squares import BLOCK, add_gram

_JITTER = 1e-8


@dataclass(frozen=True, slots=True)
class DescentSettings:
    """``cut_off``: smaller weights become exact zeros. At most ``cycles`` over the blocks,
    ``reweightings`` per block and ``steps`` of descent per re-weighting; either outer loop ends
    when the true loss gains less than the share ``tolerance``. ``constant``: classifiers have a
    free constant. ``threads`` changes no result."""

    cut_off: float = 1e-4
    cycles: int = 10
    reweightings: int = 5
    steps: int = 20
    tolerance: float = 1e-4
    constant: bool = True
    threads: int = 1


class Position(Protocol):
    """A model in training, with the loss that must not rise."""

    @property
    def loss(self) -> float:
        """The loss as printed, no bound of it."""


P = TypeVar("P", bound=Position)


def cyclic_descent(
    at: P,
    blocks: int,
    improve: Callable[[P, int], P],
    *,
    cycles: int,
    tolerance: float,
    progress: Callable[[int], None] = lambda done: None,
) -> P:
    """Improve the ``blocks`` of a model in turns, at most ``cycles`` times over all.

    A cycle that lowers the loss by less than the share ``tolerance`` is the last. ``progress`` is
    called with the number of improvements so far.
    """
    for cycle in range(cycles):
        before = at.loss
        for k in range(blocks):
            at = improve(at, k)
            progress(cycle * blocks + k + 1)
        if before - at.loss <= tolerance * abs(before):
            break
    return at


class GatedObjective(Protocol):
    """A smooth function of one classifier's weights (c,), constant and threshold.

    Its convex part is a squared loss over ``columns`` (c, m) with row weights ``weight * reach``
    and a ``ridge``.
    """

    @property
    def columns(self) -> FloatArray:
        """Outputs of the columns (c, m)."""

    @property
    def weight(self) -> FloatArray:
        """Weights of the rows (m,)."""

    @property
    def reach(self) -> FloatArray:
        """Each row's probability of reaching the classifier (m,)."""

    @property
    def ridge(self) -> FloatArray:
        """The diagonal of the quadratic form (c,)."""

    @property
    def gated(self) -> bool:
        """Whether the threshold matters."""

    def evaluate(
        self, weights: FloatArray, bias: float, threshold: float
    ) -> tuple[float, FloatArray, float, float]:
        """Value, and its derivatives by weights (c,), constant and threshold."""


def minimise_gated(
    objective: GatedObjective,
    weights: FloatArray,
    bias: float,
    threshold: float,
    steps: int,
    threads: int = 1,
) -> tuple[FloatArray, float, float]:
    """A few descent steps on (weights, bias, threshold)."""
    from scipy.linalg import cholesky

    def value_and_gradient(beta: FloatArray, theta: float) -> tuple[float, FloatArray, float]:
        theta = theta if objective.gated else threshold
        value, by_weights, by_bias, by_theta = objective.evaluate(beta[:-1], float(beta[-1]), theta)
        return value, np.append(by_weights, by_bias), by_theta

    root = cholesky(_curvature(objective, threads), lower=True, check_finite=False)
    start = threshold if objective.gated else 0.0
    beta, theta = minimise_whitened(
        value_and_gradient, root, np.append(weights, bias), start, steps, ftol=1e-12
    )
    return beta[:-1], float(beta[-1]), theta if objective.gated else threshold


def minimise_whitened(
    loss: Callable[[FloatArray, float], tuple[float, FloatArray, float]],
    root: FloatArray,
    beta: FloatArray,
    last: float,
    steps: int,
    *,
    ftol: float,
) -> tuple[FloatArray, float]:
    """L-BFGS on (beta, last) from there, in coordinates in which the quadratic part is round:
    without them boosted columns, all alike, take hundreds of steps.

    ``root`` (c, c) is the lower Cholesky factor of the curvature by beta (c,). ``loss`` gives its
    value and its derivatives by beta and ``last``.
    """
    from scipy.linalg import solve_triangular

    def solved(x: FloatArray, trans: str) -> FloatArray:
        if len(x) == 0:
            return x
        y: FloatArray = solve_triangular(root, x, lower=True, trans=trans, check_finite=False)
        return y

    def value_and_gradient(x: FloatArray) -> tuple[float, FloatArray]:
        value, by_beta, by_last = loss(solved(x[:-1], "T"), float(x[-1]))
        return value, np.append(solved(by_beta, "N"), by_last)

    start = np.append(root.T @ beta, last)
    x, _ = lbfgs(value_and_gradient, start, steps=steps, ftol=ftol, gtol=1e-10)
    return solved(x[:-1], "T"), float(x[-1])


def lbfgs(
    value_and_gradient: Callable[[FloatArray], tuple[float, FloatArray]],
    start: FloatArray,
    *,
    steps: int,
    ftol: float,
    gtol: float,
) -> tuple[FloatArray, float]:
    """A minimiser of a smooth function by SciPy's L-BFGS-B, and the value there.

    Ends after ``steps``, where a step lowers the value by less than the share ``ftol``, or where
    no entry of the gradient exceeds ``gtol``.
    """
    from scipy.optimize import minimize

    result = minimize(
        value_and_gradient,
        start,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": steps, "ftol": ftol, "gtol": gtol},
    )
    return result.x, float(result.fun)


def _curvature(objective: GatedObjective, threads: int) -> FloatArray:
    """The Hessian (lower triangle) of the squared loss and the ridge, the gate left out, kept
    positive; the last row is the bias."""
    columns, root = objective.columns, np.sqrt(objective.weight * objective.reach)
    count, rows = columns.shape
    hessian = np.zeros((count + 1, count + 1))
    with ThreadPoolExecutor(threads) as pool:
        for i in range(0, rows, BLOCK):
            piece = np.empty((count + 1, len(root[i : i + BLOCK])))
            np.multiply(columns[:, i : i + BLOCK], root[i : i + BLOCK], out=piece[:-1])
            piece[-1] = root[i : i + BLOCK]
            add_gram(hessian, piece, pool)
    diagonal = hessian.diagonal() + np.append(objective.ridge, 0.0)
    tiny = 1e-12 * float(diagonal.max()) + 1e-300
    np.fill_diagonal(hessian, diagonal * (1.0 + _JITTER) + tiny)
    return hessian
