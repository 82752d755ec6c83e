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


def said(cache: Path) -> str:
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", CODE]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True, timeout=300
    ).stdout


def test_the_first_compilation_of_ranking_metrics_is_announced_and_the_second_is_not_there(
    tmp_path: Path,
) -> None:
    assert said(tmp_path) == "compiling the ranking metrics, once per machine, a few seconds\n"
    assert said(tmp_path) == ""


def test_metrics_without_kernels_compile_nothing() -> None:
    from bench_core.metrics import parse_metric
    from bench_core.metrics.evaluation import warm_up

    lines: list[str] = []
    warm_up([parse_metric("accuracy")], lines.append)
    assert lines == []
