"""Cascades and trees of classifiers on boosted trees of real data."""

from functools import cache

import numpy as np
import pytest
from bench_methods.cronus import Cronus, CronusInit, CronusSingle
from bench_methods.cstc import ASTC, CSCC, CSTC, CSTCSingle
from bench_methods.gbrt import GBRT
from helpers.boosted_cases import mean_cost, path
from helpers.fakes import FakeContext, fit_after_needs
from helpers.real_cases import documents, letters, precision

from bench_core import Examples, Task, price_list

BASE = GBRT(trees=60, l2=0.0)
RHO = {"tradeoff": 0.03, "rho_last": (0.003,)}
TREES = [kind(base=BASE, tradeoff=0.1) for kind in (CSTCSingle, CSCC, CSTC, ASTC)]
CASCADES = [CronusSingle(base=BASE, **RHO)]
CASCADES += [kind(base=BASE, rho_first=(0.003,), **RHO) for kind in (CronusInit, Cronus)]


def last(model, test, prices):
    """Scores of the full model, and the mean cost of a row."""
    full = path(model, test)[-1]
    return full.scores, mean_cost(full, prices)


@cache
def on_letters(folder):
    """Accuracy and mean cost per row of each learner on test rows, and the facts it reports."""
    known, test = letters(folder)
    train, valid = (Examples(known.X[a:b], known.y[a:b]) for a, b in ((0, 5000), (5000, 7000)))
    prices = price_list(np.full(16, 10.0), split=0.25)
    context = FakeContext(Task.BINARY, 2, threads=2)
    found = {}
    for learner in (BASE, *TREES, *CASCADES):
        model = fit_after_needs(learner, train, valid, prices, context)
        context.models = {**context.models, learner: model}
        scores, cost = last(model, test, prices)
        found[learner.name] = float(((scores > 0) == (test.y > 0.5)).mean()), cost, model.facts
    return found


@pytest.mark.parametrize("learner", [*TREES, *CASCADES], ids=lambda one: one.name)
def test_on_letters_it_is_no_worse_than_its_trees_at_no_higher_cost(learner, real_data):
    plain, plain_cost, _ = on_letters(real_data)["gbrt"]
    right, cost, _ = on_letters(real_data)[learner.name]
    assert right > plain - 0.005
    assert cost <= plain_cost + 1e-9


def test_on_letters_a_tree_of_classifiers_beats_a_single_one(real_data):
    found = on_letters(real_data)
    assert found["cstc"][0] > found["cstc-single"][0] + 0.005
    assert found["astc"][0] > found["cstc-single"][0]


def test_on_letters_optimising_lowers_the_loss_of_the_initialised_cascade(real_data):
    before, after = (
        on_letters(real_data)[name][2]["objective"] for name in ("cronus-init", "cronus")
    )
    assert after < 0.9 * before


def test_on_the_ranking_sample_a_cascade_keeps_the_precision_at_half_the_cost():
    train, test, prices = documents()
    context = FakeContext(Task.RANKING, 2, threads=2)
    learner = CronusInit(base=BASE, tradeoff=0.3, rho_first=(0.01,), rho_last=(0.01,))
    model = fit_after_needs(learner, train, train, prices, context)
    plain, plain_cost = last(context.models[BASE], test, prices)
    scores, cost = last(model, test, prices)
    assert cost < 0.5 * plain_cost
    assert precision(scores, test) > 0.9 * precision(plain, test)
