"""Choice among services (``Task.CHOICE``): buy calls, return the answer of one of them.

``best-single`` returns the same source's answer for all rows; each source is a point.

``cascade`` follows FrugalGPT (L. Chen, M. Zaharia, J. Zou, 2023): call a source, keep its
answer if it is confident, else call another, up to three. A source's confidence is the cell of its
call that tells right answers best on training rows. All pairs are searched, and all triples by
rising price, with thresholds between distinct values. The points are the rules that no other rule
beats on training rows in both score and price.

Departures
- FrugalGPT trains a scorer of answers; here the call's own confidence is the scorer.
- Nothing is cross-fitted, as no model of ``train`` enters a confidence.
- It searches thresholds by gradients of a relaxed problem; here all of a small grid are tried, and
  validation rows choose among the points.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations
from typing import ClassVar

import numpy as np
from bench_models.call_chain import CallChain
from bench_models.call_router import price_of_calls

from bench_core import Examples, FitContext, Prices, Task, param, provide_learners
from bench_core.arrays import FloatArray, IntArray

CHOICE = frozenset({Task.CHOICE})
MOST_POINTS = 100


@dataclass(frozen=True)
class BestSingle:
    """One source for all rows; each source is a point, in order of price."""

    name: ClassVar[str] = "best-single"
    tasks: ClassVar[frozenset[Task]] = CHOICE
    numerics: ClassVar[tuple[str, ...]] = ("numpy", "cpu")
    role: ClassVar[str] = "reference"

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> CallChain:
        """Order the sources by price, of equal ones the better on ``train`` last."""
        calls = context.splits.calls
        quality = np.average(train.y, axis=0, weights=train.weights)
        order = np.lexsort((quality, prices.feature_price()[calls]))[:MOST_POINTS]
        points = [{"source": int(k)} for k in order]
        unused = np.zeros((len(order), 1), np.float32)
        return CallChain(points, order[:, None], unused, calls, calls, np.ones_like(calls), prices)


@dataclass(frozen=True, eq=False)
class _Rules:
    """Rules of one order of sources: thresholds (r, L - 1), and training score and price (r,)."""

    order: tuple[int, ...]
    threshold: FloatArray
    score: FloatArray
    price: FloatArray


@dataclass(frozen=True)
class Cascade:
    """Calls sources in turn until one is confident.

    ``first_on`` of a point is the share of training rows that go on after the first call.
    """

    name: ClassVar[str] = "cascade"
    tasks: ClassVar[frozenset[Task]] = CHOICE
    numerics: ClassVar[tuple[str, ...]] = ("numpy", "cpu")

    thresholds: int = param(
        20, "thresholds of the first source; half as many of the second", least=2
    )
    longest: int = param(3, "most calls of a row", least=1, most=3)
    least_gain: float = param(0.004, "least gain of score from point to point", least=0)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> CallChain:
        """Search all rules on ``train``; ``valid`` is not used."""
        calls, weight = context.splits.calls, train.weights / train.weights.sum()
        paid = price_of_calls(prices, train.prices, len(train), calls)
        confidence, sign = zip(
            *(confidence_of(train, k, prices, calls, weight) for k in range(len(calls))),
            strict=True,
        )
        feature, sign_of = np.array(confidence), np.array(sign)
        # NaN is the least confidence
        sure = np.nan_to_num(sign_of * train.X[:, feature].astype(np.float64), nan=-np.inf)
        rules = [*self._rules(sure, np.flatnonzero(sign_of).tolist(), train.y, paid, weight)]
        score, price = (np.concatenate([getattr(r, n) for r in rules]) for n in ("score", "price"))
        of = np.repeat(np.arange(len(rules)), [len(r.score) for r in rules])
        within = np.concatenate([np.arange(len(r.score)) for r in rules])
        kept, best = list[int](), -np.inf
        for j in np.lexsort((-score, price)).tolist():
            if score[j] >= best + self.least_gain or (score[j] > best and score[j] == score.max()):
                kept.append(j)
                best = score[j]
        if len(kept) > MOST_POINTS:
            kept = [kept[i] for i in np.linspace(0, len(kept) - 1, MOST_POINTS).astype(int)]
        order = np.full((len(kept), self.longest), -1)
        threshold = np.zeros((len(kept), self.longest), np.float32)
        points = list[dict[str, int | float]]()
        for p, j in enumerate(kept):
            rule = rules[of[j]]
            order[p, : len(rule.order)] = rule.order
            signs = sign_of[list(rule.order[:-1])]
            cuts = (rule.threshold[within[j]] * signs).astype(np.float32)
            # a doubt as large as the threshold goes on, as trees send equal cells left
            cuts = np.where(signs < 0, np.nextafter(cuts, np.float32(-np.inf)), cuts)
            threshold[p, : len(cuts)] = cuts
            names, on = ("first", "second", "third"), weight
            point = dict[str, int | float](zip(names, rule.order, strict=False))
            for name, k, cut in zip(names, rule.order, rule.threshold[within[j]], strict=False):
                on = on * (sure[:, k] <= cut)
                point[f"{name}_on"] = float(on.sum())
            points.append(point)
        context.progress(1, 1)
        return CallChain(
            points, order, threshold, calls, feature, np.where(sign_of < 0, -1, 1), prices
        )

    def _rules(
        self,
        sure: FloatArray,
        usable: list[int],
        y: FloatArray,
        paid: FloatArray,
        weight: FloatArray,
    ) -> Iterator[_Rules]:
        """Yield the rules of every order of sources, from the confidences (n, K) of their answers,
        scores and prices (n, K), and shares of rows (n,)."""
        k, none = y.shape[1], np.zeros((1, 0))
        score, price = weight @ y, weight @ paid
        for a in range(k):
            yield _Rules((a,), none, score[[a]], price[[a]])
        cuts = [cuts_of(sure[:, a], self.thresholds) for a in range(k)]
        few = [cuts_of(sure[:, a], self.thresholds // 2) for a in range(k)]
        first = {a: (sure[:, a] <= cuts[a][:, None]) * weight for a in usable}
        second = {b: (sure[:, b] <= few[b][:, None]).astype(np.float64).T for b in usable}
        for a, b in permutations(range(k), 2) if self.longest > 1 else ():
            if a not in first:
                continue
            # rows that go on change from a to b, and pay for b too
            on = first[a]
            right, more = on @ (y[:, b] - y[:, a]), on @ paid[:, b]
            yield _Rules((a, b), cuts[a][:, None], score[a] + right, price[a] + more)
            pricier = np.flatnonzero(price > price[b]).tolist() if price[b] > price[a] else []
            for c in pricier if b in second and self.longest > 2 else ():
                grid = np.stack(np.meshgrid(cuts[a], few[b], indexing="ij"), axis=-1)
                change = on @ (second[b] * (y[:, c] - y[:, b])[:, None])
                extra = on @ (second[b] * paid[:, [c]])
                yield _Rules(
                    (a, b, c),
                    grid.reshape(-1, 2),
                    (score[a] + right[:, None] + change).ravel(),
                    (price[a] + more[:, None] + extra).ravel(),
                )


def cuts_of(sure: FloatArray, most: int) -> FloatArray:
    """Return at most ``most`` thresholds, evenly spread over the rows, between distinct values as
    float32; each is the lower of its two values, so that ties stay together."""
    values = np.unique(sure.astype(np.float32))[:-1]
    if len(values) > most:
        ranks = np.sort(sure.astype(np.float32))
        places = np.linspace(0, len(ranks) - 1, most + 2)[1:-1].astype(int)
        values = np.unique(np.minimum(ranks[places], values[-1]))
    return values[np.isfinite(values)].astype(np.float64)


def confidence_of(
    train: Examples, source: int, prices: Prices, calls: IntArray, weight: FloatArray
) -> tuple[int, int]:
    """Return the feature of a source's call that tells its right answers best, by the difference
    of mean ranks, and its sign; sign 0 if no cell differs."""
    needs = {*prices.sensors_of(int(calls[source])).tolist()}
    best, feature, sign = 0.0, int(calls[source]), 0
    centred = (train.y[:, source] - weight @ train.y[:, source]) * weight
    for j in range(prices.features):
        if not needs >= {*prices.sensors_of(j).tolist()} or not prices.sensors_of(j).size:
            continue
        cells = np.nan_to_num(train.X[:, j], nan=-np.inf)
        _, place, count = np.unique(cells, return_inverse=True, return_counts=True)
        rank = (np.cumsum(count) - count / 2)[place.reshape(-1)]  # ties share a rank
        if abs(match := float(centred @ rank)) > best * (1 + 1e-9):
            best, feature, sign = abs(match), j, 1 if match > 0 else -1
    return feature, sign


bench_learners = provide_learners(BestSingle, Cascade, family="choice among services")
