import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from bench_core import Bill, Queries, price_list
from bench_core.costs.bill import Acquired
from bench_core.costs.meter import Meter
from bench_core.costs.shipped import PerQueryPrices

masks = st.tuples(st.integers(0, 6), st.integers(1, 140)).flatmap(
    lambda shape: arrays(np.bool_, shape)
)


@given(masks)
def test_packing_keeps_every_bit(mask):
    np.testing.assert_array_equal(Acquired.pack(mask).unpack(), mask)


@given(masks)
def test_a_rows_cost_does_not_depend_on_its_block(mask):
    price = np.sqrt(np.arange(1, mask.shape[1] + 1))
    together = Acquired.pack(mask).cost(price)
    alone = [Acquired.pack(mask[i : i + 1]).cost(price)[0] for i in range(len(mask))]
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize(
    ("sensors", "words"), [(0, 1), (1, 1), (64, 1), (65, 2), (128, 2), (129, 3)]
)
def test_every_64_sensors_take_one_word_and_none_take_one(sensors, words):
    assert Acquired.nothing(sensors).bits.tolist() == [[0] * words]


def test_a_mask_of_the_wrong_width_is_refused():
    with pytest.raises(ValueError, match=r"65 sensors need uint64 \(n, 2\)"):
        Acquired(np.zeros((4, 1), dtype=np.uint64), 65)


def test_a_bill_for_all_rows_alike_is_spread_over_them():
    prices = price_list(np.array([2.0, 3.0]), split=0.25, tree=1.0)
    bill = Bill(Acquired.pack(np.array([[True, True]])), splits=8, trees=2)
    np.testing.assert_array_equal(bill.feature_cost(prices, 3), [5.0, 5.0, 5.0])
    np.testing.assert_array_equal(bill.evaluation_cost(prices, 3), [4.0, 4.0, 4.0])
    assert bill.evaluation_cost(price_list(np.array([2.0, 3.0])), 3).tolist() == [0, 0, 0]
    without_counts = Bill(prices.acquired(np.array([1])))
    assert without_counts.evaluation_cost(prices, 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("copies", "cost"),
    [
        (None, [6.0, 6.0, 12.0]),  # the second sensor: 12 a query, by all of its rows
        ([1.0, 1.0, 1.0], [6.0, 6.0, 12.0]),
        ([1.0, 2.0, 1.0], [4.0, 4.0, 12.0]),
        ([2.0, 2.0, 3.0], [3.0, 3.0, 4.0]),
    ],
)
def test_copies_share_what_their_query_pays_once(copies, cost):
    per_query = PerQueryPrices.of(price_list(np.array([1.0, 12.0])), np.array([False, True]))
    bill = Bill(Acquired.pack(np.array([[False, True]] * 3)))
    queries = Queries.from_sizes(np.array([2, 1]))
    counts = None if copies is None else np.array(copies)
    assert bill.feature_cost(per_query, 3, queries, counts).tolist() == cost
    assert bill.feature_cost(per_query, 3, None, counts).tolist() == [12.0, 12.0, 12.0]


WHOLE, ODD = [1.0, 5.0, 20.0, 0.0, 200.0], [22.78, 0.1, 1e-9, 3e12, 14.51, 0.0]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 200), st.integers(0, 40), st.sampled_from([WHOLE, ODD]), st.integers(0, 99))
def test_costs_along_a_path_are_those_of_every_bill_alone(sensors, rows, kinds, seed):
    rng = np.random.default_rng(seed)
    price = rng.choice(kinds, sensors)
    copies = rng.integers(1, 5, rows).astype(np.float64)
    meter = Meter(price, copies)
    for density in (0.0, 0.1, 0.5, 1.0, 0.3):  # rows may give back what they bought
        mask = rng.random((rows, sensors)) < density
        cost, bought = meter.cost(Acquired.pack(mask))
        np.testing.assert_allclose(cost, mask @ price, rtol=1e-12)
        np.testing.assert_allclose(Acquired.pack(mask).cost(price), mask @ price, rtol=1e-12)
        assert bought.tolist() == (copies @ mask).tolist()


@pytest.mark.parametrize("sensors", [3, 64, 128])
def test_every_bit_counts_and_those_beyond_the_last_sensor_cost_nothing(sensors):
    price = np.resize(ODD, sensors)
    bits = np.full((2, -(-sensors // 64)), 2**64 - 1, np.uint64)
    cost, _ = Meter(price, np.ones(2)).cost(Acquired(bits, sensors))
    np.testing.assert_allclose(cost, price.sum(), rtol=1e-12)


def test_costs_handed_out_stay_as_they_were():
    meter = Meter(np.array([1.0, 2.0]), np.ones(1))
    first, _ = meter.cost(Acquired.pack(np.array([[True, False]])))
    meter.cost(Acquired.pack(np.array([[True, True]])))
    assert first.tolist() == [1.0]
