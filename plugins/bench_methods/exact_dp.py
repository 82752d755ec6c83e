"""``exact-dp``: the optimal policy of a discrete problem with a known distribution.

Dynamic programming over all states (equations in ``bench_core.optimum``): a state is the set of
purchases and their values, of which each purchase shows one. The operating points are the corners
of optimal mean cost and accuracy, each with the price of cost at which it is optimal. Between two
corners a mixture is optimal. Under a cap the policy is the best one that never exceeds it, computed
for each cap.

If the data set gives its distribution (``Splits.truth``, e.g. ``bayes-net``) no model can be better
on average. This is a reference, not a method, and its models are marked ``knows the distribution``.

Otherwise the distribution is estimated from training rows: the policy is optimal for a coarse
discretisation of few features. These are cut into few bins of equal weight, with one more for
missing values. Each purchase is read by its most informative feature. Purchases with the most
information per price are kept while the states are few. The counts n(x, y) are smoothed towards
naive Bayes,

    p(x, y) = (n(x, y) + m p(y) prod_t p(x_t | y)) / (n + m),

with Laplace's 1 added to its tables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import ClassVar, NamedTuple

import numpy as np
from bench_models.links import plogp, scores_of
from bench_models.states import Stored

from bench_core import (
    KNOWS,
    STOP,
    Examples,
    FitContext,
    Prices,
    Purchases,
    Sequential,
    Task,
    log,
    param,
    provide_learners,
)
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.optimum import Solution, States, by_purchase, shown_by

MOST_POINTS = 100
MOST_STATES = 20_000  # of an estimate
MOST_DIGITS = 12
LEAST = 1e-9  # probability of a class


@dataclass(frozen=True)
class ExactDP:
    """The optimal policy, for data whose true distribution is known."""

    name: ClassVar[str] = "exact-dp"
    numerics: ClassVar[tuple[str, ...]] = ("numpy", "cpu")
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.MULTICLASS})
    code: ClassVar[tuple[str, ...]] = ("bench_core.optimum",)

    values: int = param(3, "bins of a feature, where the distribution is estimated", least=2)
    smoothing: float = param(
        10.0, "rows of naive Bayes added to an estimate", above=0, search=log(1, 100)
    )

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> Sequential:
        """Find the corners; ``valid`` is not used."""
        rows = self.rows(train, prices, context)
        corners = rows.states.corners()
        shown = np.unique(np.linspace(0, len(corners) - 1, MOST_POINTS).round().astype(int))
        context.progress(1, 1)
        return Sequential(ExactPolicy(rows, {"price": [corners[k].price for k in shown]}), prices)

    def rows(self, train: Examples, prices: Prices, context: FitContext) -> DiscreteRows:
        """Rows of the truth if that is a table of single purchases, else of an estimate."""
        truth = context.splits.truth
        rows = known(np.asarray(truth["table"]), prices) if "table" in truth else None
        return rows or estimated(train, prices, context.classes, self.values, self.smoothing)


@dataclass(eq=False)
class ExactPolicy(Stored):
    """The best purchase in every state, by price of cost or under a cap."""

    rows: DiscreteRows
    stops: Mapping[str, Sequence[float]]

    @property
    def marks(self) -> tuple[str, ...]:
        """``knows the distribution`` if it does."""
        return (KNOWS,) if self.rows.told else ()

    def act(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray, stop: float
    ) -> IntArray:
        """Best purchase of each row (n,); under a cap cost has no price."""
        purchases, state = self._purchases, self.rows.state_of(cells, bought)
        cap = (left + purchases.sensors(bought) @ purchases.sensor).round(9)
        chosen = np.full(len(state), -1)
        for limit in np.unique(cap).tolist():
            best = self._solve(stop if limit == np.inf else 0.0, limit).action
            chosen = np.where(cap == limit, best[state], chosen)
        return np.asarray(np.append(self.rows.each, STOP)[chosen])

    def predict(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """Scores of the class in each state."""
        return self.rows.scores(cells, bought)

    @cached_property
    def _purchases(self) -> Purchases:
        return Purchases.of(self.rows.prices)

    @cached_property
    def _solve(self) -> Callable[[float, float], Solution]:
        return lru_cache(MOST_POINTS)(self.rows.states.solve)


@dataclass(eq=False)
class DiscreteRows(Stored):
    """A table of probabilities, and the features that give its values."""

    table: FloatArray  # (v1, .., vt, K)
    each: IntArray  # (t,) the purchase that shows each value, -1: known at the start
    column: IntArray  # (c,) features read
    digit: IntArray  # (c,) the value that each feature is part of
    edges: FloatArray  # (c, e) bin edges, see ``bins``; then NaN
    prices: Prices
    told: bool  # the table is the truth

    @cached_property
    def states(self) -> States:
        """All states of the table."""
        return States.of(self.table, self.each, self.prices)

    def state_of(self, cells: Float32Array, bought: BoolArray) -> IntArray:
        """The number of the state (n,) that each row is in."""
        codes = np.zeros((len(cells), len(self.each)), dtype=np.int64)
        for j, t, edges in zip(self.column, self.digit, self.edges, strict=True):
            own = edges[~np.isnan(edges)]
            codes[:, t] = codes[:, t] * (len(own) + 1) + code_of(cells[:, j], own)
        made = np.append(bought, np.ones((len(cells), 1), dtype=bool), axis=1)[:, self.each]
        return np.asarray(np.where(made, codes + 1, 0) @ self.states.strides)

    def scores(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """The class scores in each row's state."""
        mass = self.states.mass[self.state_of(cells, bought)]
        return scores_of(mass / np.maximum(mass.sum(axis=1, keepdims=True), 1e-300), LEAST)


def known(truth: FloatArray, prices: Prices) -> DiscreteRows | None:
    """Rows of a table (v1, .., vd, K) of features; None if a feature needs several purchases."""
    parts = by_purchase(truth, prices)
    if parts is None:
        return None
    table, each, shown = parts
    column, sizes = np.argsort(shown, kind="stable"), truth.shape[:-1]
    ends = np.arange(max(sizes) - 1) + 0.5
    edges = np.array([np.where(ends < sizes[j] - 1, ends, np.nan) for j in column])
    digit = np.searchsorted(each, shown[column])
    return DiscreteRows(table, each, column, digit, edges, prices, told=True)


def estimated(
    train: Examples, prices: Prices, classes: int, values: int, smoothing: float
) -> DiscreteRows:
    """Rows of a table estimated from training rows; features have at most ``values`` bins."""
    weights, y = train.weights, train.y.astype(np.int64)
    shown, price = shown_by(prices), np.append(Purchases.of(prices).price, 0.0)
    best: dict[int, _Reading] = {}
    for j in np.flatnonzero(shown > -2).tolist():
        edges, each = bins(train.X[:, j], weights, values), int(shown[j])
        codes, counts = code_of(train.X[:, j], edges), np.zeros((len(edges) + 1, classes))
        np.add.at(counts, (codes, y), weights)
        tells = float(_unsure(counts.sum(axis=0)) - _unsure(counts).sum()) / counts.sum()
        if tells > (best[each].tells if each in best else 0):
            best[each] = _Reading(tells, j, edges, codes, counts)
    with np.errstate(divide="ignore"):
        worth = {each: reading.tells / np.float64(price[each]) for each, reading in best.items()}
    kept, states = list[int](), 1
    for each in sorted(best, key=lambda each: (-worth[each], each)):
        radix = len(best[each].counts) + 1
        if len(kept) < MOST_DIGITS and states * radix <= MOST_STATES:
            kept.append(each)
            states *= radix
    kept.sort()
    chosen = [best[each] for each in kept]
    edges = np.full((len(kept), values), np.nan)
    for own, reading in zip(edges, chosen, strict=True):
        own[: len(reading.edges)] = reading.edges
    prior = np.bincount(y, weights, classes) + 1
    naive = prior / prior.sum()
    for reading in chosen:
        naive = naive[..., None, :] * ((reading.counts + 1) / (reading.counts + 1).sum(axis=0))
    table = np.zeros(naive.shape)
    np.add.at(table, (*(reading.codes for reading in chosen), y), weights)
    table += smoothing * naive
    column = np.array([reading.column for reading in chosen], dtype=np.int64)
    purchase, digit = np.array(kept, dtype=np.int64), np.arange(len(kept))
    return DiscreteRows(table / table.sum(), purchase, column, digit, edges, prices, told=False)


def _unsure(mass: FloatArray) -> FloatArray:
    """Entropy (..) of the classes with these masses (.., K) in nats, times their sum."""
    return np.asarray(plogp(mass.sum(axis=-1)) - plogp(mass).sum(axis=-1))


class _Reading(NamedTuple):
    """Bins of one feature and their counts."""

    tells: float
    column: int
    edges: FloatArray  # (e,)
    codes: IntArray  # (n,) of training rows
    counts: FloatArray  # (v, K)


def code_of(x: Float32Array, edges: FloatArray) -> IntArray:
    """The bin (n,) of each cell; a missing cell has the last bin if that is a value, else the
    first."""
    nothing = np.nan if np.inf in edges else -np.inf
    return np.searchsorted(edges, np.where(np.isnan(x), nothing, x.astype(np.float64)))


def bins(x: Float32Array, weights: FloatArray, most: int) -> FloatArray:
    """The edges of at most ``most`` bins of cells (n,): between values where these are few, else at
    weighted quantiles. Infinity follows where cells are missing, which form the last bin."""
    there = ~np.isnan(x)
    value, place = np.unique(x[there].astype(np.float64), return_inverse=True)
    ends = (value[1:] + value[:-1]) / 2
    if len(value) > most:
        share = np.cumsum(np.bincount(place, weights[there]))
        cut = np.searchsorted(share / share[-1], np.arange(1, most) / most)
        ends = ends[np.unique(np.minimum(cut, len(ends) - 1))]
    return np.asarray(ends if there.all() else np.append(ends, np.inf))


bench_learners = provide_learners(ExactDP, family="policies")
