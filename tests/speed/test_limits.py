"""How far counting histograms is from what the machine can do, one run.

    pytest -m speed tests/speed/test_limits.py

One add per row and feature is all that training must do, and each is a load, an add and a store
at a place that the data decide. Measured on one thread, as adds per second: the engine's kernel
over all rows and over few, the plain loop over bytes, and the kernel over 1024 rows again and
again, where memory plays no part, which is what the processor can do at all. The bytes that the
kernel has to read (a code per add; a row's number and value per eight adds) are set beside a sum
and a copy of an array that no cache holds. Whether a second thread makes the first one slower is
measured by three loops: multiplications that wait for one another, stores, and the kernel's adds. A
machine whose cores are halves of those that others use slows the last two alone, at times; a
comparison on two threads is then one of how much each side leaves idle. Nothing fails on a time.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import pytest
from bench_trees.kernels.histograms import SCRATCH, accumulate
from bench_trees.kernels.packed_codes import CODES_PER_WORD, pack
from bench_trees.threads import Workers
from numba import njit
from paired import alternate, report, setting

pytestmark = pytest.mark.speed

ROWS, FEATURES, ROUNDS = setting("ROWS", 473_134, least=10_000), 128, 5
SHARES = {"all rows": 1, "a third": 3, "a tenth": 10, "a hundredth": 100}


@njit(nogil=True)
def plain_loop(codes: Any, rows: Any, packed: Any, out: Any) -> None:
    """A feature after the other, a row after the other."""
    for j in range(len(codes)):
        column, sums = codes[j], out[j]
        for i in range(len(rows)):
            sums[column[rows[i]]] += packed[i]


@njit(nogil=True)
def chain(count: int, x: Any) -> Any:
    """Multiplications of which each waits for the one before."""
    for _ in range(count):
        x = x * x + np.uint64(1)
    return x


@njit(nogil=True)
def stores(count: int, table: Any) -> None:
    """Eight stores a step to (4096,), which the nearest cache holds."""
    for i in range(count):
        at = np.uint64((37 * i) & 511)
        for k in range(8):
            table[np.uint64(512 * k) + at] = i


def kernel(words: np.ndarray, rows: np.ndarray, packed: np.ndarray) -> Callable[[], None]:
    """The engine's adds over these rows, ready to run."""
    first = np.arange(0, 256 * FEATURES + 1, 256)
    out = np.zeros((1, 1, int(first[-1])), np.int64)
    groups, values = np.arange(len(words)), packed[:, None]
    far = len(rows) < words.shape[1]
    work, scratch = np.array([[0, len(rows), 0, -1, far]]), np.zeros(SCRATCH, np.int64)

    def every_word() -> None:
        for number in range(len(groups)):
            accumulate(words, rows, values, work, groups, number, first, out, scratch)

    return every_word


def unwritable(words: np.ndarray) -> np.ndarray:
    """As the engine passes words to its kernels."""
    words.flags.writeable = False
    return words


@pytest.fixture(scope="module")
def codes() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.integers(0, 255, (FEATURES, ROWS)).astype(np.uint8)


@pytest.fixture(scope="module")
def words(codes: np.ndarray) -> np.ndarray:
    return unwritable(pack(codes, Workers(1)))


@pytest.mark.benchmark(group="limits")
@pytest.mark.parametrize("name", list(SHARES))
def test_adds_per_second(name: str, codes: np.ndarray, words: np.ndarray, benchmark: Any) -> None:
    rng = np.random.default_rng(1)
    rows = np.sort(rng.choice(ROWS, ROWS // SHARES[name], replace=False)).astype(np.uint32)
    packed = rng.integers(-1000, 1000, len(rows))
    near = np.tile(np.arange(1024, dtype=np.uint32), 400)
    few = unwritable(words[:, :1024].copy())
    sides = {
        "ours": kernel(words, rows, packed),
        "1024 rows": kernel(few, near, rng.integers(-1000, 1000, len(near))),
        "plain loop": partial(plain_loop, codes, rows, packed, np.zeros((FEATURES, 256), np.int64)),
    }
    samples = alternate(benchmark, sides, ROUNDS)
    ours, cached, plain = (
        n * FEATURES / median(times) / 1e9
        for n, times in zip((len(rows), len(near), len(rows)), samples.values(), strict=True)
    )
    report(
        benchmark,
        {side: samples[side] for side in ("ours", "plain loop")},
        work=f"adds over {name} of {ROWS}, {FEATURES} features, one thread",
        peers=["plain loop"],
        facts={
            "kernel, 1e9 adds per s": ours,
            "plain loop, 1e9 adds per s": plain,
            "kernel over 1024 rows, 1e9 adds per s": cached,
            "kernel, share of that": ours / cached,
            "kernel has to read, GB per s": ours * (1 + (4 + 8) / CODES_PER_WORD),
        },
        seconds_1024_rows=samples["1024 rows"],
    )


@pytest.mark.benchmark(group="two threads")
def test_two_threads_beside_each_other(words: np.ndarray, benchmark: Any) -> None:
    near = np.tile(np.arange(1024, dtype=np.uint32), 400)
    few = unwritable(words[:, :1024].copy())
    work: dict[str, list[Callable[[], Any]]] = {
        "multiplications": [partial(chain, 20_000_000, np.uint64(3)) for _ in range(2)],
        "stores": [partial(stores, 10_000_000, np.zeros(4096)) for _ in range(2)],
        "adds": [kernel(few, near, np.ones(len(near), np.int64)) for _ in range(2)],
    }
    facts: dict[str, float] = {}
    samples: dict[str, list[float]] = {}
    with ThreadPoolExecutor(1) as pool:

        def together(one: Callable[[], Any], other: Callable[[], Any]) -> None:
            beside = pool.submit(one)
            other()
            beside.result()

        for name, pair in work.items():
            alone, both = f"{name} by one thread", f"{name} by each of two"
            sides = {alone: pair[0], both: partial(together, *pair)}
            samples |= alternate(benchmark, sides, 5 * ROUNDS)
            times = sorted(b / a for a, b in zip(samples[alone], samples[both], strict=True))
            facts[f"{name}, times as long"] = median(times)
            facts[f"{name}, a tenth above"] = times[len(times) * 9 // 10]
    report(benchmark, samples, work="two threads beside each other", facts=facts)


@pytest.mark.benchmark(group="memory bandwidth")
def test_bytes_per_second(benchmark: Any) -> None:
    """One thread over an array that no cache holds."""
    count = setting("VALUES", 50_000_000)
    source, target = np.ones(count), np.zeros(count)
    size = source.nbytes / 1e9
    sides = {"sum": source.sum, "copy": partial(np.copyto, target, source)}
    samples = alternate(benchmark, sides, ROUNDS)
    report(
        benchmark,
        samples,
        work=f"memory, {size:g} GB, one thread",
        facts={
            "a sum reads, GB per s": size / median(samples["sum"]),
            "a copy reads and writes, GB per s": 2 * size / median(samples["copy"]),
        },
    )
