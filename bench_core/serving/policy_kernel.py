"""A row that follows a policy, its trees and its rule compiled; needs numba."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from bench_core.arrays import BoolArray, Float32Array, FloatArray, Int32Array, IntArray
from bench_core.sequential import STOP
from bench_core.serving.policy_program import PolicyProgram
from bench_core.serving.row_walk import (
    CELL,
    FIRST_USE,
    KEY,
    LAST_USE,
    LEFT,
    LEVELS,
    OUTPUT,
    ROOT,
    VALUE,
    Packed,
    pack,
)

_ONE = np.float32(1).view(np.int32)  # the key of a purchase that was made
_U: Any = np.uint64  # an index that is never counted from the end


class Rule(NamedTuple):
    """What a policy compares."""

    start: IntArray  # (k + 1,), purchase j needs the sensors sensors[start[j]:start[j + 1]]
    sensors: IntArray
    price: FloatArray  # (s,)
    least: float
    rate: bool
    skip: bool


@njit(cache=True, nogil=True)
def put(keys: Int32Array, places: IntArray, values: Float32Array) -> None:
    """The values of cells as keys: integers in the order of the floats; -0.0 is 0.0."""
    bits = (values + np.float32(0)).view(np.int32)
    for k in range(len(places)):
        if places[k] >= 0:
            missing = bits[k] & 0x7FFFFFFF > 0x7F800000
            key = bits[k] ^ (bits[k] >> 31 & 0x7FFFFFFF)
            keys[2 * places[k]] = -(2**31) if missing else key
            keys[2 * places[k] + 1] = 2**31 - 1 if missing else key


@njit(cache=True, nogil=True)
def add_trees(program: Packed, keys: Int32Array, p: int, own: FloatArray) -> None:
    """The sums of step p."""
    own[:] = program.gates[p, 1:]
    for u in range(program.steps[p, FIRST_USE], program.steps[p, LAST_USE]):
        node, output = _U(program.uses[u, ROOT]), program.uses[u, OUTPUT]
        for _ in range(program.uses[u, LEVELS]):
            above = keys[_U(program.nodes[node, CELL])] > program.nodes[node, KEY]
            node = _U(program.nodes[node, LEFT] + above)
        value = program.leaves[node, VALUE]
        if output >= 0:
            own[output] += value
        else:
            own += program.vectors[int(value)]


@njit(cache=True, nogil=True)
def next_purchase(
    program: Packed,
    rule: Rule,
    keys: Int32Array,
    made: BoolArray,
    bought: BoolArray,
    left: float,
    sums: FloatArray,
) -> int:
    """As ``PolicyProgram.chosen``, for one row; ``sums`` (2, w) are written to."""
    own, worth = sums
    worth[:] = -np.inf
    for p in range(len(program.steps) - 1):
        add_trees(program, keys, p, own)
        worth[:] = np.maximum(worth, own)
    chosen, best = STOP, -np.inf
    for j in range(len(made)):
        price = 0.0
        for i in range(rule.start[j], rule.start[j + 1]):
            if not bought[rule.sensors[i]]:
                price += rule.price[rule.sensors[i]]
        if made[j] or (rule.skip and price > left):
            continue
        value = worth[j]
        if rule.rate:
            value = max(value, 0.0) / price if price > 0 else np.inf
        if chosen == STOP or value > best:
            chosen, best = j, value
    return chosen if best >= (rule.least if rule.rate else worth[len(made)]) else STOP


class Compiled:
    """A policy as arrays."""

    def __init__(self, program: PolicyProgram) -> None:
        self.program, self.packed = program, pack(program.scores, program.unpriced)
        sets, price = program.purchases.sets, program.prices.sensor
        start = np.append(0, np.cumsum(sets.sum(axis=1))).astype(np.int64)
        lists = start, np.nonzero(sets)[1]
        self.rule = Rule(*lists, price, program.least, program.rule == "rate", program.skip)
        used, d = program.scores.features, program.prices.features
        self.place = np.full(len(program.scores.multiplier), -1)
        self.place[used] = np.arange(len(used))
        there = self.place[d:] >= 0
        self.marked, self.mark = program.marked[there], 2 * self.place[d:][there]
        self.keys = np.tile(np.array([-(2**31), 2**31 - 1], np.int32), len(used))
        self.keys = np.append(self.keys, np.int32(0))  # the last for leaves


class CompiledRow:
    """The cells of a row."""

    def __init__(self, policy: Compiled) -> None:
        self.policy, self.keys = policy, policy.keys.copy()
        self.sums = np.empty((2, policy.program.scores.outputs))

    def put(self, numbers: IntArray, values: Float32Array) -> None:
        """Take the values of features."""
        put(self.keys, self.policy.place[numbers], values)

    def act(self, made: BoolArray, sensors: BoolArray, left: float) -> int:
        """The next purchase, or STOP."""
        own = self.policy
        self._mark(made)
        return int(next_purchase(own.packed, own.rule, self.keys, made, sensors, left, self.sums))

    def answer(self, made: BoolArray) -> FloatArray:
        """Scores (K,)."""
        self._mark(made)
        packed = self.policy.packed
        add_trees(packed, self.keys, len(packed.steps) - 1, self.sums[0])
        return self.sums[0, : self.policy.program.outputs].copy()

    def _mark(self, made: BoolArray) -> None:
        if len(self.policy.mark):
            key = np.where(made[self.policy.marked], _ONE, 0)
            self.keys[self.policy.mark] = self.keys[self.policy.mark + 1] = key
