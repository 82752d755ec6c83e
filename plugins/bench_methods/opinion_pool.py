"""A pool of bought opinions: which experts to ask in turn, and what their answers add up to.

A purchase is an expert: a service that classifies, a language model, a second reader. Its answer
is one of its columns: one of few values, its one-hot features, or an eighth of a quantity; the one
that is right most often. An answer speaks for the class that is most frequent with it in training.
Quantities of the purchase, such as a confidence, say how loudly. Let S be the experts that were
asked, a_m the class that expert m speaks for, and u_m the ranks of its quantities among training
rows, in 0..1. The scores of class c are a log-linear opinion pool (C. Genest, J. V. Zidek,
"Combining probability distributions", Statistical Science 1986), with a constant of the class and
weights of the experts that all classes share:

    s_c(x_S) = b_c + sum over m in S of [a_m = c] (w_m0 + w_m . u_m)                          (1)

Each set of at most ``calls`` experts has its own weights, by ridge-penalised maximum likelihood
(Newton's method). Few weights suffice, as they do not depend on the class: trees have to learn
for each letter apart that an answer A stands for the label A.

Let z_S(x) be 1 less the largest probability of a class. At a price of cost lambda, with the
marginal price c_j of expert j, backward induction over the sets, the largest first, gives

    G_j(S, z) = E[ V_{S+j} - 1 + z_S | z_S = z ] = g_1 z + g_2 z^2                            (2)
    V_S = 1 - z_S + max(0, max_j G_j(S, z_S) - lambda c_j)                                    (3)

In a choice among services (``Task.CHOICE``) the texts of column SOURCE_answer are the classes, and
a class is right as far as the sources that answered it score; what they leave is shared by texts
that nobody answered. The row gets the answer of an asked source that speaks for the class of
largest score; z is 1 less its probability, and 1 before the first call. A source without such a
column speaks for itself alone.

A sure answer (z = 0) gains nothing. The coefficients of (2) are least squares over training rows;
two are so few that the largest of several gains is seldom luck (means in 16 intervals of z instead
lose .005 of accuracy on MMLU's answers of nine language models). A row asks the expert of the
largest G_j - lambda c_j while that is positive. Prices that are quoted by row are the row's own.

Departures
- The pool's weights are a set's own, and grow with the ranks of quantities: a sudden step of a
  confidence is learned as a slope.
- Probabilities of training rows in (2) come from weights fitted to the other ``parts``. Validation
  rows are not used.
- Free columns, and columns that need several purchases, are not used. Of more than 9 purchases the
  9 are used that alone are right most often, per price, beyond the most frequent class.
- Under a cap the best affordable expert is asked, at lambda 0; planning ignores the cap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations, pairwise
from typing import ClassVar
from zlib import crc32

import numpy as np
from bench_models.links import softmax
from bench_models.policies import PARTS, PlannedPolicy, Planner

from bench_core import (
    Evaluated,
    Examples,
    FitContext,
    Prices,
    Purchases,
    Sequential,
    Splits,
    Task,
    log,
    param,
    provide_learners,
)
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray

FEW, EIGHTHS = 20, 8
"""A column of more values is a quantity, and answers by its intervals of equal frequency."""
MOST = 9
"""Most purchases that are asked."""
KNOTS = 33
HIGHEST = 30.0
"""Largest price of cost, in gained probability per price of everything; 1 / HIGHEST is the least
above 0."""
LEAST = 1e-9
"""Least gain in probability beyond the price: an expert that changes nothing gains 0 but for
rounding."""
NEVER = 1e6
"""Beyond any score."""
RIDGE = 1e-3
"""Penalty of the coefficients of gains: without answers all rows are equal."""
STEPS, ENOUGH = 25, 1e-10
"""Most steps of Newton's method, and the largest change of a weight at its end."""


@dataclass(frozen=True)
class OpinionPool(Planner):
    """A policy that asks experts and pools their answers."""

    name: ClassVar[str] = "opinion-pool"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.MULTICLASS, Task.CHOICE})
    numerics: ClassVar[tuple[str, ...]] = ("cpu",)

    calls: int = param(3, "most experts that a row asks", least=1, most=4)
    l2: float = param(1.0, "ridge penalty of the weights", above=0, search=log(0.1, 10))
    parts: int = param(10, PARTS, least=2, most=20)
    answer: str = param(
        "answer", "in a choice of services, column SOURCE_answer has the answer that a source gave"
    )

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> Sequential:
        """Fit all sets and go backward over them; ``valid`` is not used."""
        purchases, source = Purchases.of(prices), dict[int, int]()
        if train.y.ndim == 2:
            says, source, K = _sources(context.splits, purchases, prices, self.answer)
            share = _right(train, {k: _voice(train.X, says[k], K) for k in says}, source)
        else:
            K = max(context.classes, 2)
            share = (train.y[:, None] == np.arange(K)).astype(np.float64)
            says = _speakers(train, purchases, prices, K)
        answers, loud = _experts(train, says, share, purchases, prices)
        experts = np.unique(answers[:, 4]).astype(np.int64)
        sizes = range(min(self.calls, len(experts)) + 1)
        groups = chain.from_iterable(combinations(experts, size) for size in sizes)
        sets = np.array([np.isin(experts, group) for group in groups])
        sources = np.array([source[k] for k in experts.tolist() if source], dtype=np.int64)
        count = train.y.shape[1] if source else 0
        fields = prices, experts, answers, *loud, sets, K, sources, count
        pool = Pool(*fields, np.zeros((0, 0)), np.zeros((0, 0, 0, 0)), [])
        design, label = pool.design(train.X), share.argmax(axis=1)
        # in turn by class; copies of a row go to the same part
        row = np.array([crc32(cells.tobytes()) for cells in train.X])
        fold = np.unique(np.stack([label, row]), axis=1, return_inverse=True)[1] % self.parts
        weights = np.zeros((len(sets), design.shape[2]))
        doubt = np.empty((len(sets), len(train)))
        for s in range(len(sets)):
            used = pool.used(s)
            Z = design[:, :, used]
            every = _weights(Z, share, train.weights, self.l2, np.zeros(Z.shape[2]))
            weights[s, used] = every
            p = softmax(Z @ every)
            for k in range(self.parts if s else 0):  # without answers all rows are alike
                fit, held = fold != k, fold == k
                others = _weights(Z[fit], share[fit], train.weights[fit], self.l2, every)
                p[held] = softmax(Z[held] @ others)
            doubt[s] = pool.doubt(p, design, np.broadcast_to(sets[s], (len(train), len(experts))))
            context.progress(s + 1, len(sets))
        quality = 1 - np.average(doubt, axis=1, weights=train.weights)
        price = self.falling(HIGHEST, float(quality.max() - quality[0]), prices)
        by_row = train.prices if train.prices is not None else prices.sensor
        cost = np.broadcast_to(by_row @ purchases.sets[experts].T, (len(train), len(experts)))
        gains = _backward(sets, doubt, cost, price, train.weights)
        return Sequential(Pool(*fields, weights, gains, price.tolist()), prices)


Interval = tuple[int, float, float, int]
"""An answer: the cells of a column above one number up to another, and the class it speaks for."""


def _speakers(
    train: Examples, purchases: Purchases, prices: Prices, K: int
) -> dict[int, list[Interval]]:
    """Return the answers of each purchase: its column that is right most often."""

    def speaks(j: int, low: float, high: float) -> tuple[float, Interval]:
        rows = (train.X[:, j] > low) & (train.X[:, j] <= high)
        share = np.bincount(train.y[rows].astype(np.int64), train.weights[rows], minlength=K)
        return float(share.max()), (j, low, high, int(share.argmax()))

    best: dict[int, list[Interval]] = {}
    for k, features in _yields(purchases, prices).items():
        values = {j: np.unique(train.X[:, j][~np.isnan(train.X[:, j])]) for j in features}
        flags = [j for j in features if {*values[j].tolist()} <= {0.0, 1.0}]
        ways = [[speaks(j, 0.5, np.inf) for j in flags]] if len(flags) > 1 else []
        for j in features:
            if j not in flags or len(flags) == 1:
                cuts = (values[j][1:] + values[j][:-1]) / 2
                if len(cuts) >= FEW:
                    cuts = np.unique(np.quantile(values[j], np.arange(1, EIGHTHS) / EIGHTHS))
                ends = np.concatenate([[-np.inf], cuts, [np.inf]])
                ways.append([speaks(j, *pair) for pair in pairwise(ends.tolist())])
        if ways:
            way = max(ways, key=lambda way: sum(rows for rows, _ in way))
            best[k] = [interval for _, interval in way]
    return best


def _yields(purchases: Purchases, prices: Prices) -> dict[int, list[int]]:
    """Return the features of each purchase that need no other."""
    alone = purchases.made(prices.needs.toarray() > 0)  # (d, k): purchases that a feature needs
    only = alone & (alone.sum(axis=1) == 1)[:, None]
    return {
        int(k): np.flatnonzero(only[:, k]).tolist() for k in np.flatnonzero(purchases.price > 0)
    }


def _sources(
    splits: Splits, purchases: Purchases, prices: Prices, suffix: str
) -> tuple[dict[int, list[Interval]], dict[int, int], int]:
    """Return the answers of each source's call, the source of each call, and the number of classes:
    the texts of all answers, and the sources without texts."""
    says, source, classes = dict[int, list[Interval]](), dict[int, int](), dict[str, int]()
    column = {name: j for j, name in enumerate(splits.names)}
    texts = {e.name: e for e in splits.encodings if e.texts and e.one_hot}
    for m, (name, call) in enumerate(zip(splits.class_names, splits.calls.tolist(), strict=True)):
        voices = [(call, -np.inf, name)]
        if e := texts.get(f"{name}_{suffix}"):
            voices = [(column[f], 0.5, f"={t}") for f, t in zip(e.features, e.texts, strict=True)]
        needs = np.isin(np.arange(prices.sensors), prices.sensors_of(call))
        for k in np.flatnonzero((purchases.sets == needs).all(axis=1)).tolist():
            source[k] = m
            says[k] = [
                (j, low, np.inf, classes.setdefault(word, len(classes))) for j, low, word in voices
            ]
    return says, source, len(classes)


def _voice(cells: Float32Array, intervals: Iterable[Interval], K: int) -> BoolArray:
    """Return True (n, K) at the class that an answer speaks for."""
    voice = np.zeros((len(cells), K), dtype=bool)
    for j, low, high, c in intervals:
        voice[:, c] |= (cells[:, j] > low) & (cells[:, j] <= high)
    return voice


def _right(
    train: Examples, voices: Mapping[int, BoolArray], source: Mapping[int, int]
) -> FloatArray:
    """Return the probability (n, K) that each class is right: the mean score of the sources that
    answered it; what is left is shared by classes that nobody answered."""
    count = sum((v.astype(np.float64) for v in voices.values()), np.zeros(()))
    total = sum((v * train.y[:, [source[k]]] for k, v in voices.items()), np.zeros(()))
    share = total / np.maximum(count, 1)
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1)
    silent = (count == 0) | (count > 0).all(axis=1, keepdims=True)
    rest = (1 - share.sum(axis=1)) / silent.sum(axis=1)
    return np.asarray(share + silent * rest[:, None])


def _experts(
    train: Examples,
    says: Mapping[int, list[Interval]],
    share: FloatArray,
    purchases: Purchases,
    prices: Prices,
) -> tuple[FloatArray, tuple[IntArray, IntArray, FloatArray]]:
    """Return the answers (a, 5): column, interval (low, high], class, number of the purchase; and
    the other columns (f,) of experts: their purchases (f,), and quantiles (f, KNOTS)."""
    usual = (train.weights @ share).max()

    def beyond(k: int) -> float:
        right = train.weights @ (share * _voice(train.X, says[k], share.shape[1])).sum(axis=1)
        return float((usual - right) / max(purchases.price[k], 1e-300))

    best = sorted(sorted(says, key=beyond)[:MOST])
    answers = [(*interval, k) for k in best for interval in says[k]]
    others = [
        (j, k)
        for k, features in _yields(purchases, prices).items()
        for j in (features if k in best else ())
        if len(np.unique(train.X[:, j][~np.isnan(train.X[:, j])])) > FEW
    ]
    knots = [_quantiles(train.X[:, j], train.weights) for j, _ in others]
    column, owner = np.reshape(np.array(others, dtype=np.int64), (-1, 2)).T
    table = np.reshape(np.array(answers, dtype=np.float64), (-1, 5))
    return table, (column, owner, np.reshape(np.array(knots, dtype=np.float64), (-1, KNOTS)))


def _quantiles(values: Float32Array, copies: FloatArray) -> FloatArray:
    """Return KNOTS quantiles of the values (n,) that are not missing."""
    order = np.argsort(values, kind="stable")[: np.count_nonzero(~np.isnan(values))]
    share = np.cumsum(copies[order]) / copies[order].sum()
    place = np.searchsorted(share, np.linspace(0, 1, KNOTS) - 1e-12)
    return values[order[np.minimum(place, len(order) - 1)]].astype(np.float64)


def _weights(
    Z: FloatArray, share: FloatArray, copies: FloatArray, l2: float, start: FloatArray
) -> FloatArray:
    """Minimise the penalised cross-entropy of Z (n, K, w) and shares (n, K) of classes by Newton's
    method.

    The problem is strictly convex. A step that does not lower the loss is halved.
    """
    w, right = start, np.einsum("nk,nkw->nw", share, Z)

    def loss(w: FloatArray) -> float:
        logs = np.log(np.maximum(softmax(Z @ w), 1e-300))
        return float(-copies @ (share * logs).sum(axis=1) + l2 / 2 * w @ w)

    before = loss(w)
    for _ in range(STEPS):
        p = softmax(Z @ w)
        mean = np.einsum("nk,nkw->nw", p, Z)
        gradient = copies @ (mean - right) + l2 * w
        flat, weight = Z.reshape(-1, Z.shape[2]), (p * copies[:, None]).reshape(-1, 1)
        hessian = flat.T @ (flat * weight) - mean.T @ (mean * copies[:, None])
        step = np.linalg.solve(hessian + l2 * np.eye(len(w)), gradient)
        after = loss(w - step)
        while after > before + 1e-9 * abs(before) and np.abs(step).max() > ENOUGH:
            step = step / 2
            after = loss(w - step)
        w, before = w - step, after
        if np.abs(step).max() <= ENOUGH:
            break
    return w


def _powers(doubt: FloatArray) -> FloatArray:
    return np.stack([doubt, doubt**2], axis=-1)


def _backward(
    sets: BoolArray, doubt: FloatArray, cost: FloatArray, price: FloatArray, copies: FloatArray
) -> FloatArray:
    """Return the coefficients (points, sets, 2, E) of eq. 2; -inf where no set follows.

    ``doubt`` (sets, n) is z, ``cost`` (n, E) the experts' prices.
    """
    number = {row.tobytes(): s for s, row in enumerate(sets)}
    E, powers = sets.shape[1], _powers(doubt)  # (sets, n, 2)
    gains = np.full((len(price), len(sets), 2, E), -np.inf)
    steps = []
    for s in reversed(range(len(sets))):
        after = [number.get((sets[s] | (np.arange(E) == j)).tobytes(), s) for j in range(E)]
        following = [j for j in range(E) if after[j] != s]
        weighted = powers[s] * copies[:, None]
        moments = powers[s].T @ weighted + RIDGE * np.eye(2)
        if following:
            steps.append(
                (s, following, [after[j] for j in following], np.linalg.solve(moments, weighted.T))
            )
    for at, of in enumerate(price.tolist()):
        value = 1 - doubt
        for s, following, then, solve in steps:
            gains[at, s][:, following] = solve @ (value[then] - value[s]).T
            net = powers[s] @ gains[at, s][:, following] - of * cost[:, following]
            value[s] += np.maximum(net.max(axis=1), 0)
    return gains


@dataclass(frozen=True, eq=False)
class Pool(PlannedPolicy):
    """Asks the expert of the largest gain minus price, while that is positive."""

    reads_prices: ClassVar[bool] = True
    each_act: ClassVar[Evaluated] = Evaluated()
    each_answer: ClassVar[Evaluated] = Evaluated()

    prices: Prices
    experts: IntArray  # (E,) numbers of their purchases
    answers: FloatArray  # (a, 5) column, low, high, class, number of the purchase
    column: IntArray  # (f,) other columns of experts
    owner: IntArray  # (f,) numbers of their purchases
    knots: FloatArray  # (f, KNOTS) their quantiles
    sets: BoolArray  # (sets, E)
    classes: int
    source: IntArray  # (E,) numbers of their sources in a choice, else (0,)
    sources: int  # of a choice, else 0
    weights: FloatArray  # (sets, E + f + K)
    gains: FloatArray  # (points, sets, 2, E)
    price: Sequence[float]  # of cost, falling

    @cached_property
    def _speaks(self) -> FloatArray:
        """1 (a, K * E) at the class and the expert of each answer."""
        says, expert = self.answers[:, 3].astype(np.int64), self.answers[:, 4]
        speaks = np.zeros((len(says), self.classes, len(self.experts)))
        speaks[np.arange(len(says)), says, np.searchsorted(self.experts, expert)] = 1.0
        return speaks.reshape(len(says), -1)

    def used(self, s: int) -> BoolArray:
        """The weights (w,) of a set."""
        of = np.concatenate([self.experts, self.owner])
        return np.append(np.isin(of, self.experts[self.sets[s]]), np.ones(self.classes, dtype=bool))

    def design(self, cells: Float32Array) -> FloatArray:
        """The factors (n, K, w) of the weights in eq. 1; 0 where no answer came."""
        n, E, f = len(cells), len(self.experts), len(self.column)
        Z = np.zeros((n, self.classes, E + f + self.classes))
        column, low, high = self.answers[:, 0].astype(np.int64), *self.answers[:, 1:3].T
        given = (cells[:, column] > low) & (cells[:, column] <= high)
        Z[:, :, :E] = (given @ self._speaks).reshape(n, self.classes, E)
        levels, experts = np.linspace(0, 1, KNOTS), np.searchsorted(self.experts, self.owner)
        for k, (j, m) in enumerate(zip(self.column, experts, strict=True)):
            if (voice := Z[:, :, m]).any():
                rank = _rank(cells[:, j].astype(np.float64), self.knots[k], levels)
                Z[:, :, E + k] = voice * rank[:, None]
        Z[:, :, E + f :] = np.eye(self.classes)
        return Z

    def _scores(
        self, cells: Float32Array, bought: BoolArray
    ) -> tuple[IntArray, FloatArray, FloatArray]:
        """The set (n,) of each row, the largest within its purchases, scores (n, K) and design."""
        asked = bought[:, self.experts]
        inside = (self.sets.astype(np.float32) @ (~asked).T.astype(np.float32)) == 0
        at = len(self.sets) - 1 - np.argmax(inside[::-1], axis=0)
        design = self.design(cells)
        return at, np.einsum("nkw,nw->nk", design, self.weights[at]), design

    def act(
        self,
        cells: Float32Array,
        bought: BoolArray,
        left: FloatArray,
        stop: float,
        prices: FloatArray | None = None,
    ) -> IntArray:
        """Affordable expert of the largest gain minus price, or ``STOP``, (n,)."""
        at, scores, design = self._scores(cells, bought)
        voices = self.sets[at]
        powers = _powers(self.doubt(softmax(scores), design, voices))
        unpaid = prices if prices is not None else self.prices.sensor
        unpaid = np.where(self.purchases.sensors(bought), 0.0, unpaid)
        worth, of = np.full(bought.shape, -np.inf), self.experts
        gains = self.gains[list(self.price).index(stop), at]  # (n, 2, E)
        worth[:, of] = powers[:, :1] * gains[:, 0] + powers[:, 1:] * gains[:, 1]
        worth[:, of] -= stop * (unpaid @ self.purchases.sets[of].T)
        # a choice needs a call
        least = np.where(voices.any(axis=1) | (self.sources == 0), LEAST, -np.inf)
        return self.purchases.best(worth, bought, left, least)

    def doubt(self, p: FloatArray, design: FloatArray, voices: BoolArray) -> FloatArray:
        """1 less the largest probability (n,) of a class, in a choice of a class that an expert
        of ``voices`` (n, E) speaks for."""
        if self.sources:
            p = p * (np.einsum("nke,ne->nk", design[:, :, : len(self.experts)], voices) > 0)
        return np.asarray(1 - p.max(axis=1))

    def predict(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """Scores by the weights of each row's set; in a choice those of the sources' answers."""
        _, scores, design = self._scores(cells, bought)
        if self.sources:
            voice = design[:, :, : len(self.experts)]
            values = np.where(voice.any(axis=1), np.einsum("nke,nk->ne", voice, scores), -NEVER)
            scores = np.full((len(cells), self.sources), -2 * NEVER)
            scores[:, self.source] = np.where(bought[:, self.experts], values, -2 * NEVER)
        return scores if scores.shape[1] > 2 else scores[:, 1] - scores[:, 0]


def _rank(values: FloatArray, knots: FloatArray, levels: FloatArray) -> FloatArray:
    """Return places (n,) in 0..1 among quantiles, the middle of equal ones; .5 for a gap."""
    low = np.searchsorted(knots, values, side="left")
    high = np.searchsorted(knots, values, side="right")
    between = np.interp(values, knots, levels)
    tied = (levels[np.minimum(low, KNOTS - 1)] + levels[np.maximum(high - 1, 0)]) / 2
    return np.where(np.isnan(values), 0.5, np.where(high > low, tied, between))


bench_learners = provide_learners(OpinionPool, family="policies")
