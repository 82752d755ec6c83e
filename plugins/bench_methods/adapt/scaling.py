"""Coordinates u in which the Hessian of a linear step is near the identity.

Weights (k,) are C u with (C C')^-1 = H = Z diag(share) Z' / 4 + diag(ridge) for columns Z (k, n):
the bound of the logistic loss's Hessian, and the penalty's.

Of at most as many columns as rows C' is the inverse of H's Cholesky factor: k^3. Of more, with
E = diag(ridge)^-1/2, M = E Z diag(share)^1/2 / 2 and R R' = 1 + M'M,

    C = E (1 - M W M'),   W = R'^-1 (R + 1)^-1,   C^-1 = (1 + M (1 + R')^-1 M') E^-1

for which C C' = E (1 - M (1 + M'M)^-1 M') E = H^-1: n^2 k, and nothing of k x k.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from bench_core.arrays import FloatArray


class Scaling(Protocol):
    """C, for m vectors at once, the rows of an array (m, k)."""

    def forth(self, u: FloatArray) -> FloatArray:
        """C u."""

    def transposed(self, by: FloatArray) -> FloatArray:
        """C' by: derivatives by u from those by weights."""

    def back(self, weights: FloatArray) -> FloatArray:
        """C^-1 weights."""


@dataclass(frozen=True, slots=True, eq=False)
class InColumns:
    """C' (k, k), lower triangular."""

    lower: FloatArray

    @classmethod
    def of(cls, correlation: FloatArray, ridge: FloatArray) -> Self:
        """From the correlation matrix (k, k) of the columns."""
        return cls(_inverse(_cholesky(correlation / 4 + np.diag(ridge))))

    def forth(self, u: FloatArray) -> FloatArray:
        """C u."""
        return u @ self.lower

    def transposed(self, by: FloatArray) -> FloatArray:
        """C' by."""
        return by @ self.lower.T

    def back(self, weights: FloatArray) -> FloatArray:
        """C^-1 weights."""
        from scipy.linalg import solve_triangular

        return np.asarray(solve_triangular(self.lower, weights.T, lower=True, trans="T").T)


@dataclass(frozen=True, slots=True, eq=False)
class InRows:
    """E as a vector (k,), M (k, n), W (n, n), and (1 + R')^-1 as ``outer``."""

    E: FloatArray
    M: FloatArray
    W: FloatArray
    outer: FloatArray

    @classmethod
    def of(cls, values: FloatArray, share: FloatArray, ridge: FloatArray) -> Self:
        """From the columns (k, n)."""
        E = 1 / np.sqrt(ridge)
        M = E[:, None] * values * (np.sqrt(share) / 2)
        one = np.eye(len(share))
        R = _cholesky(one + M.T @ M)
        outer = _inverse(R + one)
        return cls(E, M, _inverse(R).T @ outer, outer.T)

    def forth(self, u: FloatArray) -> FloatArray:
        """C u."""
        return self.E * (u - self._through(u, self.W.T))

    def transposed(self, by: FloatArray) -> FloatArray:
        """C' by."""
        scaled = self.E * by
        return scaled - self._through(scaled, self.W)

    def back(self, weights: FloatArray) -> FloatArray:
        """C^-1 weights."""
        scaled = weights / self.E
        return scaled + self._through(scaled, self.outer.T)

    def _through(self, rows: FloatArray, inner: FloatArray) -> FloatArray:
        """``rows @ M @ inner @ M.T``."""
        product: FloatArray = rows @ self.M @ inner @ self.M.T
        return product


def _cholesky(A: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.cholesky(A), dtype=np.float64)


def _inverse(lower: FloatArray) -> FloatArray:
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(lower, np.eye(len(lower)), lower=True))
