"""Compiled: nearest neighbours, and densities of rows under hypotheses, by the known cells."""

# mypy: disallow-untyped-decorators=False
import numpy as np
from bench_trees.kernels.compiling import kernel

from bench_core.arrays import Float32Array, FloatArray, IntArray


@kernel
def nearest(rows: Float32Array, z: Float32Array, skip: IntArray, count: int) -> IntArray:
    """The ``count`` nearest of ``rows`` (r, d) to each of z (n, d), the nearest first.

    Squared distances are summed over cells known in both rows, and scaled to all known cells of z.
    Row ``skip[i]`` is not a neighbour of i. Ties go to the lower number.
    """
    neighbours = np.zeros((len(z), count), dtype=np.int64)
    columns = np.zeros(z.shape[1], dtype=np.int64)
    best = np.zeros(count)
    for i in range(len(z)):
        shown = 0
        for j in range(z.shape[1]):
            if not np.isnan(z[i, j]):
                columns[shown] = j
                shown += 1
        filled = 0
        for r in range(len(rows)):
            if r == skip[i]:
                continue
            total, both = 0.0, 0
            for place in range(shown):
                cell = rows[r, columns[place]]
                if not np.isnan(cell):
                    off = cell - z[i, columns[place]]
                    total += off * off
                    both += 1
            distance = total * shown / both if both > 0 else np.inf
            if filled == count and not distance < best[count - 1]:
                continue
            place = filled if filled < count else count - 1
            while place > 0 and best[place - 1] > distance:
                best[place] = best[place - 1]
                neighbours[i, place] = neighbours[i, place - 1]
                place -= 1
            best[place] = distance
            neighbours[i, place] = r
            filled = min(filled + 1, count)
    return neighbours


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
