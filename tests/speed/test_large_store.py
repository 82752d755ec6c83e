"""A run of 10000 trials: listed, reported, exported and planned, each in a fresh process.

    pytest -m speed tests/speed/test_large_store.py

Seconds are of the processor, imports included; memory is the most that the process held. Making the
store takes half a minute and 1.2 GB. Never fails on a figure.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import large_store
import pytest
from paired import report, setting, value

pytestmark = [pytest.mark.speed, pytest.mark.benchmark(group="large stores")]

TRIALS = setting("TRIALS", 10_000, least=400)
BENCH = [sys.executable, "-m", "bench_core"]
BOARDS = """
import sys
from bench_core.leaderboard.assembly import boards
from bench_core.results.store import Store
store = Store(sys.argv[1])
assert boards(store.info(), store.frame(compact=True))
"""
PLAN = """
import sys
import bench_core
made = bench_core.plan(data="toy-rank", learners=["gbrt"], plugins="helpers.toys",
                       configs=int(sys.argv[1]) // 10, seeds=range(10), store="none.db")
assert len(made.trials) == int(sys.argv[1]) // 10 * 10
"""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "large.db"
    large_store.write(path, TRIALS)
    return path


def used(command: list[str], folder: Path) -> tuple[float, float]:
    """Processor seconds of a command, and MiB."""
    tests = str(Path(__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": tests, "BENCH_CACHE": str(folder / "cache")}
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


@pytest.mark.parametrize(
    ("what", "command", "seconds"),
    [
        ("listed", [*BENCH, "list", "runs", "--store"], 3),
        ("rows and boards", [sys.executable, "-c", BOARDS], 3),
        ("reported, with intervals", [*BENCH, "report", "--store"], 3),
        ("planned", [sys.executable, "-c", PLAN], 2),
    ],
    ids=["list", "boards", "report", "plan"],
)
def test_ten_thousand_trials(
    what: str,
    command: list[str],
    seconds: float,
    store: Path,
    tmp_path: Path,
    benchmark: Any,
) -> None:
    planned = what == "planned"
    if planned:  # data are prepared once
        used([*command, "20"], tmp_path)
    busy, memory = used([*command, str(TRIALS) if planned else str(store)], tmp_path)
    facts = {"s of processor": busy, "MiB": memory}
    bars = {"processor": value(busy, "s", seconds)}
    if what in ("rows and boards", "reported, with intervals"):
        bars["memory"] = value(memory, "MiB", 300)
    work = f"a run of {TRIALS} trials, {what}"
    report(benchmark, {"ours": [busy]}, work=work, values=bars, facts=facts)
