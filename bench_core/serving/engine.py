"""Rows by compiled code, with the bits of the plain walk.

The kernels do not know all programs: what they leave out (support vectors, gates and combines
that need ``exp``, what compares the rows of a query, plugins' cost models) is walked in Python.
"""

from __future__ import annotations

from array import array
from collections.abc import Generator, Sequence
from math import inf, nan
from typing import Any

import numpy as np

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.costs.model import SensorPrices
from bench_core.serving import kernels
from bench_core.serving.compiled import Packed
from bench_core.serving.gates import finished
from bench_core.serving.kernels import (
    CAPPED,
    LAST_STEP,
    PLACES,
    PRICE,
    REJECTED,
    STOP_AT,
    STOPPED,
    SUMS,
)
from bench_core.serving.program import END, Program
from bench_core.serving.tables import Tables

WAYS = ("end", "gate", "gate", "cap")
Way = Generator[IntArray, Any, tuple[Any, ...]]


class Engine:
    """The kernels' arrays of a program with the prices that a row by itself pays."""

    def __init__(self, program: Program, prices: SensorPrices) -> None:
        packed = Packed.of(program)
        self.program, self.prices, self.features = program, prices, packed.features
        self.arrays = packed.flat(Tables(program, prices.sensors_of), prices)
        self.plain = not any(s.finish for s in program.steps) and isinstance(program.rejected, str)

    def rows(self, X: Float32Array, cap: float) -> tuple[Any, ...]:
        """Of rows (n, d): scores (n, K), costs (n,), sensors (n, s), the last steps that count (n,)
        and which rows (n,) the cap ended."""
        n, outputs = len(X), self.program.outputs
        sums, places = np.zeros((n, SUMS + 3 * outputs)), np.zeros((n, PLACES), dtype=np.int64)
        bought = np.zeros((n, self.prices.sensors), dtype=np.uint8)
        X = np.ascontiguousarray(X).view()
        X.flags.writeable = False  # one kind of argument: compiled once
        kernels.walk_rows(*self.arrays, cap, X, bought, places, sums)
        if cap == inf and self.plain:
            scores = sums[:, SUMS + outputs : SUMS + 2 * outputs]
            step, capped = places[:, LAST_STEP], np.zeros(n, dtype=bool)
        else:
            scores, (step, capped) = self._scores(sums, places), self.ends(places)
        return scores, sums[:, PRICE], bought.view(bool), step, capped

    def warm_up(self) -> None:
        """Compile all kernels, or load them from numba's cache."""
        self.rows(np.zeros((0, len(self.program.multiplier)), dtype=np.float32), inf)
        next(self.way(inf), None)

    def ends(self, places: IntArray) -> tuple[IntArray, BoolArray]:
        """The last step that counts (n,), and which rows (n,) the cap ended."""
        capped = places[:, STOPPED] == CAPPED
        return np.where(capped, places[:, STOP_AT], places[:, LAST_STEP]), capped

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
        count, outputs = len(self.features), self.program.outputs
        asked, given = np.empty(count, dtype=np.int64), np.empty(count)
        sums, place = np.zeros(SUMS + 3 * outputs), np.zeros(PLACES, dtype=np.int64)
        room = memoryview(given.data)
        bought = [asked[:0]]
        row = asked, given, np.zeros(self.prices.sensors, dtype=np.uint8), place, sums
        for found in kernels.way(*self.arrays, cap, row):
            features = self.features[asked[:found]]
            bought.append(features)
            room[:found] = _floats((yield features))
        end = int(place[STOPPED])
        if self.plain and end != CAPPED:
            score, step = sums[SUMS + outputs : SUMS + 2 * outputs], place[LAST_STEP]
        else:
            (score,) = self._scores(sums[None], place[None])
            (step,), _ = self.ends(place[None])
        return score, float(sums[PRICE]), np.concatenate(bought), int(step), WAYS[end]


def _floats(values: Sequence[Any]) -> Any:
    try:
        return array("d", values)
    except TypeError:  # None: missing
        return array("d", [nan if value is None else value for value in values])
