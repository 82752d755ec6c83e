"""The package of docs/plugins.md, with every kind of plugin, built and installed by pip."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from helpers import guide

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent
PARTS = ("bench_core", "plugins", "reports", "suites", "pyproject.toml", "README.md", "LICENSE")
ISOLATION = ["--no-build-isolation"] if find_spec("hatchling") else []  # without a download

Bench = Callable[..., subprocess.CompletedProcess[str]]


def wheel(source: Path, out: Path) -> Path:
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", *ISOLATION]
    before = set(out.glob("*.whl"))
    subprocess.run([*command, "-w", str(out), str(source)], check=True, capture_output=True)
    (made,) = set(out.glob("*.whl")) - before
    return made


def project(folder: Path) -> Path:
    """A copy of the project, so that nothing is left in the checkout."""
    for part in PARTS:
        here = ROOT / part
        if here.is_dir():
            shutil.copytree(here, folder / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(here, folder / part)
    return folder


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """The command in a fresh environment that has both wheels; libraries are those of the tests."""
    home = tmp_path_factory.mktemp("home")
    theirs, out = tmp_path_factory.mktemp("theirs"), tmp_path_factory.mktemp("wheels")
    guide.write(theirs)
    wheels = [wheel(project(tmp_path_factory.mktemp("ours")), out), wheel(theirs, out)]
    venv.create(home / "env", with_pip=True)
    python = home / "env" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "-q", "--no-deps", *wheels], check=True)
    (site,) = (home / "env" / "lib").glob("python*/site-packages")
    libraries = [path for path in sys.path if Path(path).name == "site-packages"]
    (site / "libraries.pth").write_text("\n".join(libraries))
    (home / "costs.toml").write_text(guide.files()["costs.toml"])

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [home / "env/bin/bench", *words],
            cwd=home,
            env={"PATH": os.environ["PATH"], "HOME": str(home), "COLUMNS": "200"},
            capture_output=True,
            text=True,
        )

    return run


def test_every_plugin_of_the_package_is_loaded_from_it(bench: Bench) -> None:
    rows = [line.split() for line in bench("list", "plugins").stdout.splitlines()[1:]]
    assert [row for row in rows if row[-1] != "loaded"] == []
    names = ["my-costs", "my-data", "my-learner", "my-metric", "my-report", "my-suites"]
    assert sorted(row[0] for row in rows if row[1:3] == ["my-plugins", "1.0"]) == names


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("learners", "closest"),
        ("datasets", "noisy"),
        ("metrics", "hinge"),
        ("suites", "noise"),
    ],
)
def test_what_it_brings_is_listed_and_shown(bench: Bench, kind: str, name: str) -> None:
    listed = bench("list", kind).stdout.splitlines()
    assert name in [line.split()[0] for line in listed]
    assert bench("show", name).returncode == 0


@pytest.mark.parametrize(("kind", "name"), [("costs", "whole-units"), ("reports", "tabs")])
def test_its_cost_model_and_report_are_listed(bench: Bench, kind: str, name: str) -> None:
    assert name in [line.split()[0] for line in bench("list", kind).stdout.splitlines()]


def test_from_its_suite_under_its_costs_to_its_report(bench: Bench) -> None:
    ran = bench("run", "--suite", "noise", "--costs", "costs.toml", "--no-progress")
    assert ran.returncode == 0, ran.stderr
    assert "closest" in ran.stdout
    written = bench("report", "-o", "board.tsv")
    assert written.returncode == 0, written.stderr
    header, *rows = (Path(written.args[0]).parents[2] / "board.tsv").read_text().splitlines()
    model = header.split("\t").index("cost_model")
    assert {row.split("\t")[model] for row in rows} == {"whole-units"}


def test_its_verb_stands_in_the_help_and_runs(bench: Bench) -> None:
    assert "Count the runs of a store." in bench("--help").stdout
    counted = bench("runs")
    assert (counted.returncode, counted.stdout) == (0, "1 runs\n")
