"""Claims on what is bought, on made purchases: each holds, does not hold, and shows nothing."""

import json

import numpy as np
import pytest
from bench_claims.claims import Claim
from bench_claims.measures import BOUGHT, Purchases, with_purchases
from bench_claims.verdicts import FAILS, HOLDS, SMALL, UNRUN, judge, settle
from helpers.claim_cases import ACCURACY, BASE, frame, info, rows, use
from helpers.stores import TRIAL

from bench_core._io.digests import canonical
from bench_core.errors import UsageError
from bench_core.results.records import Sensors, Trial, TrialValues

PRICES = np.repeat([1.0, 20.0, 150.0], 10)
CHEAP, DEAR, DEAREST = [1, 1], [20, 200], [150, 200]
FEW = {"near": 0.15, "within": 0.1}


def buys(*counts):
    """So many of each of the three groups of ten sensors, bought by every row."""
    share = np.zeros(30)
    for group, count in enumerate(counts):
        share[10 * group : 10 * group + count] = 1.0
    return Purchases(PRICES, share)


def cascade(*stages):
    """Of each stage the share of rows that reach it, and how many more of each group it reads."""
    share, sensors, have = np.zeros(30), [], [0, 0, 0]
    for reached, counts in stages:
        for group, count in enumerate(counts):
            at = 10 * group + have[group]
            share[at : at + count] = reached
            have[group] += count
        sensors.append(sum(have))
    return Purchases(PRICES, share, tuple(reached for reached, _ in stages), tuple(sensors))


def trial(learner, *points, quality=0.9, **params):
    """Points (trees, what is bought), each better than the one before and the last of this quality;
    of another setting than the learner's other trials."""
    last = len(points) - 1
    made = rows(
        learner,
        [
            (k + 1, quality - 0.0001 * (last - k), quality - 0.0001 * (last - k))
            for k in range(last + 1)
        ],
        params=json.dumps(params, sort_keys=True),
    )
    for k, row in enumerate(made):
        trees, what = points[k // 2]
        row |= {"point": canonical({"trees": trees}), BOUGHT: what}
    return made


def judged(measure, *parts, **rule):
    claim = {**BASE, "measure": measure, "learners": ["first", "second"], **rule}
    compact = frame(*parts).astype(dict.fromkeys(("learner", "params", "point"), "category"))
    return judge(Claim.of(claim), compact, ACCURACY)  # as a report has them


PLAIN = trial("second", (100, None))


def early(*counts, at=10, tradeoff=0.1):
    """A setting of 100 trees that has bought so many of cost 150 after ``at`` of them."""
    points = *((at, buys(5, 5, count)) for count in counts), (100, buys(10, 10, 10))
    return trial("first", *points, trees=100, tradeoff=tradeoff)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ([early(2), early(1, tradeoff=1.0)], HOLDS),
        ([early(2), early(0, tradeoff=1.0)], FAILS),  # at one trade-off none is bought early
        ([early(9)], FAILS),  # not a few
        ([early(1, at=11)], FAILS),  # not early
        ([early()], FAILS),  # no early point is kept
    ],
)
def test_a_few_expensive_ones_are_bought_early_at_every_trade_off(settings, word):
    found = judged("bought-early", *settings, PLAIN, prices=DEAREST, early=0.1, **FEW)
    assert found.word == word
    assert "sensors of cost 150 to 200, in the first 10% of the trees" in found.how


def settings(*counts, quality=0.9):
    made = [
        trial("first", (9, None), (100, buys(*group)), tradeoff=tradeoff, quality=quality)
        for tradeoff, group in counts
    ]
    return [row for rows_ in made for row in rows_]


FEWER = [(0.1, (2, 5, 9)), (1.0, (4, 5, 4)), (10.0, (8, 5, 1))]


def test_a_trend_is_that_of_every_setting_not_of_the_ends():
    def words(counts):
        own = settings(*counts)
        fewer = judged("bought-trend", own, PLAIN, prices=DEAREST, holds="<= -0.9")
        more = judged("bought-trend", own, PLAIN, prices=CHEAP, holds=">= 0.9")
        return [fewer.word, more.word]

    assert words(FEWER) == [HOLDS, HOLDS]
    assert words([*reversed(FEWER)]) == [HOLDS, HOLDS]
    assert words([(-tradeoff, counts) for tradeoff, counts in FEWER]) == [FAILS, FAILS]
    assert words([(0.1, (2, 5, 4)), (1.0, (9, 5, 9)), (10.0, (8, 5, 1))]) == [FAILS, FAILS]
    nothing = [(0.1, (2, 5, 9)), (1.0, (1, 0, 1)), (10.0, (0, 0, 0))]
    assert words(nothing) == [HOLDS, FAILS]  # who buys less of everything buys no more cheap ones
    assert words([(t, (3, 3, 3)) for t in (0.1, 1.0, 10.0)]) == [FAILS, FAILS]
    assert words(FEWER[:2]) == [FAILS, FAILS]  # two settings are no trend


def test_what_a_model_without_quality_buys_shows_nothing():
    found = judged("bought-trend", settings(*FEWER, quality=0.6), PLAIN, prices=CHEAP, holds="> 0")
    assert (found.word, found.shown) == (FAILS, "+1.00")
    assert "on test its best quality is 0.6, and the other's 0.9" in found.how


PAPER = cascade((1.0, (7, 1, 1)), (0.6, (1, 1, 0)), (0.5, (0, 2, 1)), (0.3, (0, 4, 2)))
"""Most cheap ones first, a few of the dearest too, the others late."""
BACKWARDS = cascade((1.0, (1, 4, 4)), (0.6, (1, 1, 0)), (0.5, (0, 2, 1)), (0.3, (6, 1, 1)))
ALL_AT_ONCE = cascade((1.0, (10, 10, 10)), (0.5, (0, 0, 0)))
ONE_STAGE = buys(10, 10, 10)


@pytest.mark.parametrize(
    ("what", "cheap", "last", "few"),
    [
        (PAPER, HOLDS, HOLDS, HOLDS),
        (BACKWARDS, FAILS, FAILS, FAILS),
        (ALL_AT_ONCE, HOLDS, FAILS, FAILS),
        (ONE_STAGE, FAILS, FAILS, FAILS),  # has no first stage
        (None, FAILS, FAILS, FAILS),
    ],
)
def test_where_a_cascade_reads_cheap_and_expensive_ones(what, cheap, last, few):
    own = trial("first", (5, what))
    assert judged("bought-first", own, PLAIN, prices=CHEAP, holds="> 0.5").word == cheap
    assert judged("bought-last", own, PLAIN, prices=DEAR, holds="> 0.5").word == last
    assert judged("bought-first", own, PLAIN, prices=DEAREST, **FEW).word == few


def test_stages_that_turn_no_row_away_do_not_tell_what_they_read():
    own = trial("first", (5, cascade((1.0, (7, 0, 0)), (1.0, (1, 3, 3)), (0.3, (0, 4, 2)))))
    found = judged("bought-first", own, PLAIN, prices=CHEAP, holds="> 0.5")
    assert (found.word, found.shown) == (FAILS, "-")
    assert "the purchases there are not stored, or do not determine it" in found.how


def test_stages_are_counted_at_the_best_point_on_validation():
    def word(*stages):
        better = trial("first", (5, cascade(*stages)), tradeoff=1)
        worse = trial("first", (5, ONE_STAGE), tradeoff=2, quality=0.895)
        return judged("stages", better, worse, PLAIN, near=4, within=0)

    four = [(1.0, (1, 0, 0)), (0.7, (1, 0, 0)), (0.5, (1, 0, 0)), (0.1, (1, 0, 0))]
    assert (word(*four).word, word(*four).shown) == (HOLDS, "4")
    assert word(*four[:3]).word == word(*four, (0.05, (1, 0, 0))).word == FAILS


def test_the_first_stage_is_compared_with_the_initial_cascades_at_the_same_trade_off():
    def found(own, other, quality=0.9):
        def of(passing):
            return cascade((1.0, (1, 0, 0)), (passing, (1, 0, 0)))

        first = trial("first", (5, of(own)), tradeoff=1, quality=quality)
        second = trial("second", (5, of(other)), tradeoff=1)
        third = trial("second", (5, of(0.01)), tradeoff=2)
        return judged("passed", first, second, third, holds="< 0")

    assert (found(0.6, 0.85).word, found(0.6, 0.85).shown) == (HOLDS, "-25.0%")
    assert found(0.9, 0.85).word == found(0.85, 0.85).word == FAILS
    assert found(0.1, 0.85, quality=0.5).word == FAILS  # turns all away, and is worth nothing
    alone = trial("first", (5, ONE_STAGE), tradeoff=3)
    assert judged("passed", alone, trial("second", (5, PAPER), tradeoff=1), holds="< 0").word == (
        FAILS
    )


class MadeStore:
    """Has two points of one trial: everything bought in one stage, then by a cascade of two."""

    def values(self, run, *, dataset, learner, capped):
        if learner != "first":
            return []
        share = np.stack([np.ones(30), cascade((1.0, (10,)), (0.5, (0, 10))).share])
        stages = {"parent": (-1, 0), "sensors": (10, 20), "price": (10.0, 30.0)}
        stages |= {"reached": {"2": (1.0, 0.5)}}
        sensors = Sensors(tuple(map(str, range(30))), tuple(PRICES.tolist()))
        ran = Trial.of(TRIAL, sensors=sensors, stages=stages)
        none = np.zeros((2, 1), np.float32)
        return [
            TrialValues(
                split="test",
                points=(1, 2),
                metric=none,
                cost=none,
                weights=none[0],
                rows=none[0],
                bought=share.astype(np.float32),
                trial=ran,
                settings=({"trees": 1}, {"trees": 2}),
                p95=np.zeros(2),
            )
        ]


def settled(store, train=10):
    made = frame(trial("first", (1, None), (2, None), tradeoff=1), PLAIN).assign(trial="t")
    rule = {"measure": "bought-first", "prices": CHEAP, "holds": "> 0.5", "rows": 10}
    claim = Claim.of({**BASE, "learners": ["first", "second"], **rule})
    run = info(use("letters", rows={"train": train, "valid": 9, "test": 9}))
    return settle(claim, run, made.drop(columns=BOUGHT), store)


def test_what_is_bought_is_read_from_the_store_by_trial_and_point():
    found = settled(MadeStore())
    assert (found.word, found.measured) == (HOLDS, 1.0)
    assert settled(MadeStore(), train=9).word == SMALL
    assert settled(None).word == UNRUN
    claim = Claim.of({**BASE, "measure": "stages", "learners": ["first", "x"], "holds": "> 1"})
    made = frame(trial("first", (1, None), (2, None), (3, None))).assign(trial="t")
    kept = with_purchases(made, MadeStore(), "r", claim)[BOUGHT]
    assert [what and len(what.reached) for what in kept] == [1, 1, 2, 2, None, None]


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({"measure": "bought-first"}, "needs prices = [from, to]"),
        ({"measure": "bought-first", "prices": [5, 1]}, "prices = [from, to], rising"),
        ({"measure": "stages", "prices": [1, 5]}, "has no prices"),
        ({"measure": "bought-early", "prices": [1, 5]}, "needs early = 0.1"),
        ({"measure": "bought-trend", "prices": [1, 5], "early": 0.1}, "has no early"),
    ],
)
def test_rules_that_say_nothing_are_refused(rule, why):
    with pytest.raises(UsageError, match=why.replace("[", r"\[")):
        Claim.of({**BASE, "learners": ["a", "b"], "holds": "> 0", **rule})
