"""Cheap starts: points below the price of a strong feature."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from bench_methods.budget_forest.prune import BudgetPrune
from bench_methods.cegb import CEGB
from bench_methods.miser import GreedyMiser
from bench_models.priced_boosting import CheapStarts, first_purchase, rising
from helpers.boosted_cases import examples, fit, mean_cost, path, prices
from helpers.priced_cases import auc, strong_and_cheap

from bench_core import Prices, Task, price_list
from bench_core.conformance.tasks import fit as fit_splits
from bench_core.execution.predict import predict_split

PRICED = [
    GreedyMiser(trees=60, learning_rate=0.4),
    CEGB(trees=60),
    CEGB(trees=60, acquisition="all-rows"),
]


@pytest.mark.parametrize("learner", PRICED, ids=lambda one: one.name)
def test_two_cheap_features_are_bought_where_the_strong_one_cannot_be_paid(learner: Any) -> None:
    splits = strong_and_cheap()
    best = 0.5
    for tradeoff in (0.01, 0.1, 1.0):
        model = fit_splits(replace(learner, tradeoff=tradeoff), splits)
        found = predict_split(model, splits.test, splits.prices, 2)
        below = np.flatnonzero(found.cost.mean(axis=1) < 9)
        best = max([best, *(auc(found.scores[k], splits.test.y) for k in below)])
    assert best > 0.74  # .773 is possible


@pytest.mark.parametrize("learner", PRICED, ids=lambda one: one.name)
def test_the_chain_of_the_paper_stays_as_it_is(learner: Any) -> None:
    train = examples(Task.BINARY)
    both = fit(learner, train, Task.BINARY)
    alone = fit(replace(learner, cheap_starts=False), train, Task.BINARY)
    assert isinstance(both, CheapStarts)
    points = [p for p in path(both, train) if "cheap" not in p.point]
    assert len(points) <= 75
    for got in points:
        (same,) = (p for p in path(alone, train) if p.point == got.point)
        assert np.array_equal(got.scores, same.scores)
        assert mean_cost(got, prices()) == mean_cost(same, prices())


@pytest.mark.parametrize("learner", PRICED, ids=lambda one: one.name)
def test_features_are_offered_in_the_order_of_their_prices(learner: Any) -> None:
    """The first tree buys the feature of price 50: of 15 more, 5 may test that of price 1 alone, 5
    also that of 5, 5 also that of 20."""
    cheap, whole = fit(replace(learner, tradeoff=0.0), examples(Task.BINARY), Task.BINARY).models
    assert first_purchase(whole.ensemble, prices()) > 50
    assert cheap.ensemble.trees == 15
    trees = cheap.ensemble
    tested = [set(trees.feature[a:b]) - {-1} for a, b in pairwise(trees.start)]
    assert set.union(*tested[:5]) == {0}
    assert set.union(*tested[5:10]) <= {0, 1}
    assert 2 not in set.union(*tested[:10])
    assert 2 in set.union(*tested[10:])


def test_no_feature_is_offered_that_costs_more_than_the_first_purchase() -> None:
    """Where the first tree buys the features of price 1 and 5, that of 20 is not offered: of a
    quarter of 8 trees one is for each of two limits."""
    cheap, whole = fit(CEGB(trees=8, tradeoff=1.0), examples(Task.BINARY), Task.BINARY).models
    assert first_purchase(whole.ensemble, prices()) == 6
    assert cheap.ensemble.trees == 2


def test_limits_double_and_equal_prices_have_none() -> None:
    limits = rising(price_list(np.array([3.0, 0.0, 1.0, 2.0, 9.0])))
    assert [np.flatnonzero(one).tolist() for one in limits] == [[1, 2], [1, 2, 3], [0, 1, 2, 3]]
    assert rising(Prices.additive(np.ones(4))) == []
    assert rising(Prices.additive(np.zeros(4))) == []


def test_others_build_on_the_chain_of_all_features() -> None:
    train, base = examples(Task.BINARY), CEGB(trees=8)
    below = fit(base, train, Task.BINARY)
    pruned = fit(BudgetPrune(base=base, tradeoff=0.0), train, Task.BINARY, models={base: below})
    scores = [p.scores for p in path(pruned, train)]
    assert np.array_equal(scores[-1], path(below, train)[-1].scores)
