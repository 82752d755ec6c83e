"""``yahoo-sim``: a generated stand-in for Yahoo's learning-to-rank set 1.

``README.md`` beside this file is the definition, number by number;
``docs/reference/generated-data.md`` has the reasons. Everything is integer arithmetic on a
counter-based hash (the finaliser of splitmix64), comparisons and table look-ups. A seed thus gives
the same bits on every machine, in any block order and for any number of threads. Row i of a split
does not depend on the number of rows requested.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import reduce
from math import erf
from typing import TYPE_CHECKING

import numpy as np

from bench_core import Examples, Queries
from bench_core.arrays import BoolArray, Float32Array, FloatArray, Int32Array, IntArray
from bench_core.datasets.splitting import U64, mixed

if TYPE_CHECKING:
    import pandas as pd

GOLDEN = 0x9E3779B97F4A7C15

PRICE_GROUPS = ((1, 123), (5, 31), (20, 191), (50, 125), (100, 16), (150, 32), (200, 1))
FEATURES = 519
MAIN, ASPECTS, BLOCKS = 10, 44, 64
OVERALL = ASPECTS  # number of the weighted sum of all main aspects

# Strength of a feature's aspect (of 256), by price group: strong, weak from, weak to.
FIDELITY = np.array([
    (80, 24, 72), (90, 28, 84), (110, 30, 96), (125, 32, 104), (150, 40, 120), (170, 40, 128),
    (170, 0, 0),
])  # fmt: skip
SHOW_ALL = (0, 0, 0, 0, 0, 2, 1)  # strong features that show OVERALL, by price group
ALL_SIGNAL = (0, 0, 0, 0, 0, 90, 125)  # their strength
# shapes of values, all of them ranks: of every level, of 16, of 8, and flags
SHAPE_OF_256 = np.array([192, 223, 243])
CUTS = np.array([0, 1400, 1750, 2048, 2048, 2300, 2300, 2500])
STRONG_CUTS = np.array([0, 0, 0, 1400])


KEY = 1  # of the random stream of features
STRONG = (3, 2, 9, 9, 5, 11, 1)  # numbers of strong features by price group, its first ones
IMPORTANCE = (0, 9, 3, 6, 1, 4, 7, 2, 5, 8)  # of the main aspects
THRESHOLDS = (-8030000, 1580000, 12190000, 20440000)  # scores at which the grade rises


def draws(key: int, counters: U64 | IntArray) -> U64:
    """Random 64 bits for each counter of a stream; wraps around modulo 2**64."""
    return mixed((counters.astype(np.uint64) + np.uint64(1)) * np.uint64(GOLDEN) + np.uint64(key))


def stream(*parts: int) -> int:
    """The key of a stream."""
    return reduce(lambda key, part: int(draws(key, np.array([part]))[0]), parts, 0)


def bell(bits: U64) -> Int32Array:
    """Sum of the four 16-bit parts, centred: mean 0, standard deviation 37837."""
    parts = bits.view(np.uint16).reshape(*bits.shape, 4).astype(np.int32)
    total = parts[..., 0] + parts[..., 1] + parts[..., 2] + parts[..., 3]
    return np.asarray(total - np.int32(131070))


def features() -> pd.DataFrame:
    """Price and content of each of the 519 columns, one row each.

    Coefficients are of 256; ``kind`` 0 is a document feature, 1..3 a feature of the query alone.
    """
    import pandas as pd

    every = np.arange(FEATURES)

    def choose(purpose: int, below: int | IntArray) -> IntArray:
        drawn = draws(stream(KEY, purpose), every)
        return (drawn % np.asarray(below, dtype=np.uint64)).astype(np.int64)

    prices, counts = np.array(PRICE_GROUPS).T
    group, rank = np.empty((2, FEATURES), dtype=np.int64)
    group[np.argsort(draws(stream(777), every))] = np.repeat(np.arange(len(counts)), counts)
    for g, count in enumerate(counts):
        members = np.flatnonzero(group == g)
        rank[members] = np.arange(count)
    price, left = prices[group], counts[group] - rank
    strong = rank < np.array(STRONG)[group]
    number = np.cumsum([0, *STRONG])[group] + rank  # of a strong one among the strong
    of_query = ((price == 1) & (left <= 8)) | ((price == 5) & (left <= 4))

    block = np.where(strong, 3 * (number % MAIN) + number // MAIN % 3, choose(10, BLOCKS))
    aspect = np.where(strong, number % MAIN, aspect_of(block))
    aspect = np.where(strong & (rank < np.array(SHOW_ALL)[group]), OVERALL, aspect)
    high, low, most = FIDELITY[group].T
    signal = np.where(strong, high, low + choose(11, most - low + 1))
    signal = np.where(aspect == OVERALL, np.array(ALL_SIGNAL)[group], signal)
    nuisance = np.where(strong, 40 + choose(12, 41), 90 + choose(12, 81))
    second, second_signal = choose(13, MAIN), 6 + choose(14, 17)
    noise = np.sqrt(65536 - signal**2 - second_signal**2 - nuisance**2).astype(np.int64)
    shown = {
        "price": price,
        "kind": np.where(of_query, 1 + rank % 3, 0),
        "aspect": aspect,
        "block": block,
        "signal": np.where(of_query, 200, signal),
        "second": second,
        "second_signal": np.where(of_query, 0, second_signal),
        "nuisance": np.where(of_query, 0, nuisance),
        "noise": np.where(of_query, 160, noise),
        "sign": np.where(np.where(strong, choose(15, 4), choose(15, 2)) == 0, -1, 1),
        "shape": np.where(strong, 0, np.searchsorted(SHAPE_OF_256, choose(16, 256), side="right")),
        "cut": np.where(strong, STRONG_CUTS[choose(17, 4)], CUTS[choose(17, 8)]),
    }
    return pd.DataFrame(shown)


def aspect_of(block: IntArray) -> IntArray:
    """The aspect that a block of columns shows by default."""
    return np.where(block < 3 * MAIN, block // 3, block - 2 * MAIN)


def tables() -> Float32Array:
    """Value of each of 4096 levels under each shape, (4, 4096): its rank in [0, 1], in 65536ths."""
    level = np.arange(4096)
    rank = np.array([round(32768 * (1 + erf((k - 2048) / 591 / 2**0.5))) for k in level]) / 65536
    rows = (rank, rank[level | 255], rank[level | 511], level >= 2600)
    return np.array(rows, dtype=np.float32)


BLOCK_ROWS = 8192  # generated at a time

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

QUERY_SHARE = ((0, 256), (128, 222), (160, 200))  # parts of the query and of the document
ABSENT = (0, 0, 0, 24, 48, 80)  # of 256

MAIN_WEIGHTS = (60, 54, 49, 44, 40, 36, 33, 30, 27, 24)
WEIGHTS_SIZE = 131  # the root of their sum of squares
MINOR_WEIGHT = 22
TYPE_FACTORS = ((4, 4, 4), (6, 4, 2), (2, 4, 6))  # of 4, by query type and aspect mod 3
PRODUCTS = ((0, 5, 110), (1, 6, 100), (2, 7, 90))  # by importance: pair and weight
SATURATED, SATURATED_WEIGHT = 3, 60
PENALISED, PENALTY_BELOW, PENALTY = 4, -49152, 256 * 24000
SHIFT_WEIGHT, NOISE_WEIGHT = 90, 125


def query_sizes(seed: int, split: int, rows: int) -> IntArray:
    """Documents per query until ``rows`` are reached; the last query is cut to fit."""
    some = rows // 16 + 64
    pieces: list[IntArray] = []
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
class Hidden:
    """Hidden quantities of consecutive rows: type and shift (n,), aspects (44, n) and OVERALL,
    nuisances (64, n) and absences (64, n) by block."""

    row: U64  # (n,)
    query: U64  # (n,)
    kind: Int32Array  # (n,) type of the query
    shift: Int32Array  # (n,)
    aspect: Int32Array  # (45, n)
    nuisance: Int32Array  # (64, n)
    absent: BoolArray  # (64, n)


def hidden(seed: int, split: int, row: U64, query: U64) -> Hidden:
    """The hidden quantities of rows ``row`` (n,) that belong to queries ``query`` (n,)."""
    type_bits = draws(stream(seed, split, 2), query) >> np.uint64(56)
    kind = (type_bits >= 102).astype(np.int32) + (type_bits >= 192)
    shift = bell(draws(stream(seed, split, 3), query))
    aspect = np.empty((ASPECTS + 1, len(row)), dtype=np.int32)
    for k in range(ASPECTS):
        of_query, of_document = QUERY_SHARE[k % 3]
        effect = bell(draws(stream(seed, split, 5), row * np.uint64(64) + np.uint64(k)))
        aspect[k] = of_document * effect
        if of_query:
            effect = bell(draws(stream(seed, split, 4), query * np.uint64(64) + np.uint64(k)))
            aspect[k] += of_query * effect
    aspect >>= 8
    main = aspect[list(IMPORTANCE)].astype(np.int64)
    aspect[OVERALL] = np.array(MAIN_WEIGHTS) @ main // WEIGHTS_SIZE
    nuisance = np.empty((BLOCKS, len(row)), dtype=np.int32)
    absent = np.zeros((BLOCKS, len(row)), dtype=bool)
    limits = draws(stream(KEY, 18), np.arange(BLOCKS)) % np.uint64(len(ABSENT))
    shown = aspect_of(np.arange(BLOCKS))
    for b in range(BLOCKS):
        counters = row * np.uint64(64) + np.uint64(b)
        nuisance[b] = bell(draws(stream(seed, split, 6), counters))
        if limit := ABSENT[int(limits[b])]:
            chance = (draws(stream(seed, split, 7), counters) >> np.uint64(56)).astype(np.int32)
            doubled = np.where(kind == 2, 2 * limit, limit)
            absent[b] = chance + (aspect[shown[b]] >> 10) < doubled
    return Hidden(row, query, kind, shift, aspect, nuisance, absent)


def relevance(block: Hidden) -> IntArray:
    """The noiseless score of each row (n,), from which grades are cut."""
    aspect = block.aspect.astype(np.int64)
    factors = np.array(TYPE_FACTORS, dtype=np.int64)
    score = SHIFT_WEIGHT * block.shift.astype(np.int64)
    for rank, k in enumerate(IMPORTANCE):
        if rank == SATURATED:
            score += SATURATED_WEIGHT * np.minimum(aspect[k], 0)
        else:
            score += MAIN_WEIGHTS[rank] * factors[block.kind, k % 3] * aspect[k] // 4
        if rank == PENALISED:
            score -= PENALTY * (aspect[k] < PENALTY_BELOW)
    for k in range(MAIN, ASPECTS):
        score += MINOR_WEIGHT * aspect[k]
    for first, second, weight in PRODUCTS:
        one, other = aspect[IMPORTANCE[first]], aspect[IMPORTANCE[second]]
        score += weight * ((one >> 8) * (other >> 8))
    return score


def grades(seed: int, split: int, block: Hidden) -> FloatArray:
    """Grades 0..4 (n,): the score with its noise, cut at four thresholds, with a few slips."""
    noise = bell(draws(stream(seed, split, 9), block.row)).astype(np.int64)
    score = relevance(block) + NOISE_WEIGHT * noise
    grade = np.searchsorted(np.array(THRESHOLDS), score, side="right")
    slip = draws(stream(seed, split, 10), block.row) >> np.uint64(56)
    grade = grade - (slip < 6) + (slip >= 250)
    return np.clip(grade, 0, 4).astype(np.float64)


def values(
    columns: pd.DataFrame, shapes: Float32Array, seed: int, split: int, block: Hidden
) -> Float32Array:
    """The feature values of a block, feature-major float32 (519, n)."""
    query_source = (
        block.shift,
        np.where(block.kind == 0, 49152, -32768).astype(np.int32),
        np.where(block.kind == 2, 98304, -32768).astype(np.int32),
    )
    noise_stream = stream(seed, split, 8)
    out = np.empty((FEATURES, len(block.row)), dtype=np.float32)
    for j, f in enumerate(columns.itertuples()):
        counter = (block.query if f.kind else block.row) * np.uint64(1024) + np.uint64(j)
        total = bell(draws(noise_stream, counter)) * np.int32(f.noise)
        if f.kind:
            total += query_source[f.kind - 1] * np.int32(f.signal)
        else:
            total += block.aspect[f.aspect] * np.int32(f.signal)
            total += block.aspect[f.second] * np.int32(f.second_signal)
            total += block.nuisance[f.block] * np.int32(f.nuisance)
        level = np.clip((np.int32(f.sign) * total >> 14) + 2048, 0, 4095)
        out[j] = np.where(level < f.cut, 0, shapes[f.shape][level])
        if not f.kind:
            out[j][block.absent[f.block]] = 0
    return out


def generate(seed: int, split: int, rows: int, threads: int = 2) -> Examples:
    """One split: ``rows`` rows with their queries and grades. ``split``: 0, 1, 2."""
    queries = Queries.from_sizes(query_sizes(seed, split, rows))
    query = queries.index().astype(np.uint64)
    columns, shapes = features(), tables()
    X = np.empty((rows, FEATURES), dtype=np.float32)
    y = np.empty(rows)

    def fill(start: int) -> None:
        stop = min(start + BLOCK_ROWS, rows)
        row = np.arange(start, stop, dtype=np.uint64)
        block = hidden(seed, split, row, query[start:stop])
        X[start:stop] = values(columns, shapes, seed, split, block).T
        y[start:stop] = grades(seed, split, block)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, range(0, rows, BLOCK_ROWS)))
    return Examples(X, y, queries)
