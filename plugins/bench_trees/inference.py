"""Walking an ensemble: scores, the sensors on each row's path, and the splits evaluated.

One pass over the rows gives all of it for every reported prefix of trees. Rows go through the
trees in tiles of 64 (``bitmask_traversal``): at a split one vector comparison yields the rows of
the tile that turn right, and the word of rows that reached the split is also what its sensors are
billed to, so metering costs one instruction per split and tile. A row's score is summed tree by
tree in float64 in the order of the trees, whatever rows stand beside it: a block and a single row
agree bitwise. Threads take disjoint tiles, so their number changes nothing either.
"""

from __future__ import annotations

import numpy as np

from bench_trees.arrays import Float32Array, Float64Array, Int64Array
from bench_trees.kernels.bitmask_traversal import ROWS_PER_WORD, add_cells, walk_tiles
from bench_trees.kernels.records import Layout, Steps, Walked
from bench_trees.layout import Needs, lay_out
from bench_trees.threads import workers

__all__ = ["Needs", "Steps", "Walked", "add_columns", "lay_out", "walk"]

_CHUNK = 16  # tiles a thread takes at a time


def walk(
    layout: Layout,
    steps: Steps,
    X: Float32Array,
    before: Walked,
    rows: Int64Array | None = None,
    threads: int = 1,
) -> Walked:
    """Continue from the last step of ``before`` through all ``steps``.

    ``X`` float32 (N, d); ``rows`` (n,) picks the rows to walk (default all), in the order of
    ``before``'s rows. Cells of features that no evaluated split of a row asks for do not
    influence that row's result.
    """
    picked = np.arange(len(X), dtype=np.int64) if rows is None else rows
    p, n = len(steps.ends), len(picked)
    bits = np.empty((p, n, layout.words), dtype=np.uint64)
    done = Walked(np.empty((p, n, steps.bias.shape[1])), bits, np.empty((p, n)))
    X = _frozen(X)

    def piece(start: int, stop: int) -> None:
        walk_tiles(layout, X, picked, steps, before, done, start, stop)

    with workers(threads) as crew:
        crew.run(piece, -(-n // ROWS_PER_WORD), _CHUNK)
    return done


def add_columns(
    scores: Float64Array,
    X: Float32Array,
    rows: Int64Array,
    columns: Int64Array,
    outputs: Int64Array,
    by: Float64Array,
) -> None:
    """Add ``by[j] * X[rows, columns[j]]`` to output ``outputs[j]`` of scores (n, K), in order.

    Only the given columns are read; a missing cell adds nothing.
    """
    add_cells(scores, _frozen(X), rows, columns, outputs, by)


def _frozen(X: Float32Array) -> Float32Array:
    """As a read-only C-ordered array: one compiled kernel serves arrays and memory maps."""
    view = np.ascontiguousarray(X, dtype=np.float32).view(np.ndarray)
    view.flags.writeable = False
    return view
