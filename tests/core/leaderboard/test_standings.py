"""Standings at budgets: against a bootstrap by loops, on boards of equals and of others."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from helpers.valued_run import ValuedRun, learner_of

from bench_core import UsageError
from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.certainty import (
    NO_VALUES,
    Ranking,
    Standing,
    Standings,
    all_certified,
    certified,
    standings,
)
from bench_core.leaderboard.pairs import pairs_within
from bench_core.results.budgets import Budget


def made(run: ValuedRun, *budgets: Budget | None, store: bool = True) -> list[Standings]:
    held: Any = run if store else None
    return list(standings(run.info, held, "d", run.frame, budgets or (None,)))


def row(found: Standings, learner: str) -> Standing:
    (one,) = [r for r in found.rows if r.learner == learner]
    return one


def clear(rng: np.random.Generator, units: int = 400) -> ValuedRun:
    """Two good learners, one bad, and a dear one."""
    run = ValuedRun()
    run.add("good", *learner_of(rng, [0.7, 0.9], [1, 4], units))
    run.add("alike", *learner_of(rng, [0.7, 0.9], [1, 4], units))
    run.add("bad", *learner_of(rng, [0.4, 0.5], [1, 4], units))
    run.add("gbrt", *learner_of(rng, [0.9], [9], units))
    return run


def test_learners_that_differ_clearly_are_in_tiers_and_those_that_do_not_share_one() -> None:
    whole, within = made(clear(np.random.default_rng(0)), None, Budget(5.0))
    assert whole.budget is None
    assert {r.learner: r.tier for r in whole.rows} == {"good": 1, "alike": 1, "gbrt": 1, "bad": 2}
    assert {r.learner: r.ranks for r in whole.rows} == {
        "good": (1, 3),
        "alike": (1, 3),
        "gbrt": (1, 3),
        "bad": (4, 4),
    }
    assert [(r.learner, r.tier) for r in within.rows[2:]] == [("bad", 2), ("gbrt", 0)]
    assert within.rows[-1].ranks == (4, 4)
    assert math.isnan(within.rows[-1].quality)


def weighted(run: ValuedRun, judged: int) -> ValuedRun:
    """The run with a metric that only the first units have."""
    for one in run.kept:
        one.weights[judged:] = 0
    for row in run.rows:
        (kept,) = (
            v for v in run.kept if (v.trial.learner, v.split) == (row["learner"], row["split"])
        )
        row["accuracy"] = float(kept.metric[json.loads(row["point"])["trees"] - 1, :judged].mean())
    return run


def test_draws_in_which_a_metric_is_not_defined_are_left_out_and_counted() -> None:
    run = weighted(clear(np.random.default_rng(4), units=30), judged=3)
    held: Any = run
    ranking = Ranking(run.info, held, "d", run.frame, 2000)
    draws = ranking.draws([None])
    # no draw on both splits is without any of the 3: 8.3% of 2001, five standard errors are 62
    assert draws.left_out == pytest.approx(2001 * (1 - (1 - 0.9**30) ** 2), abs=62)
    assert all(np.isfinite(drawn[None]).all() for drawn in draws.values)
    assert all(math.isfinite(one.interval.low) for one in made(run)[0].rows)
    (board,) = all_certified(run.info, held, run.frame)
    assert f"intervals leave out {draws.left_out} draws of 2000" in " ".join(board.notes)


def test_too_few_draws_in_which_a_metric_is_defined_give_no_intervals() -> None:
    run = ValuedRun()
    rng = np.random.default_rng(4)
    for seed in range(12):  # all repeats have it in 64% to the power of 24
        run.add("good", *learner_of(rng, [0.9], [4], 30), seed=seed, fingerprint=str(seed))
    for one in run.kept:
        one.weights[1:] = 0
    (found,) = made(run)
    assert found.note.startswith("accuracy is not defined in ")
    assert math.isnan(found.rows[0].interval.low)


def test_a_mean_over_repeats_of_which_one_is_not_defined_is_not_defined() -> None:
    run = ValuedRun()
    rng = np.random.default_rng(4)
    for seed in range(2):
        run.add("good", *learner_of(rng, [0.7, 0.9], [1, 4], 40), seed=seed)
        run.add("gbrt", *learner_of(rng, [0.9], [9], 40), seed=seed)
    frame = run.frame
    frame.loc[(frame["seed"] == 1) & (frame["split"] == "test"), "accuracy"] = math.nan
    for one in run.kept:
        if (one.trial.seed, one.split) == (1, "test"):
            one.weights[:] = 0
    held: Any = run
    (board,) = all_certified(run.info, held, frame)
    assert all(math.isnan(one.best.quality) and not one.curve for one in board.rows)
    assert board.unlimited
    assert all(math.isnan(one.quality) for one in board.unlimited.rows)
    assert (
        "accuracy is not defined on test (fold 0, seed 1), and nor is a mean with it" in board.notes
    )
    with pytest.raises(UsageError, match=r"not defined on test \(fold 0, seed 1\): no comparison"):
        pairs_within(run.info, held, frame, "d", ["good", "gbrt"], Budget(9.0), interest=0.01)


def test_a_cost_on_test_above_the_budget_by_more_than_chance_is_marked() -> None:
    rng, run = np.random.default_rng(5), ValuedRun()
    for name, times in (("fair", 1.0), ("dearer", 1.2)):
        quality, cost = learner_of(rng, [0.3, 0.7, 0.9], [0, 2, 8], 400)
        run.add(name, quality, [cost[0], times * cost[1]])
    budgets = (None, Budget(5.0), Budget(5.0, "p95"))
    found = made(run, *budgets)
    marked = [{one.learner for one in at.rows if one.over} for at in found]
    assert marked == [set(), {"dearer"}, set()]
    (board,) = boards(run.info, run.frame)
    held: Any = run
    board = certified(run.info, held, replace(board, budgets=budgets[1:]), run.frame, resamples=400)
    marks = {one.learner: "over budget" in board.marks_of(one) for one in board.rows}
    assert marks == {"fair": False, "dearer": True}


def naive(run: ValuedRun, learner: str, budget: float, resamples: int) -> tuple[float, float]:
    """The interval of a learner by loops: draw, choose, read."""
    rng = np.random.default_rng(99)
    valid, test = (next(v for v in run.kept if (v.trial.learner, v.split) == (learner, s)) for s in
                   ("valid", "test"))  # fmt: skip
    drawn = []
    for _ in range(resamples):
        a = rng.integers(0, valid.metric.shape[1], valid.metric.shape[1])
        b = rng.integers(0, test.metric.shape[1], test.metric.shape[1])
        quality, cost = valid.metric[:, a].mean(axis=1), valid.cost[:, a].mean(axis=1)
        reached = test.metric[:, b].mean(axis=1)
        points, mixed = range(len(cost)), []
        for i, j in product(points, points):  # every mixture of two that costs just the budget
            if cost[i] <= budget < cost[j]:
                part = (budget - cost[i]) / (cost[j] - cost[i])
                weights = np.array([1 - part, part])
                mixed.append((weights @ quality[[i, j]], weights @ reached[[i, j]]))
        drawn.append(
            max(mixed + [(quality[i], reached[i]) for i in points if cost[i] <= budget])[1]
        )
    low, high = np.quantile(drawn, [0.025, 0.975]) - np.mean(drawn)
    return float(low), float(high)


def test_intervals_are_those_of_a_bootstrap_by_loops_that_chooses_anew() -> None:
    rng = np.random.default_rng(2)
    run = ValuedRun()
    # at 3.0 the second point is affordable in about half the draws; in some it is no corner
    run.add("gbrt", *learner_of(rng, [0.7, 0.77, 0.9], [1, 3, 9], 200))
    (found,) = made(run, Budget(3.0))
    one = found.rows[0]
    low, high = naive(run, "gbrt", 3.0, 4000)
    assert (one.interval.low - one.quality, one.interval.high - one.quality) == pytest.approx(
        (low, high), rel=0.12
    )


def test_equal_learners_all_lead() -> None:
    rng = np.random.default_rng(3)
    run = ValuedRun()
    for k in range(10):
        run.add(f"l{k}", *learner_of(rng, [0.6, 0.8], [1, 4], 300))
    for found in made(run, None, Budget(2.0)):
        assert {r.tier for r in found.rows} == {1}
        assert {r.ranks for r in found.rows} == {(1, 10)}


def test_a_store_without_values_gives_tiers_by_quality_and_says_so() -> None:
    run = clear(np.random.default_rng(4))
    for found in (*made(run, store=False), *made(ValuedRun(rows=run.rows))):
        assert found.note == NO_VALUES
        assert [r.tier for r in found.rows] == [1, 2, 3, 4]
        assert all(math.isnan(r.interval.low) and r.ranks == (1, 4) for r in found.rows)


def test_what_failed_its_audit_takes_no_part() -> None:
    rng = np.random.default_rng(5)
    run = clear(rng)
    run.add("good", *learner_of(rng, [9.0], [1], 400), params={"peek": 1}, audit="failed")
    run.add("peek", *learner_of(rng, [9.0], [1], 400), audit="failed")
    (found,) = made(run)
    assert "peek" not in [r.learner for r in found.rows]
    assert row(found, "good").interval.high < 1


def test_a_learner_that_lacks_a_repeat_is_ranked_but_not_compared() -> None:
    rng = np.random.default_rng(6)
    run = ValuedRun()
    for seed in (0, 1, 2):
        run.add("gbrt", *learner_of(rng, [0.8], [9], 200), seed=seed)
        run.add("best", *learner_of(rng, [0.9], [9], 200), seed=seed)
        if seed:
            run.add("late", *learner_of(rng, [0.7], [9], 200), seed=seed)
    (found,) = made(run)
    assert [(r.learner, r.tier) for r in found.rows] == [("best", 1), ("gbrt", 2), ("late", 2)]
    assert row(found, "late").ranks == (1, 3)
    assert math.isnan(row(found, "late").interval.low)
    assert not math.isnan(row(found, "best").interval.low)


def test_a_budget_for_95_of_100_rows_takes_points_whose_cost_tail_is_within_it() -> None:
    rng = np.random.default_rng(7)
    run = ValuedRun()
    quality, cost = learner_of(rng, [0.7, 0.9], [1, 4], 300)
    for part in cost:
        part[1, :30] = 40.0  # a tenth of the rows
    run.add("gbrt", quality, cost)
    mean, tail = made(run, Budget(9.0), Budget(9.0, "p95"))
    assert (mean.rows[0].quality, tail.rows[0].quality) == pytest.approx((0.9, 0.7), abs=0.05)
    assert tail.rows[0].interval.low < tail.rows[0].quality < tail.rows[0].interval.high


def test_a_learner_of_wide_noise_does_not_decide_who_shares_its_tier() -> None:
    """It may be first by value; who is certainly behind another is in a later tier all the same."""
    rng = np.random.default_rng(8)
    run = ValuedRun()
    shared = rng.normal(0, 0.05, (2, 400))
    for name, mean, noise in (("wild", 0.92, 3.0), ("good", 0.9, 0.05), ("fair", 0.85, 0.05)):
        own = rng.normal(0, noise, (2, 400))
        quality = [(s + n - n.mean() + mean)[None] for s, n in zip(shared, own, strict=True)]
        run.add(name, quality, [np.ones((1, 400))] * 2)
    (found,) = made(run)
    assert {r.learner: r.tier for r in found.rows} == {"wild": 1, "good": 1, "fair": 2}


def seeds_of_one_learner(rng: np.random.Generator) -> ValuedRun:
    """Two names for one learner: three fits each, which differ by chance, on shared test rows."""
    run = ValuedRun()
    hard = rng.normal(0, 0.3, (2, 300))
    for name in ("gbrt", "again"):
        for seed in range(3):
            luck = rng.normal(0, 0.01)
            noise = rng.normal(0, 0.1, (2, 4, 300))
            steps = np.array([0.5, 0.6, 0.65, 0.66])[:, None]
            quality = [steps + luck + h + n for h, n in zip(hard, noise, strict=True)]
            cost = np.array([1.0, 2.0, 4.0, 8.0])[:, None] * rng.lognormal(0, 0.3, (2, 4, 300))
            run.add(name, quality, list(cost), seed=seed)
    return run


@pytest.mark.slow
def test_two_seeds_of_one_learner_are_split_in_at_most_5_of_100_standings() -> None:
    rng = np.random.default_rng(9)
    runs, budgets = 2000, (None, Budget(4.0))
    split = [0, 0]
    for _ in range(runs):
        run = seeds_of_one_learner(rng)
        held: Any = run
        found = standings(run.info, held, "d", run.frame, budgets, resamples=500)
        for k, one in enumerate(found):
            split[k] += len({r.tier for r in one.rows}) > 1
    assert max(split) / runs <= 0.055
