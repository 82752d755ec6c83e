"""AACO: plans on neighbours."""

from itertools import product

import numpy as np
from bench_methods.aaco import Aaco, AacoTree
from bench_methods.aaco.imitation import Imitation, Trajectories, boost_choices
from bench_methods.aaco.kernels import nearest
from bench_methods.aaco.planning import Oracle
from bench_models.dictionary import sums
from bench_trees import Settings
from helpers.fakes import FakeContext
from helpers.priced_cases import switched
from sklearn.metrics.pairwise import nan_euclidean_distances

from bench_core import STOP, Prices, Task

D = 4


def fitted(price, **settings):
    learner = Aaco(form="bayes", **settings)
    context = FakeContext(Task.BINARY, 2)
    return learner.fit(switched(500, 0), switched(200, 1), Prices.additive(price), context)


def test_neighbours_are_those_of_a_peer():
    rng = np.random.default_rng(0)
    rows, z = rng.normal(size=(2, 60, 5)).astype(np.float32)
    rows[rng.random(rows.shape) < 0.2] = np.nan
    z[:, 3:] = np.nan
    far = nan_euclidean_distances(z[:, :3], rows[:, :3])
    far[np.isnan(far)] = np.inf
    far[np.arange(60), np.arange(60)] = np.inf
    near = nearest(rows, z, np.arange(60), 7)
    found = np.take_along_axis(far, near, axis=1)
    assert np.allclose(found, np.sort(far, axis=1)[:, :7], rtol=1e-5)
    assert (near != np.arange(60)[:, None]).all()


def test_what_is_worth_nothing_alone_is_bought_first():
    model = fitted(np.ones(D))
    test = switched(400, 2)
    two = model.predict_capped(test.features, 2.0, Prices.additive(np.ones(D)))
    order = two.bills["path"].order
    assert (order[:, 0] == 0).all()
    counts = 1 + (test.X[:, 0] > 2)
    assert np.mean(order[np.arange(400), counts] == 1) > 0.97
    # the sign of the right column: Phi(2) = 0.977; of any one, half of that gain
    assert np.mean((two.scores > 0) == test.y) > 0.95
    one = model.predict_capped(test.features, 1.0, Prices.additive(np.ones(D)))
    assert (one.bills["path"].order[:, 0] == STOP).all()


def test_plans_are_the_best_of_all_sets():
    price = np.array([0.5, 1.0, 2.0, 0.7])
    policy = fitted(price, candidates=200, neighbours=15, rows=200).policy
    assert isinstance(policy, Oracle)
    X, own = switched(20, 3).X, policy
    bought = np.zeros((20, D), dtype=bool)
    bought[:, 0] = True
    cells = np.where(bought, X, np.float32(np.nan))
    for left, money in ((np.inf, 0.05), (2.0, 0.001), (0.8, 0.001), (0.1, 0.0)):
        found = policy.act(cells, bought, np.full(20, left), money)
        z = abs(cells[:, :1] - own.X[None, :, 0])
        for i in range(20):
            near = np.argsort(z[i], kind="stable")[:15]
            score, alone = {}, {}
            for more in product((False, True), repeat=D - 1):
                mask = np.array([True, *more])
                cost = price[1:] @ np.array(more)
                if cost > left:
                    continue
                made = np.tile(mask, (15, 1))
                shown = np.where(made, own.X[near], np.float32(np.nan))
                scores = own.predictor.cross_fitted(shown, made, own.part[near])
                loss = np.mean(np.log1p(np.exp((1 - 2 * own.y[near]) * scores)))
                score[more] = loss + money * cost
                alone[more] = loss
            best = min(score, key=score.__getitem__)
            singles = {
                j: alone[tuple(j == other for other in range(D - 1))]
                for j in range(D - 1)
                if best[j]
            }
            expected = 1 + min(singles, key=singles.__getitem__) if singles else STOP
            assert found[i] == expected


def test_trees_choose_as_the_oracle_does():
    oracle = fitted(np.ones(D), tradeoffs=(1.0, 0.1))
    context = FakeContext(Task.BINARY, 2)
    base = Aaco()
    context.models = {base: oracle}
    learner = AacoTree(base=base, most=3)
    price = Prices.additive(np.ones(D))
    model = learner.fit(switched(500, 0), switched(200, 1), price, context)
    test = switched(400, 2)
    prediction = model.predict_capped(test.features, 2.0, price)
    order = prediction.bills["path"].order
    assert (order[:, 0] == 0).all()
    counts = 1 + (test.X[:, 0] > 2)
    assert np.mean(order[np.arange(400), counts] == 1) > 0.95
    assert np.mean((prediction.scores > 0) == test.y) > 0.93


def test_at_one_price_of_money_the_trees_go_as_with_that_price():
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(500, 3)).astype(np.float32)
    cells[rng.random(cells.shape) < 0.3] = np.nan
    money = rng.choice([0.1, 1.0], 500)
    chosen = np.where(money == 1, STOP, np.where(np.nan_to_num(cells[:, 0]) > 0, 1, 2))
    none = np.zeros((500, 3), dtype=bool)
    states = Trajectories(np.arange(500), none, chosen, np.ones(500), money)
    X = np.hstack([cells, money[:, None].astype(np.float32)])
    choices = boost_choices(X, states, 3, Settings(trees=20), 1)
    marked = np.zeros(0, dtype=np.int64)
    policy = Imitation(choices, marked, None, Prices.additive(np.ones(3)), (1.0, 0.1))
    left = np.full(500, np.inf)
    for price in (1.0, 0.1):
        own = money == price
        found = policy.act(cells[own], none[own], left[own], price)
        assert np.mean(found == chosen[own]) > 0.97
        asked = X[own]
        peer = sums(choices, asked).argmax(axis=1)
        assert (np.where(peer == 3, STOP, peer) == found).all()
