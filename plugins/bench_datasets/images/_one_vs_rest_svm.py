"""One-vs-rest support vector machines on one descriptor.

The kernel is exp(-gamma |a - b|^2) of square roots of descriptors that sum to 1 (a smooth likeness
of histograms), 1 / gamma the mean of |a - b|^2 over the pictures that the machines learn from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray

COST = 10.0  # of a picture on the wrong side


@dataclass(frozen=True, slots=True, eq=False)
class Machines:
    """``known`` (m, p) are the roots of the pictures learned from; class k's output for a picture
    with kernel row (m,) is ``dual[k]`` (m,) times the row plus ``bias[k]``."""

    known: Float32Array
    squared: Float32Array
    gamma: float
    dual: FloatArray
    bias: FloatArray

    @classmethod
    def learn(cls, descriptors: Float32Array, label: IntArray, classes: int) -> Machines:
        """From descriptors (m, p) >= 0 and class numbers (m,), each class present."""
        from sklearn.svm import SVC

        known = roots(descriptors)
        squared = (known**2).sum(axis=1)
        mean = float(_distances(known, squared, known).mean())
        gamma = 1 / mean if mean > 0 else 1.0
        kernel = _kernel(known, squared, gamma, known)
        dual, bias = np.zeros((classes, len(known))), np.zeros(classes)
        for k in range(classes):
            machine = SVC(C=COST, kernel="precomputed", class_weight="balanced")
            machine.fit(kernel, label == k)
            dual[k, machine.support_] = machine.dual_coef_[0]
            bias[k] = machine.intercept_[0]
        return cls(known, squared, gamma, dual, bias)

    def kernel(self, descriptors: Float32Array) -> FloatArray:
        """Rows (n, m) for descriptors (n, p)."""
        return _kernel(self.known, self.squared, self.gamma, roots(descriptors))

    def outputs(self, kernel: FloatArray) -> FloatArray:
        """(n, classes), above 0 where a machine accepts."""
        return kernel @ self.dual.T + self.bias

    def output(self, row: FloatArray, k: int) -> float:
        """One machine's for one row (m,)."""
        return float(self.dual[k] @ row + self.bias[k])


def roots(descriptors: Float32Array) -> Float32Array:
    """Square roots of rows scaled to sum to 1; rows of zeros stay."""
    total = descriptors.sum(axis=1, keepdims=True)
    root: Float32Array = np.sqrt(descriptors / np.where(total > 0, total, np.float32(1)))
    return root


def _distances(known: Float32Array, squared: Float32Array, rows: Float32Array) -> Float32Array:
    near: Float32Array = (rows**2).sum(axis=1)[:, None] + squared - 2 * (rows @ known.T)
    np.maximum(near, np.float32(0), out=near)
    return near


def _kernel(
    known: Float32Array, squared: Float32Array, gamma: float, rows: Float32Array
) -> FloatArray:
    return np.exp(-gamma * _distances(known, squared, rows).astype(np.float64))
