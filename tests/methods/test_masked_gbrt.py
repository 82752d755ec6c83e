"""``masked-gbrt`` by itself: one order for all rows."""

import numpy as np
from bench_methods.masked_gbrt import MaskedGbrt
from helpers.fakes import FakeContext

from bench_core import Examples, Features, Prices, Task

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
