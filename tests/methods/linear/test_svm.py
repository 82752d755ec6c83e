"""Kernel machines against scikit-learn's decision functions."""

from dataclasses import replace

import numpy as np
import pytest
from bench_methods.linear import RBFSVM, AverageKernelSVM
from bench_methods.linear.svm import descriptors, sampled
from helpers.boosted_cases import complete, examples, fit, mean_cost, path, prices, standardised
from sklearn.svm import SVC

from bench_core import DiscountGroup, Examples, Task, price_list


def test_its_scores_are_the_decision_function_of_scikit_learn():
    train = complete(Task.BINARY)
    z = standardised(train)
    (only,) = path(fit(RBFSVM(C=3.0, gamma=0.4), train, Task.BINARY), train)
    peer = SVC(C=3.0, gamma=0.4).fit(z, train.y)
    assert only.scores == pytest.approx(peer.decision_function(z), rel=0, abs=1e-9)
    assert dict(only.point) == {"features": 4}


def test_the_default_width_is_one_over_the_number_of_varying_columns():
    train = complete(Task.BINARY)
    z = standardised(train)
    X = train.X.copy()
    X[:, 1] = 7
    (only,) = path(fit(RBFSVM(C=1.0), replace(train, X=X), Task.BINARY), replace(train, X=X))
    peer = SVC(C=1.0, gamma=1 / 3).fit(z[:, [0, 2, 3]], train.y)
    assert only.scores == pytest.approx(peer.decision_function(z[:, [0, 2, 3]]), rel=0, abs=1e-9)
    assert mean_cost(only, prices()) == 71  # 1 + 20 + 50, the constant one is not read


def test_classes_are_told_from_the_rest_one_by_one():
    train = complete(Task.MULTICLASS)
    z = standardised(train)
    (only,) = path(fit(RBFSVM(C=2.0), train, Task.MULTICLASS), train)
    for k in range(3):
        peer = SVC(C=2.0, gamma=0.25).fit(z, train.y == k)
        assert only.scores[:, k] == pytest.approx(peer.decision_function(z), rel=0, abs=1e-9)


def test_an_average_of_kernels_is_the_machine_on_the_averaged_matrix():
    train = complete(Task.BINARY)
    z = standardised(train)
    at = price_list(np.array([1.0, 5.0, 5.0, 50.0]), shared=[[1, 2]])

    def kernel(a, b):
        squares = (a[:, None, :] - b[None, :, :]) ** 2
        pair = np.exp(-(squares[..., 1] + squares[..., 2]) / 2)
        return (np.exp(-squares[..., 0]) + pair + np.exp(-squares[..., 3])) / 3

    (only,) = path(fit(AverageKernelSVM(), train, Task.BINARY, at), train)
    peer = SVC(C=10.0, kernel="precomputed").fit(kernel(z, z), train.y)
    assert only.scores == pytest.approx(peer.decision_function(kernel(z, z)), rel=0, abs=1e-9)
    assert mean_cost(only, at) == 56


def test_descriptors_are_features_joined_by_sensors():
    at = price_list(
        np.array([1.0, 8.0, 2.0, 6.0, 3.0, 3.0, 0.0]),
        discounted=[DiscountGroup((1, 3), (5.0, 3.0))],
        shared=[[4, 5]],
        derived={6: [0, 2]},
    )
    assert [g.tolist() for g in descriptors(at)] == [[0, 2, 6], [1, 3], [4, 5]]


def test_more_rows_than_allowed_are_sampled_by_the_seed():
    train = examples(Task.BINARY)
    learner = RBFSVM(max_rows=40)
    one, again, other = (
        path(fit(learner, train, Task.BINARY, seed=s), train)[0].scores.tolist() for s in (0, 0, 1)
    )
    assert one == again
    assert one != other


def test_a_row_of_many_copies_is_sampled_more_often():
    train = Examples(
        np.arange(4, dtype=np.float32)[:, None], np.zeros(4), multiplicity=np.array([97, 1, 1, 1])
    )
    drawn = [sampled(train, 1, np.random.default_rng(s)).X[0, 0] for s in range(200)]
    assert np.mean(np.array(drawn) == 0) == pytest.approx(0.97, abs=0.05)


def test_calibrated_scores_order_rows_as_margins_do_and_have_less_loss():
    train = complete(Task.BINARY, n=600)
    half = replace(train, X=train.X[:300], y=train.y[:300])
    rest = replace(train, X=train.X[300:], y=train.y[300:])
    (plain,), (odds,) = (
        path(fit(RBFSVM(C=0.1, probability=p), half, Task.BINARY), rest)
        for p in ("margin", "platt")
    )
    assert np.argsort(plain.scores).tolist() == np.argsort(odds.scores).tolist()
    z = 2 * rest.y - 1
    assert np.logaddexp(0, -z * odds.scores).mean() < np.logaddexp(0, -z * plain.scores).mean()
