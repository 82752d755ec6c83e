"""What cost files get wrong is refused with its place, the feature or key, and the remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench_core.costs.cost_file import CostFile, cost_model
from bench_core.costs.shipped import MODELS
from bench_core.errors import InputError

NAMES = ("a", "b", "c")


def refused(text: str, names: tuple[str, ...] = NAMES, name: str = "c.json") -> str:
    with pytest.raises(InputError) as caught:
        cost_model(CostFile(Path(name), text), names, None, MODELS)
    return str(caught.value)


def full(**keys: Any) -> str:
    """The full form with these keys, one a line: the costs on line 2, the others from line 3."""
    keys = {"costs": {"a": 1, "b": 2, "c": 1}} | keys
    return "{\n" + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in keys.items()) + "\n}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("[1, -2, 0]", "c.json, entry 2: feature '2' costs -2, not a number from 0 to 1e+100"),
        ("[1, 2, 0, 4]", "c.json, entry 4: a cost number 4 for 3 features"),
        ('{"a": 1, "b": 2}', "c.json: feature 'c' has no cost (2 costs for 3 features)"),
        ("[5]", "c.json: feature 'b' and 1 more have no cost (1 costs for 3 features)"),
        ('{"a": 1,\n"b": 2, "c": 0,\n"b": 2}', "c.json, line 2: feature 'b' has a second cost"),
        ('\n\n{"a": 1,\n"b": true, "c": 0}', "c.json, line 4: feature 'b' costs True, not a"),
        ('{"a": 1, "b": [2], "c": 0}', "c.json, line 1: feature 'b' costs [2], not a number"),
        ('{"a": 1, "b": 2, "x1": 0}', "c.json, line 1: unknown feature 'x1': correct or remove it"),
        ('"1"', "c.json: a mapping or a list of costs is wanted"),
        ('{"a": 1,\n"b": }', "c.json, line 2: not JSON"),
    ],
)  # fmt: skip
def test_one_cost_per_feature_is_wanted(text: str, line: str) -> None:
    assert refused(text).startswith(line)


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ({"split": -1}, "c.json, line 3: feature 'split' costs -1, not a number"),
        ({"tree": "x"}, "c.json, line 3: feature 'tree' costs 'x', not a number"),
        ({"unit": 3}, "c.json, line 3: unit is 3; give it as text"),
        ({"units": "s"}, "c.json, line 3: unknown key 'units'; known: costs, shared, "),
        ({"derived": ["c"]}, "c.json, line 3: derived maps a feature to its parents"),
        ({"derived": {"c": "a"}}, "c.json, line 3: derived holds 'a'; give a list"),
        ({"derived": {"c": []}}, "c.json, line 3: derived holds []; give a list"),
        ({"shared": {"a": "b"}}, "c.json, line 3: shared must be a list of groups"),
        ({"shared": ["ac"]}, "c.json, line 3: shared holds 'ac'; give a list of features"),
        ({"shared": [[]]}, "c.json, line 3: shared holds []; give a list of features"),
        ({"shared": [["a", "b"]]}, "c.json, line 2: features 'a' and 'b' share one"),
        ({"shared": [[1, 9]]}, "c.json: unknown feature '9': correct or"),
        ({"discounted": "ab"}, "c.json, line 3: discounted must be a list of groups"),
        ({"discounted": [["a", "b"]]}, "c.json, line 3: a discounted group has exactly the keys"),
        ({"discounted": [{"members": ["a"]}]}, "c.json, line 3: a discounted group has exactly"),
        (
            {"discounted": [{"members": ["a", "c"], "later": "11"}]},
            "c.json, line 3: give one later price for each of the 2 members",
        ),
        (
            {"discounted": [{"members": ["a", "c"], "later": [1]}]},
            "c.json, line 3: give one later price for each of the 2 members",
        ),
        (
            {"discounted": [{"members": ["a", "c"], "later": [0, -1]}]},
            "c.json, line 3: feature 'c' costs -1, not a number",
        ),
        ({"model": "sensr"}, "c.json, line 3: unknown cost model 'sensr': did you mean sensor? "),
        ({"model": "parallel"}, "c.json, line 3: services must be a table of lists"),
    ],
)
def test_a_key_of_the_full_form_holds_what_it_should(keys: dict[str, Any], line: str) -> None:
    assert refused(full(**keys)).startswith(line)


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("c.csv", "a,1\nb,cheap\nc,0", "c.csv, line 2: feature 'b' costs 'cheap', not a number"),
        ("c.csv", "# x\na,1\nb,2,5\nc,0", "c.csv, line 3: unknown feature 'b,2'"),
        ("c.csv", "a,1\nb,2\nc,0\na,1", "c.csv, line 4: feature 'a' has a second cost"),
        ("c.csv", "# x\n", "c.csv: no costs in this file; write one line name,cost"),
        ("c.txt", "1\n2\n3\n4", "c.txt, line 4: a cost number 4 for 3 features"),
        ("c.txt", "a:1\nb\nc:3", "c.txt, line 2: 'b' is not name,cost like the others; correct"),
        ("c.txt", "a:1\nb:inf\nc:0", "c.txt, line 2: feature 'b' costs 'inf', not a number"),
    ],
)
def test_a_line_that_is_no_cost_is_refused(name: str, text: str, line: str) -> None:
    assert refused(text, name=name).startswith(line)


def test_a_model_without_costs_reads_its_own_keys_only() -> None:
    line = refused('{"model": "per-query", "per_query": ["a"],\n"split": 1}')
    assert line == "c.json, line 2: unknown key 'split'; known: model, per_query"


def test_a_model_without_costs_needs_prices_to_build_on() -> None:
    line = refused('{"model": "per-query", "per_query": ["a"]}')
    assert line.startswith("c.json: key 'costs' is missing")


def test_the_names_are_listed_where_they_are_few() -> None:
    assert refused("zz,1", ("a", "b"), "c.csv").endswith("remove it; known: a, b")
    many = tuple(f"n{i}" for i in range(40))
    assert refused("zz,1", many, "c.csv").endswith("correct or remove it")
