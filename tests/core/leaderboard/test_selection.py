"""The answers of a data set at any limit: their order, their figures and the reasons."""

import math

import numpy as np
import pytest
from helpers.points import frame, rows
from helpers.valued_run import ValuedRun, right

from bench_core.errors import UsageError
from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.draws import NO_LIMIT, NO_VALUES
from bench_core.leaderboard.selection import Choice
from bench_core.results.budgets import Budget, Target

KEEP = Target(0.99)


def choice_of(run, store=True):
    return Choice(run.info, run if store else None, run.frame, "d")


def names(answers):
    return [one.learner for one in answers.found]


def three():
    """A target of 980.1 right rows: 12 wrong ones are sure to keep it, 18 are likely."""
    run = ValuedRun()
    run.answer("gbrt", (12, 60.0), (10, 100.0))
    run.answer("cheap", (12, 20.0), (30, 1.0))
    run.answer("dear", (11, 50.0))
    run.answer("likely", (18, 5.0))
    return run


def test_the_answer_comes_first_and_those_whose_point_is_not_sure_last():
    answers = choice_of(three()).at(KEEP)
    assert names(answers) == ["cheap", "dear", "gbrt", "likely"]
    first, _, own, last = answers.found
    assert (first.pick.cost, first.saving, first.sure) == (20, pytest.approx(3), True)
    assert own.saving == 1
    assert first.saved.significant
    assert (last.sure, math.isnan(last.saving)) == (False, True)
    assert last.likely.pick.cost == 5
    assert 0.5 < last.likely.probability < 0.95
    assert (answers.reason, answers.note) == ("", "")
    assert first.words == "at 99% of gbrt's accuracy"
    assert [one["test_cost"] for _, one in first.points.iterrows()] == [20]


def test_a_board_without_a_saving_has_the_answer_at_a_lower_share():
    run = ValuedRun()
    run.answer("gbrt", (10, 100.0))
    run.answer("cheap", (25, 20.0), (300, 1.0))  # of 1000 wrong
    (board,) = boards(run.info, run.frame, run)
    asked = choice_of(run).at(Target(0.95)).of()
    assert (board.answer.learner, board.less.learner) == ("gbrt", "cheap")
    assert (board.less.cheap.cost, board.less.saving) == (20, pytest.approx(5))
    assert (board.less.cheap, board.less.saved) == (asked.cheap, asked.saved)
    (board,) = boards(run.info.keeping(0.95), run.frame, run)
    assert (board.answer.learner, board.less) == ("cheap", None)


def test_answers_and_boards_agree():
    run = three()
    (board,) = boards(run.info, run.frame, run)
    of = {row.learner: row for row in board.rows}
    answers = choice_of(run).at(KEEP)
    assert board.answer.learner == answers.found[0].learner
    for one in answers.found:
        row = of[one.learner]
        assert one.pick == (row.cheap if one.sure else row.likely.pick)
        assert one.saved == row.saved
        assert one.saving == row.saving or not one.sure


def test_where_no_learner_is_sure_to_save_the_reference_is_the_answer():
    run = ValuedRun()
    run.answer("gbrt", (10, 100.0))
    run.answer("mine", (18, 5.0))  # likely
    run.answer("equal", (10, 100.0))
    answers = choice_of(run).at(KEEP)
    assert names(answers)[0] == "gbrt"
    assert answers.reason == "no learner is sure to keep 99% of gbrt's accuracy for less than gbrt"
    (board,) = boards(run.info, run.frame, run)
    assert board.answer.reference


def test_a_dominated_learner_is_never_first():
    """The cost of both on test is in the other order than on validation."""
    run = ValuedRun()
    run.answer("gbrt", (10, 100.0))
    ones = np.ones((1, 1000))
    run.add("better", [right(10)[None]] * 2, [19 * ones, 21 * ones])
    run.add("worse", [right(11)[None]] * 2, [20 * ones, 20 * ones])
    answers = choice_of(run).at(KEEP)
    assert names(answers)[0] == "better"
    assert {one.learner: one.saved.beaten_by for one in answers.found} == {
        "better": "",
        "worse": "better",
        "gbrt": "better",
    }
    (board,) = boards(run.info, run.frame, run)
    assert board.answer.learner == "better"


def test_without_values_of_each_row_a_lower_cost_is_a_saving():
    answers = choice_of(three(), store=False).at(KEEP)
    # 18 wrong rows reach the target, as far as is known
    assert names(answers) == ["likely", "cheap", "dear", "gbrt"]
    assert answers.note == NO_VALUES
    assert math.isnan(answers.found[0].saved.interval.low)


def test_within_a_budget_the_best_on_validation_comes_first():
    choice = choice_of(three())
    answers = choice.at(Budget(55.0))
    assert names(answers) == ["dear", "cheap", "likely"]  # gbrt costs 60
    assert [one.pick.valid_cost for one in answers.found] == [50, 20, 5]
    assert answers.found[0].standing.quality == pytest.approx(0.989)
    assert answers.found[0].words == "within 55 on average"
    assert names(choice.at(NO_LIMIT))[0] == "gbrt"
    assert choice.at(Budget(0.5)).found == []


def test_learners_that_lack_a_repeat_come_last():
    run = ValuedRun()
    for seed in (0, 1):
        run.answer("gbrt", (10, 100.0), seed=seed)
        run.answer("mine", (10, 50.0), seed=seed)
        if seed:
            run.answer("half", (5, 5.0), seed=seed)
    choice = choice_of(run)
    for limit in (KEEP, NO_LIMIT, Target(0.98, "quality")):
        found = choice.at(limit).found
        assert found[-1].learner == "half"
        assert (found[-1].repeats, found[-1].of) == (1, 2)
    assert choice.at(KEEP).found[0].learner == "mine"


def test_a_quality_is_reached_at_the_least_cost_on_validation():
    answers = choice_of(three()).at(Target(0.98, "quality"))
    # .988 is 2.3 errors above, .982 less than one
    assert names(answers) == ["cheap", "dear", "gbrt", "likely"]
    assert [one.sure for one in answers.found] == [True, True, True, False]
    assert answers.found[0].words == "at accuracy 0.98"
    assert math.isnan(answers.found[0].saving)


def test_baselines_come_below_methods_that_are_sure_too():
    run = three()
    run.baselines = ("dear",)
    found = choice_of(run).at(KEEP).found
    assert [one.learner for one in found] == ["cheap", "gbrt", "dear", "likely"]
    assert [one.baseline for one in found] == [False, False, True, False]


def test_the_usual_answer_is_at_99_percent_or_else_at_any_cost_with_the_reason():
    choice = choice_of(three())
    assert choice.usual().limit == KEEP
    assert choice.usual("dear").limit == KEEP
    free = choice.usual("likely")
    assert free.limit == NO_LIMIT
    assert free.reason == (
        "no point of likely is sure to reach 99% of gbrt's accuracy on validation "
        "(0.982 is the best); shown is the best at any cost"
    )


def test_why_no_point_reaches_a_target():
    run = three()
    choice = choice_of(run)
    assert choice.why_not(Target(0.999, "quality")) == (
        "no point of any learner is sure to reach accuracy 0.999 on validation (0.99 is the best)"
    )
    run.reference = "absent"
    assert choice_of(run).why_not(KEEP).startswith("the run has no reference with a result")
    assert choice_of(run).at(KEEP).found == []
    free = three()
    free.answer_constantly(10)
    words = "the best constant already reaches 99% of gbrt's accuracy on validation, at no cost"
    assert choice_of(free).why_not(KEEP) == words
    assert choice_of(free).usual().reason == f"{words}; shown is the best at any cost"


def test_one_repeat_is_taken_by_seed_and_fold():
    run = ValuedRun()
    for seed, cost in ((0, 50.0), (1, 40.0)):
        run.answer("gbrt", (10, 100.0), seed=seed)
        run.answer("mine", (10, cost), seed=seed)
    (first, _) = choice_of(run).at(KEEP).found
    assert first.pick.cost == 45
    assert first.of_repeat()["test_cost"] == 50
    assert first.of_repeat(seed=1)["test_cost"] == 40
    with pytest.raises(
        UsageError, match="d: mine has no such repeat; known: seed 0 of fold 0, seed 1"
    ):
        first.of_repeat(seed=2)


def test_under_a_cap_the_points_measured_under_it_are_answers():
    capped = rows("mine", [(7, 5, 0.9, 0.85)], dataset="d", metric="accuracy", cap=6.0)
    whole = rows("gbrt", [(1, 40, 0.9, 0.9)], dataset="d", metric="accuracy")
    data = frame(capped, whole).assign(
        error="", stand_in=False, evaluation_cost=0.0, fit_seconds=1.0
    )
    data.loc[data["learner"] == "mine", "cost_max"] = 6.0
    info = three().info
    found = Choice(info, None, data, "d").at(Budget(6.0, "cap")).found
    assert [one.learner for one in found] == ["mine"]
    assert Choice(info, None, data, "d").at(Budget(5.0, "cap")).found == []


def test_where_another_model_beats_the_sure_one_on_validation_the_reason_says_so():
    """Two learners are right for the same share of rows; only one is right for gbrt's rows."""
    run = ValuedRun()
    run.answer("gbrt", (10, 20.0), units=200)
    run.answer("cegb", (10, 10.0), units=200)
    others = right(10, 200)[None, ::-1]
    run.add("cheap", [others] * 2, [np.full((1, 200), 5.0)] * 2)
    answers = Choice(run.info, run, run.frame, "d").usual()
    assert answers.found[0].learner == "gbrt"
    assert answers.reason == (
        "cegb is sure to keep 99% of gbrt's accuracy, but cheap beats it on validation"
    )
