"""Falls from validation to test: on made values that fall, and on such that do not."""

from __future__ import annotations

import numpy as np
import pytest

from bench_core.statistics.bootstrap import Candidates, Units
from bench_core.statistics.repeats import Repeat
from bench_core.statistics.split_shift import falling, falls

Rng = np.random.Generator


def units(quality: np.ndarray) -> Units:
    count = quality.shape[1]
    return Units(quality, np.ones_like(quality), np.ones(count), np.ones(count))


def candidates(valid: np.ndarray, test: np.ndarray) -> Candidates:
    return Candidates.of(units(valid), units(test), np.ones(len(valid)))


def right(rng: Rng, points: int, rows: int, chance: float) -> np.ndarray:
    """Which rows many equal points of one path, that differ a little, have right."""
    base = rng.random(rows) < chance
    return np.where(rng.random((points, rows)) < 0.1, rng.random((points, rows)) < chance, base)


@pytest.mark.parametrize(("valid", "test"), [(115, 113), (200, 2000), (1000, 100)])
def test_the_best_of_many_equal_points_is_named_no_oftener_than_promised(
    valid: int, test: int
) -> None:
    rng = np.random.default_rng(1)
    found = [
        falls(candidates(right(rng, 40, valid, 0.8), right(rng, 40, test, 0.8)), True, 1000)
        for _ in range(400)
    ]
    # 400 at one in a thousand: 4 or more come by chance once in a thousand runs
    assert sum(found) < 4


def test_splits_of_different_noise_are_no_fall() -> None:
    rng = np.random.default_rng(2)
    found = 0
    for _ in range(300):
        # test values are means of 20 rows each, as a store condenses them
        test = right(rng, 5, 20_000, 0.7).reshape(5, 1000, 20).mean(axis=2)
        found += falls(candidates(right(rng, 5, 60, 0.7), test), True, 1000)
    assert found < 4


def test_a_fall_is_named_in_either_direction_of_the_metric() -> None:
    rng = np.random.default_rng(3)
    fallen = candidates(right(rng, 20, 300, 0.99), right(rng, 20, 1000, 0.8))
    kept = candidates(right(rng, 20, 300, 0.9), right(rng, 20, 1000, 0.9))
    repeats = [Repeat(0, seed, "x", {"fallen": fallen, "kept": kept}) for seed in (0, 1)]
    assert falling(repeats, higher=True) == {"fallen"}
    errors = [
        Repeat(0, 0, "x", {
            name: candidates(1 - one.valid.quality, 1 - one.test.quality)
            for name, one in (("fallen", fallen), ("kept", kept))
        })
    ]  # fmt: skip
    assert falling(errors, higher=False) == {"fallen"}
    # a rise is none
    assert falling(errors, higher=True) == set()


def test_a_metric_without_values_by_row_has_no_fall() -> None:
    one = candidates(np.array([[0.9]]), np.array([[0.5]]))
    assert not falls(one, True, 1000)
