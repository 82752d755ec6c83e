"""Claims of papers judged on frames small enough to check by eye."""

from math import nan

import pytest
from bench_claims.claims import Claim, read_claims
from bench_claims.verdicts import (
    ABSENT,
    ELSEWHERE,
    FAILS,
    FIGURE,
    HOLDS,
    SAMPLE,
    UNMEASURED,
    UNRUN,
    WORDS,
    settle,
    tally,
)
from helpers.claim_cases import BASE, claim, frame, info, judged, rows, use
from helpers.kit import refused

from bench_core.splits import Note

FULL = rows("full", [(16, 1.0, 0.975)], fit_seconds=2.0)
CHEAP = rows("cheap", [(4, 0.9, 0.9), (8, 0.991, 0.97), (12, 0.999, 0.99)])
POOR = rows("poor", [(4, 0.8, 0.8), (12, 0.9, 0.85)])
NONE = rows("constant", [(0, 0.5, 0.5)])

CHEAP_AND_POOR = ["cheap", "poor"]
ORDER = ["full", "cheap", "poor"]


@pytest.mark.parametrize(
    ("measure", "learners", "holds", "more", "expected"),
    [
        # cheap keeps 99% of full's best on validation from cost 8 on, of its cost of 16
        ("saving", ["cheap", "full"], ">= 0.31", {}, (HOLDS, 0.5)),
        ("saving", ["cheap", "full"], ">= 0.6", {}, (FAILS, 0.5)),
        ("saving", ["cheap", "full"], ">= 0.2", {"keeps": 0.999}, (HOLDS, 0.25)),
        ("saving", ["poor", "full"], ">= 0.1", {}, (FAILS, nan)),
        # chosen on validation, read on test
        ("quality", ["cheap"], "<= 0.975", {"budget": 10}, (HOLDS, 0.97)),
        ("quality", ["cheap"], "<= 0.975", {}, (FAILS, 0.99)),
        ("quality-kept", ["cheap", "full"], ">= 0.996", {"budget": 8}, (FAILS, 0.97 / 0.975)),
        ("cost", ["cheap"], "<= 8", {"keeps": 0.99, "floor": ">= 0.9"}, (HOLDS, 8.0)),
        ("cost", ["cheap"], "<= 8", {"keeps": 1.0, "floor": ">= 0.9"}, (FAILS, 12.0)),
        ("cost", CHEAP_AND_POOR, "<= 4", {"keeps": 1.0, "floor": ">= 0.9"}, (HOLDS, 4.0)),
        # cheap has .9 below a budget of 8 and .97 from there, poor .8 until 12
        ("margin", CHEAP_AND_POOR, "> 0", {"budgets": [4, 12]}, (HOLDS, (0.4 + 0.68) / 8)),
        ("margin", ["poor", "cheap"], "> 0", {"budgets": [4, 12]}, (FAILS, -(0.4 + 0.68) / 8)),
        ("margin", ORDER, "> 0", {"budgets": [16, 20]}, (FAILS, 0.975 - 0.99)),
        # full costs 16: below that it is as good as a constant, .5
        ("margin", ["cheap", "full"], "> 0", {"budgets": [9, 9.5]}, (HOLDS, 0.47)),
        ("margin", ["poor", "full"], "> 0", {"budgets": [0, 3]}, (FAILS, 0.0)),
        # .1 better below a budget of 8, .17 from there, and .14 where poor has its best
        ("least-margin", CHEAP_AND_POOR, ">= 0.09", {"budgets": [4, 30]}, (HOLDS, 0.1)),
        ("least-margin", ["full", "cheap"], ">= 0", {"budgets": [16, 20]}, (FAILS, -0.015)),
        ("least-margin", ["full", "cheap"], ">= 0", {"budgets": [4, 20]}, (FAILS, 0.5 - 0.99)),
        ("minutes", ["cheap"], "", {}, (FIGURE, 4 / 60)),
        ("time-ratio", ["cheap", "full"], "<= 1.5", {}, (FAILS, 2.0)),
    ],
)
def test_a_figure_is_that_of_the_definition(measure, learners, holds, more, expected):
    found = judged(measure, FULL, CHEAP, POOR, NONE, learners=learners, holds=holds, **more)
    assert found.word == expected[0]
    assert found.measured == pytest.approx(expected[1], nan_ok=True)


def test_a_budget_that_not_every_repeat_can_afford_gives_no_figure():
    expensive = rows("cheap", [(11, 1.0, 1.0)], seed=1)
    rule = {"learners": ["cheap"], "holds": ">= 0"}
    assert judged("quality", CHEAP, expensive, **rule).measured == pytest.approx((0.99 + 1) / 2)
    found = judged("quality", CHEAP, expensive, **rule, budget=10)
    assert (found.word, found.shown) == (FAILS, "-")
    lack = "no operating point within the budget in at least one repeat"
    assert found.how.endswith(f"2 repeats: 0.97, -; {lack}")


def test_without_the_constant_no_margin_is_settled():
    rule = {"learners": CHEAP_AND_POOR, "holds": "> 0", "budgets": [4, 12]}
    found = judged("margin", CHEAP, POOR, **rule)
    assert (found.word, found.how) == (UNRUN, "no results of constant")


QUALITY = {**BASE, "measure": "quality", "learners": ["cheap"], "holds": ">= 0.98"}


STAND_IN = rows("cheap", [(1, 1, 1)], stand_in=True)


@pytest.mark.parametrize(
    ("run", "made", "word", "how"),
    [
        (info(use("letters")), FULL, UNRUN, "no results of cheap; profile paper"),
        (info(use("letters")), STAND_IN, UNRUN, "no results of cheap; profile paper"),
        (info(use("forest")), CHEAP, ELSEWHERE, "letters is not in this run"),
        (
            info(use("sim", stand_in_for="letters")),
            *(STAND_IN, ABSENT, "sim is a stand-in, which never counts"),
        ),
        (
            info(use("x"), absent=("letters",)),
            *(CHEAP, ABSENT, "no files of letters: bench show letters"),
        ),
    ],
    ids=["not run", "stand-in in its place", "elsewhere", "stand-in", "skipped"],
)
def test_without_results_on_its_data_no_claim_is_settled(run, made, word, how):
    found = settle(Claim.of(QUALITY), run, frame(made))
    assert (found.word, found.how) == (word, how)


def test_a_verdict_says_how_it_was_measured_and_that_the_data_are_a_sample():
    run = info(
        use("letters", notes=(Note("sample", "sample: 9 of 10 rows"), Note("", "a sample too"))),
        profile="standard",
    )
    found = settle(Claim.of(QUALITY), run, frame(CHEAP))
    assert (found.word, found.shown, found.rests) == (HOLDS, "0.99", SAMPLE)
    told = "quality of cheap, accuracy, wanted >= 0.98; 1 repeat; profile standard; "
    assert found.how == told + "sample: 9 of 10 rows"


def test_a_verdict_says_what_the_run_had_of_its_own_and_what_it_lacks():
    run = info(
        use("letters"),
        request={"settings": ["cheap.trees=3"], "costs": "mine.json"},
        state="interrupted",
    )
    found = settle(Claim.of(QUALITY), run, frame(CHEAP))
    assert found.how.endswith("profile paper; --set cheap.trees=3; --costs mine.json")
    assert found.rests == "the paper's data; interrupted run"


@pytest.mark.parametrize(
    ("measure", "figure", "who", "lost"),
    [
        ("saving", 2 / 3, "cheap", {"status": "timeout"}),
        ("quality-kept", 0.99 / 0.85, "poor", {"audit": "failed"}),
        ("least-margin", 0.1, "poor", {"status": "timeout"}),
        ("time-ratio", 1, "cheap", {"audit": "failed"}),
    ],
)
def test_repeats_that_one_learner_did_not_finish_are_left_out_and_said(measure, figure, who, lost):
    """In the second repeat one of both has no results."""
    again = [
        rows(name, [(4, 0.5, 0.5)], seed=1, **(lost if name == who else {}))
        for name in ("cheap", "poor")
    ]
    rule = {"budgets": [4, 12]} if "margin" in measure else {}
    constant = [*NONE, *rows("constant", [(0, 0.5, 0.5)], seed=1)]
    parts = CHEAP, POOR, constant, *again
    found = judged(measure, *parts, learners=CHEAP_AND_POOR, holds="> 0", **rule)
    assert (found.word, found.measured) == (HOLDS, pytest.approx(figure))
    assert found.how.endswith("1 repeat; 1 more without results of every learner; failed trials: 1")


def test_sizes_are_those_of_the_data_set_and_only_the_papers_profile_can_fail_them():
    def found(features, **data):
        stated = claim("sizes", learners=[], sizes=[12, 4, 5, features])
        return settle(stated, info(use("letters", **data)), frame(FULL))

    assert (found(16).word, found(16).shown) == (HOLDS, "12/4/5 x 16")
    assert found(17).word == FAILS
    assert found(0).word == HOLDS  # not stated
    assert found(17, size="quick").word == UNRUN


def test_a_contender_may_be_some_of_a_learners_settings():
    forest = '{"f0": {"learner": "forest", "trees": 9}, "depth": null}'
    kernel = '{"f0": {"learner": "svm", "C": 1.0}, "depth": 4}'
    both = (
        rows("pair", [(4, 0.9, 0.8)], params=forest),
        rows("pair", [(4, 0.7, 0.6)], params=kernel),
    )

    def found(**where):
        return judged("quality", *both, learners=[{"learner": "pair", **where}], holds=">= 0.98")

    assert found(f0="forest").shown == found(depth="none").shown == "0.8"
    assert found(f0={"learner": "svm", "C": 1}).shown == found(depth=4).shown == "0.6"
    assert found(f0="none").how == "no results of pair(f0=none)"


def test_a_number_of_the_operating_point_may_be_the_cost():
    sent = [
        {**row, "point": f'{{"sent": {share}}}'}
        for share, quality in ((0.5, 0.9), (1.0, 0.95))
        for row in rows("pair", [(1, quality, quality)])
    ]
    rule = {"learners": ["pair"], "cost": "point.sent", "budget": 0.6, "holds": "> 0"}
    found = judged("quality", sent, **rule)
    assert found.shown == "0.9"
    assert "up to 0.6, by point.sent" in found.how


def test_a_run_without_the_claims_metric_or_cost_does_not_settle_it():
    run = info(use("letters"))
    for changes, said in (({"metric": "auc"}, "auc"), ({"cost": "test_seconds"}, "test_seconds")):
        found = settle(Claim.of({**QUALITY, **changes}), run, frame(CHEAP))
        assert (found.word, found.rests) == (UNRUN, "")
        assert f"the run did not measure {said}" in found.how
    own = info(use("letters"), request={"metrics": ["accuracy"]})
    assert settle(Claim.of(QUALITY), own, frame(CHEAP)).word == UNRUN
    assert settle(Claim.of({**QUALITY, "metric": "accuracy"}), own, frame(CHEAP)).word == HOLDS
    fast = Claim.of({**QUALITY, "measure": "minutes", "holds": ""})
    assert settle(fast, own, frame(CHEAP)).word == FIGURE


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"measure": "savings"}, "did you mean saving"),
        ({"holds": "about 1"}, "write a comparison"),
        ({"holds": ""}, "either holds"),
        ({"learners": ["cheap"]}, "compares 2 learners"),
        ({"sauce": 1}, "did you mean source"),
        ({"learners": [{"trees": 1}, "b"]}, "a learner is a name or a table"),
        ({"measure": "sizes"}, "sizes = "),
        ({"measure": "none"}, "needs a reason"),
        ({"holds": 3}, "key 'holds': 3 has the wrong type"),
        ({"keeps": "0.9"}, "key 'keeps': '0.9' has the wrong type"),
        ({"near": 1, "within": 0.1}, "either holds"),
        ({"measure": "cost"}, "measure cost needs floor"),
        ({"measure": "minutes"}, "measure minutes takes neither holds"),
        ({"measure": "minutes", "holds": "", "floor": ">= 1"}, "measure minutes has no floor"),
        ({"measure": "margin", "budgets": [3], "anywhere": True}, "anywhere = true excludes"),
        ({"floor": ">= 1", "anywhere": True}, "anywhere = true excludes"),
        ({"measure": "margin"}, "budgets = "),
        ({"measure": "margin", "budgets": [3, 2]}, "budgets = "),
        ({"measure": "margin", "budgets": ["2", 3]}, "budgets = "),
        ({"budgets": [2, 3]}, "budgets = "),
        ({"measure": "stages", "budgets": [1, 5]}, "has no budgets"),
    ],
)
def test_a_claim_that_cannot_be_understood_is_refused(change, why):
    table = {**BASE, "measure": "saving", "learners": ["a", "b"], "holds": "> 0", **change}
    refused(why, Claim.of, table)


def test_a_missing_key_and_an_id_twice_are_refused():
    without = {k: v for k, v in BASE.items() if k != "says"} | {"measure": "none"}
    refused("key 'says' is missing", Claim.of, without)
    refused("two claims have this id", read_claims, [{**BASE, "measure": "none", "why": "y"}] * 2)


def test_a_tally_counts_every_word_that_came_up():
    assert len(set(WORDS)) == 11
    unmeasured = Claim.of({**BASE, "measure": "none", "why": "y"})
    found = [settle(unmeasured, info(), frame(FULL))] * 2
    found.append(settle(Claim.of(QUALITY), info(use("letters")), frame(CHEAP)))
    assert tally(found) == "holds: 1, not measured: 2"
    assert (found[0].word, found[0].how) == (UNMEASURED, "y")
    assert tally([]) == "no claims"
