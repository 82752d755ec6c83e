"""What differs by rounding alone decides nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import models

from bench_core import Examples, price_list
from bench_core.execution.predict import predict_split
from bench_core.execution.rounding import levelled, slack
from bench_core.execution.score import score_split
from bench_core.metrics import parse_metric


def test_neighbours_within_rounding_are_equal_and_all_others_keep_their_bits() -> None:
    scores = np.array([3.0, -2.0, 3.0 + 1e-9, 0.1 + 0.2, 3.0 + 5e-9, 1e-20, 0.3, 3.1, -1e300])
    assert levelled(scores).tolist() == [3.0, -2.0, 3.0, 0.3, 3.0 + 5e-9, 1e-20, 0.3, 3.1, -1e300]
    dense = np.random.default_rng(1).normal(size=100_000)
    assert np.mean(levelled(dense) != dense) < 0.001


def test_a_chain_of_neighbours_is_one_level() -> None:
    assert set(levelled(1.0 + 1e-10 * np.arange(1000)).tolist()) == {1.0}


def test_what_rounding_may_turn_is_no_side_of_zero() -> None:
    scores = np.array([1e-12, -1e-12, *np.linspace(1, 2, 298)])
    assert levelled(scores)[:2].tolist() == [0.0, 0.0]


def test_of_several_classes_each_row_stands_for_itself() -> None:
    scores = np.array([[1.0, 1.0 + 1e-10, 0.0], [1.0 + 1e-10, 5.0, 1e6], [0.0, 0.0, 0.0]])
    found = levelled(scores)
    assert found[0].tolist() == [1.0, 1.0, 0.0]
    assert found[1:].tolist() == scores[1:].tolist()


@pytest.mark.parametrize("scores", [np.zeros(4), np.zeros((2, 3)), np.ones(1)])
def test_nothing_is_made_of_nothing(scores: Any) -> None:
    assert levelled(scores).tolist() == scores.tolist()
    assert np.isfinite(slack(scores)).all()


@pytest.mark.parametrize("size", [1e-12, 1e-9])
def test_the_place_of_a_row_breaks_no_ties(size: float) -> None:
    def say(X: Any, features: Any, point: int) -> Any:
        place = np.arange(len(X)) / len(X) - 0.5
        return np.sign(X[:, 0]) * (1 + size * place * np.sign(X[:, 0])), models.bought(len(X), 0)

    X = np.random.default_rng(2).normal(size=(200, models.D)).astype(np.float32)
    examples, prices = Examples(X, (np.arange(200) > 99).astype(float)), price_list(np.ones(6))
    path = predict_split(models.Scripted(say, 1), examples, prices, 2)
    of = path, examples, prices, [parse_metric("auc")], "test"
    plain, level = (score_split(*of, level=it).rows[0].metrics["auc"] for it in (False, True))
    path.scores[:] = np.sign(X[:, 0])
    assert level == score_split(*of).rows[0].metrics["auc"]
    assert plain > level + 0.2
