"""Columns with mean 0 and variance 1 whose missing cells are 0, that is, the training mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bench_core import Examples
from bench_core.arrays import Float32Array, FloatArray

_BLOCK = 8192  # rows: bounds the memory of what is made block by block


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """z = (x - mean) / scale; a missing or infinite cell has z = 0.

    ``mean`` (d,) is over the known cells, ``scale`` (d,) the root of the mean of (x - mean)^2
    over all rows, missing cells counting 0; it is 0 for a column that does not vary, whose z is 0.
    """

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, train: Examples) -> Scaling:
        """Learn it from training rows, copies counted."""
        mass = train.weights
        d = train.X.shape[1]
        mean, scale = np.zeros(d), np.zeros(d)
        for j in range(d):
            x = train.X[:, j].astype(np.float64)
            known = np.isfinite(x)
            if not known.any():
                continue
            mean[j] = np.average(x[known], weights=mass[known])
            off = np.zeros(len(x))
            off[known] = x[known] - mean[j]
            scale[j] = np.sqrt(np.average(off**2, weights=mass))
            # a rounded mean of equal cells need not equal them
            if scale[j] <= 1e-12 * max(abs(mean[j]), np.finfo(np.float64).tiny):
                scale[j] = 0.0
        return cls(mean, scale)

    def columns(self, X: Float32Array) -> FloatArray:
        """Rows X (n, d) as z (n, d); a cell depends on nothing but itself."""
        factor = np.divide(1.0, self.scale, out=np.zeros_like(self.scale), where=self.scale > 0)
        z = X.astype(np.float64)
        missing = ~np.isfinite(z)
        z[missing] = 0.0
        z -= self.mean
        z *= factor
        z[missing] = 0.0
        return z

    def blocks(self, X: Float32Array) -> Iterator[tuple[slice, FloatArray]]:
        """The same block by block of rows."""
        for start in range(0, len(X), _BLOCK):
            rows = slice(start, start + _BLOCK)
            yield rows, self.columns(X[rows])
