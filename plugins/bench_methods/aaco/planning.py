"""Plans on neighbours: the set of purchases to make, and the first one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
KEPT = 4096  # sets with cached losses


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
            own, made = row[those], bought[those]
            cells = masked(self.X[own], made, self.purchases, self.prices)
            scores = self.predictor.cross_fitted(cells, made, self.part[own])
            losses[those] = self.predictor.loss(scores, self.y[own])
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
        return self.plan(cells, bought, left, stop, np.full(len(cells), -1))[0]

    def plan(
        self,
        cells: Float32Array,
        bought: BoolArray,
        left: FloatArray,
        stop: float,
        skip: IntArray,
    ) -> tuple[IntArray, FloatArray]:
        """Like ``act``, with the cost of a wrong choice (n,): its mean over stopping and each
        purchase alone. Training row ``skip`` (n,) is not a neighbour."""
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
        for number in range(group.max(initial=-1) + 1):
            members = np.flatnonzero(group == number)
            at = seen[members]
            chosen[at], regret[at] = self._of_equal(bought[at[0]], near[members], left[at[0]], stop)
        return chosen, regret

    def _nearest(self, cells: Float32Array, skip: IntArray, among: int) -> IntArray:
        from bench_methods.aaco.kernels import nearest

        count = min(self.neighbours, among - 1)
        z = standardised(cells, self.centre, self.spread)
        return np.asarray(nearest(self.z[:among], z, skip, count))

    def _of_equal(
        self, past: BoolArray, near: IntArray, left: float, stop: float
    ) -> tuple[IntArray, FloatArray]:
        """``plan`` of rows with the same purchases ``past`` (k,), ``left`` and ``near`` (g, c)."""
        sets = self._shared(past)
        extra = self.price_of(sets) - self.price_of(past[None])
        fits = extra <= left
        fits[0] = True
        sets, extra = sets[fits], extra[fits]
        some, place = np.unique(near, return_inverse=True)
        losses = self._recalled(np.tile(some, (len(sets), 1)), sets).T.copy()
        mean = losses[place.reshape(near.shape)].mean(axis=1)  # (g, c)
        score = mean + stop * extra
        best = score.argmin(axis=1)
        plan, least = sets[best], score.min(axis=1)
        best_sets, cost = self._own_best(past, some, left, stop)
        _, first, kind = np.unique(
            np.packbits(best_sets, axis=1), axis=0, return_index=True, return_inverse=True
        )
        # each row's proposals: its neighbours' own best sets, without copies
        pair = np.repeat(np.arange(len(near)), near.shape[1]) * len(first)
        row, at = np.divmod(np.unique(pair + kind.reshape(-1)[place.reshape(-1)]), len(first))
        more = (best_sets[first[at]] & ~past).any(axis=1)
        row, at = row[more], first[at[more]]
        value = self._recalled(near[row], best_sets[at]).mean(axis=1) + stop * cost[at]
        order = np.lexsort((-np.arange(len(row)), value, row))
        order = order[np.diff(row[order], prepend=-1) > 0]  # the best of each row
        order = order[value[order] < least[row[order]]]
        plan[row[order]], least[row[order]] = best_sets[at[order]], value[order]
        new = plan & ~past
        single = np.full(new.shape, np.inf)
        ones = np.flatnonzero((sets & ~past).sum(axis=1) == 1)
        single[:, (sets[ones] & ~past).argmax(axis=1)] = mean[:, ones]
        chosen = np.where(new, single, np.inf).argmin(axis=1)
        few = (sets & ~past).sum(axis=1) <= 1
        regret = (score[:, few] - least[:, None]).sum(axis=1)
        return np.where(new.any(axis=1), chosen, STOP), regret / few.sum()

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

    def _recalled(self, row: IntArray, sets: BoolArray) -> FloatArray:
        """Losses (p, c) of rows (p, c) with sets (p, k), cached, as all prices of cost need the
        same ones."""
        if self.every is not None:
            return np.asarray(self.every[row, code_of(sets)[:, None]])
        losses, (places, table) = np.empty(row.shape), self._kept
        for start in range(0, len(sets), KEPT):
            block, rows = sets[start : start + KEPT], row[start : start + KEPT]
            if len(places) + len(block) > KEPT:
                places.clear()
                table.fill(np.nan)
            codes = map(bytes, np.packbits(block, axis=1))
            place = np.array([places.setdefault(code, len(places)) for code in codes])
            at = (place[:, None] * len(self.y) + rows).ravel()
            new = np.flatnonzero(np.isnan(table[at]))
            new = new[np.unique(at[new], return_index=True)[1]]
            table[at[new]] = self.losses(rows.ravel()[new], block[new // row.shape[1]])
            losses[start : start + KEPT] = table[at].reshape(rows.shape)
        return losses

    @cached_property
    def _kept(self) -> tuple[dict[bytes, int], FloatArray]:
        """Positions of sets, and losses (KEPT * r,) of the training rows; NaN: not computed."""
        return {}, np.full(KEPT * len(self.y), np.nan)

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
