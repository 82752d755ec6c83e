"""Large models for use behind ADAPT's gates, and ways to fit and judge a pair in tests."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from bench_methods.adapt import AdaptGBRT, AdaptL1, AdaptLin, AdaptLstsq
from bench_methods.adapt.q_step import TrainingRows
from bench_methods.gbrt import GBRT

from bench_core import Acquired, Bill, Examples, Prediction, Prices, Splits, Task
from helpers.boosted_cases import curve
from helpers.fakes import FakeContext, fit_after_needs

SMALL = GBRT(trees=5)
QUICK = [
    AdaptGBRT(f0=SMALL, trees=4, iterations=2, gates=3),
    AdaptLin(f0=SMALL, supports=2, iterations=3, gates=1),
    AdaptLstsq(f0=SMALL, supports=2, iterations=2, gates=1),
    AdaptL1(f0=SMALL, supports=2, gates=2),
]


@dataclass(frozen=True, eq=False)
class Rule:
    """A linear score of the columns; all their sensors are bought."""

    weights: Any
    prices: Prices
    splits: float = 0.0
    trees: float = 0.0
    slope: float = 1.0
    intercept: float = 0.0

    def predict_path(self, features):
        """A useless first point, and the full model."""
        score = np.nan_to_num(features.X.astype(float)) @ self.weights
        mask = np.zeros((1, self.prices.sensors), dtype=bool)
        for j in np.flatnonzero(self.weights):
            mask[0, self.prices.sensors_of(int(j))] = True
        bill = Bill(Acquired.pack(mask), self.splits, self.trees)
        yield Prediction({"part": 1}, 0 * score, {"path": bill, "model": bill})
        line = self.slope * score + self.intercept
        yield Prediction({"part": 2}, line, {"path": bill, "model": bill})

    def state(self):
        """The weights; in these tests the model around it supplies the prices."""
        more = [self.splits, self.trees, self.slope, self.intercept]
        return {"weights": self.weights, "sensor": self.prices.sensor, "more": more}

    @classmethod
    def from_state(cls, state):
        prices = Prices.additive(state["sensor"])
        return cls(np.asarray(state["weights"]), prices, *state["more"])


@dataclass(frozen=True)
class Fixed:
    """A learner whose model is a ``Rule`` that needs no fitting."""

    name: ClassVar[str] = "fixed"
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.BINARY, Task.RANKING})

    weights: tuple[float, ...] = (1.0, 1.0)
    slope: float = 1.0
    intercept: float = 0.0

    def fit(self, train, valid, prices, context):
        weights = np.array(self.weights)
        return Rule(weights, prices, slope=self.slope, intercept=self.intercept)


def fitted(learner, splits, **more):
    """Fit a learner and the learners it needs."""
    splits = splits.complete()
    context = FakeContext(splits.task, splits.classes, **more)
    return fit_after_needs(learner, splits.train, splits.valid, splits.prices, context)


def cheapest(model, splits, loss=0.0):
    """Test cost, test accuracy and f0's test cost at the point of least validation cost. Its
    validation accuracy must be at least f0's minus ``loss``."""
    _, right, paid = curve(model, splits.valid, splits.prices)
    good = np.flatnonzero(right >= right[-1] - loss)
    chosen = good[np.argmin(paid[good])]
    _, accuracy, cost = curve(model, splits.test, splits.prices)
    return float(cost[chosen]), float(accuracy[chosen]), float(cost[-1])


def binary(X, y, prices, multiplicity=None):
    """The same rows as all three splits."""
    part = Examples(np.asarray(X, dtype=np.float32), np.asarray(y, float), None, multiplicity)
    return Splits(part, part, part, prices=prices, task=Task.BINARY, classes=2)


def noisy(n=200, features=4, seed=0):
    """A curved border on the first three of some features of rising price."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, features))
    y = X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=n) > 0
    return binary(X, y, Prices.additive(np.arange(1.0, features + 1)))


def rows(n=40, seed=0, words=1):
    """Training rows of uneven multiplicity with random losses of f0."""
    rng = np.random.default_rng(seed)
    share = rng.integers(1, 4, n).astype(float)
    return TrainingRows(
        sign=np.where(rng.random(n) < 0.5, -1.0, 1.0),
        share=share / share.sum(),
        loss0=rng.exponential(0.3, n),
        bits0=np.ones((n, words), dtype=np.uint64),
        evaluation0=np.zeros(n),
    )
