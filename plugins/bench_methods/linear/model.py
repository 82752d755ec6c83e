"""Models over standardised columns, and linear scores at the points of a path.

Standardised columns have mean 0 and variance 1; their missing cells are 0, the training mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from bench_models.staged.program import place_of
from bench_models.states import Stored

from bench_core import Bill, Examples, Features, Prediction, Prices
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray

if TYPE_CHECKING:
    from bench_core.serving import Program


@dataclass(frozen=True, slots=True, eq=False)
class Scaling(Stored):
    """z = (x - mean) / scale; a missing or infinite cell has z = 0.

    ``mean`` (d,) is over the known cells. ``scale`` (d,) is the root mean of (x - mean)^2 over all
    rows, a missing cell counting 0. A constant column has scale 0 and z = 0.
    """

    mean: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, train: Examples) -> Scaling:
        """Fit to training rows, copies counted."""
        mass = train.weights
        d = train.X.shape[1]
        mean, scale = np.zeros(d), np.zeros(d)
        for j in range(d):
            x = train.X[:, j].astype(np.float64)
            finite = np.isfinite(x)
            if not finite.any():
                continue
            mean[j] = np.average(x[finite], weights=mass[finite])
            # a missing cell is at the mean
            off = np.zeros(len(x))
            off[finite] = x[finite] - mean[j]
            scale[j] = np.sqrt(np.average(off**2, weights=mass))
            # the mean of equal cells may differ from them by rounding
            if scale[j] <= 1e-12 * max(abs(mean[j]), np.finfo(np.float64).tiny):
                scale[j] = 0.0
        return cls(mean, scale)

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


@dataclass(frozen=True, eq=False)
class ScaledModel(Stored):
    """A model over standardised columns; all rows pay the same."""

    scaling: Scaling
    prices: Prices

    def columns(self, features: Features) -> FloatArray:
        """The standardised columns (n, d)."""
        if features.X.ndim != 2 or features.X.shape[1] != self.prices.features:
            raise ValueError(f"expected X (n, {self.prices.features}), got {features.X.shape}")
        return self.scaling.columns(features.X)

    def prediction(
        self, point: Mapping[str, int | float], scores: FloatArray, read: BoolArray
    ) -> Prediction:
        """Prediction with scores (n, K) and the price of the features ``read`` (d,)."""
        bill = Bill(self.prices.acquired(read))
        shaped = np.ascontiguousarray(scores[:, 0] if scores.shape[1] == 1 else scores)
        return Prediction(dict(point), shaped, {"path": bill, "model": bill})

    def served(self, bias: FloatArray, **sums: Any) -> Program:
        """A program of one step with these columns or kernel. A row that buys nothing is scored
        by the bias."""
        from bench_core.serving import Program, Step, Stop, no_trees

        none = np.zeros(0, dtype=np.int64)
        return Program(
            outputs=len(bias),
            steps=[Step(none, np.zeros(0), none > 0, bias, **sums)],
            trees=no_trees(len(bias), self.prices.features),
            multiplier=self.prices.multiplier,
            stops=[Stop(0, {})],
        )


@dataclass(frozen=True, eq=False)
class LinearPath(ScaledModel):
    """P points with ``weights`` (P, K, d) over standardised columns and ``bias`` (P, K).

    Unlike in a path of staged models, all points share one standardised block. All rows pay the
    same. Columns are added one by one in float64, so a row's scores are bit-identical in any
    block. ``facts`` are JSON values from the learner.
    """

    independent_rows: ClassVar[bool] = True

    weights: FloatArray
    bias: FloatArray
    points: Sequence[Mapping[str, int | float]]
    facts: Mapping[str, Any]

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per point."""
        z = np.ascontiguousarray(self.columns(features).T)  # (d, n): column by column
        for weights, bias, point in zip(self.weights, self.bias, self.points, strict=True):
            scores, read = np.tile(bias[:, None], len(features)), weights.any(axis=0)
            for j in np.flatnonzero(read):
                scores += weights[:, j, None] * z[j]
            yield self.prediction(point, scores.T, read)

    def program(self, point: Mapping[str, int | float]) -> Program:
        """The scores at a point, for serving."""
        from bench_core.serving import WeightedColumns

        place = place_of(point, self.points)
        weights = self.weights[place]
        read = np.flatnonzero(weights.any(axis=0))
        # a column for each feature and output
        feature = np.repeat(read, len(weights))
        columns = WeightedColumns(
            feature=feature,
            output=np.tile(np.arange(len(weights)), len(read)),
            weight=weights[:, read].T.reshape(-1),
            scaled=np.ones(len(feature), dtype=bool),
            mean=self.scaling.mean[feature],
            factor=self.scaling.factor[feature],
        )
        return self.served(self.bias[place], columns=columns)
