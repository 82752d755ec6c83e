"""How far counting histograms is from what the machine can do, one run.

    pytest -m speed tests/speed/test_limits.py -s

One add per row and feature is all that training must do, and each is a load, an add and a store
at a place that the data decide. Measured on one thread, as adds per second: the engine's kernel
over all rows and over few, the plain loop over bytes, and the kernel over 1024 rows again and
again, where memory plays no part, which is what the processor can do at all. The bytes that the
kernel has to read (a code per add; a row's number and value per eight adds) are set beside a sum
and a copy of an array that no cache holds. The figures go to results/speed/limits.json; nothing
fails on a time.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from bench_trees.kernels.histogram import accumulate
from bench_trees.kernels.packed_codes import CODES_PER_WORD, pack
from bench_trees.threads import Workers
from numba import njit

pytestmark = pytest.mark.speed

ROWS, FEATURES, ROUNDS = 473_134, 128, 5
OUTPUT = Path(__file__).parents[2] / "results" / "speed" / "limits.json"


@njit(nogil=True)
def plain_loop(codes: Any, rows: Any, packed: Any, out: Any) -> None:
    """A feature after the other, a row after the other."""
    for j in range(len(codes)):
        column, sums = codes[j], out[j]
        for i in range(len(rows)):
            sums[column[rows[i]]] += packed[i]


def seconds(action: Callable[[], Any]) -> float:
    """Median after one run that is not counted."""
    action()
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return median(times)


def kernel_rate(words: np.ndarray, rows: np.ndarray, packed: np.ndarray) -> float:
    """1e9 adds per second of the engine over these rows."""
    first = np.arange(0, 256 * FEATURES + 1, 256)
    out = np.zeros((1, 1, int(first[-1])), np.int64)
    groups, none = np.arange(len(words)), np.empty(0, np.int64)
    far = len(rows) < words.shape[1]
    work = np.array([[0, len(rows), 0, -1, far]])
    t = seconds(lambda: accumulate(words, rows, packed, none, work, groups, first, out))
    return len(rows) * FEATURES / t / 1e9


def plain_rate(codes: np.ndarray, rows: np.ndarray, packed: np.ndarray) -> float:
    """The same of the plain loop."""
    sums = np.zeros((FEATURES, 256), np.int64)
    return len(rows) * FEATURES / seconds(lambda: plain_loop(codes, rows, packed, sums)) / 1e9


def bandwidth() -> dict[str, float]:
    """GB per second of one thread over an array that no cache holds."""
    source, target = np.ones(50_000_000), np.zeros(50_000_000)
    size = source.nbytes / 1e9
    return {
        "sum reads": size / seconds(source.sum),
        "copy reads and writes": 2 * size / seconds(lambda: np.copyto(target, source)),
    }


def unwritable(words: np.ndarray) -> np.ndarray:
    """As the engine passes words to its kernels."""
    words.flags.writeable = False
    return words


def test_adds_per_second() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 255, (FEATURES, ROWS)).astype(np.uint8)
    words = unwritable(pack(codes, Workers(1)))
    packed = rng.integers(-1000, 1000, ROWS)
    found: dict[str, Any] = {"rows": ROWS, "features": FEATURES, "cores": os.cpu_count()}
    for name, share in (("all rows", 1), ("a third", 3), ("a tenth", 10), ("a hundredth", 100)):
        rows = np.sort(rng.choice(ROWS, ROWS // share, replace=False)).astype(np.uint32)
        rate = kernel_rate(words, rows, packed[: len(rows)].copy())
        found[name] = {
            "kernel, 1e9 adds per s": rate,
            "plain loop, 1e9 adds per s": plain_rate(codes, rows, packed[: len(rows)].copy()),
            "kernel has to read, GB per s": rate * (1 + (4 + 8) / CODES_PER_WORD),
        }
    near = np.tile(np.arange(1024, dtype=np.uint32), 400)
    few = unwritable(words[:, :1024].copy())
    found["1024 rows, 1e9 adds per s"] = kernel_rate(few, near, packed[: len(near)].copy())
    found["memory, GB per s"] = bandwidth()
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))
