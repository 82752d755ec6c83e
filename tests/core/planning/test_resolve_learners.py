"""Which learners a request means, and how their instances are told apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from bench_core import BudgetedLearner, InputError, Task, UsageError, param
from bench_core.contracts import check
from bench_core.planning.request import RunRequest
from bench_core.planning.resolve_learners import (
    ChosenLearner,
    choose_learners,
    read_settings,
    varied,
)
from bench_core.planning.suites import NO_SUITE, Profile, Suite
from bench_core.plugins import PluginInfo, Registry, load_registry
from bench_core.protocols import CompleteLearner


class Learner:
    tasks: ClassVar[frozenset[Task]] = frozenset(Task)

    def fit(self, *given: Any) -> Any:
        raise AssertionError


@dataclass(frozen=True)
class Trees(Learner):
    name: ClassVar[str] = "trees"
    trees: int = param(300, "number of trees")
    rate: float = param(0.1, "shrinkage")
    order: str = param("best", "which leaf next")
    widths: tuple[int, ...] = param((1, 2), "of the leaves")


@dataclass(frozen=True)
class Imported(Learner):
    name: ClassVar[str] = "imported"

    def stamp(self) -> str:
        raise InputError("model.txt: no such file; train one")


@dataclass(frozen=True)
class OnTrees(Learner):
    name: ClassVar[str] = "on-trees"
    base: BudgetedLearner = param("trees", "what it stands on")


@dataclass(frozen=True)
class OnOthers(OnTrees):
    name: ClassVar[str] = "on-others"
    base: BudgetedLearner = param("others", "what it stands on")


@pytest.fixture
def registry() -> Registry:
    classes: list[Any] = [Trees, Imported, OnTrees, OnOthers]
    for cls in classes:
        check(cls, CompleteLearner, "a learner")
    return Registry(learners={cls.name: cls for cls in classes})


QUICK = {"quick": Profile("quick", (0,), (0,))}


def chosen(
    registry: Registry, *learners: Any, suite: Suite = NO_SUITE
) -> tuple[list[ChosenLearner], list[tuple[str, bool]]]:
    heard: list[tuple[str, bool]] = []
    found = choose_learners(
        RunRequest(learners=learners),
        suite,
        registry,
        (),
        lambda line, warning: heard.append((line, warning)),
    )
    return found, heard


def test_who_names_no_learner_gets_a_first_board_with_their_own_and_what_they_set() -> None:
    registry = load_registry()
    settings = read_settings(RunRequest(settings=("l1.tolerance=0.1",)), registry)
    registry.origin["learner", "cost-tree"] = PluginInfo("mine", "-p", "", "mine")
    heard: list[str] = []
    found = choose_learners(
        RunRequest(), NO_SUITE, registry, settings, lambda line, warning: heard.append(line)
    )
    board = ["gbrt", "budget-boosting", "cegb", "miser", "budget-prune", "greedy-order"]
    names = [*board, "cost-tree", "l1"]
    assert [c.name for c in found] == names
    assert heard == [f"learners: {', '.join(names)} (a first board); --learners all: every one"]
    assert sum(len(c.instances) for c in found) < 25  # a minute on a small table


def test_without_the_learners_of_a_first_board_all_are_taken(registry: Registry) -> None:
    found, _ = chosen(registry)
    assert [c.name for c in found] == ["on-trees", "trees"]


def test_all_leaves_out_what_lacks_something_and_notes_what(registry: Registry) -> None:
    found, heard = chosen(registry, "all")
    assert [c.name for c in found] == ["on-trees", "trees"]
    assert sorted(heard) == [
        ("left out: imported: model.txt: no such file; train one", False),
        ("left out: on-others: unknown learner 'others': did you mean on-others?", False),
    ]


def test_what_was_asked_for_by_name_is_never_left_out(registry: Registry) -> None:
    found, heard = chosen(registry, "imported")
    assert ([c.name for c in found], heard) == (["imported"], [])
    with pytest.raises(UsageError, match="unknown learner 'others'"):
        chosen(registry, "on-others")


def test_a_suite_may_say_what_a_learner_stands_on_whose_default_is_not_there(
    registry: Registry,
) -> None:
    suite = Suite(name="mine", learners={"on-others": {"base": "trees"}}, profiles=QUICK)
    found, heard = chosen(registry, suite=suite)
    assert ([c.instances for c in found], heard) == ([(OnOthers(Trees()),)], [])


@pytest.mark.parametrize(
    "suite",
    [
        {"learners": {"trees": {}}, "reference": "tres"},
        {"learners": {"trees": {}}, "baselines": ("tres",)},
        {"learners": {"tres": {}}},
    ],
)
def test_an_unknown_learner_is_blamed_on_the_suite_or_the_option(
    registry: Registry, suite: dict[str, Any]
) -> None:
    of = Suite(name="mine", place="mine.toml", profiles=QUICK, **suite)
    with pytest.raises(UsageError, match=r"^mine.toml: unknown learner 'tres': did you mean trees"):
        chosen(registry, suite=of)
    with pytest.raises(UsageError, match=r"^--learners: unknown learner 'tres'"):
        chosen(registry, "tres", suite=of)


@dataclass(frozen=True)
class Nameless(Learner):
    pass


@dataclass(frozen=True)
class Unfit:
    name: ClassVar[str] = "unfit"


class NoDataclass(Learner):
    name: ClassVar[str] = "no-dataclass"


@pytest.mark.parametrize("wrong", [Nameless(), Unfit(), NoDataclass()])
def test_an_object_is_a_learner_by_its_name_its_fit_and_its_fields(
    registry: Registry, wrong: Any
) -> None:
    with pytest.raises(UsageError, match="is neither a name nor a learner"):
        chosen(registry, wrong)


def test_objects_of_one_name_are_one_learner(registry: Registry) -> None:
    found, _ = chosen(registry, Trees(1), OnTrees(Trees(2)), Trees(3))
    assert found == [
        ChosenLearner("trees", (Trees(1), Trees(3)), True),
        ChosenLearner("on-trees", (OnTrees(Trees(2)),), True),
    ]
    with pytest.raises(UsageError, match="'trees' is asked for by name and as an object"):
        chosen(registry, "trees", Trees(1))


@pytest.mark.parametrize(
    ("instances", "words"),
    [
        ([Trees()], [""]),
        ([Trees(), Trees()], ["", ""]),
        ([Trees(5), Trees(5, 0.25)], ["rate=0.1", "rate=0.25"]),
        ([Trees(5), Trees(7, 0.25)], ["trees=5 rate=0.1", "trees=7 rate=0.25"]),
        ([Trees(order="by depth"), Trees(order="best")], ["order=bydepth", "order=best"]),
        ([Trees(widths=(1, 2)), Trees(widths=())], ["widths=[1,2]", "widths=[]"]),
        ([OnTrees(Trees()), OnTrees(Imported())], ["base=trees", "base=imported"]),
        ([OnTrees(Trees(5)), OnTrees(Trees(7))], ["base.trees=5", "base.trees=7"]),
    ],
)  # fmt: skip
def test_instances_are_told_apart_by_what_differs_within_their_grid(
    instances: list[Any], words: list[str]
) -> None:
    assert varied(instances) == words
