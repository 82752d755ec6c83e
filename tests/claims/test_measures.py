"""What a figure needs before it settles a claim, and what can never lose one."""

import json

import numpy as np
import pytest
from bench_claims.claims import MEASURES
from bench_claims.measures import FIGURES, Results
from bench_claims.verdicts import FAILS, GROWING, HOLDS, SMALL, Verdict, settle
from helpers.claim_cases import ACCURACY, claim, frame, info, judged, rows, use
from helpers.kit import refused
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_core.results.operating_points import Criterion

NONE = rows("constant", [(0, 0.5, 0.5)])

COSTS = st.integers(0, 40)
QUALITIES = st.integers(0, 20).map(lambda tenth: tenth / 20)
POINTS = st.lists(st.tuples(COSTS, QUALITIES), min_size=1, max_size=6)
TWO_SEEDS = st.tuples(POINTS, POINTS)
MORE = st.tuples(st.lists(st.tuples(COSTS, QUALITIES), max_size=4), POINTS)


def seeds(learner, by_seed):
    """Rows whose test quality is that of validation."""
    return [
        row
        for seed, points in enumerate(by_seed)
        for row in rows(learner, [(c, q, q) for c, q in points], seed=seed)
    ]


def test_every_measure_of_a_claim_has_a_figure():
    assert FIGURES.keys() == MEASURES.keys()


@settings(max_examples=8, deadline=None)
@given(
    measure=st.sampled_from(["margin", "least-margin"]),
    higher=st.booleans(),
    first=TWO_SEEDS,
    second=TWO_SEEDS,
    more=MORE,
    constant=QUALITIES,
)
def test_more_operating_points_never_lose_a_margin(measure, higher, first, second, more, constant):
    """Whichever side offers them: the first's can only raise it, the second's only lower it.

    Quality on test is that of validation, as no rule can undo a choice that misleads. The least
    margin, of "always above", has no figure where both are equal everywhere.
    """
    trivial = seeds("constant", [[(0, constant)]] * 2)
    given = {"metric": Criterion("accuracy", higher), "budgets": [10, 30]}

    def figure(a, b):
        parts = seeds("first", a), seeds("second", b), trivial
        found = judged(measure, *parts, holds=">= 0", **given)
        assert isinstance(found, Verdict)
        return np.nan_to_num(found.measured)

    def offering(points):
        return [old + new for old, new in zip(points, more, strict=True)]

    own = figure(first, second)
    assert figure(offering(first), second) >= own - 1e-9
    assert figure(first, offering(second)) <= own + 1e-9


def test_a_margin_misses_no_stretch_however_short():
    """From 9 to 10 of 10000 budgets the second has nothing."""
    first, second = rows("first", [(9, 0.7, 0.7)]), rows("second", [(10, 0.7, 0.7)])
    found = judged("margin", first, second, NONE, holds="> 0", budgets=[0, 10000])
    assert (found.word, found.measured) == (HOLDS, pytest.approx(0.2 / 10000))
    least = judged("least-margin", first, second, NONE, holds=">= 0", budgets=[0, 10000])
    assert (least.word, least.measured) == (HOLDS, 0.0)


def test_always_above_is_not_the_same_everywhere():
    same = [rows(name, [(4, 0.7, 0.7)]) for name in ("first", "second")]
    found = judged("least-margin", *same, NONE, holds=">= 0", budgets=[0, 9])
    assert (found.word, found.how.split("; ")[-1]) == (FAILS, "equal at every budget")


def test_a_saving_is_one_only_where_the_quality_is_kept_on_test_too():
    full = rows("second", [(16, 1.0, 1.0)])
    for test, word in ((0.991, HOLDS), (0.98, FAILS)):
        found = judged("saving", rows("first", [(4, 0.995, test)]), full, holds=">= 0.5")
        assert (found.word, found.shown) == (word, "75.0%")
    assert found.how.endswith("on test the quality there is 0.98, and the other's best 1")


def test_a_competitor_that_never_keeps_the_quality_saves_less_still():
    full, poor = rows("second", [(16, 1.0, 1.0)]), rows("first", [(1, 0.9, 0.9)])
    found = judged("saving", poor, full, holds="<= 0.755")
    assert (found.word, found.shown) == (HOLDS, "0.0%")
    assert judged("saving", poor, full, holds=">= 0.1").word == FAILS
    # a repeat in which it saves much counts for the mean with those in which it saves nothing
    again = [rows("first", [(1, 1.0, 1.0)], seed=1), rows("second", [(16, 1.0, 1.0)], seed=1)]
    assert judged("saving", poor, full, *again, holds="<= 0.3").measured == (0 + 15 / 16) / 2


def boosted(learner, qualities, **params):
    """A learner with a point at every tenth of its 100 trees up to the last."""
    made = rows(learner, [(4 + p, q, q) for p, q in enumerate(qualities)])
    trees = [100 - 10 * (len(qualities) - 1 - p) for p in range(len(qualities)) for _ in range(2)]
    told = json.dumps({"trees": 100, **params})
    return [
        row | {"params": told, "point": json.dumps({"trees": t})}
        for row, t in zip(made, trees, strict=True)
    ]


GOOD = rows("first", [(4, 0.95, 0.95)])


@pytest.mark.parametrize(
    ("qualities", "word"),
    [
        ([0.7, 0.8, 0.81], GROWING),  # the last tree is the best
        ([0.7, 0.8, 0.8], HOLDS),
        ([0.7, 0.81, 0.8], HOLDS),
        ([0.7, 0.8, 0.8005], HOLDS),  # by less than a thousandth
        ([0.8], GROWING),  # nothing to tell it by
    ],
)
def test_a_competitor_must_have_converged(qualities, word):
    made = GOOD, boosted("second", qualities), NONE
    found = judged("margin", *made, holds="> 0", budgets=[4, 9])
    assert found.word == word
    assert found.how.endswith("the last trees still help second") == (word == GROWING)


def test_a_contender_may_have_been_measured_on_the_same_rows_with_other_features():
    raw = [row | {"dataset": "d(features=raw)"} for row in rows("second", [(4, 0.7, 0.7)])]
    own = rows("second", [(4, 0.99, 0.99)])
    other = {"learner": "second", "dataset": "d(features=raw)"}
    parts, rule = (rows("first", [(4, 0.8, 0.8)]), own, raw, NONE), {"holds": "> 0"}
    rule["budgets"] = [4, 9]
    assert judged("margin", *parts, **rule, learners=["first", other]).word == HOLDS
    assert judged("margin", *parts, **rule).word == FAILS


def test_who_bounds_a_learner_must_have_trained_it():
    growing, settled = boosted("first", [0.7, 0.8, 0.81]), boosted("first", [0.7, 0.81, 0.81])
    other = rows("second", [(40, 0.95, 0.95)])

    def word(measure, rule, part, learners=("first",)):
        return judged(measure, part, other, learners=[*learners], **rule).word

    for rule in ({"holds": "<= 0.86"}, {"near": 0.81, "within": 0.005}):
        assert word("quality", rule, growing) == GROWING
        assert word("quality", rule, settled) == HOLDS
    assert word("quality", {"holds": ">= 0.8"}, growing) == HOLDS  # its merit: more trees may help
    two = ("first", "second")
    assert word("saving", {"holds": "<= 0.3"}, growing, two) == GROWING
    assert word("quality", {"holds": "<= 0.8"}, growing) == FAILS  # more trees would not help that


def test_points_that_do_not_tell_their_trees_leave_convergence_open():
    last = boosted("second", [0.8])
    exits = [row | {"point": '{"threshold": 1.0}'} for row in last]
    nested = [row | {"params": '{"base": {"trees": 100}}'} for row in exits]
    for made in (exits, nested):
        found = judged("margin", GOOD, made, NONE, holds="> 0", budgets=[4, 9])
        assert found.word == HOLDS
        assert found.how.endswith("not known whether converged: second")


def test_fewer_rows_or_trees_than_the_papers_settle_nothing():
    fit = boosted("first", [0.7, 0.8, 0.8])
    made, run = frame(fit), info(use("letters"))

    def found(holds=">= 0.8", **least):
        return settle(claim("quality", learners=["first"], holds=holds, **least), run, made)

    assert found(rows=12, trees=100).word == HOLDS
    assert (few := found(rows=13)).word == SMALL
    assert "12 training rows, the paper has 13" in few.how
    assert (few := found(trees=101)).word == SMALL
    assert "first has 100 trees, the paper 101" in few.how
    assert found(rows=13, trees=101).shown == "0.8"
    assert found(rows=13, holds=">= 0.9").word == SMALL


def test_a_quality_under_a_cap_is_what_was_measured_under_it():
    rule = {"learners": ["first"], "holds": ">= 0.8", "budget": 2}
    points = [(1, 0.9, 0.9), (3, 1.0, 1.0)]
    path = rows("first", points, cap=float("nan"), cost_max=5.0)
    capped = [
        *rows("first", [(2, 0.7, 0.75)], cap=2.0, params='{"trees": 1}'),
        *rows("first", [(2, 0.6, 0.95)], cap=2.0, params='{"trees": 2}'),
        *rows("first", [(4, 0.8, 0.99)], cap=4.0),
    ]

    def figure(path, **kind):
        made = claim("quality", **rule, **kind)
        return FIGURES["quality"](Results(made, frame(path, capped), ACCURACY))

    assert figure(path, kind="cap") == 0.75  # the better on validation
    kept = rows("first", points, cap=float("nan"))  # no row of the first point costs more
    assert figure(kept, kind="cap") == figure(path) == 0.9
    refused("kind", claim, "quality", **rule, kind="most")
