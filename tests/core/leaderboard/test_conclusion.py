"""The sentences of a board, by standings made by hand."""

from dataclasses import replace

import pytest

from bench_core.leaderboard.board import (
    NOTHING,
    UNKNOWN,
    Board,
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
from bench_core.terminal.wording import listed, times


def pick(quality, cost):
    return Pick(quality, 0.0, cost, (("{}", "{}"),), budget=cost)


def row(learner, *, cost=10.0, kept=0.9, saving=0.0, ends=UNKNOWN, tier=0, **more):
    """A learner of accuracy .9 at a cost of 30, that keeps 99% at this cost if it has a saving."""
    cheap = pick(kept, cost) if saving else NOTHING
    saved = Saved(Interval(*ends), Interval(*ends), tier, lost=more.pop("lost", False))
    given = {"reference": False, "audit": "sampled", "repeats": 1, "reached": int(saving > 0)}
    given |= {"best": pick(0.9, 30.0), "curve": (), "saved": saved}
    return Row(learner, cheap=cheap, saving=saving or float("nan"), **(given | more))


GBRT = row("gbrt", cost=26.4, saving=1.0, ends=(1.0, 1.0), tier=2, reference=True)
CEGB = row("cegb", cost=12.3, saving=2.1, ends=(1.3, 3.0), tier=1)
GREEDY = row("greedy-order", cost=8.0, saving=3.3, ends=(0.9, 5.0), tier=1, baseline=True)


def board(*rows, **more):
    given = {"dataset": "d", "metric": "accuracy", "higher_is_better": True, "accounting": "path"}
    given |= {"unit": "", "reference": "gbrt", "stand_in": False, "stand_in_for": "", "marks": ()}
    given |= {"repeats": 1, "failures": (), "facts": (), "notes": ()}
    return Board(rows=rows, **(given | more))


def said(*rows, **more):
    return conclusion(board(*rows, **more)).sentences


def test_who_keeps_the_quality_at_which_cost_and_who_ties():
    made = board(CEGB, replace(CEGB, learner="miser"), GBRT)
    assert conclusion(made).row is CEGB
    assert conclusion(made).sentences == (
        "cegb keeps 99% of gbrt's accuracy on validation, 100.0% on test, at cost 12.30 instead of "
        "26.40.",
        "It is 2.1x cheaper (95% interval: 1.3x to 3.0x).",
        "miser ties in saving.",
    )
    assert said(CEGB, GBRT, unit="euro")[0].endswith("on test, for 12.30 euro instead of 26.40.")
    for error, words in ((0.9108, "1.2% worse"), (0.8964, "0.4% better")):
        mse = replace(CEGB, cheap=pick(error, 12.3))
        (first, *_) = said(mse, GBRT, metric="mse", higher_is_better=False)
        words = f"cegb stays within 1% of gbrt's mse on validation, {words} on test, at cost 12.30"
        assert first.startswith(words)


@pytest.mark.parametrize(("single", "named"), [(12.3, False), (12.9, False), (13.0, True)])
def test_the_cost_of_a_single_model_is_named_next_to_a_much_cheaper_mixture(single, named):
    line = f"This cost mixes two models at random; a single one costs {single:.2f}."
    assert (line in said(replace(CEGB, single=single), GBRT)) == named


def test_what_costs_more_than_the_reference_is_not_said_to_tie():
    more = row("miser", cost=27.0, saving=0.98, ends=(0.6, 1.9), tier=1)
    assert said(CEGB, more, GBRT)[-1] == "It is 2.1x cheaper (95% interval: 1.3x to 3.0x)."


def test_a_saving_that_the_joint_test_does_not_separate_is_said_to_be_none():
    """Its own interval excludes 1, but its star says that the reference is not worse."""
    assert said(CEGB, replace(GBRT, saved=replace(GBRT.saved, tier=1)))[1] == (
        "It is 2.1x cheaper (95% interval: 1.3x to 3.0x), not significantly if all pairs are "
        "tested jointly."
    )


@pytest.mark.parametrize("low", [0.8, 1.0, 0.998])
def test_a_saving_whose_interval_has_1_is_not_called_certain(low):
    unsure = row("budget-boosting", cost=6.3, saving=4.2, ends=(low, 5.0), tier=1)
    shown = f"{low:.3f}x" if low == 0.998 else f"{low:.1f}x"
    assert said(unsure, replace(GBRT, saved=replace(GBRT.saved, tier=1))) == (
        "budget-boosting keeps 99% of gbrt's accuracy on validation, 100.0% on test, at cost 6.30 "
        "instead of 26.40.",
        f"It is 4.2x cheaper (95% interval: {shown} to 5.0x); no saving is significant.",
    )


def test_the_first_row_that_saves_is_named_and_others_that_tie():
    unsure = row("miser", cost=2.0, saving=13.0, ends=(1.0, 20.0), tier=1)
    made = conclusion(board(CEGB, unsure, GBRT))
    assert made.row is CEGB
    assert made.sentences[2:] == ("miser ties in saving.",)
    second = replace(CEGB, saved=replace(CEGB.saved, tier=2))
    assert "; this saving is not significant." in said(unsure, second, GBRT)[1]


def test_a_baseline_is_called_one_and_what_it_saves_more_is_told():
    assert said(CEGB, GBRT, GREEDY)[2:] == ("greedy-order (a baseline) ties in saving.",)
    second = replace(CEGB, saved=replace(CEGB.saved, tier=2))
    assert said(second, GBRT, GREEDY)[2:] == (
        "greedy-order, a baseline, saves significantly more.",
    )
    assert said(GBRT, replace(GREEDY, saved=CEGB.saved))[0].startswith(
        "greedy-order (a baseline) keeps 99% of gbrt's accuracy on validation, 100.0% on test, at"
    )


def test_what_was_kept_on_test_stands_beside_the_cost():
    short = replace(CEGB, cheap=pick(0.9 * 0.988, 12.3))
    assert "on validation, 98.8% on test, at cost 12.30" in said(short, GBRT)[0]


def test_a_learner_that_reaches_more_on_test_for_less_is_named():
    ahead = row("budget-boosting", best=pick(0.9067, 14.09))
    dearer = replace(ahead, learner="miser", best=pick(0.95, 26.4))  # as dear as the saving point
    words = "accuracy 0.9067 at cost 14.09; gbrt reaches 0.9000 at its best."
    assert said(GBRT, dearer, ahead)[:2] == (
        "No other learner keeps 99% of gbrt's accuracy on validation.",
        f"On test alone, budget-boosting is ahead: {words}",
    )
    kept = replace(ahead, cheap=pick(0.9, 14.09), reached=1)  # on validation too
    assert f"On test, budget-boosting has {words}" in said(GBRT, dearer, kept)
    assert said(CEGB, GBRT, replace(ahead, best=pick(0.9067, 12.0)))[2].startswith("On test alone")
    assert "On test" not in str(said(CEGB, GBRT, ahead, dearer))
    level = replace(ahead, best=pick(0.90004, 14.09))  # displayed as equal
    assert "On test" not in str(said(GBRT, level))
    error = {"metric": "mse", "higher_is_better": False}
    assert said(GBRT, replace(ahead, best=pick(0.8, 14.0)), **error)[1].startswith("On test")
    assert "On test" not in str(said(GBRT, ahead, **error))


@pytest.mark.parametrize(
    ("costs", "saving", "ends"),
    [(40.0, 0.66, (0.5, 1.2)), (26.3999, 1.0004, (1.0, 1.001))],
    ids=["dearer", "equal as displayed"],
)
def test_the_reference_itself_is_best(costs, saving, ends):
    other = row("cegb", cost=costs, saving=saving, ends=ends, tier=1)
    assert said(replace(GBRT, saved=replace(GBRT.saved, tier=1)), other) == (
        "No learner is cheaper than gbrt, which keeps 99% of its accuracy on validation, 100.0% on "
        "test, at cost 26.40.",
        "cegb ties in saving.",
    )


def test_of_an_existing_model_the_whole_is_replaced_and_fewer_trees_are_named():
    today = replace(GBRT, saving=1.5, best=pick(0.9, 39.6), marks=("trained elsewhere",))
    cheaper = replace(CEGB, saving=3.2, saved=Saved(Interval(1.9, 4.6), tier=1))
    assert said(cheaper, today) == (
        "cegb keeps 99% of gbrt's accuracy on validation, 100.0% on test, at cost 12.30 instead of "
        "today's 39.60.",
        "It is 3.2x cheaper (95% interval: 1.9x to 4.6x).",
        "gbrt with fewer trees keeps it at cost 26.40.",
    )
    level = replace(today, saved=replace(today.saved, tier=1))
    assert (
        said(cheaper, level)[2]
        == "gbrt with fewer trees keeps it at cost 26.40 and ties in saving."
    )
    unsure = replace(CEGB, saving=3.2, saved=Saved(Interval(0.9, 4.6), tier=1))
    assert said(unsure, replace(today, saved=Saved(Interval(1.4, 2.2), tier=1)))[1:3] == (
        "It is 3.2x cheaper (95% interval: 0.9x to 4.6x); this saving is not significant.",
        "gbrt with fewer trees keeps it at cost 26.40, a significant saving.",
    )
    keeps = "keeps 99% of its accuracy on validation, 100.0% on test, at cost 26.40 instead of"
    dear = row("cegb", cost=33.0, saving=1.2, ends=(1.1, 1.3), tier=2)
    assert said(today, dear)[:2] == (
        "No learner is cheaper than gbrt with fewer trees.",
        f"It {keeps} today's 39.60.",
    )
    assert said(today, row("miser"))[-1] == f"gbrt with fewer trees {keeps} today's 39.60."
    whole = replace(today, cheap=today.best, saving=1.0)  # no cheaper point keeps the quality
    assert said(cheaper, whole)[0].endswith("at cost 12.30 instead of today's 39.60.")
    assert "fewer trees" not in str(said(cheaper, whole))


ALONE = (
    "gbrt keeps 99% of its accuracy on validation, 100.0% on test, at cost 26.40 instead of 30.00."
)


def test_no_other_learner_keeps_the_quality():
    lucky = replace(CEGB, saved=replace(CEGB.saved, tier=0, lost=True))
    assert said(GBRT, row("miser"), lucky) == (
        "No other learner keeps 99% of gbrt's accuracy on validation and test; cegb does on "
        "validation only.",
        ALONE,
    )
    assert conclusion(board(GBRT, row("miser"))).row is GBRT
    assert said(GBRT, row("miser"))[0] == (
        "No other learner keeps 99% of gbrt's accuracy on validation."
    )
    assert said(GBRT, row("constant", baseline=True)) == (ALONE,)


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
    assert conclusion(board(flat)).row is None


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
        "cegb keeps 99% of gbrt's accuracy on validation, 100.0% on test, at cost 12.30 instead of "
        "26.40.",
        "It is 2.1x cheaper.",
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


def test_sentences_have_at_most_20_words():
    rows = (CEGB, *(replace(CEGB, learner=f"l{k}") for k in range(9)), GBRT, GREEDY)
    every = [
        *said(*rows),
        *said(GREEDY, GBRT),
        *said(GBRT),
        *overall_conclusion([*over(7, [*[0.9] * 7], [0.7] * 7)]),
    ]
    assert max(len(sentence.split()) for sentence in every) <= 20
    assert "l0, l1, l2 and 7 more tie in saving." in every


def test_names_are_listed_and_savings_near_1_have_two_decimals():
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c", "d"]) == "a, b, c and d"
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert [times(x) for x in (1.0, 1.04, 0.96, 1.06, 0.94, 0.998)] == [
        "1.0x", "1.04x", "0.96x", "1.1x", "0.9x", "0.998x"
    ]  # fmt: skip
