"""``backward-induction``: against exact dynamic programming on counts, and where one step is not
enough."""

import numpy as np
import pytest
from bench_methods.backward_induction import BackwardInduction
from helpers.boosted_cases import curve
from helpers.fakes import FakeContext

from bench_core import Examples, Features, Prices, Task

CONTEXT = FakeContext(Task.BINARY, 2)


def fitted(X, y, price, **more):
    learner = BackwardInduction(trees=40, **more)
    return learner.fit(Examples(X, y), Examples(X, y), Prices.additive(np.array(price)), CONTEXT)


def bits(rows, columns):
    return np.random.default_rng(0).integers(0, 2, (rows, columns)).astype(np.float32)


def reached(X, y, price):
    """Price of money, mean cost and accuracy of each point."""
    model = fitted(X, y, price)
    points, right, cost = curve(model, Examples(X, y), model.prices)
    return zip([point["price"] for point in points], cost, right, strict=True)


def test_a_gate_that_is_worthless_alone_is_bought_first():
    # feature 0 says which of 1 and 2 is the label: by hand, accuracy is at most .5 + cost / 4, and
    # whoever looks one step ahead buys 1 or 2 first
    X = bits(3000, 3)
    y = np.where(X[:, 0] > 0, X[:, 1], X[:, 2]).astype(np.float64)
    points = [*reached(X, y, [1.0, 1.0, 1.0])]
    assert all(right <= 0.5 + cost / 4 + 0.03 for _, cost, right in points)
    assert any(cost < 2.05 and right > 0.98 for _, cost, right in points)


def test_no_more_is_spent_than_a_right_answer_is_worth():
    # feature 0 is the label, feature 1 nothing; .5 more right answers for a cost of 3
    X = bits(2000, 2)
    for price, cost, right in reached(X, X[:, 0].astype(np.float64), [3.0, 1.0]):
        if price > 0.2:
            assert cost == 0
        elif 0 < price < 0.15:
            assert cost == pytest.approx(3, abs=0.01)
            assert right == 1


def test_of_many_purchases_those_that_gain_most_alone_are_considered(monkeypatch):
    monkeypatch.setattr("bench_methods.backward_induction.MOST", 4)
    X = bits(1500, 7)
    y = (X[:, 3:6].sum(axis=1) > 1).astype(np.float64)
    model = fitted(X, y, [1.0] * 7, points=6)
    *_, last = model.predict_path(Features(X))
    bought = last.bills["path"].acquired.unpack().any(axis=0)
    assert bought[3:6].all()
    assert bought.sum() <= 4
    assert ((last.scores > 0) == y).mean() > 0.99


def test_a_cap_is_kept_by_what_can_still_be_paid():
    X = bits(2000, 3)
    y = (X[:, 0] + X[:, 1] > 1).astype(np.float64)
    model = fitted(X, y, [2.0, 1.0, 1.0], points=6)
    prediction = model.predict_capped(Features(X), 2.5, model.prices)
    cost = prediction.bills["path"].acquired.cost(model.prices.sensor)
    assert cost.max() <= 2.5
    assert float(((prediction.scores > 0) == y).mean()) >= 0.74  # one feature of two: 3/4
