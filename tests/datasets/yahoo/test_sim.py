"""The generated stand-in: equal to its written definition, the same everywhere, and plausible."""

from __future__ import annotations

import hashlib
from math import isqrt

import numpy as np
import pytest
from bench_datasets.yahoo import ROWS, YahooSim, YahooSimB
from bench_datasets.yahoo.sim import PATTERNS, SIZES, generate, query_sizes

from bench_core.data import Examples, Task
from bench_core.datasets.data_folder import DataFolder

M = 2**64 - 1
G = 0x9E3779B97F4A7C15
GROUPS = {1: 123, 5: 31, 20: 191, 50: 125, 100: 16, 150: 32, 200: 1}
STRONG = {
    1: {1: 4, 5: 2, 20: 10, 50: 9, 100: 4, 150: 8, 200: 1},
    2: {1: 2, 5: 5, 20: 18, 50: 5, 100: 6, 150: 3, 200: 0},
}
STRONG_SIGNAL = {1: 110, 5: 125, 20: 150, 50: 170, 100: 190, 150: 215, 200: 225}
WEAK_SIGNAL = {
    1: (24, 72),
    5: (28, 84),
    20: (30, 96),
    50: (32, 104),
    100: (40, 120),
    150: (40, 128),
    200: (0, 0),
}
IMPORTANCE = {1: (0, 9, 3, 6, 1, 4, 7, 2, 5, 8), 2: (7, 2, 8, 5, 0, 6, 1, 9, 4, 3)}
WEIGHTS = (84, 62, 50, 40, 32, 26, 22, 18, 16, 14)
THRESHOLDS = {
    1: (-7950000, 1400000, 11230000, 19450000),
    2: (-7880000, 1340000, 11060000, 19120000),
}
FACTORS = ((4, 4, 4), (6, 4, 2), (2, 4, 6))


def draw(key: int, counter: int) -> int:
    z = (key + (counter + 1) * G) & M
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) & M
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) & M
    return z ^ z >> 31


def stream(*parts: int) -> int:
    key = 0
    for part in parts:
        key = draw(key, part)
    return key


def bell(bits: int) -> int:
    return sum(bits >> 16 * k & 0xFFFF for k in range(4)) - 131070


def price_and_rank(P: int) -> dict[int, tuple[int, int]]:
    by_hash = sorted(range(519), key=lambda j: draw(stream(777), j))
    groups: dict[int, list[int]] = {}
    for price, count in GROUPS.items():
        groups[price], by_hash = by_hash[:count], by_hash[count:]
    return {
        j: (price, rank)
        for price, members in groups.items()
        for rank, j in enumerate(sorted(members, reverse=P == 2))
    }


def aspect_of_block(b: int) -> int:
    return b // 3 if b < 30 else b - 20


class Definition:
    def __init__(self, P: int, seed: int, split: int) -> None:
        self.P, self.seed, self.split = P, seed, split
        self.place = price_and_rank(P)

    def draw(self, purpose: int, counter: int) -> int:
        return draw(stream(self.seed, self.split, purpose), counter)

    def choose(self, purpose: int, j: int, below: int) -> int:
        return draw(stream(self.P, purpose), j) % below

    def kind(self, q: int) -> int:
        u = self.draw(2, q) >> 56
        return 0 if u < 102 else 1 if u < 192 else 2

    def shift(self, q: int) -> int:
        return bell(self.draw(3, q))

    def aspect(self, k: int, i: int, q: int) -> int:
        a, b = ((0, 256), (128, 222), (160, 200))[k % 3]
        return (a * bell(self.draw(4, 64 * q + k)) + b * bell(self.draw(5, 64 * i + k))) >> 8

    def absent(self, b: int, i: int, q: int) -> bool:
        limit = (0, 0, 0, 24, 48, 80)[draw(stream(self.P, 18), b) % 6]
        if self.kind(q) == 2:
            limit *= 2
        seen = (self.draw(7, 64 * i + b) >> 56) + (self.aspect(aspect_of_block(b), i, q) >> 10)
        return limit > 0 and seen < limit

    def strong_number(self, j: int) -> int | None:
        price, rank = self.place[j]
        if rank >= STRONG[self.P][price]:
            return None
        return rank + sum(n for p, n in STRONG[self.P].items() if p < price)

    def cell(self, i: int, q: int, j: int) -> float:
        price, rank = self.place[j]
        number = self.strong_number(j)
        if number is not None:
            aspect, block = number % 10, 3 * (number % 10) + number // 10 % 3
            S, V = STRONG_SIGNAL[price], 40 + self.choose(12, j, 41)
            sign = -1 if self.choose(15, j, 4) == 0 else 1
            shape = ("uniform", "heavy")[self.choose(16, j, 2)]
            cut = (0, 0, 0, 1400)[self.choose(17, j, 4)]
        else:
            low, high = WEAK_SIGNAL[price]
            block = self.choose(10, j, 64)
            aspect = aspect_of_block(block)
            S, V = low + self.choose(11, j, high - low + 1), 90 + self.choose(12, j, 81)
            sign = -1 if self.choose(15, j, 2) == 0 else 1
            u = self.choose(16, j, 256)
            shape = next(
                name
                for name, below in (
                    ("uniform", 115),
                    ("heavy", 192),
                    ("count", 223),
                    ("level", 243),
                    ("flag", 256),
                )
                if u < below
            )
            cut = (0, 1400, 1750, 2048, 2048, 2300, 2300, 2500)[self.choose(17, j, 8)]
        second, Z = self.choose(13, j, 10), 6 + self.choose(14, j, 17)
        E = isqrt(65536 - S * S - V * V - Z * Z)
        of_query = rank >= GROUPS[price] - {1: 8, 5: 4}.get(price, 0)
        if of_query:
            kind = 1 + rank % 3
            source = {
                1: self.shift(q),
                2: 49152 if self.kind(q) == 0 else -32768,
                3: 98304 if self.kind(q) == 2 else -32768,
            }[kind]
            total = 200 * source + 160 * bell(self.draw(8, 1024 * q + j))
        else:
            total = S * self.aspect(aspect, i, q) + Z * self.aspect(second, i, q)
            total += V * bell(self.draw(6, 64 * i + block))
            total += E * bell(self.draw(8, 1024 * i + j))
        level = min(max((sign * total >> 14) + 2048, 0), 4095)
        if level < cut or (not of_query and self.absent(block, i, q)):
            return 0.0
        return shaped(shape, level)

    def grade(self, i: int, q: int) -> int:
        order = IMPORTANCE[self.P]
        A = [self.aspect(k, i, q) for k in range(44)]
        score = 90 * self.shift(q) + 145 * bell(self.draw(9, i)) + 14 * sum(A[10:])
        for r, k in enumerate(order):
            if r == 3:
                score += 60 * min(A[k], 0)
            else:
                score += WEIGHTS[r] * FACTORS[self.kind(q)][k % 3] * A[k] // 4
        if A[order[4]] < -49152:
            score -= 6144000
        for r, s, weight in ((0, 5, 110), (1, 6, 100), (2, 7, 90)):
            score += weight * ((A[order[r]] >> 8) * (A[order[s]] >> 8))
        grade = sum(score >= t for t in THRESHOLDS[self.P])
        u = self.draw(10, i) >> 56
        return min(max(grade - (u < 6) + (u >= 250), 0), 4)


def shaped(shape: str, level: int) -> float:
    z = level - 2048
    h = (256 + level % 256) * 2 ** (level // 256)
    if shape == "uniform":
        return (2048 + 2048 * z // (591 + abs(z))) / 4096
    if shape == "heavy":
        return h / 65536
    if shape == "count":
        return float(h // 32768)
    return float(level // 256) if shape == "level" else float(level >= 2600)


KEYS = {"a": 1, "b": 2}


@pytest.fixture(scope="module")
def block() -> dict[str, Examples]:
    return {name: generate(pattern, 3, 0, 8000) for name, pattern in PATTERNS.items()}


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("split", [0, 2])
def test_rows_equal_the_definition_computed_cell_by_cell(pattern: str, split: int) -> None:
    made = generate(PATTERNS[pattern], 11, split, 40)
    assert made.queries is not None
    query = made.queries.index()
    wanted = Definition(KEYS[pattern], 11, split)
    for i in (0, 1, 17, 39):
        cells = [wanted.cell(i, int(query[i]), j) for j in range(519)]
        np.testing.assert_array_equal(made.X[i], np.array(cells, dtype=np.float32))
    assert made.y.tolist() == [wanted.grade(i, int(query[i])) for i in range(40)]


def test_checksum_of_a_small_block() -> None:
    """Computed once from the written definition in plain Python; never to change in version 1."""
    made = generate(PATTERNS["a"], 0, 0, 64)
    little = made.X.astype("<f4").tobytes() + made.y.astype("<f8").tobytes()
    assert hashlib.sha256(little).hexdigest() == CHECKSUM


CHECKSUM = "855a96fe048e29fc447ee91f5b78a64facc605261eea4c8a2428e32a4c2249b7"


def test_query_sizes_follow_the_table() -> None:

    wanted = [int(SIZES[draw(stream(4, 2, 1), q) >> 57]) for q in range(30)]
    sizes = query_sizes(4, 2, 5000)
    assert sizes[:30].tolist() == wanted
    assert sizes.sum() == 5000
    assert sizes.min() >= 1


@pytest.mark.parametrize("pattern", PATTERNS)
def test_grades_have_the_proportions_of_the_original(
    pattern: str, block: dict[str, Examples]
) -> None:
    share = np.bincount(block[pattern].y.astype(int), minlength=5) / 8000
    np.testing.assert_allclose(share, [0.26, 0.36, 0.28, 0.08, 0.02], atol=0.03)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_about_half_of_the_cells_are_zero_and_none_is_missing(
    pattern: str, block: dict[str, Examples]
) -> None:
    X = block[pattern].X
    assert 0.4 < (X == 0).mean() < 0.6
    assert np.isfinite(X).all()
    assert (X >= 0).all()


def test_the_beginning_does_not_depend_on_how_many_rows_are_asked_for(
    block: dict[str, Examples],
) -> None:
    few = generate(PATTERNS["a"], 3, 0, 1000)
    np.testing.assert_array_equal(few.X, block["a"].X[:1000])
    np.testing.assert_array_equal(few.y, block["a"].y[:1000])


def test_threads_do_not_change_a_bit(block: dict[str, Examples]) -> None:
    one = generate(PATTERNS["a"], 3, 0, 8000, threads=1)
    np.testing.assert_array_equal(one.X, block["a"].X)
    np.testing.assert_array_equal(one.y, block["a"].y)


def test_other_seeds_and_splits_give_other_rows(block: dict[str, Examples]) -> None:
    for seed, split in ((4, 0), (3, 1)):
        other = generate(PATTERNS["a"], seed, split, 1000)
        assert not np.array_equal(other.y, block["a"].y[:1000])
        assert not np.array_equal(other.X, block["a"].X[:1000])


def test_quick_profile_has_its_sizes_prices_and_mark() -> None:
    splits = YahooSim().prepare(DataFolder("."), "quick", 0, 0).complete()
    assert [len(s) for s in (splits.train, splits.valid, splits.test)] == [12000, 4000, 6000]
    assert splits.prices.everything == 16948
    assert splits.prices.split == 0.25
    assert splits.prices.tree == 0
    assert splits.task is Task.RANKING
    assert splits.stand_in
    assert YahooSim.stand_in_for == YahooSimB.stand_in_for == "yahoo"


def test_paper_profile_has_exactly_the_original_sizes() -> None:
    assert ROWS["paper"] == (473134, 71083, 165660)
    assert int(query_sizes(0, 0, 473134).sum()) == 473134
    assert 18000 < len(query_sizes(0, 0, 473134)) < 21000
