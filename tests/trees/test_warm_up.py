"""Compilation, in fresh interpreters, since kernels and caches are per process; worker threads."""

import os
import subprocess
import sys
import threading

import pytest
from bench_trees.threads import workers

EVERYTHING = """
import numpy as np
from bench_trees import Penalty, Settings, boost, find_bins, warm_up
from bench_trees import grower
from bench_trees.kernels import compiled, _kernels
from bench_trees.kernels.lambdarank import lambdas  # compiled for runs that need it
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
trained = [kernel for kernel in (*kernels, lambdas) if kernel.signatures]
assert len(trained) >= 8
for kernel in trained:
    assert len(kernel.signatures) == 1, kernel.py_func
    misses = sum(kernel.stats.cache_misses.values())
    assert kernel is lambdas or misses == missed[kernel], kernel.py_func
"""


def run(code, **environment):
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_importing_the_package_loads_neither_numba_nor_numpy():
    code = "import sys, bench_trees; print(sorted({'numba', 'numpy'} & set(sys.modules)))"
    assert run(code).strip() == "[]"


def test_listing_what_there_is_loads_no_compiler():
    code = (
        "import sys\nfrom bench_core.cli import main\n"
        "for kind in ('learners', 'datasets', 'suites', 'metrics', 'plugins'):\n"
        "    try:\n        main(['list', kind])\n    except SystemExit:\n        pass\n"
        "print('LOADED', sorted({'numba', 'llvmlite'} & set(sys.modules)))"
    )
    assert run(code).endswith("LOADED []\n")


def test_kernels_are_compiled_for_one_signature_whatever_the_mode():
    run(EVERYTHING)


@pytest.mark.slow
def test_warm_up_announces_the_first_compilation_only(tmp_path):
    code = "from bench_trees import warm_up; warm_up()"
    first = run(code, NUMBA_CACHE_DIR=str(tmp_path))
    assert "compiling kernels" in first
    assert first.count("\n") == 1
    assert run(code, NUMBA_CACHE_DIR=str(tmp_path)) == ""


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("items", [0, 1, 7, 100])
def test_every_item_is_done_once(threads, items):
    done = [0] * items

    def piece(start, stop):
        for i in range(start, stop):
            done[i] += 1

    with workers(threads) as pool:
        pool.run(piece, items, 4)
    assert done == [1] * items


def test_pieces_run_at_the_same_time():
    both = threading.Barrier(2, timeout=100)

    def piece(start, stop):
        both.wait()

    with workers(2) as pool:
        pool.run(piece, 2, 1)


def test_an_error_in_a_piece_reaches_the_caller():
    def piece(start, stop):
        raise KeyError(start)

    with workers(2) as pool, pytest.raises(KeyError):
        pool.run(piece, 8, 1)


def test_no_thread_is_left_behind():
    before = threading.active_count()
    with workers(3) as pool:
        pool.run(lambda start, stop: None, 9, 1)
    assert threading.active_count() == before
