"""Where a sampled audit looks most: against loops, and by how often it finds a rare lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import models

from bench_core import Examples, Prices, Queries
from bench_core.execution.audit import replay
from bench_core.execution.predict import Path, predict_split
from bench_core.execution.stakes import aimed, stakes_of

PRICES = Prices.additive(np.ones(models.D))


def path_of(scores: Any, cost: list[float]) -> Path:
    """A path with these scores (p, n) or (p, n, K), each point of one cost."""
    scores = np.asarray(scores, dtype=float)
    paid = np.array(cost)[:, None] * np.ones(scores.shape[1])
    points = tuple({"step": k} for k in range(len(scores)))
    zeros = np.zeros(len(scores))
    empty = np.zeros((len(scores), 1))
    return Path(points, scores, paid, zeros, zeros, empty, empty, 0.0)


def examples(y: Any, queries: Queries | None = None) -> Examples:
    return Examples(np.zeros((len(y), 2), np.float32), np.asarray(y, float), queries)


def stakes(path: Path, of: Examples, classes: int) -> Any:
    count = len(of) if of.queries is None else len(of.queries)
    return stakes_of(path, of, classes, np.arange(count))


def test_a_row_has_a_stake_where_a_point_gets_it_right_that_cheaper_ones_got_wrong() -> None:
    y = [1, 1, 0, 0, 0]
    scores = [[-1, 2, -2, 1, -3], [1.5, 2, -2, 1, -3], [1.5, 2, -2, 1, -3]]
    found = stakes(path_of(scores, [1, 2, 3]), examples(y), 2)
    assert found[1].argmax() == 0
    assert found[1, 0] > 1
    assert found[1, 3] < 0.5  # as wrong as before, though not as far from the others
    assert found[2].tolist() == [0] * 5  # no better than the cheaper one
    assert found[0, 0] == 0  # the best constant has rows of class 0 right
    assert found[0, 1] > 1


def test_of_points_that_cost_as_much_the_best_alone_has_stakes() -> None:
    y = [1, 0, 1, 0]
    worse, best = [1, -1, -1, 1], [1, -1, 1, -1]
    found = stakes(path_of([worse, best, worse], [2, 2, 2]), examples(y), 2)
    assert (found[0].sum(), found[2].sum()) == (0, 0)
    assert found[1].sum() > 0


@pytest.mark.parametrize("kind", ["classes", "numbers", "queries"])
def test_answers_of_every_task_are_compared_by_how_near_the_truth_they_are(kind: str) -> None:
    rng = np.random.default_rng(0)
    if kind == "classes":
        of, classes = examples(rng.integers(0, 3, 60)), 3
        truth = np.eye(3)[of.y.astype(int)]
    else:
        queries = Queries(np.arange(0, 61, 6)) if kind == "queries" else None
        of, classes, truth = examples(rng.normal(size=60), queries), 0, None
        truth = of.y
    noise = rng.normal(size=truth.shape)
    found = stakes(path_of([noise, truth, 0.5 * truth + noise], [1, 2, 3]), of, classes)
    assert found[1].sum() > 4 * found[0].sum()
    assert found[2].sum() == 0
    assert found.shape[1] == (10 if kind == "queries" else 60)


def test_units_are_drawn_once_and_by_their_stakes() -> None:
    rng, y = np.random.default_rng(1), np.tile([0.0, 1.0], 200)
    scores = np.where(y > 0.5, 1.0, -1.0)[None] * np.ones((2, 1))
    scores[0, :40] *= -1  # the second point gets these right alone
    path = path_of(scores, [1, 2])
    units, points = aimed(path, examples(y), 2, 100, rng)
    assert len({*units.tolist()}) == len(units) == 100
    assert all(point == (unit < 40) for unit, point in zip(units, points, strict=True))
    none, _ = aimed(path_of(np.zeros((2, 400)), [1, 2]), examples(np.zeros(400)), 2, 100, rng)
    assert len(none) == 0


def rarely(X: Any, features: Any, point: int) -> Any:
    """At one of forty points, each of which buys something else, the narrow answers are right."""
    mask = models.bought(len(X), *(c for c in range(models.D) if (point >> c) & 1))
    scores = np.where(mask, np.nan_to_num(X), 0.0).sum(axis=1)
    if point == 37:
        whole = np.nan_to_num(X).sum(axis=1)
        scores = np.where((np.abs(scores) < 0.1) & (scores * whole < 0), -scores, scores)
    return scores, mask


def found(aim: bool, say: Any = rarely, audits: int = 20) -> int:
    X = np.random.default_rng(2).normal(size=(3000, models.D)).astype(np.float32)
    of = Examples(X, (X.sum(axis=1) > 0).astype(float))
    model = models.Scripted(say, 40)
    path = predict_split(model, of, PRICES, 2)
    words = [
        replay(model, of, PRICES, 2, seed=f"{k}", path=path, aim=aim).word for k in range(audits)
    ]
    return words.count("failed")


def test_a_lie_at_one_point_of_many_is_found_more_often() -> None:
    assert found(True) >= found(False) + 6


def test_an_honest_model_passes_wherever_the_sample_looks() -> None:
    def honest(X: Any, features: Any, point: int) -> Any:
        return rarely(X, features, point) if point != 37 else rarely(X, features, 38)

    assert found(True, honest, 5) == 0


def test_half_of_the_sample_is_any_rows() -> None:
    """A lie that earns nothing is found as before, or nearly so."""

    def idle(X: Any, features: Any, point: int) -> Any:
        scores, mask = rarely(X, features, point if point != 37 else 38)
        return scores + (1e-6 * np.nan_to_num(X[:, 0]) if point == 8 else 0.0), mask

    assert found(True, idle, 10) == 10
