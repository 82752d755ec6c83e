"""The whole chain on letters: boosting, then each learner on its trees."""

from functools import cache

import numpy as np
import pytest
from bench_methods.cstc import ASTC, CSCC, CSTC, CSTCSingle
from bench_methods.gbrt import GBRT
from helpers.boosted_cases import mean_cost, path
from helpers.fakes import FakeContext
from helpers.real_cases import letters

from bench_core import Examples, Task, price_list

PRICES = price_list(np.ones(16), split=0.025)
BASE = GBRT(trees=60, l2=0.0)


@cache
def fitted(folder):
    """Accuracy and mean cost per row of each learner on the test rows."""
    train, test = letters(folder)
    train, valid = (
        Examples(train.X[:5000], train.y[:5000]),
        Examples(train.X[5000:7000], train.y[5000:7000]),
    )
    boosted = BASE.fit(train, valid, PRICES, FakeContext(Task.BINARY, 2))
    found = {"gbrt": judged(boosted, test, PRICES)}
    for kind in (CSTCSingle, CSCC, CSTC, ASTC):
        context = FakeContext(Task.BINARY, 2, models={BASE: boosted}, threads=2)
        model = kind(base=BASE, tradeoff=0.1).fit(train, valid, PRICES, context)
        found[kind.name] = judged(model, test, PRICES)
    return found


def judged(model, test, prices):
    last = path(model, test)[-1]
    return float(((last.scores > 0) == (test.y > 0.5)).mean()), mean_cost(last, prices)


@pytest.mark.parametrize("name", ["cstc-single", "cscc", "cstc", "astc"])
def test_on_letters_it_is_no_worse_than_its_trees_at_no_higher_cost(real_data, name):
    plain, plain_cost = fitted(real_data)["gbrt"]
    right, cost = fitted(real_data)[name]
    assert right > plain - 0.005
    assert cost <= plain_cost + 1e-9


def test_on_letters_a_tree_of_classifiers_beats_a_single_one(real_data):
    found = fitted(real_data)
    assert found["cstc"][0] > found["cstc-single"][0] + 0.005
    assert found["astc"][0] > found["cstc-single"][0]
