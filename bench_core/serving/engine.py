"""Rows by compiled code, with the bits of the plain walk.

The kernels do not know all programs: what they leave out (support vectors, gates and combines
that need ``exp``, what compares the rows of a query, plugins' cost models) is walked in Python.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from math import inf
from typing import Any

import numpy as np

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.costs.acquired import byte_sums, words
from bench_core.costs.model import SensorPrices
from bench_core.serving import kernels
from bench_core.serving.compiled import Packed
from bench_core.serving.gates import finished
from bench_core.serving.kernels import (
    CAP,
    CAPPED,
    DONE,
    LAST_STEP,
    NEW_SPLITS,
    NEW_TREE,
    PLACES,
    PRICE,
    READS,
    REJECTED,
    SPLITS,
    STEP,
    STOP_AT,
    STOPPED,
    SUMS,
    TREES,
    USE,
)
from bench_core.serving.program import END, Program
from bench_core.serving.tables import Tables

WAYS = ("end", "gate", "gate", "cap")
Way = Generator[list[int], Any, tuple[Any, ...]]


class Engine:
    """The kernels' arrays of a program with the prices that a row by itself pays."""

    def __init__(self, program: Program, prices: SensorPrices) -> None:
        packed = Packed.of(program)
        self.program, self.prices = program, prices
        self.features = packed.features
        self.ints, self.floats = packed.flat(program.outputs)
        self.tables = Tables(program, prices.sensors_of)
        self.sums_of_bytes = byte_sums(prices.sensor).copy()
        self.needs = np.zeros((len(self.features), words(prices.sensors)), dtype=np.uint64)
        for c, f in enumerate(self.tables.features):
            for s in prices.sensors_of(f).tolist():
                self.needs[c, s // 64] |= np.uint64(1 << (s % 64))
        self.limits = np.array([inf, prices.split, prices.tree])
        self.place = {f: c for c, f in enumerate(self.tables.features)}
        self.plain = not any(s.finish for s in program.steps) and isinstance(program.rejected, str)
        needs, mates = self.tables.needs, self.tables.mates
        self.alike = [  # asked for together, whatever the row
            mates[f] if all(needs[m] == needs[f] for m in mates[f]) else None
            for f in self.tables.features
        ]

    def rows(self, X: Float32Array, cap: float) -> tuple[Any, ...]:
        """Of rows (n, d): scores (n, K), costs (n,), sensors (n, s), the last steps that count (n,)
        and which rows (n,) the cap ended."""
        n, outputs = len(X), self.program.outputs
        sums, places = np.zeros((n, SUMS + 3 * outputs)), np.zeros((n, PLACES), dtype=np.int64)
        bought = np.zeros((n, self.prices.sensors), dtype=bool)
        X = np.ascontiguousarray(X).view()
        X.flags.writeable = False  # one kind of argument: compiled once
        market = self.features, self.needs, self.sums_of_bytes
        kernels.walk_rows(
            self.ints, self.floats, *market, self._limits(cap), X, sums, places, bought
        )
        if cap == inf and self.plain:
            scores = sums[:, SUMS + outputs : SUMS + 2 * outputs]
            step, capped = places[:, LAST_STEP], np.zeros(n, dtype=bool)
        else:
            scores, (step, capped) = self._scores(sums, places), self.ends(places)
        return scores, sums[:, PRICE], bought, step, capped

    def warm_up(self) -> None:
        """Compile all kernels, or load them from numba's cache."""
        self.rows(np.zeros((0, len(self.program.multiplier)), dtype=np.float32), inf)
        _Cells(self, inf).answer()
        next(self.way(inf), None)

    def ends(self, places: IntArray) -> tuple[IntArray, BoolArray]:
        """The last step that counts (n,), and which rows (n,) the cap ended."""
        capped = places[:, STOPPED] == CAPPED
        return np.where(capped, places[:, STOP_AT], places[:, LAST_STEP]), capped

    def _limits(self, cap: float) -> FloatArray:
        return self.limits if cap == inf else np.array([cap, *self.limits[1:]])

    def _scores(self, sums: FloatArray, places: IntArray) -> FloatArray:
        outputs, program = self.program.outputs, self.program
        scores = sums[:, SUMS + outputs : SUMS + 2 * outputs]
        last, capped = self.ends(places)
        scores[capped] = sums[capped, SUMS + 2 * outputs :]
        if not isinstance(program.rejected, str):
            scores[places[:, STOPPED] == REJECTED] = program.rejected
        for step in np.unique(last).tolist():
            here, finish = last == step, program.steps[step].finish
            if step == END:
                scores[here] = np.nan if program.nothing is None else program.nothing
            elif finish is not None:
                scores[here] = finished(finish, scores[here])
        return scores

    def way(self, cap: float) -> Way:
        """One row: yields features to ask for, is sent their values, and returns score (K,), cost,
        the features bought, the last step that counts, and how the way ended."""
        row = _Cells(self, cap)
        state = self.ints, self.floats, row.cells, row.have, row.place, row.sums
        need = kernels.advance(*state)
        while need != DONE and row.place[STOPPED] != CAPPED:
            asked = self.alike[need] if need >= 0 and cap == inf else None
            if asked is None:
                asked = row.open(need)
            if asked:
                row.take(asked, (yield list(asked)))
            if row.place[STOPPED] != CAPPED:
                need = kernels.advance(*state)
        return row.answer()


class _Cells:
    """A row on its way by the kernels, on demand."""

    def __init__(self, engine: Engine, cap: float) -> None:
        count, outputs = len(engine.features), engine.program.outputs
        self.engine, self.bits = engine, 0
        self.cells = np.empty(2 * count + 1, dtype=np.float32)
        self.have = np.zeros(2 * count + 1, dtype=np.uint8)
        self.place, self.sums = np.zeros(PLACES, dtype=np.int64), np.zeros(SUMS + 3 * outputs)
        self.cells[-1], self.have[-1] = -inf, 1
        self.place[USE] = self.place[LAST_STEP] = self.place[STOP_AT] = -1
        self.sums[CAP : CAP + 3] = engine._limits(cap)
        arrays: Any = self.cells, self.have
        self.values, self.there = (memoryview(array) for array in arrays)  # set in 0.05 us
        self.bought: list[int] = []

    def open(self, need: int) -> list[int]:
        """What is to be asked for where a feature, or (READS) all columns of the step, are needed;
        nothing, and the row stops, where that is not within the cap."""
        tables = self.engine.tables
        wanted = tables.steps[self.place[STEP]].reads if need == READS else [tables.features[need]]
        bits, needs = self.bits, tables.needs
        for f in wanted:
            bits |= needs[f]
        before, self.sums[PRICE] = self.sums[PRICE], self._price(bits)
        splits = float(self.sums[SPLITS] + self.sums[NEW_SPLITS])
        bill = self._bill(splits, int(self.place[TREES] + self.place[NEW_TREE]))
        if self.sums[CAP] < inf and not bill <= self.sums[CAP]:
            self.sums[PRICE], self.place[STOPPED] = before, CAPPED
            return []
        mates = {m for f in wanted for m in tables.mates[f]}
        place, there = self.engine.place, self.there
        return sorted(m for m in mates if not there[2 * place[m]] and not needs[m] & ~bits)

    def take(self, features: list[int], values: Sequence[Any]) -> None:
        """Put the values of ``features`` in their places."""
        place, needs = self.engine.place, self.engine.tables.needs
        cells: Any = self.values
        there: Any = self.there
        self.bought += features
        for f, value in zip(features, values, strict=True):
            at = 2 * place[f]
            self.bits |= needs[f]
            missing = value is None or value != value
            cells[at] = -inf if missing else value
            cells[at + 1] = float("nan") if missing else value
            there[at] = there[at + 1] = 1

    def _price(self, bits: int) -> float:
        tables = self.engine.sums_of_bytes
        found = np.frombuffer(bits.to_bytes(8 * len(tables), "little"), dtype=np.uint64).copy()
        return float(kernels.price_of(found, tables))

    def _bill(self, splits: float, trees: int) -> float:
        prices = self.engine.prices
        return float(self.sums[PRICE]) + (prices.split * splits + prices.tree * trees)

    def answer(self) -> tuple[Any, ...]:
        """What ``Engine.way`` returns."""
        self.sums[PRICE] = self._price(self.bits)
        scores = self.engine._scores(self.sums[None], self.place[None])[0]
        bill = self._bill(float(self.sums[SPLITS]), int(self.place[TREES]))
        (step,), _ = self.engine.ends(self.place[None])
        return scores, bill, self.bought, int(step), WAYS[self.place[STOPPED]]
