"""The board of the README's first command shows what the field is about.

pytest -m slow tests/test_first_board.py     # minutes: it is that command
"""

from __future__ import annotations

from itertools import pairwise

import pytest

import bench_core
from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.board import Board, Row
from bench_core.leaderboard.reports import finished

pytestmark = pytest.mark.slow

LEARNERS = ("miser", "cronus", "cegb")
ORDERS = ("random-order", "cheapest-first", "greedy-order")
NOISE = 0.01  # of ndcg@5 over 993 test queries


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Board:
    folder = tmp_path_factory.mktemp("board")
    store = folder / "x.db"
    bench_core.run(suite="yahoo", learners=LEARNERS, data_dir=str(folder), store=str(store))
    (board,) = boards(*finished(store, "last"))
    assert board.stand_in
    return board


@pytest.fixture(scope="module")
def rows(board: Board) -> dict[str, Row]:
    return {row.learner: row for row in board.rows}


def within(row: Row, part: float, rows: dict[str, Row]) -> float:
    limit = part * rows["gbrt"].best.cost
    return [point.pick.quality for point in row.curve if point.budget <= limit][-1]


def test_methods_were_searched_alike_and_no_choice_ends_its_range(rows: dict[str, Row]) -> None:
    assert {rows[name].fits for name in LEARNERS} == {6}
    assert {rows[name].marks for name in (*LEARNERS, "gbrt")} == {()}


def test_more_trees_still_help_near_the_end(rows: dict[str, Row]) -> None:
    (setting,) = rows["gbrt"].best.settings
    trees = setting.point["trees"]
    assert isinstance(trees, int)
    assert trees > 250  # of 600, where cegb has 300


@pytest.mark.parametrize(("part", "margin"), [(0.05, NOISE), (0.1, 2 * NOISE)])
def test_small_budgets_separate_the_priced_boosters_from_all_baselines(
    rows: dict[str, Row], part: float, margin: float
) -> None:
    best = max(within(rows[name], part, rows) for name in ORDERS)
    assert all(within(rows[name], part, rows) > best + margin for name in ("miser", "cegb"))


def test_a_tenth_of_the_cost_separates_cronus_and_the_orders(rows: dict[str, Row]) -> None:
    names = ("constant", "random-order", "cheapest-first", "greedy-order", "cronus", "miser")
    values = [within(rows[name], 0.1, rows) for name in names]
    assert all(high - low > NOISE for low, high in pairwise(values))
