"""Purchases by information per price, against posteriors that are added up by brute force."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from bench_methods.bayes_cmi import MOST_VALUES, BayesCMI, chow_liu

from bench_core import STOP, Examples, Splits, Task, price_list
from bench_core.conformance.cases import fit, with_copies

PRICE = np.array([1.0, 2.0, 0.5, 1.5])
EXACT = BayesCMI(temperature=1.0, points=5, dependence="naive")


def drawn(n, classes, seed=0):
    """Rows of four features of three values that are independent given the class."""
    rng = np.random.default_rng(seed)
    prior = rng.dirichlet(np.full(classes, 5.0))
    shares = rng.dirichlet(np.full(3, 1.0), (4, classes))
    y = rng.choice(classes, n, p=prior)
    X = [[rng.choice(3, p=shares[j, k]) for j in range(4)] for k in y.tolist()]
    return Examples(np.array(X, np.float32), y.astype(float))


def fitted(learner, train, prices, valid=None):
    task = Task.BINARY if train.y.max() == 1 else Task.MULTICLASS
    return fit(learner, Splits(train, valid or train, train, prices, task).complete())


def states(values, d=4):
    """All rows of known values and NaN, and what of them is known."""
    cells = np.array(list(product([*map(float, range(values)), np.nan], repeat=d)), np.float32)
    return cells, ~np.isnan(cells)


def information(prior, shares, cells):
    """The posterior of a state and what each unknown feature tells, one joint share at a time."""
    weight = np.array(prior, float)
    for j, x in enumerate(cells):
        if not np.isnan(x):
            weight = weight * shares[j][:, int(x)]
    now, found = weight / weight.sum(), np.zeros(len(cells))
    for j in np.flatnonzero(np.isnan(cells)).tolist():
        for b in range(shares[j].shape[1]):
            share = (now * shares[j][:, b]).sum()
            after = now * shares[j][:, b] / share
            found[j] += share * (after * np.log(after / now)).sum()
    return now, found


def smoothed(train, classes, values):
    """Shares with a row added to each value and to the missing one."""
    count = Counter(
        (int(y), j, int(x))
        for row, y in zip(train.X, train.y, strict=True)
        for j, x in enumerate(row)
    )
    sizes = np.array([(train.y == k).sum() for k in range(classes)])
    table = [
        np.array(
            [
                [(count[k, j, b] + 1) / (sizes[k] + values + 1) for b in range(values + 1)]
                for k in range(classes)
            ]
        )
        for j in range(train.X.shape[1])
    ]
    return (sizes + 1) / (sizes.sum() + classes), table


@pytest.mark.parametrize("classes", [2, 3])
def test_choices_and_answers_are_those_of_all_shares_added_up(classes):
    train = drawn(400, classes)
    prior, shares = smoothed(train, classes, 3)
    policy = fitted(EXACT, train, price_list(PRICE)).policy
    cells, known = states(3)
    unlimited = np.full(len(cells), np.inf)
    for stop in (0.0, 0.2, 1.0):
        found = policy.act(cells, known, unlimited, stop)
        unit = PRICE.sum() / -(prior * np.log(prior)).sum()
        for row, own, choice in zip(cells, known, found, strict=True):
            _, told = information(prior, shares, row)
            worth = np.where(own, -1.0, told * unit / PRICE)
            assert choice == (worth.argmax() if worth.max() > stop else STOP)
    scores = policy.predict(cells, known)
    for row, score in zip(cells, scores, strict=True):
        now, _ = information(prior, shares, row)
        if classes == 2:
            assert score == pytest.approx(np.log(now[1] / now[0]))
        else:
            assert np.exp(score) / np.exp(score).sum() == pytest.approx(now)


def test_a_tree_answers_and_chooses_as_its_joint_shares_do():
    """Each variable copies its parent two times of three, so that the edges are found; then by
    brute force over all cells of the joint table that the forest's own shares make."""
    rng = np.random.default_rng(0)
    n, parents = 3000, (-1, 0, 0, 2)
    y = rng.integers(0, 2, n)
    X = np.zeros((n, 4), np.int64)
    X[:, 0] = np.where(rng.random(n) < 0.7, y, rng.integers(0, 3, n))
    for j in (1, 2, 3):
        again = rng.random(n) < 0.67
        X[:, j] = np.where(again, X[:, parents[j]], (rng.integers(0, 3, n) + y) % 3)
    train = Examples(X.astype(np.float32), y.astype(float))
    learner = BayesCMI(temperature=1.0, points=5)
    policy = fitted(learner, train, price_list(PRICE)).policy
    forest = policy.beliefs
    assert forest.parent.tolist() == list(parents)

    def share(v, above, b, k):
        """By counting: five rows more, divided as all rows of the class are."""
        own = (sum((X[:, v] == b) & (y == k)) + 1) / (sum(y == k) + 4)
        if parents[v] < 0:
            return float(own)
        among = (X[:, parents[v]] == above) & (y == k)
        return float((sum(among & (X[:, v] == b)) + 5 * own) / (sum(among) + 5))

    table = np.zeros((2, 4, 4, 4, 4))
    tables = {
        (v, a, b, k): share(v, a, b, k)
        for v, a, b, k in product(range(4), range(4), range(4), range(2))
    }
    for k, *x in product(range(2), *[range(4)] * 4):
        own = [tables[v, x[parents[v]] if parents[v] >= 0 else 0, x[v], k] for v in range(4)]
        table[(k, *x)] = forest.prior[k] * np.prod(own)
    cells, known = states(3)
    scores = policy.predict(cells, known)
    found = policy.act(cells, known, np.full(len(cells), np.inf), 0.0)
    for row, own, score, choice in zip(cells, known, scores, found, strict=True):
        some = table[
            (slice(None), *(int(x) if ok else slice(None) for x, ok in zip(row, own, strict=True)))
        ]
        left = np.flatnonzero(~own).tolist()
        now = some.reshape(2, -1).sum(axis=1)
        assert score == pytest.approx(np.log(now[1] / now[0]), abs=1e-9)
        worth = np.zeros(4)
        for axis, j in enumerate(left):
            both = some.sum(axis=tuple(1 + a for a in range(len(left)) if a != axis))
            both = both / both.sum()
            apart = both.sum(axis=1, keepdims=True) * both.sum(axis=0)
            worth[j] = (both * np.log(both / apart)).sum() / PRICE[j]
        assert choice == (worth.argmax() if left else STOP)


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
    prior, _ = smoothed(Examples(X[:, :0], y), 2, 2)
    pair = [
        [((y == k) & (X[:, 0] == a) & (X[:, 1] == b)).sum() + 1 for a in (0, 1) for b in (0, 1)]
        + [1] * 5
        for k in (0, 1)
    ]  # three bins each, the third one for missing cells
    shares = np.array(pair) / np.sum(pair, axis=1, keepdims=True)
    _, (told,) = information(prior, [shares], [np.nan])
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
    prior, shares = smoothed(train, 2, 3)
    model = fitted(EXACT, train, price_list(np.array([0.0, 2.0, 0.5, 1.5])))
    first, *_ = model.predict_path(train.features)
    assert first.bills["path"].acquired.unpack().sum(axis=1).tolist() == [1] * 400
    for row, score in zip(train.X[:20], first.scores[:20], strict=True):
        now, _ = information(prior, shares, [row[0], np.nan, np.nan, np.nan])
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


def test_the_path_begins_with_nothing_and_spends_more_and_more():
    train = drawn(400, 3)
    at = price_list(PRICE)
    costs = [
        p.bills["path"].feature_cost(at, 400).mean()
        for p in fitted(BayesCMI(points=20), train, at).predict_path(train.features)
    ]
    assert costs[0] == 0
    assert costs == sorted(costs)
    assert len(set(costs)) > 5


def test_copies_count_as_rows():
    train = drawn(200, 2)
    weighted, physical = with_copies(train)
    one, other = (
        fitted(BayesCMI(points=5), part, price_list(PRICE)) for part in (weighted, physical)
    )
    assert one.policy.stops == other.policy.stops
    assert np.array_equal(one.policy.beliefs.table, other.policy.beliefs.table)
