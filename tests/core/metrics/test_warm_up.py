from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CODE = """
from bench_core.metrics import parse_metric
from bench_core.metrics.evaluation import warm_up
warm_up([parse_metric("mrr"), parse_metric("accuracy")], print)
"""

WORK = """
import numpy as np
from bench_core import Acquired, Queries
from bench_core.costs.meter import Meter
from bench_core.metrics import Labels, evaluate, parse_metric
bought = Acquired.pack(np.eye(90, dtype=bool))
for price in (np.arange(90.0), np.arange(90) / 7):
    Meter(price, np.ones(90)).cost(bought)
labels = Labels(np.arange(90.0) % 2, Queries.from_sizes(np.array([50, 40])))
evaluate([parse_metric("mrr")], np.arange(90.0) % 5, labels)
"""


def said(cache: Path, code: str = CODE) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=300
    ).stdout


def test_the_first_compilation_of_ranking_metrics_is_announced_and_the_second_is_not_there(
    tmp_path: Path,
) -> None:
    assert said(tmp_path) == "compiling the ranking metrics, once per machine, a few seconds\n"
    assert said(tmp_path) == ""
    compiled = sorted(tmp_path.rglob("*"))
    said(tmp_path, WORK)
    assert sorted(tmp_path.rglob("*")) == compiled
