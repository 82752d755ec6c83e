"""Single rows on demand by compiled code (``row_kernel``), which needs numba.

What the kernel does not know is left to the naive walk: support vectors, gates and combinations
that need ``exp``, gates that compare the rows of a query, and costs that are no sum of prices.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, NamedTuple

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.serving.gates import finished
from bench_core.serving.packed import pack
from bench_core.serving.program import END, Program
from bench_core.serving.row_kernel import (
    ASKED,
    CAP,
    COUNTED_PATHS,
    COUNTED_TREES,
    HOW,
    LAST,
    PATHS,
    PLACES,
    PRICE,
    SPLIT,
    STOP,
    SUMS,
    TREE,
    TREES,
    State,
    ways,
)
from bench_core.serving.rows import CAPPED, REJECTED, Basket, Catalogue


class End(NamedTuple):
    """How a row ended: ``bought`` are numbers of features, in the order asked for."""

    score: Any
    spent: float
    bought: IntArray
    step: int
    how: int


class Room(NamedTuple):
    """Where one row after the other is walked."""

    row: State
    ways: Iterator[int]


def compilable(program: Program) -> bool:
    """Whether the kernel knows all that a row meets on its way."""
    return all(
        s.kernel is None and s.combine != "and" and s.gate in ("always", "score")
        for s in program.steps
    )


class RowWalk:
    """A program and what its features need; may be used by several threads at once."""

    def __init__(self, program: Program, catalogue: Catalogue) -> None:
        assert catalogue.prices is not None
        self.program, self.catalogue, self.prices = program, catalogue, catalogue.prices
        self.packed = pack(program, catalogue.costs)
        self.features = program.features
        self._rooms: list[Room] = []
        single = catalogue.single
        self.price = None if single is None else self.prices.sensor[single]

    def way(self, cap: float | None) -> Generator[IntArray, Float32Array, End]:
        """One row: yields numbers of features and is sent their values."""
        room = self._rooms.pop() if self._rooms else self._room()
        row = room.row
        row.sums[CAP] = np.inf if cap is None else cap
        if cap is None and self.price is not None:
            bought = yield from self._apart(room)
            price = float(self.price[bought].sum())
        else:
            bought, price = yield from self._basket(room, Basket(self.catalogue, cap))
        how = int(row.place[HOW])
        step = int(row.place[STOP if how == CAPPED else LAST])
        walked = self.prices.split * row.sums[PATHS] + self.prices.tree * row.place[TREES]
        score = self._score(row.scores[2 if how == CAPPED else 1], how, step)
        self._rooms.append(room)  # that of a row which was given up is not used again
        return End(score, float(price + walked), bought, step, how)

    def _apart(self, room: Room) -> Generator[IntArray, Float32Array, IntArray]:
        """Each feature has a sensor to itself and there is no cap: what is needed is bought."""
        parts: list[IntArray] = []
        row = room.row
        while (count := next(room.ways)) > 0:
            parts.append(self.features[row.asked[:count]])
            row.given[:count] = yield parts[-1]
            row.place[ASKED] = count
        return np.concatenate([np.zeros(0, np.int64), *parts])

    def _basket(
        self, room: Room, basket: Basket
    ) -> Generator[IntArray, Float32Array, tuple[IntArray, float]]:
        row = room.row
        while (count := next(room.ways)) > 0:
            wanted = self.features[row.asked[:count]].tolist()
            asked = basket.buy(wanted, row.sums[COUNTED_PATHS], row.sums[COUNTED_TREES])
            if asked is None:
                row.place[HOW] = CAPPED
                break
            numbers, count = np.array(asked, dtype=np.int64), len(asked)
            row.asked[:count] = np.searchsorted(self.features, numbers)
            row.given[:count] = yield numbers
            row.place[ASKED], row.sums[PRICE] = count, basket.price
        return np.array(list(basket.features), dtype=np.int64), basket.price

    def _room(self) -> Room:
        count, uses, sums = len(self.features), len(self.packed.uses), np.zeros(SUMS)
        sums[SPLIT], sums[TREE] = self.prices.split, self.prices.tree
        row = State(
            values=np.empty(count, np.float32),
            keys=np.zeros(2 * count + 1, np.int32),
            have=np.empty(count, np.uint8),
            need=np.empty(count + 1, np.uint8),
            asked=np.empty(count + 1, np.int32),
            given=np.empty(count, np.float32),
            at=np.empty(uses, np.int32),
            place=np.empty(PLACES, np.int64),
            sums=sums,
            scores=np.empty((3, self.program.outputs)),
        )
        return Room(row, ways(self.packed, row))

    def _score(self, score: FloatArray, how: int, step: int) -> Any:
        program = self.program
        if step == END:
            found = np.full(program.outputs, np.nan) if program.nothing is None else program.nothing
        else:
            found, finish = score.copy(), program.steps[step].finish
            if how == REJECTED and not isinstance(program.rejected, str):
                found = np.full(program.outputs, float(program.rejected))
            if finish is not None:
                found = finished(finish, found[None])[0]
        return float(found[0]) if program.outputs == 1 else found
