"""Numerics whose bits no BLAS or number of threads changes: sums in a fixed order.

NumPy's elementwise +, -, x, /, sqrt and its sums along an axis have one result everywhere; its
exponentials and logarithms differ between processors in the last bit. Products of matrices (BLAS)
and ``einsum`` are compiled here (``fixed_order_kernels``), and so is L-BFGS, whose dot products
SciPy leaves to BLAS.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from bench_core.arrays import FloatArray

_SUFFICIENT, _CURVATURE = 1e-4, 0.9  # Wolfe's conditions
_AT_ONCE = 8  # rows that are projected in one pass over the columns
_TRIES = 40  # steps that a line search looks at


def dot(a: FloatArray, b: FloatArray) -> float:
    """Sum of the products of two vectors."""
    return float((a * b).sum())


def combine(Z: FloatArray, weights: FloatArray, constant: float = 0.0) -> FloatArray:
    """``weights @ Z + constant`` (n,), for Z (k, n)."""
    out: FloatArray = both(Z, weights[None], np.array([constant]))[0]
    return out


def both(Z: FloatArray, weights: FloatArray, constants: FloatArray) -> FloatArray:
    """``weights @ Z + constants`` (m, n), for Z (k, n), weights (m, k) and constants (m,)."""
    from bench_models import fixed_order_kernels as kernels

    solid = np.ascontiguousarray
    out: FloatArray = kernels.combine(solid(Z), solid(weights), solid(constants))
    return out


def project(Z: FloatArray, rows: FloatArray) -> FloatArray:
    """``rows @ Z.T`` (m, k), for Z (k, n) and rows (m, n)."""
    from bench_models import fixed_order_kernels as kernels

    Z, rows = np.ascontiguousarray(Z), np.ascontiguousarray(rows)
    parts = [kernels.project(Z, rows[i : i + _AT_ONCE]) for i in range(0, len(rows), _AT_ONCE)]
    return np.concatenate(parts) if parts else np.zeros((0, len(Z)))


def gram(Z: FloatArray, share: FloatArray) -> FloatArray:
    """``(share * Z) @ Z.T`` (k, k), for Z (k, n) and share (n,)."""
    from bench_models import fixed_order_kernels as kernels

    Z, k = np.ascontiguousarray(Z), len(Z)
    lower = np.zeros((k, k))
    for i in range(0, k, _AT_ONCE):
        end = i + _AT_ONCE
        lower[i:end, :end] = kernels.project(Z[:end], share * Z[i:end])
    out: FloatArray = np.tril(lower) + np.tril(lower, -1).T
    return out


def times(matrix: FloatArray, vector: FloatArray) -> FloatArray:
    """``matrix @ vector``, both small."""
    out: FloatArray = (matrix * vector).sum(axis=-1)
    return out


def softplus_and_sigmoid(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log(1 + e^z) (n,) and its derivative, the sigmoid, from one exponential."""
    e = np.exp(-np.abs(z))
    return np.maximum(z, 0) + np.log1p(e), np.where(z >= 0, 1, e) / (1 + e)


def sigmoid(z: FloatArray) -> FloatArray:
    """1 / (1 + e^-z) (n,)."""
    return softplus_and_sigmoid(z)[1]


def log(x: FloatArray) -> FloatArray:
    """Natural logarithms of normal numbers x > 0 (n,)."""
    out: FloatArray = np.log(x)
    return out


def cholesky(A: FloatArray) -> FloatArray:
    """The lower Cholesky factor. Raises LinAlgError where a matrix is not positive definite."""
    from bench_models import fixed_order_kernels as kernels

    L: FloatArray = kernels.factor(np.ascontiguousarray(A))
    if not bool(np.isfinite(L).all()):
        raise np.linalg.LinAlgError("not positive definite")
    return L


def solve_lower(L: FloatArray, b: FloatArray, *, transposed: bool = False) -> FloatArray:
    """x with L x = b, or L' x = b, for a lower triangular L."""
    from bench_models import fixed_order_kernels as kernels

    x: FloatArray = kernels.solve(L, np.ascontiguousarray(b), transposed)
    return x


def inverse_lower(L: FloatArray) -> FloatArray:
    """The inverse of a lower triangular matrix."""
    from bench_models import fixed_order_kernels as kernels

    out: FloatArray = kernels.inverse(L)
    return out


Smooth = Callable[[FloatArray], tuple[float, FloatArray]]
"""A function of a vector, with its gradient."""


def lbfgs(
    value: Smooth, start: FloatArray, *, steps: int, flat: float, slope: float, memory: int = 20
) -> tuple[FloatArray, float]:
    """A minimiser of a smooth function whose Hessian is near 1, and the value there, which is never
    above that at ``start``.

    J. Nocedal, S. Wright, "Numerical Optimization" (2006), algorithm 7.5. Ends after ``steps``, at
    a largest gradient entry of ``slope``, or where a step lowers the value by less than the share
    ``flat``. The line search halves and doubles until Wolfe's weak conditions hold.
    """
    from bench_models import fixed_order_kernels as kernels

    x, (now, g) = start, value(start)
    moves: deque[tuple[FloatArray, FloatArray]] = deque(maxlen=memory)
    for _ in range(steps):
        if np.abs(g).max(initial=0.0) <= slope:
            break
        pairs = np.array(moves).reshape(-1, 2, len(x))
        p = -kernels.towards(g, *map(np.ascontiguousarray, (pairs[:, 0], pairs[:, 1])))
        found = _line_search(value, x, now, g, p)
        if found is None and moves:
            moves.clear()  # once more along the gradient
            continue
        if found is None:
            break
        new, lower, gradient = found
        if dot(new - x, gradient - g) > 1e-14 * dot(gradient - g, gradient - g):
            moves.append((new - x, gradient - g))
        least = flat * max(abs(now), abs(lower), 1.0)
        done, x, now, g = now - lower <= least, new, lower, gradient
        if done:
            break
    return x, now


def _line_search(
    value: Smooth, x: FloatArray, now: float, g: FloatArray, p: FloatArray
) -> tuple[FloatArray, float, FloatArray] | None:
    """A point along p by Wolfe's weak conditions, its value and gradient; the lowest one found
    where rounding hides them, None where none is lower."""
    low, high, step, falls = 0.0, np.inf, 1.0, dot(g, p)
    best: tuple[FloatArray, float, FloatArray] | None = None
    if not falls < 0:
        return None
    for _ in range(_TRIES):
        new = x + step * p
        there, gradient = value(new)
        if there < (now if best is None else best[1]):
            best = new, there, gradient
        if not there <= now + _SUFFICIENT * step * falls:
            high = step
        elif dot(gradient, p) < _CURVATURE * falls:
            low = step
        else:
            return new, there, gradient
        step = (low + high) / 2 if np.isfinite(high) else 2 * step
    return best
