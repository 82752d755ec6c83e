"""Walking an ensemble: scores, the sensors on each row's path, and the splits evaluated.

One pass over the rows gives all of it for every reported prefix of trees. Rows go through the
trees in tiles of 64 (``bitmask_traversal``): each distinct threshold of a column is compared once a
tile, which yields the rows above it as a word; at a split, that and the word of rows that came to
it give those that turn right. The latter is also what the split's sensors are billed to, so
metering costs one instruction per split and tile. A row's score is summed tree by tree in float64
in the order of the trees, whatever rows stand beside it: a block and a single row agree bitwise.
Threads take disjoint tiles, so their number changes nothing either.

Only splits are laid out for the walk. Those of a tree stand in preorder, left child first. The rows
that turn right and left at split i stand at places 2 i + 1 and 2 i + 2, all rows at place 0; the
``source`` of a split is the place of those that come to it. A walk goes through the splits once,
from front to back, and jumps over a large subtree that no row has reached, to the first split
``after`` it. A small one is walked: the processor would often guess wrong whether to jump.

Leaves are numbered from left to right, and ``mark`` is the number of the first leaf of a split's
right subtree: the last turn of a row to the right names its leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench_core.traversal.trees import lengths, squares
from bench_trees.arrays import Float32Array, Float64Array, Int32Array, Int64Array, frozen
from bench_trees.ensemble import Ensemble
from bench_trees.kernels.bitmask_traversal import ROWS_PER_WORD, walk_tiles
from bench_trees.kernels.cells import add_cells
from bench_trees.kernels.records import Layout, Placed, Steps, Walked, preorder
from bench_trees.threads import workers

__all__ = ["Needs", "Steps", "Walked", "add_columns", "lay_out", "walk"]

_CHUNK = 16  # tiles a thread takes at a time


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
    leaves = (np.diff(ensemble.start)[picked].astype(np.int64) + 1) // 2
    root = np.cumsum([0, *(leaves - 1)], dtype=np.int64)
    split, leaf = np.zeros(root[-1], np.int64), np.zeros(leaves.sum(), np.int64)
    source, after, mark = (np.zeros(root[-1], np.int32) for _ in range(3))
    placed = Placed(split, source, after, mark, leaf, np.zeros(len(leaf)))
    preorder(nodes, np.asarray(needs.multiplier, dtype=np.float64), picked, root, placed)
    columns, column = np.unique(ensemble.feature[split], return_inverse=True)
    threshold, missing_left = ensemble.threshold[split], ensemble.missing_left[split]
    kinds = column << 33 | threshold.view(np.uint32).astype(np.int64) << 1 | missing_left
    _, one, of_cut = np.unique(kinds, return_index=True, return_inverse=True)
    splits = placed.path * (1.0 if billed is None else np.repeat(billed, leaves))
    sensors = [needs.needed[needs.start[c] : needs.start[c + 1]] for c in columns]
    return Layout(
        root=root,
        widest=int(np.diff(root).max(initial=0)),
        column=column.astype(np.int32),
        of_cut=of_cut.astype(np.int32),
        source=source,
        after=after,
        mark=mark,
        cut_column=column[one].astype(np.int32),
        cut=threshold[one],
        missing_left=missing_left[one],
        value=ensemble.value[leaf] * (1.0 if weights is None else np.repeat(weights, leaves)),
        splits=splits,
        short=lengths(splits, np.asarray(needs.multiplier)),
        output=ensemble.output[picked],
        columns=columns,
        squares=squares(columns, ensemble.features),
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
