"""Forests with their defaults on made data whose features differ much in price."""

import numpy as np
import pytest
from bench_methods.budget_forest import BudgetPrune, BudgetRF
from bench_methods.gbrt import GBRT
from helpers.boosted_cases import path
from helpers.fakes import FakeContext

from bench_core import Examples, Task, price_list

ROWS = 2400


def weak_and_cheap(rng):
    """The dearer a feature, the more it tells; cheap ones tell next to nothing."""
    X = rng.normal(size=(ROWS, 20))
    weight = np.repeat([0.1, 0.5, 1.5], [12, 5, 3])
    return X, X @ weight + 0.5 * rng.normal(size=ROWS) > 0, np.repeat([1.0, 10, 50], [12, 5, 3])


def six_classes(rng):
    """Classes that cheap features hardly tell apart and expensive ones well."""
    y = rng.integers(0, 6, ROWS)
    centre = rng.normal(size=(6, 16)) * np.repeat([0.25, 1.2], [10, 6])
    return rng.normal(size=(ROWS, 16)) + centre[y], y, np.repeat([1.0, 20], [10, 6])


def cheap_noise(rng):
    """Twenty cheap features of noise beside five expensive ones."""
    X = rng.normal(size=(ROWS, 25))
    told = np.sin(2 * X[:, 20]) + X[:, 21] * X[:, 22] + 0.8 * X[:, 23]
    return X, told + 0.5 * rng.normal(size=ROWS) > 0.6, np.repeat([1.0, 30], [20, 5])


def rare_class(rng):
    """The first with one row in fourteen of class 1."""
    X, _, cost = weak_and_cheap(rng)
    told = X @ np.repeat([0.1, 0.5, 1.5], [12, 5, 3]) + 0.5 * rng.normal(size=ROWS)
    return X, told > np.quantile(told, 13 / 14), cost


def mere_noise(rng):
    """Nothing tells anything; three in ten are of class 1."""
    return rng.normal(size=(ROWS, 15)), rng.random(ROWS) < 0.3, np.repeat([1.0, 20], [10, 5])


def accuracy(prediction, rows):
    scores = prediction.scores
    guess = scores > 0 if scores.ndim == 1 else scores.argmax(axis=1)
    return float(np.mean(guess == rows.y))


def chosen(learner, parts, at, classes):
    """Test accuracy at the point of best validation accuracy, the cheapest such."""
    train, valid, test = parts
    task = Task.BINARY if classes == 2 else Task.MULTICLASS
    context = FakeContext(task, classes)
    if isinstance(learner, BudgetPrune):
        context.models = {learner.base: learner.base.fit(train, valid, at, context)}
    model = learner.fit(train, valid, at, context)
    best = int(np.argmax([accuracy(p, valid) for p in path(model, valid)]))
    return accuracy(path(model, test)[best], test)


@pytest.mark.slow
@pytest.mark.parametrize("made", [weak_and_cheap, six_classes, cheap_noise, rare_class, mere_noise])
def test_with_their_defaults_they_are_worth_what_they_cost(made):
    X, y, cost = made(np.random.default_rng(7))
    X, y = X.astype(np.float32), y.astype(np.float64)
    cuts = (slice(0, 1200), slice(1200, 1600), slice(1600, ROWS))
    parts = [Examples(X[some], y[some]) for some in cuts]
    test, classes = parts[2], int(y.max()) + 1
    constant = np.bincount(parts[0].y.astype(int)).argmax()
    floor = float(np.mean(test.y == constant))
    noise = 2 * np.sqrt(floor * (1 - floor) / len(test))
    at = price_list(cost)
    boosted = chosen(GBRT(trees=60), parts, at, classes) - floor
    for learner in (BudgetRF(), BudgetPrune()):
        gained = chosen(learner, parts, at, classes) - floor
        assert gained > -noise, learner.name
        assert gained > 0.5 * boosted or boosted < 2 * noise, learner.name
