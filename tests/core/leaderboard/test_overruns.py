"""Who is over a budget by more than chance: cheats are marked, fair learners are not."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from helpers.valued_run import ValuedRun

from bench_core.leaderboard import overruns
from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.certainty import certified
from bench_core.leaderboard.overruns import LEVEL, Excess, Units, beyond_chance
from bench_core.leaderboard.standings import standings
from bench_core.results.budgets import Budget


def over(run: ValuedRun, *budgets: Budget) -> list[list[str]]:
    """By budget the learners that are marked."""
    held: Any = run
    found = standings(run.info, held, "d", run.frame, budgets, resamples=100)
    return [[row.learner for row in at.rows if row.over] for at in found]


def add(run: ValuedRun, name: str, valid: Any, test: Any, **more: Any) -> None:
    """A learner of one point with these costs of rows."""
    cost = [np.atleast_2d(np.asarray(valid, float)), np.atleast_2d(np.asarray(test, float))]
    run.add(name, [np.full(c.shape, 0.8) for c in cost], cost, **more)


def test_costs_that_are_the_same_for_all_rows_are_compared_as_they_are() -> None:
    run = ValuedRun()
    add(run, "more", np.full(50, 1.0), np.full(50, 1.3))
    add(run, "same", np.full(50, 1.2), np.full(50, 1.2))
    assert over(run, Budget(1.2), Budget(1.29), Budget(1.3)) == [["more"], ["more"], []]


def test_an_excess_that_chance_makes_is_not_marked_and_a_greater_one_is() -> None:
    rng = np.random.default_rng(0)
    cost = rng.exponential(size=(2, 400))
    cost *= [[1 / cost[0].mean()], [1.05 / cost[1].mean()]]  # the error of the difference is 0.07
    run = ValuedRun()
    add(run, "fair", *cost)
    add(run, "dear", cost[0], cost[1] + 0.3)
    assert over(run, Budget(1.0), Budget(1.2)) == [["dear"], []]


@pytest.mark.parametrize(("valid", "test"), [(100, 1000), (1000, 100), (300, 300)])
def test_a_fair_learner_with_few_dear_rows_is_not_marked_more_often_than_is_said(
    valid: int, test: int
) -> None:
    """One row in 200 costs 100 times as much; none of them may be among the validation rows."""
    marked, rng, budget = 0, np.random.default_rng(1), Budget(1.2)
    for _ in range(300):
        cost = np.where(rng.random(valid + test) < 1 / 200, 100.0, 1.0)
        if cost[:valid].mean() <= budget.amount:
            units = Units(cost, np.ones(len(cost)), valid)
            excess = Excess(float(cost[valid:].mean()) - budget.amount, {(0, "f"): (units, 1)})
            assert excess.gap == pytest.approx(cost[valid:].mean() - cost[:valid].mean())
            # only the draw of rows between the splits is held against it
            marked += bool([*beyond_chance({(budget, "a"): excess})])
    assert marked <= 3  # 300 times 0.1% are 0.3; more than 3 have a chance of 1 in 4000


def test_choosing_among_many_points_near_the_budget_marks_fair_learners_seldom() -> None:
    """Twenty learners of 30 points each with costs around the budget, chosen by quality."""
    rng = np.random.default_rng(2)
    marked = 0
    for _ in range(5):
        run = ValuedRun()
        for k in range(20):
            rows = rng.exponential(size=(2, 1, 200)) * rng.normal(1, 0.05, (2, 30, 1))
            cost = [rows[0] * np.linspace(0.8, 1.2, 30)[:, None]]
            cost.append(rows[1] * np.linspace(0.8, 1.2, 30)[:, None])
            quality = [np.linspace(0.5, 0.9, 30)[:, None] * np.ones((1, 200)) for _ in range(2)]
            run.add(f"l{k}", quality, cost)
        marked += len(over(run, Budget(1.0))[0])
    assert marked <= 2


def test_the_share_of_shuffles_is_that_of_all_ways_to_split_the_rows() -> None:
    cost = np.array([1.0, 2, 4, 8, 9, 3, 7, 20, 11, 12])
    units = Units(cost, np.array([1.0, 2, 1, 1, 3, 1, 1, 2, 1, 1]), 4)
    spent, known = units.cost * units.rows, []
    for test in combinations(range(10), 6):
        other = [k for k in range(10) if k not in test]
        mean = [spent[[*part]].sum() / units.rows[[*part]].sum() for part in (test, other)]
        known.append(mean[0] - mean[1])
    drawn = next(overruns._shuffles((0, "f"), units))
    found = np.concatenate(
        [overruns._dearer(units, drawn)]
        + [overruns._dearer(units, next(overruns._shuffles((k, "f"), units))) for k in range(1, 40)]
    )
    assert drawn.sum(axis=1).tolist() == [6.0] * len(drawn)
    for excess in np.quantile(known, [0.5, 0.9, 0.99]):
        assert np.mean(found >= excess) == pytest.approx(np.mean(known >= excess), abs=0.02)


def test_many_rows_are_shuffled_in_groups_of_one_size_without_changing_what_they_cost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    units = Units(rng.exponential(size=1000), rng.integers(1, 5, 1000).astype(float), 400)
    monkeypatch.setattr(overruns, "MOST_UNITS", 100)
    few = overruns._grouped(units)
    assert (len(few.cost), few.valid) == (100, 40)
    for part in (slice(None, 40), slice(40, None)):
        own = slice(None, 400) if part.start is None else slice(400, None)
        assert few.rows[part].sum() == units.rows[own].sum()
        assert (few.cost * few.rows)[part].sum() == pytest.approx(
            (units.cost * units.rows)[own].sum()
        )


def test_repeats_count_together_and_those_on_the_same_rows_are_shuffled_together() -> None:
    rng = np.random.default_rng(4)
    rows = rng.exponential(size=(2, 300))
    rows[0] *= 1 / rows[0].mean()
    rows[1] *= 1.15 / rows[1].mean()  # two errors above
    same, apart = ValuedRun(), ValuedRun()
    for seed in range(8):
        add(same, "gbrt", *rows, seed=seed)
        other = rng.permutation(rows, axis=1)
        add(apart, "gbrt", *other, seed=seed, fingerprint=f"{seed}" * 64)
    assert over(same, Budget(1.001)) == [[]]  # eight times the same is no more than once
    assert over(apart, Budget(1.001)) == [["gbrt"]]


def test_a_budget_for_95_percent_of_rows_is_over_where_surely_more_of_them_cost_more() -> None:
    rng = np.random.default_rng(5)
    valid = np.r_[np.full(960, 1.0), np.full(40, 9.0)]
    chance = np.where(rng.permutation(1000) < 60, 9.0, 1.0)  # 6%, two errors more
    run = ValuedRun()
    add(run, "fair", valid, chance)
    add(run, "dear", valid, np.where(np.arange(1000) < 120, 9.0, 1.0))
    assert over(run, Budget(2.0, "p95"), Budget(9.0, "p95")) == [["dear"], []]


def test_queries_do_not_tell_what_95_percent_of_their_rows_cost() -> None:
    run = ValuedRun()
    add(run, "gbrt", np.ones(100), np.full(100, 3.0))
    run.kept = [replace(one, rows=np.full(100, 7, np.float32)) for one in run.kept]
    assert over(run, Budget(2.0, "p95"), Budget(2.0)) == [[], ["gbrt"]]


def test_a_board_marks_the_row_and_the_figure() -> None:
    run = ValuedRun()
    add(run, "gbrt", np.full(60, 4.0), np.full(60, 4.0))
    add(run, "cheat", np.full(60, 1.0), np.full(60, 3.0))
    held: Any = run
    (plain,) = boards(run.info, run.frame)
    board = certified(run.info, held, plain, run.frame, resamples=100)
    marked = {row.learner: board.marks_of(row) for row in board.rows}
    assert marked == {"cheat": ("over budget",), "gbrt": ("reference",)}
    (row,) = (row for row in board.rows if row.learner == "cheat")
    assert {b.amount for b in row.over} == {b.amount for b in board.budgets if 1 <= b.amount < 3}
    none = certified(run.info, held, replace(plain, budgets=()), run.frame, resamples=100)
    assert not any(one.over for one in none.rows)


def test_the_error_of_a_mean_by_queries_is_that_of_a_bootstrap() -> None:
    rng = np.random.default_rng(6)
    rows = rng.integers(1, 9, 400).astype(float)
    units = Units(rng.exponential(size=400) + 0.1 * rows, rows, 150)
    cost, n = units.cost[150:], rows[150:]
    picked = rng.integers(0, 250, (4000, 250))
    drawn = (cost * n)[picked].sum(axis=1) / n[picked].sum(axis=1)
    assert units.error == pytest.approx(drawn.std(), rel=0.05)


def test_without_values_nothing_is_said() -> None:
    run = ValuedRun()
    add(run, "gbrt", np.full(60, 1.0), np.full(60, 3.0))
    (at,) = standings(run.info, None, "d", run.frame, [Budget(2.0)])
    assert not any(row.over for row in at.rows)


def test_the_level_can_be_reached_by_that_many_shuffles() -> None:
    assert LEVEL * (overruns.DRAWS + 1) >= 2
