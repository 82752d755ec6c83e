"""Sets of 64 rows as words, against the same said with booleans."""

from __future__ import annotations

import numpy as np
import pytest
from bench_trees.kernels.bitmask_traversal import (
    ROWS_PER_WORD,
    above,
    above_or_missing,
    number,
    transpose,
)
from numba import njit


@njit
def compare(tile, at, threshold):  # type: ignore[no-untyped-def]
    return above(tile, at, threshold), above_or_missing(tile, at, threshold)


@njit
def numbered(leaf, sets, marks, at, count, shift):  # type: ignore[no-untyped-def]
    number(leaf, sets, marks, at, count, shift)


@njit
def turn_about(squares, at):  # type: ignore[no-untyped-def]
    transpose(squares, at)


@pytest.mark.parametrize("at", [0, 3, 64])
def test_rows_above_the_threshold_without_or_with_missing_ones(at: int) -> None:
    rng = np.random.default_rng(at)
    tile = rng.choice([-1.0, 0.5, 0.75, np.nan, np.inf, -np.inf], size=130).astype(np.float32)
    for got, missing in zip(compare(tile, at, np.float32(0.5)), (False, True), strict=True):
        wanted = [missing if np.isnan(x) else bool(x > 0.5) for x in tile[at : at + ROWS_PER_WORD]]
        assert [bool(int(got) >> r & 1) for r in range(ROWS_PER_WORD)] == wanted


@pytest.mark.parametrize("count", [0, 1, 6])
def test_the_mark_of_a_rows_last_turn_to_the_right_is_its_number(count: int) -> None:
    rng = np.random.default_rng(count)
    right = rng.random((6, ROWS_PER_WORD)) < 0.3
    sets = np.full(13, 2**64 - 1, dtype=np.uint64)  # of which every second one counts
    sets[1::2] = [sum(1 << r for r in range(ROWS_PER_WORD) if row[r]) for row in right]
    marks = rng.integers(0, 256, 40).astype(np.uint8)
    leaf = np.full(ROWS_PER_WORD, 5, dtype=np.int32)
    numbered(leaf, sets, marks, 3, count, 8)
    last = [max((i for i in range(count) if right[i, r]), default=None) for r in range(64)]
    assert leaf.tolist() == [5 + (0 if i is None else 256 * int(marks[3 + 4 * i])) for i in last]


def test_a_square_of_bits_is_turned_about_its_diagonal() -> None:
    bits = np.random.default_rng(0).random((ROWS_PER_WORD, ROWS_PER_WORD)) < 0.5

    def words(square: np.ndarray) -> list[int]:
        return [sum(1 << j for j in range(ROWS_PER_WORD) if row[j]) for row in square]

    squares = np.array([5, *words(bits), 6], dtype=np.uint64)
    turn_about(squares, 1)
    assert squares.tolist() == [5, *words(bits.T), 6]
