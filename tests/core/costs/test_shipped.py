"""Per-query prices against hand calculations, brute force and plain sensor prices."""

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench_core import (
    Acquired,
    Bill,
    CostModel,
    DiscountGroup,
    Examples,
    Queries,
    SensorPrices,
    UsageError,
    price_list,
)
from bench_core.costs.model import costs_key, needs_of
from bench_core.costs.shipped import MODELS, PerQueryPrices, from_json, to_json

PRICES = SensorPrices.additive(np.array([1.0, 10.0, 100.0]), split=0.5, unit="ms")
SECOND_AND_THIRD = np.array([False, True, True])


def bought(*rows):
    """One text per row, x for each sensor bought."""
    return Acquired.pack(np.array([[mark == "x" for mark in row] for row in rows]))


def rows(n, d, queries=None):
    """Rows of zeros."""
    return Examples(np.zeros((n, d), np.float32), np.zeros(n), queries)


def test_a_sensor_per_query_is_paid_once_and_shared_by_all_rows_of_the_query():
    costs = PerQueryPrices.of(PRICES, SECOND_AND_THIRD)
    queries = Queries.from_sizes(np.array([2, 4, 1]))
    acquired = bought("xx-", "-x-", "---", "x-x", "--x", "-x-", "---")
    # query 1: 10 once, 5 each, the first row its own 1; query 2: 110 once, 27.5 each
    assert costs.feature_cost(acquired, queries).tolist() == [6, 5, 27.5, 28.5, 27.5, 27.5, 0]


def test_rows_without_queries_pay_every_sensor_themselves():
    costs = PerQueryPrices.of(PRICES, SECOND_AND_THIRD)
    assert costs.feature_cost(bought("xx-", "-x-"), None).tolist() == [11, 10]
    assert costs_key(costs.surrogate(rows(4, 3))) == costs_key(PRICES)


def test_the_surrogate_of_a_sensor_per_query_is_its_share_for_a_row_of_a_mean_query():
    costs = PerQueryPrices.of(PRICES, SECOND_AND_THIRD)
    train = rows(8, 3, Queries.from_sizes(np.array([2, 6])))
    assert costs.surrogate(train).sensor.tolist() == [1, 2.5, 25]


def test_copies_of_rows_share_the_surrogate_of_a_sensor_per_query_as_they_share_its_bill():
    costs = PerQueryPrices.of(PRICES, SECOND_AND_THIRD)
    copies = np.array([1, 3, 4])
    train = replace(rows(3, 3, Queries.from_sizes(np.array([2, 1]))), multiplicity=copies)
    everything = bought("xxx", "xxx", "xxx")
    bill = Bill(everything).feature_cost(costs, 3, train.queries, train.weights)
    paid = costs.surrogate(train).feature_cost(everything)
    assert np.average(bill, weights=copies) == np.average(paid, weights=copies) == 1 + 110 * 2 / 8


def test_a_state_that_cannot_be_kept_names_its_model_and_entry():
    class Odd(PerQueryPrices):
        name = "odd"

        def state(self):
            return {"fee": np.int64(3)}

    with pytest.raises(UsageError, match=r"cost model 'odd': its state\(\)\['fee'\] is np.int64"):
        costs_key(Odd.of(PRICES, SECOND_AND_THIRD))


@given(
    price=st.lists(st.floats(0, 1e6), min_size=1, max_size=70),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    seed=st.integers(0, 2**32),
)
def test_the_rows_of_a_query_sum_to_its_bill(price, sizes, seed):
    rng, queries = np.random.default_rng(seed), Queries.from_sizes(np.array(sizes))
    mask, marked = rng.random((queries.rows, len(price))) < 0.4, rng.random(len(price)) < 0.5
    costs = PerQueryPrices.of(SensorPrices.additive(np.array(price)), marked)
    cost = costs.feature_cost(Acquired.pack(mask), queries)
    for start, stop in zip(queries.boundaries[:-1], queries.boundaries[1:], strict=True):
        once = {s for i in range(start, stop) for s in np.flatnonzero(mask[i] & marked)}
        each = [s for i in range(start, stop) for s in np.flatnonzero(mask[i] & ~marked)]
        assert cost[start:stop].sum() == pytest.approx(sum(price[s] for s in [*once, *each]))


SHIPPED = [
    PRICES,
    PerQueryPrices.of(PRICES, SECOND_AND_THIRD),
    price_list(
        np.array([1.0, 5.0, 7.0]),
        discounted=[DiscountGroup((1, 2), (3.0, 5.0))],
        split=0.1,
        tree=1 / 3,
        multiplier=np.arange(3) / 7,
        unit="EUR",
    ),
]


@pytest.mark.parametrize("costs", SHIPPED, ids=lambda c: c.name)
def test_a_model_survives_json_and_keeps_its_key(costs):
    assert isinstance(costs, CostModel)
    assert MODELS[costs.name] is type(costs)
    back = from_json(to_json(costs))
    assert costs_key(back) == costs_key(costs)
    for field in fields(costs):
        one, other = np.array(getattr(costs, field.name)), np.array(getattr(back, field.name))
        assert (one.dtype, one.tolist()) == (other.dtype, other.tolist())


def test_keys_tell_models_and_their_options_apart():
    others = [
        PerQueryPrices.of(PRICES, np.array([True, False, False])),
        SensorPrices.additive(np.array([1.0, 10.0, 100.0]), split=0.5),
    ]
    assert len({costs_key(c) for c in [*SHIPPED, *others]}) == 5


def test_all_sensors_of_a_feature_are_paid_per_query():
    prices = price_list(np.array([5.0, 7.0, 0.0]), derived={2: [0, 1]})
    columns = {"sum": 2, "left": 0}
    costs = PerQueryPrices.from_options(prices, {"per_query": ["sum"]}, columns.__getitem__)
    assert costs.per_query.tolist() == [True, True]
    costs = PerQueryPrices.from_options(prices, {"per_query": ["left"]}, columns.__getitem__)
    assert costs.per_query.tolist() == [True, False]
    assert [a.tolist() for a in needs_of(costs)] == [[0, 1, 2, 4], [0, 1, 0, 1]]
