"""The logistic function and its integral, without overflow."""

import numpy as np

from bench_core.arrays import FloatArray


def softplus_and_sigmoid(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log(1 + e^z), and its derivative, the sigmoid, both shaped as ``z``."""
    e = np.exp(-np.abs(z))  # at most 1
    softplus: FloatArray = np.maximum(z, 0.0) + np.log1p(e)
    return softplus, np.exp(np.minimum(z, 0.0)) / (1.0 + e)


def sigmoid(z: FloatArray) -> FloatArray:
    """1 / (1 + e^-z), shaped as ``z``."""
    # without np.where, which is slow where signs alternate
    result: FloatArray = np.exp(np.minimum(z, 0.0)) / (1.0 + np.exp(-np.abs(z)))
    return result
