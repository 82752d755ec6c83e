"""What each of the 519 columns costs and shows, by importance pattern.

All random numbers come from a counter-based hash, the finaliser of splitmix64.
"""

from dataclasses import dataclass
from functools import reduce
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import Float32Array, Int32Array

U64 = NDArray[np.uint64]

GOLDEN = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1

PRICE_GROUPS = ((1, 123), (5, 31), (20, 191), (50, 125), (100, 16), (150, 32), (200, 1))
FEATURES = 519
MAIN, ASPECTS, BLOCKS = 10, 44, 64

# How strongly the feature shows its aspect (of 256), by price: (strong, weak from, weak to).
FIDELITY = {
    1: (110, 24, 72),
    5: (125, 28, 84),
    20: (150, 30, 96),
    50: (170, 32, 104),
    100: (190, 40, 120),
    150: (215, 40, 128),
    200: (225, 0, 0),
}
SHAPES = ("uniform", "heavy", "count", "level", "flag")
SHAPE_OF_256 = (115, 192, 223, 243)
CUTS = (0, 1400, 1750, 2048, 2048, 2300, 2300, 2500)
STRONG_CUTS = (0, 0, 0, 1400)


@dataclass(frozen=True, slots=True)
class Pattern:
    """Where the informative features lie: the strong ones per price group, which aspects weigh
    most (in order of importance), from which end of a price group the strong ones are taken, and
    the four scores at which the grade rises."""

    key: int
    strong: tuple[int, ...]
    importance: tuple[int, ...]
    from_end: bool
    thresholds: tuple[int, int, int, int]


PATTERNS = {
    "a": Pattern(
        key=1,
        strong=(4, 2, 10, 9, 4, 8, 1),
        importance=(0, 9, 3, 6, 1, 4, 7, 2, 5, 8),
        from_end=False,
        thresholds=(-7950000, 1400000, 11230000, 19450000),
    ),
    "b": Pattern(
        key=2,
        strong=(2, 5, 18, 5, 6, 3, 0),
        importance=(7, 2, 8, 5, 0, 6, 1, 9, 4, 3),
        from_end=True,
        thresholds=(-7880000, 1340000, 11060000, 19120000),
    ),
}


@dataclass(frozen=True, slots=True)
class Feature:
    """What one column shows. Coefficients are of 256; ``kind`` 0 is a document feature, 1..3 a
    feature of the query alone."""

    price: int
    kind: int
    strong: bool
    aspect: int
    block: int
    signal: int
    second: int
    second_signal: int
    nuisance: int
    noise: int
    sign: int
    shape: int
    cut: int


def draw(key: int, counter: int) -> int:
    """The random 64 bits number ``counter`` of a stream."""
    z = (key + (counter + 1) * GOLDEN) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def stream(*parts: int) -> int:
    """The key of a stream."""
    return reduce(draw, parts, 0)


def draws(key: int, counters: U64) -> U64:
    """``draw`` for an array of counters; wraps around modulo 2**64."""
    z = (counters + np.uint64(1)) * np.uint64(GOLDEN) + np.uint64(key)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def bell(bits: U64) -> Int32Array:
    """Sum of the four 16-bit parts, centred: mean 0, standard deviation 37837."""
    parts = bits.view(np.uint16).reshape(*bits.shape, 4).astype(np.int32)
    total = parts[..., 0] + parts[..., 1] + parts[..., 2] + parts[..., 3]
    return np.asarray(total - np.int32(131070))


def features(pattern: Pattern) -> list[Feature]:
    """The 519 columns of a pattern, in column order."""
    order = sorted(range(FEATURES), key=lambda j: draw(stream(777), j))
    by_price = [p for p, count in PRICE_GROUPS for _ in range(count)]
    price = dict(zip(order, by_price, strict=True))
    columns: dict[int, Feature] = {}
    strong_so_far = 0
    for (cost, count), strong in zip(PRICE_GROUPS, pattern.strong, strict=True):
        members = [j for j in range(FEATURES) if price[j] == cost]
        for rank, j in enumerate(reversed(members) if pattern.from_end else members):
            is_strong = rank < strong
            columns[j] = _feature(pattern, j, cost, rank, count, strong_so_far, is_strong)
            strong_so_far += is_strong
    return [columns[j] for j in range(FEATURES)]


def _feature(
    pattern: Pattern, j: int, price: int, rank: int, count: int, number: int, strong: bool
) -> Feature:
    def choose(purpose: int, below: int) -> int:
        return draw(stream(pattern.key, purpose), j) % below

    kind = 0
    if (price == 1 and count - rank <= 8) or (price == 5 and count - rank <= 4):
        kind = 1 + rank % 3
    if strong:
        aspect = number % MAIN
        block = 3 * aspect + number // MAIN % 3
        signal, nuisance = FIDELITY[price][0], 40 + choose(12, 41)
        sign = -1 if choose(15, 4) == 0 else 1
        shape, cut = choose(16, 2), STRONG_CUTS[choose(17, 4)]
    else:
        block = choose(10, BLOCKS)
        aspect = aspect_of(block)
        low, high = FIDELITY[price][1:]
        signal, nuisance = low + choose(11, high - low + 1), 90 + choose(12, 81)
        sign = -1 if choose(15, 2) == 0 else 1
        shape = sum(choose(16, 256) >= limit for limit in SHAPE_OF_256)
        cut = CUTS[choose(17, 8)]
    second, second_signal = choose(13, MAIN), 6 + choose(14, 17)
    noise = isqrt(65536 - signal**2 - second_signal**2 - nuisance**2)
    if kind:
        signal, nuisance, second_signal, noise = 200, 0, 0, 160
    return Feature(
        price, kind, strong, aspect, block, signal, second, second_signal, nuisance, noise,
        sign, shape, cut,
    )  # fmt: skip


def aspect_of(block: int) -> int:
    """The aspect that a block of columns shows by default."""
    return block // 3 if block < 3 * MAIN else block - 2 * MAIN


def tables() -> Float32Array:
    """Value of each of 4096 levels under each shape, (5, 4096), all exact in float32."""
    level = np.arange(4096, dtype=np.int64)
    z = level - 2048
    uniform = 2048 + (z * 2048) // (591 + np.abs(z))
    heavy = (256 + (level & 255)) << (level >> 8)
    out = np.empty((len(SHAPES), 4096), dtype=np.float32)
    out[0] = uniform.astype(np.float32) / np.float32(4096)
    out[1] = heavy.astype(np.float32) / np.float32(65536)
    out[2] = (heavy >> 15).astype(np.float32)
    out[3] = (level >> 8).astype(np.float32)
    out[4] = (level >= 2600).astype(np.float32)
    return out
