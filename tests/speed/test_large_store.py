"""A run of 10000 trials: listed, reported, exported and planned, each in a fresh process.

    pytest -m speed tests/speed/test_large_store.py

Seconds are of the clock, imports included, the less of two runs; those of the processor stand
beside them. Memory is the most that all processes of the command held together, looked at every 20
ms, pages that several share divided among them. Making the
store takes a minute and 1 GB. Never fails on a figure.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import large_store
import psutil
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


def held(process: int) -> float:
    """MiB of a process and all that it started."""
    total = 0
    for one in (
        process,
        *(child.pid for child in psutil.Process(process).children(recursive=True)),
    ):
        with suppress(OSError):  # it has ended
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
            total += sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total / 1024


def used(command: list[str], folder: Path, *, look: bool = False) -> tuple[float, float, float]:
    """Seconds of the clock and of the processor of a command, and MiB if one is to ``look``, which
    takes time."""
    tests = str(Path(__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": tests, "BENCH_CACHE": str(folder / "cache")}
    start, most = time.monotonic(), 0.0
    process = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.DEVNULL)
    ended, status, usage = os.wait4(process.pid, os.WNOHANG if look else 0)
    while not ended:
        most = max(most, held(process.pid))
        time.sleep(0.02)
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return time.monotonic() - start, usage.ru_utime + usage.ru_stime, most


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
def test_ten_thousand_trials(
    what: str,
    command: list[str],
    bar: float,
    store: Path,
    tmp_path: Path,
    benchmark: Any,
) -> None:
    planned = what == "planned"
    if planned:  # data are prepared once
        used([*command, "20"], tmp_path)
    whole = [*command, str(TRIALS) if planned else str(store)]
    seconds, busy, _ = min(used(whole, tmp_path) for _ in range(2))
    memory = used(whole, tmp_path, look=True)[2]
    facts = {"s of the clock": seconds, "s of processor": busy, "MiB": memory}
    bars = {"clock": value(seconds, "s", bar)}
    if what in ("rows and boards", "reported, with intervals"):
        bars["memory"] = value(memory, "MiB", 1024)
    work = f"a run of {TRIALS} trials, {what}"
    report(benchmark, {"ours": [seconds]}, work=work, values=bars, facts=facts)
