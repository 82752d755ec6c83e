"""Plugins that age: of another interface, slow to import, of one name with others."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.cli_fixtures import bench, elsewhere  # noqa: F401 - fixtures
from helpers.commands import Run

from bench_core import plugins
from bench_core.errors import UsageError
from bench_core.plugins import INTERFACE, load_registry

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
UP, DOWN = LEARNER.format(level=1.0), LEARNER.format(level=-1.0)

Install = Callable[[str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a module and its entry point where an installed distribution's are found."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def write(package: str, source: str) -> None:
        module = package.replace("-", "_")
        (site / f"{module}.py").write_text(source)
        about = site / f"{module}-1.5.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.5\n")
        (about / "entry_points.txt").write_text(f"[bench]\n{package} = {module}\n")
        monkeypatch.delitem(sys.modules, module, raising=False)

    return write


def state_of(plugin: str, bench: Run) -> str:  # noqa: F811
    listed = bench("list", "plugins", "-o", "plugins.csv")
    assert listed.status == 0, listed.err
    rows = Path("plugins.csv").read_text().splitlines()
    (row,) = [line for line in rows if re.split(r"[ ,]", line)[0] == plugin]
    return row


@pytest.mark.parametrize(
    ("made_for", "remedy"),
    [(INTERFACE - 1, "update theirs"), (INTERFACE + 1, "update budget-bench")],
)
def test_a_plugin_of_another_interface_is_a_row_with_the_remedy(
    made_for: int,
    remedy: str,
    install: Install,
    bench: Run,  # noqa: F811
) -> None:
    install("theirs", f"{UP}\nbench_interface = {made_for}\n")
    assert "fixed" not in load_registry().learners
    line = f"failed: made for plugin interface {made_for}, this is {INTERFACE}: {remedy}"
    assert line in state_of("theirs", bench)


def test_a_plugin_of_this_interface_is_loaded(install: Install) -> None:
    install("theirs", f"{UP}\nbench_interface = {INTERFACE}\n")
    assert "fixed" in load_registry().learners


def test_a_plugin_that_is_slow_to_import_is_named_with_the_seconds(
    install: Install,
    bench: Run,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plugins, "SLOW", 0.2)
    install("theirs", f"import time\ntime.sleep(0.25)\n{UP}")
    assert re.search(r"loaded, but took \d+\.\d s to import: import what is heavy inside functions",
                     state_of("theirs", bench))  # fmt: skip
    assert "fixed" in load_registry().learners


def test_learners_of_one_name_from_two_packages_are_told_apart(
    install: Install,
    bench: Run,  # noqa: F811
) -> None:
    install("lows", DOWN)
    install("ups", UP)
    for _ in range(2):  # the classes go by their new names since the first time
        registry = load_registry()
        assert {"lows:fixed", "ups:fixed"} <= {*registry.learners}
        assert registry.learner("ups:fixed").name == "ups:fixed"
    with pytest.raises(UsageError, match="several packages: write lows:fixed or ups:fixed"):
        registry.learner("fixed")
    assert "but learner 'fixed' is of ups too: write lows:fixed" in state_of("lows", bench)
    assert "but learner 'fixed' is of lows too: write ups:fixed" in state_of("ups", bench)

    run = ("run", "--data", "breast-cancer", "--executor", "inline", "--no-progress")
    refused = bench(*run, "--learners", "fixed")
    assert refused.status == 2
    assert "write lows:fixed or ups:fixed" in refused.err
    both = bench(*run, "--learners", "lows:fixed,ups:fixed", "--set", "ups:fixed.level=2")
    assert both.status == 0, both.err
    table = bench("export").out
    assert {"lows:fixed", "ups:fixed"} <= set(re.split(r"[,\n]", table))
    for name in ("lows:fixed", "ups:fixed"):
        assert bench("show", name).status == 0
    assert bench("check", "ups:fixed", "-q").status == 0
    assert "write lows:fixed or ups:fixed" in bench("check", "fixed").err
    assert "write lows:fixed or ups:fixed" in bench("show", "fixed").err

    suite = Path("both.toml")
    head = 'metrics = ["auc"]\ndatasets = ["breast-cancer"]\nreference = "lows:fixed"\n'
    head = f'title = "Both"\n{head}'
    suite.write_text(head + '[learners."lows:fixed"]\n[learners."ups:fixed"]\n')
    ended = bench("plan", "--suite", "both.toml")
    assert ended.status == 0, ended.err
    suite.write_text(head + "[learners.fixed]\n")
    ended = bench("plan", "--suite", "both.toml")
    assert "both.toml: learner 'fixed' is in several packages" in ended.err


def test_a_name_of_this_benchmark_stays_what_it_is(
    install: Install,
    bench: Run,  # noqa: F811
) -> None:
    ours = load_registry().learners["constant"]
    install("ups", UP.replace('"fixed"', '"constant"'))
    registry = load_registry()
    assert registry.learner("constant") is ours
    assert registry.learner("budget-bench:constant") is ours
    assert registry.learner("ups:constant") is not ours
    assert "but learner 'constant' is of this benchmark: write ups:constant" in (
        state_of("ups", bench)
    )


def test_a_package_may_be_named_where_it_need_not(install: Install, bench: Run) -> None:  # noqa: F811
    install("ups", UP)
    plan = ("plan", "--data", "breast-cancer", "-v")
    ended = bench(*plan, "--learners", "ups:fixed", "--reference", "budget-bench:constant")
    assert ended.status == 0, ended.err
    assert "  fixed  " in ended.out
    assert "ups:fixed" not in ended.out  # there is no other
