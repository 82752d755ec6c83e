"""Marks of a search that might have gone on, by eye; budgets as values."""

import math
from types import SimpleNamespace

import pandas as pd
import pytest
from helpers.kit import refused
from hypothesis import example, given
from hypothesis import strategies as st

from bench_core.results.budgets import KINDS, Budget, as_budgets, default_budgets
from bench_core.results.operating_points import (
    best_points,
    operating_points,
    search_marks,
    with_choices,
)
from bench_core.results.records import DatasetUse


def rows(learner, path, params="tradeoff", value=0.1, seed=0):
    """Validation quality by number of trees, as export rows of both splits."""
    return [
        {
            "dataset": "d", "fold": 0, "seed": seed, "learner": learner, "status": "ok",
            "params": f'{{"{params}": {value}}}', "point": f'{{"trees": {trees}}}',
            "split": split, "auc": quality, "cost": float(trees), "audit": "sampled",
        }
        for trees, quality in path.items()
        for split in ("valid", "test")
    ]  # fmt: skip


def marks(found, ends=None):
    points = operating_points(pd.DataFrame(found), "auc")
    best = best_points(points, higher=True)
    return search_marks(best, points, {"a": ends or {}}, True)["a"]


FLAT = dict.fromkeys(range(10, 91, 10), 0.7)


@pytest.mark.parametrize(
    ("path", "converged"),
    [
        ({1: 0.5, 2: 0.6, 3: 0.7}, False),
        ({1: 0.5, 2: 0.7, 3: 0.6}, True),
        # a thousandth in the last tenth of the trees is no more than noise
        (FLAT | {100: 0.7005}, True),
        (FLAT | {95: 0.71, 100: 0.7}, False),
        (FLAT | {90: 0.71, 100: 0.7105}, True),
        ({300: 0.7}, True),  # a path of one point says nothing
    ],
)
def test_a_best_point_with_all_trees_has_not_converged(path, converged):
    assert marks(rows("a", path)) == (() if converged else ("not converged",))


@pytest.mark.parametrize(
    ("path", "trees", "found"),
    [
        ({1: 0.5, 2: 0.6, 3: 0.7}, 300, ()),  # training ended before it had all trees
        ({50: 0.7, 90: 0.7, 100: 0.7}, 100, ()),  # more trees would do nothing
        ({50: 0.6, 90: 0.65, 100: 0.7}, 100, ("not converged",)),
    ],
)
def test_the_path_tells_what_more_trees_would_do(path, trees, found):
    assert marks(rows("a", path, "trees", trees), {"trees": (None, 100)}) == found


def test_the_path_is_that_of_the_chosen_setting_and_repeat():
    short = rows("a", {1: 0.5, 2: 0.9}, value=0.1)
    longer = rows("a", {1: 0.5, 2: 0.6, 3: 0.6}, value=0.2)
    assert marks(short + longer) == ("not converged",)
    other = rows("a", {1: 0.5, 2: 0.6, 3: 0.5}, seed=1)
    assert marks(rows("a", {1: 0.9, 2: 0.5}) + other) == ()
    assert marks(rows("a", {1: 0.5, 2: 0.9}) + other) == ("not converged",)


@pytest.mark.parametrize(
    ("tradeoff", "ends", "edge"),
    [
        (0.1, (0.1, 1.0), True),
        (1.0, (0.1, 1.0), True),
        (0.5, (0.1, 1.0), False),
        (0.1, (None, 1.0), False),
        (1.0, (0.1, None), False),
    ],
)
def test_a_value_at_an_end_of_its_range_is_at_an_edge(tradeoff, ends, edge):
    found = marks(rows("a", {1: 0.7, 2: 0.6}, value=tradeoff), {"tradeoff": ends})
    assert found == (("at edge: tradeoff",) if edge else ())


def test_the_export_marks_the_point_that_validation_chose_and_no_other():
    frame = pd.DataFrame(rows("a", {1: 0.5, 2: 0.7}) + rows("b", {1: 0.9, 2: 0.7}))
    use = DatasetUse("d", metrics=("auc",), ends={"b": {"tradeoff": [0.1, 1.0]}})
    info = SimpleNamespace(datasets=(use,), higher_is_better={"auc": True}, in_money=())
    found = with_choices(frame, info).set_index(["learner", "point", "split"])["chosen"]
    for split in ("valid", "test"):
        assert found["a", '{"trees": 2}', split] == "best; not converged"
        assert found["b", '{"trees": 1}', split] == "best; at edge: tradeoff"
    assert (found == "").sum() == 4


def test_budgets_are_numbers_with_commas_each_once():
    assert as_budgets("10, 20,4e1,20.0") == (Budget(10), Budget(20), Budget(40))
    assert as_budgets("0.5", "cap") == (Budget(0.5, "cap"),)
    assert as_budgets("10,mean 20", "cap") == (Budget(10, "cap"), Budget(20))
    assert as_budgets([10, "cap 5", Budget(7, "cap")]) == (
        Budget(10),
        Budget(5, "cap"),
        Budget(7, "cap"),
    )
    assert as_budgets(3) == as_budgets("3") == as_budgets(Budget(3)) == (Budget(3),)


@given(st.floats(0, 1e9).map(lambda x: float(f"{x:.12g}")), st.sampled_from(KINDS))
def test_a_budget_reads_as_it_is_shown(amount, kind):
    assert as_budgets(str(Budget(amount, kind))) == (Budget(amount, kind),)


@pytest.mark.parametrize("text", ["", "ten", "10,", "-1", "inf", "nan", "10;20", "10 ms"])
def test_what_is_no_cost_is_refused_in_one_line(text):
    refused("budget", as_budgets, text)


def test_an_unknown_kind_is_refused_with_the_one_that_is_meant():
    refused("did you mean cap", as_budgets, "cup 10")
    refused("unknown kind 'average'", as_budgets, "10", "average")


def test_words_say_what_the_bound_holds_for():
    words = [Budget(10, kind).words for kind in KINDS]
    assert words == ["10 on average", "10 for every row"]


def test_default_budgets_are_even_on_a_log_scale():
    assert [b.amount for b in default_budgets(1, 10_000)] == [1, 10, 100, 1000, 10_000]
    assert [b.amount for b in default_budgets(2, 32)] == [2, 4, 8, 16, 32]
    assert default_budgets(5, 5) == default_budgets(0, 5) == (Budget(5),)
    assert default_budgets(1, 0) == default_budgets(1, math.nan) == ()


@given(st.floats(1e-6, 1e6), st.floats(1, 1e6))
@example(1.0000000000000002, 999999.9999999999)  # half a step is between two even numbers
def test_default_budgets_afford_both_ends(cheapest, times):
    whole = cheapest * times
    amounts = [b.amount for b in default_budgets(cheapest, whole)]
    assert amounts == sorted(set(amounts))
    assert 1 <= len(amounts) <= 5
    assert amounts[0] >= cheapest
    assert whole <= amounts[-1] <= 1.1 * whole
    assert all(float(f"{amount:.1e}") == amount for amount in amounts)
