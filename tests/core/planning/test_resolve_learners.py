"""Which learners a request means, and which of their settings are tried."""

from dataclasses import dataclass
from math import prod
from types import SimpleNamespace
from typing import ClassVar

import pytest
from helpers.kit import refused
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import BaseEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline

from bench_core import (
    BudgetedLearner,
    InputError,
    Task,
    among,
    inside,
    linear,
    log,
    param,
)
from bench_core.contracts import check, learner_of
from bench_core.parameters import as_json, parameters
from bench_core.planning.request import RunRequest
from bench_core.planning.resolve_learners import (
    ChosenLearner,
    check_owners,
    choose_learners,
    configurations,
    parse_setting,
    search_ends,
    varied,
)
from bench_core.planning.suites import NO_SUITE, Profile, Suite
from bench_core.plugins import PluginInfo, Registry, load_registry
from bench_core.protocols import CompleteLearner


class Learner:
    tasks: ClassVar[frozenset[Task]] = frozenset(Task)

    def fit(self, *given):
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

    def stamp(self):
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
def registry():
    classes = [Trees, Imported, OnTrees, OnOthers]
    for cls in classes:
        check(cls, CompleteLearner, "a learner")
    return Registry(learners={cls.name: cls for cls in classes})


QUICK = {"quick": Profile("quick", (0,), (0,))}
FIRST = ["gbrt", "budget-boosting", "cegb", "miser", "budget-prune", "greedy-order"]


def chosen(registry, *learners, suite=NO_SUITE):
    heard = []
    found = choose_learners(
        RunRequest(learners=learners),
        suite,
        registry,
        (),
        lambda line, warning: heard.append((line, warning)),
    )
    return found, heard


def test_who_names_no_learner_gets_a_first_board_with_their_own_and_what_they_set():
    registry = load_registry()
    settings = (parse_setting("l1.tolerance=0.1"),)
    registry.origin["learner", "cost-tree"] = PluginInfo("mine", "-p", "", "mine")
    heard = []
    found = choose_learners(
        RunRequest(), NO_SUITE, registry, settings, lambda line, warning: heard.append(line)
    )
    names = [*FIRST, "cost-tree", "l1"]
    assert [c.name for c in found] == names
    assert heard == [f"learners: {', '.join(names)} (a first board); learners='all': all learners"]
    assert sum(len(c.instances) for c in found) < 25  # a minute on a small table


def test_a_first_board_under_caps_has_a_policy_that_plans_ahead():
    found = choose_learners(RunRequest(caps=(5.0,)), NO_SUITE, load_registry(), ())
    assert [c.name for c in found] == [*FIRST, "aaco-tree"]


def test_without_the_learners_of_a_first_board_all_are_taken(registry):
    found, _ = chosen(registry)
    assert [c.name for c in found] == ["on-trees", "trees"]


def test_all_leaves_out_what_lacks_something_and_notes_what(registry):
    found, heard = chosen(registry, "all")
    assert [c.name for c in found] == ["on-trees", "trees"]
    assert sorted(heard) == [
        ("left out: imported: model.txt: no such file; train one", False),
        ("left out: on-others: unknown learner 'others': did you mean on-others?", False),
    ]


def test_what_was_asked_for_by_name_is_never_left_out(registry):
    found, heard = chosen(registry, "imported")
    assert ([c.name for c in found], heard) == (["imported"], [])
    refused("unknown learner 'others'", chosen, registry, "on-others")


def test_a_suite_may_say_what_a_learner_stands_on_whose_default_is_not_there(registry):
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
def test_an_unknown_learner_is_blamed_on_the_suite_or_the_option(registry, suite):
    of = Suite(name="mine", place="mine.toml", profiles=QUICK, **suite)
    refused("mine.toml: unknown learner 'tres': did you mean trees", chosen, registry, suite=of)
    refused("learners: unknown learner 'tres'", chosen, registry, "tres", suite=of)


@dataclass(frozen=True)
class Nameless(Learner):
    pass


@dataclass(frozen=True)
class Unfit:
    name: ClassVar[str] = "unfit"


class Plain(Learner):
    name: ClassVar[str] = "plain"


class Grown(Plain):
    def __init__(self, trees=3):
        self.trees = trees


class OfArrays(Plain):
    def fit(self, X, y):
        raise AssertionError


class OwnEstimator(BaseEstimator):
    def fit(self, X, y):
        raise AssertionError


@pytest.mark.parametrize(
    ("wrong", "line"),
    [
        (Nameless(), "Nameless is given, which has no name"),
        (Unfit(), "is neither a name nor a learner"),
        (Plain, "Plain is a class; give Plain()"),
        (Grown(), "Grown has settings|@dataclass(frozen=True)"),
        (OfArrays(), "OfArrays is given, whose fit does not take train, valid, prices, context"),
        (OwnEstimator(), "OwnEstimator is an estimator, not a learner: 'bench new learner' writes"),
        (
            LogisticRegression(C=0.5),
            "'sklearn'|{'estimator': 'sklearn.linear_model.LogisticRegression', 'arguments': "
            "{'C': 0.5}}",
        ),
        (LogisticRegression, "LogisticRegression is an estimator of scikit-learn: use the learner"),
        (Pipeline, "Pipeline is a class; give Pipeline()"),
        (make_pipeline(LogisticRegression()), "Pipeline is made of other objects: 'bench new"),
    ],
)
def test_what_is_no_learner_is_one_line_with_the_remedy(registry, wrong, line):
    refused(line, chosen, registry, wrong)


def test_a_learner_without_settings_may_be_of_a_plain_class(registry):
    plain = Plain()
    assert chosen(registry, plain)[0] == [ChosenLearner("plain", (plain,), True)]


def test_objects_of_one_name_are_one_learner(registry):
    found, _ = chosen(registry, Trees(1), OnTrees(Trees(2)), Trees(3))
    assert found == [
        ChosenLearner("trees", (Trees(1), Trees(3)), True),
        ChosenLearner("on-trees", (OnTrees(Trees(2)),), True),
    ]
    refused("'trees' is requested by name and as an object", chosen, registry, "trees", Trees(1))


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
def test_instances_are_told_apart_by_what_differs_within_their_grid(instances, words):
    assert varied(instances) == words


REGISTRY = load_registry()
BASELINES = [name for name, cls in REGISTRY.learners.items() if learner_of(cls).role == "baseline"]
FIVE = {"quick": Profile("quick", (0,), (0,), configs=5)}


@dataclass(frozen=True)
class Searched:
    name: ClassVar[str] = "searched"
    tasks: ClassVar[frozenset[Task]] = frozenset(Task)

    tradeoff: float = param(0.3, "price", least=0, search=log(0.01, 10))
    leaves: int = param(16, "leaves", least=2, search=linear(2, 9))
    rule: str = param("a", "rule", search=among("a", "b", "c"))
    trees: int = param(100, "trees", least=1)
    steps: tuple[float, ...] = param((1.0, 2.0), "steps")


def settings(count, table=None, fixed=None):
    return configurations(Searched, table or {}, fixed or {}, count, REGISTRY, "searched")


@dataclass(frozen=True)
class Few:
    name: ClassVar[str] = "few"
    tasks: ClassVar[frozenset[Task]] = frozenset(Task)

    rule: str = param("a", "rule", search=among("a", "b", "c"))
    extra: dict[str, int] | None = param(None, "no hash has a table")


@pytest.mark.parametrize("table", [{}, {"extra": {"a": 1}}])
def test_no_setting_is_there_twice_whether_it_has_a_hash_or_none(table):
    drawn = configurations(Few, table, {}, 20, REGISTRY, "")
    assert sorted(one.rule for one in drawn) == ["a", "b", "c"]


def test_the_first_setting_is_the_default_and_all_are_different():
    found = settings(20)
    assert found[0] == Searched()
    assert len(set(found)) == 20


@given(st.integers(1, 40), st.integers(1, 40))
def test_fewer_settings_are_the_first_of_more(one, other):
    few, many = sorted((one, other))
    assert settings(many)[:few] == settings(few)


def test_values_lie_in_the_declared_range_and_spread_evenly_over_it():
    found = settings(65)[1:]
    assert all(0.01 <= one.tradeoff <= 10 and 2 <= one.leaves <= 9 for one in found)
    assert all(type(one.leaves) is int for one in found)
    # every third of a range in its logarithm, and every choice, has about a third of them
    for low, high in ((0.01, 0.1), (0.1, 1), (1, 10)):
        assert 19 <= sum(low <= one.tradeoff < high for one in found) <= 24
    for rule in "abc":
        assert 19 <= sum(one.rule == rule for one in found) <= 24


def test_a_value_of_the_suite_is_where_the_search_begins():
    found = settings(5, table={"tradeoff": 0.7, "trees": 30})
    assert found[0] == Searched(tradeoff=0.7, trees=30)
    assert {one.trees for one in found} == {30}
    assert len({one.tradeoff for one in found}) == 5


def test_a_grid_of_the_suite_gives_way_to_the_search_or_is_a_choice_where_there_is_none():
    found = settings(9, table={"tradeoff": [1, 2], "trees": [30, 60]})
    assert found[0] == Searched(trees=30)
    assert {one.trees for one in found} == {30, 60}
    assert not {one.tradeoff for one in found} & {1.0, 2.0}


def test_what_the_user_sets_is_kept_and_a_list_is_a_choice():
    found = settings(9, fixed={"tradeoff": 2.0, "leaves": [4, 8]})
    assert {one.tradeoff for one in found} == {2.0}
    assert {one.leaves for one in found[1:]} == {4, 8}


def test_there_are_no_more_settings_than_there_are_values():
    found = settings(9, fixed={"tradeoff": 2.0, "leaves": 4})
    assert sorted(one.rule for one in found) == ["a", "b", "c"]


def test_learners_that_share_a_parameter_try_the_same_values_of_it():
    peer, cegb = (
        configurations(REGISTRY.learners[name], {}, {}, 12, REGISTRY, name)
        for name in ("lightgbm-cegb", "cegb")
    )
    for name in ("tradeoff", "learning_rate"):
        assert [getattr(a, name) for a in peer[1:]] == [getattr(b, name) for b in cegb[1:]]


@pytest.mark.parametrize("name", sorted(REGISTRY.learners))
def test_every_learner_takes_all_that_it_may_be_given(name):
    cls = REGISTRY.learners[name]
    found = configurations(cls, {}, {}, 30, REGISTRY, name)
    searches = [p.search for p in parameters(cls) if p.search]
    few = all(search.choices for search in searches)  # l1 has two settings, some have one
    most = prod(len(search.choices) for search in searches) if few else 30
    assert len(found) == len(set(map(str, map(as_json, found)))) == most


def searched_by(request, suite=NO_SUITE, texts=()):
    registry = Registry(learners={"searched": Searched})
    settings = [parse_setting(text) for text in texts]
    return choose_learners(request, suite, registry, settings)[0]


def test_a_request_has_the_last_word_over_the_suites_number():
    profiles = {"quick": Profile("quick", (0,), (0,), configs=7)}
    suite = Suite(name="s", place="s.toml", learners={"searched": {}}, profiles=profiles)
    assert len(searched_by(RunRequest(suite="s"), suite).instances) == 7
    assert len(searched_by(RunRequest(suite="s", configs=3), suite).instances) == 3


def test_baselines_try_as_many_settings_as_the_others():
    suite = Suite(name="s", learners={"gbrt": {}}, baselines=tuple(BASELINES), profiles=FIVE)
    sizes = {x.name: len(x.instances) for x in choose_learners(RunRequest(), suite, REGISTRY, ())}
    assert sizes == dict.fromkeys(["gbrt", *BASELINES], 5) | {"constant": 1}


@pytest.mark.parametrize(
    ("values", "ends"),
    [((0.1, 1.0, 0.5), (0.1, 1.0)), ((0.0, 1.0), (None, 1.0))],  # none lies below 0
)
def test_the_ends_of_a_grid_are_its_least_and_its_most_value(values, ends):
    assert search_ends([Searched(tradeoff=t) for t in values], drawn=False) == {"tradeoff": ends}


def test_the_ends_of_a_range_are_its_outer_twentieths():
    low, high = search_ends(settings(20), drawn=True)["tradeoff"]
    assert low == pytest.approx(0.01 * 1000**0.05, rel=1e-3)
    assert high == pytest.approx(0.01 * 1000**0.95, rel=1e-3)


@dataclass(frozen=True)
class Bounded:
    rows: float = param(1.0, "rows", least=1, search=log(1, 30))


def test_a_range_that_begins_where_the_parameter_does_has_no_edge_there():
    found = configurations(Bounded, {}, {}, 9, REGISTRY, "bounded")
    low, high = search_ends(found, drawn=True)["rows"]
    assert low is None
    assert high == pytest.approx(30**0.95, rel=1e-3)


@dataclass(frozen=True)
class Stands:
    name: ClassVar[str] = "stands"
    tasks: ClassVar[frozenset[Task]] = frozenset(Task)

    base: BudgetedLearner = param("gbrt", "trees", search=inside())
    tradeoff: float = param(0.2, "price", least=0, search=log(0.01, 1))
    leaves: int = param(8, "leaves", least=2, search=linear(2, 90))


def standing(count, table=None, fixed=None):
    return configurations(Stands, table or {}, fixed or {}, count, REGISTRY, "stands")


def test_a_learner_stands_on_the_settings_that_its_base_tries_itself():
    own = configurations(REGISTRY.learners["gbrt"], {"trees": 40}, {}, 9, REGISTRY, "gbrt")
    found = standing(9, {"base": {"trees": 40}})
    assert [one.base for one in found] == list(own)
    assert len({one.tradeoff for one in found}) == 9
    # what the base searches does not lead what stands on it
    rates = [one.base.learning_rate for one in found[1:]]
    for name in ("tradeoff", "leaves"):
        values = [getattr(one, name) for one in found[1:]]
        assert sorted(range(8), key=rates.__getitem__) != sorted(range(8), key=values.__getitem__)


def test_several_bases_take_turns():
    found = standing(6, {"base": ["gbrt", {"learner": "miser", "trees": 40}]})
    assert [one.base.name for one in found] == ["gbrt", "miser"] * 3
    for name, table in (("gbrt", {}), ("miser", {"trees": 40})):
        own = configurations(REGISTRY.learners[name], table, {}, 3, REGISTRY, name)
        assert [one.base for one in found if one.base.name == name] == list(own)


def test_what_the_user_sets_of_a_base_is_kept():
    for text in ("stands.base.min_rows=7", "stands.base={min_rows = 7}"):
        registry = Registry(learners={**REGISTRY.learners, "stands": Stands})
        request = RunRequest(learners=("stands",), configs=6)
        found = choose_learners(request, NO_SUITE, registry, [parse_setting(text)])[0].instances
        assert {one.base.min_rows for one in found} == {7}
        assert len({one.base.learning_rate for one in found}) == 6


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (["gbrt", "b"], "'gbrt.trees=3'|a learner and a data set have this name"),
        (["b"], ""),
    ],
)
def test_a_setting_does_not_choose_between_a_learner_and_a_data_set(sets, words):
    registry = SimpleNamespace(learners={"gbrt": object}, datasets=dict.fromkeys(sets, object))
    call = check_owners, [parse_setting("gbrt.trees=3")], ["gbrt", "b"], registry
    refused(words, *call) if words else call[0](*call[1:])
