"""Models that keep or break their promises, for the tests of scoring and of the replay audit."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from bench_core import Acquired, Bill, Features, Prediction

D = 6


@dataclass
class Scripted:
    """At each of ``points``, predict with ``say(X, features, point)``: scores and mask."""

    say: Callable[[Any, Features, int], tuple[Any, Any]]
    points: int = 3

    def predict_path(self, features):
        X = features.X.astype(np.float64)
        for point in range(1, self.points + 1):
            scores, mask = self.say(X, features, point)
            yield Prediction({"step": point}, scores, {"path": Bill(Acquired.pack(mask), point)})


def bought(n, *columns):
    mask = np.zeros((n, D), dtype=bool)
    mask[:, list(columns)] = True
    return mask


def honest(X, features, point):
    """Buys column 1 only where column 0 is positive, column 2 from step 2 on."""
    mask = bought(len(X), 0)
    go_on = np.nan_to_num(X[:, 0]) > 0
    mask[go_on, 1] = True
    scores = np.nan_to_num(X[:, 0]) + np.where(go_on, np.nan_to_num(X[:, 1]), 0.0)
    if point > 1:
        mask[:, 2] = True
        scores = scores + np.nan_to_num(X[:, 2])
    return scores, mask


def ranks_in_query(X, features, point):
    """Buys column 1 for the best row of each query, which is allowed."""
    scores = np.nan_to_num(X[:, 0])
    mask = bought(len(X), 0)
    ends = np.arange(len(X) + 1) if features.queries is None else features.queries.boundaries
    for start, stop in pairwise(ends):
        best = start + int(np.argmax(scores[start:stop]))
        mask[best, 1] = True
        scores[best] += np.nan_to_num(X[best, 1])
    return scores, mask


def reads_more_than_it_can_use(X, features, point):
    """Adds up the columns it bought, NaN if one of them is: the last step buys all."""
    upto = point if point < 3 else D
    return X[:, :upto].sum(axis=1), bought(len(X), *range(upto))


@dataclass
class Overwrites:
    """Returns the same array at every point, which is forbidden."""

    def predict_path(self, features):
        scores = np.zeros(len(features))
        for point in (1, 2, 3):
            scores[:] = point
            mask = bought(len(features), *range(point))
            yield Prediction({"step": point}, scores, {"path": Bill(Acquired.pack(mask))})
