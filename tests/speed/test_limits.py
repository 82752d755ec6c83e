"""How far counting histograms is from what the machine can do, one run.

    pytest -m speed tests/speed/test_limits.py -s

One add per row and feature is all that training must do, and each is a load, an add and a store
at a place that the data decide. Measured on one thread, as adds per second: the engine's kernel
over all rows and over few, the plain loop over bytes, and the kernel over so few rows that
everything is in the nearest cache, which is what the processor can do at all. Bytes moved are
set beside a copy. The figures go to results/speed/limits.json; nothing fails on a time.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from bench_trees.histogram import accumulate
from bench_trees.threads import Workers
from bench_trees.words import pack
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


def test_adds_per_second() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 255, (FEATURES, ROWS)).astype(np.uint8)
    codes[::2] //= 64  # every other feature in few bins: adds to one and the same place
    words = pack(codes, Workers(1))
    words.flags.writeable = False
    packed = rng.integers(-1000, 1000, ROWS)
    first = np.arange(0, 256 * FEATURES + 1, 256)
    out = np.zeros((1, 1, int(first[-1])), np.int64)
    groups, none = np.arange(len(words)), np.empty(0, np.int64)
    found: dict[str, Any] = {"rows": ROWS, "features": FEATURES, "cores": os.cpu_count()}

    def rate(table: Any, rows: Any, repeat: int = 1) -> float:
        work = np.array([[0, len(rows), 0, -1, len(rows) < table.shape[1]]] * repeat)
        values = packed[: len(rows)].copy()
        t = seconds(lambda: accumulate(table, rows, values, none, work, groups, first, out))
        return len(rows) * repeat * FEATURES / t / 1e9

    for name, share in (("all rows", 1), ("a tenth", 10), ("a hundredth", 100)):
        rows = np.sort(rng.choice(ROWS, ROWS // share, replace=False)).astype(np.uint32)
        naive = np.zeros((FEATURES, 256), np.int64)
        values = packed[: len(rows)].copy()
        t = seconds(partial(plain_loop, codes, rows, values, naive))
        found[name] = {
            "kernel, 1e9 adds per s": rate(words, rows),
            "plain loop, 1e9 adds per s": len(rows) * FEATURES / t / 1e9,
        }
    near = words[:, :1024].copy()
    near.flags.writeable = False
    found["in cache, 1e9 adds per s"] = rate(near, np.arange(1024, dtype=np.uint32), 400)
    dense = found["all rows"]["kernel, 1e9 adds per s"]
    found["kernel reads, GB per s"] = dense * (1 + 12 / 8)  # a code; row and value per 8 codes
    source = np.zeros(200_000_000, np.uint8)
    target = np.empty_like(source)
    t = seconds(lambda: np.copyto(target, source))
    found["numpy copy reads and writes, GB per s"] = 2 * len(source) / t / 1e9
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))
