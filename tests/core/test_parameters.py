from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import ClassVar, Literal

import pytest
from helpers.kit import refused

from bench_core import BudgetedLearner, Task, UsageError, param
from bench_core.parameters import as_json, decode, encode, expand, parameters, resolved
from bench_core.planning.request import RunRequest
from bench_core.planning.resolve_learners import choose_learners, parse_setting, with_setting
from bench_core.planning.suites import NO_SUITE
from bench_core.plugins import Registry


def build(cls, table, registry):
    (made,) = expand(cls, table, registry)
    return made


class Learner:
    tasks: ClassVar[frozenset[Task]] = frozenset(Task)
    code: ClassVar[tuple[str, ...]] = ()

    def needs(self):
        return ()

    def fit(self, *_):
        raise AssertionError


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Trees(Learner):
    name: ClassVar[str] = "trees"
    trees: int = param(300, "number of trees", least=1)
    rate: float = param(0.1, "shrinkage", above=0)
    order: Literal["best", "level"] = param("best", "which leaf next")
    depth: int | None = param(None, "levels", least=1, most=8)
    widths: tuple[float, ...] = param((1.0, 2.0), "widths", least=0, below=9)
    fast: bool = param(False, "hurry")
    colour: Colour = param(Colour.RED, "colour")


@dataclass(frozen=True)
class Stack(Learner):
    name: ClassVar[str] = "stack"
    base: BudgetedLearner = param(Trees(rate=0.5), "what it stands on")
    share: float = param(0.5, "share")


@dataclass(frozen=True)
class OnTrees(Learner):
    name: ClassVar[str] = "on-trees"
    base: Trees | None = param(None, "trees it may stand on")


@pytest.fixture
def registry():
    return Registry(learners={"trees": Trees, "stack": Stack, "on-trees": OnTrees})


def test_fields_carry_type_default_and_documentation():
    found = {p.name: p for p in parameters(Trees)}
    assert found["trees"].default == 300
    assert found["trees"].doc == "number of trees"
    assert found["depth"].kind == "a whole number or none"
    assert found["widths"].kind == "a list, each a number"


@pytest.mark.parametrize(
    ("table", "made"),
    [
        (
            {"trees": [10, 20], "order": "level"},
            [Trees(10, order="level"), Trees(20, order="level")],
        ),
        ({"trees": [1, 2], "depth": [3, 4]}, [Trees(t, depth=d) for t in (1, 2) for d in (3, 4)]),
        ({"widths": [3, 4]}, [Trees(widths=(3.0, 4.0))]),  # a tuple field: one value
        ({"widths": [[3], [4, 5]]}, [Trees(widths=(3.0,)), Trees(widths=(4.0, 5.0))]),
        ({"depth": ["none", 1, 8]}, [Trees(depth=None), Trees(depth=1), Trees(depth=8)]),
        ({"colour": "blue"}, [Trees(colour=Colour.BLUE)]),
    ],
)
def test_a_list_is_a_grid_and_several_grids_are_their_product(registry, table, made):
    assert list(expand(Trees, table, registry)) == made


def test_whole_numbers_become_floats_where_a_number_is_wanted(registry):
    rate = build(Trees, {"rate": 1}, registry).rate
    assert (rate, type(rate)) == (1.0, float)


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ({"treees": 3}, "unknown parameter 'treees': did you mean trees?"),
        ({"trees": 3.5}, "trees: expected a whole number, got 3.5"),
        ({"trees": date(2020, 1, 1)}, "trees: expected a whole number, got datetime.date(2020"),
        ({"trees": [[1, date(2020, 1, 1)]]}, 'got [1, "2020-01-01"]'),
        ({"trees": True}, "trees: expected a whole number, got true"),
        ({"trees": "many"}, 'trees: expected a whole number, got "many"'),
        ({"rate": float("nan")}, "rate: expected a number, got nan"),
        ({"fast": 1}, "fast: expected true or false, got 1"),
        ({"order": "worst"}, 'order: expected one of best, level, got "worst"'),
        ({"widths": 3}, "widths: expected a list, each a number, got 3"),
        ({"trees": []}, "trees: the grid is empty"),
        ({"trees": 0}, "trees must be at least 1 and finite, got 0"),
        ({"rate": 0}, "rate must be above 0 and finite, got 0.0"),
        ({"rate": float("inf")}, "rate must be above 0 and finite, got inf"),
        ({"depth": 9}, "depth must be 1 to 8, got 9"),
        ({"widths": [3, 9]}, "widths must be at least 0 and below 9, got (3.0, 9.0)"),
        ({"colour": "green"}, "colour: expected one of red, blue"),
    ],
)
def test_a_wrong_name_or_type_is_one_line(registry, table, line):
    said = refused(line, expand, Trees, table, registry, "suites/x.toml")
    assert said.startswith("suites/x.toml")


def test_a_learner_held_by_another_is_checked_too(registry):
    refused("on: trees must be at least 1", expand, Stack, {"base": Trees(trees=0)}, registry, "on")


def test_a_learner_given_as_an_object_is_checked(registry):
    with pytest.raises(UsageError, match="learner trees: rate must be above 0 and finite, got -1"):
        choose_learners(RunRequest(learners=(Trees(rate=-1.0),)), NO_SUITE, registry, ())


@pytest.mark.parametrize(
    ("base", "made"),
    [
        ("trees", [Trees()]),
        ({"learner": "trees", "trees": [1, 2]}, [Trees(trees=1), Trees(trees=2)]),
        ({"trees": 7}, [Trees(trees=7, rate=0.5)]),  # changes the default
        ({"learner": "stack", "base": {"trees": 5}}, [Stack(base=Trees(trees=5, rate=0.5))]),
    ],
)
def test_a_learner_field_takes_a_name_or_a_table_with_grids(registry, base, made):
    assert [m.base for m in expand(Stack, {"base": base}, registry)] == made


def test_a_learner_of_the_wrong_kind_is_refused(registry):
    refused("expected trees, got stack", build, OnTrees, {"base": "stack"}, registry)


def test_a_nested_table_needs_a_name_where_there_is_no_default(registry):
    refused("name the learner", build, OnTrees, {"base": {"trees": 5}}, registry)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("miser.trees=300", 300),
        ("miser.trees=[100, 300]", [100, 300]),
        ("miser.charge=node", "node"),
        ('miser.charge="node"', "node"),
        ("miser.rate=1e-3", 0.001),
        ("miser.fast=true", True),
        ("miser.base={learner='trees'}", {"learner": "trees"}),
        ("miser.x=1\ny=2", "1\ny=2"),
    ],
)
def test_settings_are_toml_literals_and_bare_words_are_text(text, value):
    assert parse_setting(text).value == value


@pytest.mark.parametrize("text", ["trees=3", "miser.trees", "=3", "miser.=3", "miser..trees=3"])
def test_a_setting_without_learner_parameter_and_value_is_refused(text):
    refused("write it as LEARNER", parse_setting, text)


def test_a_setting_reaches_into_a_nested_learner(registry):
    setting = parse_setting("stack.base.trees=40")
    table = with_setting({"base": "trees"}, setting.path, setting.value)
    assert build(Stack, table, registry).base == Trees(trees=40)
    table = with_setting({}, setting.path, setting.value)
    assert build(Stack, table, registry).base == Trees(trees=40, rate=0.5)


def test_a_setting_holds_for_every_learner_of_a_grid(registry):
    table = with_setting({"base": ["trees", {"trees": 9}]}, ("base", "rate"), 0.25)
    made = expand(Stack, table, registry)
    assert [m.base for m in made] == [Trees(rate=0.25), Trees(trees=9, rate=0.25)]


def test_a_setting_below_a_plain_parameter_is_refused():
    refused("'trees' is not a learner", with_setting, {"trees": 3}, ("trees", "more"), 1)


def test_json_names_nested_learners_and_spells_numbers_one_way():
    assert as_json(Stack(base=Trees(rate=1), share=1)) == {
        "base": {
            "learner": "trees",
            "trees": 300,
            "rate": 1.0,
            "order": "best",
            "depth": None,
            "widths": [1.0, 2.0],
            "fast": False,
            "colour": "red",
        },
        "share": 1.0,
    }


def test_a_learner_survives_the_way_to_another_process():
    learner = Stack(base=Stack(base=Trees(trees=3, widths=(1, 2), depth=4)))
    assert decode(encode(learner)) == learner


@dataclass(frozen=True)
class ByName(Learner):
    name: ClassVar[str] = "by-name"
    base: BudgetedLearner = param("trees", "what it stands on")


def test_a_default_given_by_name_becomes_that_learner(registry):
    assert build(ByName, {}, registry).base == Trees()
    assert build(Stack, {"base": {"learner": "by-name"}}, _with(registry)).base.base == Trees()
    assert build(ByName, {"base": {"trees": 7}}, registry).base == Trees(trees=7)


def test_names_inside_given_learners_are_resolved_and_others_kept(registry):
    plain = Stack(base=Trees(trees=2))
    assert resolved(plain, registry.learner) is plain
    assert resolved(Stack(base=ByName()), registry.learner).base.base == Trees()
    assert resolved(Stack(base="by-name"), _with(registry).learner).base.base == Trees()


def test_a_default_that_nobody_registered_is_refused_in_one_line():
    refused("trees", build, ByName, {}, Registry())


def _with(registry):
    return Registry(learners={**registry.learners, "by-name": ByName})


def test_a_search_that_is_none_is_refused_where_it_is_written():
    with pytest.raises(TypeError, match=r"search=\('log', 1, 9\): give log\(0.01, 100\), linear"):
        param(1, "a number", search=("log", 1, 9))
