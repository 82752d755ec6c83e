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


@pytest.mark.parametrize(
    ("at", "wanted", "expected"),
    [
        # the paper's limits divide prices of their kind
        ([1, 5, 20, 50, 100, 150, 200], None, {1: 1, 20: 3, 100: 5, 200: 7}),
        # and quartiles those of another kind
        ([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], None, {0.2: 2, 0.4: 4, 0.6: 6, 0.8: 8}),
        # equal prices leave one model
        ([1, 1, 1], None, {1: 3}),
        ([0, 0], None, {0: 2}),
        # limits of one's own end with all features
        ([1, 5, 50], [0.5, 2, 3], {2: 1, 50: 3}),
    ],
)
def test_features_up_to_each_limit_are_a_subset(at, wanted, expected):
    found = limited(price_list(np.array(at, dtype=float)), wanted)
    subsets = {limit: np.flatnonzero(features).tolist() for limit, features in found}
    assert subsets == {limit: [*range(count)] for limit, count in expected.items()}


def test_what_is_free_with_the_subset_belongs_to_it():
    at = price_list(np.array([15.0, 15.0, 3.0, 100.0]), derived={2: [0, 1]})
    found = limited(at, [20.0])  # alone feature 2 costs 30
    assert np.flatnonzero(found[0][1]).tolist() == [0, 1, 2]


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
