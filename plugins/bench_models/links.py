"""Links between scores and probabilities, and the log-loss, without overflow.

Scores are as in a ``Prediction``: log-odds (n,) of two classes, or (n, K), whose softmax are the
probabilities.
"""

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


def log_sigmoid(z: FloatArray) -> FloatArray:
    """``log sigma(z)``, shaped as ``z``."""
    # NumPy's logaddexp is slower than these together
    return np.minimum(z, 0.0) - np.log1p(np.exp(-np.abs(z)))


def logit(p: FloatArray) -> FloatArray:
    """Log-odds of probabilities between 0 and 1, shaped as ``p``."""
    return np.asarray(np.log(p / (1 - p)))


def of_classes(scores: FloatArray) -> FloatArray:
    """One score (n, K) for each class; the first of two has 0."""
    return scores if scores.ndim == 2 else np.column_stack([np.zeros(len(scores)), scores])


def log_sum(scores: FloatArray) -> FloatArray:
    """log sum exp (n,) of scores (n, K)."""
    top = scores.max(axis=1)
    return np.asarray(top + np.log(np.exp(scores - top[:, None]).sum(axis=1)))


def softmax(scores: FloatArray) -> FloatArray:
    """Probabilities (n, K) of scores (n, K)."""
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(p / p.sum(axis=1, keepdims=True))


def log_loss(scores: FloatArray, y: FloatArray) -> FloatArray:
    """-log p (n,) of the labels."""
    if scores.ndim == 1:
        return softplus_and_sigmoid((1 - 2 * y) * scores)[0]
    return np.asarray(log_sum(scores) - scores[np.arange(len(y)), y.astype(np.int64)])


def plogp(p: FloatArray) -> FloatArray:
    """p log p, shape as given; 0 where p is."""
    return np.asarray(p * np.log(np.where(p > 0, p, 1.0)))


def scores_of(p: FloatArray, least: float) -> FloatArray:
    """Scores of class probabilities (n, K), raised to ``least``: logarithms (n, K), or log-odds
    (n,) of two classes."""
    logs = np.log(np.maximum(p, least))
    return np.asarray(logs if logs.shape[1] > 2 else logs[:, 1] - logs[:, 0])
