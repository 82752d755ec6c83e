"""Linear parts of models: cells of chosen columns added to scores."""

import numpy as np
from numba import njit

from bench_trees.arrays import Float32Array, Float64Array, Int64Array


@njit(cache=True, nogil=True)
def add_cells(
    scores: Float64Array,
    X: Float32Array,
    rows: Int64Array,
    columns: Int64Array,
    outputs: Int64Array,
    by: Float64Array,
) -> None:
    """See ``inference.add_columns``."""
    for i in range(len(rows)):
        for j in range(len(columns)):
            cell = np.float64(X[rows[i], columns[j]])
            if not np.isnan(cell):
                scores[i, outputs[j]] += by[j] * cell
