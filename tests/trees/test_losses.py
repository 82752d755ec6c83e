"""Gradients against differences of the loss, and LambdaRank against its sums over pairs."""

import itertools

import numpy as np
import pytest
from bench_trees.losses import Labels, LambdaRank, Logistic, Softmax, Squared
from bench_trees.threads import Workers
from helpers.grown import logistic, softmax, squared

CREW = Workers(1)
Y = np.array([0.0, 1, 2, 1, 0])


CASES = [
    (Squared(), squared, Y, 1.0),
    (Logistic(), logistic, Y % 2, 1.0),
    (Softmax(3), softmax, Y, 3 / 2),
]


@pytest.mark.parametrize(("loss", "value", "y", "factor"), CASES)
def test_gradients_are_the_derivatives_of_the_loss(loss, value, y, factor):
    f = np.random.default_rng(0).normal(size=(loss.outputs, len(y)))
    gradient, hessian = loss.gradients(f, Labels(y), CREW)
    hessian = np.ones_like(f) if hessian is None else hessian
    step = 1e-4
    for k in range(loss.outputs):
        up, down = f.copy(), f.copy()
        up[k] += step
        down[k] -= step
        slope = (value(up, y) - value(down, y)) / (2 * step)
        curve = (value(up, y) - 2 * value(f, y) + value(down, y)) / step**2
        np.testing.assert_allclose(gradient[k], slope, atol=1e-6)
        np.testing.assert_allclose(hessian[k], factor * curve, atol=1e-5)


@pytest.mark.parametrize(("loss", "value", "y", "factor"), CASES)
def test_the_mean_is_over_copies(loss, value, y, factor):
    f = 50 * np.random.default_rng(1).normal(size=(loss.outputs, len(y)))
    copies = np.array([1, 2, 3, 1, 1])
    each, labels = np.arange(len(y)).repeat(copies), Labels(y, copies)
    expected = value(f, y)[each].mean()
    assert loss.mean(f, labels) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("loss", "value", "y", "factor"), CASES)
def test_the_base_is_the_best_constant(loss, value, y, factor):
    copies = np.array([1, 2, 3, 1, 1])
    base = loss.base(Labels(y, multiplicity=copies))

    def total(constant):
        f = np.repeat(constant[:, None], len(y), axis=1)
        return float((copies * value(f, y)).sum())

    for k in range(loss.outputs):
        for step in (-1e-3, 1e-3):
            moved = base.copy()
            moved[k] += step
            assert total(moved) > total(base)


def test_extreme_scores_and_single_classes_stay_finite():
    y = np.zeros(2)
    assert np.isfinite(Logistic().base(Labels(y))).all()
    assert np.isfinite(Softmax(2).base(Labels(y))).all()
    gradient, hessian = Logistic().gradients(np.array([[1e5, -1e5]]), Labels(y), CREW)
    assert gradient.tolist() == [[1.0, pytest.approx(0.0, abs=1e-200)]]
    assert np.isfinite(hessian).all()


def pairwise_lambdas(f, y, truncation):
    """One query, by its definition: every pair, its swap's change of NDCG."""
    order = sorted(range(len(y)), key=lambda i: -f[i])
    rank = {doc: place for place, doc in enumerate(order)}
    ideal = sum(
        (2**g - 1) / np.log2(2 + k) for k, g in enumerate(sorted(y, reverse=True)[:truncation])
    )
    g, h, total = np.zeros(len(y)), np.zeros(len(y)), 0.0
    for a, b in itertools.permutations(range(len(y)), 2):
        if y[a] <= y[b] or min(rank[a], rank[b]) >= truncation or ideal == 0:
            continue
        swap = (2 ** y[a] - 2 ** y[b]) * abs(1 / np.log2(2 + rank[a]) - 1 / np.log2(2 + rank[b]))
        weight = swap / ideal
        if f.max() != f.min():
            weight /= 0.01 + abs(f[a] - f[b])
        p = 1 / (1 + np.exp(f[a] - f[b]))
        g[a] -= weight * p
        g[b] += weight * p
        h[[a, b]] += weight * p * (1 - p)
        total += 2 * weight * p
    scale = np.log2(1 + total) / total if total > 0 else 1.0
    return g * scale, h * scale


@pytest.mark.parametrize("truncation", [3, 30])
def test_lambdas_of_many_queries_do_not_depend_on_their_neighbours(truncation):
    """Queries of all lengths lie side by side, and one of more than LONG rows, which is ranked
    before, with shorter ones beside it; a call leaves nothing that changes the next one."""
    rng = np.random.default_rng(2)
    sizes = [*rng.integers(0, 20, 30), 33, 260, 64, 1]
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    y = rng.integers(0, 4, bounds[-1]).astype(float)
    loss, labels = LambdaRank(truncation), Labels(y, queries=bounds)
    for spread in (0.0, 1.0, 20.0):
        f = np.round(spread * rng.normal(size=len(y)), 1)
        gradient, hessian = loss.gradients(f[None, :], labels, CREW)
        again = loss.gradients(f[None, :], Labels(y, queries=bounds), CREW)
        np.testing.assert_array_equal([gradient, hessian], again)
        for begin, end in itertools.pairwise(bounds):
            if begin == end:
                continue
            g, h = pairwise_lambdas(f[begin:end], y[begin:end], truncation)
            np.testing.assert_allclose(gradient[0, begin:end], g, rtol=1e-12, atol=1e-15)
            np.testing.assert_allclose(hessian[0, begin:end], h, rtol=1e-12, atol=1e-15)
            alone = loss.gradients(
                f[None, begin:end], Labels(y[begin:end], queries=np.array([0, end - begin])), CREW
            )
            assert (gradient[:, begin:end] == alone[0]).all()


def test_scores_far_apart_have_finite_lambdas():
    y, f = np.array([0.0, 1, 2, 0]), np.array([[1e5, 0, -1e5, -1e5]])
    gradient, hessian = LambdaRank().gradients(f, Labels(y, queries=np.array([0, 4])), CREW)
    assert np.isfinite([gradient, hessian]).all()
    assert gradient[0, 0] > 0 > gradient[0, 2]


def test_a_copied_documents_lambda_is_the_mean_over_its_copies():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 6).astype(float)
    f = rng.integers(0, 3, 6) / 2.0
    copies = np.array([3, 1, 2, 1, 4, 1])
    labels = Labels(y, multiplicity=copies, queries=np.array([0, 6]))
    gradient, hessian = LambdaRank().gradients(f[None, :], labels, CREW)
    g, h = pairwise_lambdas(np.repeat(f, copies), np.repeat(y, copies), 30)
    row = np.repeat(np.arange(6), copies)
    np.testing.assert_allclose(gradient[0], np.bincount(row, g) / copies, rtol=1e-12)
    np.testing.assert_allclose(hessian[0], np.bincount(row, h) / copies, rtol=1e-12)
