"""Sums of trees whose leaves number vectors."""

from bench_trees.arrays import Float64Array, Int32Array
from bench_trees.kernels.compiling import kernel


@kernel
def add_leaves(
    leaf: Float64Array, output: Int32Array, vectors: Float64Array, total: Float64Array
) -> None:
    """Add each row's leaves (n, T) to ``total`` (n, K), tree by tree. They are row numbers of
    ``vectors`` (m, K) or, where ``output`` (T,) is not negative, values for that output."""
    for i in range(len(leaf)):
        for t in range(len(output)):
            if output[t] < 0:
                number = int(leaf[i, t])
                for k in range(total.shape[1]):
                    total[i, k] += vectors[number, k]
            else:
                total[i, output[t]] += leaf[i, t]
