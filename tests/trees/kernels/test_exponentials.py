"""Exponentials against decimal ones of 40 digits, in units in the last place."""

from __future__ import annotations

import math
from decimal import Decimal, getcontext

import numpy as np
from bench_trees.kernels.exponentials import TILE, _exponentials, logarithm
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

numbers = st.lists(st.floats(-708, 708), min_size=1, max_size=300)


@njit
def in_place(z: np.ndarray) -> None:
    _exponentials(z, np.empty(TILE, np.int64))


def exponential(z: list[float]) -> list[float]:
    """e^-|z|, a tile at a time."""
    out = np.array(z)
    for first in range(0, len(z), TILE):
        tile = slice(first, first + TILE)
        in_place(out[tile])
    return out.tolist()


def ulps(found: float, exact: Decimal) -> float:
    """The distance of a float from a number, in units in the last place of the number."""
    return float(abs(Decimal(found) - exact) / Decimal(math.ulp(float(exact))))


@given(numbers)
def test_an_exponential_is_exact_to_a_unit_in_the_last_place(z: list[float]) -> None:
    getcontext().prec = 40
    for value, found in zip(z, exponential(z), strict=True):
        assert ulps(found, (-abs(Decimal(value))).exp()) < 1


def test_beyond_normal_numbers_an_exponential_is_zero() -> None:
    z = [0.0, -0.0, 709.0, -1e308, math.inf, -math.inf]
    assert exponential(z) == [1, 1, 0, 0, 0, 0]


@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=300))
def test_a_logarithm_is_exact_to_two_units_in_the_last_place(x: list[float]) -> None:
    getcontext().prec = 40
    for value, found in zip(x, logarithm(np.array(x)).tolist(), strict=True):
        assert ulps(found, Decimal(value).ln()) < 2 or value == 1
