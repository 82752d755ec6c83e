"""The sentences of a board, by standings made by hand."""

import math
from dataclasses import replace

import pytest

from bench_core.leaderboard.board import (
    NOTHING,
    UNKNOWN,
    Board,
    Likely,
    Measure,
    Pick,
    Row,
    Saved,
    Standing,
    Standings,
)
from bench_core.leaderboard.conclusion import conclusion, overall_conclusion
from bench_core.results.budgets import Budget
from bench_core.statistics.comparison import Interval
from bench_core.terminal.wording import listed, saving


def pick(quality, cost):
    return Pick(quality, cost, (("{}", "{}"),), valid_quality=quality, valid_cost=cost)


def row(learner, *, cost=10.0, kept=0.9, saving=0.0, ends=UNKNOWN, tier=0, **more):
    """A learner of accuracy .9 at a cost of 30, that keeps 99% at this cost if it has a saving."""
    cheap = pick(kept, cost) if saving else NOTHING
    certain = {name: more.pop(name, False) for name in ("lost", "dominated")}
    saved = Saved(Interval(*ends), Interval(*ends), tier, **certain)
    given = {"reference": False, "audit": "sampled", "repeats": 1, "reached": int(saving > 0)}
    given |= {"best": pick(0.9, 30.0), "curve": (), "saved": saved}
    return Row(learner=learner, cheap=cheap, saving=saving or float("nan"), **(given | more))


GBRT = row("gbrt", cost=26.4, saving=1.0, ends=(1.0, 1.0), tier=2, reference=True)
CEGB = row("cegb", cost=12.3, saving=2.1, ends=(1.3, 3.0), tier=1)
GREEDY = row("greedy-order", cost=8.0, saving=3.3, ends=(0.9, 5.0), tier=1, baseline=True)


def board(*rows, **more):
    given = {"dataset": "d", "metric": "accuracy", "higher_is_better": True, "accounting": "path"}
    given |= {"unit": "", "reference": "gbrt", "stand_in": False, "stand_in_for": "", "marks": ()}
    given |= {"repeats": 1, "failures": (), "facts": (), "notes": ()}
    return Board(rows=rows, **(given | more))


def said(*rows, **more):
    return conclusion(board(*rows, **more))


FIRST = "cegb costs 12.30 per row and has accuracy 0.9000 on test."
SECOND = (
    "gbrt at its best costs 30.00 and has accuracy 0.9000 on test; cut to the same quality it "
    "costs 26.40, 2.1x as much (95%: 1.3x to 3.0x)."
)


def test_the_model_to_take_stands_next_to_the_reference_at_its_best_and_at_the_same_quality():
    made = board(CEGB, replace(CEGB, learner="miser"), GBRT)
    assert made.answer is CEGB
    assert conclusion(made) == (FIRST, SECOND, "miser saves about as much.")
    assert said(CEGB, GBRT, unit="euro")[0].startswith("cegb costs 12.30 euro per row")
    mse = replace(CEGB, cheap=pick(0.9108, 12.3))
    (first, *_) = said(mse, GBRT, metric="mse", higher_is_better=False)
    assert first == "cegb costs 12.30 per row and has mse 0.9108 on test."


def test_of_an_accuracy_the_wrong_rows_are_counted():
    cheap = replace(CEGB, cheap=pick(0.985, 12.3))
    best = replace(GBRT, best=pick(0.994, 56.9))
    assert said(cheap, best, tested=2000)[:2] == (
        "cegb costs 12.30 per row and is wrong for 30 of 2000 test rows (1.5%).",
        "gbrt at its best costs 56.90 and is wrong for 12 of 2000 (0.6%); cut to the same quality "
        "it costs 26.40, 2.1x as much (95%: 1.3x to 3.0x).",
    )


def test_next_to_a_model_of_today_the_difference_on_test_is_named():
    today = replace(GBRT, marks=("trained elsewhere",))
    worse = replace(CEGB, cheap=pick(0.885, 12.3))
    gap = replace(CEGB.saved, gap=Interval(-0.0312, 0.00124))
    line = "On test, cegb's accuracy minus gbrt's: -0.0150"
    assert said(replace(worse, saved=gap), today)[2] == f"{line} (95%: -0.0312 to +0.0012)."
    assert said(worse, today)[2] == f"{line}."
    assert said(replace(worse, saved=gap), GBRT)[2:] == ()


def test_what_costs_more_than_the_reference_is_not_said_to_save_as_much():
    more = row("miser", cost=27.0, saving=0.98, ends=(0.6, 1.9), tier=1)
    assert said(CEGB, more, GBRT) == (FIRST, SECOND)


@pytest.mark.parametrize(("low", "shown"), [(0.8, "0.8x"), (1.0, "1.0x"), (0.998, "0.998x")])
def test_a_saving_that_other_validation_rows_may_not_show_is_named_with_its_interval(low, shown):
    unsure = row("budget-boosting", cost=6.3, saving=4.2, ends=(low, 5.0), tier=1)
    made = board(unsure, GBRT)
    assert made.answer is unsure
    assert conclusion(made)[1:] == (
        SECOND.replace("2.1x as much (95%: 1.3x to 3.0x)", f"4.2x as much (95%: {shown} to 5.0x)"),
    )


def test_a_learner_that_another_one_dominates_is_never_named():
    beaten = replace(CEGB, learner="miser", saved=replace(CEGB.saved, dominated=True))
    assert board(beaten, CEGB, GBRT).answer is CEGB
    assert board(beaten, GBRT).answer is GBRT
    assert said(beaten, GBRT)[0] == (
        "On validation, next to miser a model of another learner is better and cheaper, but not "
        "sure to keep 99% of gbrt's accuracy."
    )


def test_a_baseline_is_called_one():
    assert said(GBRT, replace(GREEDY, saved=CEGB.saved))[0].startswith(
        "greedy-order (a baseline) costs 8.00 per row and has accuracy"
    )
    alike = replace(GREEDY, saved=CEGB.saved)
    assert said(CEGB, GBRT, alike)[2:] == ("greedy-order (a baseline) saves about as much.",)


def test_a_test_quality_that_is_not_defined_ends_no_conclusion():
    broken = row("odd", best=pick(math.nan, 1.0), cost=5.0)
    assert said(CEGB, GBRT, broken) == (FIRST, SECOND)
    assert "has accuracy - on test" in str(said(CEGB, replace(GBRT, best=pick(math.nan, 30.0))))


@pytest.mark.parametrize(
    ("costs", "saving", "ends"),
    [(40.0, 0.66, (0.5, 1.2)), (26.3999, 1.0004, (1.0, 1.001))],
    ids=["dearer", "equal as displayed"],
)
def test_the_reference_itself_is_best(costs, saving, ends):
    other = row("cegb", cost=costs, saving=saving, ends=ends, tier=1)
    assert said(GBRT, other) == (
        "No learner that is sure to keep 99% of gbrt's accuracy costs less than gbrt.",
        ALONE,
    )


ALONE = (
    "gbrt at its best costs 30.00 and has accuracy 0.9000 on test; cut to the same quality it "
    "costs 26.40."
)


def test_no_other_learner_keeps_the_quality():
    lucky = replace(CEGB, saved=replace(CEGB.saved, tier=0, lost=True))
    none = "No other learner is sure to keep 99% of gbrt's accuracy"
    assert said(GBRT, row("miser"), lucky) == (f"{none}; cegb only on validation.", ALONE)
    assert board(GBRT, row("miser")).answer is GBRT
    assert said(GBRT, row("miser"))[0] == f"{none}."


LIKELIEST = "Likeliest: cegb, 0.90 instead of 26.40, 71% sure; it has accuracy 0.8800 on test."


def test_where_rows_are_too_few_the_likeliest_is_named_with_its_probability():
    likely = row("cegb", likely=Likely(pick(0.88, 0.9), 0.71, 14.8))
    doubtful = row("miser", likely=Likely(pick(0.8, 0.1), 0.2, math.inf))
    dear = row("l1", likely=Likely(pick(0.8, 50.0), 0.94, 1.1))  # costs more than the reference
    assert said(GBRT, likely, doubtful, dear, checked=(60, "rows"))[:2] == (
        "No other learner is sure to keep 99% of gbrt's accuracy: 60 validation rows are too few "
        "(about 900 would do).",
        LIKELIEST,
    )
    assert said(GBRT, doubtful, checked=(60, "rows"))[1:] == (ALONE,)


@pytest.mark.parametrize("dominated", [False, True])
def test_a_likeliest_model_is_named_next_to_sure_ones_that_do_not_save(dominated):
    saving = {"cost": 12.0, "saving": 2.2} if dominated else {"cost": 40.0, "saving": 0.66}
    sure = row("miser", ends=(0.5, 2.5), tier=1, dominated=dominated, **saving)
    likely = row("cegb", likely=Likely(pick(0.88, 0.9), 0.71, 14.8))
    first, *others = said(GBRT, sure, likely, checked=(60, "rows"))
    assert first.startswith("On validation, next to miser" if dominated else "No learner that is")
    assert others == [LIKELIEST, ALONE]
    baseline = replace(sure, baseline=True)
    assert said(GBRT, baseline, likely, checked=(60, "rows")) == (first, *others)


def test_a_reference_that_does_not_beat_the_constant_or_diverged_measures_nothing():
    flat = row("gbrt", reference=True)
    assert said(flat, row("cegb")) == (
        "gbrt has the best accuracy, 0.9000 at cost 30.00.",
        "The uncertainty was not measured.",
        "No saving is measured, as a constant keeps 99% of gbrt's accuracy on validation at no "
        "cost.",
    )
    assert said(replace(flat, marks=("diverged",)), row("cegb"))[-1] == (
        "No saving is measured, as gbrt diverged."
    )
    assert board(flat).answer is None


def standings(budget, *found):
    """Standings of (learner, quality, tier)."""
    rows = (Standing(n, q, Interval(q - 0.1, q + 0.1), 5.0, tier) for n, q, tier in found)
    return Standings(budget, tuple(rows))


def test_without_a_reference_the_best_quality_is_told_with_its_ties():
    made = {"reference": "", "unlimited": standings(None, ("miser", 0.9, 1), ("cegb", 0.9, 1))}
    assert said(row("miser"), row("cegb"), **made) == (
        "miser has the best accuracy, 0.9000 at cost 30.00.",
        "cegb ties in accuracy.",
        "No saving is measured without a reference learner.",
    )
    alone = "mine is the only learner: accuracy 0.9000 at cost 30.00."
    assert said(row("mine"), reference="")[0] == alone
    assert said() == ()


def test_under_caps_each_has_its_leader():
    caps = (
        standings(Budget(3, "cap"), ("cegb", 0.8, 1), ("gbrt", 0.7, 2)),
        standings(Budget(5.0), ("gbrt", 0.7, 1)),
    )
    assert said(CEGB, GBRT, standings=caps)[-1] == (
        "With no row above 3, cegb has the best accuracy, 0.8000."
    )


def test_without_values_nothing_is_called_certain_and_repeats_are_told():
    plain = row("cegb", cost=12.3, saving=2.1)
    reference = replace(GBRT, saved=Saved())
    assert said(plain, reference, repeats=3) == (
        FIRST,
        SECOND.replace(" (95%: 1.3x to 3.0x)", ""),
        "The uncertainty was not measured.",
        "Figures are means over 3 repeats.",
    )


def over(count, *areas):
    """Boards whose learners have these areas (one for each board), the last of them a baseline."""
    names = [*(f"l{k}" for k in range(len(areas) - 1)), "greedy-order"]
    for d in range(count):
        rows = [
            row(name, area=Measure(own[d]), baseline=name == "greedy-order")
            for name, own in zip(names, areas, strict=True)
        ]
        yield board(*rows, dataset=f"d{d}")


def test_over_data_sets_the_learner_that_is_first_most_often_is_named_with_what_ties():
    """l0 is first on six of seven and third on the last, greedy-order second and then first."""
    made = list(over(7, [0.9] * 6 + [0.5], [0.7] * 6 + [0.6], [0.8] * 7))
    # Demsar (2006): 2.343 sqrt(3 * 4 / (6 * 7)) = 1.2524 separates; ranks 9/7, 20/7 and 13/7
    assert overall_conclusion(made) == (
        "l0 is first on 6 of 7 data sets, by mean quality over all budgets.",
        "Its mean rank among 3 learners is 1.29 (95% by Nemenyi's test: 1.00 to 1.91).",
        "greedy-order (a baseline) ties in mean rank.",
        "On 1 of 7 data sets a baseline is first.",
    )
    # ranks 15/7, 21/7 less 3/7 and 10/7
    made = list(over(7, [0.9] * 3 + [0.5] * 4, [0.7] * 7, [0.8] * 7))
    assert "greedy-order (a baseline) has the best mean rank, 1.57." not in overall_conclusion(made)
    assert "greedy-order (a baseline) has the best mean rank, 1.43." in overall_conclusion(made)
    clear = list(over(12, [0.9] * 12, [0.7] * 12))
    assert overall_conclusion(clear)[2:] == ("No other learner ties in mean rank.",)
    assert overall_conclusion(made[:1]) == ()
    # on four, 2.343 sqrt(3 * 4 / (6 * 4)) = 1.657 < 2; on two, 2.343 > 2: no ranks can differ more
    assert "Nemenyi" in " ".join(overall_conclusion(made[:4]))
    assert overall_conclusion(made[:2])[1:] == (
        "Its mean rank among 3 learners is 1.00. 2 data sets are too few for a test of ranks.",
    )
    bare = list(over(2, [float("nan")] * 2, [float("nan")] * 2))
    assert "data sets, by best quality." in overall_conclusion(bare)[0]


def test_a_board_whose_metric_is_not_defined_has_no_other_conclusion_and_ranks_nobody():
    reason = "auc is not defined on test: it holds one class; use more rows"
    assert said(CEGB, GBRT, undefined=reason, repeats=3) == (f"No conclusion: {reason}.",)
    assert board(CEGB, GBRT, undefined=reason).answer is None
    made = list(over(3, [0.9] * 3, [0.7] * 3))
    nowhere = [row(name, area=Measure()) for name in ("l0", "greedy-order")]
    without = board(*nowhere, dataset="d9", undefined=reason)
    assert overall_conclusion([*made, without]) == overall_conclusion(made)
    assert overall_conclusion(made)[0].startswith("l0 is first on 3 of 3 data sets, by mean")


def test_sentences_are_short():
    rows = (CEGB, *(replace(CEGB, learner=f"l{k}") for k in range(9)), GBRT, GREEDY)
    every = [
        *said(*rows),
        *said(GREEDY, GBRT),
        *said(GBRT),
        *overall_conclusion([*over(7, [*[0.9] * 7], [0.7] * 7)]),
    ]
    assert max(len(sentence.split()) for sentence in every) <= 33
    assert "l0, l1, l2 and 7 more save about as much." in every


def test_names_are_listed_and_savings_near_1_have_two_decimals():
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c", "d"]) == "a, b, c and d"
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert [saving(x) for x in (1.0, 1.04, 0.96, 1.06, 0.94, 0.998, 0.9998)] == [
        "1.0x", "1.04x", "0.96x", "1.1x", "0.9x", "0.998x", "<1x"
    ]  # fmt: skip
