"""Claims about what 95% of rows, or every row, may cost."""

from __future__ import annotations

from math import nan
from typing import Any

import pytest
from bench_claims.claims import Claim
from bench_claims.verdicts import FAILS, HOLDS, UNRUN, Verdict, judge
from helpers.claim_cases import ACCURACY, BASE, frame, rows

from bench_core.errors import UsageError


def points(learner: str, *given: tuple[float, float, float], cap: float = nan) -> Any:
    """Points as (mean cost, cost of 95% of rows, quality)."""
    return [
        row
        for cost, p95, quality in given
        for row in rows(learner, [(cost, quality, quality)], cost_p95=p95, cap=cap)
    ]


STEADY = [*points("steady", (4, 4, 0.7)), *points("steady", (8, 8, 0.8))]
UNEVEN = [*points("uneven", (2, 9, 0.75)), *points("uneven", (6, 30, 0.9))]
CAPPED = [
    *points("steady", (4, 4, 0.6), cap=5),
    *points("steady", (8, 8, 0.8), cap=10),
    *points("uneven", (3, 5, 0.65), cap=5),
    *points("uneven", (5, 10, 0.78), cap=10),
]
NONE = points("constant", (0, 0, 0.5))
for k, row in enumerate([*STEADY, *UNEVEN, *CAPPED, *NONE]):
    row["point"] = str(k // 2)


def judged(measure: str, holds: str, **more: Any) -> Verdict:
    table = {**BASE, "measure": measure, "learners": ["steady", "uneven"], "holds": holds, **more}
    return judge(Claim.of(table), frame(STEADY, UNEVEN, CAPPED, NONE), ACCURACY)


def test_quality_within_a_cost_of_95_percent_of_rows() -> None:
    uneven = {"learners": ["uneven"], "budget": 10}
    assert judged("quality", ">= 0.9", **uneven).word == HOLDS
    assert judged("quality", ">= 0.9", **uneven, kind="p95").measured == 0.75


def test_quality_under_a_cap_is_what_was_measured_under_it() -> None:
    assert judged("quality", ">= 0.78", learners=["uneven"], budget=10, kind="cap").word == HOLDS
    assert judged("quality", ">= 0.66", learners=["uneven"], budget=5, kind="cap").word == FAILS


def test_a_margin_over_costs_of_95_percent_of_rows() -> None:
    """From 8 to 9 it is 0.8 against the constant's 0.5, from 9 to 10 0.8 against 0.75."""
    found = judged("margin", "> 0", budgets=[8, 10], kind="p95")
    assert found.measured == pytest.approx((0.3 + 0.05) / 2)
    assert "budgets p95 8 to 10" in found.how


def test_a_margin_over_caps_is_the_mean_over_those_measured() -> None:
    found = judged("margin", "> -0.02", budgets=[1, 100], kind="cap")
    assert found.measured == pytest.approx(((0.6 - 0.65) + (0.8 - 0.78)) / 2)
    least = judged("least-margin", "> -0.02", budgets=[1, 100], kind="cap")
    assert least.measured == pytest.approx(0.6 - 0.65)
    assert judged("margin", "> 0", budgets=[6, 100], kind="cap").word == HOLDS


def test_a_cap_that_was_not_measured_settles_nothing() -> None:
    found = judged("quality", ">= 0", learners=["uneven"], budget=7, kind="cap")
    assert found.word == UNRUN
    assert found.how == "the run measured no cap of 7: bench run --caps"
    assert judged("margin", ">= 0", budgets=[6, 9], kind="cap").word == UNRUN


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"budget": 9, "kind": "p90"}, "did you mean p95"),
        ({"kind": "cap"}, 'kind = "cap" needs a budget'),
        ({"kind": "p95", "budget": 9, "cost": "feature_cost"}, "of the whole cost"),
    ],
)
def test_kinds_that_say_nothing_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        judged("quality", "> 0", **wrong)
