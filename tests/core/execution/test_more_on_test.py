"""Who costs more on test than on validation by more than chance: fair models are not marked."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench_core import Examples, Queries
from bench_core.execution import more_on_test
from bench_core.execution.more_on_test import DRAWS, LEVEL, as_on_test, costs_more_on_test
from bench_core.execution.predict import Path
from bench_core.execution.score import SplitScore
from bench_core.results.records import PointRow


def judged(*costs: Any, queries: Any = None, copies: Any = None) -> Any:
    """Paths, splits and scores of points with these costs of rows (p, n), of validation and
    test."""
    paths, parts, scores = {}, {}, {}
    for name, cost in zip(("valid", "test"), costs, strict=True):
        cost = np.atleast_2d(np.asarray(cost, dtype=float))
        p, n = cost.shape
        of = Queries.from_sizes(np.full(n // queries, queries)) if queries else None
        own = None if copies is None else copies[name]
        parts[name] = Examples(np.zeros((n, 1), np.float32), np.zeros(n), of, own)
        weights = parts[name].weights
        points = tuple({"trees": k} for k in range(p))
        none = np.zeros(p)
        paths[name] = Path(points, none, cost, none, none, np.zeros((p, 1)), np.zeros((p, 0)), 0.0)
        rows = [
            PointRow(k, points[k], name, {}, mean, 0.0, mean, tail, most, 1)
            for k, (mean, tail, most) in enumerate(
                (
                    float(np.average(one, weights=weights)),
                    float(np.quantile(one, 0.95, method="inverted_cdf")),
                    float(one.max()),
                )
                for one in cost
            )
        ]
        scores[name] = SplitScore(tuple(rows), n, (), np.ones(n))
    return paths, SimpleNamespace(**parts), scores


def found(*costs: Any, **more: Any) -> bool:
    return costs_more_on_test(*judged(*costs, **more))


def test_costs_that_are_the_same_for_all_rows_are_compared_as_they_are() -> None:
    assert found(np.full(50, 1.0), np.full(50, 1.3))
    assert not found(np.full(50, 1.3), np.full(50, 1.3))
    assert not found(np.full(50, 1.3), np.full(50, 1.0))
    third = np.full(50, 0.1) + 0.2
    assert not found(np.full(50, 0.3), third)  # the same but for rounding


def test_an_excess_that_chance_makes_is_none_and_a_greater_one_is() -> None:
    rng = np.random.default_rng(0)
    cost = rng.exponential(size=(2, 400))
    cost *= [[1 / cost[0].mean()], [1.15 / cost[1].mean()]]  # the error of the difference is 0.07
    assert not found(*cost)
    assert found(cost[0], cost[1] + 0.3)


def test_more_rows_in_the_tail_are_found_where_the_mean_is_the_same() -> None:
    valid = np.r_[np.full(960, 1.0), np.full(40, 9.0)]
    chance = np.r_[np.full(940, 1.0), np.full(60, 9.0)]  # 6%, two errors more
    more = np.r_[np.full(880, 0.5), np.full(120, 7.3)]
    assert more.mean() < valid.mean()
    assert not found(valid, chance)
    assert found(np.full(1000, 1.316), more)


def test_one_costly_point_of_many_is_found() -> None:
    rng = np.random.default_rng(1)
    rows = rng.exponential(size=(2, 500))
    paths = [np.linspace(0.5, 2, 40)[:, None] * own for own in rows]
    assert not found(*paths)
    paths[1][17] += 0.5
    assert found(*paths)


@pytest.mark.parametrize(("valid", "test"), [(100, 1000), (1000, 100), (300, 300)])
def test_a_fair_model_with_few_costly_rows_is_not_found_more_often_than_is_said(
    valid: int, test: int
) -> None:
    """One row in 200 costs 100 times as much; none of them may be among the validation rows."""
    marked, rng = 0, np.random.default_rng(1)
    for _ in range(300):
        cost = np.where(rng.random((3, valid + test)) < 1 / 200, 100.0, 1.0)
        marked += found(cost[:, :valid], cost[:, valid:])
    assert marked <= 3  # 300 times 0.1% are 0.3; more than 3 have a chance of 1 in 4000


def test_rows_of_a_query_are_shuffled_together() -> None:
    """Of few queries with many rows alike a difference is chance that of so many rows is none."""
    rng = np.random.default_rng(2)
    level = rng.exponential(size=24)
    cost = np.repeat(level, 50)
    valid, test = cost[: 12 * 50], cost[12 * 50 :] + 0.5
    assert found(valid, test)
    assert not found(valid, test, queries=50)


def test_copies_of_a_row_are_rows() -> None:
    valid, test = np.ones(100), np.ones(100)
    valid[:20] = test[:20] = 5.0
    one = {"valid": np.ones(100, int), "test": np.ones(100, int)}
    assert not found(valid, test, copies=one)
    assert found(valid, test, copies=one | {"test": np.where(test > 1, 30, 1)})


def test_the_share_of_shuffles_is_that_of_all_ways_to_split_the_rows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(more_on_test, "DRAWS", 4000)
    cost = np.array([1.0, 2, 4, 8, 9, 3, 7, 20, 11, 12, 13, 30])
    apart = (cost - cost.mean())[:, None]
    every = np.array([sum(apart[[*part], 0]) for part in combinations(range(12), 6)])
    test = np.arange(12) >= 6
    for share in (0.02, 0.3):
        reach = float(np.quantile(every, 1 - share))
        monkeypatch.setattr(more_on_test, "LEVEL", share * 1.4)
        assert more_on_test._seldom(apart, test, reach)
        monkeypatch.setattr(more_on_test, "LEVEL", share * 0.7)
        assert not more_on_test._seldom(apart, test, reach)


def test_many_rows_are_shuffled_in_groups_of_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    seldom = more_on_test._seldom

    def seldom_seen(apart: Any, test: Any, reach: float) -> bool:
        seen.append((len(test), int(test.sum())))
        return seldom(apart, test, reach)

    monkeypatch.setattr(more_on_test, "_seldom", seldom_seen)
    monkeypatch.setattr(more_on_test, "MOST_UNITS", 100)
    cost = np.random.default_rng(3).exponential(size=1000)
    assert found(cost[:400], cost[400:] + 0.5)
    assert seen == [(100, 60)]


def test_a_point_costs_on_validation_what_it_costs_on_test_where_that_is_more() -> None:
    _, _, scores = judged([[1.0, 1.0, 4.0], [5.0, 5.0, 8.0]], [[3.0, 3.0, 3.0], [2.0, 2.0, 11.0]])
    valid = as_on_test(scores)
    assert [row.total_cost for row in valid.rows] == [3.0, 6.0]
    assert [row.feature_cost for row in valid.rows] == [3.0, 6.0]
    assert [row.cost_p95 for row in valid.rows] == [4.0, 11.0]
    assert [row.cost_max for row in valid.rows] == [4.0, 11.0]
    assert valid.raised.tolist() == [1.0, 0.0]
    assert {row.split for row in valid.rows} == {"valid"}


def test_the_level_can_be_reached_by_that_many_shuffles() -> None:
    assert LEVEL * (DRAWS + 1) >= 2
