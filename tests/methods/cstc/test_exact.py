"""The paper's synthetic problem is solved exactly, by the tree of its second figure."""

import numpy as np
import pytest
from bench_methods.cstc import ASTC, CSCC, CSTC, CSTCSingle
from bench_methods.cstc.tree import Shape, TreePenalty, initialise, optimise
from bench_models.descent import DescentSettings
from bench_models.problem import Problem
from helpers.cstc_cases import cost_and_error, learned, synthetic, tradeoff

SEEDS = range(4)
LETTER = {"base": None, "constant": False}  # phi(x) = x, no constant
EITHER = [LETTER, {"base": None}]


@pytest.mark.parametrize("how", EITHER, ids=["letter", "constants"])
@pytest.mark.parametrize("lam", [0.075, 0.08, 0.09])
@pytest.mark.parametrize("seed", SEEDS)
def test_each_row_buys_both_signs_and_its_own_expert_at_no_error(seed, lam, how):
    splits = synthetic(seed)
    model = learned(CSTC(tradeoff=tradeoff(splits, lam), **how), splits)
    cost, error = cost_and_error(model, splits)
    assert model.facts["lambda"] == pytest.approx(lam, rel=1e-12)
    assert model.facts["nodes"] == 7
    assert cost.tolist() == [12.0] * 4000
    assert error < 1e-18


@pytest.mark.parametrize("seed", SEEDS)
def test_the_tree_is_that_of_the_papers_figure(seed):
    splits = synthetic(seed)
    n = len(splits.train)
    problem = Problem(
        columns=np.ascontiguousarray(splits.train.X.T),
        y=splits.train.y,
        weight=np.full(n, 1 / n),
        share=np.full(n, 1 / n),
        tree_cost=np.zeros(6),
        sensor_cost=splits.prices.sensor,
        needs=np.eye(6),
        slope=10.0,
    )
    penalty, shape = TreePenalty(0.08, 1e-3), Shape.balanced(3)
    start = initialise(
        problem, penalty, shape, upward=0.5, constant=False, cut_off=1e-4, iterations=200
    )
    tree = optimise(problem, penalty, start, DescentSettings(constant=False)).model
    root = start.weights[0]
    assert root[:2] == pytest.approx([1.93, 0.91], abs=0.06)
    assert not tree.weights[:3, 2:].any()  # the first two levels buy signs only
    assert tree.weights[0, :2] == pytest.approx([1.95, 0.93], abs=0.06)
    assert abs(tree.threshold[0]) < 0.1
    assert tree.threshold[1:3] == pytest.approx([1.8, -1.8], abs=0.2)
    # leaves in the order ++, +-, -+, --: each has a weight on its own expert alone
    assert (tree.weights[3:, 2:] != 0).tolist() == np.eye(4, dtype=bool).tolist()


def test_rescaled_labels_change_neither_routes_nor_purchases():
    splits = synthetic(0)
    learner = CSTC(tradeoff=tradeoff(splits, 0.08), **LETTER)
    # labels and features in other units: the same weights
    for part in (splits.train, splits.valid, splits.test):
        part.X[:] *= 1024
        part.y[:] *= 1024
    cost, error = cost_and_error(learned(learner, splits), splits)
    assert cost.tolist() == [12.0] * 4000
    assert error < 1e-12


def test_one_classifier_cannot_do_it():
    splits = synthetic(0)
    model = learned(CSTCSingle(tradeoff=tradeoff(splits, 0.08), **LETTER), splits)
    cost, error = cost_and_error(model, splits)
    assert (cost[0], round(error)) == (2.0, 1)
    everything = learned(CSTCSingle(tradeoff=0.0, **LETTER), splits)
    cost, error = cost_and_error(everything, splits)
    assert cost[0] == 42.0
    assert error > 0.3


@pytest.mark.parametrize("how", EITHER, ids=["letter", "constants"])
@pytest.mark.parametrize("rate", [0.03, 0.035, 0.045])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_greedy_tree_solves_it_too(seed, rate, how):
    splits = synthetic(seed)
    cost, error = cost_and_error(
        learned(ASTC(tradeoff=tradeoff(splits, rate), **how), splits), splits
    )
    assert cost.tolist() == [12.0] * 4000
    assert error < 1e-18


def test_a_chain_buys_the_expert_of_the_highest_quadrant_alone():
    splits = synthetic(0)
    cost, error = cost_and_error(
        learned(CSCC(base=None, tradeoff=tradeoff(splits, 0.08)), splits), splits
    )
    highest = (splits.test.X[:, :2] == 1).all(axis=1)
    assert cost.tolist() == np.where(highest, 12.0, 2.0).tolist()
    assert error == pytest.approx(0.75, abs=0.06)  # three quadrants keep their variance of 1
