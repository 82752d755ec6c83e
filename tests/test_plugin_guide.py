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
    "closest,constant": "closest",
    "--data noisy --learners gbrt": "miser",
    "--metric hinge": "hinge",
    "--costs costs.toml": "cheapest-first",
    "board.tsv": "",
    "--suite noise": "How much noise",
    "bench runs": "5 runs",
}

BEGINNING = [  # of the new plugin, and checks: tested by themselves
    line for line in guide.commands() if "top-k" in line or line.startswith("bench check")
]
COMMANDS = [line for line in guide.commands() if line not in BEGINNING]


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
    for line in COMMANDS:
        words = [str(BENCH), *shlex.split(line)[1:]]
        words += ["--executor", "inline"] if words[1] == "run" else []
        done[line] = subprocess.run(
            words, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
        )
    return done


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_of_the_guide_works(
    line: str, ended: dict[str, subprocess.CompletedProcess[str]]
) -> None:
    done = ended[line]
    assert done.returncode == 0, done.stderr
    (shown,) = [text for part, text in SHOWN.items() if part in line]
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


@pytest.mark.slow
def test_a_new_plugin_and_those_of_the_guide_keep_their_promises(folder: Path) -> None:
    modules = ("my_learner", "my_data", "my_metric", "my_costs", "my_report")
    words = [word for module in modules for word in ("-p", module)]
    lines = [*BEGINNING, f"bench check {shlex.join(words)}"]
    assert len(lines) == 5
    for line in lines:
        command = [str(BENCH), *shlex.split(line)[1:]]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
