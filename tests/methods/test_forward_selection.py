"""Boosting on features selected forward by held-out gain per price."""

from dataclasses import replace

import numpy as np
import pytest
from bench_methods.forward_selection import SELECTION_ROWS, ForwardSelection
from bench_models.nested_sets.held_out import HeldOutFit, divided
from bench_trees import Settings
from helpers.boosted_cases import bought, coins, examples, prices, subsets
from helpers.fakes import FakeContext

from bench_core import DiscountGroup, Examples, Queries, Task, price_list

QUICK = ForwardSelection(trees=20, learning_rate=0.4, min_rows=5, leaves=4)


THREE = np.array([30.0, 4.0, 2.0])
GROUP = [DiscountGroup((0, 1), (1.0, 1.0))]


@pytest.mark.parametrize(
    ("learner", "weights", "at", "expected"),
    [
        # gains 9/2, 4/2, 1/2 at prices 30, 4, 2 are .15, .5 and .25 per price
        (QUICK, (3, 2, 1), price_list(THREE), [[], [1], [1, 2], [0, 1, 2]]),
        # by gain alone
        (
            replace(QUICK, price_power=0.0),
            (3, 2, 1),
            price_list(THREE),
            [[], [0], [0, 1], [0, 1, 2]],
        ),
        # alone columns 0 and 1 gain 1/2 each; together they cost 3 and column 2 costs 2
        (
            QUICK,
            (1, 1, 1.1),
            price_list(np.array([3.0, 3.0, 2.0]), shared=[[0, 1]]),
            [[], [0, 1], [0, 1, 2]],
        ),
        # a discount makes the second of a group the next
        (
            QUICK,
            (3, 2, 2.2),
            price_list(np.array([4.0, 4.0, 3.0]), discounted=GROUP),
            [[], [0], [0, 1], [0, 1, 2]],
        ),
        # free features are there from the start
        (QUICK, (1, 1), price_list(np.array([0.0, 5.0])), [[0], [0, 1]]),
        (QUICK, (1, 1), price_list(np.zeros(2)), [[0, 1]]),
    ],
    ids=["per price", "by gain", "shared", "discounted", "one free", "all free"],
)
def test_the_purchase_of_highest_gain_per_price_comes_next(learner, weights, at, expected):
    assert bought(learner, coins(*weights), at) == expected


def test_what_helps_only_together_is_bought_together():
    """y = x0 + x0 x1: alone x1 explains nothing, beside x0 as much as x0, and x2 a quarter."""
    X = coins(0, 0, 0, 0).X
    f = X.astype(float)
    train = Examples(X, f[:, 0] + f[:, 0] * f[:, 1] + 0.5 * f[:, 2])
    got = bought(QUICK, train, price_list(np.ones(4)))
    assert got[1:3] == [[0], [0, 1]]


def test_noise_is_not_fitted_on_however_many_trees_are_allowed():
    train, valid = coins(1.0, n=200), coins(1.0, n=200, seed=1)
    noise = np.random.default_rng(2)
    train, valid = (replace(e, y=e.y + 2 * noise.normal(size=200)) for e in (train, valid))
    fine = (Examples(e.X + noise.random(e.X.shape).astype(np.float32), e.y) for e in (train, valid))
    train, valid = fine
    learner = ForwardSelection(min_rows=2)
    model = learner.fit(train, valid, price_list(np.ones(1)), FakeContext(Task.REGRESSION))
    assert 0 < model.models[-1].ensemble.trees < 30


def held_out(of):
    return divided(of, most=SELECTION_ROWS)


def rows(parts):
    return [(len(fitted.train), len(other)) for fitted, other in parts]


def test_each_row_is_held_out_once_where_there_are_few():
    train = replace(examples(Task.REGRESSION), y=np.arange(300.0))
    parts = held_out(subsets(train, Task.REGRESSION))
    assert rows(parts) == [(240, 60)] * 5
    assert np.sort(np.concatenate([other.y for _, other in parts])).tolist() == train.y.tolist()
    for fitted, other in parts:
        assert not set(fitted.train.y.tolist()) & set(other.y.tolist())


def test_of_many_rows_a_fifth_of_some_is_held_out_once():
    train = examples(Task.REGRESSION, n=12000)
    assert rows(held_out(subsets(train, Task.REGRESSION))) == [(8000, 2000)]


def test_queries_are_held_out_whole_and_classes_alike():
    train = examples(Task.RANKING)
    for fitted, other in held_out(subsets(train, Task.RANKING)):
        assert other.queries.sizes.tolist() == [10] * 6
        assert fitted.train.queries.rows == len(fitted.train) == 240
    train = replace(examples(Task.BINARY), y=np.repeat([0.0, 1.0], [290, 10]))
    parts = held_out(subsets(train, Task.BINARY))
    assert [float(other.y.sum()) for _, other in parts] == [2.0] * 5


def test_a_query_alone_judges_itself():
    train = replace(examples(Task.RANKING), queries=Queries.from_sizes(np.array([300])))
    assert rows(held_out(subsets(train, Task.RANKING))) == [(300, 300)]


def test_lambdarank_is_judged_by_the_metric():
    train = examples(Task.RANKING)
    start = HeldOutFit.begin(subsets(train, Task.RANKING, loss="lambdarank"), train)
    assert start.more(np.ones(4, dtype=bool), Settings(trees=20)).loss < start.loss < 0
    got = bought(replace(QUICK, loss="lambdarank", trees=10), train, prices(), Task.RANKING)
    assert [len(features) for features in got] == [0, 1, 2, 3, 4]
