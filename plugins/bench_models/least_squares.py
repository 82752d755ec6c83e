"""Weighted least squares on many rows and columns: Gram matrices and their solution.

Sums are float64, one block of rows after another. The same code computes every entry in the same
order. The number of threads thus changes no bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_models.problem import Problem

NEGLIGIBLE = 1e-9  # a row that reaches a stage with less probability is left out
BLOCK = 4096  # rows converted to float64 at a time
_PANEL = 256
_JITTER = 1e-10


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Restrict BLAS to the calling thread; its own idle threads would spin."""
    with _blas().limit(limits=1, user_api="blas"):
        yield


@cache
def _blas() -> Any:
    # finding the libraries reads all memory maps of the process, as slow as a small fit
    import scipy.linalg
    import scipy.optimize  # noqa: F401
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@dataclass(frozen=True, slots=True, eq=False)
class Normal:
    """Weighted least squares with the intercept eliminated."""

    trees: IntArray  # (c,) the columns that vary on these rows
    gram: FloatArray  # (c, c) centred
    moment: FloatArray  # (c,) centred
    mean: FloatArray  # (c,) of the columns
    target: float  # mean of the labels
    spread: float  # loss of the constant alone

    def bias(self, weights: FloatArray) -> float:
        """The best intercept for weights (c,)."""
        return self.target - float(self.mean @ weights)

    def loss(self, weights: FloatArray) -> float:
        """``1/2 sum omega (y - h.b - constant)^2`` at weights (c,)."""
        quadratic = 0.5 * float(weights @ self.gram @ weights)
        return self.spread - float(self.moment @ weights) + quadratic


class Growing:
    """The normal equations of a stage, for fixed row weights omega (n,), on trees added gradually.

    ``normal`` holds the trees so far that vary on the rows. ``seen`` (T,) marks all trees
    requested, and ``constant`` (T,) the ones among them without variance. Columns are taken about
    their weighted means or, without an intercept (not ``centred``), about zero.
    """

    def __init__(
        self, problem: Problem, omega: FloatArray, threads: int = 1, *, centred: bool = True
    ) -> None:
        self.problem, self.threads, self.centred = problem, threads, centred
        self.rows = np.flatnonzero(omega > NEGLIGIBLE * problem.weight)
        self.omega, self.y = omega[self.rows], problem.y[self.rows]
        self.total = float(self.omega.sum())
        self.seen = np.zeros(problem.trees, dtype=bool)
        self.constant = np.zeros(problem.trees, dtype=bool)
        target = float(self.omega @ self.y) / self.total if centred else 0.0
        none, spread = np.zeros(0), 0.5 * float(self.omega @ (self.y - target) ** 2)
        trees = np.zeros(0, dtype=np.int64)
        self.normal = Normal(trees, np.zeros((0, 0)), none, none, target, spread)

    def copied(self) -> Growing:
        """A copy that grows separately."""
        other = copy(self)
        other.seen, other.constant = self.seen.copy(), self.constant.copy()
        return other

    def grow(self, trees: IntArray) -> None:
        """Add the ``trees`` not requested before."""
        new = trees[~self.seen[trees]]
        if len(new) == 0:
            return
        self.seen[new] = True
        old, n_old = self.normal, len(self.normal.trees)
        every = np.concatenate([old.trees, new])
        mean = np.concatenate([old.mean, self._means(new)])
        gram = np.zeros((len(every), len(every)))
        gram[:n_old, :n_old] = old.gram
        moment = np.concatenate([old.moment, np.zeros(len(new))])
        with ThreadPoolExecutor(max(1, self.threads)) as pool:
            for i in range(0, len(self.rows), BLOCK):
                rows = slice(i, i + BLOCK)
                root = np.sqrt(self.omega[rows])
                piece = self.problem.outputs(every, self.rows[rows])
                piece -= mean[:, None]
                piece *= root
                moment[n_old:] += piece[n_old:] @ (root * (self.y[rows] - old.target))
                add_gram(gram, piece, pool, n_old)
        self.normal = self._varying(every, gram, moment, mean)
        self.constant[new] = True
        self.constant[self.normal.trees] = False

    def _means(self, trees: IntArray) -> FloatArray:
        mean = np.zeros(len(trees))
        for i in range(0, len(self.rows) if self.centred else 0, BLOCK):
            part = slice(i, i + BLOCK)
            mean += self.problem.outputs(trees, self.rows[part]) @ self.omega[part]
        return np.asarray(mean / self.total)

    def _varying(
        self, trees: IntArray, gram: FloatArray, moment: FloatArray, mean: FloatArray
    ) -> Normal:
        # a column that is constant on these rows differs from its mean only by rounding
        least = self.total * (1e-6 * np.maximum(np.abs(mean), 1e-30)) ** 2
        kept = np.flatnonzero(gram.diagonal() > least)
        lower = np.tril(gram[np.ix_(kept, kept)])
        return Normal(
            trees=trees[kept],
            gram=lower + np.tril(lower, -1).T,
            moment=moment[kept],
            mean=mean[kept],
            target=self.normal.target,
            spread=self.normal.spread,
        )


def add_gram(gram: FloatArray, piece: FloatArray, pool: ThreadPoolExecutor, skip: int = 0) -> None:
    """Add ``piece @ piece.T`` (c, m) to the lower triangle of ``gram`` (c, c) by panels, except its
    first ``skip`` rows."""

    def panel(start: int) -> None:
        stop = min(start + _PANEL, len(piece))
        gram[start:stop, :stop] += piece[start:stop] @ piece[:stop].T

    list(pool.map(panel, range(skip, len(piece), _PANEL)))


def weighted_gram(
    columns: Callable[[slice], Float32Array | FloatArray],
    others: Sequence[FloatArray],
    root: FloatArray,
    threads: int,
) -> FloatArray:
    """Lower triangle of the Gram matrix of columns and of ``others``, each (n,), on rows of weight
    ``root`` (n,) squared. ``columns`` gives the columns (c, m) of a block of rows."""
    size = len(columns(slice(0))) + len(others)
    gram = np.zeros((size, size))
    with ThreadPoolExecutor(max(1, threads)) as pool:
        for i in range(0, len(root), BLOCK):
            rows = slice(i, i + BLOCK)
            parts: list[Any] = [columns(rows), *(other[rows] for other in others)]
            add_gram(gram, np.vstack(parts) * root[rows], pool)
    return gram


def solve_positive(gram: FloatArray, ridge: FloatArray, moment: FloatArray) -> FloatArray:
    """``(gram + diag(ridge))^-1 moment`` by Cholesky, scaled to a unit diagonal.

    A singular system (equal columns without a penalty) gets the smallest jitter of 1e-10, 1e-8, ...
    on that diagonal that makes it solvable.
    """
    from scipy.linalg.lapack import dposv

    if len(moment) == 0:  # an empty system, which SciPy before 1.14 refuses
        return np.zeros(0)
    diagonal = gram.diagonal() + ridge
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    system = gram * scale[:, None] * scale
    jitter = _JITTER
    while True:
        np.fill_diagonal(system, 1.0 + jitter)
        # LAPACK directly: SciPy's checks take longer than a small system
        _, solved, fault = dposv(system.T, scale * moment)
        if fault == 0:
            return np.asarray(scale * solved)
        jitter *= 100.0
        if jitter > 1.0:
            raise np.linalg.LinAlgError("the system is not positive definite")
