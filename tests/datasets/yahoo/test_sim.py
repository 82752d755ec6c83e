"""The generated stand-in: equal to its written definition, the same everywhere, and plausible."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest
from bench_datasets.yahoo import ROWS, YahooSim, YahooSimB
from bench_datasets.yahoo.sim import PATTERNS, SIZES, features, generate, query_sizes
from helpers.yahoo_sim_definition import Definition

from bench_core.data import Examples, Task
from bench_core.datasets.data_folder import DataFolder
from bench_core.errors import UsageError
from bench_core.parameters import expand
from bench_core.plugins import Registry

KEYS = {"a": 1, "b": 2}


@pytest.fixture(scope="module")
def block() -> dict[str, Examples]:
    return {name: generate(pattern, 3, 0, 8000) for name, pattern in PATTERNS.items()}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("split", [0, 2])
def test_rows_equal_the_definition_computed_cell_by_cell(pattern: str, split: int) -> None:
    made = generate(PATTERNS[pattern], 11, split, 40)
    assert made.queries is not None
    query = made.queries.index()
    wanted = Definition(KEYS[pattern], 11, split)
    for i in (0, 1, 17, 39):
        cells = [wanted.cell(i, int(query[i]), j) for j in range(519)]
        np.testing.assert_array_equal(made.X[i], np.array(cells, dtype=np.float32))
    assert made.y.tolist() == [wanted.grade(i, int(query[i])) for i in range(40)]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_strong_columns_equal_the_definition_on_many_rows(pattern: str) -> None:
    made = generate(PATTERNS[pattern], 5, 1, 300)
    assert made.queries is not None
    query = made.queries.index()
    wanted = Definition(KEYS[pattern], 5, 1)
    strong = [j for j in range(519) if wanted.strong_number(j) is not None]
    assert len(strong) == sum(PATTERNS[pattern].strong)
    for j in strong[::5]:
        cells = [wanted.cell(i, int(query[i]), j) for i in range(0, 300, 7)]
        np.testing.assert_array_equal(made.X[::7, j], np.array(cells, dtype=np.float32))


def test_checksum_of_a_small_block() -> None:
    """Computed once from the written definition in plain Python; never to change in version 1."""
    made = generate(PATTERNS["a"], 0, 0, 64)
    little = made.X.astype("<f4").tobytes() + made.y.astype("<f8").tobytes()
    assert hashlib.sha256(little).hexdigest() == CHECKSUM


@pytest.mark.slow
def test_checksum_is_that_of_the_definition() -> None:
    wanted = Definition(1, 0, 0)
    sizes = query_sizes(0, 0, 64)
    query = np.repeat(np.arange(len(sizes)), sizes).tolist()
    cells = [[wanted.cell(i, query[i], j) for j in range(519)] for i in range(64)]
    grades = [wanted.grade(i, query[i]) for i in range(64)]
    raw = np.array(cells, dtype="<f4").tobytes() + np.array(grades, dtype="<f8").tobytes()
    assert hashlib.sha256(raw).hexdigest() == CHECKSUM


CHECKSUM = "855a96fe048e29fc447ee91f5b78a64facc605261eea4c8a2428e32a4c2249b7"


def test_query_sizes_follow_the_table() -> None:
    from helpers.yahoo_sim_definition import draw, stream

    wanted = [int(SIZES[draw(stream(4, 2, 1), q) >> 57]) for q in range(30)]
    sizes = query_sizes(4, 2, 5000)
    assert sizes[:30].tolist() == wanted
    assert sizes.sum() == 5000
    assert sizes.min() >= 1


def test_price_groups_are_the_published_ones() -> None:
    for pattern in PATTERNS.values():
        prices, counts = np.unique([f.price for f in features(pattern)], return_counts=True)
        assert prices.tolist() == [1, 5, 20, 50, 100, 150, 200]
        assert counts.tolist() == [123, 31, 191, 125, 16, 32, 1]


def test_both_patterns_have_the_same_prices_but_other_strong_columns() -> None:
    a, b = features(PATTERNS["a"]), features(PATTERNS["b"])
    assert [f.price for f in a] == [f.price for f in b]
    both = [x.strong and y.strong for x, y in zip(a, b, strict=True)]
    assert sum(both) <= 1  # the one column of price 200 is strong in a only


@pytest.mark.parametrize("pattern", PATTERNS)
def test_grades_have_the_proportions_of_the_original(
    pattern: str, block: dict[str, Examples]
) -> None:
    share = np.bincount(block[pattern].y.astype(int), minlength=5) / 8000
    np.testing.assert_allclose(share, [0.26, 0.36, 0.28, 0.08, 0.02], atol=0.03)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_about_half_of_the_cells_are_zero_and_none_is_missing(
    pattern: str, block: dict[str, Examples]
) -> None:
    X = block[pattern].X
    assert 0.4 < (X == 0).mean() < 0.6
    assert np.isfinite(X).all()
    assert (X >= 0).all()


def test_some_columns_have_heavy_tails(block: dict[str, Examples]) -> None:
    X = block["a"].X
    positive = [column[column > 0] for column in X.T]
    heavy = [np.max(c) > 20 * np.median(c) for c in positive if len(c) > 100]
    assert 100 < sum(heavy) < 300


def test_the_beginning_does_not_depend_on_how_many_rows_are_asked_for(
    block: dict[str, Examples],
) -> None:
    few = generate(PATTERNS["a"], 3, 0, 1000)
    np.testing.assert_array_equal(few.X, block["a"].X[:1000])
    np.testing.assert_array_equal(few.y, block["a"].y[:1000])


def test_threads_do_not_change_a_bit(block: dict[str, Examples]) -> None:
    one = generate(PATTERNS["a"], 3, 0, 8000, threads=1)
    np.testing.assert_array_equal(one.X, block["a"].X)
    np.testing.assert_array_equal(one.y, block["a"].y)


def test_other_seeds_and_splits_give_other_rows(block: dict[str, Examples]) -> None:
    for seed, split in ((4, 0), (3, 1)):
        other = generate(PATTERNS["a"], seed, split, 1000)
        assert not np.array_equal(other.y, block["a"].y[:1000])
        assert not np.array_equal(other.X, block["a"].X[:1000])


def test_quick_profile_has_its_sizes_prices_and_mark() -> None:
    splits = YahooSim().prepare(DataFolder("."), "quick", 0, 0)
    assert [len(s) for s in (splits.train, splits.valid, splits.test)] == [12000, 4000, 6000]
    assert splits.prices.everything == 16948
    assert splits.prices.split == 0.25
    assert splits.prices.tree == 0
    assert splits.task is Task.RANKING
    assert splits.stand_in
    assert YahooSim.stand_in_for == YahooSimB.stand_in_for == "yahoo"


def test_paper_profile_has_exactly_the_original_sizes() -> None:
    assert ROWS["paper"] == (473134, 71083, 165660)
    assert int(query_sizes(0, 0, 473134).sum()) == 473134
    assert 18000 < len(query_sizes(0, 0, 473134)) < 21000


def test_negatives_can_stand_for_ten_copies() -> None:
    splits = YahooSim(copies=10).prepare(DataFolder("."), "quick", 0, 0)
    for part in (splits.train, splits.valid, splits.test):
        np.testing.assert_array_equal(part.multiplicity, np.where(part.y == 0, 10, 1))


def test_unknown_size_is_refused() -> None:
    with pytest.raises(UsageError, match="size 'huge'"):
        YahooSim().prepare(DataFolder("."), "huge", 0, 0)


def test_unknown_pattern_is_refused_in_one_line() -> None:
    with pytest.raises(UsageError, match="pattern"):
        expand(YahooSim, {"pattern": "c"}, Registry())
