"""The baselines: a constant, and three orders of buying features."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from bench_methods.baselines import CheapestFirst, Constant, GreedyOrder, RandomOrder
from bench_trees import Settings
from helpers.boosted_cases import bought, coins, examples, fit, mean_cost, path, prices, subsets

from bench_core import Examples, Task, price_list


def test_the_constant_is_the_mean_and_costs_nothing():
    train = examples(Task.REGRESSION)
    (only,) = path(fit(Constant(), train, Task.REGRESSION), train)
    assert only.scores.tolist() == [train.y.mean()] * 300
    assert mean_cost(only, prices()) == 0


def test_the_constant_of_classes_is_their_shares_copies_counted():
    train = Examples(
        np.zeros((3, 4), dtype=np.float32),
        np.array([0.0, 1.0, 2.0]),
        multiplicity=np.array([5, 3, 2]),
    )
    (only,) = path(fit(Constant(), train, Task.MULTICLASS), train)
    assert np.exp(only.scores[0]).tolist() == pytest.approx([0.5, 0.3, 0.2])
    binary = replace(train, y=np.array([1.0, 0.0, 0.0]))
    (only,) = path(fit(Constant(), binary, Task.BINARY), train)
    assert only.scores.tolist() == pytest.approx([0.0] * 3)


CHEAPEST = CheapestFirst(trees=20, learning_rate=0.3, min_rows=1)
GREEDY = GreedyOrder(trees=60, learning_rate=0.3, min_rows=1)
RANDOM = RandomOrder(trees=30, learning_rate=0.3, min_rows=1)


@pytest.mark.parametrize(
    ("learner", "weights", "price", "shared", "expected"),
    [
        (CHEAPEST, [1, 1, 1, 1], [7, 1, 5, 3], [], [[], [1], [1, 3], [1, 2, 3], [0, 1, 2, 3]]),
        (CHEAPEST, [1, 1, 1], [1, 1, 1], [], [[], [0], [0, 1], [0, 1, 2]]),
        # free ones are there from the start, and shared ones come along
        (CHEAPEST, [1, 1, 1, 1], [0, 9, 4, 4], [[2, 3]], [[0], [0, 2, 3], [0, 1, 2, 3]]),
        # explained variances 9, 4, 1 at prices 30, 4, 2 are .3, 1 and .5 per price
        (GREEDY, [3, 2, 1], [30, 4, 2], [], [[], [1], [1, 2], [0, 1, 2]]),
    ],
)
def test_features_are_bought_in_the_order_of_the_baseline(
    learner, weights, price, shared, expected
):
    at = price_list(np.array(price, dtype=float), shared=shared)
    assert bought(learner, coins(*weights), at) == expected


def test_greedy_does_not_buy_twice_what_it_knows_already():
    train = coins(3.0, 1.0, 0.0)
    X = train.X.copy()
    X[:, 2] = X[:, 0]  # a copy of the best feature, at the same price
    got = bought(GREEDY, replace(train, X=X), price_list(np.ones(3)))
    assert got[1:3] == [[0], [0, 1]]


def test_gains_are_what_the_means_of_bins_explain():
    rng = np.random.default_rng(3)
    X = rng.integers(0, 3, size=(90, 2)).astype(np.float32)
    X[:9, 0] = np.nan
    y = rng.normal(size=90)
    m = rng.integers(1, 4, 90)
    train = Examples(X, y, multiplicity=m)
    of = subsets(train, Task.REGRESSION, price_list(np.ones(2)), Settings(trees=1))
    mean = np.average(y, weights=m)
    residual = y - mean
    expected = []
    for column in X.T:
        groups = [np.isnan(column), *(column == v for v in range(3))]
        means = sum(
            np.where(g, np.average(residual[g], weights=m[g]), 0.0) for g in groups if g.any()
        )
        expected.append(float((m * (residual**2 - (residual - means) ** 2)).sum()) / 2)
    assert of.explained(np.full((1, 90), mean)).tolist() == pytest.approx(expected)


def test_a_random_order_is_drawn_from_the_seed():
    train, at = coins(*[1.0] * 6), price_list(np.ones(6))
    one, again, other = (bought(RANDOM, train, at, seed=s) for s in (1, 1, 2))
    assert one == again
    assert one != other
    assert all(set(a) < set(b) for a, b in pairwise(one))


@pytest.mark.parametrize("learner", [CHEAPEST, GREEDY, RANDOM], ids=lambda one: one.name)
def test_where_everything_is_free_there_is_one_model_of_everything(learner):
    train = examples(Task.REGRESSION)
    found = path(fit(learner, train, Task.REGRESSION, price_list(np.zeros(4))), train)
    assert [dict(p.point) for p in found] == [{"features": 4}]
