"""Points that are left out early change no draw."""

from __future__ import annotations

import numpy as np
import pytest

from bench_core.statistics.bootstrap import Candidates, Units, draw_all
from bench_core.statistics.choices import at_budget
from bench_core.statistics.contenders import contenders


def many(rng: np.random.Generator, points: int, m: int = 300) -> Candidates:
    hard = rng.normal(0, 1, m)
    cost = rng.lognormal(1, 1, (points, 1)) * rng.lognormal(0, 0.2, (points, m))
    skill = np.log(cost.mean(axis=1, keepdims=True)) + rng.normal(0, 0.2, (points, 1))
    quality = skill + hard + rng.normal(0, 0.2, (points, m))
    unit = Units(quality, cost, np.ones(m), rng.integers(1, 4, m) * 1.0)
    return Candidates(unit, unit)


@pytest.mark.parametrize("higher", [True, False])
def test_draws_are_those_of_all_points(higher: bool) -> None:
    rng = np.random.default_rng(0)
    found = [many(rng, 30) for _ in range(4)]
    budgets = (0.05, 1.0, float(found[0].valid.cost[3].mean()), 5.0, np.inf)
    wanted, got = (
        draw_all(found, [at_budget(b, higher) for b in budgets], 300, higher=known)
        for known in (None, higher)
    )
    for a, b in zip(wanted, got, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_without_a_limit_between_them_the_better_of_two_points_is_left() -> None:
    quality = np.array([[1.0, 1.1, 0.9, 1.0], [9.0, 9.1, 8.9, 9.0]], dtype=np.float32)
    cost = np.array([[1.0, 1.0, 1.1, 0.9], [4.0, 4.1, 3.9, 4.0]], dtype=np.float32)
    of = quality, cost, np.ones((2, 4), dtype=np.float32), True
    assert contenders(*of, None).tolist() == [0, 1]
    assert contenders(*of, [2.0, np.inf]).tolist() == [0, 1]
    assert contenders(*of, [0.1, 9.0]).tolist() == [1]
    assert contenders(*of, [np.inf]).tolist() == [1]
