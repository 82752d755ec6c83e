"""Serving a pair in front of f0: who is asked, who pays what, blocks, states, nesting."""

from __future__ import annotations

from typing import Any

import numpy as np
from bench_methods.adapt.model import AdaptModel, GatedPair
from bench_models.staged import Point, Stage, StagedModel
from helpers.adapt_cases import Rule

from bench_core import DiscountGroup, Features, Prices, price_list

PRICES = price_list(
    np.array([1.0, 2.0, 4.0, 7.0, 6.0]),
    discounted=[DiscountGroup((3, 4), (5.0, 4.0))],
    split=0.5,
    tree=0.25,
)


def linear(weights: dict[int, float], bias: float, prices: Prices = PRICES) -> StagedModel:
    stage = Stage(
        np.array(list(weights), dtype=np.int64), np.array(list(weights.values())), np.array([bias])
    )
    return StagedModel([stage], [Point(0, {})], prices)


def model(prices: Prices = PRICES, f0: Any = None) -> AdaptModel:
    """The gate reads feature 0, f1 features 0 and 3, f0 features 1 and 4."""
    gate, f1 = linear({0: 1.0}, 0.0, prices), linear({0: 1.0, 3: 10.0}, 0.0, prices)
    large = f0 or Rule(np.array([0, 1.0, 0, 0, 1.0]), prices, splits=3.0, trees=2.0)
    pair = GatedPair(f1, gate, 2, [(2.5, 0.25), (0.0, 0.5)])
    return AdaptModel([pair], large, prices, {"why": "test"})


X = np.array([[1, 5, 0, 0, 7], [3, 5, 0, 0, 8], [-1, 5, 0, 2, 9]], dtype=np.float32)


def test_rows_above_the_threshold_are_f0s_and_the_others_f1s() -> None:
    first, second, last = model().predict_path(Features(X))
    assert first.scores.tolist() == [1, 13, 19]
    assert second.scores.tolist() == [12, 13, 19]
    assert last.scores.tolist() == [12, 13, 14]
    assert [dict(p.point) for p in (first, second, last)] == [
        {"features": 2, "sent": 0.25},
        {"features": 2, "sent": 0.5},
        {"features": 0, "sent": 1.0},
    ]


def test_a_row_pays_for_the_gate_and_for_the_model_that_answers() -> None:
    first, _, last = (p.bills["path"] for p in model().predict_path(Features(X)))
    # kept: feature 0 and, of the group, what is common (2) and its own 5; sent: 0, 1 and 2 + 4
    assert first.feature_cost(PRICES, 3).tolist() == [1 + 7, 1 + 2 + 6, 1 + 7]
    assert first.evaluation_cost(PRICES, 3).tolist() == [0, 3 * 0.5 + 2 * 0.25, 0]
    assert last.feature_cost(PRICES, 3).tolist() == [2 + 6] * 3
    assert last.evaluation_cost(PRICES, 3).tolist() == [2.0] * 3


def test_a_sensor_shared_by_gate_and_f0_is_paid_once() -> None:
    shared = price_list(np.array([4.0, 4.0, 1, 1, 1]), shared=[[0, 1]])
    first = next(iter(model(shared).predict_path(Features(X))))
    assert first.bills["path"].feature_cost(shared, 3).tolist() == [5, 5, 5]


def test_the_released_bill_charges_rows_that_are_sent_for_f0_alone() -> None:
    first, _, last = (p.bills["adapt-released"] for p in model().predict_path(Features(X)))
    assert first.feature_cost(PRICES, 3).tolist() == [8, 8, 8]
    assert first.evaluation_cost(PRICES, 3).tolist() == [0, 2, 0]
    assert last.feature_cost(PRICES, 3).tolist() == [8, 8, 8]


def test_f0_is_asked_about_each_row_once() -> None:
    served = model()
    assert len(list(served.predict_path(Features(X)))) == 3
    assert served.f0.asked == [3]


def test_an_adapt_model_may_stand_behind_another_gate() -> None:
    inner = model()
    outer = AdaptModel(
        [GatedPair(linear({2: 1.0}, -5.0), linear({0: 1.0}, 0.0), 2, [(2.0, 0.3)])], inner, PRICES
    )
    first, last = outer.predict_path(Features(X))
    assert first.scores.tolist() == [-5, 13, -5]
    assert first.bills["path"].feature_cost(PRICES, 3).tolist() == [5, 9, 5]
    assert last.scores.tolist() == [12, 13, 14]
