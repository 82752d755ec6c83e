"""Walking an ensemble: scores, the sensors on each row's path, and the splits evaluated.

One pass over the rows gives all of it for every reported prefix of trees. Rows go through the
trees in tiles of 64 (``lanes``): at a split one vector comparison says which rows of the tile
turn right, and the word of rows that reached the split is also what its sensors are billed to,
so metering costs one instruction per split and tile. A row's score is summed tree by tree in
float64 in the order of the trees, whatever rows stand beside it: a block and a single row
agree bitwise. Threads take disjoint tiles, so their number changes nothing either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_trees.ensemble import Ensemble
from bench_trees.kernels.bitmask_traversal import LANES, add_cells, walk_tiles
from bench_trees.layout import Floats, Layout, Longs, Needs, lay_out
from bench_trees.threads import workers

__all__ = ["Needs", "Steps", "Walked", "add_columns", "lay_out", "walk"]

Words = NDArray[np.uint64]
_CHUNK = 16  # tiles a thread takes at a time


@dataclass(frozen=True, slots=True, eq=False)
class Steps:
    """The reported prefixes of a walk: step p ends before tree ``ends[p]`` and is reported.

    ``bias`` (p, K) is added at the start of a step; where ``carry`` (p,) is false the scores
    start afresh from it instead of from those of the step before.
    """

    ends: Longs
    bias: Floats
    carry: NDArray[np.bool_]

    @classmethod
    def prefixes(cls, ends: Sequence[int] | Longs, base: Floats) -> Steps:
        """Prefixes of one additive ensemble whose constant is ``base`` (K,)."""
        bias = np.zeros((len(ends), len(base)))
        bias[:1] = base
        carry = np.arange(len(ends)) > 0
        return cls(np.asarray(ends, dtype=np.int64), bias, carry)


@dataclass(frozen=True, slots=True, eq=False)
class Walked:
    """What a walk found per step p and row: ``scores`` (p, n, K), packed ``bits`` (p, n, w) of
    the sensors bought so far, ``splits`` (p, n) the sum of multipliers so far."""

    scores: Floats
    bits: Words
    splits: Floats

    @classmethod
    def begin(cls, rows: int, outputs: int, words: int) -> Walked:
        """Before the first step: scores zero, nothing bought."""
        bits = np.zeros((1, rows, words), dtype=np.uint64)
        return cls(np.zeros((1, rows, outputs)), bits, np.zeros((1, rows)))


def walk(
    layout: Layout,
    steps: Steps,
    X: NDArray[np.float32],
    before: Walked,
    rows: Longs | None = None,
    threads: int = 1,
) -> Walked:
    """Continue from the last step of ``before`` through all ``steps``.

    ``X`` float32 (N, d); ``rows`` (n,) picks the rows to walk (default all), in the order of
    ``before``'s rows. Cells of features that no evaluated split of a row asks for do not
    influence that row's result.
    """
    picked = np.arange(len(X), dtype=np.int64) if rows is None else rows
    p, n = len(steps.ends), len(picked)
    scores = np.empty((p, n, steps.bias.shape[1]))
    bits = np.empty((p, n, layout.words), dtype=np.uint64)
    splits = np.empty((p, n))
    source = (_frozen(X), picked)
    plan = (steps.ends, steps.bias, steps.carry)
    since = (before.scores[-1], before.bits[-1], before.splits[-1])
    into = (scores, bits, splits)

    def piece(start: int, stop: int) -> None:
        walk_tiles(_shape(layout), _paying(layout), source, plan, since, into, start, stop)

    _over_tiles(piece, n, threads)
    return Walked(scores, bits, splits)


def add_columns(
    scores: Floats, X: NDArray[np.float32], rows: Longs, columns: Longs, outputs: Longs, by: Floats
) -> None:
    """Add ``by[j] * X[rows, columns[j]]`` to output ``outputs[j]`` of scores (n, K), in order.

    Only the given columns are read; a missing cell adds nothing.
    """
    add_cells(scores, _frozen(X), rows, columns, outputs, by)


def use_every_kernel() -> None:
    """Run all kernels of this module once, so that they are compiled."""
    lone_leaf = Ensemble(
        start=np.array([0, 1], dtype=np.int32),
        feature=np.array([-1], dtype=np.int32),
        threshold=np.zeros(1, dtype=np.float32),
        left=np.array([-1], dtype=np.int32),
        right=np.array([-1], dtype=np.int32),
        missing_left=np.zeros(1, dtype=np.bool_),
        value=np.zeros(1),
        output=np.zeros(1, dtype=np.int32),
        base=np.zeros(1),
        features=1,
    )
    X = np.zeros((1, 1), dtype=np.float32)
    none = np.zeros(0, dtype=np.int64)
    layout = lay_out(lone_leaf, Needs.plain(1))
    steps = Steps.prefixes([1], lone_leaf.base)
    done = walk(layout, steps, X, Walked.begin(1, 1, layout.words))
    add_columns(done.scores[0], X, none, none, none, np.zeros(0))


def _over_tiles(piece: Any, rows: int, threads: int) -> None:
    with workers(threads) as team:
        team.run(piece, -(-rows // LANES), _CHUNK)


def _frozen(X: NDArray[np.float32]) -> NDArray[np.float32]:
    """As a read-only C-ordered array: one compiled kernel serves arrays and memory maps."""
    view = np.ascontiguousarray(X, dtype=np.float32).view(np.ndarray)
    view.flags.writeable = False
    return view


def _shape(layout: Layout) -> tuple[Any, ...]:
    tests = (layout.column, layout.threshold, layout.missing_left)
    ways = (layout.left, layout.right, layout.after, layout.turn)
    trees = (layout.root, layout.coded)
    return (layout.columns, layout.start, layout.needed, *trees, *tests, *ways)


def _paying(layout: Layout) -> tuple[Any, ...]:
    return (layout.table, layout.value, layout.splits, layout.output)
