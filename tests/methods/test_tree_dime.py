"""``tree-dime``: purchases by expected fall of the loss per price."""

from functools import cache

import numpy as np
import pytest
from bench_methods.masked_gbrt import MaskedGbrt
from bench_methods.tree_dime import TreeDime
from helpers.fakes import FakeContext

from bench_core import Examples, Features, Prices, Task

PREDICTOR = MaskedGbrt(parts=2, trees=100)


def opposites(n, seed=0):
    """Whether features 0 and 1 have one sign; feature 2 knows it for 65% of the rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    y = (X[:, 0] * X[:, 1] > 0).astype(np.float64)
    X[:, 2] = np.where(rng.random(n) < 0.65, y, 1 - y)
    return Examples(X, y)


def gated(n, seed=0):
    """Feature 0 says whether feature 1 or feature 2 has the label."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    y = np.where(X[:, 0] > 0, X[:, 1] > 0, X[:, 2] > 0).astype(np.float64)
    return Examples(X, y)


@cache
def fitted(problem, prices=(1.0,) * 4, **settings):
    train, valid = problem(1500), problem(500, 1)
    context, costs = FakeContext(Task.BINARY, 2), Prices.additive(np.array(prices))
    context.models = {PREDICTOR: PREDICTOR.fit(train, valid, costs, context)}
    learner = TreeDime(**{"predictor": PREDICTOR, "evaluations": 10000, "points": 12, **settings})
    return learner.fit(train, valid, costs, context)


def bought(model, test, cap):
    """What rows buy under a cap (n, s), and the accuracy."""
    found = model.predict_capped(Features(test.X), cap, model.prices)
    right = (found.scores > 0) == (test.y > 0)
    return found.bills["path"].acquired.unpack(), float(right.mean())


def test_what_a_feature_opens_decides_what_comes_next():
    test = gated(1000, 2)
    made, accuracy = bought(fitted(gated, lookahead=2), test, 2)
    gate = test.X[:, 0] > 0
    assert made[:, 0].mean() > 0.99
    assert made[gate, 1].mean() > 0.95
    assert made[~gate, 2].mean() > 0.95
    assert accuracy > 0.95


def test_features_that_help_only_together_are_seen_by_looking_ahead():
    test = opposites(1000, 2)
    near, far = (bought(fitted(opposites, lookahead=h), test, 2) for h in (1, 2))
    assert near[0][:, 2].mean() > 0.95  # the best of one purchase
    assert far[0][:, [0, 1]].mean() > 0.95
    assert far[1] > 0.9
    assert near[1] < 0.75


def test_the_fall_is_divided_by_the_price():
    def alike(n, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 4)).astype(np.float32)
        return Examples(X, (X[:, 0] + X[:, 1] + X[:, 2] > 0).astype(np.float64))

    made, _ = bought(fitted(alike, (4.0, 1.0, 2.0, 1.0), lookahead=1), alike(200, 2), 1)
    assert made.mean(axis=0).tolist() == [0, 1, 0, 0]


@pytest.mark.parametrize("skip", [True, False])
def test_a_row_that_cannot_pay_for_the_best_skips_it_or_stops(skip):
    def unlike(n, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 4)).astype(np.float32)
        return Examples(X, (X[:, 0] + 0.2 * X[:, 1] > 0).astype(np.float64))

    model = fitted(unlike, (3.0, 2.0, 9.0, 9.0), lookahead=1, skip=skip)
    made, _ = bought(model, unlike(200, 2), 2)
    assert made.mean(axis=0).tolist() == [0, int(skip), 0, 0]


def test_points_spend_more_and_more_and_keep_what_was_bought():
    path = list(fitted(gated, lookahead=2).predict_path(Features(gated(1000, 2).X)))
    made = np.array([p.bills["path"].acquired.unpack() for p in path])
    assert (made[:-1] <= made[1:]).all()
    assert not made[0].any()
    assert made[-1].all()
    money = [p.point["tradeoff"] for p in path]
    assert money == sorted(money, reverse=True)
    assert money[-1] == 0
    # all rows open the gate at one price, and what it opens is worth more; then step by step
    spent = made.sum(axis=2).mean(axis=1)
    assert spent[1] == pytest.approx(2, abs=0.05)
    assert np.diff(spent[1:]).max() < 0.6
