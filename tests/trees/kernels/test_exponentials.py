"""Exponentials against decimal ones of 40 digits, in units in the last place."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext

import numpy as np
from bench_trees.arrays import frozen
from bench_trees.kernels.exponentials import exponential, logarithm, logistic_slopes
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


@given(numbers)
def test_slopes_of_the_logistic_loss_are_shares_less_labels(z: list[float]) -> None:
    getcontext().prec = 40
    f = np.array(z)
    y, weights = np.arange(len(z)) % 2.0, 1.0 + np.arange(len(z)) % 3
    gradient, hessian = np.empty(len(z)), np.empty(len(z))
    logistic_slopes(*[frozen(a, np.float64) for a in (f, y, weights)], gradient, hessian)
    for i, value in enumerate(z):
        share = 1 / (1 + (-Decimal(value)).exp())
        slope, curve = (share - Decimal(y[i])), share * (1 - share)
        assert abs(Decimal(gradient[i]) - slope * Decimal(weights[i])) < Decimal("2e-15")
        assert abs(Decimal(hessian[i]) - curve * Decimal(weights[i])) < Decimal("2e-15")
