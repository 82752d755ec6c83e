"""The logistic function and its integral, without overflow."""

import numpy as np

from bench_core.arrays import FloatArray


def softplus_and_sigmoid(z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """log(1 + e^z), and its derivative, the sigmoid, both shaped as ``z``."""
    e = np.exp(-np.abs(z))  # at most 1
    rising = z >= 0
    softplus: FloatArray = np.where(rising, z, 0.0) + np.log1p(e)
    return softplus, np.where(rising, 1.0, e) / (1.0 + e)


def sigmoid(z: FloatArray) -> FloatArray:
    """1 / (1 + e^-z), shaped as ``z``."""
    e = np.exp(-np.abs(z))  # at most 1
    result: FloatArray = np.where(z >= 0, 1.0, e) / (1.0 + e)
    return result
