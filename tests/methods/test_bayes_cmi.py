"""Purchases by information per price, against posteriors that are added up by brute force."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from bench_methods.bayes_cmi import MOST_VALUES, BayesCMI, chow_liu

from bench_core import STOP, Examples, Splits, Task, price_list
from bench_core.conformance.cases import fit

PRICE = np.array([1.0, 2.0, 0.5, 1.5])
EXACT = BayesCMI(temperature=1.0, points=5, dependence="naive")
ALONE, TREE = (-1, -1, -1, -1), (-1, 0, 0, 2)


def drawn(n, classes, seed=0, parents=ALONE):
    """Rows of four features of three values, each of its class alone or, two times of three, its
    parent's."""
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(classes, 5.0))
    shares = rng.dirichlet(np.full(3, 1.0), (4, classes))
    y = rng.choice(classes, n, p=prior)
    X = np.array([[rng.choice(3, p=shares[j, k]) for j in range(4)] for k in y.tolist()])
    for j, parent in enumerate(parents):
        if parent >= 0:
            X[:, j] = np.where(rng.random(n) < 0.67, X[:, parent], X[:, j])
    return Examples(X.astype(np.float32), y.astype(float))


def fitted(learner, train, prices, valid=None):
    task = Task.BINARY if train.y.max() == 1 else Task.MULTICLASS
    return fit(learner, Splits(train, valid or train, train, prices, task).complete())


def states(values, d=4):
    """All rows of known values and NaN, and what of them is known."""
    cells = np.array(list(product([*map(float, range(values)), np.nan], repeat=d)), np.float32)
    return cells, ~np.isnan(cells)


def joint(train, classes, parents=ALONE):
    """The joint shares (K, 4, 4, 4, 4) of class and cells, by counting. A row is added to each
    value and to the missing one; with a parent five rows, divided as all of the class are."""
    X, y = train.X.astype(int), train.y.astype(int)

    @cache
    def share(v, above, b, k):
        own = (sum((X[:, v] == b) & (y == k)) + 1) / (sum(y == k) + 4)
        if parents[v] < 0:
            return float(own)
        among = (X[:, parents[v]] == above) & (y == k)
        return float((sum(among & (X[:, v] == b)) + 5 * own) / (sum(among) + 5))

    table = np.zeros((classes, 4, 4, 4, 4))
    for k, *x in product(range(classes), *[range(4)] * 4):
        own = [share(v, x[u] if u >= 0 else 0, x[v], k) for v, u in enumerate(parents)]
        table[(k, *x)] = (sum(y == k) + 1) / (len(y) + classes) * np.prod(own)
    return table


def posterior(table, row):
    """Shares of the classes at these cells, and what each unknown one tells of the class."""
    some = table[(slice(None), *(slice(None) if np.isnan(x) else int(x) for x in row))]
    some = some / some.sum()
    found, left = np.zeros(len(row)), np.flatnonzero(np.isnan(row)).tolist()
    for axis, j in enumerate(left):
        both = some.sum(axis=tuple(1 + a for a in range(len(left)) if a != axis))
        apart = both.sum(axis=1, keepdims=True) * both.sum(axis=0)
        found[j] = (both * np.log(both / apart)).sum()
    return some.reshape(len(some), -1).sum(axis=1), found


@pytest.mark.parametrize(
    ("classes", "parents", "rows"), [(2, ALONE, 400), (3, ALONE, 400), (2, TREE, 3000)]
)
def test_choices_and_answers_are_those_of_the_joint_shares(classes, parents, rows):
    train = drawn(rows, classes, parents=parents)
    learner = EXACT if parents == ALONE else replace(EXACT, dependence="tree")
    policy = fitted(learner, train, price_list(PRICE)).policy
    assert policy.beliefs.parent.tolist() == list(parents)
    table = joint(train, classes, parents)
    prior = table.reshape(classes, -1).sum(axis=1)
    unit = PRICE.sum() / -(prior * np.log(prior)).sum()
    cells, known = states(3)
    scores, free = policy.predict(cells, known), np.full(len(cells), np.inf)
    chosen = [policy.act(cells, known, free, stop) for stop in (0.0, 0.2, 1.0)]
    for row, own, score, *choices in zip(cells, known, scores, *chosen, strict=True):
        now, told = posterior(table, row)
        worth = np.where(own, -1.0, told * unit / PRICE)
        expected = [worth.argmax() if worth.max() > stop else STOP for stop in (0.0, 0.2, 1.0)]
        assert choices == expected
        if classes == 2:
            assert score == pytest.approx(np.log(now[1] / now[0]), abs=1e-9)
        else:
            assert np.exp(score) / np.exp(score).sum() == pytest.approx(now)


def test_only_dependences_that_pay_for_their_shares_are_branches():
    rng = np.random.default_rng(0)
    y, codes = rng.integers(0, 2, 500), rng.integers(0, 8, (500, 3))
    codes[:, 2] = np.where(rng.random(500) < 0.9, codes[:, 0], codes[:, 2])
    parent, order = chow_liu(codes.T, y, np.ones(500), np.full(3, 8), 2)
    assert parent.tolist() == [-1, -1, 0]
    assert sorted(order.tolist()) == [0, 1, 2]
    assert order.tolist().index(0) < order.tolist().index(2)


def test_columns_of_one_sensor_are_one_variable_whose_combinations_are_counted():
    """y = x0 xor x1: neither tells anything alone, both together all. x2 tells a little."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (400, 3)).astype(np.float32)
    y = np.logical_xor(X[:, 0], X[:, 1]).astype(float)
    X[:, 2] = np.where(rng.random(400) < 0.6, y, 1 - y)
    at = price_list(np.array([5.0, 5.0, 1.0]), shared=[[0, 1]])
    model = fitted(EXACT, Examples(X, y), at)
    prior = (np.bincount(y.astype(int)) + 1) / (len(y) + 2)
    pair = [
        [((y == k) & (X[:, 0] == a) & (X[:, 1] == b)).sum() + 1 for a in (0, 1) for b in (0, 1)]
        + [1] * 5
        for k in (0, 1)
    ]  # three bins each, the third one for missing cells
    shares = np.array(pair) / np.sum(pair, axis=1, keepdims=True)
    _, (told,) = posterior(prior[:, None] * shares, np.array([np.nan]))
    start = np.full((1, 3), np.nan, np.float32)
    worth = model.policy.worth(start, np.zeros((1, 2), dtype=bool))[0]
    shared = int(at.sensors_of(0)[0])
    # at 5 of 6 of the price
    assert worth[shared] == pytest.approx(told / -(prior * np.log(prior)).sum() * 6 / 5)
    assert worth[shared] > 1
    *_, last = model.predict_path(Examples(X, y).features)
    assert ((last.scores > 0) == y).all()


def test_similar_combinations_are_joined_where_there_are_too_many():
    """Three columns of 8 bins and a missing one: 729 combinations. The sum of the columns alone
    tells the class, so that what is joined loses little."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20000, 3)).astype(np.float32)
    y = (rng.random(20000) < 1 / (1 + np.exp(-2 * X.sum(axis=1)))).astype(float)
    at = price_list(np.ones(3), shared=[[0, 1, 2]])
    half = Examples(X[:10000], y[:10000])
    model = fitted(EXACT, half, at)
    assert model.policy.beliefs.variables.sizes.max() <= MOST_VALUES + 2
    rest = Examples(X[10000:], y[10000:])
    *_, last = model.predict_path(rest.features)
    best = ((X[10000:].sum(axis=1) > 0) == rest.y).mean()
    assert ((last.scores > 0) == rest.y).mean() > best - 0.02


def test_free_columns_are_known_at_the_start():
    train = drawn(400, 2)
    table = joint(train, 2)
    model = fitted(EXACT, train, price_list(np.array([0.0, 2.0, 0.5, 1.5])))
    first, *_ = model.predict_path(train.features)
    assert first.bills["path"].acquired.unpack().sum(axis=1).tolist() == [1] * 400
    for row, score in zip(train.X[:20], first.scores[:20], strict=True):
        now, _ = posterior(table, np.array([row[0], *[np.nan] * 3]))
        assert score == pytest.approx(np.log(now[1] / now[0]))


def test_under_a_cap_the_best_of_what_can_be_paid_is_bought():
    train = drawn(400, 2, seed=3)
    policy = fitted(EXACT, train, price_list(PRICE)).policy
    cells, known = states(3)
    told = policy.worth(cells, known)
    for left in (0.4, 0.5, 1.0, 1.7):
        found = policy.act(cells, known, np.full(len(cells), left), 0.0)
        allowed = np.where(left >= PRICE, told, 0.0)
        assert np.array_equal(found, np.where(allowed.max(axis=1) > 0, allowed.argmax(axis=1), -1))


def test_one_temperature_undoes_what_copied_columns_count_twice():
    """Four copies of one noisy column: p(x | y)^4, so that T of all purchases would be 4; of the
    first one it is 1, and the fit lies between. Calibrated answers lose less than raw ones."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000).astype(float)
    x = np.where(rng.random(4000) < 0.7, y, 1 - y).astype(np.float32)
    part = Examples(np.tile(x[:, None], 4), y)
    at, losses = price_list(np.ones(4)), []
    for temperature in (None, 1.0):
        learner = BayesCMI(temperature=temperature, points=5, dependence="naive")
        model = fitted(learner, part, at)
        *_, last = model.predict_path(part.features)
        losses.append(np.logaddexp(0, (1 - 2 * y) * last.scores).mean())
    assert 1 < fitted(BayesCMI(dependence="naive"), part, at).policy.beliefs.temperature < 4
    assert losses[0] < losses[1]
