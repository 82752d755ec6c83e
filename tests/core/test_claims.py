"""Claims of papers judged on frames small enough to check by eye."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from bench_core.claims import (
    ABSENT,
    FAILS,
    HOLDS,
    STAND_IN,
    UNMEASURED,
    UNRUN,
    Claim,
    judge,
    read_claims,
)
from bench_core.errors import UsageError
from bench_core.metrics import parse_metric

ACCURACY = parse_metric("accuracy")
BASE = {"id": "a", "source": "s", "says": "x", "published": "1", "dataset": "letters"}


def rows(
    learner: str, points: list[tuple[float, float, float]], **more: Any
) -> list[dict[str, Any]]:
    """Points given as (cost, validation quality, test quality)."""
    return [
        {
            "suite": "s", "profile": "paper", "dataset": "letters", "accounting": "path", "fold": 0,
            "seed": 0, "learner": learner, "params": "{}", "point": str(p), "split": split,
            "status": "ok", "audit": "sampled", "unit": "cost", "stand_in": False,
            "accuracy": quality, "total_cost": float(cost), "fit_seconds": 4.0, **more,
        }
        for p, (cost, valid, test) in enumerate(points)
        for split, quality in (("valid", valid), ("test", test))
    ]  # fmt: skip


def frame(*parts: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame([row for part in parts for row in part])


FULL = rows("full", [(16, 1.0, 0.98)], fit_seconds=2.0)
CHEAP = rows("cheap", [(4, 0.9, 0.9), (8, 0.991, 0.97), (12, 0.999, 0.99)])
POOR = rows("poor", [(4, 0.8, 0.8), (12, 0.9, 0.85)])


def verdict(measure: str, learners: list[str], holds: str, **more: Any) -> tuple[str, float]:
    table = {**BASE, "measure": measure, "learners": learners, "holds": holds, **more}
    found = judge(Claim.of(table), frame(FULL, CHEAP, POOR), ACCURACY)
    return found.word, found.measured


def test_a_saving_is_at_the_cheapest_point_that_keeps_the_quality_on_validation() -> None:
    assert verdict("saving", ["cheap", "full"], ">= 0.31") == (HOLDS, 0.5)
    assert verdict("saving", ["cheap", "full"], ">= 0.6") == (FAILS, 0.5)
    assert verdict("saving", ["cheap", "full"], ">= 0.2", keeps=0.999) == (HOLDS, 0.25)


def test_a_quality_that_is_never_kept_does_not_hold_and_has_no_figure() -> None:
    word, measured = verdict("saving", ["poor", "full"], ">= 0.1")
    assert word == FAILS
    assert measured != measured


def test_quality_within_a_budget_is_chosen_on_validation_and_read_on_test() -> None:
    assert verdict("quality", ["cheap"], "<= 0.975", budget=10) == (HOLDS, 0.97)
    assert verdict("quality", ["cheap"], "<= 0.975") == (FAILS, 0.99)


def test_quality_kept_compares_with_the_others_best() -> None:
    word, measured = verdict("quality-kept", ["cheap", "full"], ">= 0.99", budget=8)
    assert word == FAILS
    assert measured == pytest.approx(0.97 / 0.98)


def test_cost_is_that_of_the_cheapest_point_that_keeps_ones_own_best() -> None:
    assert verdict("cost", ["cheap"], "<= 8", keeps=0.99) == (HOLDS, 8.0)
    assert verdict("cost", ["cheap"], "<= 8", keeps=1.0) == (FAILS, 12.0)


def test_a_margin_is_the_mean_difference_over_budgets_and_its_least_over_neighbours() -> None:
    word, measured = verdict("margin", ["cheap", "poor"], "> 0")
    # cheap has .9 below a budget of 8 and .97 from there, poor .8 until 12: 50 of 101 and 50 more
    assert word == HOLDS
    assert measured == pytest.approx((50 * 0.1 + 50 * 0.17 + 0.14) / 101)
    assert verdict("margin", ["poor", "cheap"], "> 0")[0] == FAILS
    assert verdict("margin", ["full", "cheap", "poor"], "> 0")[0] == FAILS


def test_a_ratio_of_times_is_that_of_the_fits() -> None:
    assert verdict("time-ratio", ["cheap", "full"], "<= 1.5") == (FAILS, 2.0)


def test_what_was_not_run_is_said_and_what_stands_in_never_counts() -> None:
    table = {**BASE, "measure": "quality", "learners": ["cheap"], "holds": ">= 0"}
    claim = Claim.of(table)
    assert judge(claim, frame(FULL), ACCURACY).word == UNRUN
    assert judge(Claim.of({**table, "dataset": "yahoo"}), frame(CHEAP), ACCURACY).word == UNRUN
    stand_in = frame(rows("cheap", [(1, 1, 1)], stand_in=True))
    assert judge(claim, stand_in, ACCURACY).word == STAND_IN


def test_what_cannot_be_measured_here_gives_its_reason() -> None:
    found = judge(Claim.of({**BASE, "measure": "none", "why": "no text"}), frame(FULL), ACCURACY)
    assert (found.word, found.how) == (UNMEASURED, "no text")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"measure": "savings"}, "did you mean saving"),
        ({"holds": "about 1"}, "write a comparison"),
        ({"holds": ""}, "write a comparison"),
        ({"learners": ["cheap"]}, "compares 2 learners"),
        ({"sauce": 1}, "did you mean source"),
    ],
)
def test_a_claim_that_cannot_be_understood_is_refused(change: dict[str, Any], why: str) -> None:
    table = {**BASE, "measure": "saving", "learners": ["a", "b"], "holds": "> 0", **change}
    with pytest.raises(UsageError, match=why):
        Claim.of(table)


def test_a_missing_key_and_an_id_twice_are_refused() -> None:
    with pytest.raises(UsageError, match="key 'says' is missing"):
        Claim.of({k: v for k, v in BASE.items() if k != "says"} | {"measure": "none"})
    with pytest.raises(UsageError, match="two claims have this id"):
        read_claims([{**BASE, "measure": "none"}] * 2)


def test_the_words_differ() -> None:
    assert len({ABSENT, FAILS, HOLDS, STAND_IN, UNMEASURED, UNRUN}) == 6
