"""Models that keep or break their word, for the tests of scoring and of the replay audit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from bench_core import Acquired, Bill, Features, Prediction

D = 6


@dataclass
class Scripted:
    """Answers at each of ``points`` what ``say(X, features, point)`` gives: scores and mask."""

    say: Callable[[Any, Features, int], tuple[Any, Any]]
    points: int = 3

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        X = features.X.astype(np.float64)
        for point in range(1, self.points + 1):
            scores, mask = self.say(X, features, point)
            yield Prediction({"step": point}, scores, {"path": Bill(Acquired.pack(mask), point)})


def bought(n: int, *columns: int) -> Any:
    mask = np.zeros((n, D), dtype=bool)
    mask[:, list(columns)] = True
    return mask


def honest(X: Any, features: Features, point: int) -> tuple[Any, Any]:
    """Buys column 1 only where column 0 is positive, column 2 from step 2 on."""
    mask = bought(len(X), 0)
    go_on = np.nan_to_num(X[:, 0]) > 0
    mask[go_on, 1] = True
    scores = np.nan_to_num(X[:, 0]) + np.where(go_on, np.nan_to_num(X[:, 1]), 0.0)
    if point > 1:
        mask[:, 2] = True
        scores = scores + np.nan_to_num(X[:, 2])
    return scores, mask


def peeks_for_its_scores(X: Any, features: Features, point: int) -> tuple[Any, Any]:
    scores, mask = honest(X, features, point)
    return scores + (0.001 * np.nan_to_num(X[:, 5]) if point == 2 else 0.0), mask


def peeks_to_decide(X: Any, features: Features, point: int) -> tuple[Any, Any]:
    """Looks at column 4, unpaid, to decide whether to buy column 1."""
    mask = bought(len(X), 0)
    wants = np.nan_to_num(X[:, 4]) > 0
    mask[wants, 1] = True
    return np.nan_to_num(X[:, 0]) + 0 * point, mask


def imputes(X: Any, features: Features, point: int) -> tuple[Any, Any]:
    """Reads column 5, unpaid; where it is missing, takes column 0, which it bought, instead."""
    return np.where(np.isnan(X[:, 5]), np.nan_to_num(X[:, 0]), X[:, 5]), bought(len(X), 0)


def imputes_to_decide(X: Any, features: Features, point: int) -> tuple[Any, Any]:
    """Buys column 1 by column 5, read in the same way."""
    value, mask = imputes(X, features, point)
    mask[value > 0, 1] = True
    return np.nan_to_num(X[:, 0]), mask


def multiplies_by_zero(X: Any, features: Features, point: int) -> tuple[Any, Any]:
    weight = np.zeros(D)
    weight[0] = 1.0
    return X @ weight, bought(len(X), 0)


def centres_by_block(X: Any, features: Features, point: int) -> tuple[Any, Any]:
    scores, mask = honest(X, features, point)
    return scores - scores.mean(), mask


def centres_few_by_block(X: Any, features: Features, point: int) -> tuple[Any, Any]:
    """Only rows whose column 0, which it bought, is large get a score that depends on others."""
    scores, mask = honest(X, features, point)
    return scores - np.where(X[:, 0] > 1.5, scores.mean(), 0.0), mask


def ranks_in_query(X: Any, features: Features, point: int) -> tuple[Any, Any]:
    """Buys column 1 for the best row of each query, which is within its rights."""
    scores = np.nan_to_num(X[:, 0])
    mask = bought(len(X), 0)
    ends = np.arange(len(X) + 1) if features.queries is None else features.queries.boundaries
    for start, stop in pairwise(ends):
        best = start + int(np.argmax(scores[start:stop]))
        mask[best, 1] = True
        scores[best] += np.nan_to_num(X[best, 1])
    return scores, mask


def keys_on_size(X: Any, features: Features, point: int) -> tuple[Any, Any]:
    scores, mask = honest(X, features, point)
    return scores + 0.01 * len(X), mask


def reads_more_than_it_can_use(X: Any, features: Features, point: int) -> tuple[Any, Any]:
    """Adds up the columns it bought, NaN where one of them is: the last step buys all."""
    upto = point if point < 3 else D
    return X[:, :upto].sum(axis=1), bought(len(X), *range(upto))


def _peeked(X: Any) -> Any:
    return np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 5])


@dataclass
class Annotates:
    """Peeks at column 5 and notes the score in column 0, which it bought, for the next call."""

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        X = features.X
        if not bool((X[:, 0] > 1e6).all()):
            X[:, 0] = 1e7 + 1000 * _peeked(X.astype(np.float64))
        bill = Bill(Acquired.pack(bought(len(X), 0)))
        yield Prediction({}, X[:, 0].astype(np.float64), {"path": bill})


@dataclass
class Remembers:
    """Peeks at column 5 and remembers the score by column 0, which it bought."""

    seen: dict[float, float] = field(default_factory=dict)

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        paid = np.nan_to_num(features.X[:, 0].astype(np.float64), nan=-7.0)
        found = zip(paid.tolist(), _peeked(features.X.astype(np.float64)).tolist(), strict=True)
        scores = np.array([self.seen.setdefault(key, score) for key, score in found])
        yield Prediction({}, scores, {"path": Bill(Acquired.pack(bought(len(paid), 0)))})


@dataclass
class Overwrites:
    """Hands out the same array at every point, which it must not."""

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        scores = np.zeros(len(features))
        for point in (1, 2, 3):
            scores[:] = point
            mask = bought(len(features), *range(point))
            yield Prediction({"step": point}, scores, {"path": Bill(Acquired.pack(mask))})
