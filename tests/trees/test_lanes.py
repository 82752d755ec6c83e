"""Sets of 64 rows as words, against the same said with booleans."""

from __future__ import annotations

import numpy as np
import pytest
from bench_trees.lanes import LANES, above, lowest, transpose
from numba import njit


@njit
def compare(tile, at, threshold, missing_left):  # type: ignore[no-untyped-def]
    return above(tile, at, threshold, missing_left)


@njit
def first(rows):  # type: ignore[no-untyped-def]
    return lowest(rows)


@pytest.mark.parametrize("missing_left", [True, False])
@pytest.mark.parametrize("at", [0, 3, 64])
def test_rows_above_the_threshold_and_missing_ones_unless_told_otherwise(
    missing_left: bool, at: int
) -> None:
    rng = np.random.default_rng(at)
    tile = rng.choice([-1.0, 0.5, 0.75, np.nan, np.inf, -np.inf], size=130).astype(np.float32)
    got = int(compare(tile, at, np.float32(0.5), missing_left))
    expected = [(not missing_left) if np.isnan(x) else bool(x > 0.5) for x in tile[at : at + LANES]]
    assert [bool(got >> r & 1) for r in range(LANES)] == expected


def test_the_lowest_row_of_a_set() -> None:
    assert [first(np.uint64(word)) for word in (1, 6, 1 << 63, (1 << 64) - 8)] == [0, 1, 63, 3]


def test_a_square_of_bits_is_turned_about_its_diagonal() -> None:
    bits = np.random.default_rng(0).random((LANES, LANES)) < 0.5

    def words(square: np.ndarray) -> list[int]:
        return [sum(1 << j for j in range(LANES) if row[j]) for row in square]

    square = np.array(words(bits), dtype=np.uint64)
    transpose(square)
    assert square.tolist() == words(bits.T)
