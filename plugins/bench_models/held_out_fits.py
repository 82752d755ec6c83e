"""Boosting on growing sets of features, evaluated on held-out rows.

Forward selections by trees share this: fits continued on one set of features after another, early
stopping by the held-out loss, and the purchases possible next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from bench_core import Examples, Prices
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_models.dictionary import sums
from bench_models.path_of_models import Subsets, readable
from bench_models.tradeoff import labels_of

if TYPE_CHECKING:
    from bench_trees import Ensemble, Settings


@dataclass(frozen=True, eq=False)
class HeldOutFit:
    """Boosted trees so far, in parts, and their scores."""

    subsets: Subsets
    held: Examples  # rows held out
    scores: FloatArray  # (K, n) scores of the training rows
    held_scores: FloatArray  # (K, m) scores of the held-out rows
    parts: tuple[Ensemble, ...] = ()

    @classmethod
    def begin(cls, subsets: Subsets, held: Examples, constant: FloatArray | None = None) -> Self:
        """A fit without trees at the ``constant`` (K,), by default the training rows' best."""
        base = subsets.loss.base(labels_of(subsets.train)) if constant is None else constant
        scores, held_scores = (np.repeat(base[:, None], len(x), 1) for x in (subsets.train, held))
        return cls(subsets, held, scores, held_scores)

    def more(self, features: BoolArray, settings: Settings) -> HeldOutFit:
        """The fit continued with trees that test only these features (d,)."""
        trees = self.subsets.boost(features, lambda *_: None, start=self.scores, settings=settings)
        trees = replace(trees, diverged=False)
        scores, held_scores = (
            old + scores_of(trees, rows)
            for old, rows in ((self.scores, self.subsets.train), (self.held_scores, self.held))
        )
        return replace(self, scores=scores, held_scores=held_scores, parts=(*self.parts, trees))

    @cached_property
    def loss(self) -> float:
        """The mean loss of the held-out rows, or the negative metric; lower is better."""
        return self._mean(self.held_scores)

    @property
    def total(self) -> float:
        """``loss`` summed over the held-out rows."""
        return self.loss * float(self.held.weights.sum())

    @property
    def constant_total(self) -> float:
        """The absolute summed loss of the held-out rows' own best constant."""
        base = self.subsets.loss.base(labels_of(self.held))[:, None]
        mean = self._mean(np.repeat(base, len(self.held), axis=1))
        return abs(mean * float(self.held.weights.sum()))

    def _mean(self, scores: FloatArray) -> float:
        from bench_trees.losses import Measured

        loss = self.subsets.loss
        if isinstance(loss, Measured):
            return loss.mean(scores, labels_of(self.held))
        return -self._quality(scores)

    @cached_property
    def quality(self) -> float:
        """The run's metric on the held-out rows; higher is better."""
        return self._quality(self.held_scores)

    def _quality(self, scores: FloatArray) -> float:
        metric, rows = self.subsets.context.metric, self.held
        own = scores[0] if len(scores) == 1 else scores.T
        value = metric.values(own, rows.y, rows.queries, rows.multiplicity).mean
        return value if metric.higher_is_better else -value


def scores_of(trees: Ensemble, rows: Examples) -> FloatArray:
    """The sum of all trees (K, n), without a bill, which would take longer than the trees."""
    return sums(trees, rows.X).T


Fits = Sequence[HeldOutFit]


def converged(
    fits: Fits,
    features: BoolArray,
    settings: Settings,
    most: int,
    *,
    chunk: int,
    patience: int,
    falls: Callable[[Fits, Fits], bool],
) -> list[HeldOutFit]:
    """The fits continued in step while ``falls(new, best)``, for at most ``most`` iterations.

    They are compared after ``chunk`` iterations and then after a quarter more each time. They end
    after ``patience`` comparisons without a fall.
    """
    now = best = list(fits)
    done = waited = 0
    while done < most and waited < patience:
        step = min(max(chunk, done // 4), most - done)
        now, done = [fit.more(features, replace(settings, trees=step)) for fit in now], done + step
        if not any(fit.parts[-1].trees for fit in now):
            break
        waited = 0 if falls(now, best) else waited + 1
        best = best if waited else now
    return best


@dataclass(frozen=True)
class Purchases:
    """Purchases possible next: k sets of sensors that some feature still lacks."""

    brings: Sequence[Sequence[int]]  # the features that lack just these sensors
    price: FloatArray  # (k,)
    explained: FloatArray  # (k,) of the residuals, by the best single feature

    @classmethod
    def of(cls, fits: Fits, bought: BoolArray) -> Self:
        """Purchases left once the features ``bought`` (d,) can be read."""
        prices = fits[0].subsets.prices
        found = purchases(prices, bought)
        brings = list(found.values())
        each, size = prices.sensor, [len(features) for features in brings]
        price = np.array([each[s[0]] if len(s) == 1 else each[list(s)].sum() for s in found])
        alone = np.sum([fit.subsets.explained(fit.scores) for fit in fits], axis=0)
        start = np.cumsum([0, *size])[:-1]
        explained = np.maximum.reduceat(alone[[j for own in brings for j in own]], start)
        return cls(brings, price, explained)


def purchases(prices: Prices, bought: BoolArray) -> dict[tuple[int, ...], list[int]]:
    """The sets of unpaid sensors that features need, each with the features that need exactly
    these."""
    unpaid = ~prices.bought_for(bought) & (prices.sensor > 0)
    left = np.flatnonzero(~bought)
    place, sensor = prices.needs[left].nonzero()
    lacks: list[list[int]] = [[] for _ in left]
    for k, own in zip(place[unpaid[sensor]].tolist(), sensor[unpaid[sensor]].tolist(), strict=True):
        lacks[k].append(own)
    found: dict[tuple[int, ...], list[int]] = {}
    for j, sensors in zip(left.tolist(), lacks, strict=True):
        found.setdefault(tuple(sensors), []).append(j)
    return found


def bought_too(prices: Prices, bought: BoolArray, features: Sequence[int]) -> BoolArray:
    """Features readable (d,) once these are bought too."""
    more = bought.copy()
    more[list(features)] = True
    return readable(prices, more)


def gaining(tried: IntArray, gain: FloatArray) -> IntArray:
    """Entries of ``tried`` (k,) with a positive gain (k,), in falling order."""
    return np.asarray(tried[np.argsort(-gain, kind="stable")][: int((gain > 0).sum())])
