"""``masked-gbrt`` by itself: one order for all rows."""

from itertools import product

import numpy as np
import pytest
from bench_methods.masked_gbrt import MaskedGbrt
from bench_models.masked_predictor import code_of, masked
from helpers.fakes import FakeContext

from bench_core import Examples, Features, Prices, Purchases, Task

PRICES = Prices.additive(np.array([4.0, 1.0, 1.0, 0.0]))


def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 4)).astype(np.float32)
    y = (X[:, 0] + 0.7 * X[:, 1] > 0).astype(np.float64)
    learner = MaskedGbrt(trees=20, parts=2, copies=3)
    valid = Examples(X[:100], y[:100])
    return learner.fit(Examples(X, y), valid, PRICES, FakeContext(Task.BINARY, 2))


def test_purchases_are_made_by_information_per_price():
    model = fitted()
    X = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    path = list(model.predict_path(Features(X)))
    assert [p.point["purchases"] for p in path] == [0, 1, 2, 3]
    # feature 0 says more than feature 1, and not four times as much; feature 2 says nothing
    spent = [p.bills["path"].acquired.unpack()[0].tolist() for p in path]
    assert spent[0] == [False, False, False, True]
    assert spent[1] == [False, True, False, True]
    assert spent[2] == [True, True, False, True]


def test_a_cap_is_spent_on_what_can_be_paid():
    X = np.random.default_rng(1).normal(size=(5, 4)).astype(np.float32)
    prediction = fitted().predict_capped(Features(X), 2.5, PRICES)
    assert prediction.bills["path"].acquired.unpack().tolist() == [[False, True, True, True]] * 5


# features 1 and 2 have one sensor, feature 3 is free, feature 6 needs no sensor
START, NEEDED = np.array([0, 1, 2, 3, 4, 5, 6, 6]), np.array([0, 1, 1, 2, 3, 4])
GROUPS = Prices(
    START.astype(np.int32), NEEDED.astype(np.int32), np.array([1.0, 2.0, 0, 1, 1]), np.ones(7)
)


@pytest.mark.parametrize("prices", [GROUPS, Prices.additive(np.ones(7))], ids=["groups", "alone"])
@pytest.mark.parametrize("task", [Task.BINARY, Task.MULTICLASS])
def test_sets_that_are_walked_together_have_the_losses_of_single_ones(task, prices):
    """Some sets of some rows, and all sets of all rows."""
    rng, classes = np.random.default_rng(0), 2 if task is Task.BINARY else 3
    X = rng.normal(size=(300, 7)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    rows = Examples(X, rng.integers(0, classes, 300).astype(np.float64))
    learner, context = MaskedGbrt(trees=20, parts=3), FakeContext(task, classes)
    predictor = learner.fit(rows, rows, prices, context).policy.predictor
    part, purchases = rng.integers(0, 3, 300), Purchases.of(prices)

    def single(row, made):
        cells = masked(X[row], made, purchases, prices)
        return predictor.loss(predictor.cross_fitted(cells, made, part[row]), rows.y[row])

    row = rng.permutation(np.repeat(rng.choice(300, 40, replace=False), 150))
    made = rng.random((len(row), len(purchases))) < rng.random((len(row), 1))
    found = predictor.losses_of_sets(X, rows.y, part, row, made, prices)
    assert (found == single(row, made)).all()
    found = predictor.losses_of_all_sets(X, rows.y, part, prices)
    for bought in product((False, True), repeat=len(purchases)):
        made = np.tile(bought, (300, 1))
        assert (found[:, code_of(made)[0]] == single(np.arange(300), made)).all()
