"""Plans on neighbours: the set of purchases to make, and the first one."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from bench_models.masked_predictor import PredictorPolicy, closed, code_of, masked, visible

from bench_core import STOP, Evaluated, Prices
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_methods.aaco.latent_bayes import standardised

FIRST_ROWS = 1000  # training rows for planning the first purchase
POOL, POOL_ROWS = 400, 300  # random sets of the pool; rows with their own best sets in it
WIDE = 100  # candidate purchases in a step of a row's own best set
BLOCK = 1 << 16  # masked rows per prediction
AT_ONCE = 1 << 26  # purchases in sets of training rows whose losses are computed together
QUESTIONS = 3  # of a plan

Question = tuple[IntArray, BoolArray]
"""Training rows (p, c) and sets (p, k), whose mean losses (p,) a plan needs."""
Plan = Generator[Question, FloatArray, tuple[IntArray, FloatArray]]


@dataclass(frozen=True, eq=False)
class NeighbourRows(PredictorPolicy):
    """Training rows that may be neighbours."""

    predictor: Any  # a MaskedPredictor
    prices: Prices
    X: Float32Array  # (r, d)
    y: FloatArray  # (r,)
    z: Float32Array  # (r, d), standardised
    part: IntArray  # (r,), of the predictor

    @cached_property
    def free(self) -> BoolArray:
        """Purchases made at the start (k,)."""
        return np.asarray(closed(self.purchases.price[None] == 0, self.purchases)[0])

    @cached_property
    def every(self) -> FloatArray | None:
        """Losses (r, 2^k) with all sets of purchases, if these are few."""
        found: FloatArray | None = self.predictor.losses_of_all_sets(
            self.X, self.y, self.part, self.prices
        )
        return found

    def losses(self, row: IntArray, bought: BoolArray) -> FloatArray:
        """Loss (p,) of each row (p,) with its purchases (p, k)."""
        if self.every is not None:
            return np.asarray(self.every[row, code_of(bought)])
        losses = np.empty(len(row))
        for start in range(0, len(row), BLOCK):
            those = slice(start, start + BLOCK)
            data = self.X, self.y, self.part, row[those], bought[those], self.prices
            losses[those] = self.predictor.losses_of_sets(*data)
        return losses

    def price_of(self, bought: BoolArray) -> FloatArray:
        """Price (p,) of all purchases made (p, k)."""
        return np.asarray(self.purchases.sensors(bought) @ self.purchases.sensor)


def grown(rows: NeighbourRows, most: int, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """Greedy purchases (r, t) by each row's own loss, and the losses (r, t + 1) before the first
    and after each."""
    r, paid = len(rows.y), np.flatnonzero(~rows.free)
    bought = np.tile(rows.free, (r, 1))
    order = np.zeros((r, min(most, len(paid))), dtype=np.int64)
    losses = np.empty((r, order.shape[1] + 1))
    losses[:, 0] = rows.losses(np.arange(r), bought)
    for step in range(order.shape[1]):
        least = np.full(r, np.inf)
        for purchase in rng.permutation(paid)[:WIDE].tolist():
            open_ = np.flatnonzero(~bought[:, purchase])
            tried = bought[open_]
            tried[:, purchase] = True
            loss = rows.losses(open_, tried)
            better = loss < least[open_]
            least[open_[better]] = loss[better]
            order[open_[better], step] = purchase
        none = np.isinf(least)  # all drawn purchases are made already
        order[none, step] = order[none, max(step - 1, 0)]
        bought[np.arange(r), order[:, step]] = True
        losses[:, step + 1] = np.where(none, losses[:, step], least)
    return order, losses


def pool(
    rows: NeighbourRows, order: IntArray, rng: np.random.Generator
) -> tuple[BoolArray, FloatArray]:
    """Candidate sets (q, k) for the first purchase, and the losses (r', q) of rows with them."""
    bought = np.tile(rows.free, (min(len(order), POOL_ROWS), 1))
    sets = []
    for step in range(order.shape[1]):
        bought[np.arange(len(bought)), order[: len(bought), step]] = True
        sets.append(bought.copy())
    several = np.unique(np.concatenate([bought[:0], *sets]), axis=0)
    several = several[rng.permutation(len(several))[:POOL]]
    masks = np.concatenate(
        [rows.free[None], rows.free | np.eye(len(rows.free), dtype=bool), several]
    )
    masks = np.unique(masks, axis=0)
    count = min(len(rows.y), FIRST_ROWS)
    row = np.arange(count)
    losses = [rows.losses(row, np.tile(mask, (count, 1))) for mask in masks]
    return masks, np.array(losses).T


@dataclass(frozen=True, eq=False)
class Oracle(NeighbourRows):
    """The policy of ``aaco``."""

    centre: FloatArray  # (d,)
    spread: FloatArray  # (d,)
    order: IntArray  # (r, t), each row's own purchases in order
    order_losses: FloatArray  # (r, t + 1), its losses before and after each
    masks: BoolArray  # (q, k), candidate sets for the first purchase
    alone: FloatArray  # (r', q), losses with them
    price: Sequence[float]  # the values of lambda
    neighbours: int
    candidates: int
    seed: int

    @property
    def stops(self) -> Mapping[str, Sequence[float]]:
        """Prices of cost."""
        return {"price": self.price}

    @cached_property
    def each_act(self) -> Evaluated:
        """Evaluation of all candidates for all neighbours."""
        sets = 1 + len(self.purchases) + self.candidates + self.neighbours
        count = sets * min(self.neighbours, len(self.y))
        return Evaluated(*(count * each for each in self.each_answer))

    def act(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray, stop: float
    ) -> IntArray:
        """First purchase of each row's best plan, or ``STOP``, (n,)."""
        return self.plan(cells, bought, left, stop, np.full(len(cells), -1), weigh=False)[0]

    def plan(
        self,
        cells: Float32Array,
        bought: BoolArray,
        left: FloatArray,
        stop: float,
        skip: IntArray,
        weigh: bool = True,
    ) -> tuple[IntArray, FloatArray]:
        """Like ``act``, with the cost of a wrong choice (n,): its mean over stopping and each
        purchase alone, or over those worth a look (``weigh=False``, faster). Training row ``skip``
        (n,) is not a neighbour."""
        chosen, regret = np.full(len(cells), STOP), np.zeros(len(cells))
        blind = ~visible(bought, self.purchases, self.prices).any(axis=1)
        for money in np.unique(left[blind]).tolist():
            same = blind & (left == money)
            if (money, stop) not in self._firsts:
                self._firsts[money, stop] = self._first(money, stop)
            chosen[same], regret[same] = self._firsts[money, stop]
        seen = np.flatnonzero(~blind)
        near = self._nearest(cells[seen], skip[seen], len(self.y))
        state = left[seen, None].view(np.uint8), np.packbits(bought[seen], axis=1)
        _, group = np.unique(np.hstack(state), axis=0, return_inverse=True)
        group = group.reshape(-1)
        order = np.argsort(group, kind="stable")
        sets = len(self.purchases) + self.candidates + self.neighbours  # most of a row
        size = max(1, AT_ONCE // (sets * self.neighbours * len(self.purchases)))
        for start in range(0, len(order), size):
            some = order[start : start + size]
            members = np.split(some, np.flatnonzero(np.diff(group[some])) + 1)
            plans = [
                self._of_equal(bought[seen[row[0]]], near[row], left[seen[row[0]]], stop, weigh)
                for row in members
            ]
            for row, found in zip(members, self._together(plans), strict=True):
                chosen[seen[row]], regret[seen[row]] = found
        return chosen, regret

    def _together(self, plans: Sequence[Plan]) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield the results of plans. The losses that all of them need next are computed
        together."""
        questions = [next(plan) for plan in plans]
        for step in range(QUESTIONS):
            near, sets = map(np.concatenate, zip(*questions, strict=True))
            means = self._means(near, sets)
            ends = np.cumsum([len(rows) for rows, _ in questions])[:-1]
            answers = zip(plans, np.split(means, ends), strict=True)
            if step < QUESTIONS - 1:
                questions = [plan.send(mean) for plan, mean in answers]
        for plan, mean in answers:
            try:
                plan.send(mean)
            except StopIteration as end:
                yield end.value

    def _nearest(self, cells: Float32Array, skip: IntArray, among: int) -> IntArray:
        from bench_methods.aaco.kernels import nearest

        count = min(self.neighbours, among - 1)
        z = standardised(cells, self.centre, self.spread)
        return np.asarray(nearest(self.z[:among], z, skip, count))

    def _of_equal(
        self, past: BoolArray, near: IntArray, left: float, stop: float, weigh: bool
    ) -> Plan:
        """``plan`` of rows with the same purchases ``past`` (k,), ``left`` and ``near`` (g, c)."""
        sets, g = self._shared(past), len(near)
        extra = self.price_of(sets) - self.price_of(past[None])
        stopped = yield near, np.tile(past, (g, 1))
        row, proposal, value = yield from self._proposals(past, near, left, stop, stopped)
        least = stopped.copy()
        least[row] = np.minimum(least[row], value)
        # losses are not negative: sets that cost more than the best plan so far are worse
        wanted = (extra <= left) & (weigh | (stop * extra <= least[:, None]))
        wanted[:, 0] = True
        mean = np.full((g, len(sets)), np.inf)
        which, at = np.nonzero(wanted)
        mean[which, at] = yield near[which], sets[at]
        score = mean + stop * extra
        plan, least = sets[score.argmin(axis=1)], score.min(axis=1)
        better = value < least[row]
        plan[row[better]], least[row[better]] = proposal[better], value[better]
        new = plan & ~past
        single = np.full(new.shape, np.inf)
        ones = np.flatnonzero((sets & ~past).sum(axis=1) == 1)
        single[:, (sets[ones] & ~past).argmax(axis=1)] = mean[:, ones]
        chosen = np.where(new, single, np.inf).argmin(axis=1)
        few = wanted & ((sets & ~past).sum(axis=1) <= 1)
        regret = np.where(few, score - least[:, None], 0.0).sum(axis=1) / few.sum(axis=1)
        return np.where(new.any(axis=1), chosen, STOP), regret

    def _proposals(
        self, past: BoolArray, near: IntArray, left: float, stop: float, most: FloatArray
    ) -> Generator[Question, FloatArray, tuple[IntArray, BoolArray, FloatArray]]:
        """Rows (p,), each once, with the best (p, k) of their neighbours' own best sets after
        ``past``, and its value (p,), for rows where it may be below ``most`` (g,)."""
        some, place = np.unique(near, return_inverse=True)
        sets, cost = self._own_best(past, some, left, stop)
        _, first, kind = np.unique(
            np.packbits(sets, axis=1), axis=0, return_index=True, return_inverse=True
        )
        pair = np.repeat(np.arange(len(near)), near.shape[1]) * len(first)
        row, at = np.divmod(np.unique(pair + kind.reshape(-1)[place.reshape(-1)]), len(first))
        at = first[at]
        more = (sets[at] & ~past).any(axis=1) & (stop * cost[at] <= most[row])
        row, at = row[more], at[more]
        value = yield near[row], sets[at]
        value += stop * cost[at]
        order = np.lexsort((-np.arange(len(row)), value, row))
        order = order[np.diff(row[order], prepend=-1) > 0]  # the best of each row
        return row[order], sets[at[order]], value[order]

    def _shared(self, past: BoolArray) -> BoolArray:
        """Candidates (c, k) after ``past``: itself, one more purchase, random further ones."""
        open_ = np.flatnonzero(~past)
        singles = past | (np.arange(len(past)) == open_[:, None])
        rng = np.random.default_rng([self.seed, 5, *np.packbits(past).tolist()])
        size = rng.integers(1, len(open_) + 1, self.candidates)
        drawn = np.tile(past, (len(size), 1))
        for state, count in zip(drawn, size, strict=True):
            state[rng.permutation(open_)[:count]] = True
        return np.concatenate([past[None], singles, drawn])

    def _own_best(
        self, past: BoolArray, row: IntArray, left: float, stop: float
    ) -> tuple[BoolArray, FloatArray]:
        """Own best sets (m, k) of training rows (m,) after ``past``, and their prices (m,)."""
        paid, every = self.price_of(past[None]), np.arange(len(row))
        bought = np.tile(past, (len(row), 1))
        least, best, extra = np.full(len(row), np.inf), bought.copy(), np.zeros(len(row))
        for step in range(self.order_losses.shape[1]):
            if step:
                bought[every, self.order[row, step - 1]] = True
            price = self.price_of(bought) - paid
            score = self.order_losses[row, step] + stop * price
            better = (score < least) & ((price <= left) | (step == 0))
            least[better], best[better] = score[better], bought[better]
            extra[better] = price[better]
        return best, extra

    def _means(self, near: IntArray, sets: BoolArray) -> FloatArray:
        """Mean losses (p,) of training rows ``near`` (p, c) with sets (p, k)."""
        if self.every is not None:
            return np.asarray(self.every[near, code_of(sets)[:, None]].mean(axis=1))
        packed = np.packbits(sets, axis=1)
        _, first, kind = np.unique(packed, axis=0, return_index=True, return_inverse=True)
        pairs, place = np.unique(near * len(first) + kind.reshape(-1, 1), return_inverse=True)
        row, kind = np.divmod(pairs, len(first))
        return np.asarray(
            self.losses(row, sets[first[kind]])[place.reshape(near.shape)].mean(axis=1)
        )

    @cached_property
    def _firsts(self) -> dict[tuple[float, float], tuple[int, float]]:
        """Results of ``_first``, the same for all blocks of rows."""
        return {}

    def _first(self, left: float, stop: float) -> tuple[int, float]:
        """``plan`` without visible cells.

        After each purchase all rows plan by their neighbours, and are charged their own loss and
        price.
        """
        extra = self.price_of(self.masks) - self.price_of(self.free[None])
        charged = self.alone + stop * extra
        values = {STOP: float(charged[:, (self.masks == self.free).all(axis=1)].mean())}
        for purchase, near in self._near_after.items():
            own = np.flatnonzero(self.masks[:, purchase] & (extra <= left))
            if len(own) == 0:
                continue
            each = charged[:, own]
            planned = each[near].mean(axis=1).argmin(axis=1)
            values[purchase] = float(each[np.arange(len(each)), planned].mean())
        chosen = min(values, key=values.__getitem__)
        return chosen, float(np.mean([*values.values()])) - values[chosen]

    @cached_property
    def _near_after(self) -> dict[int, IntArray]:
        """Neighbours (r', c) of the first rows after each purchase."""
        near, row = {}, np.arange(len(self.alone))
        for purchase in np.flatnonzero(~self.free).tolist():
            bought = np.tile(self.free, (len(row), 1))
            bought[:, purchase] = True
            cells = masked(self.X[row], bought, self.purchases, self.prices)
            near[purchase] = self._nearest(cells, row, len(row))
        return near
