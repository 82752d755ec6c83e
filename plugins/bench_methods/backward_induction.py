"""Backward induction over every set of a few purchases: what to buy next, looking all steps ahead.

Finite-horizon dynamic programming with regressions for expectations (S. Murphy, "A generalization
error for Q-learning", JMLR 2005, for rows in place of patients). Let S be what is bought and x_S
its cells. For every set S, boosted trees on x_S alone give class probabilities p_c(x_S). Stopping
is worth

    v_S(x) = max_c p_c(x_S)

the probability of being right. At a price lambda of money, and with c_j(S) what purchase j costs
after S, going on to j brings beyond stopping

    G_j(x_S, lambda) = E[ V_{S+j}(x, lambda) - v_S(x) | x_S ]                                 (1)
    V_S(x, lambda) = v_S(x) + max(0, max_j G_j(x_S, lambda) - lambda c_j(S))                  (2)

Sets are taken from the largest to the smallest. Of each, (1) is a regression by boosted trees for
each j on the bought cells and lambda; the left side of (2) is the target of the sets before. A row
buys the j of the largest G_j - lambda c_j while that is positive. So a purchase that is worthless
alone but opens another is seen, which one step of looking ahead misses.

An operating point is a lambda: numbers t, falling geometrically, then 0, in units of

    (mean of v with everything bought - mean of v with nothing bought) / price of everything

Departures
- The training rows are divided into five parts. Values of a row come from trees of the other
  parts; all other rows get the mean score of the five. How many trees these have is chosen for each
  set, by the loss of rows that they did not see. Validation rows are not used.
- A training row stands in the regressions at ``tried`` of the lambdas, evenly spread.
- Of k purchases there are 2^k sets. Where more than 6 cost something, the 6 are considered that
  alone raise the mean of v most per price; the others are never bought.
- Under a cap the best purchase that a row can still pay is made, at lambda 0. The cap is not looked
  ahead to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from bench_models.boosting import LEAST_HESSIAN, loss_of
from bench_models.boosting import bench_warm_up as bench_warm_up
from bench_models.held_out_fits import layout_of, sums
from bench_models.masked_predictor import (
    closed,
    most_evaluated,
    training_copies,
    visible,
)
from bench_models.states import Stored

from bench_core import (
    Evaluated,
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
from bench_core.serving.gates import largest_probability

if TYPE_CHECKING:
    from bench_trees import Bins, Settings
    from bench_trees.inference import Layout

MOST = 6
"""Purchases that cost something and are considered."""

PARTS = 5
LOOKS = 11
"""Numbers of trees that are compared, from 0 on."""

HIGHEST = 32.0
"""The first t; the last before 0 is its inverse."""


@dataclass(frozen=True)
class BackwardInduction:
    """Values of every set of purchases, from the largest set to the smallest."""

    name: ClassVar[str] = "backward-induction"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.MULTICLASS})
    numerics: ClassVar[tuple[str, ...]] = ("numpy", "cpu")

    points: int = param(64, "operating points: prices of money, the last one 0", least=2, most=100)
    tried: int = param(6, "prices of money at which a training row is seen", least=1)
    trees: int = param(80, "boosting iterations, for the answers the most", least=1)
    learning_rate: float = param(0.1, "shrinkage of every tree's output", above=0)
    depth: int = param(3, "most split levels of a tree", least=1, most=12, search=among(2, 4, 5))
    min_rows: int = param(
        20, "least rows (copies counted) on each side of a split", least=1, search=log(10, 100)
    )

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> Sequential:
        """Go backward over the sets on ``train``; ``valid`` is not used."""
        from bench_trees import find_bins

        purchases = Purchases.of(prices)
        copies = training_copies(train, context.seed)
        part = np.empty(len(copies), dtype=np.int64)
        part[np.argsort(copies.y, kind="stable")] = np.arange(len(copies)) % PARTS
        bins = find_bins(copies.X, threads=context.threads)
        words = bins.words(copies.X, context.threads)

        def judged(bought: BoolArray) -> tuple[SetTrees, FloatArray]:
            own = visible(bought[None], purchases, prices)[0]
            trees, scores = self._answers(copies, bins, words, part, own, context)
            return trees, largest_probability(scores)

        sets = _sets(purchases, lambda bought: float(judged(bought)[1].mean()))
        answers, stop = [], np.empty((len(sets), len(copies)))
        for s, bought in enumerate(sets):
            trees, stop[s] = judged(bought)
            answers.append(trees)
            context.progress(s + 1, 2 * len(sets))
        gained = max(1e-9, float(stop[-1].mean() - stop[0].mean()))
        t = np.append(np.geomspace(HIGHEST, 1 / HIGHEST, self.points - 1), 0.0)
        price = t * gained / max(prices.everything, 1e-9)
        every = min(self.tried, self.points)
        row = np.repeat(np.arange(len(copies)), every)
        first = np.arange(len(copies))[:, None]
        at = (first + np.arange(every) * self.points // every).ravel() % self.points
        X = np.column_stack([copies.X[row], at.astype(np.float32)])
        gains = self._backward(X, stop[:, row], price[at], sets, prices, context)
        policy = Lookahead(prices, sets, answers, gains, price.tolist())
        return Sequential(policy, prices)

    def _answers(
        self,
        rows: Examples,
        bins: Bins,
        words: Any,
        part: IntArray,
        own: BoolArray,
        context: FitContext,
    ) -> tuple[SetTrees, FloatArray]:
        """Trees that test the features ``own`` (d,), the mean of all parts; and the scores (n, K)
        of the training rows by trees that were fitted without their ``part`` (n,)."""
        from bench_trees import Ensemble, boost
        from bench_trees.inference import Steps, Walked, walk
        from bench_trees.losses import Labels, Measured

        _, loss = loss_of(context.task, "auto", context.classes)
        settings = self._settings(self.trees if own.any() else 0, self.min_rows, LEAST_HESSIAN)
        ends = np.unique(np.linspace(0, settings.trees, LOOKS).astype(int)) * loss.outputs
        far, fits = np.empty((len(ends), len(rows), loss.outputs)), []
        for k in range(PARTS):
            fit, held = np.flatnonzero(part != k), np.flatnonzero(part == k)
            trees = boost(
                np.ascontiguousarray(words[:, fit]),
                bins,
                rows.y[fit],
                loss=loss,
                settings=settings,
                offers=[(settings.trees, own)],
                threads=context.threads,
            )
            fits.append(trees)
            layout = layout_of(trees)
            before = Walked.begin(len(held), loss.outputs, layout.words)
            steps = Steps.prefixes(np.minimum(ends, trees.trees).tolist(), trees.base)
            far[:, held] = walk(layout, steps, rows.X[held], before).scores
        assert isinstance(loss, Measured)
        labels = Labels(rows.y)
        best = int(np.argmin([loss.mean(scores.T, labels) for scores in far]))
        kept = [trees.select(np.arange(min(ends[best], trees.trees))) for trees in fits]
        joined = Ensemble.concat([replace(t, value=t.value / PARTS, diverged=False) for t in kept])
        base = np.mean([trees.base for trees in fits], axis=0)
        return SetTrees(replace(joined, base=base)), far[best]

    def _settings(self, trees: int, min_rows: int, min_hessian: float = 0.0) -> Settings:
        from bench_trees import Settings

        return Settings(
            trees=trees,
            learning_rate=self.learning_rate,
            max_depth=self.depth,
            max_leaves=None,
            min_rows=min_rows,
            min_hessian=min_hessian,
            l2=1.0,
        )

    def _backward(
        self,
        X: Float32Array,
        stop: FloatArray,
        price: FloatArray,
        sets: BoolArray,
        prices: Prices,
        context: FitContext,
    ) -> list[SetTrees]:
        """The regressions of each set, on rows X (n, d + 1) with the number of their ``price``
        (n,); ``stop`` (sets, n)."""
        from bench_trees import Ensemble, boost, find_bins

        settings = self._settings(self.trees, self.min_rows * min(self.tried, self.points))
        purchases = Purchases.of(prices)
        number = {code: s for s, code in enumerate(_code(sets).tolist())}
        bins = find_bins(X, threads=context.threads)
        words = bins.words(X, context.threads)
        value, found = stop.copy(), []
        done, total = 0, int((~sets).sum())
        for s in reversed(range(len(sets))):
            own = visible(sets[s : s + 1], purchases, prices)[0]
            offers = [(self.trees, np.append(own, True))]
            parts = [Ensemble.of_trees([], [], np.zeros(len(purchases)), bins.features)]
            base, best = np.zeros(len(purchases)), np.zeros(len(X))
            marginal = purchases.marginal(sets[s : s + 1])[0]
            for j in np.flatnonzero(~sets[s]).tolist():
                done += 1
                context.progress(total + done, 2 * total)
                more = closed((sets[s] | (np.arange(len(purchases)) == j))[None], purchases)
                after = number.get(int(_code(more)[0]))
                if after is None:
                    continue
                target = value[after] - stop[s]
                trees = boost(
                    words, bins, target, settings=settings, offers=offers, threads=context.threads
                )
                gain = sums(layout_of(trees), trees.base, X)[:, 0] - price * marginal[j]
                best = np.maximum(best, gain)
                base[j] = trees.base[0]
                parts.append(
                    replace(
                        trees,
                        output=np.full(trees.trees, j, dtype=np.int32),
                        base=np.zeros(len(purchases)),
                    )
                )
            value[s] += best
            found.append(SetTrees(replace(Ensemble.concat(parts), base=base)))
        return found[::-1]


@dataclass(frozen=True, eq=False)
class SetTrees(Stored):
    """The trees of one set of purchases."""

    ensemble: Any  # an Ensemble

    def scores(self, X: Float32Array) -> FloatArray:
        """Sums (n, K) for rows X (n, d)."""
        return sums(self._layout, self.ensemble.base, X)

    @cached_property
    def _layout(self) -> Layout:
        return layout_of(self.ensemble)


@dataclass(frozen=True, eq=False)
class Lookahead(Stored):
    """Buys what brings most beyond its price, as long as that is positive."""

    prices: Prices
    sets: BoolArray  # (sets, k)
    answers: Sequence[SetTrees]  # scores, over d features
    gains: Sequence[SetTrees]  # k outputs, over d features and the number of the price
    price: Sequence[float]  # of money, falling

    @cached_property
    def purchases(self) -> Purchases:
        """What can be bought."""
        return Purchases.of(self.prices)

    @cached_property
    def each_act(self) -> Evaluated:
        """The trees of the set with most of them."""
        return _most(self.gains, np.append(self.prices.multiplier, 1.0))

    @cached_property
    def each_answer(self) -> Evaluated:
        """Likewise."""
        return _most(self.answers, self.prices.multiplier)

    @property
    def stops(self) -> Mapping[str, Sequence[float]]:
        """Prices of money, in probability of a right answer per unit of cost."""
        return {"price": self.price}

    def act(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray, stop: float
    ) -> IntArray:
        """The purchase of the largest gain beyond its price among those that can be paid."""
        place = np.full(len(cells), list(self.price).index(stop), dtype=np.float32)
        net = self._by_set(self.gains, np.column_stack([cells, place]), bought)
        net -= stop * self.purchases.marginal(bought)
        return self.purchases.best(net, bought, left, np.nextafter(0.0, 1.0))

    def predict(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """Scores of the trees of what was bought."""
        scores = self._by_set(self.answers, cells, bought)
        return scores if scores.shape[1] > 1 else scores[:, 0]

    def _by_set(self, trees: Sequence[SetTrees], X: Float32Array, bought: BoolArray) -> FloatArray:
        """Scores (n, K), each row by the trees of its set."""
        codes = _code(bought)
        found = np.empty((len(X), len(trees[0].ensemble.base)))
        for code in np.unique(codes).tolist():
            own = codes == code
            # the largest set that is bought; at other prices than in training more may be free
            inside = ~(self.sets & ~bought[own][0]).any(axis=1)
            found[own] = trees[int(np.max(np.flatnonzero(inside), initial=0))].scores(X[own])
        return found


def _most(sets: Sequence[SetTrees], multiplier: FloatArray) -> Evaluated:
    each = [most_evaluated(trees.ensemble, multiplier) for trees in sets]
    return Evaluated(max(e.splits for e in each), max(e.trees for e in each))


def _sets(purchases: Purchases, sure: Callable[[BoolArray], float]) -> BoolArray:
    """Every set of purchases (sets, k) that is considered, what is free among them; the smallest
    first. ``sure`` is the mean of v where a set is bought."""
    free, each = purchases.price == 0, np.eye(len(purchases), dtype=bool)
    paid = np.flatnonzero(~free)
    if len(paid) > MOST:
        nothing = sure(free)
        gain = np.array([sure(free | each[j]) - nothing for j in paid.tolist()])
        paid = np.sort(paid[np.argsort(-gain / purchases.price[paid], kind="stable")[:MOST]])
    bought = np.tile(free, (2 ** len(paid), 1))
    bought[:, paid] = (np.arange(len(bought))[:, None] >> np.arange(len(paid))) & 1
    made = np.unique(closed(bought, purchases), axis=0)
    return made[np.argsort(made.sum(axis=1), kind="stable")]


def _code(bought: BoolArray) -> IntArray:
    """A number (n,) for each set of purchases (n, k)."""
    return np.asarray(bought @ (1 << np.arange(bought.shape[1])), dtype=np.int64)


bench_learners = provide_learners(BackwardInduction)
