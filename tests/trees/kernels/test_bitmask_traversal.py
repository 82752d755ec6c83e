"""Sets of 64 rows as words, against the same said with booleans."""

from __future__ import annotations

import numpy as np
import pytest
from bench_trees.kernels.bitmask_traversal import (
    PLANES,
    ROWS_PER_WORD,
    above,
    above_or_missing,
    mark,
    spell,
    transpose,
)
from numba import njit


@njit
def compare(tile, at, threshold):  # type: ignore[no-untyped-def]
    return above(tile, at, threshold), above_or_missing(tile, at, threshold)


@njit
def set_leaf(leaf, rows, value):  # type: ignore[no-untyped-def]
    mark(leaf, rows, value)


@njit
def spelled(leaf, planes):  # type: ignore[no-untyped-def]
    spell(leaf, planes)


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


def test_a_number_is_set_for_the_rows_of_a_set_and_no_others() -> None:
    rows = int(np.random.default_rng(1).integers(0, 2**64, dtype=np.uint64))
    leaf = np.arange(ROWS_PER_WORD, dtype=np.int32)
    set_leaf(leaf, np.uint64(rows), np.int32(-70_000))
    assert leaf.tolist() == [-70_000 if rows >> r & 1 else r for r in range(ROWS_PER_WORD)]


def test_planes_spell_the_number_of_each_row() -> None:
    numbers = np.random.default_rng(2).integers(0, 1 << PLANES, ROWS_PER_WORD)
    planes = [
        sum(1 << r for r in range(ROWS_PER_WORD) if numbers[r] >> b & 1) for b in range(PLANES)
    ]
    leaf = np.full(ROWS_PER_WORD, -1, dtype=np.int32)
    spelled(leaf, np.array(planes, dtype=np.uint64))
    assert leaf.tolist() == numbers.tolist()


def test_a_square_of_bits_is_turned_about_its_diagonal() -> None:
    bits = np.random.default_rng(0).random((ROWS_PER_WORD, ROWS_PER_WORD)) < 0.5

    def words(square: np.ndarray) -> list[int]:
        return [sum(1 << j for j in range(ROWS_PER_WORD) if row[j]) for row in square]

    squares = np.array([5, *words(bits), 6], dtype=np.uint64)
    turn_about(squares, 1)
    assert squares.tolist() == [5, *words(bits.T), 6]
