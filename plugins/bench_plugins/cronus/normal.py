"""Weighted least squares on many rows and columns: Gram matrices and their solution.

Sums are float64, block of rows by block, every entry always by the same code in the same order:
the number of threads does not change a bit of the result.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from bench_plugins.cronus.objective import FloatArray, IntArray, Problem

NEGLIGIBLE = 1e-9
"""A row that reaches a stage less surely than this is left out of it."""
BLOCK = 4096
"""Rows converted to float64 at a time."""
_PANEL = 512
_JITTER = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Normal:
    """Weighted least squares with the free constant eliminated.

    ``gram`` (c, c) and ``moment`` (c,) are centred; ``trees`` (c,) are the columns that vary on
    the rows at hand; ``mean`` (c,) and ``target`` give back the constant; ``spread`` is the loss of
    the constant alone.
    """

    trees: IntArray
    gram: FloatArray
    moment: FloatArray
    mean: FloatArray
    target: float
    spread: float

    def bias(self, weights: FloatArray) -> float:
        """The best constant beside weights (c,)."""
        return self.target - float(self.mean @ weights)

    def loss(self, weights: FloatArray) -> float:
        """``1/2 sum omega (y - h.b - constant)^2`` at weights (c,)."""
        quadratic = 0.5 * float(weights @ self.gram @ weights)
        return self.spread - float(self.moment @ weights) + quadratic


def normal_equations(
    problem: Problem, omega: FloatArray, threads: int = 1, *, centred: bool = True
) -> Normal:
    """``H' Omega H`` and ``H' Omega y`` for row weights omega (n,): about the weighted means, or
    where there is no constant (not ``centred``) about zero."""
    rows = np.flatnonzero(omega > NEGLIGIBLE * problem.weight)
    part, y = omega[rows], problem.y[rows]
    total = float(part.sum())
    target = float(part @ y) / total if centred else 0.0
    blocks = [rows[i : i + BLOCK] for i in range(0, len(rows), BLOCK)]
    mean = np.zeros(problem.trees)
    for block in blocks if centred else ():
        mean += problem.columns[:, block].astype(np.float64) @ omega[block]
    mean /= total
    gram = np.zeros((problem.trees, problem.trees))
    moment = np.zeros(problem.trees)
    with ThreadPoolExecutor(max(1, threads)) as pool:
        for block in blocks:
            root = np.sqrt(omega[block])
            piece = (problem.columns[:, block] - mean[:, None]) * root
            moment += piece @ (root * (problem.y[block] - target))
            add_gram(gram, piece, pool)
    # a column that is constant on these rows differs from its mean by rounding at most
    varies = gram.diagonal() > total * (1e-6 * np.maximum(np.abs(mean), 1e-30)) ** 2
    trees = np.flatnonzero(varies).astype(np.int64)
    return Normal(
        trees=trees,
        gram=_mirrored(gram, trees),
        moment=moment[trees],
        mean=mean[trees],
        target=target,
        spread=0.5 * float(part @ (y - target) ** 2),
    )


def add_gram(gram: FloatArray, piece: FloatArray, pool: ThreadPoolExecutor) -> None:
    """Add ``piece @ piece.T`` (c, m) to the lower triangle of ``gram`` (c, c), panel by panel."""

    def panel(start: int) -> None:
        stop = min(start + _PANEL, len(piece))
        gram[start:stop, :stop] += piece[start:stop] @ piece[:stop].T

    list(pool.map(panel, range(0, len(piece), _PANEL)))


def _mirrored(lower: FloatArray, chosen: IntArray) -> FloatArray:
    """The chosen rows and columns of a symmetric matrix known by its lower triangle."""
    part = np.tril(lower[np.ix_(chosen, chosen)])
    full: FloatArray = part + np.tril(part, -1).T
    return full


def solve_positive(gram: FloatArray, ridge: FloatArray, moment: FloatArray) -> FloatArray:
    """``(gram + diag(ridge))^-1 moment`` by Cholesky, scaled to a unit diagonal.

    A singular system (equal columns without a penalty) gets the smallest jitter of 1e-10, 1e-8, ...
    on that unit diagonal that makes it solvable.
    """
    from scipy.linalg import LinAlgError, cho_factor, cho_solve

    diagonal = gram.diagonal() + ridge
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    system = gram * scale[:, None] * scale
    jitter = _JITTER
    while True:
        np.fill_diagonal(system, 1.0 + jitter)
        try:
            factor = cho_factor(system, lower=True, check_finite=False)
        except LinAlgError:
            jitter *= 100.0
            if jitter > 1.0:
                raise
            continue
        solved: FloatArray = scale * cho_solve(factor, scale * moment, check_finite=False)
        return solved
