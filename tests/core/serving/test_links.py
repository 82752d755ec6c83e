"""Links agree with the C library's functions, and with the benchmark's own predictions."""

import math
from fractions import Fraction

import numpy as np
import pytest

from bench_core.serving.links import LEAST_SHARE, exponential, linked, logarithm

UNITS = 4.0  # of the last bit


@pytest.mark.parametrize("spread", [1e-9, 1e-3, 1.0, 30.0, 700.0])
def test_exponentials_are_those_of_the_c_library_but_for_the_last_bits(spread: float) -> None:
    x = np.clip(np.random.default_rng(0).normal(0, spread, 3000), -708, 700)
    expected = np.array([math.exp(v) for v in x.tolist()])
    assert (np.abs(exponential(x) - expected) <= UNITS * np.spacing(expected)).all()
    assert exponential(np.zeros(1)).tolist() == [1.0]


@pytest.mark.parametrize("spread", [1e-9, 1e-3, 1.0, 30.0])
def test_logarithms_are_those_of_the_c_library_but_for_the_last_bits(spread: float) -> None:
    x = np.exp(np.random.default_rng(0).normal(0, spread, 3000))
    expected = np.array([math.log(v) for v in x.tolist()])
    assert (np.abs(logarithm(x) - expected) <= UNITS * np.spacing(np.abs(expected))).all()
    assert logarithm(np.array([1.0, 2.0, 0.5])).tolist() == [0.0, math.log(2), -math.log(2)]


def test_a_share_becomes_log_odds_and_several_their_logarithms() -> None:
    shares = np.array([0.0, 1e-7, 0.1, 0.5, 0.9, 1.0])
    inside = [Fraction(p) for p in np.clip(shares, LEAST_SHARE, 1 - LEAST_SHARE).tolist()]
    odds = [math.log(float(p / (1 - p))) for p in inside]
    assert np.allclose(linked(shares[:, None], "probability")[:, 0], odds, rtol=1e-14, atol=1e-15)
    logs = [math.log(p) for p in inside]
    both = linked(np.column_stack([shares, shares]), "probability")
    assert np.allclose(both, np.column_stack([logs, logs]), rtol=1e-14)


def test_an_exponential_link_ends_at_its_bounds() -> None:
    found = linked(np.array([[-1e9], [-708.0], [0.0], [700.0], [1e9]]), "exp")[:, 0]
    assert found.tolist() == [found[1], found[1], 1.0, found[3], found[3]]
    assert 0 < found[1] < 1e-307
    assert found[3] == pytest.approx(math.exp(700))
    assert linked(np.array([[3.5, -0.0]]), "identity").tolist() == [[3.5, -0.0]]
