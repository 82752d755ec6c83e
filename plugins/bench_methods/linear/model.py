"""Models over standardised columns, and linear scores at the points of a path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from bench_models.scaling import Scaling
from bench_models.staged.program import place_of
from bench_models.states import Stored

from bench_core import Bill, Features, Prediction, Prices
from bench_core.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    from bench_core.serving import Program


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
            mean=self.scaling.mean[feature],
            factor=self.scaling.factor[feature],
        )
        return self.served(self.bias[place], columns=columns)
