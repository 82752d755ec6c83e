"""The choice of operating points in every draw, against loops over units and by hand."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from helpers import example
from helpers.levels import of_units_alone
from helpers.points import frame, rows
from helpers.valued_run import ValuedRun, right
from scipy import stats

from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.certainty import beaten_by, mean_savings
from bench_core.leaderboard.draws import NO_LIMIT, NO_VALUES, Draws
from bench_core.leaderboard.picks import likely
from bench_core.results.budgets import Budget, Target
from bench_core.statistics.bootstrap import Units, draw, errors_needed

KEEP = Target(0.99)
UNITS, RESAMPLES = 30, 150


def drawn_counts():
    """How often each unit is in each draw of the two splits (draws, units)."""
    code = Units(np.eye(UNITS), np.zeros((UNITS, UNITS)), np.ones(UNITS), np.ones(UNITS))
    found = draw(of_units_alone(code, code), RESAMPLES)
    return found.valid_quality * UNITS, found.test_quality * UNITS


def of_run(run, **more):
    return Draws(run.info, run, run.frame, "d", resamples=RESAMPLES, **more)


def draws_without_values(data, *, reference="gbrt", metric="ndcg@5", higher=True):
    directions = {"metrics": (metric,), "higher_is_better": {metric: higher}}
    use = example.use("yahoo", reference=reference, metrics=(metric,))
    info = example.info(datasets=(use,), **directions)
    return Draws(info, None, data, "yahoo")


def noisy(sign, seed=0):
    """Three learners of 4 points on units that are hard for all."""
    rng, run = np.random.default_rng(seed), ValuedRun()
    hard = rng.normal(0, 0.2, (2, UNITS))
    for name, gain, price in (("gbrt", 0.0, 10.0), ("good", 0.05, 4.0), ("weak", -0.02, 1.0)):
        level = 1 + gain + np.array([-0.2, -0.05, 0, 0.01])[:, None]
        quality = [sign * (level + one + rng.normal(0, 0.05, (4, UNITS))) for one in hard]
        cost = np.arange(1, 5)[:, None] * price * rng.uniform(0.6, 1.4, (2, 4, UNITS))
        run.add(name, quality, [*cost])
    return run


def within_observed(valid, limit):
    return (valid.cost.mean(axis=1) <= limit.amount).any()


def as_candidates(quality, other, factor):
    """A learner's points and the reference's best one, as the rule for sure points takes them."""
    ones = np.ones(UNITS)
    units = (Units(own, own, ones, ones) for own in (quality, other[None]))
    one, against = (of_units_alone(own, own, other) for own in units)
    return one, ((against, 0) if factor else None), factor


def by_hand(run, limit, sign):
    """For each learner and draw test quality and cost of the point that a limit chooses."""
    of = {(one.trial.learner, one.split): one for one in run.kept}
    found = {}
    counts = drawn_counts()
    for name in ("gbrt", "good", "weak"):
        valid, test = (of[name, split] for split in ("valid", "test"))
        whole = of["gbrt", "valid"].metric.astype(float)
        other = whole[(sign * whole.mean(axis=1)).argmax()]
        share = 0.99 if sign > 0 else 1 / 0.99
        target = whole.mean(axis=1).max() if sign > 0 else whole.mean(axis=1).min()
        factor = (target - 0.01 * abs(target)) / target if sign > 0 else share
        if sign < 0:
            factor = (target + (share - 1) * abs(target)) / target
        chosen, needed = [], None
        for v, t in zip(*counts, strict=True):
            cost = valid.cost.astype(float) @ v / v.sum()
            quality = valid.metric.astype(float) @ v / v.sum()
            allowed = np.ones(4, dtype=bool)
            if isinstance(limit, Budget):
                allowed = valid.cost.mean(axis=1) <= limit.amount  # as observed
                k = np.where(allowed, sign * quality, -np.inf).argmax()
            else:
                gain = valid.metric.astype(float)
                aim = limit.amount
                if limit.kind == "keep":
                    best = (sign * (whole @ v / v.sum())).max() * sign
                    aim = best - 0.01 * abs(best) if sign > 0 else best + (share - 1) * abs(best)
                    gain = gain - factor * other
                spread = np.square(gain - gain.mean(axis=1, keepdims=True))
                error = np.sqrt(spread @ v * UNITS / (UNITS - 1)) / v.sum()
                if needed is None:  # as observed
                    needed = errors_needed(
                        *as_candidates(valid.metric, other, factor if limit.kind == "keep" else 0),
                        sign * (quality - aim),
                        error,
                    )
                allowed = sign * (quality - aim) >= needed * error
                k = np.where(allowed, cost, np.inf).argmin()
            there = allowed.any()
            chosen.append(
                [one[k] @ t / t.sum() if there else math.nan for one in (test.metric, test.cost)]
            )
        found[name] = np.array(chosen).T
        if isinstance(limit, Budget) and not within_observed(valid, limit):
            found[name][:] = math.nan
    return found


# gbrt costs 10 at least
LIMITS = [NO_LIMIT, Budget(9.0), Budget(10.5), KEEP]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("limit", [*LIMITS, Target(0.93, "quality")], ids=str)
def test_each_draw_chooses_as_a_loop_over_its_units_does(limit, sign):
    if limit.kind == "quality":
        limit = Target(sign * limit.amount, "quality")
    run = noisy(sign)
    info = replace(run.info, higher_is_better={"accuracy": sign > 0})
    draws = Draws(info, run, run.frame, "d", resamples=RESAMPLES)
    chosen = draws.chosen([limit])[0][limit]
    expected = by_hand(run, limit, sign)
    for k, name in enumerate(draws.names):
        for found, own in zip((chosen.quality, chosen.cost), expected[name], strict=True):
            np.testing.assert_allclose(found[0, k], own, rtol=1e-5)
    if limit == KEEP:
        known = np.isfinite(chosen.cost[0]).mean(axis=1)
        assert dict(zip(draws.names, chosen.sure[0], strict=True)) == {
            "gbrt": True,
            "good": True,
            "weak": False,
        }
        assert known[draws.names.index("weak")] < 0.5
        assert 0.5 < known[draws.names.index("good")] <= 1


def test_brief_budgets_have_the_qualities_of_whole_ones():
    run, budget = noisy(1), Budget(9.0)
    chosen, brief = of_run(run).chosen([budget], [budget])
    np.testing.assert_allclose(brief[budget], chosen[budget].quality, rtol=1e-6)


def paired():
    """The reference errs on 10 of 1000 rows, so that the target is 980.1 right ones. ``mine`` errs
    on the same and 8 more, or 2 more."""
    run = ValuedRun()
    run.answer("gbrt", (10, 100.0))
    run.answer("mine", (18, 10.0), (12, 20.0))
    return run


def errors_beyond(more):
    """By how many standard errors a learner that errs on ``more`` rows beyond the reference's 10
    exceeds the target."""
    gain = right(10 + more) - 0.99 * right(10)
    return gain.mean() / (gain.std(ddof=1) / 1000**0.5)


def test_the_cheapest_sure_point_is_chosen_and_no_cheaper_one_that_may_miss():
    """.0019 in 1000 is .68 errors; .0079 is 5.2 errors."""
    assert errors_beyond(8) == pytest.approx(0.679, abs=0.01)
    assert errors_beyond(2) == pytest.approx(5.5, abs=0.1)
    draws = of_run(paired())
    chosen = draws.chosen([KEEP])[0][KEEP]
    mine = draws.names.index("mine")
    assert chosen.sure[0, mine]
    assert draws.points["valid_cost"].iat[chosen.row[0, mine]] == 20
    assert chosen.errors[0, mine] == pytest.approx(errors_beyond(2))
    assert (chosen.held[0, mine] >= 0.97).all()


@pytest.mark.parametrize(("more", "repeats"), [(8, 1), (8, 3), (12, 1)])
def test_where_no_point_is_sure_the_likeliest_has_its_probability(more, repeats):
    run = ValuedRun()
    for seed in range(repeats):
        run.answer("gbrt", (10, 100.0), seed=seed)
        run.answer("mine", (40, 5.0), (10 + more, 10.0), seed=seed)
    draws = of_run(run)
    chosen = draws.chosen([KEEP])[0][KEEP]
    mine = draws.names.index("mine")
    found = likely(draws, chosen, mine)
    beyond = errors_beyond(more)
    assert not chosen.sure[:, mine].any()
    assert found.pick.valid_cost == 10
    assert found.probability == pytest.approx(stats.norm.cdf(beyond))
    enough = (1.645 / beyond) ** 2 if beyond > 0 else math.inf
    assert found.enough == pytest.approx(enough)


def test_a_learner_sure_in_one_repeat_and_not_in_the_other_is_likely_on_average():
    run = ValuedRun()
    for seed, more in enumerate((2, 8)):
        run.answer("gbrt", (10, 100.0), seed=seed)
        run.answer("mine", (10 + more, 10.0), seed=seed)
    (board,) = boards(run.info, run.frame, run, resamples=RESAMPLES)
    (mine,) = [one for one in board.rows if one.learner == "mine"]
    assert (mine.reached, bool(mine.cheap)) == (1, False)
    expected = np.mean([stats.norm.cdf(errors_beyond(more)) for more in (2, 8)])
    assert mine.likely.probability == pytest.approx(expected)


@pytest.mark.parametrize(("wrong", "measured"), [(12, False), (18, True)])
def test_no_saving_is_measured_where_the_constant_is_sure_to_reach_the_target(wrong, measured):
    run = paired()
    run.answer_constantly(wrong)
    draws = of_run(run)
    chosen = draws.chosen([KEEP])[0][KEEP]
    of = {name: bool(chosen.sure[0, k]) for k, name in enumerate(draws.names)}
    assert of == {"gbrt": measured, "mine": measured, "constant": False}
    # a quality is a target even so
    aim = Target(0.97, "quality")
    assert draws.chosen([aim])[0][aim].sure.all()


def test_a_constant_in_one_repeat_leaves_the_other_as_it_is():
    data = [
        row
        for seed, free in ((0, 0.9), (1, 0.5))
        for row in (
            *rows("gbrt", [(1, 40, 0.9, 0.9)], seed=seed),
            *rows("mine", [(1, 10, 0.9, 0.9)], seed=seed),
            *rows("constant", [(0, 0, free, 0.5)], point='{"constant": 1}', seed=seed),
        )
    ]
    draws = draws_without_values(frame(data))
    chosen = draws.chosen([KEEP, NO_LIMIT])[0]
    mine = draws.names.index("mine")
    assert chosen[KEEP].sure[:, mine].tolist() == [False, True]
    assert chosen[NO_LIMIT].sure[:, mine].all()


CEGB = rows("cegb", [(1, 10, 0.5, 0.40), (2, 20, 0.7, 0.60), (3, 30, 0.6, 0.90)])
GBRT = rows("gbrt", [(1, 40, 0.60, 0.55), (2, 90, 0.705, 0.65)])


def saved(*parts, limit=KEEP, **more):
    """Mean savings by learner, without values of each row."""
    draws = draws_without_values(frame(*parts), **more)
    found = mean_savings(draws, draws.chosen([limit])[0][limit])
    return dict(zip(draws.names, found.tolist(), strict=True))


def test_without_values_of_each_row_whoever_reaches_the_target_on_validation_is_taken():
    """.69795 is reached by one point of each; test costs are 10 above those of validation."""
    assert saved(CEGB, GBRT) == {"cegb": 100 / 30, "gbrt": 1}
    assert saved(CEGB, GBRT, limit=Target(0.7)) == {"cegb": 50 / 20, "gbrt": 1}
    draws = draws_without_values(frame(CEGB, GBRT))
    assert (draws.places, draws.note) == ([], NO_VALUES)
    chosen = draws.chosen([KEEP])[0][KEEP]
    assert chosen.quality.shape == (1, 2, 1)
    assert np.isnan(chosen.errors).all()


@pytest.mark.parametrize(
    ("reference", "cost", "saving"),
    [(3, 0.5, 6.0), (0.5, 1, 0.5), (4, 0, np.inf), (0.5, 0, np.inf), (0, 0, 1.0), (0, 2, 0.0)],
)
def test_what_costs_nothing_saves_all_unless_the_reference_costs_nothing_too(
    reference, cost, saving
):
    """On test, where the data's rows cost 10 more than on validation."""
    parts = [
        rows("gbrt", [(1, reference - 10, 0.7, 0.6)]),
        rows("mine", [(1, cost - 10, 0.7, 0.6)]),
    ]
    assert saved(*parts) == {"gbrt": 1, "mine": saving}


def test_nothing_is_measured_against_a_reference_that_is_missing_or_diverged():
    broken = rows("gbrt", [(1, 40, 0.60, 0.55), (2, 90, 0.705, 0.65)], marks="at edge, diverged")
    mine = rows("cegb", [(1, 10, 0.9, 0.9)], marks="")
    for data in (frame(mine), frame(mine, broken)):
        assert not draws_without_values(data).chosen([KEEP])[0][KEEP].sure.any()
    # of several fits the sound ones are measured against
    sound = rows("gbrt", [(2, 90, 0.705, 0.65)], params="{}", marks="")
    worse = rows("gbrt", [(1, 900, 0.99, 0.9)], params='{"l2": 0}', marks="diverged")
    assert saved(rows("cegb", [(2, 20, 0.7, 0.6)], marks=""), sound, worse)["cegb"] == 100 / 30


def test_a_saving_over_repeats_is_a_ratio_of_mean_costs():
    """Test costs are 10 above those of validation: 40 / 10 in the first repeat, 20 / 20 in the
    second, whose ratios have the mean 2.5."""
    parts = [
        rows(name, [(1, cost - 10, 0.7, 0.6)], seed=seed)
        for name, costs in (("gbrt", (40, 20)), ("mine", (10, 20)))
        for seed, cost in enumerate(costs)
    ]
    assert saved(*parts) == {"gbrt": 1, "mine": 2}


def test_a_mean_saving_needs_a_sure_point_in_every_repeat():
    lacks = rows("cegb", [(1, 10, 0.1, 0.4)], seed=1)
    found = saved(CEGB, GBRT, lacks, rows("gbrt", [(2, 90, 0.705, 0.65)], seed=1))
    assert found == pytest.approx({"cegb": math.nan, "gbrt": 1}, nan_ok=True)


def test_a_run_that_lacks_the_values_of_a_repeat_has_no_draws():
    run = ValuedRun()
    for seed in (0, 1):
        run.answer("gbrt", (1, 1.0), seed=seed)
    run.kept = [one for one in run.kept if one.trial.seed == 0]
    draws = of_run(run)
    assert (draws.places, draws.note) == ([], NO_VALUES)
    assert draws.chosen([NO_LIMIT])[0][NO_LIMIT].quality.shape == (2, 1, 1)


@pytest.mark.parametrize("undefined", [["test"], ["valid", "test"]])
def test_a_metric_that_is_undefined_on_a_split_has_no_draws(undefined):
    run = ValuedRun()
    run.answer("gbrt", (1, 1.0), units=20)
    for row in run.rows:
        row["accuracy"] = math.nan if row["split"] in undefined else row["accuracy"]
    run.kept = [
        replace(one, weights=0 * one.weights) if one.split in undefined else one for one in run.kept
    ]
    draws = of_run(run)
    chosen = draws.chosen([NO_LIMIT, KEEP])[0]
    assert np.isnan(chosen[NO_LIMIT].quality).all()
    if undefined == ["test"]:
        assert draws.note == "accuracy is not defined on validation or test: no intervals"
        assert draws.places == []
    (board,) = boards(run.info, run.frame, run, resamples=RESAMPLES)
    assert board.answer is None or math.isnan(board.answer.best.quality)


def test_points_without_values_are_no_candidates():
    run = paired()
    extra = [row for row in run.rows if row["learner"] == "mine"][:1]
    both = [{**extra[0], "split": split, "point": '{"trees": 9}'} for split in ("valid", "test")]
    run.rows += [{**row, "accuracy": 1.0, "cost": 0.1} for row in both]
    draws = of_run(run)
    chosen = draws.chosen([NO_LIMIT])[0][NO_LIMIT]
    row = chosen.row[0, draws.names.index("mine")]
    assert json.loads(draws.points["point"].iat[row]) == {"trees": 2}


def test_a_curve_has_the_steps_of_every_repeat_by_hand():
    data = frame(
        rows("a", [(1, 10, 0.5, 0.1), (2, 20, 0.6, 0.3), (3, 25, 0.4, 0.9)]),
        rows("a", [(1, 15, 0.5, 0.2), (2, 30, 0.6, 0.5)], seed=1),
    )
    draws = draws_without_values(data)
    budgets, chosen = draws.curve("a")
    assert budgets.tolist() == [15, 20, 30]
    quality = draws.points["test_quality"].to_numpy()[chosen]
    assert quality.tolist() == [[0.1, 0.3, 0.3], [0.2, 0.2, 0.5]]
    assert draws.curve("absent")[0].tolist() == []


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        ([[(1, 20, 0.70, 0.1)]], False),  # the same
        ([[(1, 19, 0.70, 0.1)]], True),
        ([[(1, 20, 0.71, 0.1)]], True),
        ([[(1, 19, 0.69, 0.9), (2, 21, 0.72, 0.9)]], False),
        ([[(1, 5, 0.9, 0.1)], [(1, 21, 0.9, 0.9)]], False),  # in one repeat only
        ([[(1, 5, 0.9, 0.1)], [(2, 1, 0.7, 0.1)]], True),  # by different points
    ],
)
def test_a_point_is_dominated_by_one_learner_that_has_a_better_one_in_every_repeat(
    others, expected
):
    parts = [
        part
        for seed, points in enumerate(others)
        for part in (
            rows("mine", [(1, 20, 0.7, 0.6)], seed=seed),
            rows("other", points, seed=seed),
            rows("gbrt", [(1, 90, 0.7, 0.6)], seed=seed),
        )
    ]
    draws = draws_without_values(frame(*parts))
    chosen = draws.chosen([KEEP])[0][KEEP]
    assert beaten_by(draws, chosen, draws.names.index("mine")) == "other" * expected
