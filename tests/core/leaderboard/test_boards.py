"""Boards by hand from tests/helpers/example.py, and standings."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from bench_reports.terminal import mark_lines
from helpers import example
from helpers.kit import refused
from helpers.valued_run import ValuedRun, learner_of

from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.board import notice
from bench_core.leaderboard.certainty import standings
from bench_core.leaderboard.columns import shown_rows
from bench_core.leaderboard.conclusion import conclusion
from bench_core.leaderboard.draws import NO_LIMIT, NO_VALUES, Draws
from bench_core.leaderboard.pairs import pairs_within
from bench_core.results.budgets import Budget, Target


@pytest.fixture(scope="module")
def both():
    return boards(example.info(), example.frame())


@pytest.fixture(scope="module")
def sim(both):
    return both[0]


def row(board, learner):
    (found,) = [r for r in board.rows if r.learner == learner]
    return found


def test_sources_alone_and_the_oracle_are_last_rows_and_never_the_answer():
    cheap, good = ({"score": 0.5, "regret": 0.3, "cost": 1.0}, {"score": 0.7, "cost": 5.0})
    oracle = {"score": 0.8, "regret": 0.0, "cost": 0.5}
    seeds = [
        {"good alone": good | {"regret": 0.1}, "cheap alone": cheap, "oracle": oracle},
        {"good alone": good | {"regret": 0.3}, "cheap alone": cheap, "oracle": oracle},
    ]
    for metric, higher, of_good in (("score", True, 0.7), ("regret", False, 0.2)):
        frame, uses = [], []
        for seed, sources in enumerate(seeds):
            about = {"metrics": (metric,), "reference": "best-single", "sources": sources}
            uses.append(example.use("d", seed=seed, task="choice", **about))
            for name, points in (("best-single", [(0.65, 4.0)]), ("cascade", [(0.66, 3.0)])):
                points = [({"k": k}, quality, cost) for k, (quality, cost) in enumerate(points)]
                frame += example.rows("d", name, {}, points, metric=metric, seed=seed)
        info = example.info(datasets=tuple(uses), higher_is_better={metric: higher})
        (board,) = boards(info, pd.DataFrame(frame))
        assert [(r.learner, r.best.cost) for r in board.sources] == [
            *(("cheap alone", 1.0), ("good alone", 5.0), ("oracle", 0.5))
        ]
        assert board.sources[1].best.quality == pytest.approx(of_good)
        last = [(r.learner, board.marks_of(r)) for r in shown_rows(board)[-3:]]
        assert last[1:] == [("good alone", ("baseline",)), ("oracle", ("baseline", "unreachable"))]
        words = " ".join(conclusion(board))
        assert "alone" not in words
        assert "oracle" not in words
        assert {r.learner for r in board.rows} == {"best-single", "cascade"}


def test_seeds_that_do_not_redraw_the_data_are_said_to_be_such():
    same = tuple(example.use("d", seed=s) for s in (0, 1))
    redrawn = (example.use("d", seed=0), example.use("d", seed=1, fingerprint="e" * 64))
    folds = tuple(
        example.use("d", seed=s, fold=f, fingerprint=str(f)) for f in (0, 1) for s in (0, 1)
    )
    frame = pd.DataFrame(example.rows("d", "gbrt", {}, [({"trees": 1}, 0.7, 1.0)]))
    notes = {
        name: boards(example.info(datasets=uses), frame)[0].notes
        for name, uses in (("same", same), ("redrawn", redrawn), ("folds", folds))
    }
    said = ("all 2 seeds have the same rows: repeats differ only by the randomness of learners",)
    drawn = (
        "each seed draws its own rows; those that several share make intervals too narrow "
        "(Nadeau and Bengio, 2003)",
    )
    assert notes == {"same": said, "redrawn": drawn, "folds": said}


def test_repeats_that_are_all_equal_are_said_to_be_such():
    uses = tuple(example.use("d", seed=s) for s in (0, 1))
    info = example.info(datasets=uses)
    rows = [
        row | {"seed": s}
        for s in (0, 1)
        for name in ("gbrt", "miser")
        for row in example.rows("d", name, {}, [({"trees": 1}, 0.7, 1.0)])
    ]
    assert {row["seed"] for row in rows} == {0, 1}
    frame = pd.DataFrame(rows).drop_duplicates(["learner", "seed", "split"])
    frame[["ndcg@5", "cost"]] = 0.7, 1.0
    words = "all 2 seeds have the same rows"
    all_equal = f"{words}, and all repeats are equal: one seed is enough"
    assert boards(info, frame)[0].notes == (all_equal,)
    frame.loc[(frame["learner"] == "miser") & (frame["seed"] == 1), "ndcg@5"] = 0.8
    words += ": repeats differ only by the randomness of learners; those of gbrt are equal"
    assert boards(info, frame)[0].notes == (words,)


def test_a_diverged_reference_is_marked_and_nothing_is_measured_against_it():
    points = [({"trees": 1}, 0.7, 1.0), ({"trees": 2}, 0.8, 2.0), ({"trees": 3}, 0.7, 3.0)]
    frame = pd.DataFrame(
        [
            made | {"marks": marks}
            for learner, marks in (("gbrt", "diverged"), ("miser", ""))
            for made in example.rows("d", learner, {}, points)
        ]
    )
    (board,) = boards(example.info(datasets=(example.use("d"),)), frame)
    gbrt, miser = row(board, "gbrt"), row(board, "miser")
    assert board.marks_of(gbrt) == ("reference", "diverged")
    assert board.marks_of(miser) == ()
    assert [bool(one.cheap) for one in (gbrt, miser)] == [False, False]
    (line,) = [line for line in mark_lines(board) if line.startswith("diverged: gbrt; ")]
    assert line.endswith("no saving is measured against it")


def test_a_learner_that_failed_its_audit_is_told_of_and_failures_that_ended_alike_are_one_line(sim):
    assert "peek" not in [r.learner for r in sim.rows]
    of = {one.learner: one for one in sim.failures}
    peek, slow = of["peek"], of["slow"]
    assert (peek.status, peek.trials) == ("audit failed", 3)
    assert peek.params == "its only setting"  # what all its trials have tells nothing
    assert (slow.status, slow.trials, slow.error) == ("timeout", 2, "over 600 s")
    assert slow.params == "a=1 and 1 other setting"


def test_the_curve_is_the_frontier_of_all_settings_together(sim):
    # 0.7 at 1500 is costlier and worse than .75 at 1000
    points = [(p.budget, p.pick.cost, round(p.pick.quality, 4)) for p in row(sim, "miser").curve]
    assert points == [(1000, 1000, 0.75), (3000, 3000, 0.795), (5000, 5000, 0.799)]


def test_a_setting_names_what_varies_within_the_run(sim):
    (setting,) = row(sim, "miser").best.settings
    assert setting.short == "trees=300 with tradeoff=0.1"
    assert setting.full == "trees=300 with trees=300, tradeoff=0.1"
    (only,) = row(sim, "gbrt").best.settings
    assert only.short == "trees=300"


def test_repeats_that_chose_differently_are_all_named():
    made = []
    for seed, better in ((0, 0.1), (1, 1.0), (2, 1.0)):
        for tradeoff in (0.1, 1.0):
            quality = 0.8 if tradeoff == better else 0.7
            points = [({"trees": 9}, quality, 10.0)]
            made += example.rows("d", "miser", {"tradeoff": tradeoff}, points, seed=seed)
    (board,) = boards(example.info(datasets=(example.use("d"),)), pd.DataFrame(made))
    assert [s.short for s in board.rows[0].best.settings] == [
        "trees=9 with tradeoff=1 (2 of 3)",
        "trees=9 with tradeoff=0.1 (1 of 3)",
    ]


def test_marks_tell_stand_ins_and_samples(both):
    assert [board.marks for board in both] == [("stand-in",), ("sample",)]
    assert both[0].marks_of(row(both[0], "gbrt")) == ("reference", "stand-in", "not converged")


def test_the_notice_names_what_is_missing_and_what_runs_instead(both):
    assert notice(both[0]) == (
        "The files of yahoo were not found; generated data (yahoo-sim) were used instead. "
        "Use them to check the installation, not to compare methods"
    )
    assert notice(both[1]) == ""


def test_a_learner_that_lacks_repeats_says_so():
    made = [
        *example.rows("d", "gbrt", {}, [({"trees": 1}, 0.8, 9.0)], seed=0),
        *example.rows("d", "gbrt", {}, [({"trees": 1}, 0.8, 9.0)], seed=1),
        *example.rows("d", "miser", {}, [({"trees": 1}, 0.8, 3.0)], seed=0),
        example.trial("d", "miser", {}, seed=1, status="crashed", error="killed"),
    ]
    (board,) = boards(example.info(datasets=(example.use("d"),)), pd.DataFrame(made))
    assert board.marks_of(row(board, "miser")) == ("1 of 2 repeats",)
    assert board.marks_of(row(board, "gbrt")) == ("reference",)


def test_keeping_the_quality_in_some_repeats_only_is_no_saving_but_said():
    made = []
    for seed, quality in ((0, 0.8), (1, 0.7)):
        made += example.rows("d", "gbrt", {}, [({"trees": 1}, 0.8, 9.0)], seed=seed)
        made += example.rows("d", "miser", {}, [({"trees": 1}, quality, 3.0)], seed=seed)
    (board,) = boards(example.info(datasets=(example.use("d"),)), pd.DataFrame(made))
    assert not row(board, "miser").cheap
    assert board.marks_of(row(board, "miser")) == ("sure in 1 of 2",)


def test_one_trial_refused_by_the_audit_marks_the_learner():
    made = example.rows("d", "miser", {"t": 1}, [({"trees": 1}, 0.8, 9.0)])
    made += example.rows("d", "miser", {"t": 2}, [({"trees": 1}, 0.9, 1.0)], audit="failed")
    (board,) = boards(example.info(datasets=(example.use("d"),)), pd.DataFrame(made))
    assert board.rows[0].best.quality == 0.8
    assert board.rows[0].audit == "failed in part"


def test_a_metric_that_is_better_when_lower_is_ranked_the_other_way():
    # keep an error of at most 2 / .99 = 2.02
    points = {"gbrt": [(2.0, 9.0)], "miser": [(2.01, 3.0), (2.5, 1.0)], "cegb": [(2.03, 2.0)]}
    made = [
        made_row
        for learner, own in points.items()
        for made_row in example.rows(
            "d", learner, {}, [({"trees": i}, *p) for i, p in enumerate(own)], metric="mse"
        )
    ]
    use = example.use("d", metrics=("mse",))
    (board,) = boards(example.info(datasets=(use,)), pd.DataFrame(made))
    assert [r.learner for r in board.rows] == ["miser", "gbrt", "cegb"]
    assert row(board, "miser").best.quality == 2.01
    assert row(board, "miser").saving == 3


def test_without_the_reference_the_rows_are_sorted_by_quality():
    frame = example.frame()
    (board,) = boards(
        replace(example.info(), datasets=(example.use("yahoo-sim", reference="gone"),)),
        frame[frame["dataset"] == "yahoo-sim"],
    )
    assert board.reference == ""
    assert [r.learner for r in board.rows] == ["gbrt", "miser", "cegb"]


def test_a_data_set_on_which_all_failed_still_has_its_board():
    frame = pd.DataFrame([example.trial("d", "slow", {}, status="timeout", error="late")])
    (board,) = boards(example.info(datasets=(example.use("d"),)), frame)
    assert board.rows == ()
    assert [f.learner for f in board.failures] == ["slow"]


def test_baselines_stand_below_all_others_and_say_what_they_are():
    # miser is the cheapest that keeps the quality, and would lead
    board, _ = boards(example.info(baselines=("miser",)), example.frame())
    learners = [r.learner for r in board.rows]
    assert learners[-1] == "miser"
    assert [r.baseline for r in board.rows] == [name == "miser" for name in learners]
    assert board.marks_of(board.rows[-1])[0] == "baseline"
    assert "baseline" not in board.marks_of(row(board, "gbrt"))
    usual, _ = boards(example.info(), example.frame())
    assert usual.rows[0].learner == "miser"
    assert row(board, "miser").saving == row(usual, "miser").saving


def shown_within(budgets, reference="gbrt", cheapest=0.0):
    """Of a learner whose rows cost twice the mean, measured under a cap of 3 as well."""
    points = [({"trees": 1}, 0.5, 2.0), ({"trees": 2}, 0.8, 6.0), ({"trees": 3}, 0.9, 32.0)]
    made = example.rows("d", "gbrt", {}, points)
    made += example.rows("d", "gbrt", {}, [({"cap": 3.0}, 0.6, 2.5)])
    frame = pd.DataFrame(made)
    cap = frame["point"].map(lambda point: 3.0 if "cap" in point else math.nan)
    twice = 2 * frame["cost"]
    frame = frame.assign(cost_max=twice.clip(upper=cap), cap=cap)
    use = example.use("d", budgets=budgets, cheapest_price=cheapest, reference=reference)
    info = example.info(datasets=(use,))
    (board,) = boards(info, frame)
    return board, board.rows[0]


def test_a_board_shows_what_is_reached_within_the_budgets_of_the_suite():
    board, row = shown_within(("5", "6", "cap 3", "cap 4", "1"))  # rows cost 4, 12, 64
    assert list(map(str, board.budgets)) == ["5", "6", "cap 3", "cap 4", "1"]
    qualities = [at.rows[0].quality for at in board.standings]
    assert qualities == pytest.approx([0.5, 0.8, 0.6, 0.5, math.nan], nan_ok=True)
    assert row.best.quality == 0.9
    assert [point.budget for point in row.curve] == [2.0, 6.0, 32.0]


@pytest.mark.parametrize(
    ("cheapest", "amounts"),
    [
        (2, [2, 4, 8, 16, 32]),
        (4, [4, 6.8, 12, 20, 32]),  # 4 * 8 ** (k / 4) is 6.73, 11.3 and 19.03
        (0.1, [0.32, 1.1, 3.2, 11, 32]),  # 1% of 32; .32 * 100 ** (k / 4) is 1.01, 3.2 and 10.1
        (40, [0.32, 1.1, 3.2, 11, 32]),  # the best point costs less than any feature
    ],
)
def test_without_budgets_of_a_suite_there_are_five_from_the_cheapest_feature_to_the_references_best(
    cheapest, amounts
):
    board, _ = shown_within((), cheapest=cheapest)
    assert [budget.amount for budget in board.budgets] == amounts
    assert shown_within((), reference="")[0].budgets == ()


def made(run, *budgets, store=True, resamples=2000):
    draws = Draws(run.info, run if store else None, run.frame, "d", resamples=resamples)
    limits = [budget or NO_LIMIT for budget in budgets or (None,)]
    chosen, _ = draws.chosen(limits)
    pairs = zip(budgets or (None,), limits, strict=True)
    return [standings(draws, budget, chosen[limit]) for budget, limit in pairs]


def clear(rng, units=400):
    """Two good learners, one bad, and a dear one."""
    run = ValuedRun()
    run.add("good", *learner_of(rng, [0.7, 0.9], [1, 4], units))
    run.add("alike", *learner_of(rng, [0.7, 0.9], [1, 4], units))
    run.add("bad", *learner_of(rng, [0.4, 0.5], [1, 4], units))
    run.add("gbrt", *learner_of(rng, [0.9], [9], units))
    return run


def test_learners_that_differ_clearly_are_in_tiers_and_those_that_do_not_share_one():
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


def weighted(run, judged):
    """The run with a metric that only the first units have."""
    for one in run.kept:
        one.weights[judged:] = 0
    for board_row in run.rows:
        (kept,) = (
            v
            for v in run.kept
            if (v.trial.learner, v.split) == (board_row["learner"], board_row["split"])
        )
        board_row["accuracy"] = float(
            kept.metric[json.loads(board_row["point"])["trees"] - 1, :judged].mean()
        )
    return run


def test_draws_in_which_a_metric_is_not_defined_are_left_out_and_counted():
    run = weighted(clear(np.random.default_rng(4), units=30), judged=3)
    draws = Draws(run.info, run, run.frame, "d")
    chosen, _ = draws.chosen([NO_LIMIT])
    # no draw on both splits is without any of the 3: 8.3% of 2001, five standard errors are 62
    assert draws.left_out == pytest.approx(2001 * (1 - (1 - 0.9**30) ** 2), abs=62)
    assert np.isfinite(chosen[NO_LIMIT].quality).all()
    assert all(math.isfinite(one.interval.low) for one in made(run)[0].rows)
    (board,) = boards(run.info, run.frame, run)
    assert f"intervals leave out {draws.left_out} draws of 2001" in " ".join(board.notes)


def test_too_few_draws_in_which_a_metric_is_defined_give_no_intervals():
    run = ValuedRun()
    rng = np.random.default_rng(4)
    for seed in range(12):  # all repeats have it in 64% to the power of 24
        run.add("good", *learner_of(rng, [0.9], [4], 30), seed=seed, fingerprint=str(seed))
    for one in run.kept:
        one.weights[1:] = 0
    (found,) = made(run)
    assert found.note.startswith("accuracy is not defined in ")
    assert math.isnan(found.rows[0].interval.low)


def test_a_mean_over_repeats_of_which_one_is_not_defined_is_not_defined():
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
    (board,) = boards(run.info, frame, run)
    assert all(math.isnan(one.best.quality) and not one.curve for one in board.rows)
    assert board.unlimited
    assert all(math.isnan(one.quality) for one in board.unlimited.rows)
    assert board.undefined.startswith("accuracy is not defined on test (fold 0, seed 1)")
    assert board.answer is None
    assert conclusion(board) == (f"No conclusion: {board.undefined}.",)
    call = pairs_within, run.info, run, frame, "d", ["good", "gbrt"], Budget(9.0)
    refused("no comparison: |on test (fold 0, seed 1)", *call, interest=0.01)


def test_seeds_with_one_test_set_and_other_validation_rows_are_no_further_test_rows():
    rng = np.random.default_rng(9)
    (_, test), (_, cost) = learner_of(rng, [0.5], [1], 300)
    intervals = []
    for seeds in (1, 10):
        run = ValuedRun()
        for seed in range(seeds):
            valid = rng.normal(0.5, 0.2, test.shape)
            given = {"seed": seed, "fingerprint": f"{seed:032}" + "t" * 32}
            run.add("gbrt", (valid, test), (cost, cost), **given)
        (at,) = made(run, None)
        intervals.append(at.rows[0].interval)
    one, ten = (high - low for low, high in intervals)
    assert ten == pytest.approx(one, rel=0.25)  # a third if they were rows of their own


def test_the_other_way_round_a_comparison_at_a_target_has_reciprocal_edges():
    """Of a learner that keeps the quality in some draws only: then it pays the reference's cost."""
    rng, run = np.random.default_rng(8), ValuedRun()
    for name, means in (("gbrt", [0.5, 0.8]), ("close", [0.5, 0.83])):
        run.add(name, *learner_of(rng, means, [1, 10] if name == "gbrt" else [1, 4], 300))
    found = []
    for names in (["close", "gbrt"], ["gbrt", "close"]):
        given = run.info, run, run.frame, "d", names, Target(0.99)
        found.append(pairs_within(*given, interest=0.0)[1][0])
    one, other = found
    assert one.cost_ratio == pytest.approx(1 / other.cost_ratio)
    edges = one.cost_interval.low, one.cost_interval.high
    turned = 1 / other.cost_interval.high, 1 / other.cost_interval.low
    assert edges == pytest.approx(turned)
    assert edges[0] == pytest.approx(1.0, abs=0.2)  # it fails in some draws


def test_a_ratio_of_costs_over_repeats_is_positive_and_has_its_value_in_its_interval():
    """The costs of three repeats differ so much that their noise exceeds their mean."""
    run = ValuedRun()
    for seed, price in enumerate((1.0, 2.0, 15.0)):
        rng = np.random.default_rng(seed)
        given = {"seed": seed, "fingerprint": f"{seed:064}"}
        run.add("gbrt", *learner_of(rng, [0.5, 0.8], [1, 20], 300), **given)
        run.add("cegb", *learner_of(rng, [0.5, 0.8], [1, price], 300), **given)
    call = run.info, run, run.frame, "d", ["gbrt", "cegb"], Target(0.6, "quality")
    (pair,) = pairs_within(*call, interest=0.01)[1]
    low, high = pair.cost_interval
    assert 0 <= low <= pair.cost_ratio <= high
    assert pair.cost_ratio == pytest.approx(pair.cost[1] / pair.cost[0])


def test_a_cost_on_test_above_the_budget_by_more_than_chance_is_marked():
    rng, run = np.random.default_rng(5), ValuedRun()
    for name, times in (("fair", 1.0), ("dearer", 1.2)):
        quality, cost = learner_of(rng, [0.3, 0.7, 0.9], [0, 2, 8], 400)
        run.add(name, quality, [cost[0], times * cost[1]])
    budgets = (None, Budget(2.1))
    found = made(run, *budgets)
    marked = [{one.learner for one in at.rows if one.over} for at in found]
    assert marked == [set(), {"dearer"}]
    (board,) = boards(run.info, run.frame, run, budgets={"d": budgets[1:]}, resamples=400)
    marks = {one.learner: board.marks_of(one)[:-1] for one in board.rows}  # not converged
    assert marks == {"fair": (), "dearer": ("over budget (2.1)",)}
    long = replace(board.rows[0], over=(Budget(1.5), Budget(26.874719)))
    assert "over budget (1.5, 26.87)" in board.marks_of(long)


def test_a_store_without_values_gives_tiers_by_quality_and_says_so():
    run = clear(np.random.default_rng(4))
    for found in (*made(run, store=False), *made(ValuedRun(rows=run.rows))):
        assert found.note == NO_VALUES
        assert [r.tier for r in found.rows] == [1, 2, 3, 4]
        assert all(math.isnan(r.interval.low) and r.ranks == (1, 4) for r in found.rows)


def test_a_learner_that_lacks_a_repeat_is_ranked_but_not_compared():
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
    assert row(found, "late").quality == pytest.approx(0.7, abs=0.05)  # of its own repeats
    assert math.isnan(row(found, "late").interval.low)
    assert not math.isnan(row(found, "best").interval.low)


def test_a_learner_of_wide_noise_does_not_decide_who_shares_its_tier():
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
