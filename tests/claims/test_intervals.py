"""Intervals of claims' figures against formulas, and the words they give."""

import numpy as np
import pytest
from bench_claims.claims import Claim
from bench_claims.verdicts import (
    ABSENT,
    ELSEWHERE,
    FAILS,
    HOLDS,
    OTHER,
    UNDECIDED,
    settle,
    settle_elsewhere,
)
from helpers.claim_cases import BASE, frame, info, judged, rows, use
from helpers.stores import TRIAL

from bench_core.results.records import Trial, TrialValues

UNITS = 400
RNG = np.random.default_rng(5)
FIRST = (RNG.random(UNITS) < 0.8).astype(float)
SECOND = (RNG.random(UNITS) < 0.7).astype(float)
PAID = RNG.uniform(2, 6, UNITS)


class MadeStore:
    """One point of each learner, with these qualities and costs of ``UNITS`` rows."""

    def __init__(self, **learners):
        self.learners = learners

    def values(self, run, *, split, dataset, learner, cap):
        quality, cost = self.learners[learner]
        yield TrialValues(
            split=split,
            points=(0,),
            metric=quality[None].astype(np.float32),
            cost=cost[None].astype(np.float32),
            weights=np.ones(UNITS, np.float32),
            rows=np.ones(UNITS, np.float32),
            bought=np.zeros((1, 1), np.float32),
            trial=Trial.of(TRIAL),
            settings=({},),
        )


FREE = np.zeros(UNITS)
STORE = MadeStore(
    first=(FIRST, PAID),
    second=(SECOND, FREE + 8),
    constant=(FREE + 0.5, FREE),
    third=(SECOND, PAID),
    cheap=(FIRST, FREE + 0.7),
    faultless=(FREE + 1, FREE),
)


def of(measure, *learners, **more):
    """The verdict on learners of ``STORE``, whose means the frame has."""
    made = [
        rows(name, [(cost.mean(), quality.mean(), quality.mean())])
        for name, (quality, cost) in STORE.learners.items()
    ]
    return judged(measure, *made, store=STORE, learners=[*learners], **{"holds": "> 0", **more})


def half_width(values):
    return float(1.96 * values.std() / UNITS**0.5)


PER_UNIT = {
    "quality": FIRST,
    "margin": FIRST - SECOND,  # paired
    "saving": PAID / 8,  # all costs of the second are 8
    "quality-kept": (FIRST - FIRST.mean() / SECOND.mean() * SECOND) / SECOND.mean(),
}
"""By measure what its figure is the mean of, to first order."""


@pytest.mark.parametrize("measure", PER_UNIT)
def test_an_interval_is_that_of_a_mean_over_rows(measure):
    """1000 draws tell its ends to about a twentieth of its half width."""
    learners = ["first"] if measure == "quality" else ["first", "second"]
    more = {"budgets": [9, 10]} if measure == "margin" else {}
    found, wanted = of(measure, *learners, **more), half_width(PER_UNIT[measure])
    assert found.interval.low == pytest.approx(found.measured - wanted, abs=0.25 * wanted)
    assert found.interval.high == pytest.approx(found.measured + wanted, abs=0.25 * wanted)
    assert found.shown.endswith(")")


def test_a_quality_without_errors_is_as_uncertain_as_a_share():
    found = of("quality", "faultless").interval
    assert found == pytest.approx((0.025 ** (1 / UNITS), 1))  # Clopper and Pearson


def test_a_budget_of_just_a_price_pays_for_its_point_in_draws():
    """Draws sum costs in 32 bits: the mean of 400 prices of .7 is 4e-7 above .7 there."""
    found, wanted = of("quality", "cheap", budget=0.7), half_width(FIRST)
    assert found.measured == pytest.approx(FIRST.mean())
    assert found.interval.low == pytest.approx(found.measured - wanted, abs=0.25 * wanted)


def test_a_claim_is_decided_where_its_whole_interval_is_on_one_side():
    at, wide = float(FIRST.mean()), half_width(FIRST)

    def word(**rule):
        return of("quality", "first", **({"holds": ""} | rule)).word

    assert word(holds=f">= {at - 2 * wide:.4f}") == word(holds=f"<= {at + 2 * wide:.4f}") == HOLDS
    assert word(holds=f">= {at + 2 * wide:.4f}") == FAILS
    assert (
        word(holds=f">= {at - wide / 2:.4f}") == word(holds=f"< {at - wide / 2:.4f}") == UNDECIDED
    )
    # an equality: inside, outside, and an interval around the whole of it
    assert word(near=at, within=2 * wide) == HOLDS
    assert word(near=at + 4 * wide, within=2 * wide) == FAILS
    assert word(near=at, within=wide / 4) == word(near=at + wide, within=wide) == UNDECIDED


def test_always_above_needs_every_budget():
    """Below the first purchase both are the constant."""
    above = of("least-margin", "first", "second", budgets=[0, 9], holds=">= 0")
    assert (above.word, above.measured) == (HOLDS, 0.0)
    never = of("least-margin", "third", "first", budgets=[0, 9], holds=">= 0")
    assert never.word == FAILS
    # on equal rows a hair ahead is not certain
    hair = of("margin", "second", "third", budgets=[9, 10])
    assert (hair.word, hair.measured) == (FAILS, 0.0)


def repeats(quality, seconds):
    """Rows of the first learner and of one that takes a second, by repeat."""
    own = [
        rows("first", [(4, q, q)], seed=k, fit_seconds=s)
        for k, (q, s) in enumerate(zip(quality, seconds, strict=True))
    ]
    return own, [rows("second", [(4, 0.5, 0.5)], seed=k, fit_seconds=1.0) for k in range(3)]


@pytest.mark.parametrize("measure", ["quality", "time-ratio"])
def test_without_values_repeats_tell(measure):
    """Student's interval of three repeats, 4.303 standard errors either way."""
    quality, seconds = (0.90, 0.86, 0.91), (2.0, 3.0, 2.2)
    own, other = repeats(quality, seconds)
    found = judged(measure, *own, *other, holds="> 0")
    values = np.array(quality if measure == "quality" else seconds)
    wanted = 4.303 * values.std(ddof=1) / 3**0.5
    assert found.interval.high - found.interval.low == pytest.approx(2 * wanted, rel=0.3)
    one = judged(measure, own[0], other[0], holds="> 0")
    assert (one.word, one.interval) == (HOLDS, None)


ANYWHERE = {**BASE, "dataset": "yahoo", "measure": "margin", "learners": ["first", "second"]}
ANYWHERE |= {"budgets": [0], "holds": "> 0", "rows": 10**6, "trees": 3000, "anywhere": True}


def test_another_data_set_shows_a_claim_and_settles_nothing():
    made = [rows("first", [(4, 0.9, 0.9)]), rows("second", [(4, 0.7, 0.7)])]
    made.append(rows("constant", [(0, 0.5, 0.5)]))
    real, sim = use("letters", price_of_everything=8.0), use("sim", stand_in=True)
    run = info(real, sim)

    def found(**changes):
        return settle_elsewhere(Claim.of(ANYWHERE | changes), run, frame(*made))

    (shown,) = found()
    assert (shown.word, shown.rests, shown.shown) == (OTHER, "letters", "+0.1000")
    assert shown.how.startswith("there: holds; margin of first against second, accuracy")
    assert "budgets 0 to 8" in shown.how
    assert found(holds="> 0.2")[0].how.startswith("there: does not hold")
    assert found(anywhere=False) == found(learners=["first", "none"]) == []
    # not its own data, which settle it
    assert found(dataset="letters") == []
    word = settle(Claim.of(ANYWHERE), run, frame(*made)).word
    assert word == ELSEWHERE
    assert settle(Claim.of(ANYWHERE), info(real, absent=("yahoo",)), frame(*made)).word == ABSENT


@pytest.mark.parametrize("measure", ["time-ratio", "minutes"])
def test_an_interval_of_times_is_students_for_the_logarithm_and_above_zero(measure):
    """Seconds of 1, 2 and 15 have a mean of 6 and a standard error of 4.5: 6 - 4.303 * 4.5 < 0."""
    seconds = np.array([1.0, 2.0, 15.0])
    own, other = repeats([0.9] * 3, seconds)
    rule = {"holds": "> 0"} if measure == "time-ratio" else {}  # no bound on minutes
    found = judged(measure, *own, *other, **rule)
    unit = 60 if measure == "minutes" else 1
    assert found.measured == pytest.approx(2 / unit)  # the median
    reach = np.exp(4.3027 * np.log(seconds).std(ddof=1) / 3**0.5)
    assert found.interval == pytest.approx((2 / unit / reach, 2 / unit * reach), rel=1e-3)
