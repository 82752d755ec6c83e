"""CEGB against its gain, written out, its variants, and its claims on real costs."""

import numpy as np
import pytest
from bench_methods.cegb import CEGB
from helpers.boosted_cases import examples, fit, path

from bench_core import Examples, Task, price_list


def gate_data():
    """Feature 0 halves the rows; feature 1 matters in one half only, feature 2 in both."""
    grid = np.array(
        [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 20, dtype=np.float32
    )
    return Examples(grid, 8.0 * grid[:, 0] + 2.0 * grid[:, 0] * grid[:, 1] + grid[:, 2])


def tree(train, at, **how):
    learner = CEGB(**{"trees": 1, "learning_rate": 1.0, "min_rows": 1, **how})
    return fit(learner, train, Task.REGRESSION, at).ensemble


def used(ensemble):
    return [int(f) for f in ensemble.feature if f >= 0]


def test_each_row_pays_for_its_own_path_so_a_feature_may_be_bought_in_one_branch():
    train, at = gate_data(), price_list(np.array([1.0, 1.0, 1.0]))
    # a row of the half with feature 0 = 1 gains 1/2 from feature 1, every row 1/8 from feature 2;
    # at 0.3 a row the first is worth its price for that half, but not for all rows
    loss = float(train.y.var()) / 2
    per_unit = 3 * 0.3 / loss  # a feature costs 0.3 a row
    ensemble = tree(train, at, tradeoff=per_unit)
    assert used(ensemble) == [0, 1]
    at_once = tree(train, at, tradeoff=per_unit, acquisition="all-rows")
    assert used(at_once) == [0]


@pytest.mark.parametrize(("price", "expected"), [(0.1, 3), (0.2, 2), (0.6, 1), (20.0, 0)])
def test_a_split_is_made_while_it_gains_more_than_its_rows_pay_for_it(price, expected):
    # gains per row of its leaf: feature 0 about 10, feature 1 in its half 1/2, feature 2 1/8
    train = gate_data()
    at = price_list(np.zeros(3), split=1.0)
    ensemble = tree(train, at, tradeoff=3 * price / (float(train.y.var()) / 2))
    assert len(set(used(ensemble))) == expected


def test_uniform_training_costs_ignore_which_feature_is_dear():
    train = examples(Task.REGRESSION)
    expensive = np.array([1.0, 5.0, 20.0, 50.0])
    true = CEGB(trees=10, tradeoff=0.5)
    ablated = CEGB(trees=10, tradeoff=0.5, train_costs="uniform")
    at, flat = price_list(expensive), price_list(np.full(4, 19.0))
    a, b, c = (
        path(fit(learner, train, Task.REGRESSION, p), train)[-1].scores.tolist()
        for learner, p in ((ablated, at), (true, flat), (true, at))
    )
    assert a == b
    assert a != c


def test_the_raw_stop_rule_goes_on_where_the_net_rule_ends():
    train = examples(Task.REGRESSION)
    how = {"trees": 5, "tradeoff": 50.0}
    net = fit(CEGB(**how), train, Task.REGRESSION)
    raw = fit(CEGB(stop="raw", **how), train, Task.REGRESSION)
    assert net.ensemble.trees == 0
    assert raw.ensemble.trees == 5


def test_depth_is_unlimited_unless_asked_for():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 1)).astype(np.float32)
    train = Examples(X, np.exp(3 * X[:, 0].astype(float)))
    at = price_list(np.zeros(1), split=1.0)

    def costliest(depth):
        learner = CEGB(trees=1, tradeoff=1e-4, leaves=16, depth=depth, min_rows=1)
        last = path(fit(learner, train, Task.REGRESSION, at), train)[-1]
        return float(np.max(last.bills["path"].splits))

    assert costliest(None) > 4
    assert costliest(4) == 4


def test_lambda_is_tau():
    facts = fit(CEGB(trees=1), examples(Task.REGRESSION), Task.REGRESSION).facts
    assert facts["lambda"] == facts["tau"] > 0
