"""What a walk over trees is given and what it fills."""

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


class Layout(NamedTuple):
    """Chosen trees of an ensemble in walking order, weights included.

    ``root`` (T+1,) bounds the splits of each tree, ``table`` (T+1,) its leaves; ``coded`` (T,)
    marks the trees whose leaves are found by code. Per split: ``column`` position in ``columns``,
    ``threshold``, ``missing_left``, ``left``, ``right`` (counted from the tree's first split),
    ``after``, ``turn`` (depth, or number of a leaf). Per leaf: ``value`` (output times the tree's
    weight), ``splits`` (the sum of the multipliers on its path, 0 where the tree is not billed).
    ``output`` (T,). ``columns`` (u,) are the features used; compact column c needs the sensors
    ``needed[start[c]:start[c + 1]]`` of ``sensors``.
    """

    root: Int64Array
    table: Int64Array
    coded: BoolArray
    column: Int32Array
    threshold: Float32Array
    missing_left: BoolArray
    left: Int32Array
    right: Int32Array
    after: Int32Array
    turn: Int32Array
    value: Float64Array
    splits: Float64Array
    output: Int32Array
    columns: Int32Array
    start: Int32Array
    needed: Int32Array
    sensors: int

    @property
    def trees(self) -> int:
        """Number of trees T."""
        return len(self.output)

    @property
    def words(self) -> int:
        """Number of 64-bit words that hold one bit per sensor (at least 1)."""
        return max(1, -(-self.sensors // 64))


class Steps(NamedTuple):
    """The reported prefixes of a walk: step p ends before tree ``ends[p]`` and is reported.

    ``bias`` (p, K) is added at the start of a step; where ``carry`` (p,) is false the scores
    start afresh from it instead of from those of the step before.
    """

    ends: Int64Array
    bias: Float64Array
    carry: BoolArray

    @classmethod
    def prefixes(cls, ends: Sequence[int] | Int64Array, base: Float64Array) -> Steps:
        """Prefixes of one additive ensemble whose constant is ``base`` (K,)."""
        bias = np.zeros((len(ends), len(base)))
        bias[:1] = base
        carry = np.arange(len(ends)) > 0
        return cls(np.asarray(ends, dtype=np.int64), bias, carry)


class Walked(NamedTuple):
    """The results of a walk per step p and row: ``scores`` (p, n, K), packed ``bits`` (p, n, w) of
    the sensors bought so far, ``splits`` (p, n) the sum of multipliers so far."""

    scores: Float64Array
    bits: UInt64Array
    splits: Float64Array

    @classmethod
    def begin(cls, rows: int, outputs: int, words: int) -> Walked:
        """Before the first step: scores zero, nothing bought."""
        bits = np.zeros((1, rows, words), dtype=np.uint64)
        return cls(np.zeros((1, rows, outputs)), bits, np.zeros((1, rows)))
