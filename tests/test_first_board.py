"""The board of the README's first command shows what the field is about.

pytest -m slow tests/test_first_board.py     # minutes: it is that command
"""

from itertools import pairwise, product

import pytest

import bench_core
from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.reports import finished

pytestmark = pytest.mark.slow

LEARNERS = ("miser", "cronus", "cegb")


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("board")
    store = str(folder / "x.db")
    return bench_core.run(suite="yahoo", learners=LEARNERS, data_dir=str(folder), store=store)


@pytest.fixture(scope="module")
def rows(result):
    (board,) = boards(*finished(result.store, "last"))
    assert board.stand_in
    return {row.learner: row for row in board.rows}


def test_methods_were_searched_alike_and_no_choice_ends_its_range(rows):
    assert {rows[name].fits for name in LEARNERS} == {6}
    assert [rows[name].marks for name in ("miser", "cegb", "gbrt")] == [()] * 3
    # the suite says why: a lower tradeoff is not better and takes most of the training
    assert rows["cronus"].marks == ("at edge: tradeoff",)


def test_more_trees_still_help_near_the_end(rows):
    (setting,) = rows["gbrt"].best.settings
    trees = setting.point["trees"]
    assert isinstance(trees, int)
    assert trees > 400  # of 600


def ahead(result, first, second, part, rows):
    """Whether the paired 95% interval of the difference, within a part of gbrt's cost, is > 0."""
    (least,) = result.compare(first, second, budget=part * rows["gbrt"].best.cost)["low"]
    return bool(least > 0)


@pytest.mark.parametrize(
    ("part", "orders"),
    [
        (0.05, ("random-order", "cheapest-first")),
        (0.1, ("random-order", "cheapest-first", "greedy-order")),
    ],
)
def test_priced_boosters_are_ahead_of_orders_and_soon_of_the_greedy_one(result, part, orders, rows):
    for learner, order in product(("miser", "cegb"), orders):
        assert ahead(result, learner, order, part, rows), (learner, order)


def test_cronus_is_ahead_of_random_order_at_a_tenth_and_of_all_orders_at_a_fifth(result, rows):
    rising = ("constant", "random-order", "cronus", "greedy-order", "miser")
    for low, high in pairwise(rising):
        assert ahead(result, high, low, 0.1, rows), (high, low)
    for order in ("random-order", "cheapest-first", "greedy-order"):
        assert ahead(result, "cronus", order, 0.2, rows), order
