"""Rows as the states of a discrete problem (``bench_core.optimum``): each purchase shows one of few
values.

The distribution is the data set's own (``Splits.truth``) where it tells it. Elsewhere it is
estimated from training rows: features are cut into few bins of equal weight, a missing value being
one more, each purchase is read by its most informative feature, and those purchases are kept that
tell most per price while the states are few. The counts n(x, y) are smoothed towards naive Bayes,

    p(x, y) = (n(x, y) + m p(y) prod_t p(x_t | y)) / (n + m),

whose own tables have Laplace's 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bench_core import Examples, Prices, Purchases
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.optimum import States, by_purchase, shown_by
from bench_models.states import Stored

MOST_STATES = 20_000  # of an estimate
MOST_DIGITS = 12
LEAST = 1e-9  # probability of a class


@dataclass(eq=False)
class DiscreteRows(Stored):
    """A table of probabilities, and how cells are read as its values."""

    table: FloatArray  # (v1, .., vt, K)
    each: IntArray  # (t,) the purchase that shows each value, -1: known from the start
    column: IntArray  # (c,) features that are read
    digit: IntArray  # (c,) the value that each is part of
    edges: FloatArray  # (c, e) its bins: their upper ends, then infinity
    gaps: BoolArray  # (c,) whether a missing cell is a value of its own
    prices: Prices
    told: bool  # the table is the truth

    @property
    def classes(self) -> int:
        """Number of classes."""
        return int(self.table.shape[-1])

    @cached_property
    def states(self) -> States:
        """All states of the table."""
        return States.of(self.table, Purchases.of(self.prices), self.each)

    def codes(self, X: Float32Array) -> IntArray:
        """The values (n, t) that rows show where all is bought."""
        codes = np.zeros((len(X), len(self.each)), dtype=np.int64)
        for j, t, edges, gap in zip(self.column, self.digit, self.edges, self.gaps, strict=True):
            own = edges[edges < np.inf]
            codes[:, t] = codes[:, t] * (len(own) + 1 + gap) + code_of(X[:, j], own, gap)
        return codes

    def state_of(self, cells: Float32Array, bought: BoolArray) -> IntArray:
        """The number of the state (n,) that each row is in."""
        made = np.ones((len(cells), len(self.each)), dtype=bool)
        made[:, self.each >= 0] = bought[:, self.each[self.each >= 0]]
        return np.asarray(np.where(made, self.codes(cells) + 1, 0) @ self.states.strides)

    def mask_of(self, state: IntArray) -> IntArray:
        """The purchases made (n,) in these states, as bits."""
        digits = state[:, None] // self.states.strides % self.states.radix
        return np.asarray((digits > 0) @ (1 << np.arange(len(self.each))))

    def posterior(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """The probabilities (n, K) of the classes."""
        return _shares(self.states.mass[self.state_of(cells, bought)])

    def gain(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """What each purchase (n, k) is expected to tell about the class, in nats."""
        states, state = self.states, self.state_of(cells, bought)
        gain, own = np.zeros(bought.shape), np.maximum(states.mass[state].sum(axis=1), 1e-300)
        for t, (each, stride) in enumerate(zip(self.each, states.strides, strict=True)):
            if each >= 0:
                ask = ~bought[:, each]
                after = sum(
                    self._unsure[state[ask] + v * stride] for v in range(1, states.radix[t])
                )
                gain[ask, each] = (self._unsure[state[ask]] - after) / own[ask]
        return gain

    @cached_property
    def _unsure(self) -> FloatArray:
        """The entropy of the class in each state, times its probability."""
        p = _shares(self.states.mass)
        entropy = -(p * np.log(np.where(p > 0, p, 1))).sum(axis=1)
        return np.asarray(self.states.mass.sum(axis=1) * entropy)


def _shares(mass: FloatArray) -> FloatArray:
    """Each row (n, K) as a part of its sum."""
    return np.asarray(mass / np.maximum(mass.sum(axis=1, keepdims=True), 1e-300))


def scores_of(p: FloatArray) -> FloatArray:
    """Probabilities (n, K) as scores: log-odds (n,) of two classes, else logarithms (n, K)."""
    log = np.log(np.maximum(p, LEAST))
    return np.asarray(log if log.shape[1] > 2 else log[:, 1] - log[:, 0])


def known(truth: FloatArray, prices: Prices) -> DiscreteRows | None:
    """Rows of a table (v1, .., vd, K) of features; None where one needs several purchases."""
    shown = shown_by(Purchases.of(prices), prices)
    if (shown == -2).any():
        return None
    table, each = by_purchase(np.asarray(truth), shown)
    column, sizes = np.argsort(shown, kind="stable"), truth.shape[:-1]
    ends = np.arange(max(sizes) - 1) + 0.5
    edges = np.array([np.where(ends < sizes[j] - 1, ends, np.inf) for j in column])
    digit = np.searchsorted(each, shown[column])
    gaps = np.zeros(len(column), dtype=bool)
    return DiscreteRows(table, each, column, digit, edges, gaps, prices, told=True)


def estimated(
    train: Examples, prices: Prices, classes: int, values: int, smoothing: float
) -> DiscreteRows:
    """Rows of the table that training rows give; features have at most ``values`` bins."""
    purchases, weights, y = Purchases.of(prices), train.weights, train.y.astype(np.int64)
    shown, price = shown_by(purchases, prices), np.append(purchases.price, 0.0)
    best: dict[int, _Reading] = {}
    for j in np.flatnonzero(shown > -2).tolist():
        edges, gap = bins(train.X[:, j], weights, values), bool(np.isnan(train.X[:, j]).any())
        codes, size = code_of(train.X[:, j], edges, gap), len(edges) + 1 + gap
        counts: FloatArray = np.zeros(size * classes)
        counts += np.bincount(codes * classes + y, weights, size * classes)
        counts = counts.reshape(size, classes)
        one = _Reading(_information(counts), j, edges, gap, codes, counts)
        if one.tells > 0 and (shown[j] not in best or one.tells > best[shown[j]].tells):
            best[int(shown[j])] = one
    with np.errstate(divide="ignore"):
        worth = {each: one.tells / np.float64(price[each]) for each, one in best.items()}
    kept, states = list[int](), 1
    for each in sorted(best, key=lambda each: (-worth[each], each)):
        radix = len(best[each].counts) + 1
        if len(kept) < MOST_DIGITS and states * radix <= MOST_STATES:
            kept.append(each)
            states *= radix
    kept.sort()
    chosen = [best[each] for each in kept]
    edges = np.full((len(kept), values - 1), np.inf)
    for own, one in zip(edges, chosen, strict=True):
        own[: len(one.edges)] = one.edges
    prior = np.bincount(y, weights, classes) + 1
    naive = prior / prior.sum()
    for one in chosen:
        naive = naive[..., None, :] * ((one.counts + 1) / (one.counts + 1).sum(axis=0))
    place = np.ravel_multi_index([*(one.codes for one in chosen), y], naive.shape)
    table = np.bincount(place, weights, naive.size).reshape(naive.shape) + smoothing * naive
    return DiscreteRows(
        table / table.sum(),
        np.array(kept, dtype=np.int64),
        np.array([one.column for one in chosen], dtype=np.int64),
        np.arange(len(kept)),
        edges,
        np.array([one.gap for one in chosen], dtype=bool),
        prices,
        told=False,
    )


class _Reading(NamedTuple):
    """How one feature is read."""

    tells: float
    column: int
    edges: FloatArray  # (e,)
    gap: bool
    codes: IntArray  # (n,) of training rows
    counts: FloatArray  # (v, K)


def code_of(x: Float32Array, edges: FloatArray, gap: bool) -> IntArray:
    """The bin (n,) of each cell; a missing one has the last if it is a value, else the first."""
    code = np.searchsorted(edges, x.astype(np.float64))
    return np.where(np.isnan(x), len(edges) + 1 if gap else 0, code)


def bins(x: Float32Array, weights: FloatArray, most: int) -> FloatArray:
    """The ends between at most so many bins of cells (n,): between values where these are few,
    else at weighted quantiles."""
    there = ~np.isnan(x)
    value, place = np.unique(x[there].astype(np.float64), return_inverse=True)
    if len(value) <= 1:
        return np.zeros(0)
    between = (value[1:] + value[:-1]) / 2
    if len(value) <= most:
        return between
    share = np.cumsum(np.bincount(place, weights[there]))
    cut = np.searchsorted(share / share[-1], np.arange(1, most) / most)
    return np.asarray(between[np.unique(np.minimum(cut, len(between) - 1))])


def _information(counts: FloatArray) -> float:
    """What a value tells of the class, in nats."""
    p = counts / counts.sum()
    alone = p.sum(axis=1, keepdims=True) * p.sum(axis=0)
    return float((p * np.log(np.where(p > 0, p, 1) / np.where(p > 0, alone, 1))).sum())
