"""Plain boosting against boosting with scikit-learn's exact trees."""

from __future__ import annotations

import numpy as np
from bench_methods.gbrt import GBRT
from helpers.boosted_cases import fit, path
from sklearn.tree import DecisionTreeRegressor

from bench_core import Examples, Task, price_list


def test_with_a_bin_per_value_every_prefix_is_that_of_exact_boosting() -> None:
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


def test_a_path_tells_the_cost_of_every_prefix() -> None:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    train = Examples(X, (X[:, 0] > 0) * 4.0 + (X[:, 1] > 0))
    at = price_list(np.array([2.0, 3.0, 50.0]), split=0.5)
    learner = GBRT(trees=2, depth=1, leaves=2, learning_rate=1.0)
    one, two = path(fit(learner, train, Task.REGRESSION, at), train)
    assert one.bills["path"].feature_cost(at, 200).tolist() == [2.0] * 200
    assert two.bills["path"].feature_cost(at, 200).tolist() == [5.0] * 200
    assert two.bills["path"].evaluation_cost(at, 200).tolist() == [1.0] * 200


def test_costs_do_not_steer_it() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    train = Examples(X, X[:, 0] + X[:, 1] ** 2)
    cheap, expensive = (
        path(fit(GBRT(trees=5), train, Task.REGRESSION, price_list(c)), train)[-1]
        for c in (np.ones(3), np.array([1e6, 1.0, 0.0]))
    )
    assert cheap.scores.tobytes() == expensive.scores.tobytes()
