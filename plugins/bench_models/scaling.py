"""Standardised columns: what every linear method and kernel reads, and takes a missing cell for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_models.states import Stored


@dataclass(frozen=True, slots=True, eq=False)
class Scaling(Stored):
    """z = (x - mean) / scale; a missing or infinite cell counts as the mean, z = 0.

    ``mean`` (d,) is over the known cells of training rows. ``scale`` (d,) is the root mean of
    (x - mean)^2 over all rows, a missing cell counting 0, so z has variance 1. A constant column
    has scale 0 and z = 0.
    """

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, X: Float32Array, mass: FloatArray) -> Scaling:
        """Fit to rows X (n, d) of weights ``mass`` (n,), in which copies are counted."""
        d = X.shape[1]
        mean, scale = np.zeros(d), np.zeros(d)
        for j in range(d):
            x = X[:, j].astype(np.float64)
            finite = np.isfinite(x)
            if not finite.any():
                continue
            mean[j] = np.average(x[finite], weights=mass[finite])
            off = np.zeros(len(x))
            off[finite] = x[finite] - mean[j]
            scale[j] = np.sqrt(np.average(off**2, weights=mass))
            # the mean of equal cells may differ from them by rounding
            if scale[j] <= 1e-12 * max(abs(mean[j]), np.finfo(np.float64).tiny):
                scale[j] = 0.0
        return cls(mean, scale)

    @classmethod
    def identity(cls, d: int) -> Scaling:
        """Columns as they are, a missing or infinite cell 0."""
        return cls(np.zeros(d), np.ones(d))

    def only(self, which: IntArray) -> Scaling:
        """The scaling of some columns."""
        return Scaling(self.mean[which], self.scale[which])

    @property
    def factor(self) -> FloatArray:
        """1 / scale (d,), or 0 where the scale is 0."""
        one: FloatArray = np.ones_like(self.scale)
        return np.divide(one, self.scale, out=np.zeros_like(one), where=self.scale > 0)

    def columns(self, X: Float32Array) -> FloatArray:
        """Rows X (n, d) as z (n, d), cell by cell."""
        z = X.astype(np.float64)
        missing = ~np.isfinite(z)
        z[missing] = 0.0
        z -= self.mean
        z *= self.factor
        z[missing] = 0.0
        return z
