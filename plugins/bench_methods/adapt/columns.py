"""Standardised columns of the training rows, and linear functions of them.

Columns are centred and scaled by their weighted mean and deviation, a missing cell counting as 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, Self

import numpy as np

from bench_core import InputError
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_methods.adapt.scaling import InColumns, InRows, Scaling

RIDGE = 1e-6  # keeps the weights finite where the classes can be separated
FEW = 256  # columns that are always worked on together
_JITTER = 1e-12  # of the mean diagonal: rows of which one is a sum of others


@dataclass(slots=True, eq=False)
class Columns:
    """Standardised columns, ``values`` (k, n), of the features ``which`` (k,).

    They were centred by ``centre`` and divided by ``scale``; ``share`` (n,) weighs the rows.
    """

    which: IntArray
    values: FloatArray
    centre: FloatArray
    scale: FloatArray
    share: FloatArray
    _gram: FloatArray | None = field(default=None, repr=False)

    @classmethod
    def of(cls, X: Float32Array, share: FloatArray) -> Self:
        """All columns that are not constant. Raises InputError for an infinite value."""
        wide = np.ascontiguousarray(X.T, dtype=np.float64)
        Z = np.nan_to_num(wide, nan=0.0, posinf=np.inf, neginf=-np.inf, copy=False)
        if not bool(np.isfinite(Z).all()):
            column = int(np.flatnonzero(~np.isfinite(Z).all(axis=1))[0])
            raise InputError(
                f"feature {column} holds infinity, which no linear model can read; "
                "leave the value empty or use adapt-gbrt"
            )
        centre = Z @ share
        Z -= centre[:, None]
        scale = np.sqrt(Z**2 @ share)
        varied = np.flatnonzero(scale > 1e-9 * np.maximum(1.0, np.abs(centre)))
        Z = Z[varied] / scale[varied, None]
        return cls(varied.astype(np.int64), Z, centre[varied], scale[varied], share)

    @property
    def Z(self) -> FloatArray:  # noqa: N802 - as in the formulas
        """The columns as a matrix (n, k)."""
        return self.values.T

    @property
    def wide(self) -> bool:
        """Whether there are more of them than rows, and many: then only some are worked on."""
        return len(self.which) > max(len(self.share), FEW)

    @property
    def gram(self) -> FloatArray:
        """Their correlation matrix (k, k)."""
        if self._gram is None:
            self._gram = (self.values * self.share) @ self.values.T
        return self._gram

    def only(self, features: IntArray) -> Columns:
        """Those of them that are among ``features``."""
        kept = np.flatnonzero(np.isin(self.which, features))
        known = None if self._gram is None else self._gram[np.ix_(kept, kept)]
        parts = self.which[kept], self.values[kept], self.centre[kept], self.scale[kept]
        return Columns(*parts, self.share, known)

    def scaling(self, factor: FloatArray) -> Scaling:
        """Of the weights; ``factor`` (k,) is the penalty's part of the Hessian beside RIDGE."""
        ridge = factor + RIDGE
        if len(self.which) > len(self.share):
            return InRows.of(self.values, self.share, ridge)
        return InColumns.of(self.gram, ridge)


@dataclass(frozen=True, slots=True, eq=False)
class LinearFunction:
    """One linear function of the columns: ``weights`` (k,) and ``intercept``."""

    weights: FloatArray
    intercept: float

    def __call__(self, columns: Columns) -> FloatArray:
        """Its values on all rows (n,)."""
        return self.weights @ columns.values + self.intercept

    def only(self, kept: BoolArray) -> LinearFunction:
        """Of the columns ``kept`` (k,) alone."""
        return LinearFunction(self.weights[kept], self.intercept)

    def among(self, own: Columns, columns: Columns) -> LinearFunction:
        """That of other columns, of which it has those that are among its ``own``."""
        weights = np.zeros(len(columns.which))
        _, here, there = np.intersect1d(own.which, columns.which, return_indices=True)
        weights[there] = self.weights[here]
        return LinearFunction(weights, self.intercept)


class LinearPair(NamedTuple):
    """Gate and classifier."""

    g: LinearFunction
    f1: LinearFunction

    def among(self, own: Columns, columns: Columns) -> LinearPair:
        """Both of other columns."""
        return LinearPair(*(one.among(own, columns) for one in self))


def in_row_space(columns: Columns, fitted: Callable[[Columns], LinearPair]) -> LinearPair:
    """A pair that is ``fitted`` on columns of which none is charged but by the ridge.

    Where there are more columns than rows its weights are sums of rows, w = Z v. With K = Z'Z =
    L L' and u = L'v its values are L u and |w| = |u|: the same problem in n columns.
    """
    k, n = columns.values.shape
    if k <= n:
        return fitted(columns)
    K = columns.values.T @ columns.values
    K += _JITTER * np.trace(K) / n * np.eye(n)
    L: FloatArray = np.asarray(np.linalg.cholesky(K), dtype=np.float64)
    every, unit = np.arange(n), np.ones(n)
    pair = fitted(Columns(every, np.ascontiguousarray(L.T), 0 * unit, unit, columns.share))
    return LinearPair(*(_lifted(one, columns, L) for one in pair))


def _lifted(function: LinearFunction, columns: Columns, L: FloatArray) -> LinearFunction:
    from scipy.linalg import solve_triangular

    v = solve_triangular(L, function.weights, lower=True, trans="T")
    return LinearFunction(columns.values @ v, function.intercept)
