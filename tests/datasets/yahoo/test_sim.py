"""The generated stand-in: equal to its written definition, and the same everywhere."""

import hashlib

import numpy as np
import pytest
from bench_datasets.yahoo import ROWS, YahooSim
from bench_datasets.yahoo.sim import generate, query_sizes

from bench_core.data import Task
from bench_core.datasets.data_folder import DataFolder

CHECKSUM = "4f6c34a827944cbcb8d5dd223946f3fbf9c72839944d153b2eaec6e7fcf8c187"


@pytest.fixture(scope="module")
def block():
    return generate(3, 0, 8000)


def test_checksum_of_a_small_block():
    """Computed once from the written definition in plain Python; never to change in version 2."""
    made = generate(0, 0, 64)
    little = made.X.astype("<f4").tobytes() + made.y.astype("<f8").tobytes()
    assert hashlib.sha256(little).hexdigest() == CHECKSUM


def test_query_sizes_add_up_to_the_rows():
    sizes = query_sizes(4, 2, 5000)
    assert sizes.sum() == 5000
    assert sizes.min() >= 1


def test_as_many_rows_as_in_the_original_have_grade_3_or_more():
    """45111 of 473134, the training rows in section 4 of Cronus; seeds differ by .0015."""
    found = [(generate(seed, 0, 20000).y >= 3).mean() for seed in range(4)]
    assert np.mean(found) == pytest.approx(45111 / 473134, abs=0.003)


def test_neither_threads_nor_how_many_rows_are_asked_for_change_a_bit(block):
    for made in (generate(3, 0, 1000), generate(3, 0, 8000, threads=1)):
        np.testing.assert_array_equal(made.X, block.X[: len(made.X)])
        np.testing.assert_array_equal(made.y, block.y[: len(made.X)])


def test_other_seeds_and_splits_give_other_rows(block):
    for seed, split in ((4, 0), (3, 1)):
        other = generate(seed, split, 1000)
        assert not np.array_equal(other.y, block.y[:1000])
        assert not np.array_equal(other.X, block.X[:1000])


def test_quick_profile_has_its_sizes_prices_and_mark():
    splits = YahooSim().prepare(DataFolder("."), "quick", 0, 0).complete()
    assert [len(s) for s in (splits.train, splits.valid, splits.test)] == [12000, 4000, 6000]
    assert splits.prices.everything == 16948
    assert splits.prices.split == 0.25
    assert splits.prices.tree == 0
    assert splits.task is Task.RANKING
    assert splits.stand_in
    assert YahooSim.stand_in_for == "yahoo"


def test_paper_profile_has_exactly_the_original_sizes():
    assert ROWS["paper"] == (473134, 71083, 165660)
    assert int(query_sizes(0, 0, 473134).sum()) == 473134
    assert 18000 < len(query_sizes(0, 0, 473134)) < 21000
