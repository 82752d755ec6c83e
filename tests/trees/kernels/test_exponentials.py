"""Exponentials against decimal ones of 40 digits, in units in the last place."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext

import numpy as np
from bench_trees.kernels.exponentials import exponential, logarithm
from hypothesis import given
from hypothesis import strategies as st

numbers = st.lists(st.floats(-708, 708), min_size=1, max_size=300)


def ulps(found: float, exact: Decimal) -> float:
    """The distance of a float from a number, in units in the last place of the number."""
    return float(abs(Decimal(found) - exact) / Decimal(math.ulp(float(exact))))


@given(numbers)
def test_an_exponential_is_exact_to_a_unit_in_the_last_place(z: list[float]) -> None:
    getcontext().prec = 40
    for value, found in zip(z, exponential(np.array(z)).tolist(), strict=True):
        assert ulps(found, (-abs(Decimal(value))).exp()) < 1


def test_beyond_normal_numbers_an_exponential_is_zero() -> None:
    z = np.array([0.0, -0.0, 709.0, -1e308, np.inf, -np.inf])
    assert exponential(z).tolist() == [1, 1, 0, 0, 0, 0]


@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=300))
def test_a_logarithm_is_exact_to_two_units_in_the_last_place(x: list[float]) -> None:
    getcontext().prec = 40
    for value, found in zip(x, logarithm(np.array(x)).tolist(), strict=True):
        assert ulps(found, Decimal(value).ln()) < 2 or value == 1
