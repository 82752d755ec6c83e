"""Budgets as values: read, worded, and chosen where none are named."""

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench_core.errors import UsageError
from bench_core.results.budgets import KINDS, Budget, as_budgets, default_budgets


def test_budgets_are_numbers_with_commas_each_once() -> None:
    assert as_budgets("10, 20,4e1,20.0") == (Budget(10), Budget(20), Budget(40))
    assert as_budgets("0.5", "cap") == (Budget(0.5, "cap"),)
    assert as_budgets("10,p95 20", "cap") == (Budget(10, "cap"), Budget(20, "p95"))
    assert as_budgets([10, "cap 5", Budget(7, "p95")]) == (
        Budget(10),
        Budget(5, "cap"),
        Budget(7, "p95"),
    )
    assert as_budgets(3) == as_budgets("3") == as_budgets(Budget(3)) == (Budget(3),)


@given(st.floats(0, 1e9).map(lambda x: float(f"{x:.12g}")), st.sampled_from(KINDS))
def test_a_budget_reads_as_it_is_shown(amount: float, kind: str) -> None:
    assert as_budgets(str(Budget(amount, kind))) == (Budget(amount, kind),)


@pytest.mark.parametrize("text", ["", "ten", "10,", "-1", "inf", "nan", "10;20", "10 ms"])
def test_what_is_no_cost_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError) as told:
        as_budgets(text)
    assert "\n" not in str(told.value)
    assert "budget" in str(told.value)


def test_an_unknown_kind_is_refused_with_the_one_that_is_meant() -> None:
    with pytest.raises(UsageError, match="did you mean p95"):
        as_budgets("p90 10")
    with pytest.raises(UsageError, match="unknown kind 'average'"):
        as_budgets("10", "average")


def test_words_say_what_the_bound_holds_for() -> None:
    words = [Budget(10, kind).words for kind in KINDS]
    assert words == ["10 on average", "10 for 95% of rows", "10 for every row"]


def test_default_budgets_are_even_on_a_log_scale() -> None:
    assert [b.amount for b in default_budgets(1, 10_000)] == [1, 10, 100, 1000, 10_000]
    assert [b.amount for b in default_budgets(2, 32)] == [2, 4, 8, 16, 32]
    assert default_budgets(5, 5) == default_budgets(0, 5) == (Budget(5),)
    assert default_budgets(1, 0) == default_budgets(1, math.nan) == ()


@given(st.floats(1e-6, 1e6), st.floats(1, 1e6))
@example(1.0000000000000002, 999999.9999999999)  # half a step is between two even numbers
def test_default_budgets_afford_both_ends(cheapest: float, times: float) -> None:
    whole = cheapest * times
    amounts = [b.amount for b in default_budgets(cheapest, whole)]
    assert amounts == sorted(set(amounts))
    assert 1 <= len(amounts) <= 5
    assert amounts[0] >= cheapest
    assert whole <= amounts[-1] <= 1.1 * whole
    assert all(float(f"{amount:.1e}") == amount for amount in amounts)
