"""lear: its labels, its inputs, and the sentinels that it keeps."""

import numpy as np
import pytest
from bench_methods.early_exit import Lear
from bench_methods.gbrt import GBRT
from bench_models.boosting import prefix_chain
from helpers.boosted_cases import examples, fit, path, prices
from helpers.cronus_cases import Fixed
from helpers.random_trees import random_ensemble
from helpers.staged_cases import D

from bench_core import Examples, Prices, Queries, Task, UsageError


def fitted(train, base, at=None, **how):
    return fit(Lear(base=Fixed(base), **how), train, Task.RANKING, at)


def boosted(train, trees=30):
    return fit(GBRT(trees=trees), train, Task.RANKING).ensemble


def test_classifiers_learn_who_is_relevant_and_ends_among_the_best():
    train = examples(Task.RANKING, n=2000)
    trees = boosted(train)
    model = fitted(train, trees, sentinels=(15,), k=3, relevant_grade=2, trees=30)
    queries = train.queries
    chain = prefix_chain(trees, [15, 30], prices(), {})
    _, walked = chain.stage_by_stage(train.features)
    final = walked.score
    keep = np.zeros(len(train), dtype=bool)
    for i, j in zip(queries.boundaries[:-1], queries.boundaries[1:], strict=True):
        for r in range(i, j):
            keep[r] = (final[i:j, 0] > final[r, 0]).sum() < 3 and train.y[r] >= 2
    likely = next(p for p in path(model, train) if p.point.get("threshold") == 0.5)
    stays = likely.scores == final[:, 0]
    assert np.mean(stays == keep) > 0.9


def test_a_query_is_as_large_in_training_as_in_serving_whatever_its_copies():
    """Documents of queries of four are relevant, of queries of twelve not, and these count ten
    times: a classifier that saw 120 in training would take twelve for four."""
    rng = np.random.default_rng(0)
    sizes = np.repeat([4, 12], 60)
    small = np.repeat(sizes == 4, sizes)
    X = rng.random((len(small), D)).astype(np.float32)
    copies = np.where(small, 1, 10).astype(np.int64)
    train = Examples(X, small.astype(float), Queries.from_sizes(sizes), copies)
    noise = random_ensemble(rng, trees=6, features=D, leaves=4)
    model = fitted(train, noise, Prices.additive(np.ones(D)), sentinels=(3,), k=1000)
    likely = next(p for p in path(model, train) if p.point.get("threshold") == 0.5)
    full = path(model, train)[-1]
    np.testing.assert_array_equal(likely.scores == full.scores, small)


def test_sentinels_without_trees_behind_them_are_dropped():
    train = examples(Task.RANKING)
    assert fitted(train, boosted(train)).facts["exits"] == [30]
    assert fitted(train, boosted(train), sentinels=(5, 30)).facts["exits"] == [5, 30]
    assert len(path(fitted(train, boosted(train)), train)) == 1


def test_a_base_with_several_outputs_is_refused():
    many = random_ensemble(np.random.default_rng(0), trees=3, features=4, outputs=2)
    with pytest.raises(UsageError, match="2 outputs, not one"):
        fitted(examples(Task.RANKING), many)
