"""The l1 path against scikit-learn, its optimality conditions and hand calculations."""

from dataclasses import replace

import numpy as np
import pytest
from bench_methods.linear import L1
from bench_methods.linear.l1 import MarginalPrices
from bench_models.l1_kernels import descend
from helpers.boosted_cases import complete, fit, mean_cost, path, standardised
from helpers.fakes import FakeContext
from hypothesis import given, settings
from hypothesis import strategies as st

from bench_core import DiscountGroup, Examples, Task, price_list

EXACT = L1(points=12, refit=False, least=0.02, steps=20000, tolerance=1e-9)


@pytest.mark.parametrize("copies", [False, True])
def test_the_regression_path_is_the_lasso_of_columns_divided_by_their_cost(copies):
    from sklearn.linear_model import Lasso

    train = complete(Task.REGRESSION, copies=copies)
    z, y, m = standardised(train), train.y, train.weights
    constant = np.average((y - np.average(y, weights=m)) ** 2, weights=m) / 2
    unit = 0.5 * np.array([1, 5, 20, 50]) / 76  # the constant's loss in units of the variance
    for p in path(fit(EXACT, train, Task.REGRESSION), train)[1:]:
        peer = Lasso(alpha=p.point["tradeoff"], tol=1e-14, max_iter=100000)
        peer.fit(z / unit, y / np.sqrt(2 * constant), sample_weight=m)
        expected = peer.predict(z / unit) * np.sqrt(2 * constant)
        assert p.scores == pytest.approx(expected, abs=1e-4)  # six digits of it
        assert p.point["features"] == np.count_nonzero(peer.coef_)


@pytest.mark.parametrize("task", [Task.BINARY, Task.MULTICLASS])
def test_the_path_of_classes_is_the_l1_logistic_regression_of_scaled_columns(task):
    from sklearn.linear_model import LogisticRegression

    train = complete(task)
    z, y = standardised(train), train.y.astype(int)
    share = np.bincount(y) / 200
    unit = -float(share @ np.log(share)) * np.array([1, 5, 20, 50]) / 76
    for p in path(fit(EXACT, train, task), train)[2::4]:
        # saga is slow on columns of very different size, so the penalty is not folded into C
        scaled = z / unit * unit.min()
        peer = LogisticRegression(
            l1_ratio=1.0,
            C=1 / (200 * p.point["tradeoff"] * unit.min()),
            solver="saga",
            tol=1e-9,
            max_iter=100000,
            random_state=0,
        ).fit(scaled, y)
        wanted = peer.predict_proba(scaled)
        binary = task is Task.BINARY
        got = np.stack([-p.scores, p.scores], axis=1) / 2 if binary else p.scores
        got = np.exp(got) / np.exp(got).sum(axis=1, keepdims=True)
        assert got == pytest.approx(wanted, abs=2e-4)


@pytest.mark.parametrize("task", [Task.REGRESSION, Task.BINARY, Task.MULTICLASS])
def test_a_working_set_of_many_columns_ends_at_the_same_path(task, monkeypatch):
    rng, outputs = np.random.default_rng(0), 3 if task is Task.MULTICLASS else 2
    X = rng.normal(size=(60, 80)).astype(np.float32)
    y = np.argsort(np.argsort(X[:, 0] + X[:, 7] + rng.normal(size=60))) * outputs // 60
    train, at = Examples(X, y.astype(np.float64)), price_list(rng.uniform(0.5, 3, 80))
    learner = L1(points=8, refit=False, least=0.05, steps=5000, tolerance=1e-9)

    whole = learner.fit(train, train, at, FakeContext(task, outputs))
    monkeypatch.setattr("bench_models.l1_regression.ALL", 8)  # of 80
    part = learner.fit(train, train, at, FakeContext(task, outputs))
    assert part.weights == pytest.approx(whole.weights, abs=1e-5)
    assert part.bias == pytest.approx(whole.bias, abs=1e-5)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_descent_ends_where_the_conditions_of_optimality_hold(seed, d):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(d + 3, d))
    gram, slope, penalty = A.T @ A / d, rng.normal(size=d), rng.exponential(size=d)
    b = rng.normal(size=d)
    descend(gram, slope - gram @ b, penalty, b, 100000, 1e-13)
    gradient = gram @ b - slope
    assert np.allclose(gradient[b != 0], (-penalty * np.sign(b))[b != 0], atol=1e-8)
    assert np.all(np.abs(gradient[b == 0]) <= penalty[b == 0] + 1e-8)


def test_refitted_weights_are_least_squares_on_the_chosen_features():
    train = complete(Task.REGRESSION, copies=True)
    model = fit(L1(), train, Task.REGRESSION)
    root = np.sqrt(train.weights)
    for p, weights in zip(path(model, train), model.weights, strict=True):
        chosen = weights[0] != 0
        A = np.c_[np.ones(len(train)), train.X[:, chosen].astype(float)]
        best = np.linalg.lstsq(A * root[:, None], train.y * root)[0]
        assert p.scores == pytest.approx(A @ best, abs=1e-4)


def test_refitted_weights_of_classes_are_the_unpenalised_ones():
    from sklearn.linear_model import LogisticRegression

    train = complete(Task.BINARY)
    train = replace(train, y=np.where(np.arange(200) % 7 == 0, 1 - train.y, train.y))
    model = fit(L1(tolerance=1e-7, steps=5000), train, Task.BINARY)
    z = standardised(train)
    for p, weights in list(zip(path(model, train), model.weights, strict=True))[1:]:
        chosen = weights[0] != 0
        peer = LogisticRegression(C=1e6, tol=1e-10, max_iter=10000).fit(z[:, chosen], train.y)
        assert p.scores == pytest.approx(peer.decision_function(z[:, chosen]), abs=1e-3)


def test_free_features_are_used_without_penalty_from_the_first_point():
    train = complete(Task.REGRESSION)
    at = price_list(np.array([0.0, 5.0, 0.0, 50.0]))
    first = path(fit(L1(refit=False), train, Task.REGRESSION, at), train)[0]
    assert mean_cost(first, at) == 0
    A = np.c_[np.ones(200), train.X[:, [0, 2]].astype(float)]
    assert first.scores == pytest.approx(A @ np.linalg.lstsq(A, train.y)[0], abs=1e-4)


def test_where_everything_is_free_all_are_charged_alike():
    assert MarginalPrices(price_list(np.zeros(4))).charges().tolist() == [0.25] * 4
    assert MarginalPrices(price_list(np.array([1.0, 3.0]))).charges().tolist() == [0.25, 0.75]
    train = complete(Task.REGRESSION)
    points = path(fit(L1(), train, Task.REGRESSION, price_list(np.zeros(4))), train)
    assert points[-1].point["features"] == 4


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_size_of_labels_and_columns_does_not_matter(scale):
    train = complete(Task.REGRESSION)
    big = replace(train, y=train.y * scale, X=(train.X * np.float32(1024)).astype(np.float32))
    one, two = (path(fit(L1(), t, Task.REGRESSION), t) for t in (train, big))
    assert [dict(p.point) for p in one] == [
        {**p.point, "tradeoff": pytest.approx(p.point["tradeoff"])} for p in two
    ]
    assert two[-1].scores / scale == pytest.approx(one[-1].scores, rel=1e-6, abs=1e-6)


def test_a_feature_is_charged_its_price_alone_until_others_paid_for_all_its_sensors():
    group = DiscountGroup(members=(0, 1), later=(3.0, 1.0))
    at = price_list(
        np.array([5.0, 3.0, 4.0, 0.0]), discounted=[group], derived={3: [1, 2]}
    )  # in all 2 + 3 + 1 + 4 = 10
    marginal = MarginalPrices(at)
    assert marginal.charges() == pytest.approx([0.5, 0.3, 0.4, 0.7])
    assert not marginal.buy(np.array([[0.0, -2.0, 0.0, 0.0]]))
    assert marginal.charges() == pytest.approx([0.5, 0.3, 0.4, 0.7])  # 3 still wants for 2
    assert marginal.buy(np.array([[0.0, 1.0, 0.5, 0.1]]))
    assert marginal.charges() == pytest.approx([0.5, 0.3, 0.4, 0.0])
    assert not marginal.buy(np.array([[0.0, 0.0, 0.0, 9.0]]))  # who paid first pays on


ORTHOGONAL = np.array([[1, 1, 1], [-1, 1, -1], [1, -1, -1], [-1, -1, 1]], dtype=np.float32)


def soft(of, by):
    return float(np.sign(of) * max(abs(of) - by, 0))


@pytest.mark.parametrize(
    ("at", "second"),
    [
        (price_list(np.array([4.0, 4.0, 6.0]), shared=[[0, 1]]), 0.0),
        (
            price_list(
                np.array([4.0, 5.0, 4.0]),
                discounted=[DiscountGroup(members=(0, 1), later=(1.0, 2.0))],
            ),
            0.5,
        ),
        (price_list(np.array([4.0, 0.0, 6.0]), derived={1: [0]}), 0.0),
    ],
    ids=["shared", "discounted", "derived"],
)
def test_what_costs_nothing_more_is_not_charged(at, second):
    assert at.everything == 10
    train = Examples(ORTHOGONAL, ORTHOGONAL.astype(float) @ np.array([0.8, 0.1, 0.5]))
    size = np.sqrt(0.8**2 + 0.1**2 + 0.5**2)
    prices_now = (0.4, second, float(at.feature_price()[2]) / 10)
    model = fit(EXACT, train, Task.REGRESSION, at)
    assert len(model.points) == EXACT.points + 1
    for point, weights in list(zip(model.points, model.weights, strict=True))[1:]:
        half = point["tradeoff"] * size / 2
        wanted = [soft(b, half * c) for b, c in zip((0.8, 0.1, 0.5), prices_now, strict=True)]
        assert weights[0] == pytest.approx(wanted, abs=1e-5)
