"""Walking an ensemble: scores, the sensors on each row's path, and the splits evaluated.

One pass over the rows gives all of it for every reported prefix of trees. Rows go through the
trees in tiles of 64 (``bitmask_traversal``): at a split one vector comparison yields the rows of
the tile that turn right, and the word of rows that reached the split is also what its sensors are
billed to, so metering costs one instruction per split and tile. A row's score is summed tree by
tree in float64 in the order of the trees, whatever rows stand beside it: a block and a single row
agree bitwise. Threads take disjoint tiles, so their number changes nothing either.

Only splits are laid out for the walk. Those of a tree stand in preorder, left child first, so that
a walk goes through them once from front to back and jumps over a subtree that no row has reached::

    split  0      1      2            left, right   where the rows that turn so are noted: at the
           root   left   right                      next split, or at a place nobody looks at
           |------+------|    after   after         first split beyond this subtree
                  |      |    after

A row's turns to the right say which leaf it ends in. In a tree of at most eight levels a turn at
depth d sets bit d of a code; the ``table`` of leaves has an entry for every code, so that a leaf
above the last level has several. In deeper trees, and in those whose table would be mostly such
copies, leaves are numbered from left to right and each turn names the first one of the right
subtree: the last turn of a row holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench_trees.arrays import Float32Array, Float64Array, Int32Array, Int64Array, frozen
from bench_trees.ensemble import Ensemble
from bench_trees.kernels.bitmask_traversal import PLANES, ROWS_PER_WORD, walk_tiles
from bench_trees.kernels.cells import add_cells
from bench_trees.kernels.records import Layout, Placed, Steps, Walked, depths, preorder
from bench_trees.threads import workers

__all__ = ["Needs", "Steps", "Walked", "add_columns", "lay_out", "walk"]

_CHUNK = 16  # tiles a thread takes at a time
_ROOM = 8  # entries of a table of codes per leaf, at most


@dataclass(frozen=True, slots=True, eq=False)
class Needs:
    """Which sensors a feature needs, in row-compressed form, and what a split on it multiplies."""

    start: Int32Array  # feature j needs the sensors needed[start[j]:start[j + 1]]
    needed: Int32Array
    multiplier: Float64Array  # (d,)
    sensors: int

    @classmethod
    def plain(cls, features: int) -> Needs:
        """Every feature is its own sensor and every split counts 1."""
        own = np.arange(features + 1, dtype=np.int32)
        return cls(own, own[:-1], np.ones(features), features)


def lay_out(
    ensemble: Ensemble,
    needs: Needs,
    chosen: Sequence[int] | NDArray[np.integer] | None = None,
    weights: Float64Array | None = None,
    billed: NDArray[np.bool_] | None = None,
) -> Layout:
    """Lay out ``chosen`` trees (default all) with ``weights`` (default ones).

    ``billed`` (same length) marks those whose splits are counted.
    """
    picked = np.asarray(range(ensemble.trees) if chosen is None else chosen, dtype=np.int64)
    nodes = ensemble.start, ensemble.feature, ensemble.left, ensemble.right
    depth = depths(nodes, picked)
    inner = (np.diff(ensemble.start)[picked].astype(np.int64) - 1) // 2
    codes = 1 << np.minimum(depth, PLANES)
    coded = (depth <= PLANES) & (codes <= _ROOM * (inner + 1))
    leaves = np.where(coded, codes, inner + 1)
    root, table = (np.cumsum([0, *sizes], dtype=np.int64) for sizes in (inner, leaves))
    left, right, after, turn = (np.zeros(root[-1], np.int32) for _ in range(4))
    split, leaf = np.zeros(root[-1], np.int64), np.zeros(table[-1], np.int64)
    placed = Placed(split, left, right, after, turn, leaf, np.zeros(table[-1]))
    multiplier = np.asarray(needs.multiplier, dtype=np.float64)
    preorder(nodes, multiplier, picked, root, table, coded, placed)
    columns, column = np.unique(ensemble.feature[split], return_inverse=True)
    sensors = [needs.needed[needs.start[c] : needs.start[c + 1]] for c in columns]
    return Layout(
        root=root,
        table=table,
        coded=coded,
        column=column.astype(np.int32),
        threshold=ensemble.threshold[split],
        missing_left=ensemble.missing_left[split],
        left=left,
        right=right,
        after=after,
        turn=turn,
        value=ensemble.value[leaf] * (1.0 if weights is None else np.repeat(weights, leaves)),
        splits=placed.path * (1.0 if billed is None else np.repeat(billed, leaves)),
        output=ensemble.output[picked],
        columns=columns,
        start=np.cumsum([0, *map(len, sensors)], dtype=np.int32),
        needed=np.concatenate([np.zeros(0, np.int32), *sensors]).astype(np.int32),
        sensors=needs.sensors,
    )


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
    X = frozen(X, np.float32)

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
    add_cells(scores, frozen(X, np.float32), rows, columns, outputs, by)
