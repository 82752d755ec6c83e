"""Data of HEPMASS's shape in little memory: prepare, fit, predict, score and audit by one command.

    pytest -m speed tests/speed/test_large_data.py -s     3.5, 1.4 and 5.6 million rows of 28
    pytest -m slow tests/speed/test_large_data.py -s      a tenth of them

The rows are generated (``hepmass_like``), written to the prepared-data cache and read as memory
maps. What all processes hold together must fit, without pages of files, which the system takes back
where memory is short (``resident``).
A tenth tells less than the whole: paths of its size stay in memory. About 14 GB of disk in TMPDIR
are used and given back. Memory is held to the limit, nothing fails on a time.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hepmass_like import ROWS
from paired import report, value
from resident import watched

from bench_core.results.store import Store

GIB = 1 << 30
LEARNERS = ("gbrt", "miser")
SETTINGS = ("gbrt.trees=100", "miser.trees=100", "miser.tradeoff=0.01")
FREE = {"quick": 2 * GIB, "paper": 16 * GIB}

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="memory is read from Linux's /proc"
)


HOLDS = "b = bytearray(b'x') * (300 << 20); import time; time.sleep(1)"


@pytest.mark.slow
def test_memory_of_what_a_command_starts_is_seen(tmp_path):
    starts = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {HOLDS!r}])"
    _, peaks = watched([sys.executable, "-c", starts], os.environ, tmp_path)
    assert 300 << 20 < peaks.private < 400 << 20


@pytest.fixture
def home():
    """A folder that is gone afterwards: pytest's own would be kept for some runs."""
    with tempfile.TemporaryDirectory(prefix="large-data-") as folder:
        yield Path(folder)


def benched(home, size, limit):
    """The rows that a run exports, and its peaks."""
    if shutil.disk_usage(home).free < FREE[size]:
        pytest.skip(f"{home} has less than {FREE[size] / GIB:.0f} GiB of free disk")
    (home / "spilled").mkdir()
    env = os.environ | {
        "PYTHONPATH": str(Path(__file__).parent),
        "BENCH_CACHE": str(home / "cache"),
        "TMPDIR": str(home / "spilled"),
    }
    command = [sys.executable, "-m", "bench_core", "run", "-p", "hepmass_like"]
    command += ["--data", "hepmass-like", "--profile", size, "--learners", ",".join(LEARNERS)]
    command += [part for setting in SETTINGS for part in ("--set", setting)]
    command += ["--memory", f"{limit / GIB:g}GiB", "--workers", "1", "--threads", "2"]
    _, peaks = watched([*command, "--store", "own.db", "--no-progress"], env, home)
    return Store(home / "own.db").frame("last"), peaks


@pytest.mark.benchmark(group="large data")
@pytest.mark.parametrize(
    ("size", "limit"),
    [
        pytest.param("quick", 2 * GIB, id="quick", marks=pytest.mark.slow),
        pytest.param("paper", 8 * GIB, id="paper", marks=pytest.mark.speed),
    ],
)
def test_large_data_is_learnt_and_judged_in_limited_memory(size, limit, home, benchmark):
    frame, peaks = benched(home, size, limit)
    held = ("private", "mapped", "resident")
    learners = frame.drop_duplicates("learner").set_index("learner")
    report(
        benchmark,
        {"ours": [peaks.seconds]},
        work=f"a run of {' + '.join(map(str, ROWS[size]))} rows of 28",
        facts={f"GiB, {name}": getattr(peaks, name) / GIB for name in held},
        values={"memory": value(peaks.private / GIB, "GiB", limit / GIB)},
        scale=ROWS[size][0] / ROWS["paper"][0],
        learners=learners[["fit_seconds", "predict_seconds", "peak_rss_mb"]].to_dict("index"),
    )
    assert set(frame["learner"]) == set(LEARNERS)
    assert set(frame["status"]) == {"ok"}
    assert set(frame["audit"]) == {"sampled"}
    assert frame.groupby("learner")["accuracy"].max().min() > 0.7
    assert peaks.private < limit
