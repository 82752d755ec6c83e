"""The compiled sum of leaf vectors."""

from numba import njit

from bench_core.arrays import FloatArray


@njit(cache=True, nogil=True)
def add_vectors(number: FloatArray, vectors: FloatArray, total: FloatArray) -> None:
    """Add to each row of ``total`` (n, K) the rows of ``vectors`` (m, K) numbered in ``number``
    (n, T), tree by tree."""
    for i in range(len(number)):
        for t in range(number.shape[1]):
            leaf = int(number[i, t])
            for k in range(total.shape[1]):
                total[i, k] += vectors[leaf, k]
