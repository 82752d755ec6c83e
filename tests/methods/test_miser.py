"""Greedy Miser against its impurity, written out, and its claims on real costs."""

import numpy as np
import pytest
from bench_methods.miser import GreedyMiser
from helpers.boosted_cases import examples, fit, path, prices
from helpers.random_trees import used_features

from bench_core import DiscountGroup, Examples, Task, price_list


def stump(tradeoff, train, at, **more):
    """The features of the first stumps, one per tree."""
    learner = GreedyMiser(depth=1, min_rows=1, tradeoff=tradeoff, **{"trees": 1, **more})
    ensemble = fit(learner, train, Task.REGRESSION, at).ensemble
    return [int(f) for f in ensemble.feature if f >= 0]


def one_good_one_fair():
    """Feature 0 explains most, feature 1 nearly as much, both together everything."""
    grid = np.array([(a, b) for a in (0, 1) for b in (0, 1)] * 25, dtype=np.float32)
    return Examples(grid, 1.1 * grid[:, 0] + 1.0 * grid[:, 1])


def test_it_prefers_a_cheap_fair_feature_and_then_goes_on_with_it():
    train, at = one_good_one_fair(), price_list(np.array([10.0, 1.0]))
    # feature 0 explains 55% of the constant's loss for 10/11 of the tradeoff, feature 1 45%
    assert stump(0.0, train, at) == [0]
    assert stump(0.8, train, at, trees=5, learning_rate=0.5) == [1] * 5


def test_a_feature_bought_once_is_free_for_all_later_trees():
    train, at = one_good_one_fair(), price_list(np.array([1.0, 1.0]))
    # 0.02 x the constant's loss is what both features cost; soon only free gains are left
    used = stump(0.02, train, at, trees=200)
    assert set(used) == {0, 1}
    assert len(used) > 50


def test_of_a_discounted_group_the_second_feature_costs_its_own_sensor_only():
    train = one_good_one_fair()
    apart = price_list(np.array([10.0, 10.0]))
    group = price_list(np.array([10.0, 10.0]), discounted=[DiscountGroup((0, 1), (0.5, 0.5))])

    def lam(at):  # a tradeoff that makes one unit of cost equally expensive
        return 0.04 * at.everything

    assert set(stump(lam(apart), train, apart, trees=3)) == {0}
    assert set(stump(lam(group), train, group, trees=3)) == {0, 1}


def test_all_classes_share_what_is_bought_of_a_discounted_group():
    """Class 0 is feature 0, the others differ by feature 1. Per row: feature 0 gains 1/8 in class
    0's first tree; where it is 1, feature 1 then gains 1/16 in the other classes' trees."""
    grid = np.array([(a, b) for a in (0, 1) for b in (0, 1)] * 50, dtype=np.float32)
    train = Examples(grid, grid[:, 0] * (1 + grid[:, 1]).astype(float))
    entropy = 0.5 * np.log(2) + 0.5 * np.log(4)

    def used(at):
        learner = GreedyMiser(trees=3, tradeoff=0.009 * at.everything / entropy)  # tau 0.009
        model = fit(learner, train, Task.MULTICLASS, at)
        trees = model.ensemble
        tested = {k: set[int]() for k in range(3)}
        for t in range(trees.trees):
            tested[int(trees.output[t])] |= {int(f) for f in used_features(trees, t)}
        return tested, float(path(model, train)[-1].bills["model"].feature_cost(at, 200)[0])

    ten = np.array([10.0, 10.0])
    assert used(price_list(ten)) == ({0: {0}, 1: {0}, 2: {0}}, 10.0)
    group = price_list(ten, discounted=[DiscountGroup((0, 1), (0.5, 0.5))])
    assert used(group) == ({0: {0}, 1: {0, 1}, 2: {0, 1}}, 10.5)


def test_the_released_charge_splits_every_node_to_the_full_depth():
    train = examples(Task.REGRESSION)
    learner = GreedyMiser(trees=2, depth=3, charge="node", tradeoff=50.0, min_rows=1)
    ensemble = fit(learner, train, Task.REGRESSION).ensemble
    assert np.count_nonzero(ensemble.feature < 0) == 2 * 8


def test_lambda_is_tau_times_the_number_of_rows_and_copies():
    train = examples(Task.REGRESSION)
    facts = fit(GreedyMiser(trees=1), train, Task.REGRESSION).facts
    assert facts["lambda"] == pytest.approx(300 * facts["tau"])
    assert facts["tau"] == pytest.approx(0.1 * train.y.var() / 2 / prices().everything)
