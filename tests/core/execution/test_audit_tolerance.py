"""How far the replay audit lets two predictions of the same rows be apart: what rounding does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import models

from bench_core import Examples, Prices, Queries
from bench_core.costs.shipped import PerQueryPrices
from bench_core.execution.audit import replay
from bench_core.execution.predict import predict_split

PRICES = Prices.additive(np.array([1.0, 2, 3, 4, 5, 6]), split=0.5)


def data(n: int = 600, copies: bool = False) -> Examples:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, models.D)).astype(np.float32)
    multiplicity = rng.integers(1, 4, n) if copies else None
    return Examples(X, np.zeros(n), Queries(np.arange(0, n + 1, 5)), multiplicity)


def honest(size: float, drift: float = 0.0) -> models.Scripted:
    """Scores of about ``size``, to which the whole block adds a share of about ``drift``."""

    def say(X: Any, features: Any, point: int) -> Any:
        scores, mask = models.honest(X, features, point)
        return size * (scores + drift * scores.mean()), mask

    return models.Scripted(say)


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_other_queries_may_move_a_score_by_rounding_and_no_more(size: float) -> None:
    found = replay(honest(size, 1e-12), data(), PRICES, 0, "full", seed="s")
    assert found.word == "verified"
    found = replay(honest(size, 1e-5), data(), PRICES, 0, "full", seed="s")
    assert "its scores change with the block" in found.reason


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize(("kept", "what"), [("scores", "scores"), ("cost", "costs")])
def test_a_row_may_differ_from_the_trial_by_rounding_and_no_more(
    kept: str, what: str, size: float
) -> None:
    """Whatever the scores' size: costs stay about 10."""
    model, examples = honest(size), data()
    path = predict_split(model, examples, PRICES, 0)
    values = getattr(path, kept)[1]
    largest = np.abs(values).max()
    values[7] += 1e-12 * largest
    assert replay(model, examples, PRICES, 0, "full", path=path).word == "verified"
    values[7] += 1e-6 * largest
    found = replay(model, examples, PRICES, 0, "full", path=path)
    assert found.reason == (f"at {{'step': 2}}: its {what} change with the block a query stands in")


@pytest.mark.parametrize("above", [2.3, -1.3])
def test_huge_scores_of_some_rows_open_no_tolerance_for_others(above: float) -> None:
    """Of one row in a hundred, of nine in ten."""

    def counts_rows(X: Any, features: Any, point: int) -> Any:
        place = np.arange(len(X)) - len(X) / 2 + 0.5
        return np.where(X[:, 0] > above, 1e15, place), models.bought(len(X), 0)

    model, examples = models.Scripted(counts_rows), data()
    path = predict_split(model, examples, PRICES, 0)
    for mode in ("sample", "full"):
        found = replay(model, examples, PRICES, 0, mode, path=path)
        assert "its scores change with the block a query stands in" in found.reason


def test_scores_that_are_all_zero_agree_with_the_trials() -> None:
    model, examples = honest(0.0), data()
    path = predict_split(model, examples, PRICES, 0)
    assert replay(model, examples, PRICES, 0, "full", path=path).word == "verified"


@pytest.mark.parametrize(("mode", "word"), [("sample", "sampled"), ("full", "verified")])
def test_rows_that_stand_for_copies_are_charged_as_in_the_trial(mode: str, word: str) -> None:
    """A query's price is shared by its rows, copies included."""
    model, examples = honest(1.0), data(copies=True)
    prices = PerQueryPrices(PRICES, np.arange(models.D) < 3)
    path = predict_split(model, examples, prices, 0)
    assert replay(model, examples, prices, 0, mode, path=path).word == word
