"""Early exit: every rule against its meaning document by document, thresholds, bills, real data."""

from dataclasses import replace

import numpy as np
import pytest
from bench_methods.early_exit import EarlyExit
from bench_methods.gbrt import GBRT
from bench_models.boosting import prefix_chain
from helpers.boosted_cases import examples, fit, mean_cost, path, prices
from helpers.cronus_cases import Fixed
from helpers.exit_cases import check_scores, random_exits, walk_documents
from helpers.random_trees import random_ensemble
from helpers.staged_cases import random_features
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_core import Task

SEEDS = st.integers(0, 2**32)
RULES = ("score", "rank", "capacity", "proximity", "class", "sentinel")
RANKING_RULES = ("score", "rank", "capacity", "proximity")


@settings(max_examples=150, deadline=None)
@given(SEEDS, st.sampled_from(RULES), st.booleans(), st.booleans())
def test_who_leaves_where_and_for_what_is_the_rules_meaning(seed, kind, grouped, classes):
    rng = np.random.default_rng(seed)
    model = random_exits(rng, kind, outputs=3 if classes and kind == "class" else 1)
    features = random_features(rng, grouped or kind == "sentinel")
    n = len(features)
    found = list(model.predict_path(features))
    assert [p.point for p in found] == [*model.points, model.full]
    for p, prediction in enumerate(found):
        setting = p if p < len(model.points) else None
        expected = walk_documents(model, features, setting)
        bill = prediction.bills["path"]
        bought = [set(np.flatnonzero(row).tolist()) for row in bill.acquired.unpack()]
        assert bought[:n] == [d.sensors for d in expected]
        assert np.broadcast_to(bill.splits, (n,)).tolist() == [d.splits for d in expected]
        assert np.broadcast_to(bill.trees, (n,)).tolist() == [d.trees for d in expected]
        check_scores(model, features, prediction.scores, expected)


def fitted(train, task, trees, **how):
    return fit(EarlyExit(base=Fixed(trees), **how), train, task)


def test_margins_fall_linearly_to_zero_at_the_end():
    train = examples(Task.RANKING)
    trees = random_ensemble(np.random.default_rng(0), trees=4, features=4)
    model = fitted(train, Task.RANKING, trees, every=1, thresholds=(0.0, 2.0))
    final = list(model.predict_path(train.features))[-1].scores
    expected = np.outer([0.0, 2.0], [1.0, 2 / 3, 1 / 3]) * np.std(final)
    np.testing.assert_allclose(model.rule.values, expected, rtol=1e-12)
    assert [p["threshold"] for p in model.points] == [0.0, 2.0]


def test_ranks_fall_linearly_from_the_threshold_to_k():
    train = examples(Task.RANKING)
    trees = random_ensemble(np.random.default_rng(0), trees=5, features=4)
    model = fitted(train, Task.RANKING, trees, every=1, rule="rank", k=5, thresholds=(25.0, 3.0))
    assert model.rule.values.tolist() == [[25.0, 20.0, 15.0, 10.0], [5.0] * 4]


def test_a_score_threshold_leaves_its_share_of_the_training_rows_below():
    train = replace(examples(Task.RANKING), multiplicity=np.repeat([1, 3], 150))
    trees = fit(GBRT(trees=8), train, Task.RANKING).ensemble
    model = fitted(train, Task.RANKING, trees, every=4, rule="score", thresholds=(0.5,))
    partial = trees.select(np.arange(4))
    bar = model.rule.values[0, 0]
    chain = prefix_chain(partial, [4], prices(), {})
    scores = list(chain.predict_path(train.features))[-1].scores
    mass = train.weights
    assert mass[scores < bar].sum() <= 0.5 * mass.sum() < mass[scores <= bar].sum()


def test_class_thresholds_that_everybody_exceeds_are_left_out():
    for task, least in ((Task.BINARY, 0.55), (Task.MULTICLASS, 0.4)):
        train = examples(task)
        model = fit(EarlyExit(base=GBRT(trees=6), every=2), train, task)
        assert model.points[0]["threshold"] == least


def test_for_classes_an_exit_comes_after_whole_iterations():
    train = examples(Task.MULTICLASS)
    model = fit(EarlyExit(base=GBRT(trees=7), every=3), train, Task.MULTICLASS)
    assert model.facts["exits"] == [9, 18, 21]


@pytest.mark.parametrize("rule", RANKING_RULES)
def test_the_full_model_is_the_base_bit_for_bit_and_exits_save(rule):
    train = examples(Task.RANKING)
    base = fit(GBRT(trees=30), train, Task.RANKING)
    model = fitted(train, Task.RANKING, base.ensemble, every=5, rule=rule, k=2)
    found = path(model, train)
    whole = path(base, train)[-1]
    assert found[-1].scores.tobytes() == whole.scores.tobytes()
    assert mean_cost(found[-1], prices()) == mean_cost(whole, prices())
    costs = [mean_cost(p, prices()) for p in found]
    assert costs == sorted(costs)
    assert costs[0] < costs[-1]
    for prediction in found[:-1]:
        same = prediction.scores == whole.scores
        left = prediction.bills["path"].trees < 30
        assert same[~left].all()


def test_an_ensemble_without_exits_has_the_full_model_only():
    train = examples(Task.RANKING)
    for trees in (0, 3):
        ensemble = random_ensemble(np.random.default_rng(0), trees=trees, features=4)
        (only,) = path(fitted(train, Task.RANKING, ensemble), train)
        assert only.point == {"trees": trees}
