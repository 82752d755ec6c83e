"""Rows that ask for their features: the requests, purchases and bills of compiled walks.

A row walks alone to its end. Under a cap, with support vectors or among the rows of a query, rows
pause after each step, and numpy applies the gate to all of them (``gates``).
"""

from collections.abc import Iterator
from math import nan
from typing import Any, NamedTuple

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.costs.by_row import ByRow, priced_rows
from bench_core.costs.model import CostModel, pays_by_row
from bench_core.data import Queries
from bench_core.serving.explanation import Watch, plain
from bench_core.serving.gates import answers, finished, kernel_sums, leave
from bench_core.serving.program import END, Program
from bench_core.serving.row_state import (
    HOW,
    REJECTED,
    Answer,
    FeatureNeeds,
    Rounds,
    RowPurchases,
    WalkedRows,
    Way,
    bill,
    side_by_side,
)
from bench_core.serving.row_walk import (
    ASKED,
    BILLED,
    BY_STEP,
    CAPPED_BY_STEP,
    ENDED_HOW,
    LAST,
    MODE,
    STEP,
    TREES,
    WHOLE,
    State,
    new_state,
    pack,
    ways,
)


class Room(NamedTuple):
    """Memory for the walk of one row, used by one row after another."""

    row: State
    counts: Iterator[int]  # ``ways``


class RowWalk:
    """A program and the needs of its features. Thread-safe; a copy makes its own memory."""

    def __init__(self, program: Program, needs: FeatureNeeds) -> None:
        self.program, self.needs, self.prices = program, needs, needs.prices
        self.packed = pack(program, needs.costs)
        if needs.prices is not None and not (needs.prices.split or needs.prices.tree):
            uses = self.packed.uses.copy()
            uses[:, BILLED] = 0  # a cap need not be compared before each split
            self.packed = self.packed._replace(uses=uses)
        self.features = program.features
        self.pauses = program.in_queries or any(step.kernel is not None for step in program.steps)
        # sensors whose prices are weighed, their means, and which may be a row's own
        weighed = [step.prices for step in program.steps]
        self._weighed, self._means = (
            np.concatenate([getattr(prices, name) for prices in weighed])
            for name in ("sensor", "mean")
        )
        if isinstance(needs.costs, ByRow):
            self._means = needs.costs.base.sensor[self._weighed]
        self._shown = np.flatnonzero(~np.isin(self._weighed, [*needs.metered]))
        self._free: list[Room] = []
        self.price: FloatArray | None = None  # (d,) of the features if each has its own sensor
        if needs.prices is not None and needs.single is not None:
            self.price = needs.prices.sensor[needs.single]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_free": []}  # compiled generators cannot be copied

    def rounds(
        self,
        count: int,
        queries: Queries | None,
        cap: float | None,
        watch: Watch | None = None,
        costs: CostModel | None = None,
    ) -> Rounds:
        """Walk ``count`` rows, each by itself without ``queries``; in each round all unfinished
        rows make a request. ``watch`` sees a single row after each step. ``costs`` bill these rows.

        Without a cap a row requests all features that the trees of a segment (``segments``) always
        need at once. With a cap it makes one purchase after another.
        """
        costs = self.needs.costs if costs is None else costs
        shared = queries is not None and not pays_by_row(costs)
        if self.pauses or cap is not None or self.prices is None or shared or watch is not None:
            return (yield from self._together(count, queries, cap, watch, costs))
        price_of = _prices_of(costs, count)
        results = yield from side_by_side({i: self._alone(price_of[i]) for i in range(count)})
        return [results[i] for i in range(count)]

    def _alone(self, price_of: FloatArray | None) -> Way:
        """Walk one row to its answer, at its own prices (s,) if there are some."""
        assert self.prices is not None
        room = self._room(WHOLE, price_of)
        row, counts = room
        parts: list[IntArray] = []
        bought = RowPurchases(self.needs, None, price_of)
        while (count := next(counts)) > 0:
            numbers = self.features.take(row.requests[:count])
            if self.price is None:  # features share sensors, or need several
                numbers = np.array(bought.buy(numbers.tolist()), dtype=np.int64)
                row.requests[: len(numbers)] = np.searchsorted(self.features, numbers)
            parts.append(numbers)
            yield numbers, row.replies[: len(numbers)]
            row.place[ASKED] = len(numbers)
        features = np.concatenate([np.zeros(0, np.int64), *parts])
        if self.price is None:
            price = bought.price
        elif price_of is None:
            price = self.price.take(features).sum()
        else:
            price = price_of[self.needs.single][features].sum()
        walked = self.prices.split * row.paths[0] + self.prices.tree * row.place[TREES]
        how, step = int(row.place[ENDED_HOW]), int(row.place[LAST])
        score = self._score(row.scores[1], how, step)
        self._free.append(room)  # the room of an abandoned row is not reused
        return Answer(score, float(price + walked), features, step, HOW[how])

    def _together(
        self,
        count: int,
        queries: Queries | None,
        cap: float | None,
        watch: Watch | None,
        costs: CostModel,
    ) -> Rounds:
        """Walk rows step by step; numpy applies the gates."""
        program, rows = self.program, WalkedRows(self.program, count)
        boundaries = None if queries is None else queries.boundaries
        mode, price_of = BY_STEP if cap is None else CAPPED_BY_STEP, _prices_of(costs, count)
        rooms = [self._room(mode, price_of[i]) for i in range(count)]
        purchases = [RowPurchases(self.needs, cap, price_of[i]) for i in range(count)]
        for number, step in enumerate(program.steps):
            there = np.flatnonzero(rows.next == number).tolist()
            within = yield from side_by_side(
                {i: self._visit(rooms[i], purchases[i]) for i in there}
            )
            for i in there:
                if not within[i]:
                    splits, trees, *_ = rooms[i].row.due.tolist()
                    rows.end_capped(i, splits, trees)
                    if watch is not None:
                        paid = float(self._bill(rows, purchases, queries, costs)[i])
                        watch(number, None, paid, rows.score[i], purchases[i].refused)
            here = np.array([i for i in there if within[i]], dtype=np.int64)
            if len(here) == 0:
                continue
            states = [rooms[i].row for i in here.tolist()]
            sums = np.array([row.scores[0] for row in states])
            if step.kernel is not None:
                sums = kernel_sums(step.kernel, step.bias, self._cells(states))
            splits = np.array([row.paths[0] for row in states])
            trees = np.array([float(row.place[TREES]) for row in states])
            rows.arrive(here, number, step.combine, sums, rows.bits[here], splits, trees)
            leave(program, number, here, rows, boundaries)
            for i, row in zip(here.tolist(), states, strict=True):
                row.place[STEP], row.scores[0] = rows.next[i], rows.sums[i]
                row.paths[0], row.place[TREES] = rows.splits[i], rows.trees[i]
            if watch is not None:
                paid = float(self._bill(rows, purchases, queries, costs)[0])
                score = plain(answers(program, rows, boundaries))
                watch(number, score, paid, rows.score[0].copy(), ())
        scores = answers(program, rows, boundaries)
        spent = self._bill(rows, purchases, queries, costs)
        by_row = scores.tolist() if scores.ndim == 1 else [*scores]
        features = [np.array([*bought.features], dtype=np.int64) for bought in purchases]
        how = [HOW[number] for number in rows.how.tolist()]
        self._free += rooms
        return [*map(Answer, by_row, spent.tolist(), features, rows.final_step.tolist(), how)]

    def _visit(self, room: Room, bought: RowPurchases) -> Way:
        """Walk one row through the trees of a step, and buy the features of its columns. Returns
        False where the cap ends it."""
        row, counts = room
        while (count := next(counts)) > 0:
            wanted = self.features[row.requests[:count]].tolist()
            splits, trees, way_splits, way_trees = row.due.tolist()
            new = bought.buy(wanted, splits + way_splits, trees + way_trees)
            if new is None:
                row.place[STEP] = END
                return False
            row.place[ASKED] = len(new)
            if new:
                numbers = np.array(new, dtype=np.int64)
                row.requests[: len(new)] = np.searchsorted(self.features, numbers)
                yield numbers, row.replies[: len(new)]
        return True

    def _bill(
        self,
        rows: WalkedRows,
        purchases: list[RowPurchases],
        queries: Queries | None,
        costs: CostModel,
    ) -> FloatArray:
        """Return the rows' costs; if each row pays a sum of prices, as compared with a cap."""
        prices = self.prices
        if prices is not None and (queries is None or pays_by_row(costs)):
            price = np.array([bought.price for bought in purchases])
            return price + (prices.split * rows.splits + prices.tree * rows.trees)
        acquired = self.needs.acquired(bought.bits for bought in purchases)
        return bill(costs, acquired, rows.splits, rows.trees, queries)

    def _cells(self, states: list[State]) -> Float32Array:
        """Return the rows' known features (n, d)."""
        cells = np.full((len(states), len(self.program.multiplier)), nan, dtype=np.float32)
        cells[:, self.features] = [np.where(row.have, row.values, nan) for row in states]
        return cells

    def _room(self, mode: int, price_of: FloatArray | None) -> Room:
        """Return memory for a row with its own prices (s,), if it has some."""
        try:
            room = self._free.pop()
        except IndexError:
            row = new_state(self.packed, self.program.outputs)
            room = Room(row, ways(self.packed, row))
        room.row.place[MODE] = mode
        if len(self._means):
            room.row.prices[:] = self._means
            if price_of is not None:
                room.row.prices[self._shown] = price_of[self._weighed[self._shown]]
        return room

    def _score(self, score: FloatArray, how: int, step: int) -> Any:
        answer, finish, rejected = (
            score.copy(),
            self.program.steps[step].finish,
            self.program.rejected,
        )
        if how == REJECTED and not isinstance(rejected, str):
            answer[:] = rejected
        if finish is not None:
            answer = finished(finish, answer[None])[0]
        return float(answer[0]) if self.program.outputs == 1 else answer


def _prices_of(costs: CostModel, count: int) -> Any:
    """Return the prices (s,) of each row, None for those of all rows."""
    by_row = priced_rows(costs)
    return [None] * count if by_row is None else by_row.of_rows
