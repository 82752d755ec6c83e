"""Sums of RBF kernels over support vectors, the same bits for a row in any block."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from bench_models.scaling import Scaling
from bench_models.staged.state import prices_from, prices_state

from bench_core import Bill, Features, Prediction, Prices
from bench_core.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Kernels:
    """The average of G kernels exp(-gamma_g |z_g - v_g|^2).

    Kernel g looks at ``columns[start[g]:start[g + 1]]``.
    """

    columns: IntArray
    start: IntArray
    gamma: FloatArray

    @classmethod
    def of(cls, groups: Sequence[IntArray], gamma: float | None) -> Kernels:
        """A kernel for each group of columns; ``gamma`` None: one over their number."""
        sizes = np.array([len(g) for g in groups], dtype=np.int64)
        widths = 1.0 / np.maximum(1, sizes) if gamma is None else np.full(len(groups), gamma)
        columns = np.concatenate([*groups, np.zeros(0, dtype=np.int64)]).astype(np.int64)
        return cls(columns, np.concatenate([[0], np.cumsum(sizes)]), widths.astype(np.float64))

    @property
    def weight(self) -> FloatArray:
        """That of each kernel in the average, (G,)."""
        return np.full(len(self.gamma), 1.0 / max(1, len(self.gamma)))

    def sums(self, z: FloatArray, vectors: FloatArray, coefficients: FloatArray) -> FloatArray:
        """Sums over S vectors (S, d) of coefficients (K, S) times the G kernels' sum, (n, K)."""
        from bench_methods.linear.kernels import kernel_sums

        out = np.zeros((len(z), len(coefficients)))
        rows, pillars = z[:, self.columns], vectors[:, self.columns].T
        kernel_sums(
            np.ascontiguousarray(rows),
            np.ascontiguousarray(pillars),
            np.ascontiguousarray(coefficients),
            self.start,
            self.gamma,
            out,
        )
        return out

    def matrix(self, z: FloatArray) -> FloatArray:
        """The averages between all rows (n, n)."""
        from scipy.spatial.distance import cdist

        total = np.zeros((len(z), len(z)))
        for g, gamma in enumerate(self.gamma.tolist()):
            own = z[:, self.columns[self.start[g] : self.start[g + 1]]]
            total += np.exp(-gamma * cdist(own, own, "sqeuclidean"))
        return np.asarray(total * self.weight[0], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class KernelMachine:
    """Scores are ``bias`` (K,) plus the kernels' sums over ``vectors`` (S, d); one point.

    Every row reads, and pays for, every feature that varied in training.
    """

    vectors: FloatArray
    coefficients: FloatArray  # (K, S)
    bias: FloatArray
    kernels: Kernels
    scaling: Scaling
    prices: Prices

    @classmethod
    def of(
        cls,
        machines: Sequence[tuple[FloatArray, float]],
        z: FloatArray,
        kernels: Kernels,
        scaling: Scaling,
        prices: Prices,
    ) -> KernelMachine:
        """From each machine's coefficients of the rows ``z`` (n, d) and its intercept."""
        coefficients = np.array([c for c, _ in machines])
        kept = coefficients.any(axis=0)
        bias = np.array([intercept for _, intercept in machines])
        return cls(z[kept], coefficients[:, kept], bias, kernels, scaling, prices)

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """The one prediction."""
        if features.X.ndim != 2 or features.X.shape[1] != self.prices.features:
            raise ValueError(f"expected X (n, {self.prices.features}), got {features.X.shape}")
        z = self.scaling.columns(features.X)
        scores = self.kernels.sums(z, self.vectors, self.coefficients) + self.bias
        read = np.zeros(self.prices.features, dtype=bool)
        read[self.kernels.columns] = len(self.vectors) > 0
        bill = Bill.for_features(self.prices, read)
        shaped = scores[:, 0].copy() if len(self.bias) == 1 else scores
        yield Prediction({"features": int(read.sum())}, shaped, {"path": bill, "model": bill})

    def state(self) -> dict[str, Any]:
        """Arrays and JSON; ``from_state`` is the inverse."""
        return {
            "vectors": self.vectors,
            "coefficients": self.coefficients,
            "bias": self.bias,
            "columns": self.kernels.columns,
            "start": self.kernels.start,
            "gamma": self.kernels.gamma,
            "mean": self.scaling.mean,
            "scale": self.scaling.scale,
            **prices_state(self.prices),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Rebuild a model from ``state``."""
        return cls(
            vectors=state["vectors"],
            coefficients=state["coefficients"],
            bias=state["bias"],
            kernels=Kernels(state["columns"], state["start"], state["gamma"]),
            scaling=Scaling(state["mean"], state["scale"]),
            prices=prices_from(state),
        )
