"""Rows through laid-out trees, 64 at a time.

A tile is 64 rows whose cells lie row by row. All of them go down a tree together, level by level.
The steps of different rows are independent: the processor has work while it fetches a node. No
branch depends on the data. Siblings are adjacent, so the outcome of a comparison is added to the
place of the left child::

    node        0         1         2         3         4
    cell        7         -         2         -         -       column that is compared
    key        0.5      (max)      -1.0     (max)     (max)     x <= key goes left
    left        1         1         3         3         4       a leaf leads to itself

Floats are compared as integers of the same order (``ordered``), among which a missing cell is the
smallest or the largest. Each split sets the bit of its sensor in the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bench_trees.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
    UInt64Array,
)
from bench_trees.kernels.compiling import kernel

TILE, ROWS = 64, 16
TOGETHER = 8
"""Levels that all rows take together; below them a row stops at its leaf."""

_U = np.uint64  # an index that is never negative


class Layout(NamedTuple):
    """Trees in walking order, weights included; a tree's nodes are together, siblings adjacent,
    children after their parents."""

    root: Int32Array  # (T,)
    levels: Int32Array  # (T,) splits on the longest path
    output: Int32Array  # (T,)
    # per node
    cell: Int32Array  # position in ``columns``, 0 at a leaf
    key: Int32Array  # the threshold, ``ordered``
    left: Int32Array  # the left child, with the right one after it; a leaf itself
    word: Int32Array  # payment for reading the cell: a bit of this word of the row's sensors,
    mask: UInt64Array  # or beyond them the bit of a bundle; 0 if it is free
    value: Float64Array  # output times the tree's weight, 0 at a split
    splits: Float64Array  # multipliers of the splits above it, 0 if the tree is not billed
    # per column
    columns: Int32Array  # (u,) the feature; twice if its missing cells go both ways
    missing: Int32Array  # (u,) key of a missing cell
    bundles: UInt64Array  # (b, w) sensors of the features that need several
    sensors: int

    @property
    def trees(self) -> int:
        """Number of trees T."""
        return len(self.root)

    @property
    def words(self) -> int:
        """Number of 64-bit words that hold one bit per sensor (at least 1)."""
        return max(1, -(-self.sensors // 64))

    def paths(self) -> tuple[Float64Array, Float64Array]:
        """The smallest and the largest ``splits`` of a leaf of each tree, (T,)."""
        leaf = np.flatnonzero(self.left == np.arange(len(self.left)))
        first = np.searchsorted(leaf, self.root)
        own = self.splits[leaf]
        return np.minimum.reduceat(own, first), np.maximum.reduceat(own, first)


class Steps(NamedTuple):
    """The reported prefixes of a walk: step p ends before tree ``ends[p]`` and is reported."""

    ends: Int64Array
    bias: Float64Array  # (p, K), added at the start of a step
    carry: BoolArray  # (p,), false if scores start from zero instead of the previous step's

    @classmethod
    def prefixes(cls, ends: Sequence[int] | Int64Array, base: Float64Array) -> Steps:
        """Prefixes of one additive ensemble whose constant is ``base`` (K,)."""
        bias = np.zeros((len(ends), len(base)))
        bias[:1] = base
        carry = np.arange(len(ends)) > 0
        return cls(np.asarray(ends, dtype=np.int64), bias, carry)


class Walked(NamedTuple):
    """The results of a walk per step p and row."""

    scores: Float64Array  # (p, n, K)
    bits: UInt64Array  # (p, n, w), the sensors bought so far
    splits: Float64Array  # (p, n), the sum of multipliers so far

    @classmethod
    def begin(cls, rows: int, outputs: int, words: int) -> Walked:
        """State before the first step: scores zero, nothing bought."""
        bits = np.zeros((1, rows, words), dtype=np.uint64)
        return cls(np.zeros((1, rows, outputs)), bits, np.zeros((1, rows)))


def ordered(values: Float32Array) -> Int32Array:
    """Integers in the order of the floats; -0.0 is 0.0."""
    bits = (values + np.float32(0)).view(np.int32)
    return np.asarray(bits ^ (bits >> 31 & 0x7FFFFFFF))


@kernel
def walk_tiles(
    layout: Layout,
    X: Float32Array,
    picked: Int64Array,
    steps: Steps,
    before: Walked,
    done: Walked,
) -> None:
    """Walk rows tile by tile through all steps, from the last step of ``before``, into ``done``;
    see ``inference.walk``."""
    cell, key, left = layout.cell, layout.key, layout.left
    word, mask, value, lengths = layout.word, layout.mask, layout.value, layout.splits
    ends, bias, carry = steps
    columns, missing, bundles = layout.columns, layout.missing, layout.bundles
    width, outputs, words = max(1, len(columns)), bias.shape[1], done.bits.shape[2]
    noted, last = words + -(-len(bundles) // 64), len(before.splits) - 1
    paying = layout.sensors > 0
    # a partial tile's other rows are walked with any cells, and not read
    cells = np.empty(TILE * width, dtype=np.float32)
    keys = cells.view(np.int32)
    at = np.empty(TILE, dtype=np.int32)
    read = np.empty(TILE * noted, dtype=np.uint64)
    total, spent = np.empty((outputs, TILE)), np.empty(TILE)
    for begin in range(0, len(picked), TILE):
        count = min(TILE, len(picked) - begin)
        for some in range(0, count, ROWS):  # their cells stay in the nearest cache
            for c in range(len(columns)):
                for r in range(some, min(some + ROWS, count)):
                    cell_of = X[picked[begin + r], _U(columns[c])]
                    cells[_U(TILE * c + r)] = cell_of + np.float32(0)  # -0.0 is 0.0
        for c in range(len(columns)):
            column = keys[TILE * c : TILE * c + TILE]
            absent = missing[c]
            for r in range(TILE):
                bits = column[r]
                number = bits ^ ((bits >> np.int32(31)) & np.int32(0x7FFFFFFF))
                is_number = (bits & np.int32(0x7FFFFFFF)) <= np.int32(0x7F800000)
                column[r] = number if is_number else absent
        for r in range(count):
            spent[r] = before.splits[last, begin + r]
            for k in range(outputs):
                total[k, r] = before.scores[last, begin + r, k]
            for w in range(noted):
                read[r * noted + w] = before.bits[last, begin + r, w] if w < words else _U(0)
        t = 0
        for p in range(len(ends)):
            for k in range(outputs):
                for r in range(TILE):
                    total[k, r] = (total[k, r] if carry[p] else 0.0) + bias[p, k]
            while t < ends[p]:
                at[:] = layout.root[t]
                # all rows of a tile, even of a partial one: a constant length is unrolled
                for _ in range(min(layout.levels[t], TOGETHER)):
                    for r in range(TILE):
                        node = _U(at[_U(r)])
                        if paying:
                            read[_U(r * noted) + _U(word[node])] |= mask[node]
                        above = keys[_U(TILE) * _U(cell[node]) + _U(r)] > key[node]
                        at[_U(r)] = left[node] + np.int32(above)
                if layout.levels[t] > TOGETHER:
                    for r in range(count):
                        node = _U(at[_U(r)])
                        while _U(left[node]) != node:
                            if paying:
                                read[_U(r * noted) + _U(word[node])] |= mask[node]
                            above = keys[_U(TILE) * _U(cell[node]) + _U(r)] > key[node]
                            node = _U(left[node] + np.int32(above))
                        at[_U(r)] = node
                sums = total[layout.output[t]]
                for r in range(TILE):
                    sums[_U(r)] += value[_U(at[_U(r)])]
                    spent[_U(r)] += lengths[_U(at[_U(r)])]
                t += 1
            for r in range(count):
                for b in range(len(bundles)):
                    if read[r * noted + words + b // 64] >> _U(b % 64) & _U(1):
                        for w in range(words):
                            read[r * noted + w] |= bundles[b, w]
                paid = done.bits[p, begin + r]
                for w in range(words):
                    paid[_U(w)] = read[_U(r * noted + w)]
                done.splits[p, begin + r] = spent[r]
                for k in range(outputs):
                    done.scores[p, begin + r, k] = total[k, r]
