"""The sentences of a board, by standings made by hand."""

import math
from dataclasses import replace

import pytest

from bench_core.leaderboard.board import (
    NOTHING,
    UNKNOWN,
    Answer,
    Board,
    ClassRows,
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
from bench_core.results.records import DatasetUse
from bench_core.statistics.comparison import Interval
from bench_core.terminal.wording import listed, saving, saving_ends


def pick(quality, cost, valid=None):
    """A model; ``valid`` is its quality on validation, if it differs."""
    valid = quality if valid is None else valid
    return Pick(quality, cost, (("{}", "{}"),), valid_quality=valid, valid_cost=cost)


def nothing(quality, valid=None):
    """The best constant."""
    return replace(pick(quality, 0.0, valid), choices=(('{"constant": 1}', "{}"),))


def row(learner, *, cost=10.0, kept=0.9, saving=0.0, ends=UNKNOWN, tier=0, **more):
    """A learner of accuracy .9 at a cost of 30, that keeps 99% at this cost if it has a saving."""
    cheap = pick(kept, cost) if saving else NOTHING
    certain = {"lost": more.pop("lost", False), "beaten_by": more.pop("beaten_by", "")}
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
    "gbrt at its best costs 30.00 and has accuracy 0.9000 on test; to keep 99% of its accuracy it "
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
        "gbrt at its best costs 56.90 and is wrong for 12 of 2000 (0.6%); to keep 99% of its "
        "accuracy it costs 26.40, 2.1x as much (95%: 1.3x to 3.0x).",
    )


def test_next_to_a_model_of_today_the_difference_on_test_is_named():
    today = replace(GBRT, marks=("trained elsewhere",))
    worse = replace(CEGB, cheap=pick(0.885, 12.3))
    gap = replace(CEGB.saved, gap=Interval(-0.0312, 0.00124))
    line = "On test, cegb's accuracy minus gbrt's: -0.0150"
    assert said(replace(worse, saved=gap), today)[2] == f"{line} (95%: -0.0312 to +0.0012)."
    assert said(worse, today)[2] == f"{line}."
    assert said(replace(worse, saved=gap), GBRT)[2:] == ()


@pytest.mark.parametrize(
    ("low", "shown", "chance"),
    [(0.8, "0.8x", True), (1.0, "1.0x", True), (0.998, "<1x", True), (1.0004, "1.0x", True),
     (1.002, ">1x", False), (1.01, "1.01x", False)],
)  # fmt: skip
def test_a_saving_that_may_be_chance_is_called_that(low, shown, chance):
    unsure = row("budget-boosting", cost=6.3, saving=4.2, ends=(low, 5.0), tier=1)
    made = board(unsure, GBRT)
    assert made.answer is unsure
    assert conclusion(made)[1:] == (
        SECOND.replace("2.1x as much (95%: 1.3x to 3.0x)", f"4.2x as much (95%: {shown} to 5.0x)"),
        *["This saving may be chance."] * chance,
    )


def test_a_learner_that_another_one_dominates_is_never_named():
    beaten = replace(CEGB, learner="miser", saved=replace(CEGB.saved, beaten_by="cegb"))
    assert board(beaten, CEGB, GBRT).answer is CEGB
    assert board(beaten, GBRT).answer is GBRT
    more = replace(beaten, saved=replace(beaten.saved, interval=Interval(0.8, 3), more={"gbrt": 3}))
    assert said(more, GBRT, repeats=3)[-2:] == (
        "Figures are means over 3 repeats.",
        "About 9 repeats would separate miser from gbrt in cost.",
    )
    sure = "miser is sure to keep 99% of gbrt's accuracy, but cegb beats it on"
    assert said(beaten, GBRT)[0] == f"{sure} validation."
    assert said(beaten, GBRT, checked=(115, "rows"))[0] == f"{sure} 115 validation rows."
    assert said(beaten, replace(beaten, learner="l1"), GBRT)[0] == (
        "miser and l1 are sure to keep 99% of gbrt's accuracy, but cegb beats them on validation."
    )


def test_a_sure_baseline_that_is_cheaper_is_named_first():
    first = "greedy-order, a baseline, costs 8.00 per row and has accuracy 0.9000 on test."
    assert said(CEGB, GBRT, GREEDY) == (first, FIRST, SECOND)
    assert board(CEGB, GBRT, GREEDY).answer is CEGB
    refuted = replace(GREEDY, saved=replace(GREEDY.saved, lost=True))
    assert said(CEGB, GBRT, refuted) == (FIRST, SECOND)


def test_a_model_that_is_cheaper_and_no_worse_on_test_is_named():
    cheaper = replace(
        row("miser", cost=9.0, saving=2.9, ends=(0.9, 3.0), tier=2), cheap=pick(0.9, 9.0)
    )
    line = "miser, 9.00, has accuracy 0.9000 on test: cheaper and no worse on test."
    assert said(CEGB, GBRT, cheaper) == (FIRST, SECOND, line)
    assert said(CEGB, GBRT, replace(cheaper, cheap=pick(0.899, 9.0))) == (FIRST, SECOND)
    assert said(CEGB, GBRT, replace(cheaper, cheap=pick(0.9, 12.3))) == (FIRST, SECOND)
    likely = row("l1", likely=Likely(pick(0.95, 3.0), 0.81, 2.0))
    (*_, last) = said(replace(CEGB, cheap=pick(0.94, 12.3)), GBRT, likely, tested=1000)
    assert last == "l1, 3.00, 81% sure, is wrong for 50: cheaper and no worse on test."
    unlikely = replace(likely, likely=Likely(pick(0.95, 3.0), 0.5, 2.0))
    assert said(CEGB, GBRT, unlikely) == (FIRST, SECOND)


@pytest.mark.parametrize(
    ("costs", "saving", "ends"),
    [(40.0, 0.66, (0.5, 1.2)), (26.3999, 1.0004, (1.0, 1.001))],
    ids=["dearer", "equal as displayed"],
)
def test_the_reference_itself_is_best(costs, saving, ends):
    other = row("cegb", cost=costs, saving=saving, ends=ends, tier=1)
    assert said(GBRT, other) == (
        "No learner that is sure to keep 99% of gbrt's accuracy costs less than gbrt.",
        *ALONE,
    )


ALONE = (
    "gbrt at its best costs 30.00 and has accuracy 0.9000 on test; to keep 99% of its accuracy it "
    "costs 26.40.",
    "The answer is gbrt at 26.40.",
)


def test_bench_best_names_the_reference_at_its_best_if_no_cheaper_point_is_sure():
    whole = replace(GBRT, cheap=pick(0.9, 30.0))
    assert said(whole, row("miser"))[1:] == (
        "gbrt at its best costs 30.00 and has accuracy 0.9000 on test.",
        "The answer is gbrt at its best.",
    )


def test_a_likely_saving_below_a_hundredth_is_not_named():
    assert not any("Likely" in line for line in said(GBRT, likely("cegb", 26.2, 0.9)))
    assert any("Likely" in line for line in said(GBRT, likely("cegb", 26.1, 0.9)))


def test_where_no_learner_saves_the_answer_at_a_lower_share_is_named():
    cheaper = Saved(Interval(6.5, 16.8))
    less = Answer(learner="cegb", audit="", cheap=pick(0.85, 5.0), saving=5.9, saved=cheaper)
    assert said(GBRT, row("miser"), less=less)[-1] == (
        "With keep='95%', cegb costs 5.00 per row and has accuracy 0.8500 on test, 5.9x cheaper "
        "(95%: 6.5x to 16.8x)."
    )
    free = replace(less, saving=math.inf, cheap=pick(0.85, 0.0))
    assert said(GBRT, row("miser"), less=free)[-1].endswith("has accuracy 0.8500 on test.")


def test_no_other_learner_keeps_the_quality():
    lucky = replace(CEGB, saved=replace(CEGB.saved, tier=0, lost=True))
    none = "No other learner is sure to keep 99% of gbrt's accuracy"
    assert said(GBRT, row("miser"), lucky) == (f"{none}; cegb only on validation.", *ALONE)
    assert board(GBRT, row("miser")).answer is GBRT
    assert said(GBRT, row("miser"))[0] == f"{none}."
    few = said(GBRT, row("miser"), checked=(499, "groups"))
    assert few[0] == f"{none}: 499 validation groups are few."


LIKELY = "Likely: cegb, 0.90 instead of 26.40, 71% sure; it has accuracy 0.8800 on test."


def test_where_rows_are_too_few_the_likeliest_is_named_with_its_probability():
    likely = row("cegb", likely=Likely(pick(0.88, 0.9), 0.71, 14.8))
    doubtful = row("miser", likely=Likely(pick(0.8, 0.1), 0.2, math.inf))
    dear = row("l1", likely=Likely(pick(0.8, 50.0), 0.94, 1.1))  # costs more than the reference
    assert said(GBRT, likely, doubtful, dear, checked=(60, "rows"))[:2] == (
        "No other learner is sure to keep 99% of gbrt's accuracy: 60 validation rows are too few "
        "(about 900 would do: 15 times the data).",
        LIKELY,
    )
    assert said(GBRT, doubtful, checked=(60, "rows"))[1:] == ALONE


def likely(learner, cost, chance, valid=0.9, **more):
    return row(learner, likely=Likely(pick(0.88, cost, valid), chance, 2.0), **more)


def named(*rows, **more):
    """The beginnings of the sentences on likely models, up to the cost."""
    lines = [line for line in said(GBRT, *rows, **more) if line.startswith(("Likely", "Next"))]
    return [line.partition(" instead")[0] for line in lines]


def test_of_likely_models_the_cheapest_of_about_the_best_probability_is_named():
    rows = (likely("a", 9.0, 0.91, 0.93), likely("b", 5.0, 0.82), likely("c", 3.0, 0.8, 0.89))
    assert named(*rows) == ["Likely: b, 5.00"]
    assert named(*rows[1:]) == ["Likely: c, 3.00"]
    assert [row.learner for row in board(GBRT, *rows).likely] == ["b", "a", "c"]


def test_a_likely_model_is_not_named_if_another_row_is_as_good_and_as_cheap_on_validation():
    better = likely("a", 9.0, 0.95)
    assert named(better, likely("b", 8.9, 0.6)) == ["Likely: b, 8.90"]
    assert named(better, likely("b", 8.9, 0.6, 0.899)) == ["Likely: a, 9.00"]
    assert named(better, likely("b", 9.0, 0.99)) == ["Likely: a, 9.00"]  # of equals the first
    sure = replace(row("b", cost=8.0, saving=0.9, tier=1), cheap=pick(0.95, 8.0))
    assert named(better, sure) == []
    lucky = replace(sure, saved=replace(sure.saved, lost=True))
    assert named(better, lucky) == ["Likely: a, 9.00"]
    # the best model of a row without a likely one
    best = row("b", best=pick(0.91, 8.0))
    assert named(better, best) == []
    assert named(better, constant=nothing(0.7, valid=0.9)) == []
    assert named(better, constant=nothing(0.95, valid=0.899)) == ["Likely: a, 9.00"]


def test_of_errors_the_lower_is_better_among_likely_models():
    mse = {"metric": "mse", "higher_is_better": False}
    rows = (likely("a", 9.0, 0.95, 0.9), likely("b", 8.0, 0.9, 0.95))
    assert [row.learner for row in board(GBRT, *rows, **mse).likely] == ["b", "a"]
    rows = (likely("a", 9.0, 0.95, 0.9), likely("b", 8.0, 0.9, 0.85))
    assert [row.learner for row in board(GBRT, *rows, **mse).likely] == ["b"]


def test_a_likely_baseline_is_called_one_and_the_first_learner_follows():
    greedy = likely("greedy-order", 3.0, 0.79, baseline=True)
    assert named(greedy) == ["Likely: greedy-order, a baseline, 3.00"]
    learner = likely("cegb", 5.0, 0.6, 0.95)
    assert named(learner, greedy) == ["Likely: greedy-order, a baseline, 3.00", "Next: cegb, 5.00"]
    assert named(likely("cegb", 5.0, 0.6), greedy) == ["Likely: greedy-order, a baseline, 3.00"]
    assert named(likely("cegb", 2.0, 0.75, 0.8), greedy) == ["Likely: cegb, 2.00"]


def test_next_to_a_likely_model_one_that_is_cheaper_and_no_worse_on_test_is_named():
    first = likely("cegb", 9.0, 0.95, 0.95)
    cheap = replace(likely("miser", 3.0, 0.6), likely=Likely(pick(0.88, 3.0, 0.8), 0.6, 2.0))
    line = "miser, 3.00, 60% sure, has accuracy 0.8800 on test: cheaper and no worse on test."
    assert line in said(GBRT, first, cheap)
    worse = replace(cheap, likely=Likely(pick(0.87, 3.0, 0.8), 0.6, 2.0))
    assert "no worse on test" not in " ".join(said(GBRT, first, worse))


@pytest.mark.parametrize("dominated", [False, True])
def test_a_likeliest_model_is_named_next_to_sure_ones_that_do_not_save(dominated):
    saving = {"cost": 12.0, "saving": 2.2} if dominated else {"cost": 40.0, "saving": 0.66}
    sure = row("miser", ends=(0.5, 2.5), tier=1, beaten_by="cegb" * dominated, **saving)
    likely = row("cegb", likely=Likely(pick(0.88, 0.9), 0.71, 14.8))
    first, *others = said(GBRT, sure, likely, checked=(60, "rows"))
    assert first.startswith("miser is sure to keep" if dominated else "No learner that is")
    assert others == [LIKELY, *ALONE]
    baseline = replace(sure, baseline=True)
    assert said(GBRT, baseline, likely, checked=(60, "rows")) == (first, *others)


def test_a_reference_that_does_not_beat_the_constant_or_diverged_measures_nothing():
    flat = row("gbrt", reference=True)
    keeps = "constant keeps 99% of gbrt's accuracy on validation at no cost: no saving is measured."
    assert said(flat, row("cegb")) == (f"A {keeps}",)
    assert said(replace(flat, reached=1), row("cegb"), constant=nothing(0.9)) == (
        f"In some repeats a {keeps}",
    )
    assert said(replace(flat, marks=("diverged",)), row("cegb")) == (
        "No saving is measured, as gbrt diverged.",
    )
    assert board(flat).answer is None


BINARY = DatasetUse("d", task="binary")
MULTICLASS = DatasetUse("d", task="multiclass")
REMEDY = "or give errors a price (error_costs)."


def test_a_constant_that_keeps_the_quality_is_told_instead_of_a_learner():
    flat = row("gbrt", reference=True, best=pick(0.957, 8.0))
    made = {"constant": nothing(0.9561), "constant_class": "no", "tested": 1000, "use": BINARY}
    best = {"unlimited": standings(None, ("cegb", 0.95, 1), ("gbrt", 0.94, 1))}
    first = (
        "Always answering 'no' is right for 95.6% of test rows and costs nothing; gbrt at its "
        "best is right for 95.7%.",
        f"Judge by metrics='auc', {REMEDY}",
    )
    assert said(flat, row("cegb", best=nothing(0.9561)), **made, **best) == first
    # no better than the constant on test
    assert said(flat, row("cegb", best=pick(0.9561, 2.0)), **made, **best) == first
    assert said(flat, row("cegb", best=pick(0.96, 2.0)), **made, **best)[2] == (
        "cegb is best on validation: accuracy 0.9600 on test at cost 2.00."
    )
    flat = replace(flat, best=nothing(0.9561))
    assert said(flat, row("cegb"), **made)[0].endswith(
        "; no model of gbrt is better on validation."
    )
    assert said(flat, row("cegb"), **made | {"constant_class": ""})[0].startswith(
        "Always answering the most frequent class is right for 95.6% of test rows"
    )
    mse = {"metric": "mse", "higher_is_better": False, "constant": nothing(0.91)}
    assert said(row("gbrt", reference=True), **mse) == (
        "The best constant answer has mse 0.9100 on test and costs nothing; gbrt at its best has "
        "0.9000.",
    )


def test_a_constant_that_may_keep_the_quality_is_never_a_learners():
    of_learner = row("cegb", likely=Likely(nothing(0.956), 0.92, 2.0))
    made = {"constant": nothing(0.956), "constant_class": "no", "tested": 1000, "use": BINARY}
    lines = said(GBRT, of_learner, **made)
    assert lines[0].startswith("Always answering 'no' is right for 95.6% of test rows and costs")
    assert lines[1] == f"Judge by metrics='auc', {REMEDY}"
    assert lines[2] == "No other learner is sure to keep 99% of gbrt's accuracy."
    assert "cegb" not in " ".join(lines)
    assert board(GBRT, of_learner, **made).named is None
    # a model that is better on validation, and much more likely
    good = replace(likely("miser", 3.0, 0.99, 0.97), best=pick(0.97, 9.0))
    doubtful = replace(of_learner, likely=Likely(nothing(0.956), 0.6, 2.0))
    assert named(good, doubtful, **made) == ["Likely: miser, 3.00"]
    assert named(good, of_learner, **made) == []


def test_where_accuracy_is_a_poor_judge_the_second_sentence_names_the_metric():
    made = {"tested": 1000, "constant_class": "normal", "use": MULTICLASS}
    second = (
        "Always answering 'normal' is right for 92.7%: judge by metrics='balanced_accuracy', "
        f"{REMEDY}"
    )
    assert said(CEGB, GBRT, constant=nothing(0.927), **made)[1] == second
    assert said(CEGB, GBRT, constant=nothing(0.927), **made | {"use": BINARY})[1] == (
        second.replace("balanced_accuracy", "auc")
    )
    fair = said(CEGB, GBRT, constant=nothing(0.85), **made)
    assert "judge" not in " ".join(fair)
    assert "judge" not in " ".join(said(CEGB, GBRT, constant=nothing(0.99)))  # no accuracy
    missed = (ClassRows("rare", 7, 0, 3), ClassRows("normal", 800, 700, 700))
    handful = (replace(missed[0], rows=4), missed[1])
    assert "judge" not in " ".join(said(CEGB, GBRT, classes=handful, **made))
    assert said(CEGB, GBRT, constant=nothing(0.8), classes=missed, **made)[1] == (
        f"cegb finds none of 7 test rows of 'rare': judge by metrics='balanced_accuracy', {REMEDY}"
    )


def test_of_the_rare_class_whose_recall_changes_most_the_rows_found_are_counted():
    classes = (
        ClassRows("normal", 700, 600, 690),
        ClassRows("hypo", 177, 173, 176),
        ClassRows("hyper", 73, 71, 73),
    )
    line = "Of 73 test rows of 'hyper', cegb finds 71; gbrt finds 73."
    assert said(CEGB, GBRT, classes=classes) == (FIRST, SECOND, line)
    assert said(GBRT, likely("cegb", 9.0, 0.8), classes=classes)[-2] == line
    alone = (classes[0], ClassRows("hypo", 1, 0, 1))
    assert said(CEGB, GBRT, classes=alone)[-1].startswith("Of 1 test row of 'hypo', cegb finds 0;")
    digits = tuple(ClassRows(str(k), 36, 36 - k, 35) for k in range(10))
    assert said(CEGB, GBRT, classes=digits) == (FIRST, SECOND)  # none is rare
    same = (classes[0], ClassRows("hypo", 177, 176, 176))
    assert said(CEGB, GBRT, classes=same) == (FIRST, SECOND)
    frequent = (ClassRows("a", 800, 700, 750), ClassRows("b", 200, 100, 150))
    assert said(CEGB, GBRT, classes=frequent) == (FIRST, SECOND)
    over = (ClassRows("normal", 800, 0, 0), ClassRows("hypo", 177.0, 173.4, 176.0))
    assert "Of 177.0 test rows of 'hypo', cegb finds 173.4; gbrt finds 176.0." in (
        said(CEGB, GBRT, classes=over, repeats=5)
    )


def test_costs_that_count_features_are_read():
    made = {"use": DatasetUse("d", features=64, counted=True), "unit": "features"}
    assert said(CEGB, GBRT, **made) == (
        "cegb reads 12.30 of 64 features per row and has accuracy 0.9000 on test.",
        SECOND.replace("costs", "reads"),
    )
    assert said(GBRT, likely("cegb", 9.0, 0.8), **made)[1].startswith(
        "Likely: cegb, 9.00 features instead of 26.40, 80% sure"
    )
    assert said(CEGB, GBRT, trees_paid=True, **made)[0].startswith("cegb costs 12.30 features")


def test_few_validation_rows_are_told_with_the_model():
    few = FIRST.replace(" on test.", " on test, chosen on only 499 validation rows.")
    assert said(CEGB, GBRT, checked=(499, "rows"))[0] == few
    assert said(CEGB, GBRT, checked=(500, "rows"))[0] == FIRST
    assert said(CEGB, GBRT, checked=(25, "queries"))[0].endswith("on only 25 validation queries.")


def standings(budget, *found):
    """Standings of (learner, quality, tier), or also of quality and cost on validation."""
    rows = (
        Standing(n, q, Interval(q - 0.1, q + 0.1), 5.0, tier, valid=(*valid, q, 5.0)[:2])
        for n, q, tier, *valid in found
    )
    return Standings(budget, tuple(rows))


def test_without_a_reference_the_best_quality_is_told_with_its_ties():
    at = standings(None, ("miser", 0.9, 1, 0.91, 9.0), ("cegb", 0.9, 1), ("l1", 0.7, 2))
    made = {"reference": "", "unlimited": at}
    rows = (row("miser"), row("cegb"), row("l1"))
    assert said(*rows, **made) == (
        "miser is best on validation: accuracy 0.9000 on test at cost 30.00.",
        "cegb is about as good.",
        "No saving is measured without a reference learner.",
    )
    assert said(*rows, **made, unit="EUR")[0].endswith(" on test for 30.00 EUR.")
    counted = {"unit": "features", "use": DatasetUse("d", features=64, counted=True)}
    assert said(*rows, **made, **counted)[0].endswith(" on test reading 30.00 features.")
    few = said(*rows, **made, checked=(360, "rows"))[0]
    assert few.startswith("miser is best on only 360 validation rows: accuracy 0.9000")
    made = {"reference": "", "unlimited": standings(None, ("mine", 0.9, 1))}
    alone = "mine is the only learner: accuracy 0.9000 on test at cost 30.00."
    assert said(row("mine"), **made)[0] == alone
    assert said() == ()


def test_the_best_is_chosen_on_validation_and_learners_better_on_test_are_named():
    at = standings(
        None, ("a", 0.9, 1, 0.8, 9.0), ("b", 0.8, 2, 0.82, 9.0), ("c", 0.8, 2, 0.82, 8.0)
    )
    made = {"reference": "", "unlimited": at}
    lines = said(row("a"), row("b"), row("c"), **made)
    assert lines[0].startswith("c is best on validation")
    assert lines[1:3] == ("b is about as good.", "a is better on test.")


def test_without_a_reference_a_constant_is_never_a_learners():
    made = {"reference": "", "unlimited": standings(None, ("a", 0.956, 1), ("b", 0.95, 1))}
    made |= {"constant": nothing(0.956), "constant_class": "no", "tested": 1000, "use": BINARY}
    assert said(row("a", best=nothing(0.956)), row("b", best=pick(0.95, 3.0)), **made) == (
        "Always answering 'no' is right for 95.6% of test rows and costs nothing; no learner is "
        "better on validation.",
        f"Judge by metrics='auc', {REMEDY}",
        "No saving is measured without a reference learner.",
    )
    made["unlimited"] = standings(None, ("b", 0.97, 1), ("a", 0.956, 1, 0.956, 0.0))
    lines = said(row("a", best=nothing(0.956)), row("b", best=pick(0.97, 3.0)), **made)
    assert lines[0] == "b is best on validation: accuracy 0.9700 on test at cost 3.00."
    assert "about as good" not in " ".join(lines)


def test_under_caps_each_has_the_learner_that_is_best_on_validation():
    caps = (
        standings(Budget(1, "cap"), ("cegb", 0.6, 1, 0.6, 0.0), ("gbrt", 0.6, 1, 0.6, 0.0)),
        standings(
            Budget(3, "cap"),
            ("cegb", 0.82, 1, 0.79, 3.0),
            ("gbrt", 0.8, 1, 0.81, 3.0),
            ("miser", 0.6, 1, 0.6, 0.0),
        ),
        standings(Budget(5.0), ("gbrt", 0.7, 1)),
    )
    made = {"standings": caps, "constant": nothing(0.6), "constant_class": "no"}
    assert said(CEGB, GBRT, row("miser"), **made)[-3:] == (
        "With no row above 1, nothing is better on validation than always answering 'no'.",
        "With no row above 3, gbrt is best on validation: accuracy 0.8000 on test at cost 5.00.",
        "cegb is about as good.",
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


def test_of_few_repeats_the_number_that_would_separate_the_first_two_learners_is_told():
    alike = row("miser", cost=13.0, saving=2.0, ends=(1.2, 3.0), tier=1)
    sure = replace(CEGB, saved=replace(CEGB.saved, more={"gbrt": 2.0, "miser": 4.1}))
    includes = "The interval includes the spread of {} fits; one run has none."
    assert said(sure, alike, GBRT, repeats=3)[-3:] == (
        "Figures are means over 3 repeats.",
        includes.format(3),
        "About 13 repeats would separate cegb from miser in cost.",
    )
    unsure = replace(sure, saved=replace(sure.saved, interval=Interval(0.7, 5.0)))
    assert (
        said(unsure, GBRT, repeats=2)[-1]
        == "About 4 repeats would separate cegb from gbrt in cost."
    )
    many = replace(unsure, saved=replace(unsure.saved, more={"gbrt": 50.1}))
    assert said(many, GBRT, repeats=2)[-1] == (
        "More than 100 repeats would separate cegb from gbrt in cost."
    )
    assert said(sure, GBRT, repeats=3)[-1] == includes.format(3)
    assert said(unsure, GBRT, repeats=5)[-1] == includes.format(5)
    assert "spread" not in " ".join(said(unsure, GBRT))


def totals(learner, total, paid, tier=1, valid=None):
    """A learner by its total cost, of which it pays a part for features."""
    best = pick(total, paid, valid)
    standing = Standing(learner, total, Interval(total - 0.1, total + 0.1), paid, tier)
    return row(learner, best=best, standing=standing)


def test_of_total_costs_the_parts_and_the_learners_that_cost_about_as_much_are_told():
    rows = (totals("miser", 1.5, 0.5), totals("cegb", 1.6, 0.7), totals("gbrt", 4.0, 3.0, 2))
    made = {"metric": "total_cost", "higher_is_better": False, "unit": "EUR"}
    made |= {"unlimited": Standings(None, tuple(one.standing for one in rows))}
    assert said(*rows, **made, extremes=(8.2, 1.61)) == (
        "miser costs 1.50 EUR per row (95%: 1.40 to 1.60): 0.50 for features, 1.00 for errors.",
        "Buying everything costs 8.20 with the best answers, buying nothing 1.61.",
        "cegb does not cost significantly more.",
    )
    few = said(*rows, **made, extremes=(8.2, 1.61), checked=(360, "rows"))[0]
    assert few.endswith("1.00 for errors, chosen on only 360 validation rows.")
    for nothing_paid, same in ((1.5004, "the same"), (1.3, "1.50")):
        assert said(*rows, **made, extremes=(8.2, nothing_paid)) == (
            f"Buying nothing costs {nothing_paid:.2f} EUR per row.",
            f"miser costs {same} (95%: 1.40 to 1.60): no feature pays for itself.",
            "Buying everything costs 8.20 with the best answers.",
        )
    alone = totals("miser", 1.61, 0.0)
    alone = replace(alone, best=nothing(1.61))
    assert said(alone, **made, extremes=(8.2, 1.61))[0] == (
        "The best constant answer, which buys nothing, costs 1.61 EUR per row (95%: 1.51 to 1.71)."
    )


def test_over_repeats_wrong_rows_have_a_decimal():
    model = replace(CEGB, cheap=pick(0.9587, 12.3))
    assert "is wrong for 4.7 of 113 test rows (4.1%)" in said(model, GBRT, tested=113, repeats=3)[0]
    assert board(model, GBRT, tested=113, repeats=3).wrong(0.9587) == 4.7


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
        "l0 is first on 6 of 7 data sets, by mean quality over all budgets; greedy-order, a "
        "baseline, is first on d6.",
        "greedy-order (a baseline) might be as good, by Nemenyi's test.",
    )
    # ranks 15/7, 21/7 less 3/7 and 10/7
    made = list(over(7, [0.9] * 3 + [0.5] * 4, [0.7] * 7, [0.8] * 7))
    assert "greedy-order (a baseline) has the best mean rank, 1.57." not in overall_conclusion(made)
    assert "greedy-order (a baseline) has the best mean rank, 1.43." in overall_conclusion(made)
    # a baseline is first on all, so that no learner is named
    assert overall_conclusion(list(over(3, [0.8] * 3, [0.7] * 3, [0.9] * 3)))[0] == (
        "greedy-order, a baseline, is first on 3 of 3 data sets, by mean quality over all budgets."
    )
    many = [[0.9 if d == k else 0.5 for d in range(6)] for k in range(6)]
    assert overall_conclusion(list(over(6, *many)))[1] == (
        "l0 is first on 1 of 6 data sets, by mean quality over all budgets; greedy-order, a "
        "baseline, is first on d5; l1 is first on d1."
    )
    clear = list(over(12, [0.9] * 12, [0.7] * 12))
    assert overall_conclusion(clear) == (
        "l0 is first on 12 of 12 data sets, by mean quality over all budgets.",
        "It has a better mean rank than all others, by Nemenyi's test.",
    )
    more = replace(clear[0], rows=[*clear[0].rows, row("l9", area=Measure(0.8))])
    assert overall_conclusion([more, *clear[1:]])[-1] == (
        "It has a better mean rank than all others with results on all data sets, by Nemenyi's "
        "test."
    )
    assert overall_conclusion(made[:1]) == ()
    # on four, 2.343 sqrt(3 * 4 / (6 * 4)) = 1.657 < 2; on two, 2.343 > 2: no ranks can differ more
    assert "Nemenyi" not in " ".join(overall_conclusion(made[:2]))
    assert overall_conclusion(made[:2])[0] == "2 data sets cannot tell the learners apart."
    bare = list(over(2, [float("nan")] * 2, [float("nan")] * 2))
    assert "data sets, by best quality; " in overall_conclusion(bare)[1]


def test_a_board_whose_metric_is_not_defined_has_no_other_conclusion_and_ranks_nobody():
    reason = "auc is not defined on test: it holds one class; use more rows"
    assert said(CEGB, GBRT, undefined=reason, repeats=3) == (f"No conclusion: {reason}.",)
    assert board(CEGB, GBRT, undefined=reason).answer is None
    made = list(over(3, [0.9] * 3, [0.7] * 3))
    nowhere = [row(name, area=Measure()) for name in ("l0", "greedy-order")]
    without = board(*nowhere, dataset="d9", undefined=reason)
    assert overall_conclusion([*made, without]) == overall_conclusion(made)
    assert overall_conclusion(made)[1].startswith("l0 is first on 3 of 3 data sets, by mean")


def test_names_are_listed_and_savings_near_1_have_two_decimals():
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c", "d"]) == "a, b, c and d"
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"
    assert [saving(x) for x in (1.0, 1.04, 0.96, 1.06, 0.94, 0.998, 0.9998)] == [
        "1.0x", "1.04x", "0.96x", "1.1x", "0.9x", "<1x", "<1x"
    ]  # fmt: skip
    assert [saving(x) for x in (0.04, 0.06, 1.004, 1.0004)] == ["<0.1x", "0.1x", ">1x", "1.0x"]
    assert saving_ends(Interval(0.997, 5.8)) == "<1x to 5.8x"
    assert saving_ends(Interval(1.0, 1.0)) == "-"  # of the reference


def test_a_rare_class_is_named_where_fewer_than_half_of_its_rows_are_found():
    normal = ClassRows("normal", 800, 790, 790)

    def told(*rare, **more):
        return [line for line in said(CEGB, GBRT, classes=(normal, *rare), **more) if "Of " in line]

    line = "Of 40 test rows of 'rare', cegb finds 19; gbrt finds 19."
    assert told(ClassRows("rare", 40, 19, 19)) == [line]
    assert told(ClassRows("rare", 40, 20, 20)) == []
    assert told(ClassRows("handful", 4, 0, 0)) == []
    assert told(ClassRows("rare", 40, 19)) == [line.replace("; gbrt finds 19", "")]
    # before one whose recall changes more
    assert told(ClassRows("other", 40, 21, 38), ClassRows("rare", 40, 19, 19)) == [line]
    assert told(ClassRows("rare", 40, 19, 19), metric="log_loss") == [line]


def test_of_the_least_total_cost_a_rare_class_is_named_too():
    made = {"metric": "total_cost", "higher_is_better": False, "extremes": (80.0, 70.0)}
    least = row("cegb", best=pick(40.0, 20.0))
    classes = (ClassRows("normal", 800, 790, 795), ClassRows("rare", 40, 39, 31))
    lines = said(least, row("gbrt", best=pick(60.0, 30.0), reference=True), classes=classes, **made)
    assert lines[-1] == "Of 40 test rows of 'rare', cegb finds 39; gbrt finds 31."
