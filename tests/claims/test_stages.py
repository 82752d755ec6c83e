"""Claims on the stages of a cascade, on made ones: each holds, does not hold, and shows nothing."""

import json

import numpy as np
import pytest
from bench_claims.claims import Claim
from bench_claims.measures import REACHED, with_stages
from bench_claims.verdicts import FAILS, HOLDS, SMALL, UNRUN, judge, settle
from helpers.claim_cases import ACCURACY, BASE, frame, info, rows, use
from helpers.stores import TRIAL

from bench_core._io.digests import canonical
from bench_core.errors import UsageError
from bench_core.results.records import Sensors, Trial, TrialValues


def trial(learner, *points, quality=0.9, **params):
    """Points (trees, the share of rows that reach each stage), each better than the one before and
    the last of this quality; of another setting than the learner's other trials."""
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
        trees, reached = points[k // 2]
        row |= {"point": canonical({"trees": trees}), REACHED: reached}
    return made


def judged(measure, *parts, **rule):
    claim = {**BASE, "measure": measure, "learners": ["first", "second"], **rule}
    compact = frame(*parts).astype(dict.fromkeys(("learner", "params", "point"), "category"))
    return judge(Claim.of(claim), compact, ACCURACY)  # as a report has them


PLAIN = trial("second", (100, None))


def test_the_stages_of_a_model_without_quality_show_nothing():
    found = judged("stages", trial("first", (5, (1.0, 0.5)), quality=0.6), PLAIN, near=2, within=0)
    assert (found.word, found.shown) == (FAILS, "2")
    assert "on test its best quality is 0.6, and the other's 0.9" in found.how


def test_stages_that_are_not_stored_are_named():
    found = judged("stages", trial("first", (5, None)), PLAIN, near=2, within=0)
    assert (found.word, found.shown) == (FAILS, "-")
    assert "the stages there are not stored" in found.how


def test_stages_are_counted_at_the_best_point_on_validation():
    def word(*reached):
        better = trial("first", (5, reached), tradeoff=1)
        worse = trial("first", (5, (1.0,)), tradeoff=2, quality=0.895)
        return judged("stages", better, worse, PLAIN, near=4, within=0)

    four = [1.0, 0.7, 0.5, 0.1]
    assert (word(*four).word, word(*four).shown) == (HOLDS, "4")
    assert word(*four[:3]).word == word(*four, 0.05).word == FAILS


def test_the_first_stage_is_compared_with_the_initial_cascades_at_the_same_trade_off():
    def found(own, other, quality=0.9):
        first = trial("first", (5, (1.0, own)), tradeoff=1, quality=quality)
        second = trial("second", (5, (1.0, other)), tradeoff=1)
        third = trial("second", (5, (1.0, 0.01)), tradeoff=2)
        return judged("passed", first, second, third, holds="< 0")

    assert (found(0.6, 0.85).word, found(0.6, 0.85).shown) == (HOLDS, "-25.0%")
    assert found(0.9, 0.85).word == found(0.85, 0.85).word == FAILS
    assert found(0.1, 0.85, quality=0.5).word == FAILS  # turns all away, and is worth nothing
    alone, other = trial("first", (5, (1.0,)), tradeoff=3), trial("second", (5, (1.0, 0.6)))
    assert judged("passed", alone, other, holds="< 0").word == FAILS


class MadeStore:
    """Has two points of one trial: one stage, then a cascade of two."""

    def values(self, run, *, dataset, learner, capped):
        if learner != "first":
            return []
        stages = {"parent": (-1, 0), "sensors": (10, 20), "price": (10.0, 30.0)}
        stages |= {"reached": {"2": (1.0, 0.5)}}
        sensors = Sensors(("a",), (1.0,))
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
                bought=np.ones((2, 1), np.float32),
                trial=ran,
                settings=({"trees": 1}, {"trees": 2}),
            )
        ]


def settled(store, train=10):
    made = frame(trial("first", (1, None), (2, None), tradeoff=1), PLAIN).assign(trial="t")
    rule = {"measure": "stages", "near": 2, "within": 0, "rows": 10}
    claim = Claim.of({**BASE, "learners": ["first", "second"], "holds": "", **rule})
    run = info(use("letters", rows={"train": train, "valid": 9, "test": 9}))
    return settle(claim, run, made.drop(columns=REACHED), store)


def test_stages_are_read_from_the_store_by_trial_and_point():
    found = settled(MadeStore())
    assert (found.word, found.measured) == (HOLDS, 2.0)
    assert settled(MadeStore(), train=9).word == SMALL
    assert settled(None).word == UNRUN
    claim = Claim.of({**BASE, "measure": "stages", "learners": ["first", "x"], "holds": "> 1"})
    made = frame(trial("first", (1, None), (2, None), (3, None))).assign(trial="t")
    kept = with_stages(made, MadeStore(), "r", claim)[REACHED]
    assert [reached and len(reached) for reached in kept] == [1, 1, 2, 2, None, None]


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ({"measure": "stages", "budgets": [1, 5]}, "has no budgets"),
        ({"measure": "margin", "budgets": [5, 1]}, "budgets = [from, to], rising"),
    ],
)
def test_rules_that_say_nothing_are_refused(rule, why):
    with pytest.raises(UsageError, match=why.replace("[", r"\[")):
        Claim.of({**BASE, "learners": ["a", "b"], "holds": "> 0", **rule})
