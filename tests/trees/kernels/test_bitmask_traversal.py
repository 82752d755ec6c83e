"""Sets of 64 rows as words, against the same said with booleans."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from bench_core.traversal import leaves, vectors
from bench_core.traversal.trees import add_lengths, gather, lengths, settle, squares
from bench_core.traversal.vectors import ROWS


@njit
def compare(rows, tile, at, threshold):  # type: ignore[no-untyped-def]
    vectors.above(rows, 0, tile, at, threshold)
    vectors.above_or_missing(rows, 2, tile, at, threshold)


@njit
def numbered(leaf, sets, marks, at, count, few):  # type: ignore[no-untyped-def]
    if few:
        vectors.number_few(leaf, sets, marks, at, count)
    else:
        vectors.number(leaf, sets, marks, at, count)


@njit
def turn_about(squares, at):  # type: ignore[no-untyped-def]
    vectors.transpose(squares, at)


@njit
def add(sums, place, leaf, count, table, at, weight):  # type: ignore[no-untyped-def]
    leaves.add_leaves(sums, place, leaf, count, table, at, weight)


@njit
def add_some(sums, leaf, count, table, at):  # type: ignore[no-untyped-def]
    leaves.add_bytes(sums, leaf, count, table, at)


@njit
def add_up(times, sums, counts, leaf, count, table):  # type: ignore[no-untyped-def]
    pending = 0
    for _ in range(times):
        pending = add_lengths(pending, sums, counts, leaf, count, table, 0)
    settle(sums, counts)


@njit
def price(total, paid, prices, groups):  # type: ignore[no-untyped-def]
    vectors.add_prices(total, paid, prices, groups)


@njit
def gathered(X, rows, columns, how):  # type: ignore[no-untyped-def]
    cells = np.zeros(ROWS * (len(columns) + 1), dtype=np.float32)
    gather(cells, X, rows, columns, how)
    return cells


@pytest.mark.parametrize("at", [0, 3, 64])
def test_rows_above_the_threshold_without_or_with_missing_ones(at: int) -> None:
    rng = np.random.default_rng(at)
    tile = rng.choice([-1.0, 0.5, 0.75, np.nan, np.inf, -np.inf], size=130).astype(np.float32)
    words = np.full(3, 7, dtype=np.uint64)
    compare(words, tile, at, np.float32(0.5))
    assert words[1] == 7
    for got, missing in zip(words[::2], (False, True), strict=True):
        wanted = [missing if np.isnan(x) else bool(x > 0.5) for x in tile[at : at + ROWS]]
        assert [bool(int(got) >> r & 1) for r in range(ROWS)] == wanted


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize("count", [0, 1, 6])
def test_the_mark_of_a_rows_last_turn_to_the_right_is_its_number(count: int, few: bool) -> None:
    rng = np.random.default_rng(count)
    right = rng.random((6, ROWS)) < 0.3
    sets = np.full(13, 2**64 - 1, dtype=np.uint64)  # of which every second one counts
    sets[1::2] = [sum(1 << r for r in range(ROWS) if row[r]) for row in right]
    marks = rng.integers(0, 256, 40).astype(np.uint8)
    if few:  # they rise
        marks.sort()
    leaf = np.full(ROWS, 5, dtype=np.uint8)
    numbered(leaf, sets, marks, 3, count, few)
    last = [max((i for i in range(count) if right[i, r]), default=None) for r in range(ROWS)]
    assert leaf.tolist() == [0 if i is None else int(marks[3 + 4 * i]) for i in last]


@pytest.mark.parametrize("count", [1, 16, 17, 32, 33, 64])
def test_leaves_are_added_bit_for_bit(count: int) -> None:
    """Also where the table ends with the last leaf."""
    rng = np.random.default_rng(count)
    table, sums = rng.standard_normal(7 + count), rng.standard_normal(3 + ROWS)
    leaf = rng.integers(0, count, ROWS).astype(np.uint8)
    leaf[5] = count - 1
    wanted = sums.copy()
    wanted[3:] += table[7 + leaf] * 0.3
    add(sums, 3, leaf, count, table, 7, 0.3)
    assert sums.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(("width", "used"), [(9, 7), (16, 3), (16, 16), (40, 25), (133, 70)])
def test_columns_of_rows_are_gathered(width: int, used: int) -> None:
    """By squares of 16 columns, and those that lie apart one by one."""
    rng = np.random.default_rng(width)
    X = rng.standard_normal((80, width)).astype(np.float32)
    X.flags.writeable = False
    columns, rows = np.sort(rng.permutation(width)[:used]), rng.integers(0, 80, ROWS)
    how = squares(columns, width)
    assert (len(how[0]) > 0) == (used > 7)
    cells = gathered(X, rows, columns, how).reshape(-1, ROWS)
    assert cells[:-1].tobytes() == np.ascontiguousarray(X[rows][:, columns].T).tobytes()


@pytest.mark.parametrize("count", [1, 15, 16, 17, 33, 64])
def test_bytes_of_leaves_are_added(count: int) -> None:
    """To sums beyond 255, 65535 being followed by 0."""
    rng = np.random.default_rng(count)
    table = rng.integers(0, 256, 5 + 64).astype(np.uint8)
    leaf = rng.integers(0, count, ROWS).astype(np.uint8)
    leaf[5] = count - 1
    before = rng.integers(0, 2**16, ROWS).astype(np.uint16)
    before[7] = 2**16 - 1
    sums = before.copy()
    add_some(sums, leaf, count, table, 5)
    wanted = [(b + int(table[5 + k])) % 2**16 for b, k in zip(before.tolist(), leaf, strict=True)]
    assert sums.tolist() == wanted


def test_lengths_of_paths_are_added_however_many_trees_there_are() -> None:
    """Sums of 600 bytes need more than 16 bits."""
    table = lengths(np.array([255.0, 3.0]), np.array([1.0, 2.0]))
    leaf = np.arange(ROWS, dtype=np.uint8) % 2
    sums, counts = np.full(ROWS, 4.0), np.zeros(ROWS, dtype=np.uint16)
    add_up(600, sums, counts, leaf, 2, table)
    assert sums.tolist() == [4.0 + 600 * 255, 4.0 + 600 * 3] * 32


@pytest.mark.parametrize(("path", "multiplier"), [(256.0, 1.0), (1.0, 0.5)])
def test_lengths_that_bytes_do_not_hold_are_not_looked_up(path: float, multiplier: float) -> None:
    """Also whole ones where other trees, walked before these, may have others."""
    assert len(lengths(np.array([path]), np.array([multiplier]))) == 0


@pytest.mark.parametrize("ends", [[(2, 1), (3, 1), (7, 1)], [(1, 0), (6, 0), (7, 1)], []])
def test_prices_of_paid_sensors_are_added_in_their_order(ends: list[tuple[int, int]]) -> None:
    """By group, and the groups of a word; what stood there before is gone."""
    rng = np.random.default_rng(0)
    paid = rng.integers(0, 2**63, 7).astype(np.uint64) * np.uint64(2) + np.uint64(1)
    prices, total = 10 ** rng.uniform(-8, 8, 7), rng.standard_normal(ROWS)
    groups = np.array([(0 if not g else ends[g - 1][0], *end) for g, end in enumerate(ends)])
    wanted = []
    for r in range(ROWS):
        whole = word = 0.0
        for first, stop, last in groups.tolist():
            word += sum(prices[k] for k in range(first, stop) if int(paid[k]) >> r & 1)
            whole, word = (whole + word, 0.0) if last else (whole, word)
        wanted.append(whole)
    price(total, paid, prices, groups.reshape(-1, 3).astype(np.int64))
    assert total.tolist() == wanted


def test_a_square_of_bits_is_turned_about_its_diagonal() -> None:
    bits = np.random.default_rng(0).random((ROWS, ROWS)) < 0.5

    def words(square: np.ndarray) -> list[int]:
        return [sum(1 << j for j in range(ROWS) if row[j]) for row in square]

    squares = np.array([5, *words(bits), 6], dtype=np.uint64)
    turn_about(squares, 1)
    assert squares.tolist() == [5, *words(bits.T), 6]
