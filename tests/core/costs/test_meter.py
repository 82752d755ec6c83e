"""The compiled meter beside the sum that every bill is defined by."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_core.costs.bill import Acquired
from bench_core.costs.meter import Meter, buyers, sums_exactly

WHOLE, ODD = [1.0, 5.0, 20.0, 0.0, 200.0], [22.78, 0.1, 1e-9, 3e12, 14.51, 0.0]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 200), st.integers(0, 40), st.sampled_from([WHOLE, ODD]), st.integers(0, 99))
def test_costs_along_a_path_are_those_of_every_bill_alone(
    sensors: int, rows: int, kinds: list[float], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    price = rng.choice(kinds, sensors)
    copies = rng.integers(1, 5, rows).astype(np.float64)
    meter = Meter(price, copies)
    for density in (0.0, 0.1, 0.5, 1.0, 0.3):  # rows may give back what they bought
        mask = rng.random((rows, sensors)) < density
        cost, bought = meter.cost(Acquired.pack(mask))
        assert cost.tobytes() == Acquired.pack(mask).cost(price).tobytes()
        np.testing.assert_allclose(cost, mask @ price, rtol=1e-12)
        assert bought.tolist() == (copies @ mask).tolist()
        assert buyers(Acquired.pack(mask), copies).tolist() == bought.tolist()


@pytest.mark.parametrize("kinds", [WHOLE, ODD])
@pytest.mark.parametrize("sensors", [3, 64, 128])
def test_every_bit_counts_and_those_beyond_the_last_sensor_cost_nothing(
    sensors: int, kinds: list[float]
) -> None:
    price = np.resize(kinds, sensors)
    bits = np.full((2, -(-sensors // 64)), 2**64 - 1, np.uint64)
    cost, _ = Meter(price, np.ones(2)).cost(Acquired(bits, sensors))
    np.testing.assert_allclose(cost, price.sum(), rtol=1e-12)


def test_a_purchase_of_all_rows_is_counted_for_each_copy() -> None:
    whole = Acquired.pack(np.array([[True, False, True]]))
    assert buyers(whole, np.array([1.0, 3.0])).tolist() == [4, 0, 4]


def test_costs_handed_out_stay_as_they_were() -> None:
    meter = Meter(np.array([1.0, 2.0]), np.ones(1))
    first, _ = meter.cost(Acquired.pack(np.array([[True, False]])))
    meter.cost(Acquired.pack(np.array([[True, True]])))
    assert first.tolist() == [1.0]


@pytest.mark.parametrize(
    ("price", "exact"),
    [
        ([1.0, 5.0, 200.0], True),
        ([0.25, 1024.0, 0.0], True),
        ([0.25, 0.5], True),
        ([2.0**52, 1.0], True),
        ([5e-324], True),
        ([0.0, 0.0], True),
        ([0.1, 0.2], False),
        ([1.0, 2.0**53], False),
        ([1e100, 1.0], False),
        ([1e100, 1e-300], False),
    ],
)
def test_sums_are_exact_where_prices_are_multiples_of_one_unit(
    price: list[float], exact: bool
) -> None:
    assert sums_exactly(np.array(price)) is exact
