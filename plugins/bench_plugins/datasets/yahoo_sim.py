"""``yahoo-sim``: a generated stand-in for Yahoo's learning-to-rank set 1.

``docs/yahoo-sim.md`` holds the definition, number by number, and the reasons. Everything is
integer arithmetic on a counter-based hash (the finaliser of splitmix64), comparisons and table
look-ups, so that a seed gives the same bits on every machine, in any block order and for any
number of threads. Row i of a split does not depend on how many rows are asked for.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from math import isqrt
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bench_core import Examples, Prices, Queries, Source, Splits, Task, UsageError, param
from bench_plugins.datasets.grades import Judgement

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
I64 = NDArray[np.int64]
Float32 = NDArray[np.float32]

ROWS = {
    "quick": (12000, 4000, 6000),
    "standard": (60000, 15000, 25000),
    "paper": (473134, 71083, 165660),
}
PRICE_GROUPS = ((1, 123), (5, 31), (20, 191), (50, 125), (100, 16), (150, 32), (200, 1))
FEATURES = 519
MAIN, ASPECTS, BLOCKS = 10, 44, 64
BLOCK_ROWS = 8192

# fmt: off
SIZES = np.array([
    1, 1, 2, 3, 4, 5, 5, 6, 6, 7, 7, 8, 8, 8, 9, 9,
    9, 10, 10, 10, 11, 11, 11, 11, 12, 12, 12, 12, 13, 13, 13, 13,
    14, 14, 14, 14, 15, 15, 15, 15, 16, 16, 16, 16, 16, 17, 17, 17,
    17, 17, 18, 18, 18, 18, 18, 19, 19, 19, 19, 19, 20, 20, 20, 20,
    20, 21, 21, 21, 21, 22, 22, 22, 22, 23, 23, 23, 23, 24, 24, 24,
    25, 25, 25, 26, 26, 26, 27, 27, 27, 28, 28, 28, 29, 29, 30, 30,
    30, 31, 31, 32, 32, 33, 33, 34, 34, 35, 35, 36, 37, 38, 39, 40,
    41, 42, 43, 44, 46, 47, 49, 51, 53, 56, 60, 64, 70, 78, 90, 110,
], dtype=np.int64)
# fmt: on

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
QUERY_SHARE = ((0, 256), (128, 222), (160, 200))  # parts of the query and of the document
ABSENT = (0, 0, 0, 24, 48, 80)  # of 256
SHAPES = ("uniform", "heavy", "count", "level", "flag")
SHAPE_OF_256 = (115, 192, 223, 243)
CUTS = (0, 1400, 1750, 2048, 2048, 2300, 2300, 2500)
STRONG_CUTS = (0, 0, 0, 1400)

MAIN_WEIGHTS = (84, 62, 50, 40, 32, 26, 22, 18, 16, 14)
MINOR_WEIGHT = 14
TYPE_FACTORS = ((4, 4, 4), (6, 4, 2), (2, 4, 6))  # of 4, by query type and aspect mod 3
PRODUCTS = ((0, 5, 110), (1, 6, 100), (2, 7, 90))  # by importance: pair and weight
SATURATED, SATURATED_WEIGHT = 3, 60
PENALISED, PENALTY_BELOW, PENALTY = 4, -49152, 256 * 24000
SHIFT_WEIGHT, NOISE_WEIGHT = 90, 145


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

GOLDEN = 0x9E3779B97F4A7C15
MASK = (1 << 64) - 1


def mix(z: int) -> int:
    """The finaliser of splitmix64 on one number."""
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def draw(key: int, counter: int) -> int:
    """The random 64 bits number ``counter`` of a stream."""
    return mix((key + (counter + 1) * GOLDEN) & MASK)


def stream(*parts: int) -> int:
    """The key of a stream."""
    key = 0
    for part in parts:
        key = draw(key, part)
    return key


def draws(key: int, counters: U64) -> U64:
    """``draw`` for an array of counters; wraps around modulo 2**64."""
    z = (counters + np.uint64(1)) * np.uint64(GOLDEN) + np.uint64(key)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def bell(bits: U64) -> I32:
    """Sum of the four 16-bit parts, centred: mean 0, standard deviation 37837."""
    parts = bits.view(np.uint16).reshape(*bits.shape, 4).astype(np.int32)
    total = parts[..., 0] + parts[..., 1] + parts[..., 2] + parts[..., 3]
    return np.asarray(total - np.int32(131070))


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


def features(pattern: Pattern) -> list[Feature]:
    """The 519 columns of a pattern, in column order."""
    order = sorted(range(FEATURES), key=lambda j: draw(stream(777), j))
    price = [0] * FEATURES
    by_price = [p for p, count in PRICE_GROUPS for _ in range(count)]
    for position, j in enumerate(order):
        price[j] = by_price[position]
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
        aspect = _aspect_of(block)
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


def _aspect_of(block: int) -> int:
    return block // 3 if block < 3 * MAIN else block - 2 * MAIN


def tables() -> Float32:
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


def query_sizes(seed: int, split: int, rows: int) -> I64:
    """Documents per query until ``rows`` are reached; the last query is cut to fit."""
    some = rows // 16 + 64
    pieces: list[I64] = []
    done = total = 0
    while total < rows:
        counters = np.arange(done, done + some, dtype=np.uint64)
        pieces.append(SIZES[draws(stream(seed, split, 1), counters) >> np.uint64(57)])
        done, total = done + some, total + int(pieces[-1].sum())
    sizes = np.concatenate(pieces)
    ends = np.cumsum(sizes)
    last = int(np.searchsorted(ends, rows))
    sizes = sizes[: last + 1].copy()
    sizes[last] -= ends[last] - rows
    return sizes


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Hidden quantities of consecutive rows: type and shift (n,), aspects (44, n), nuisances
    (64, n) and absences (64, n) by block."""

    row: U64
    query: U64
    kind: I32
    shift: I32
    aspect: I32
    nuisance: I32
    absent: NDArray[np.bool_]


def hidden(pattern: Pattern, seed: int, split: int, row: U64, query: U64) -> Block:
    """The hidden quantities of rows ``row`` (n,) that belong to queries ``query`` (n,)."""
    type_bits = draws(stream(seed, split, 2), query) >> np.uint64(56)
    kind = (type_bits >= 102).astype(np.int32) + (type_bits >= 192)
    shift = bell(draws(stream(seed, split, 3), query))
    aspect = np.empty((ASPECTS, len(row)), dtype=np.int32)
    for k in range(ASPECTS):
        of_query, of_document = QUERY_SHARE[k % 3]
        part = bell(draws(stream(seed, split, 5), row * np.uint64(64) + np.uint64(k)))
        aspect[k] = of_document * part
        if of_query:
            part = bell(draws(stream(seed, split, 4), query * np.uint64(64) + np.uint64(k)))
            aspect[k] += of_query * part
    aspect >>= 8
    nuisance = np.empty((BLOCKS, len(row)), dtype=np.int32)
    absent = np.zeros((BLOCKS, len(row)), dtype=bool)
    for b in range(BLOCKS):
        counters = row * np.uint64(64) + np.uint64(b)
        nuisance[b] = bell(draws(stream(seed, split, 6), counters))
        limit = ABSENT[draw(stream(pattern.key, 18), b) % len(ABSENT)]
        if limit:
            chance = (draws(stream(seed, split, 7), counters) >> np.uint64(56)).astype(np.int32)
            limits = np.where(kind == 2, 2 * limit, limit)
            absent[b] = chance + (aspect[_aspect_of(b)] >> 10) < limits
    return Block(row, query, kind, shift, aspect, nuisance, absent)


def relevance(pattern: Pattern, block: Block) -> I64:
    """The noiseless score of each row (n,), from which grades are cut."""
    aspect = block.aspect.astype(np.int64)
    factors = np.array(TYPE_FACTORS, dtype=np.int64)
    score = SHIFT_WEIGHT * block.shift.astype(np.int64)
    for rank, k in enumerate(pattern.importance):
        if rank == SATURATED:
            score += SATURATED_WEIGHT * np.minimum(aspect[k], 0)
        else:
            score += MAIN_WEIGHTS[rank] * factors[block.kind, k % 3] * aspect[k] // 4
        if rank == PENALISED:
            score -= PENALTY * (aspect[k] < PENALTY_BELOW)
    for k in range(MAIN, ASPECTS):
        score += MINOR_WEIGHT * aspect[k]
    for first, second, weight in PRODUCTS:
        one, other = aspect[pattern.importance[first]], aspect[pattern.importance[second]]
        score += weight * ((one >> 8) * (other >> 8))
    return score


def grades(pattern: Pattern, seed: int, split: int, block: Block) -> NDArray[np.float64]:
    """Grades 0..4 (n,): the score with its noise, cut at four thresholds, with a few slips."""
    noise = bell(draws(stream(seed, split, 9), block.row)).astype(np.int64)
    score = relevance(pattern, block) + NOISE_WEIGHT * noise
    grade = np.searchsorted(np.array(pattern.thresholds), score, side="right")
    slip = draws(stream(seed, split, 10), block.row) >> np.uint64(56)
    grade = grade - (slip < 6) + (slip >= 250)
    return np.clip(grade, 0, 4).astype(np.float64)


def values(columns: list[Feature], shapes: Float32, seed: int, split: int, block: Block) -> Float32:
    """The feature values of a block, feature-major float32 (519, n)."""
    query_source = (
        block.shift,
        np.where(block.kind == 0, 49152, -32768).astype(np.int32),
        np.where(block.kind == 2, 98304, -32768).astype(np.int32),
    )
    noise_stream = stream(seed, split, 8)
    out = np.empty((len(columns), len(block.row)), dtype=np.float32)
    for j, f in enumerate(columns):
        counter = (block.query if f.kind else block.row) * np.uint64(1024) + np.uint64(j)
        total = bell(draws(noise_stream, counter)) * np.int32(f.noise)
        if f.kind:
            total += query_source[f.kind - 1] * np.int32(f.signal)
        else:
            total += block.aspect[f.aspect] * np.int32(f.signal)
            total += block.aspect[f.second] * np.int32(f.second_signal)
            total += block.nuisance[f.block] * np.int32(f.nuisance)
        level = np.clip((np.int32(f.sign) * total >> 14) + 2048, 0, 4095)
        table = shapes[f.shape].copy()
        table[: f.cut] = 0
        out[j] = table[level]
        if not f.kind:
            out[j][block.absent[f.block]] = 0
    return out


def generate(pattern: Pattern, seed: int, split: int, rows: int, threads: int = 2) -> Examples:
    """One split: ``rows`` rows with their queries and grades. ``split``: 0, 1, 2."""
    queries = Queries.from_sizes(query_sizes(seed, split, rows))
    query = queries.index().astype(np.uint64)
    columns, shapes = features(pattern), tables()
    X = np.empty((rows, FEATURES), dtype=np.float32)
    y = np.empty(rows)

    def fill(start: int) -> None:
        stop = min(start + BLOCK_ROWS, rows)
        row = np.arange(start, stop, dtype=np.uint64)
        block = hidden(pattern, seed, split, row, query[start:stop])
        X[start:stop] = values(columns, shapes, seed, split, block).T
        y[start:stop] = grades(pattern, seed, split, block)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, range(0, rows, BLOCK_ROWS)))
    return Examples(X, y, queries)


@dataclass(frozen=True)
class YahooSim:
    """The generated stand-in for Yahoo set 1."""

    name: ClassVar[str] = "yahoo-sim"
    task: ClassVar[Task] = Task.RANKING
    title: ClassVar[str] = "Generated stand-in for Yahoo LTR set 1 (519 priced features)"
    folds: ClassVar[int] = 1
    files: ClassVar[tuple[str, ...]] = ()
    stand_in_for: ClassVar[str] = "yahoo"
    version: ClassVar[int] = 1
    code: ClassVar[tuple[str, ...]] = ("bench_plugins.datasets.grades",)
    depends_on: ClassVar[tuple[str, ...]] = ("size", "seed")

    pattern: Literal["a", "b"] = param("a", "where the informative features lie")
    relevant: int = param(0, "0 keeps the grades; g labels a document 1 iff its grade is >= g")
    copies: int = param(1, "how many copies each irrelevant document stands for (papers: 10)")
    copied: int = param(-1, "highest grade that is copied; -1: the documents labelled 0")
    copied_in: Literal["all", "test"] = param("all", "splits in which negatives are copied")
    split: float = param(0.25, "price of evaluating one split")

    def __post_init__(self) -> None:
        self._judgement()

    def _judgement(self) -> Judgement:
        return Judgement(self.relevant, self.copies, self.copied, self.copied_in)

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Generate the three splits at the profile's size; ``fold`` is ignored."""
        if size not in ROWS:
            raise UsageError(f"size {size!r}: yahoo-sim has quick, standard and paper")
        pattern, judge = PATTERNS[self.pattern], self._judgement()
        threads = min(4, os.cpu_count() or 1)
        train, valid, test = (
            judge(generate(pattern, seed, split, rows, threads), split)
            for split, rows in enumerate(ROWS[size])
        )
        cost = np.array([f.price for f in features(pattern)], dtype=np.float64)
        return Splits(
            train, valid, test,
            prices=Prices.additive(cost, split=self.split, unit="feature evaluations"),
            task=Task.RANKING,
            feature_names=tuple(f"f{j}" for j in range(1, FEATURES + 1)),
            stand_in=True,
            notes=("generated stand-in for yahoo: proves that the chain works, not a method",),
        )  # fmt: skip


@dataclass(frozen=True)
class YahooSimB(YahooSim):
    """The same with its informative features elsewhere in the price groups."""

    name: ClassVar[str] = "yahoo-sim-b"
    title: ClassVar[str] = "yahoo-sim with another importance pattern"

    pattern: Literal["a", "b"] = param("b", "where the informative features lie")
