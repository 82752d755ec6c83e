"""Compiled densities of many rows under many hypotheses."""

# mypy: disallow-untyped-decorators=False
import numpy as np
from bench_trees.kernels.compiling import kernel

from bench_core.arrays import Float32Array, FloatArray


@kernel
def log_joint(
    z: Float32Array,
    mean: FloatArray,
    factor: FloatArray,
    constant: FloatArray,
    prior: FloatArray,
    labels: int,
) -> FloatArray:
    """Sums over latent classes (n, K), as logarithms that are at most 0.

    Hypothesis h, of label h % K, has ``prior[h]`` and, for each cell that is not NaN, ``constant[j,
    h] - factor[j, h] * (z[j] - mean[j, h]) ** 2``.
    """
    out = np.zeros((len(z), labels))
    total = np.zeros(len(prior))
    for i in range(len(z)):
        for h in range(len(prior)):  # rows of arrays by loops: see ``bench_trees.kernels``
            total[h] = prior[h]
        for j in range(z.shape[1]):
            if not np.isnan(z[i, j]):
                for h in range(len(prior)):
                    off = z[i, j] - mean[j, h]
                    total[h] += constant[j, h] - factor[j, h] * off * off
        top = -np.inf
        for h in range(len(prior)):
            top = max(top, total[h])
        for h in range(len(prior)):
            out[i, h % labels] += np.exp(total[h] - top)
        for k in range(labels):
            out[i, k] = np.log(out[i, k] + 1e-12)
    return out
