"""Linear scores at the points of a path: each pays for the columns with a weight that is not 0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from bench_models.scaling import Scaling
from bench_models.staged.state import prices_from, prices_state

from bench_core import Bill, Features, Prediction, Prices
from bench_core.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class LinearPath:
    """P points with ``weights`` (P, K, d) over standardised columns and ``bias`` (P, K).

    It is no path of staged models: all points share one standardised block. All rows pay alike.
    Columns are added one after the other in float64, so that a row's scores have the same bits in
    any block. ``facts`` are JSON values that the learner wants kept.
    """

    weights: FloatArray
    bias: FloatArray
    points: Sequence[Mapping[str, int | float]]
    scaling: Scaling
    prices: Prices
    facts: Mapping[str, Any]

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction per point."""
        if features.X.ndim != 2 or features.X.shape[1] != self.prices.features:
            raise ValueError(f"expected X (n, {self.prices.features}), got {features.X.shape}")
        z = np.ascontiguousarray(self.scaling.columns(features.X).T)
        for weights, bias, point in zip(self.weights, self.bias, self.points, strict=True):
            scores = np.tile(bias[:, None], len(features))
            for j in np.flatnonzero(weights.any(axis=0)):
                scores += weights[:, j, None] * z[j]
            bill = Bill.for_features(self.prices, weights.any(axis=0))
            yield Prediction(dict(point), _shaped(scores), {"path": bill, "model": bill})

    def state(self) -> dict[str, Any]:
        """Arrays and JSON; ``from_state`` is the inverse."""
        return {
            "weights": self.weights,
            "bias": self.bias,
            "mean": self.scaling.mean,
            "scale": self.scaling.scale,
            **prices_state(self.prices),
            "points": [dict(point) for point in self.points],
            "facts": dict(self.facts),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild a model from ``state``."""
        return cls(
            weights=state["weights"],
            bias=state["bias"],
            points=state["points"],
            scaling=Scaling(state["mean"], state["scale"]),
            prices=prices_from(state),
            facts=state["facts"],
        )


def _shaped(scores: FloatArray) -> FloatArray:
    """Scores (K, n) as a prediction has them."""
    return scores[0] if len(scores) == 1 else np.ascontiguousarray(scores.T)
