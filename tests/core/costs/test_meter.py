"""The compiled meter beside the sum of each bill by itself."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_core.costs.bill import Acquired
from bench_core.costs.meter import Meter

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
        np.testing.assert_allclose(cost, mask @ price, rtol=1e-12)
        np.testing.assert_allclose(Acquired.pack(mask).cost(price), mask @ price, rtol=1e-12)
        assert bought.tolist() == (copies @ mask).tolist()


@pytest.mark.parametrize("sensors", [3, 64, 128])
def test_every_bit_counts_and_those_beyond_the_last_sensor_cost_nothing(sensors: int) -> None:
    price = np.resize(ODD, sensors)
    bits = np.full((2, -(-sensors // 64)), 2**64 - 1, np.uint64)
    cost, _ = Meter(price, np.ones(2)).cost(Acquired(bits, sensors))
    np.testing.assert_allclose(cost, price.sum(), rtol=1e-12)


def test_costs_handed_out_stay_as_they_were() -> None:
    meter = Meter(np.array([1.0, 2.0]), np.ones(1))
    first, _ = meter.cost(Acquired.pack(np.array([[True, False]])))
    meter.cost(Acquired.pack(np.array([[True, True]])))
    assert first.tolist() == [1.0]
