"""The variables that purchases give, their shares in each class, and the policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from bench_models.boosting import binned
from bench_models.states import Stored
from bench_models.tradeoff import entropy

from bench_core import STOP, Examples, FitContext, Prices, Purchases
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray

MOST_VALUES = 128
"""Combinations of the bins of several columns, after which similar ones are one value."""

_NOTHING = 1e-12
"""Information in nats that is a rounding error."""

PRIOR_ROWS = 5.0
"""Rows by which the shares given another variable's value lean on those given the class alone."""

_HOTTEST = 1e3  # T, and the coolest is one over it


@dataclass(frozen=True, eq=False)
class Variables(Stored):
    """One discrete variable for each purchase, then one for each column that costs nothing.

    The value of variable ``of[i]`` begins as 0; column ``column[i]`` in bin b makes value a of it
    ``values[start[i] + a * bins + b]``, column after column.
    """

    bins: Any  # Bins
    sizes: IntArray  # (V,)
    purchases: int
    column: IntArray  # (D,)
    of: IntArray  # (D,)
    start: IntArray  # (D,)
    values: IntArray

    @classmethod
    def of_rows(cls, train: Examples, prices: Prices, most: int, context: FitContext) -> Self:
        """Of training rows, whose numbers have at most ``most`` bins."""
        bins, packed = binned(train, most, context)
        codes = np.asarray(packed, dtype=np.int64)
        column, of = _assigned(prices)
        purchases = len(Purchases.of(prices))
        sizes = np.ones(max([purchases, *(v + 1 for v in of)]), dtype=np.int64)
        now = np.zeros((len(sizes), len(train)), dtype=np.int64)
        parts: list[IntArray] = []
        for j, v in zip(column, of, strict=True):
            each = int(bins.counts[j]) + 1  # the last one for missing cells
            now[v] = now[v] * each + codes[j]
            parts.append(_values(now[v], int(sizes[v]) * each, train, context.classes))
            now[v] = parts[-1][now[v]]
            sizes[v] = parts[-1].max() + 1
        start = np.cumsum([0, *map(len, parts)])[:-1]
        values = np.concatenate([*parts, np.zeros(0, np.int64)])
        own = np.array(column, np.int64), np.array(of, np.int64)
        return cls(bins, sizes, purchases, *own, start, values)

    def codes(self, X: Float32Array, threads: int = 1) -> IntArray:
        """The values (n, V) of rows (n, d); of those that are not bought they mean nothing."""
        each, bins = self.bins.codes(X, threads), self.bins.counts + 1
        found = np.zeros((len(X), len(self.sizes)), dtype=np.int64)
        first = np.unique(self.of, return_index=True)[1]  # the first columns, all at once
        found[:, self.of[first]] = self.values[self.start[first] + each[self.column[first]].T]
        for i in np.setdiff1d(np.arange(len(self.of)), first).tolist():
            j, v = self.column[i], self.of[i]
            found[:, v] = self.values[self.start[i] + found[:, v] * bins[j] + each[j]]
        return found


def _assigned(prices: Prices) -> tuple[list[int], list[int]]:
    """The columns that are used and the variable of each: of the least purchase that gives it."""
    purchases = Purchases.of(prices)
    start = purchases.sets[purchases.price == 0].any(axis=0)
    column, of, later = [], [], len(purchases)
    by_size = np.argsort(purchases.sets.sum(axis=1), kind="stable").tolist()
    for j in range(prices.features):
        needs = [s for s in prices.sensors_of(j).tolist() if not start[s]]
        giving = [k for k in by_size if purchases.sets[k][needs].all()] if needs else [later]
        if giving:
            column.append(j)
            of.append(giving[0])
            later += not needs
    return column, of


def _values(codes: IntArray, size: int, train: Examples, classes: int) -> IntArray:
    """A value (size,) for each combination of bins: its own, or one that it shares with others
    of the same likeliest class, and nearly the same share of it."""
    if size <= MOST_VALUES:
        return np.arange(size)
    place = codes * classes + train.y.astype(np.int64)
    counts = np.bincount(place, train.weights, size * classes).reshape(size, classes)
    share = (counts + counts.sum(axis=0) / counts.sum()) / (counts.sum(axis=1, keepdims=True) + 1)
    order = np.lexsort((share.max(axis=1), share.argmax(axis=1)))
    rows = counts.sum(axis=1)[order]
    middle = (np.cumsum(rows) - rows / 2) / rows.sum()
    group = np.minimum(middle * MOST_VALUES, MOST_VALUES - 1).astype(np.int64)
    found = np.empty(size, dtype=np.int64)
    found[order] = share.argmax(axis=1)[order] * MOST_VALUES + group
    return np.unique(found, return_inverse=True)[1].reshape(-1)


@dataclass(frozen=True, eq=False)
class Forest(Stored):
    """Shares of each class and of the variables' values, as ``kernels.posterior`` reads them."""

    prior: FloatArray  # (K,)
    parent: IntArray  # (V,), -1: of the class alone
    size: IntArray  # (V,)
    place: IntArray  # (V,)
    start: IntArray  # (V,)
    order: IntArray  # (V,)
    table: FloatArray

    @classmethod
    def of(
        cls, codes: IntArray, train: Examples, size: IntArray, tree: bool, context: FitContext
    ) -> Self:
        """Of the values (n, V) of training rows."""
        y, mass, classes = train.y.astype(np.int64), train.weights, context.classes
        parent, order = np.full(len(size), -1), np.arange(len(size))
        if tree and len(size) > 1:
            parent, order = chow_liu(codes, y, mass, size, classes)
        tables = []
        for v, u in enumerate(parent.tolist()):
            width, at = int(size[v]), y * size[v] + codes[:, v]
            counts = np.bincount(at, mass, classes * width).reshape(classes, 1, width) + 1.0
            table = np.asarray(counts / counts.sum(axis=2, keepdims=True), np.float64)
            if u >= 0:
                at, shape = (y * size[u] + codes[:, u]) * width + codes[:, v], (classes, -1, width)
                both = np.bincount(at, mass, classes * int(size[u]) * width).reshape(shape)
                table = both + PRIOR_ROWS * table
                table /= table.sum(axis=2, keepdims=True)
            tables.append(table.ravel())
        prior = np.asarray(np.bincount(y, mass, classes) + 1.0, np.float64)
        start, place = np.cumsum([0, *map(len, tables)]), np.cumsum([0, *size])
        layout = place[: len(size)], start[: len(size)]
        every = np.concatenate([*tables, np.zeros(0)])
        return cls(prior / prior.sum(), parent, size, *layout, order, every)

    def posterior(
        self, codes: IntArray, known: BoolArray, temperature: float, candidates: int
    ) -> tuple[FloatArray, FloatArray]:
        """log p(x_m | y) / T + log p(y), (n, K), and the information (n, candidates)."""
        from bench_methods.bayes_cmi.kernels import posterior

        evidence = np.zeros((len(codes), len(self.prior)))
        value = np.zeros((len(codes), candidates))
        if len(self.size):
            forest = self.parent, self.size, self.place, self.start, self.order
            out = evidence, value
            posterior(codes, known, forest, self.table, np.log(self.prior), temperature, out)
        return evidence / temperature + np.log(self.prior), value


def chow_liu(
    codes: IntArray, y: IntArray, mass: FloatArray, size: IntArray, classes: int
) -> tuple[IntArray, IntArray]:
    """The parents (V,) of the forest of most information given the class, -1 for roots, and its
    variables, parents first. Of equal branches the first is taken."""
    joint = y[:, None] * size + codes  # of a class and a value
    parent, best = np.full(len(size), -1), np.zeros(len(size))
    order, left = list[int](), list(range(len(size)))
    while left:
        nearest = left.pop(int(np.argmax(best[left])))
        order.append(nearest)
        for v in left:
            place = joint[:, nearest] * size[v] + codes[:, v]
            shape = classes, size[nearest], size[v]
            gain = _worth(np.bincount(place, mass, int(np.prod(shape))).reshape(shape))
            if gain > best[v]:
                best[v], parent[v] = gain, nearest
    return parent, np.array(order)


def _worth(both: Any) -> float:
    """I(a; b | y) in nats from counts (K, A, B), less what BIC takes for its shares."""

    def entropy_of(counts: FloatArray) -> float:
        some = counts[counts > 0]
        return float(-(some * np.log(some)).sum())

    a, b, rows = both.sum(axis=2), both.sum(axis=1), float(both.sum())
    parts = entropy_of(a) + entropy_of(b) - entropy_of(both) - entropy_of(a.sum(axis=1))
    left, right = (np.maximum((part > 0).sum(axis=1) - 1, 0) for part in (a, b))
    return float(parts - 0.5 * (left @ right) * np.log(rows)) / rows


@dataclass(frozen=True, eq=False)
class BayesPolicy(Stored):
    """Buys what tells most about the class per price."""

    nested: ClassVar[bool] = True

    stops: Mapping[str, Sequence[float]]
    variables: Variables
    forest: Forest
    prices: Prices
    temperature: float

    def act(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray, stop: float
    ) -> IntArray:
        """The purchase of most information per price, or ``STOP``."""
        worth = self.worth(cells, bought, left)
        best = worth.argmax(axis=1)
        return np.where(worth[np.arange(len(best)), best] > stop, best, STOP)

    def predict(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """Log-odds (n,), or logarithms of the classes' shares up to a constant (n, K)."""
        scores, _ = self._posterior(cells, bought, 0)
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def worth(
        self,
        cells: Float32Array,
        bought: BoolArray | None = None,
        left: FloatArray | None = None,
    ) -> FloatArray:
        """Information per price (n, k), as shares of both; 0 for what is bought or too dear."""
        if bought is None:
            bought = np.zeros((len(cells), len(self.purchases)), dtype=bool)
            bought[:, self.purchases.price == 0] = True
        _, value = self._posterior(cells, bought, len(self.purchases))
        price = self.purchases.marginal(bought)
        useful = ~bought & (value > _NOTHING)
        if left is not None:
            useful &= price <= left[:, None]
        unit = self.prices.everything / max(entropy(self.forest.prior), _NOTHING)
        with np.errstate(divide="ignore"):
            return np.where(useful, value * unit / np.where(useful, price, 1.0), 0.0)

    def free(self, X: Float32Array) -> Float32Array:
        """The cells (n, d) of rows that have bought nothing yet."""
        paid = self.prices.sensor > 0
        costs = np.asarray(self.prices.needs @ paid.astype(np.float64)) > 0
        return np.where(costs, np.float32(np.nan), X)

    def _posterior(
        self, cells: Float32Array, bought: BoolArray, candidates: int
    ) -> tuple[FloatArray, FloatArray]:
        codes = self.variables.codes(cells)
        known = np.ones(codes.shape, dtype=bool)
        known[:, : self.variables.purchases] = bought
        return self.forest.posterior(codes, known, self.temperature, candidates)

    @cached_property
    def purchases(self) -> Purchases:
        """What can be bought."""
        return Purchases.of(self.prices)


def temperature_of(policy: BayesPolicy, valid: Examples, order: IntArray) -> float:
    """The T of least log-loss of these rows, of which the first 1, 2, 4, ... purchases of an
    ``order`` (k,) are known."""
    from scipy.optimize import minimize_scalar

    codes = policy.variables.codes(valid.X)
    y, mass = valid.y.astype(np.int64), valid.weights / valid.weights.sum()
    prior, found = np.log(policy.forest.prior), []
    for count in [*(2 ** np.arange((len(order) - 1).bit_length())).tolist(), len(order)]:
        known = np.ones(codes.shape, dtype=bool)
        known[:, order[count:]] = False
        found.append(policy.forest.posterior(codes, known, 1.0, 0)[0] - prior)

    def loss(logarithm: float) -> float:
        total = 0.0
        for evidence in found:
            scores = evidence / np.exp(logarithm) + prior
            rows = np.logaddexp.reduce(scores, axis=1) - scores[np.arange(len(y)), y]
            total += float(mass @ rows)
        return total

    bounds = -np.log(_HOTTEST), np.log(_HOTTEST)
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))
