"""Every file and command of docs/plugins.md works as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import guide

BENCH = Path(sys.executable).with_name("bench")
SHOWN = {  # what each command must show, beside ending well
    "bench new": "wrote top_k.py",
    "-p top_k": "",
    "-p my_estimator": "40 of 40 checks hold",
    "closest,constant": "closest",
    "--data noisy --learners gbrt": "miser",
    "--metric hinge": "hinge",
    "--costs costs.toml": "cheapest-first",
    "board.tsv": "",
    "--suite noise": "How much noise",
    "bench runs": "6 runs",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("guide")
    guide.write(made)
    guide.install_verbs(made)
    return made


@pytest.fixture(scope="module")
def ended(folder: Path) -> dict[str, subprocess.CompletedProcess[str]]:
    """Every command of the guide, in order."""
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    home = {"PYTHONPATH": path, "BENCH_CACHE": str(folder / "cache"), "COLUMNS": "200"}
    environment = {k: v for k, v in os.environ.items() if k != "BENCH_STORE"} | home
    done = {}
    for line in guide.commands():
        words = [str(BENCH), *shlex.split(line)[1:]]
        words += ["--executor", "inline"] if words[1] == "run" else []
        done[line] = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
        )
    return done


@pytest.mark.parametrize("line", guide.commands())
def test_a_command_of_the_guide_works(
    line: str, ended: dict[str, subprocess.CompletedProcess[str]]
) -> None:
    done = ended[line]
    assert done.returncode == 0, done.stderr
    shown = next(text for part, text in SHOWN.items() if part in line)
    assert shown in done.stdout


def test_the_reports_file_has_a_row_for_each_point(
    folder: Path, ended: dict[str, subprocess.CompletedProcess[str]]
) -> None:
    header, *rows = (folder / "board.tsv").read_text().splitlines()
    assert {"learner", "split", "feature_cost"} <= set(header.split("\t"))
    assert len(rows) > 2


def test_bills_of_the_guides_cost_model_are_whole_units(
    folder: Path, ended: dict[str, subprocess.CompletedProcess[str]]
) -> None:
    rows = [line.split("\t") for line in (folder / "board.tsv").read_text().splitlines()]
    at = rows[0].index("feature_cost")
    costs = {float(row[at]) for row in rows[1:]}
    assert len(costs) > 3
    assert all(cost == int(cost) for cost in costs)


def test_no_example_is_longer_than_fifteen_lines() -> None:
    texts = {name: text for name, text in guide.files().items() if name.endswith(".py")}
    lines = {name: len(re.findall(r"^.*\S", text, re.M)) for name, text in texts.items()}
    assert {name: n for name, n in lines.items() if n > 15} == {}


def test_plugins_of_the_guide_keep_their_promises(folder: Path) -> None:
    modules = ("my_learner", "my_data", "my_metric", "my_costs", "my_report")
    words = [word for module in modules for word in ("-p", module)]
    done = subprocess.run([str(BENCH), "check", *words], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
