import pytest
from helpers.kit import refused

from bench_core import UsageError
from bench_core.costs.cost_file import CostFile
from bench_core.metrics import parse_metric
from bench_core.parameters import expand
from bench_core.planning.suites import DatasetEntry, read_suite
from bench_core.plugins import Registry, load_registry
from bench_core.results.budgets import Budget

REGISTRY = load_registry()
GOOD = """
title = "T"
datasets = ["letters", {name = "letters", classes = 26}]
metrics = ["accuracy"]
seeds = [0, 1]
reference = "gbrt"
[learners.gbrt]
trees = [10, 20]
[profiles.standard]
seeds = [0, 1, 2]
size = "quick"
[profiles.standard.learners.gbrt]
trees = 300
[[claims]]
id = "one"
source = "nobody"
says = "letters are easy"
published = "1"
dataset = "letters"
measure = "quality"
learners = ["gbrt"]
holds = ">= 1"
"""


def written(tmp_path, text):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return path


def test_a_suite_is_read_as_its_file_says_it(tmp_path):
    suite = read_suite(written(tmp_path, GOOD), REGISTRY)
    assert suite.name == "mine"
    assert suite.datasets == (DatasetEntry("letters"), DatasetEntry("letters", {"classes": 26}))
    assert suite.learners == {"gbrt": {"trees": [10, 20]}}
    assert suite.accounting == ("path",)
    both = read_suite(written(tmp_path, 'accounting = ["model", "path"]\n' + GOOD), REGISTRY)
    assert both.accounting == ("model", "path")
    assert [(claim["id"], claim["holds"]) for claim in suite.extra["claims"]] == [("one", ">= 1")]


def test_quick_is_the_default_profile_and_profiles_inherit_seeds(tmp_path):
    suite = read_suite(written(tmp_path, GOOD), REGISTRY)
    quick = suite.profile("")
    assert (quick.size, quick.seeds, quick.folds) == ("quick", (0, 1), (0,))
    assert suite.profile("paper").size == "paper"


def test_a_profile_overrides_size_seeds_and_parameters(tmp_path):
    standard = read_suite(written(tmp_path, GOOD), REGISTRY).profile("standard")
    assert (standard.size, standard.seeds) == ("quick", (0, 1, 2))
    assert standard.learners == {"gbrt": {"trees": 300}}


def test_seeds_and_folds_are_0_where_nothing_says_otherwise(tmp_path):
    suite = read_suite(written(tmp_path, GOOD.replace("seeds = [0, 1]\n", "")), REGISTRY)
    assert (suite.profile("paper").seeds, suite.profile("paper").folds) == ((0,), (0,))
    largest = GOOD.replace("[0, 1]\n", "[4294967295, 0]\nfolds = [2, 1]\n", 1)
    paper = read_suite(written(tmp_path, largest), REGISTRY).profile("paper")
    assert (paper.seeds, paper.folds) == ((4294967295, 0), (2, 1))


def test_costs_of_a_suite_are_a_file_beside_it_or_a_table(tmp_path):
    assert read_suite(written(tmp_path, GOOD), REGISTRY).costs is None
    beside = read_suite(written(tmp_path, 'costs = "lab/costs.csv"\n' + GOOD), REGISTRY)
    assert beside.costs == tmp_path / "lab" / "costs.csv"
    text = "costs = {a = 1, b = 2.5}\n" + GOOD
    path = written(tmp_path, text)
    assert read_suite(path, REGISTRY).costs == CostFile(path, text, {"a": 1, "b": 2.5})


def test_budgets_and_caps_hold_for_all_data_sets_or_for_one(tmp_path):
    def suite(lines):
        return read_suite(written(tmp_path, GOOD.replace('title = "T"', lines)), REGISTRY)

    every = suite('budgets = [10, 2.5, "cap 7"]\ncaps = [5]')
    assert every.budgets_on("letters") == (Budget(10), Budget(2.5), Budget(7, "cap"))
    assert every.caps_on("letters") == (Budget(5, "cap"), Budget(7, "cap"))
    one = suite("budgets = {letters = [10]}\ncaps = {letters = [5, 6]}")
    assert (one.budgets_on("letters"), one.budgets_on("digits")) == ((Budget(10),), ())
    assert [cap.amount for cap in one.caps_on("letters")] == [5, 6]
    assert one.caps_on("digits") == suite("").caps_on("letters") == ()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (("title", "tittle"), "unknown key 'tittle': did you mean title?"),
        (('title = "T"', "title = 3"), "key 'title': 3 is not text"),
        (('["letters", {name = "letters", classes = 26}]', "[]"), "'datasets': give at least one"),
        (('{name = "letters", classes = 26}', "3"), "key 'datasets': 3 is not a name or a table"),
        (('{name = "letters", classes = 26}', '"letters"'), "[1]': letters is listed twice"),
        (('["accuracy"]', "[]"), "key 'metrics': give at least one entry"),
        (('["accuracy"]', "[5]"), "key 'metrics': 5 is not a name"),
        (("[0, 1]", "[0, 1.5]"), "key 'seeds': 1.5 is not a whole number"),
        (("[0, 1]", "[4294967296]"), "key 'seeds': 4294967296 is not a whole number"),
        (('title = "T"', "configs = 1.5"), "key 'configs'|1.5|0 to 1000"),
        (('size = "quick"', "configs = -1"), "key 'profiles.standard.configs'|-1"),
        (('title = "T"', "costs = 7"), "key 'costs': 7 is not text, a list or a table"),
        (('title = "T"', "budgets = []"), "key 'budgets': [] is not a list of costs"),
        (('title = "T"', "budgets = [1, true]"), "key 'budgets': budget 'True' is not a cost"),
        (('title = "T"', "budgets = {leters = [3]}"), "unknown key 'budgets.leters': did you mean"),
        (('title = "T"', "caps = {letters = 3}"), "key 'caps.letters': 3 is not a list of costs"),
        (('title = "T"', "caps = [5, 0]"), "key 'caps': '0' is not a cap: write numbers > 0"),
        (('title = "T"', 'executor = "desk"'), "key 'executor': 'desk' is not local"),
        (('title = "T"', "zebra = [{a = 1}, 3]"), "unknown key 'zebra'"),
        (("[learners.gbrt]\ntrees = [10, 20]", "[learners]"), "key 'learners': give at least one"),
        (
            ("[learners.gbrt]\ntrees = [10, 20]", "[learners]\ngbrt = 3"),
            "'learners.gbrt': 3 is not",
        ),
        (('size = "quick"', 'size = "big"'), "key 'profiles.standard.size': 'big'|quick"),
        (('size = "quick"', 'siz = "quick"'), "unknown key 'profiles.standard.siz'"),
        (("[learners.gbrt]\ntrees = [10, 20]", "learners = 3"), "key 'learners': 3 is not a table"),
        (("[[claims]]", "[claims]"), "key 'claims': expected [[claims]] tables"),
        (('holds = ">= 1"', 'holds = "1"'), "key 'claims': claim one: holds = '1': write a comp"),
        (('dataset = "letters"', 'dataset = "leters(a=1)"'), "claim one: unknown data set of this"),
        (('learners = ["gbrt"]', 'learners = ["gbtr"]'), "unknown learner of this suite"),
        (('published = "1"', ""), "key 'claims': claim one: key 'published' is missing"),
        (("seeds = [0, 1]\n", "seeds = \n"), "not a TOML file"),
        (("on.forest.gbrt", "on.forrest.gbrt"), "unknown key 'on.forrest': did you mean on.forest"),
        (("miser = false", "mser = false"), "unknown key 'on.letters.mser': did you mean on.lett"),
        (("miser = false", "miser = true"), "key 'on.letters.miser': True is not a table or false"),
        (('title = "T"', "stand_ins = 'no'"), "key 'stand_ins': 'no' is not True or False"),
    ],
)
def test_a_fault_in_a_suite_is_one_line_with_file_and_key(tmp_path, change, line):
    text = GOOD if change[0] in GOOD else ON
    assert change[0] in text
    path = written(tmp_path, text.replace(*change, 1))
    assert refused(line, read_suite, path, REGISTRY).startswith(f"{path}: ")


def test_a_file_that_is_no_text_is_one_line(tmp_path):
    path = tmp_path / "x.toml"
    path.write_bytes(b"\xff\xfe")
    refused("x.toml, line 1|UTF-8|'utf-16'", read_suite, path, REGISTRY)


def test_tables_of_a_plugin_that_is_not_installed_are_left_out_and_slips_are_not(tmp_path):
    foreign = GOOD + "[[zebras]]\nstripes = 3\n[[zebras]]\nstripes = 4\n"
    for registry in (Registry(), REGISTRY):
        suite = read_suite(written(tmp_path, foreign), registry)
        assert suite.extra.keys() == registry.suite_keys.keys()
    slip = written(tmp_path, GOOD.replace("[[claims]]", "[[claim]]"))
    refused("unknown key 'claim'|claims", read_suite, slip, REGISTRY)


def test_a_plugin_may_own_a_key_of_suites(tmp_path):
    def check(value, datasets, learners):
        if value != 3:
            raise UsageError("three is wanted")

    registry = Registry(suite_keys={"mine": check})
    text = GOOD.partition("[[claims]]")[0]
    assert read_suite(written(tmp_path, f"mine = 3\n{text}"), registry).extra == {"mine": 3}
    path = written(tmp_path, f"mine = 4\n{text}")
    refused("mine.toml: key 'mine': three is wanted", read_suite, path, registry)


def test_every_shipped_suite_reads_and_names_only_what_is_registered():
    registry = load_registry()
    found = registry.suite_files
    assert {"quickstart", "yahoo", "letters", "forest", "thyroid"} <= found.keys()
    for path in found.values():
        suite = read_suite(path, REGISTRY)
        assert suite.reference in suite.learners
        for entry in suite.datasets:
            registry.dataset(entry.name)
        for metric in suite.metrics:
            parse_metric(metric, registry.metrics)
        for name, table in suite.learners.items():
            assert expand(registry.learner(name), table, registry)
        for profile in suite.profiles.values():
            for name, table in profile.learners.items():
                assert expand(registry.learner(name), table, registry)


def test_every_shipped_suite_shows_what_costs_nothing():
    registry = load_registry()
    for path in registry.suite_files.values():
        for baseline in (baselines := read_suite(path, REGISTRY).baselines):
            assert registry.learner(baseline).role == "baseline"
        assert "constant" in baselines


ON = GOOD.replace(
    "[[claims]]",
    "[on.letters]\nmiser = false\n[on.forest.gbrt]\ntrees = 3\n[learners.miser]\n[[claims]]",
).replace('"letters", {', '"letters", "forest", {')


def test_a_suite_may_say_something_of_a_learner_on_one_data_set(tmp_path):
    suite = read_suite(written(tmp_path, ON), REGISTRY)
    assert suite.on == {"letters": {"miser": False}, "forest": {"gbrt": {"trees": 3}}}
    assert suite.stand_ins
    assert not read_suite(written(tmp_path, "stand_ins = false\n" + GOOD), REGISTRY).stand_ins


def test_a_profile_has_the_suites_number_of_settings_or_its_own(tmp_path):
    text = GOOD.replace('title = "T"', "configs = 5", 1).replace('size = "quick"', "configs = 9", 1)
    suite = read_suite(written(tmp_path, text), REGISTRY)
    assert (suite.profile("quick").configs, suite.profile("standard").configs) == (5, 9)
