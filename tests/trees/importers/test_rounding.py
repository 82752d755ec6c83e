"""Thresholds in float32: every float32 number falls on the same side as before."""

from __future__ import annotations

import numpy as np
from bench_trees.importers.imported import at_most, below
from hypothesis import given
from hypothesis import strategies as st

SINGLE = st.floats(width=32, allow_nan=False, allow_infinity=False)
DOUBLE = st.floats(allow_nan=False)


@given(st.lists(st.tuples(SINGLE, DOUBLE), min_size=1))
def test_at_most_keeps_the_side_of_a_threshold_in_float64(pairs: list[tuple[float, float]]) -> None:
    x, limit = (np.array(values) for values in zip(*pairs, strict=True))
    single = x.astype(np.float32)
    near = np.nextafter(single, np.float32(0))
    for cells in (single, near):
        assert np.array_equal(cells.astype(np.float64) <= limit, cells <= at_most(limit))
    assert np.array_equal(at_most(single.astype(np.float64)), single)


@given(st.lists(st.tuples(SINGLE, SINGLE), min_size=1))
def test_below_makes_less_than_of_at_most(pairs: list[tuple[float, float]]) -> None:
    x, limit = (np.array(values, dtype=np.float32) for values in zip(*pairs, strict=True))
    assert np.array_equal(x < limit, x <= below(limit))
    assert not np.any(limit <= below(limit))
