"""The whole chain on real data: boosting, then each of the three learners on its trees."""

from functools import cache

import numpy as np
import pytest
from bench_methods.cronus import Cronus, CronusInit, CronusSingle
from bench_methods.gbrt import GBRT
from helpers.boosted_cases import mean_cost, path
from helpers.fakes import FakeContext, fit_after_needs
from helpers.real_cases import documents, letters, needs, precision

from bench_core import Examples, Task, price_list

KINDS = {"single": CronusSingle, "init": CronusInit, "optimised": Cronus}


@cache
def some_letters():
    train, test = letters(needs("letter").parent)
    train = Examples(train.X[:6000], train.y[:6000])
    return train, test, price_list(np.full(16, 10.0), split=0.25)


@cache
def fitted(data, task, tradeoff, rho):
    train, _, prices = data()
    context = FakeContext(task, 2, threads=2)
    base = GBRT(trees=60)
    models = {"gbrt": base.fit(train, train, prices, context)}
    context.models = {base: models["gbrt"]}
    for name, kind in KINDS.items():
        more = {} if kind is CronusSingle else {"rho_first": (rho,)}
        learner = kind(base=base, tradeoff=tradeoff, rho_last=(rho,), **more)
        models[name] = fit_after_needs(learner, train, train, prices, context)
    return models


def judged(model, test, prices):
    """Scores of the full model, and the mean cost of a row."""
    last = path(model, test)[-1]
    return last.scores, mean_cost(last, prices)


def test_on_the_ranking_sample_a_cascade_keeps_the_precision_at_half_the_cost():
    models = fitted(documents, Task.RANKING, 0.3, 0.01)
    _, test, prices = documents()
    plain, plain_cost = judged(models["gbrt"], test, prices)
    scores, cost = judged(models["init"], test, prices)
    assert cost < 0.5 * plain_cost
    assert precision(scores, test) > 0.9 * precision(plain, test)


def test_on_letters_every_learner_is_as_right_as_boosting_at_no_higher_cost():
    models = fitted(some_letters, Task.BINARY, 0.03, 0.003)
    _, test, prices = some_letters()
    plain, plain_cost = judged(models["gbrt"], test, prices)
    right = float(((plain > 0) == (test.y > 0.5)).mean())
    for name in KINDS:
        scores, cost = judged(models[name], test, prices)
        assert float(((scores > 0) == (test.y > 0.5)).mean()) > right - 0.005, name
        assert cost <= plain_cost, name


@pytest.mark.parametrize(
    ("data", "task", "tradeoff", "rho"),
    [(documents, Task.RANKING, 0.3, 0.01), (some_letters, Task.BINARY, 0.03, 0.003)],
)
def test_optimising_lowers_the_loss_of_the_initialised_cascade(data, task, tradeoff, rho):
    models = fitted(data, task, tradeoff, rho)
    before, after = models["init"].facts["objective"], models["optimised"].facts["objective"]
    assert after < 0.9 * before
