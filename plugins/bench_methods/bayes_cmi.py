"""Purchases by expected information about the class per price, under naive Bayes or trees.

C. Ma, S. Tschiatschek, K. Palla, J. M. Hernandez-Lobato, S. Nowozin, C. Zhang, "EDDI: Efficient
dynamic discovery of high-value information with partial VAE", ICML 2019, buy the feature of the
highest expected information. Here the class is the only latent variable, so this information is a
sum and needs no samples. With x_m the bought features and c_j the marginal price, a row buys

    argmax_j  I(y; x_j | x_m) / c_j,   I = sum_{y,b} p(y, b | x_m) log( p(b | y, x_m) / p(b | x_m) )

and stops once this is at most t H(y) / (price of everything). The operating point t is the price of
everything in units of the class entropy. Numbers are divided into ``bins`` of equal frequency, plus
one for missing cells. Probabilities are estimated from counts plus one.

    p(x | y) = prod_j p(x_j | y)                naive
    p(x | y) = prod_j p(x_j | x_parent(j), y)   tree, the same for all classes, that maximises
                                                sum_j I(x_j; x_parent(j) | y)

K. Chai, L. Deng, Q. Yang, C. Ling, "Test-cost sensitive naive Bayes classification", ICDM 2004, use
the first with misclassification costs [M]. The second is from N. Friedman, D. Geiger,
M. Goldszmidt, Machine Learning 29 (1997), after C. Chow, C. Liu, IEEE Transactions on Information
Theory 14 (1968) [M]. [M] marks formulas restated from memory.

Equations
    I                bench_methods.bayes_cmi.DependenceForest.gain
    p(x | y)         bench_methods.bayes_cmi.DependenceForest.evidence
    combinations     bench_methods.bayes_cmi.Variables.of_rows
    shares           bench_methods.bayes_cmi.DependenceForest.of
    tree             bench_methods.bayes_cmi.chow_liu
    purchases, stop  bench_methods.bayes_cmi.MostInformation.act
    T                bench_methods.bayes_cmi.temperature_of

Departures
- EDDI's latent variable is continuous, its posterior is a network and its information is estimated
  from samples. It stops by a limit on the information per price, here in the unit above.
- The columns of one purchase form one variable, with the combinations of their bins as values. So
  nothing is assumed about columns that are bought together. Above 128 combinations, those with
  similar class probabilities are merged; this only lowers the information. A column that needs
  several purchases is not used. A purchase is not credited with columns of another one that it
  includes.
- Tree branches with a gain below the penalty of the Bayesian information criterion are left out.
  Probabilities given another variable are shrunk to those given only the class, by 5 rows.
- One temperature T calibrates: the posterior is proportional to p(y) p(x_m | y)^(1/T). T is fitted
  to the log-loss of validation rows with 1, 2, 4, ... and all purchases, in the order of initial
  information per price. ``temperature`` sets it.
- Under a cap the choice is among affordable purchases.
- Evaluating the posterior is not charged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from bench_models.boosting import binned
from bench_models.links import log_loss, plogp, softmax
from bench_models.policies import PricedPolicy
from bench_models.states import Stored
from bench_models.tradeoff import entropy

from bench_core import (
    Examples,
    FitContext,
    Prices,
    Purchases,
    Sequential,
    Task,
    among,
    log,
    param,
    provide_learners,
)
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray

MOST_IN_TREE = 128
"""Maximum variables for a tree if ``dependence`` is "auto"."""

MOST_VALUES = 128
"""Maximum combinations of bins of several columns before similar ones are merged."""

PRIOR_ROWS = 5.0
"""Rows of shrinkage to probabilities given only the class."""

SPAN = 1e-5
"""Price of information at the last operating point, as a share of the first one's."""

HOTTEST = 1e3  # largest T; the smallest is one over it

ROWS = 1000  # rows per block

NOTHING = 1e-9
"""Rounding error in nats."""


@dataclass(frozen=True, kw_only=True)
class BayesCMI:
    """A policy that buys by information about the class per price, estimated from counts."""

    name: ClassVar[str] = "bayes-cmi"
    numerics: ClassVar[tuple[str, ...]] = ("numpy", "scipy", "cpu")
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.MULTICLASS})

    bins: int = param(8, "most bins of a number", least=2, most=64, search=log(4, 32))
    dependence: Literal["auto", "naive", "tree"] = param(
        "auto",
        "dependence of variables besides the class: none, or on one other each; auto: tree up "
        "to 128 variables",
        search=among("naive", "tree"),
    )
    temperature: float | None = param(
        None, "T, the divisor of log p(x | y); none: fitted to the validation rows", above=0
    )
    points: int = param(60, "operating points", least=2, most=100)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> Sequential:
        """Count on ``train``; ``valid`` calibrates."""
        variables, codes = Variables.of_rows(train, prices, self.bins, context)
        few = self.dependence == "auto" and len(variables.sizes) <= MOST_IN_TREE
        tree = few or self.dependence == "tree"
        forest = DependenceForest.of(variables, codes, train, tree, context.classes)
        unit = prices.everything / max(entropy(forest.prior), 1e-12)
        policy = MostInformation(forest, prices, {"tradeoff": (1.0,)}, unit)
        free, nothing = policy.purchases.price == 0, np.float32(np.nan)
        first = policy.worth(np.full((1, prices.features), nothing), free[None])[0]
        order = np.argsort(-first.clip(0), kind="stable")
        T = self.temperature or temperature_of(forest, valid, order[~free[order]])
        policy = replace(policy, beliefs=replace(forest, temperature=T))
        # no row buys at the highest price; free cells are known and may differ by row
        costs = np.asarray(prices.needs @ (prices.sensor > 0).astype(np.float64)) > 0
        start = np.where(costs, nothing, valid.X), np.tile(free, (len(valid), 1))
        most = float(policy.worth(*start).max(initial=0.0)) or 1.0
        stops = np.geomspace(most, most * SPAN, self.points).tolist()
        context.progress(1, 1)
        return Sequential(replace(policy, stops={"tradeoff": stops}), prices)


@dataclass(frozen=True, eq=False)
class Variables(Stored):
    """One discrete variable for each purchase, then one for each free column.

    The value of variable ``of[i]`` starts at 0. Column by column, value a and bin b of
    ``column[i]`` give the new value ``values[start[i] + a * bins + b]``.
    """

    bins: Any  # Bins
    sizes: IntArray  # (V,)
    column: IntArray  # (D,)
    of: IntArray  # (D,)
    start: IntArray  # (D,)
    values: IntArray

    @classmethod
    def of_rows(
        cls, train: Examples, prices: Prices, most: int, context: FitContext
    ) -> tuple[Self, IntArray]:
        """The variables of training rows, with at most ``most`` bins, and their values (V, n)."""
        bins, packed = binned(train, most, context)
        column, of = _assigned(prices)
        sizes = np.ones(max(len(Purchases.of(prices)), of.max(initial=-1) + 1), dtype=np.int64)
        now = np.zeros((len(sizes), len(train)), dtype=np.int64)
        parts = [np.zeros(0, np.int64)]
        for j, v in zip(column, of, strict=True):
            each = int(bins.counts[j]) + 1  # the last one for missing cells
            now[v] = now[v] * each + packed[j]
            parts.append(_values(now[v], int(sizes[v]) * each, train, context.classes))
            now[v] = parts[-1][now[v]]
            sizes[v] = parts[-1].max() + 1
        start = np.cumsum([len(part) for part in parts])[:-1]
        return cls(bins, sizes, column, of, start, np.concatenate(parts)), now

    def codes(self, X: Float32Array) -> IntArray:
        """Values (V, n) of rows (n, d); undefined for variables that are not bought."""
        each, bins = self.bins.codes(X, 1), self.bins.counts + 1
        found = np.zeros((len(self.sizes), len(X)), dtype=np.int64)
        for j, v, start in zip(self.column, self.of, self.start, strict=True):
            found[v] = self.values[start + found[v] * bins[j] + each[j]]
        return found


def _assigned(prices: Prices) -> tuple[IntArray, IntArray]:
    """Columns in use, and the variable of each: the smallest purchase that gives it."""
    purchases = Purchases.of(prices)
    sets, start = purchases.sets, purchases.sets[purchases.price == 0].any(axis=0)
    needs = prices.needs @ (~start[:, None] * np.eye(prices.sensors))
    free = needs.sum(axis=1) == 0
    gives = needs @ (~sets).T == 0  # (d, k)
    size = np.where(np.column_stack([gives, free]), np.append(sets.sum(axis=1), -1), np.inf)
    of = size.argmin(axis=1)
    of[free] += np.arange(free.sum())
    column = np.flatnonzero(size.min(axis=1) < np.inf)
    return column, of[column]


def _values(codes: IntArray, size: int, train: Examples, classes: int) -> IntArray:
    """A value (size,) for each combination of bins. Above ``MOST_VALUES``, combinations with the
    same likeliest class and a similar probability of it share one."""
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
class DependenceForest(Stored):
    """Probabilities of classes, and of the variables' values given the class and a parent.

    Belief propagation from the leaves of each tree to its root and back (J. Pearl, Probabilistic
    Reasoning in Intelligent Systems, 1988).
    """

    variables: Variables
    prior: FloatArray  # (K,)
    parent: IntArray  # (V,), -1: depends only on the class
    order: IntArray  # (V,), parents first
    table: FloatArray  # p(b | a, y) at [y, a, b] for each variable, concatenated
    temperature: float = 1.0

    @classmethod
    def of(
        cls, variables: Variables, codes: IntArray, train: Examples, tree: bool, classes: int
    ) -> Self:
        """Estimate from the values (V, n) of training rows."""
        y, mass, size = train.y.astype(np.int64), train.weights, variables.sizes
        parent, order = np.full(len(size), -1), np.arange(len(size))
        if tree and len(size) > 1:
            parent, order = chow_liu(codes, y, mass, size, classes)
        tables = [np.zeros(0)]
        for v, u in enumerate(parent.tolist()):
            width, at = int(size[v]), y * size[v] + codes[v]
            counts = np.bincount(at, mass, classes * width).reshape(classes, 1, width) + 1.0
            table = counts / counts.sum(axis=2, keepdims=True)
            if u >= 0:
                at, shape = (y * size[u] + codes[u]) * width + codes[v], (classes, -1, width)
                both = np.bincount(at, mass, classes * int(size[u]) * width).reshape(shape)
                table = both + PRIOR_ROWS * table
                table /= table.sum(axis=2, keepdims=True)
            tables.append(table.ravel())
        prior = np.bincount(y, mass, classes) + 1.0
        return cls(variables, prior / prior.sum(), parent, order, np.concatenate(tables))

    def scores(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """Log-odds (n,), or log-probabilities of classes up to a constant (n, K)."""
        shares = self._shares(self.evidence(self.variables.codes(cells), self._known(bought))).T
        return shares[:, 1] - shares[:, 0] if shares.shape[1] == 2 else shares

    def gain(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """I(y; x_j | x_m) of each purchase (n, k) in nats."""
        codes, known = self.variables.codes(cells), self._known(bought)
        parts = [self._gain(*part, bought.shape[1]) for part in _parts(codes, known)]
        return np.where(bought, 0.0, np.concatenate(parts, axis=1).T)

    def evidence(self, codes: IntArray, known: BoolArray) -> FloatArray:
        """log p(x_m | y), (K, n), of values (V, n)."""
        return np.concatenate([self._up(*part)[0] for part in _parts(codes, known)], axis=1)

    def _known(self, bought: BoolArray) -> BoolArray:
        known = np.ones((len(self.parent), len(bought)), dtype=bool)
        known[: bought.shape[1]] = bought.T
        return known

    def _shares(self, evidence: FloatArray) -> FloatArray:
        """Log-probabilities of the classes up to a constant."""
        return np.asarray(evidence / self.temperature + np.log(self.prior)[:, None])

    def _up(
        self, codes: IntArray, mask: BoolArray
    ) -> tuple[FloatArray, list[FloatArray], dict[int, FloatArray]]:
        """log p(x_m | y); the upward message at each variable (K or 1, B, n), up to a factor; and
        its message to the parent (K, A, n)."""
        evidence, tells = np.zeros((len(self.prior), codes.shape[1])), dict[int, FloatArray]()
        below = [
            np.where(own, code == np.arange(size)[:, None], 1.0)[None]
            for own, code, size in zip(mask, codes, self.variables.sizes, strict=True)
        ]
        for v in self.order[::-1].tolist():
            u = self.parent[v]
            tells[v] = product = np.einsum("kab,kbn->kan", self._tables[v], below[v])
            if u >= 0:
                product = below[u] * tells[v]
            largest = product.max(axis=1)
            evidence += np.log(largest)
            if u >= 0:
                below[u] = product / largest[:, None]
        return evidence, below, tells

    def _gain(self, codes: IntArray, known: BoolArray, purchases: int) -> FloatArray:
        evidence, below, tells = self._up(codes, known)
        share = softmax(self._shares(evidence).T).T
        belief, gain = dict[int, FloatArray](), np.zeros((purchases, codes.shape[1]))
        for v in self.order.tolist():
            u, table = self.parent[v], self._tables[v]
            if u >= 0:
                both = np.einsum("kab,kan->kbn", table, belief[u] / tells[v]) * below[v]
            else:  # without children: the same in all rows
                both = table[:, 0, :, None] * (below[v] if v in self.parent else 1.0)
            belief[v] = own = both / both.sum(axis=1, keepdims=True)
            if v < purchases:
                sure = (share * plogp(own).sum(axis=1)).sum(axis=0)
                gain[v] = sure - plogp((share[:, None] * own).sum(axis=0)).sum(axis=0)
        return gain.clip(0)

    @cached_property
    def _tables(self) -> list[FloatArray]:
        """p(b | a, y) of each variable, (K, A, B)."""
        size, K = self.variables.sizes, len(self.prior)
        above = np.where(self.parent >= 0, size[self.parent], 1)
        tables = np.split(self.table, np.cumsum(K * above * size))[:-1]
        return [t.reshape(K, a, -1) for t, a in zip(tables, above, strict=True)]


@dataclass(frozen=True, eq=False)
class MostInformation(PricedPolicy):
    """Buys the purchase j of the largest ``unit`` x I(y; x_j | x_m) / c_j above the stop."""

    nested: ClassVar[bool] = True

    beliefs: DependenceForest
    prices: Prices
    stops: Mapping[str, Sequence[float]]
    unit: float = 1.0

    def offer(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """The best purchase (n,), of equal ones the first, the cheapest if none gives information;
        and the largest stop (n,) at which it is still bought."""
        best, worth = self.purchases.most(self.worth(cells, bought), bought, left)
        return best, np.nextafter(worth, -np.inf)

    def predict(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """The posterior, as scores."""
        return self.beliefs.scores(cells, bought)

    def worth(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """Information per price (n, k); -inf for purchases made."""
        gain, price = self.beliefs.gain(cells, bought), self.purchases.marginal(bought)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = (gain * self.unit / price).round(9)
        return np.where(bought, -np.inf, np.where(gain > NOTHING, found, -NOTHING * price))


def _parts(codes: IntArray, known: BoolArray) -> Iterator[tuple[IntArray, BoolArray]]:
    for start in range(0, max(codes.shape[1], 1), ROWS):
        yield codes[:, start : start + ROWS], known[:, start : start + ROWS]


def chow_liu(
    codes: IntArray, y: IntArray, mass: FloatArray, size: IntArray, classes: int
) -> tuple[IntArray, IntArray]:
    """Parents (V,) in the forest of most information given the class, -1 for roots, and its
    variables, parents first. Ties: the first branch."""
    joint = y * size[:, None] + codes  # index of a class and a value
    parent, best = np.full(len(size), -1), np.zeros(len(size))
    order, left = list[int](), list(range(len(size)))
    while left:
        nearest = left.pop(int(np.argmax(best[left])))
        order.append(nearest)
        for v in left:
            place = joint[nearest] * size[v] + codes[v]
            shape = classes, size[nearest], size[v]
            gain = _worth(np.bincount(place, mass, int(np.prod(shape))).reshape(shape))
            if gain > best[v]:
                best[v], parent[v] = gain, nearest
    return parent, np.array(order)


def _worth(both: Any) -> float:
    """I(a; b | y) in nats from counts (K, A, B), minus the BIC penalty of its parameters."""
    a, b, rows = both.sum(axis=2), both.sum(axis=1), float(both.sum())
    counts = (part[part > 0] for part in (a, b, both, a.sum(axis=1)))
    one, other, pair, none = (float((some * np.log(some)).sum()) for some in counts)
    parts = -one - other + pair + none
    left, right = (np.maximum((part > 0).sum(axis=1) - 1, 0) for part in (a, b))
    return float(parts - 0.5 * (left @ right) * np.log(rows)) / rows


def temperature_of(forest: DependenceForest, valid: Examples, order: IntArray) -> float:
    """The T of least log-loss on these rows, with the first 1, 2, 4, ... and all purchases of an
    ``order`` (k,) known."""
    from scipy.optimize import minimize_scalar

    codes = forest.variables.codes(valid.X)
    mass = valid.weights / valid.weights.sum()
    prior, terms = np.log(forest.prior)[:, None], []
    for count in [*(2 ** np.arange((len(order) - 1).bit_length())).tolist(), len(order)]:
        known = np.ones(codes.shape, dtype=bool)
        known[order[count:]] = False
        terms.append(forest.evidence(codes, known))

    def loss(logarithm: float) -> float:
        total = 0.0
        for evidence in terms:
            scores = evidence / np.exp(logarithm) + prior
            total += float(mass @ log_loss(scores.T, valid.y))
        return total

    bounds = -np.log(HOTTEST), np.log(HOTTEST)
    return float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded").x))


bench_learners = provide_learners(BayesCMI, family="policies")
