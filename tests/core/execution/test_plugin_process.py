"""Under ``--isolate`` a plan is the same, and the command imports no learner of others for it."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from importlib.metadata import EntryPoint
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.toys import Prefix, Stacked

import bench_core
from bench_core import plugins
from bench_core._io import plugin_folders
from bench_core.cli import options
from bench_core.errors import UsageError
from bench_core.execution import plugin_process
from bench_core.execution.described import described_learner, given_of
from bench_core.execution.isolation import Isolation, check_possible
from bench_core.execution.trial import find_metric
from bench_core.planning.facts import Facts
from bench_core.planning.request import RunRequest
from bench_core.planning.resolve_learners import Wanted
from bench_core.plugins import about, installed, load_registry, of_module

MINE = """from dataclasses import dataclass
from typing import ClassVar
from helpers.toys import Prefix
import bench_core
from bench_core import param

@dataclass(frozen=True)
class Confined(Prefix):
    name: ClassVar[str] = "confined"
    numerics: ClassVar[tuple[str, ...]] = ("numpy",)
    trees: tuple[int, ...] = param((3, 4), "a list", least=1)
    def stamp(self):
        return "stamped"
    def __post_init__(self):
        if self.tradeoff == 7:
            raise ValueError("tradeoff cannot be 7")

@bench_core.hookimpl
def bench_learners():
    return [Confined]
"""


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    try:
        check_possible()
    except UsageError as error:
        pytest.skip(str(error))
    home = tmp_path_factory.mktemp("confined")
    (home / "confined_mine.py").write_text(MINE)
    (home / "confined_broken.py").write_text("import not_there_at_all")
    (home / "json.py").write_text("raise ImportError('a file of the current folder')")
    (home / "confined_slow.py").write_text("import time; time.sleep(60)")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.syspath_prepend(home)
        patch.setenv("BENCH_CACHE", str(home / "cache"))
        yield home


def plan(isolate: bool, *settings: str, plugins: Any = ("helpers.toys", "confined_mine")) -> Any:
    return bench_core.plan(
        data="toy-binary",
        plugins=plugins,
        learners=["confined", "toy-stacked", "gbrt"],
        settings=["gbrt.trees=2", *settings],
        isolate=isolate,
    )


def test_a_plan_is_the_same_and_imports_no_learner_of_others() -> None:
    settings = "confined.trees=[[1], [2]]", "toy-stacked.base=confined"
    confined = plan(True, *settings)
    assert "confined_mine" not in sys.modules
    open_ = plan(False, *settings)
    assert "confined_mine" in sys.modules
    assert (confined.fits, confined.trials) == (open_.fits, open_.trials)
    assert (confined.datasets, confined.modules) == (open_.datasets, open_.modules)
    assert {fit.learner_name for fit in confined.fits} == {"confined", "toy-stacked", "gbrt"}


@pytest.mark.parametrize(
    ("settings", "plugins", "line"),
    [
        (["confined.tradeoff=7"], ("helpers.toys", "confined_mine"), "tradeoff cannot be 7"),
        (["confined.tres=7"], ("helpers.toys", "confined_mine"), "unknown parameter 'tres'"),
        ([], ("confined_broken",), "cannot import it .*not_there_at_all"),
        ([], ("confined_slow",), "plugin confined_slow took longer than 0.5 s"),
    ],
)
def test_what_is_wrong_is_one_line(
    settings: Any, plugins: Any, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "confined_slow" in plugins:
        monkeypatch.setattr(plugin_process, "ANSWER_SECONDS", 0.5)
    with pytest.raises(UsageError, match=line):
        plan(True, *settings, plugins=plugins)


def test_a_judge_imports_the_plugins_of_its_metrics_alone(home: Path) -> None:
    metric = (
        "class Their:\n    name, higher_is_better, tasks = 'their', True, frozenset({'binary'})"
    )
    values = "    def values(self, *given): ...\n\n@bench_core.hookimpl"
    gives = "def bench_metrics():\n    return [Their()]"
    text = "\n".join(["import bench_core", metric, values, gives])
    (home / "confined_metric.py").write_text(text)
    plugins = ("confined_broken", "confined_metric")
    assert find_metric("their", plugins, ("confined_metric",)).name == "their"
    with pytest.raises(UsageError, match="cannot import it"):
        find_metric("their", plugins, plugins)


def test_a_plugin_with_a_name_of_others_is_refused_whole() -> None:
    registry, plugin = load_registry(), of_module("confined_mine")
    given = [("learner", "fine", "m:C"), ("metric", "mine", ""), ("cost model", "sensor", "")]
    processes = plugin_process.PluginProcesses([], [], (), 0)
    processes._processes[plugin] = SimpleNamespace(given=lambda: given, chosen=None)  # type: ignore[assignment]
    with pytest.raises(UsageError, match="cost model 'sensor' is registered by another plugin too"):
        processes.register(plugin, registry)
    assert "fine" not in registry.learners
    assert registry.waiting == {}


def test_the_report_of_an_isolated_run_imports_no_plugin_of_others() -> None:
    assert "gbrt" in options.registry_for_report(["confined_broken"], True).learners
    with pytest.raises(UsageError, match="cannot import it"):
        options.registry_for_report(["confined_broken"], False)


@pytest.mark.parametrize("isolate", [True, False])
def test_no_file_of_the_folder_hides_an_installed_module(
    isolate: bool, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place != str(home)])
    monkeypatch.setattr(plugin_folders, "_apart", {})
    options.find_plugins_here(["confined_mine", "json"], isolate)
    line = "-p json: an installed module has that name, so ./json.py is not taken\n"
    assert capsys.readouterr().err == line
    assert (sys.path[-1] == str(home)) != isolate
    assert sys.path.count(str(home)) == (not isolate)


@pytest.mark.parametrize("name", ["accuracy", "ndcg@5"])
def test_no_plugin_takes_the_name_of_a_built_in_metric(name: str) -> None:
    """It would be imported in the command where a run names that metric."""
    processes, plugin = plugin_process.PluginProcesses([], [], (), 0), of_module("confined_mine")
    given = [("metric", name, "")]
    processes._processes[plugin] = SimpleNamespace(given=lambda: given, chosen=None)  # type: ignore[assignment]
    with pytest.raises(UsageError, match=f"metric '{name}': .* is built in; rename it"):
        processes.register(plugin, load_registry())


def test_a_plugin_is_not_imported_for_what_has_the_name_of_another_thing() -> None:
    registry = load_registry()
    registry.waiting["data set", "clicks"] = registry.waiting["data set", "more"] = lambda: 1 / 0
    registry.origin["data set", "clicks"] = of_module("datasets.toml")
    registry.ask("data set", "clicks")
    with pytest.raises(ZeroDivisionError):
        registry.ask("data set", "more")


def test_metadata_make_no_module_ours() -> None:
    ours = next(p for p in installed() if p.module == "bench_methods.gbrt")
    forged = EntryPoint("evil", "evil:plugin", "bench")
    vars(forged).update(dist=ours.dist)
    assert about(ours).origin == plugins.OURS
    assert about(forged).origin != plugins.OURS


def test_a_description_takes_memory_and_time_within_limits(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "confined_large.py").write_text("large = bytearray(1 << 31)")
    with pytest.raises(UsageError, match=r"cannot import it .*MemoryError"):
        bench_core.plan(data="toy-binary", plugins="confined_large", isolate=True, memory=1 << 30)
    monkeypatch.setattr(plugin_process, "ANSWER_SECONDS", 0.2)
    deaf = subprocess.Popen(["sleep", "60"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process = object.__new__(plugin_process.PluginProcess)
    process.plugin, process._process = of_module("deaf"), deaf
    with pytest.raises(UsageError, match="plugin deaf ended its process"):
        process._receive({"long": "x" * (1 << 20)})
    process.close()


def test_files_of_the_users_data_sets_are_hidden_wherever_they_lie(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "rows.csv").write_text("a,y\n1,0\n")
    table = '[clicks]\nfile = "../rows.csv"\ntask = "binary"\n'
    (tmp_path / "data" / "datasets.toml").write_text(table)
    request = RunRequest(data_dir=str(tmp_path / "data"), store=str(tmp_path / "x.db"))
    assert str(tmp_path / "rows.csv") in Isolation.of_request(request).hidden


def test_no_sibling_passes_for_the_learner_of_another_plugin() -> None:
    told = answer()
    processes = plugin_process.PluginProcesses([], [], (), 0)
    processes.registry = load_registry(["helpers.toys"])
    processes.refuse_doubles(described_learner(WANTED, told, "x"), of_module("evil"))
    at("facts", 0, "inner", "base", "encoded", "class")(told, "helpers.toys:Other")
    at(*FIELDS, "base", "class")(told, "helpers.toys:Other")
    found = described_learner(WANTED, told, "x")
    with pytest.raises(UsageError, match="says that toy-prefix is helpers"):
        processes.refuse_doubles(found, of_module("evil"))
    processes.refuse_doubles(found, of_module("helpers.toys"))


WANTED = Wanted("toy-stacked", {}, (), 0, "", True)


def answer() -> Any:
    facts = asdict(Facts.of(Stacked(base=Prefix(0.5))))
    return json.loads(json.dumps({"role": "", "varied": [""], "ends": {}, "facts": [facts]}))


def at(*path: Any) -> Callable[[Any, Any], None]:
    def put(into: Any, value: Any) -> None:
        for step in path[:-1]:
            into = into[step]
        into[path[-1]] = value

    return put


OURS = "bench_methods.gbrt:GBRT"
FIELDS = ("facts", 0, "encoded", "fields")


def test_what_decides_about_a_trial_is_worked_out_here() -> None:
    """Not what a process says of origin, digest and parameters."""
    true = Facts.of(Stacked(base=Prefix(0.5)))
    told = answer()
    at("facts", 0, "package")(told, "")
    at("facts", 0, "code")(told, "0" * 32)
    at("facts", 0, "inner", "base", "code")(told, "0" * 32)
    (facts,) = described_learner(WANTED, told, "x").instances
    assert facts == true
    assert (facts.origin, facts.params) == (
        "helpers",
        {"base": true.inner["base"].params | {"learner": "toy-prefix"}, "shrink": 0.5},
    )


@pytest.mark.parametrize(
    ("put", "value"),
    [
        (at("facts"), []),
        (at("facts", 0, "name"), "gbrt"),
        (at("facts", 0, "tasks"), ["guessing"]),
        (at("facts", 0, "stamp"), "two\nlines"),
        (at("facts", 0, "stamp"), "x" * 3000),
        (at("facts", 0, "modules"), ["no_such_module"]),
        (at("facts", 0, "encoded", "class"), "bench_core.plugins:Callable"),
        (at("facts", 0, "encoded", "class"), "bench_core.plugins:Path"),
        (at("facts", 0, "encoded", "class"), "bench_core.plugins:Registry"),
        (at("facts", 0, "encoded", "class"), OURS),
        (at("facts", 0, "encoded", "class"), ":Stacked"),
        (at("facts", 0, "encoded", "class"), ".toys:Stacked"),
        (at("facts", 0, "inner"), {}),  # its class would come from nowhere
        (at(*FIELDS, "shrink"), {"class": "helpers.toys:Prefix", "fields": {}}),
        (at(*FIELDS, "base", "class"), ["helpers.toys:Prefix"]),
        (at("varied"), ["", ""]),
        (at("varied"), ["\x1b[2J"]),
        (at("ends"), {"shrink": ["low", None]}),
        (at("role"), None),
    ],
)
def test_what_no_description_can_be_is_refused(put: Any, value: Any) -> None:
    told = copy.deepcopy(answer())
    assert described_learner(WANTED, told, "x").name == "toy-stacked"
    put(told, value)
    with pytest.raises(UsageError):
        described_learner(WANTED, told, "x")


@pytest.mark.parametrize("given", [None, [["learner", "x"]], [["verdict", "x", ""]], [[1, 2, 3]]])
def test_what_a_plugin_cannot_bring_is_refused(given: Any) -> None:
    with pytest.raises(UsageError, match="what cannot be"):
        given_of(given)
