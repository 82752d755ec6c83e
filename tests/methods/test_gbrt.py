"""Plain boosting against scikit-learn's exact trees, also on features up to some cost."""

import numpy as np
import pytest
from bench_methods.gbrt import GBRT
from bench_methods.gbrt_subset import SubsetGBRT, limited
from helpers.boosted_cases import examples, fit, mean_cost, path, prices
from sklearn.tree import DecisionTreeRegressor

from bench_core import Examples, Task, price_list


def test_with_a_bin_per_value_every_prefix_is_that_of_exact_boosting():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 100, size=(200, 4)).astype(np.float32)
    y = X[:, 0] ** 2 / 100 + X[:, 1] - 0.5 * X[:, 2] + rng.normal(size=200)
    train = Examples(X, y)
    learner = GBRT(trees=20, depth=3, leaves=8, min_rows=2, learning_rate=0.3)
    got = path(fit(learner, train, Task.REGRESSION, price_list(np.ones(4))), train)
    theirs = np.full(200, y.mean())
    for ours in got:
        peer = DecisionTreeRegressor(max_depth=3, min_samples_leaf=2, random_state=0)
        theirs += 0.3 * peer.fit(X, y - theirs).predict(X)
        assert np.allclose(ours.scores, theirs, rtol=1e-9)


def test_costs_do_not_steer_it():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    train = Examples(X, X[:, 0] + X[:, 1] ** 2)
    cheap, expensive = (
        path(fit(GBRT(trees=5), train, Task.REGRESSION, price_list(c)), train)[-1]
        for c in (np.ones(3), np.array([1e6, 1.0, 0.0]))
    )
    assert cheap.scores.tobytes() == expensive.scores.tobytes()


def limits(cost, wanted=None):
    found = limited(price_list(np.array(cost)), wanted)
    return {limit: np.flatnonzero(features).tolist() for limit, features in found}


def test_the_papers_limits_divide_prices_of_their_kind():
    yahoo = [1.0, 5.0, 20.0, 50.0, 100.0, 150.0, 200.0]
    assert limits(yahoo) == {
        1: [0],
        20: [0, 1, 2],
        100: [0, 1, 2, 3, 4],
        200: [0, 1, 2, 3, 4, 5, 6],
    }


def test_quartiles_divide_prices_of_another_kind():
    cost = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
    assert limits(cost) == {
        0.2: [0, 1],
        0.4: [0, 1, 2, 3],
        0.6: [0, 1, 2, 3, 4, 5],
        0.8: list(range(8)),
    }


def test_equal_prices_leave_one_model():
    assert limits([1.0, 1.0, 1.0]) == {1.0: [0, 1, 2]}
    assert limits([0.0, 0.0]) == {0.0: [0, 1]}


def test_limits_of_ones_own_end_with_all_features():
    assert limits([1.0, 5.0, 50.0], [0.5, 2.0, 3.0]) == {2.0: [0], 50.0: [0, 1, 2]}


def test_what_is_free_with_the_subset_belongs_to_it():
    at = price_list(np.array([15.0, 15.0, 3.0, 100.0]), derived={2: [0, 1]})
    found = limited(at, [20.0])  # alone feature 2 costs 30
    assert np.flatnonzero(found[0][1]).tolist() == [0, 1, 2]


def test_the_last_point_is_plain_boosting():
    train = examples(Task.REGRESSION)
    ours = path(fit(SubsetGBRT(trees=20), train, Task.REGRESSION), train)
    plain = path(fit(GBRT(trees=20), train, Task.REGRESSION), train)
    assert ours[-1].scores.tolist() == plain[-1].scores.tolist()
    assert mean_cost(ours[-1], prices()) == mean_cost(plain[-1], prices())


def test_no_point_pays_for_a_feature_above_its_limit():
    train = examples(Task.REGRESSION)
    points = path(fit(SubsetGBRT(trees=10), train, Task.REGRESSION), train)
    most = {1: 1.0, 20: 26.0, 100: 76.0}  # features cost 1, 5, 20 and 50
    for p in points:
        assert mean_cost(p, prices()) <= most[int(p.point["cost_up_to"])]
    assert mean_cost(points[-1], prices()) > 26


@pytest.mark.parametrize("trees", [0, 3, 250])
def test_a_path_has_at_most_a_hundred_points_and_whole_models_among_them(trees):
    train = examples(Task.BINARY, n=100)
    points = path(fit(SubsetGBRT(trees=trees, min_rows=1), train, Task.BINARY), train)
    assert len(points) <= 100
    most = {}
    for p in points:
        most[p.point["cost_up_to"]] = p.point["trees"]
    assert len(most) == 3
    assert set(most.values()) == {trees}
