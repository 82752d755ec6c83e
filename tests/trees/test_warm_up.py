"""Each in a fresh interpreter, since kernels and caches are per process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EVERYTHING = """
import numpy as np
from bench_trees import Penalty, Settings, boost, find_bins, warm_up
from bench_trees import grower
from bench_trees.kernels import compiled, _kernels
warm_up()
grower.WORTH = 0  # so that threads score small leaves
assert compiled()
kernels = _kernels()
missed = {kernel: sum(kernel.stats.cache_misses.values()) for kernel in kernels}
said = []
warm_up(said.append)
assert not said
X = np.random.default_rng(0).normal(size=(600, 3)).astype(np.float32)
codes = find_bins(X).codes(X)
bins = find_bins(X, multiplicity=np.ones(600, int))
y = (X[:, 0] > 0).astype(float)
settings = Settings(trees=3, min_rows=2, l2=1, learning_rate=1)
penalty = Penalty.plain(3, coupled=np.ones(3) / 9, lazy=np.ones(3) / 99)
for loss in ("squared", "logistic", "softmax", "lambdarank"):
    for copies in (None, np.full(600, 2)):
        for threads in (1, 2):
            boost(codes, bins, y, loss=loss, settings=settings, penalty=penalty, threads=threads,
                  multiplicity=copies, queries=np.array([0, 200, 600]))
stored = bins.state()
for array in stored.values():
    array.flags.writeable = False
boost(codes, type(bins).from_state(stored), y, settings=settings)
trained = [kernel for kernel in kernels if kernel.signatures]
assert len(trained) >= 8
for kernel in trained:
    assert len(kernel.signatures) == 1, kernel.py_func
    assert sum(kernel.stats.cache_misses.values()) == missed[kernel], kernel.py_func
"""


def run(code: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_importing_the_package_loads_neither_numba_nor_numpy() -> None:
    code = "import sys, bench_trees; print(sorted({'numba', 'numpy'} & set(sys.modules)))"
    assert run(code).strip() == "[]"


def test_listing_what_there_is_loads_no_compiler() -> None:
    code = (
        "import sys\nfrom bench_core.cli import main\n"
        "for kind in ('learners', 'datasets', 'suites', 'metrics', 'plugins'):\n"
        "    try:\n        main(['list', kind])\n    except SystemExit:\n        pass\n"
        "print('LOADED', sorted({'numba', 'llvmlite'} & set(sys.modules)))"
    )
    assert run(code).endswith("LOADED []\n")


def test_kernels_are_compiled_for_one_signature_whatever_the_mode() -> None:
    run(EVERYTHING)


@pytest.mark.slow
def test_warm_up_announces_the_first_compilation_only(tmp_path: Path) -> None:
    code = "from bench_trees import warm_up; warm_up()"
    first = run(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert "compiling kernels" in first
    assert first.count("\n") == 1
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)) == ""
