"""A run of 10000 trials: listed, reported, exported and planned, each in a fresh process.

    pytest -m speed tests/speed/test_large_store.py

Seconds are of the clock, imports included, the less of two runs. Memory is the most that all
processes of the command held together, pages that several share divided among them. Making the
store takes a minute and 1 GB. Never fails on a figure.
"""

import os
import sys
from pathlib import Path

import large_store
import pytest
from paired import report, setting, value
from resident import watched

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
def store(tmp_path_factory):
    path = tmp_path_factory.mktemp("large") / "large.db"
    large_store.write(path, TRIALS)
    return path


def used(command, folder):
    """Seconds of the clock and MiB of a command."""
    tests = str(Path(__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": tests, "BENCH_CACHE": str(folder / "cache")}
    _, peaks = watched(command, env, folder)
    return peaks.seconds, peaks.shared / 2**20


@pytest.mark.parametrize(
    ("what", "command", "bar"),
    [
        ("listed", [*BENCH, "list", "runs", "--store"], 3),
        ("rows and boards", [sys.executable, "-c", BOARDS], 20),
        ("reported, with intervals", [*BENCH, "report", "--store"], 20),
        ("planned", [sys.executable, "-c", PLAN], 2),
    ],
    ids=["list", "boards", "report", "plan"],
)
def test_ten_thousand_trials(what, command, bar, store, tmp_path, benchmark):
    planned = what == "planned"
    if planned:  # data are prepared once
        used([*command, "20"], tmp_path)
    whole = [*command, str(TRIALS) if planned else str(store)]
    seconds, memory = min(used(whole, tmp_path) for _ in range(2))
    bars = {"clock": value(seconds, "s", bar)}
    if what in ("rows and boards", "reported, with intervals"):
        bars["memory"] = value(memory, "MiB", 1024)
    work = f"a run of {TRIALS} trials, {what}"
    report(benchmark, {"ours": [seconds]}, work=work, values=bars, facts={"MiB": memory})
