"""The package of docs/plugins.md, built and installed by pip; the policy of docs/examples."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers.fresh_environment import Environment, project, wheel
from helpers.pages import files, page, write

from bench_core.results.store import Store

pytestmark = pytest.mark.slow

Bench = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def bench(tmp_path_factory):
    """The command in a fresh environment that has both wheels."""
    home = tmp_path_factory.mktemp("home")
    theirs, out = tmp_path_factory.mktemp("theirs"), tmp_path_factory.mktemp("wheels")
    guide = page("plugins.md")
    write(guide, theirs)
    wheels = [wheel(project(tmp_path_factory.mktemp("ours")), out), wheel(theirs, out)]
    (home / "costs.toml").write_text(files(guide)["costs.toml"])
    return Environment.made(home, *wheels).bench


def test_every_plugin_of_the_package_is_loaded_from_it(bench):
    rows = [line.split() for line in bench("list", "plugins").stdout.splitlines()[1:]]
    assert [row for row in rows if row[-1] != "loaded"] == []
    names = ["costs", "data", "learner", "metric", "policy", "report", "sql", "suites"]
    assert sorted(row[0] for row in rows if row[1:3] == ["my-plugins", "1.0"]) == [
        f"my-{name}" for name in names
    ]


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("learners", "closest"),
        ("learners", "asking"),
        ("datasets", "noisy"),
        ("metrics", "hinge"),
        ("suites", "noise"),
    ],
)
def test_what_it_brings_is_listed_and_shown(bench, kind, name):
    listed = bench("list", kind).stdout.splitlines()
    assert name in [line.split()[0] for line in listed]
    assert bench("show", name).returncode == 0


@pytest.mark.parametrize(("kind", "name"), [("costs", "parallel"), ("reports", "tabs")])
def test_its_cost_model_and_report_are_listed(bench, kind, name):
    assert name in [line.split()[0] for line in bench("list", kind).stdout.splitlines()]


def test_from_its_suite_under_its_costs_to_its_report(bench):
    ran = bench("run", "--suite", "noise", "--costs", "costs.toml", "--no-progress")
    assert ran.returncode == 0, ran.stderr
    assert "closest" in ran.stdout
    written = bench("report", "-o", "board.tsv")
    assert written.returncode == 0, written.stderr
    header, *rows = (Path(written.args[0]).parents[2] / "board.tsv").read_text().splitlines()
    model = header.split("\t").index("cost_model")
    assert {row.split("\t")[model] for row in rows} == {"parallel"}


def test_its_verb_stands_in_the_help_and_runs(bench):
    assert "Count the runs of a store." in bench("--help").stdout
    counted = bench("runs")
    assert (counted.returncode, counted.stdout) == (0, "1 runs\n")


def test_a_policy_is_few_lines_beside_its_networks(root):
    text = (root / "docs" / "examples" / "torch_policy.py").read_text(encoding="utf-8")
    (policy,) = re.findall(r"^class Policy:\n(?:(?: .*)?\n)*", text, re.M)
    lines = len([line for line in policy.splitlines() if line.strip()])
    assert lines <= 25
    guide = (root / "docs" / "plugins.md").read_text(encoding="utf-8")
    assert f"it takes {lines} lines" in guide


def test_the_policy_is_sound_and_learns(bench, root, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.syspath_prepend(str(root / "docs" / "examples"))
    sys.modules.pop("torch_policy", None)
    checked = bench("check", "-p", "torch_policy", "--set", "torch-policy.steps=30")
    assert checked.status == 0, checked.out
    run = ("run", "--data", "breast-cancer", "--executor", "inline", "--no-progress", "-p")
    ended = bench(*run, "torch_policy", "--learners", "torch-policy,constant", "--audit", "full")
    assert ended.status == 0, ended.err
    frame = Store("results/bench.db").frame("last")
    best = frame[frame["split"] == "test"].groupby("learner")["accuracy"].max()
    assert best["torch-policy"] > best["constant"] + 0.2
