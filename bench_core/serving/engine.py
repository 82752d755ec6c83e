"""Rows by compiled code, with the bits of the plain walk.

The kernels do not know all programs: what they leave out (support vectors, gates and combines
that need ``exp``, what compares the rows of a query, plugins' cost models) is walked in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import cache, cached_property
from itertools import pairwise
from math import inf
from struct import Struct, error
from typing import Any, Literal, NamedTuple

import numpy as np

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.costs.acquired import words
from bench_core.costs.model import SensorPrices
from bench_core.serving import kernels
from bench_core.serving.answers import Purchases
from bench_core.serving.compiled import Model, Packed, bill_groups, preorder
from bench_core.serving.gates import finished
from bench_core.serving.layout import (
    CAPPED,
    LAST_STEP,
    PLACES,
    PRICE,
    REJECTED,
    SEGMENT,
    STEP,
    STOP_AT,
    STOPPED,
    SUMS,
)
from bench_core.serving.program import END, Program
from bench_core.serving.records import Cells, Row
from bench_core.serving.tables import Tables
from bench_core.serving.walk import checked, narrow

MANY = 32
"""Rows from which 64 at a time (``tiles``) take less time than one after the other."""

WAYS = ("end", "gate", "gate", "cap")
_NOT_TAKEN = np.empty((0, 0), dtype=np.float32)
End = tuple[Any, float, IntArray, int, str]
"""Score, cost, the numbers of the features asked for, the last step that counts, how it ended."""
Way = Generator[list[str], Any, End]


class Parts(dict[int, tuple[Any, ...]]):
    """The first so many of each of some arrays: views that are made once."""

    def __init__(self, *arrays: Any) -> None:
        self._arrays = arrays

    def __missing__(self, count: int) -> tuple[Any, ...]:
        found = self[count] = tuple(array[:count] for array in self._arrays)
        return found


class Room(NamedTuple):
    """Where a row is walked; one row after the other, so that none makes arrays of its own."""

    ways: Any  # ``kernels.ways`` on the arrays below
    row: Row
    start: Any  # kept for ``ways``, which does not
    order: IntArray
    given: Float32Array
    raw: memoryview  # ``given`` as bytes
    parts: Parts  # of what is asked, ``given`` and ``order``
    cap: memoryview[float]  # (1,); quicker to read than an array, as the next two of ``row``
    place: memoryview[int]
    sums: memoryview[float]


class Hand(NamedTuple):
    """Where one row at hand is walked, likewise: without a call of the kernel with all arrays."""

    walk: Any  # ``kernels.at_hand`` on the arrays below
    line: Float32Array  # the row
    row: Row
    parts: tuple[Any, ...]  # what ``Engine.rows`` returns, as views


class Engine:
    """The kernels' arrays of a program with the prices that a row by itself pays; ``names`` are of
    all features."""

    def __init__(self, program: Program, prices: SensorPrices, names: Sequence[str]) -> None:
        packed = Packed.of(program)
        self.program, self.prices, self.packed = program, prices, packed
        self.names = np.array(names, dtype=object)
        self._rooms: list[Room] = []
        self._hands: list[Hand] = []
        self.arrays = packed.flat(Tables(program, prices.sensors_of), prices)
        self.plain = not any(s.finish for s in program.steps) and isinstance(program.rejected, str)
        self._short = self.plain and program.outputs == 1

    def rows(
        self, X: Float32Array, cap: float, taken: Float32Array = _NOT_TAKEN
    ) -> tuple[Any, ...]:
        """Of rows (n, d): scores (n,) or (n, K), costs (n,), sensors (n, s) or ``Purchases``, the
        last steps that count (n,) and which rows (n,) the cap ended.

        Without a cap many rows may be ``taken`` over before."""
        if len(X) == 1 and cap == inf and self.plain:
            return self._one(X)
        n, outputs = len(X), self.program.outputs
        many = n >= MANY and cap == inf
        order: Literal["C", "F"] = "F" if many else "C"
        sums = np.zeros((n, SUMS + 3 * outputs), order=order)
        places = np.zeros((n, PLACES), np.int64, order)
        X = np.ascontiguousarray(X).view()
        X.flags.writeable = False  # one kind of argument: compiled once
        if many:
            payable = self._model.payable
            bits = np.empty((n, words(len(payable))), np.uint64, order)
            self._by_tile(X, taken, bits, places, sums)
            bought: Any = Purchases(bits, payable, self.prices.sensors)
        else:
            flags = np.zeros((n, self.prices.sensors), dtype=np.uint8)
            kernels.walk_rows(*self.arrays, cap, X, flags, places, sums)
            bought = flags.view(bool)
        if cap == inf and self.plain:
            scores = sums[:, SUMS + outputs : SUMS + 2 * outputs]
            step, capped = places[:, LAST_STEP], np.zeros(n, dtype=bool)
        else:
            scores, (step, capped) = self._scores(sums, places), self.ends(places)
        scores = scores[:, 0] if outputs == 1 else scores
        return scores, sums[:, PRICE], bought, step, capped

    def _one(self, X: Float32Array) -> tuple[Any, ...]:
        """As ``rows``, of one row without a cap."""
        try:
            hand = self._hands.pop()
        except IndexError:
            hand = self._hand()
        hand.line[:] = X[0]
        next(hand.walk)
        answer = tuple(part.copy() for part in hand.parts)
        self._hands.append(hand)
        return answer

    def _by_tile(
        self, X: Float32Array, taken: Any, bits: Any, places: IntArray, sums: FloatArray
    ) -> None:
        """As ``kernels.walk_rows`` without a cap, segment by segment."""
        from bench_core.serving.tiles import walk_segment

        number, rows = 0, np.arange(len(X))
        while len(rows):
            last = self.packed.steps[number, SEGMENT]
            here = taken if len(rows) == len(X) else _NOT_TAKEN
            walk_segment(self._model, number, last, X, here, rows, bits, places, sums)
            onward = places[:, STEP]
            waiting = np.flatnonzero(onward >= 0)
            number = int(onward[waiting].min(initial=len(self.packed.steps)))
            rows = waiting[onward[waiting] == number]

    def taken(self, X: Float32Array) -> Float32Array:
        """The cells of rows (n, d) that may be read, column by column for each tile."""
        from bench_core.serving.tiles import TILE, take_over

        X = np.ascontiguousarray(X).view()
        X.flags.writeable = False
        cells = TILE * (len(self.packed.features) + 1)
        found = np.empty((-(-len(X) // TILE), cells), dtype=np.float32)
        take_over(self._model, X, found)
        return found

    @cached_property
    def _model(self) -> Model:
        from bench_core.traversal.trees import squares

        packed, prices = self.packed, self.prices
        sensors = [prices.sensors_of(f) for f in packed.features]
        used = np.concatenate([s.trees for s in self.program.steps]).astype(np.int64)
        needed = np.concatenate([np.zeros(0, np.int64), *sensors]).astype(np.int64)
        payable, place = np.unique(needed, return_inverse=True)
        return Model(
            splits=preorder(self.program, packed.features),
            uses=np.column_stack([used, packed.uses[:, 2:]]),
            weights=packed.weights,
            steps=packed.steps,
            gates=packed.gates,
            columns=packed.columns.astype(np.int64),
            factors=packed.factors.astype(np.float64),
            squares=squares(packed.features, len(self.program.multiplier)),
            features=packed.features,
            start=np.cumsum([0, *map(len, sensors)]),
            sensors=place,
            payable=payable,
            each=np.array(prices.sensor, dtype=np.float64)[payable],
            groups=bill_groups(payable),
            rules=np.array([prices.split, prices.tree], dtype=np.float64),
        )

    def warm_up(self) -> None:
        """Compile all kernels, or load them from numba's cache."""
        self.rows(np.zeros((0, len(self.program.multiplier)), dtype=np.float32), inf)
        _ = self._first
        self._hands.append(self._hand())

    @cached_property
    def _first(self) -> list[str]:
        """What every row without a cap asks for first."""
        room = self._begin(inf)
        return list(self.names[room.order[: next(room.ways)]])

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
        """One row: yields names of features and is sent their values."""
        room, end = self._begin(cap), 0
        for count in room.ways:
            if not count:
                break
            end += count
            self._give(room, end, count, (yield self._names(room, end, count)))
        return self._end(room, end)

    def ask(self, acquire: Callable[[list[str]], Any], cap: float) -> End:
        """As ``way``, where ``acquire`` is called with names and returns values."""
        room, end = self._begin(cap), 0
        for count in room.ways:
            if not count:
                break
            end += count
            self._give(room, end, count, acquire(self._names(room, end, count)))
        return self._end(room, end)

    def fill(self, acquire: Callable[[IntArray, Float32Array], Any], cap: float) -> End:
        """As ``way``, where ``acquire`` is called with numbers of features and room for values."""
        room, end = self._begin(cap), 0
        parts = room.parts
        for count in room.ways:
            if not count:
                break
            end += count
            numbers, values, _ = parts[count]
            acquire(numbers, values)
        return self._end(room, end)

    def _names(self, room: Room, end: int, count: int) -> list[str]:
        """The last ``count`` of ``end`` features asked for, in a list for the caller to keep."""
        if end == count and room.cap[0] == inf:
            return self._first.copy()
        names: list[str] = self.names[room.order[end - count : end]].tolist()
        return names

    def _give(self, room: Room, end: int, count: int, found: Any) -> None:
        """Put what a caller returned for the last ``count`` features where the kernel reads it."""
        if type(found) is np.ndarray and found.shape == (count,) and found.dtype.kind in "fiub":
            room.given[:count] = narrow(found)
            return
        values = found if isinstance(found, list | tuple) else list(found)
        try:
            room.raw[: 4 * count] = _floats(count).pack(*values)
        except error:  # not as many, or None: missing
            checked(self.names[room.order[end - count : end]].tolist(), count, values)
            room.given[:count] = narrow([np.nan if value is None else value for value in values])

    def _begin(self, cap: float) -> Room:
        try:
            room = self._rooms.pop()
        except IndexError:
            room = self._room()
        room.cap[0] = cap
        return room

    def _end(self, room: Room, asked: int) -> End:
        how = room.place[STOPPED]
        if self._short and how != CAPPED:
            value, step = room.sums[SUMS + 1], room.place[LAST_STEP]
        else:
            outputs = self.program.outputs
            sums, place = room.row.sums[None], room.row.place[None]
            (score,), (step,) = self._scores(sums, place), self.ends(place)[0].tolist()
            value = score.copy() if outputs > 1 else score.item()
        answer = value, room.sums[PRICE], room.parts[asked][2].copy(), step, WAYS[how]
        self._rooms.append(room)  # that of a row that was given up is not used again
        return answer

    def _room(self) -> Room:
        count = len(self.packed.features)
        order, numbers = np.empty((2, count), np.int64)
        given, cap = np.empty(count, np.float32), np.empty(1)
        row, state = self._row()
        room = order, numbers, given, cap
        start = np.empty_like(state)
        ways = kernels.ways(*self.arrays, row, state, start, room)
        seen = numbers.view()
        seen.flags.writeable = False  # for the caller
        views: Any = [memoryview(part.data) for part in (cap, row.place, row.sums)]
        raw = memoryview(given.data).cast("B")
        return Room(ways, row, start, order, given, raw, Parts(seen, given, order), *views)

    def _hand(self) -> Hand:
        row, line = self._row()[0], np.empty(len(self.program.multiplier), dtype=np.float32)
        end = SUMS + self.program.outputs
        score, price = row.sums[end : end + self.program.outputs], row.sums[PRICE : PRICE + 1]
        score = score if len(score) == 1 else score[None]
        last = row.place[LAST_STEP : LAST_STEP + 1]
        parts = score, price, row.bought.view(bool)[None], last, np.zeros(1, dtype=bool)
        return Hand(kernels.at_hand(*self.arrays, row, line), line, row, parts)

    def _row(self) -> tuple[Row, Any]:
        """A row, and the bytes of all of it but its values."""
        count, trees = len(self.packed.features), len(self.packed.uses)
        parts = [
            *((SUMS + 3 * self.program.outputs, np.float64), (PLACES, np.int64)),
            *((trees, self.arrays[1].dtype), (count, np.uint32), (count, np.uint32)),
            *((count, np.uint8), (2 * count + 1, np.uint8), (self.prices.sensors, np.uint8)),
        ]
        ends = np.cumsum([0, *(n * np.dtype(kind).itemsize for n, kind in parts)])
        state = np.empty(ends[-1], dtype=np.uint8)
        sums, place, at, asked, left, have, need, bought = (
            state[a:b].view(kind) for (a, b), (_, kind) in zip(pairwise(ends), parts, strict=True)
        )
        values, keys = np.empty(count, np.float32), np.zeros(2 * count + 1, np.uint32)
        return Row(Cells(values, keys, have, need, at), asked, left, bought, place, sums), state


@cache
def _floats(count: int) -> Struct:
    return Struct(f"{count}f")
