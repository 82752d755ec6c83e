"""An invalid plugin is one row of ``bench list plugins`` and changes nothing else."""

import inspect
import re
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from helpers.commands import Ended
from helpers.kit import refused
from helpers.pages import page

from bench_core import UsageError, hookspecs, plugins, protocols
from bench_core.cli.app import plugin_commands
from bench_core.contracts import check_name, learner_of
from bench_core.leaderboard.reports import report_for
from bench_core.metrics import families
from bench_core.plugins import INTERFACE, PluginInfo, Registry, load_registry

HEAD = """
import numpy as np
from bench_core import Examples, MetricValues, Splits, Task, hookimpl
class Learner:
    name, tasks = "theirs", frozenset({Task.BINARY})
    def fit(self, train, valid, prices, context): ...
class Data:
    name, task = "their-data", Task.BINARY
    def prepare(self, source, size, fold, seed): ...
class Metric:
    name, tasks, higher_is_better = "their-metric", frozenset({Task.BINARY}), True
    def values(self, scores, y, queries=None, multiplicity=None): ...
def gives(hook, *values):
    def implementation():
        return values
    implementation.__name__ = hook
    globals()[hook] = hookimpl(implementation)
"""

INVALID = {
    "import": ("import not_there_at_all", "ModuleNotFoundError: No module named 'not_there_at"),
    "syntax": ("def", "SyntaxError"),
    "exit": ("raise SystemExit(3)", "SystemExit: 3"),
    "malformed": ("", "Error"),
    "misspelt": ("gives('bench_learnres')", "unknown hook 'bench_learnres'"),
    "argument": ("@hookimpl\ndef bench_learners(cat): ...", "PluginValidationError"),
    "raises": ("@hookimpl\ndef bench_metrics(): raise KeyError('x')", "KeyError: 'x'"),
    "exits": ("@hookimpl\ndef bench_suites(): raise SystemExit", "SystemExit"),
    "folds": ("Data.folds = '3'; gives('bench_datasets', Data)", "whose folds is '3', not int"),
    "files": ("Data.files = 'a.csv'; gives('bench_datasets', Data)", "whose files is 'a.csv'"),
    "argument-of-data": (
        "Data.__init__ = lambda self, path: None; gives('bench_datasets', Data)",
        "missing a required argument: 'path'",
    ),
    "no-values": ("del Metric.values; gives('bench_metrics', Metric())", "which has no values"),
    "no-prices": ("gives('bench_cost_models', Data)", "which has no evaluation_cost, everything, "),
    "no-write": ("gives('bench_reports', Metric())", "which has no suffixes, write"),
    "suffixes": (
        "Metric.write, Metric.suffixes = print, None; gives('bench_reports', Metric())",
        "whose suffixes is None, not tuple",
    ),
    "no-folder": ("gives('bench_suites', '/not/there')", "/not/there, which is not a folder"),
    "key": (
        "@hookimpl\ndef bench_suite_keys(): return {'x': 3}",
        "key 'x' is 3, which is not callable",
    ),
    "export": (
        "@hookimpl\ndef bench_exports(): return {'x': 3}",
        "export 'x' is 3, which is not callable",
    ),
    "same-export": (
        "@hookimpl\ndef bench_exports(): return {'folder': print}",
        "export 'folder' is registered by two plugins, 'core' and 'zz-theirs'",
    ),
    "same-learner": (
        "Learner.name = 'twice'; gives('bench_learners', Learner, Learner)",
        "learner 'twice' is registered twice by 'zz-theirs': list it once",
    ),
    "colon": (
        "Learner.name = 'a:b'; gives('bench_learners', Learner)",
        "learner 'a:b': a name is a letter or digit (ASCII), then at most 59 of these, '-', '_'",
    ),
    "same-data": (
        "Data.name = 'digits'; gives('bench_learners', Learner); gives('bench_datasets', Data)",
        "data set 'digits' is registered by two plugins, 'bundled' and 'zz-theirs'",
    ),
}
VALUES = {"malformed": "we!rd:::"}  # of entry points that are not the name of their module


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a module and its entry point where an installed distribution's are found."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def write(name, source, group="bench", value=""):
        module = name.replace("-", "_")
        (site / f"{module}.py").write_text(HEAD + source + "\n")
        about = site / f"{module}-1.5.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
        (about / "entry_points.txt").write_text(f"[{group}]\n{name} = {value or module}\n")
        monkeypatch.delitem(sys.modules, module, raising=False)
        plugin_commands.cache_clear()

    return write


@pytest.fixture(autouse=True)
def _commands_as_before():
    yield
    plugin_commands.cache_clear()


@pytest.fixture(scope="module")
def before():
    return load_registry()


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_plugin_is_a_row_and_everything_else_is_as_without_it(name, install, before):
    source, error = INVALID[name]
    install("zz-theirs", source, value=VALUES.get(name, ""))
    after = load_registry()
    (row,) = [p for p in after.plugins if p.name == "zz-theirs"]
    assert error in row.error
    assert "\n" not in row.error
    assert (row.origin, row.version) == ("zz-theirs", "1.5")
    assert after.origin == before.origin
    after.plugins.remove(row)
    assert not after.manager.has_plugin("zz-theirs:zz-theirs")
    for kind in fields(Registry)[:-2]:  # all but the manager and its errors
        assert list(getattr(after, kind.name)) == list(getattr(before, kind.name))


@pytest.mark.parametrize("name", ["import", "exit", "exits", "raises"])
def test_a_module_asked_for_by_p_must_be_valid(name, install):
    source, error = INVALID[name]
    install("asked", source, group="nobody.reads")
    refused(error.replace("zz-theirs", "asked"), load_registry, ["asked"])


def test_an_installed_module_does_not_hide_a_file_of_this_folder(install, tmp_path, monkeypatch):
    install("twice", "gives('bench_learners', Learner)")
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    assert "theirs" in load_registry(["twice"]).learners
    Path("twice.py").write_text("raise RuntimeError")
    refused("twice.py hides twice.py of this folder", load_registry, ["twice"])
    Path("twice.py").write_bytes((tmp_path / "site" / "twice.py").read_bytes())
    assert "theirs" in load_registry(["twice"]).learners


@pytest.mark.parametrize("kind", ["learner", "data set", "metric", "cost model", "report", "suite"])
def test_names_are_plain(kind):
    for name in ("top-k", "A.2_b", "9", "x" * 60):
        check_name(kind, name)
    odd = {"m\u0456ser": r"'m\u0456ser'", "\u200fmiser": r"'\u200fmiser'", "a\x1b[2J": r"\x1b"}
    odd |= dict.fromkeys(("miser ", "a b", "a\n", "=1+1", "-x", ".x", "a/b", "a,b", "x" * 61), "'")
    for name, shown in {**odd, "all": "this name means all of them"}.items():
        line = refused(shown, check_name, kind, name)
        assert line.startswith(kind), line
        assert line.isascii()
        assert line.isprintable()


def test_no_built_in_thing_gives_its_name_to_a_third_party():
    """Of a metric at no cut-off: it would be another one in the plan than where rows are judged."""
    registry, theirs = load_registry(), PluginInfo("theirs", "-p", "", "theirs")
    ours = [key for key, by in registry.origin.items() if by.origin == plugins.OURS]
    assert {kind for kind, _ in ours} >= {"learner", "data set", "metric", "cost model", "report"}
    assert {*families()} - {"total_cost"} <= {
        name.partition("@")[0] for kind, name in ours if kind == "metric"
    }
    for kind, name in [*ours, ("metric", "ndcg@7"), ("metric", "precision"), ("metric", "err@1")]:
        with pytest.raises(
            UsageError, match=r"uninstall or rename one|is built in, at any cut-off: rename it"
        ):
            registry.add(theirs, [(kind, name, None)])


def test_a_warm_up_runs_once_and_only_for_its_learners(install):
    source = (
        "calls = []\nLearner.warm_up = staticmethod(calls.append)\ngives('bench_learners', Learner)"
    )
    install("theirs", source)
    registry = load_registry()
    registry.warm_up(["theirs", "theirs", "l1"], print)
    assert sys.modules["theirs"].calls == [print]
    registry.warm_up(["l1"], print)
    assert sys.modules["theirs"].calls == [print]


def test_learners_of_trees_share_a_warm_up():
    classes = [load_registry().learners[name] for name in ("gbrt", "cstc", "budget-rf", "aaco")]
    assert len({learner.warm_up for learner in classes}) == 1


def test_a_warm_up_that_fails_is_a_line_and_no_error(install):
    source = (
        "def prepare(say): say('compiling'); raise SystemExit('no gpu')\n"
        "Learner.warm_up = staticmethod(prepare)\ngives('bench_learners', Learner)"
    )
    install("theirs", source)
    lines = []
    load_registry().warm_up(["theirs"], lines.append)
    assert lines == ["compiling", "learner theirs: its warm_up fails: SystemExit: no gpu"]


PREPARE = """
class Mine:
    name, task = "mine", Task.BINARY
    def prepare(self, source, size, fold, seed):
        X = np.random.default_rng(seed).normal(size=(90, 2)).astype(np.float32)
        parts = [Examples(X[i::3], (X[i::3, 0] > 0).astype(float)) for i in range(3)]
        prices = bench_core.price_list(np.array([1.0, 2.0]))
        return Splits(*parts, prices=prices, task=Task.BINARY, classes=2)
import bench_core
gives("bench_datasets", Mine)
"""


def test_a_data_set_of_name_task_and_prepare_is_complete(install, bench):
    install("theirs", PREPARE)
    assert re.search(r"^mine +binary +1 +none needed", bench("list", "datasets").out, re.M)
    shown = bench("show", "mine").ok()
    assert "Needs no files" in shown.out
    run = ("run", "--learners", "constant", "--executor", "inline")
    ran = bench(*run, "--data", "mine")
    assert (ran.status, "mine" in ran.out) == (0, True)
    planned = bench("plan", "--suite", "cronus-yahoo", "--learners", "constant")
    assert (planned.status, "yahoo" in planned.out) == (0, True), planned.err


VERB = """
import click
@click.command(short_help="Count the cats.")
@click.argument("cats", type=int)
def command(cats):
    click.echo(f"{cats} cats")
    return 1
"""


def test_a_verb_of_a_plugin_stands_in_the_help_and_runs(install, bench):
    install("cats", VERB, "bench.commands", "cats:command")
    shown = bench("--help").out
    assert re.search(r"^Other plugins:\n +cats +Count the cats\.$", shown, re.M)
    assert bench("cats", "3") == Ended(1, "3 cats\n", "")
    assert "did you mean cats" in bench("cat").err


def test_a_verb_that_does_not_load_or_is_taken_is_a_row(install, bench):
    before = bench("run", "--help").out
    install("cats", "import no_gpu", "bench.commands", "cats:command")
    install("dogs", "command = 3", "bench.commands", "dogs:command")
    install("cows", "raise SystemExit", "bench.commands", "cows:command")
    install("pigs", "", "bench.commands", "pi!gs:")
    install("run", VERB, "bench.commands", "run:command")
    install("claims", VERB, "bench.commands", "claims:command")
    assert bench("run", "--help").out == before
    shown = bench("--help").ok()
    assert "cats  does not load: see 'bench list plugins'" in shown.out
    assert bench("cats").err.startswith("error: verb 'cats' of cats does not load: ModuleNotFound")
    listed = bench("list", "plugins").out
    for name, error in (
        ("cats", "verb 'cats' of cats does not load: ModuleNotFoundError: No module named 'no_gpu"),
        (
            "dogs",
            "verb 'dogs' of dogs does not load: TypeError: dogs:command is not a click command",
        ),
        ("cows", "verb 'cows' of cows does not load: SystemExit"),
        ("pigs", "verb 'pigs' of pigs does not load: "),
        ("run", "verb 'run' belongs to bench itself: uninstall or rename one"),
        ("claims", "verb 'claims' belongs to budget-bench: uninstall or rename one"),
    ):
        assert re.search(rf"^{name} .*failed: {re.escape(error)}", listed, re.M), name


def test_a_verb_that_does_not_load_leaves_completion_whole(install, bench, monkeypatch):
    install("cats", "import no_gpu", "bench.commands", "cats:command")
    about = {"_BENCH_COMPLETE": "zsh_complete", "COMP_WORDS": "bench ", "COMP_CWORD": "1"}
    for name, value in about.items():
        monkeypatch.setenv(name, value)
    ended = bench("")
    assert (ended.status, ended.err) == (0, "")
    assert {"run", "report", "cats"} <= {*ended.out.splitlines()}


def test_a_report_of_a_third_party_does_not_take_the_terminal():
    ours, theirs = (type("R", (), {"suffixes": ("",)})() for _ in range(2))
    assert report_for(Registry(reports={"ours": ours, "theirs": theirs}), None) is ours


def test_no_verb_of_a_plugin_is_loaded_by_another(install, bench):
    install("cats", "raise SystemExit(5)", "bench.commands", "cats:command")
    bench("run", "--help").ok()
    assert "cats" not in sys.modules


@pytest.mark.parametrize("name", ["Dataset", "BudgetedLearner", "Metric", "Report"])
def test_a_contract_may_be_checked_with_isinstance(name, before):
    values = {
        "Dataset": before.datasets["digits"](),
        "BudgetedLearner": before.learners["gbrt"](),
        "Metric": before.metrics["mse"],
        "Report": type("R", (), {"name": "", "suffixes": (), "write": print})(),
    }
    contract = getattr(protocols, name)
    assert isinstance(values[name], contract)
    assert not isinstance(3, contract)


def test_plugins_are_blocked_by_the_manager_that_is_given(install):
    install("zz-theirs", "gives('bench_learners', Learner)")
    manager = plugins.new_manager()
    manager.set_blocked("zz-theirs:zz-theirs")
    blocked = load_registry(manager=manager)
    assert load_registry().learners.keys() - blocked.learners.keys() == {"theirs"}


def test_nothing_is_written_into_the_classes_of_plugins(install):
    install("zz-theirs", "gives('bench_learners', Learner)")
    cls = load_registry().learners["theirs"]
    assert not hasattr(cls, "role")
    assert learner_of(cls).role == ""
    assert learner_of(cls()).needs() == ()
    assert not hasattr(learner_of(cls), "nothing")


LEARNER = """
from dataclasses import dataclass
import numpy as np
from bench_core import Acquired, Bill, Prediction, Task, param, provide_learners

@dataclass(frozen=True)
class Fixed:
    name, tasks = "fixed", frozenset({{Task.BINARY}})
    level: float = param({level}, "the score of every row")

    def fit(self, train, valid, prices, context):
        return Model(self.level, prices.sensors)

class Model:
    def __init__(self, level, sensors):
        self.level, self.sensors = level, sensors
    def predict_path(self, features):
        bill = Bill(Acquired.pack(np.zeros((1, self.sensors), dtype=bool)))
        yield Prediction({{"model": 1}}, np.full(len(features), self.level), {{"path": bill}})
    def state(self):
        return vars(self)
    @classmethod
    def from_state(cls, state):
        return cls(**state)

bench_learners = provide_learners(Fixed)
"""
UP = LEARNER.format(level=1.0)


def state_of(plugin, bench):
    bench("list", "plugins", "-o", "plugins.csv").ok()
    rows = Path("plugins.csv").read_text().splitlines()
    (row,) = [line for line in rows if re.split(r"[ ,]", line)[0] == plugin]
    return row


@pytest.mark.parametrize(
    ("made_for", "remedy"),
    [(INTERFACE - 1, "update theirs"), (INTERFACE + 1, "update budget-bench")],
)
def test_a_plugin_of_another_interface_is_a_row_with_the_remedy(made_for, remedy, install, bench):
    install("theirs", f"{UP}\nbench_interface = {made_for}\n")
    assert "fixed" not in load_registry().learners
    line = f"failed: made for plugin interface {made_for}, this is {INTERFACE}: {remedy}"
    assert line in state_of("theirs", bench)


def test_a_plugin_that_is_slow_to_import_is_named_with_the_seconds(install, bench, monkeypatch):
    monkeypatch.setattr(plugins, "SLOW", 0.2)
    install("theirs", f"import time\ntime.sleep(0.25)\n{UP}")
    assert re.search(r"loaded, but took \d+\.\d s to import: import slow modules inside functions",
                     state_of("theirs", bench))  # fmt: skip
    assert "fixed" in load_registry().learners


@pytest.mark.parametrize("hook", [n for n in vars(hookspecs) if n.startswith("bench_")])
def test_every_hook_has_a_line_of_documentation_and_a_place_in_the_guide(hook):
    doc = inspect.getdoc(getattr(hookspecs, hook))
    assert doc
    assert "\n" not in doc
    assert hook in page("reference/plugins.md")


def test_every_built_in_plugin_loads(before):
    assert [(p.name, p.error) for p in before.plugins if p.error] == []


def test_an_unknown_learner_may_be_in_a_module_of_the_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    registry = Registry()
    assert "MODULE" not in registry.unknown("learner", "cheapest-logit", ["cheapest-first"])
    Path("cheapest_logit.py").touch()
    assert registry.unknown("learner", "cheapest-logit", ["cheapest-first"]) == (
        "unknown learner 'cheapest-logit': did you mean cheapest-first? if cheapest_logit.py "
        "defines it, give plugins=cheapest_logit"
    )
