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
from numba import njit
from numpy.typing import NDArray

from bench_trees.ensemble import Ensemble
from bench_trees.lanes import LANES, above, lowest, transpose
from bench_trees.layout import Floats, Layout, Longs, Needs, lay_out
from bench_trees.threads import workers

__all__ = ["Needs", "Steps", "Walked", "add_columns", "lay_out", "tree_outputs", "walk"]

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
        _walk(_shape(layout), _paying(layout), source, plan, since, into, start, stop)

    _over_tiles(piece, n, threads)
    return Walked(scores, bits, splits)


def tree_outputs(
    ensemble: Ensemble,
    X: NDArray[np.float32],
    chosen: Sequence[int] | Longs | None = None,
    weights: Floats | None = None,
    threads: int = 1,
) -> Floats:
    """The output of every chosen tree times its weight for every row, float64 (n, T)."""
    layout = lay_out(ensemble, Needs.plain(ensemble.features), chosen, weights)
    out = np.empty((len(X), len(layout)))
    source = (_frozen(X), np.arange(len(X), dtype=np.int64))

    def piece(start: int, stop: int) -> None:
        _outputs(_shape(layout), layout.value, source, out, start, stop)

    _over_tiles(piece, len(X), threads)
    return out


def add_columns(
    scores: Floats, X: NDArray[np.float32], rows: Longs, columns: Longs, outputs: Longs, by: Floats
) -> None:
    """Add ``by[j] * X[rows, columns[j]]`` to output ``outputs[j]`` of scores (n, K), in order.

    Only the given columns are read; a missing cell adds nothing.
    """
    _add_columns(scores, _frozen(X), rows, columns, outputs, by)


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
    tree_outputs(lone_leaf, X)
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
    nodes = (layout.column, layout.threshold, layout.missing_left, layout.right, layout.after)
    return (layout.columns, layout.start, layout.needed, layout.root, *nodes)


def _paying(layout: Layout) -> tuple[Any, ...]:
    return (layout.value, layout.splits, layout.output)


@njit(cache=True, nogil=True)
def _widest(root: Any) -> int:
    widest = 0
    for t in range(len(root) - 1):
        widest = max(widest, root[t + 1] - root[t])
    return widest


@njit(cache=True, nogil=True)
def _first(count: int) -> Any:
    """The set of the first ``count`` >= 1 rows of a tile."""
    return ~np.uint64(0) >> np.uint64(LANES - count)


@njit(cache=True, nogil=True)
def _fill(tile: Any, source: Any, columns: Any, begin: int, count: int) -> None:
    """Gather the used columns of up to 64 rows, one column after the other."""
    X, picked = source
    for r in range(count):
        row = X[picked[begin + r]]
        for c in range(len(columns)):
            tile[c * LANES + r] = row[columns[c]]


@njit(cache=True, nogil=True)
def _descend(shape: Any, t: int, tile: Any, live: Any, reached: Any, got: Any, leaf: Any) -> None:
    """Send the ``live`` rows of a tile down tree t: their ``leaf`` (64,), sensors ``got`` (s,).

    ``reached`` (nodes of the tree,) is scratch: which rows arrive at each node.
    """
    _, start, needed, root, column, threshold, missing_left, right, after = shape
    origin = root[t]
    reached[0] = live
    i = origin
    while i < root[t + 1]:
        here = reached[i - origin]
        if here == 0:
            i = np.int64(after[i])
            continue
        c = column[i]
        if c >= 0:
            turn = above(tile, np.int64(c) * LANES, threshold[i], missing_left[i])
            reached[i + 1 - origin] = here & ~turn
            reached[right[i] - origin] = here & turn
            for k in range(start[c], start[c + 1]):
                got[needed[k]] |= here
        else:
            while here != 0:
                leaf[lowest(here)] = i
                here &= here - np.uint64(1)
        i += 1


@njit(cache=True, nogil=True)
def _walk(
    shape: Any, paying: Any, source: Any, plan: Any, since: Any, into: Any, start: int, stop: int
) -> None:
    """Walk the tiles ``start:stop`` through all steps."""
    columns, root = shape[0], shape[3]
    value, cost, output = paying
    ends, bias, carry = plan
    scores_since, bits_since, splits_since = since
    scores, bits, splits = into
    rows, outputs, words = len(source[1]), bias.shape[1], bits.shape[2]
    tile = np.zeros(len(columns) * LANES, dtype=np.float32)
    reached = np.zeros(_widest(root), dtype=np.uint64)
    got = np.zeros(words * LANES, dtype=np.uint64)
    leaf = np.zeros(LANES, dtype=np.int64)
    total = np.zeros((outputs, LANES))
    spent = np.zeros(LANES)
    for place in range(start, stop):
        begin = place * LANES
        count = min(LANES, rows - begin)
        _fill(tile, source, columns, begin, count)
        got[:] = 0
        for r in range(count):
            spent[r] = splits_since[begin + r]
            for k in range(outputs):
                total[k, r] = scores_since[begin + r, k]
        t = 0
        for p in range(len(ends)):
            for k in range(outputs):
                if not carry[p]:
                    total[k] = 0.0
                total[k] += bias[p, k]
            while t < ends[p]:
                _descend(shape, t, tile, _first(count), reached, got, leaf)
                line = total[output[t]]
                for r in range(count):
                    line[r] += value[leaf[r]]
                    spent[r] += cost[leaf[r]]
                t += 1
            for r in range(count):
                splits[p, begin + r] = spent[r]
                for k in range(outputs):
                    scores[p, begin + r, k] = total[k, r]
            _report_bits(bits[p], bits_since, got, begin, count)


@njit(cache=True, nogil=True)
def _report_bits(bits: Any, since: Any, got: Any, begin: int, count: int) -> None:
    """Turn a word of rows per sensor into words of sensors per row, and add ``since``."""
    square = np.empty(LANES, dtype=np.uint64)
    for w in range(bits.shape[1]):
        square[:] = got[w * LANES : (w + 1) * LANES]
        transpose(square)
        for r in range(count):
            bits[begin + r, w] = since[begin + r, w] | square[r]


@njit(cache=True, nogil=True)
def _outputs(shape: Any, value: Any, source: Any, out: Any, start: int, stop: int) -> None:
    columns, root = shape[0], shape[3]
    tile = np.zeros(len(columns) * LANES, dtype=np.float32)
    reached = np.zeros(_widest(root), dtype=np.uint64)
    got = np.zeros(len(columns), dtype=np.uint64)
    leaf = np.zeros(LANES, dtype=np.int64)
    for place in range(start, stop):
        begin = place * LANES
        count = min(LANES, len(out) - begin)
        _fill(tile, source, columns, begin, count)
        for t in range(out.shape[1]):
            _descend(shape, t, tile, _first(count), reached, got, leaf)
            for r in range(count):
                out[begin + r, t] = value[leaf[r]]


@njit(cache=True, nogil=True)
def _add_columns(scores: Any, X: Any, rows: Any, columns: Any, outputs: Any, by: Any) -> None:
    for i in range(len(rows)):
        for j in range(len(columns)):
            cell = np.float64(X[rows[i], columns[j]])
            if not np.isnan(cell):
                scores[i, outputs[j]] += by[j] * cell
