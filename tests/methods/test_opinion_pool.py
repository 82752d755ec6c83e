"""Pools of bought answers, on generated experts of known skill."""

import numpy as np
import pytest
from bench_methods.opinion_pool import OpinionPool, _weights

from bench_core import Examples, Features, SensorPrices, Task, price_list
from bench_core.datasets.splitting import hashed
from tests.helpers.fakes import FakeContext

K = 3
SKILL = -2.0, -1.0, 0.0
"""Log-odds of a right answer at confidence 0; at 1 they are 4 more."""


def drawn(n, seed):
    """Labels (n,), answers (n, 3) and confidences (n, 3)."""
    rng = np.random.default_rng(seed)
    y, confidence = rng.integers(0, K, n), rng.random((n, 3))
    right = rng.random((n, 3)) < 1 / (1 + np.exp(-np.array(SKILL) - 4 * confidence))
    wrong = (y[:, None] + rng.integers(1, K, (n, 3))) % K
    return y, np.where(right, y[:, None], wrong), confidence


def experts(n, seed, codes=False):
    """Answers and confidences of three experts: one-hot columns, or numbers of other meaning."""
    y, answers, confidence = drawn(n, seed)
    columns = []
    for answer, sure in zip(answers.T, confidence.T, strict=True):
        shown = [2.0 * ((answer + 1) % K)] if codes else [answer == c for c in range(K)]
        columns += [*shown, sure]
    return Examples(np.column_stack(columns).astype(np.float32), y.astype(np.float64))


def prices(codes=False, price=(1.0, 2.0, 8.0)):
    width = 2 if codes else K + 1
    base = price_list(np.ones(width * 3))
    return SensorPrices(
        base.start,
        np.repeat(np.arange(3), width).astype(np.int32),
        np.array(price),
        np.ones(width * 3),
    )


def fitted(codes=False, n=1500, price=(1.0, 2.0, 8.0), **settings):
    train = experts(n, 0, codes)
    of = prices(codes, price)
    context = FakeContext(task=Task.MULTICLASS, classes=K)
    return OpinionPool(**settings).fit(train, train, of, context), of


def curve(model, of, test):
    """Mean cost and accuracy of each point."""
    made = []
    for prediction in model.predict_path(Features(test.X)):
        cost = of.feature_cost(prediction.bills["path"].acquired).mean()
        made.append((cost, (prediction.scores.argmax(1) == test.y).mean()))
    return np.array(made)


@pytest.mark.parametrize("codes", [False, True])
def test_a_pool_beats_the_best_expert_and_rules_of_one_threshold(codes):
    model, of = fitted(codes)
    points = curve(model, of, experts(20000, 1, codes))
    y, answers, confidence = drawn(20000, 1)
    right = answers == y[:, None]
    assert points[-1][1] > right[:, 2].mean() + 0.02
    for threshold in (0.4, 0.6, 0.8):  # keep the answer of the first, else that of the second
        kept = confidence[:, 0] >= threshold
        rule = np.where(kept, right[:, 0], right[:, 1]).mean()
        cost = 1 + 2 * (~kept).mean()
        between = np.interp(cost, points[:, 0], points[:, 1])
        assert between > rule + 0.002
    assert points[0].tolist() == pytest.approx([0, 1 / K], abs=0.02)


def test_scores_are_log_odds_of_agreeing_and_contradicting_experts():
    model, _ = fitted()
    low, high = 0.1, 0.9
    rows = np.array([[1, 0, 0, low, 1, 0, 0, high, 0, 1, 0, low]], dtype=np.float32)
    scores = model.policy.predict(rows, np.ones((1, 3), dtype=bool))[0]
    # an answer of skill s at confidence u: odds exp(s + 4u) against one of two others
    said = [skill + 4 * u + np.log(2) for skill, u in zip(SKILL, (low, high, low), strict=True)]
    assert scores[0] - scores[2] == pytest.approx(said[0] + said[1], abs=0.7)
    assert scores[1] - scores[2] == pytest.approx(said[2], abs=0.7)


def test_a_missing_answer_says_nothing_and_is_no_error():
    model, _ = fitted()
    rows = np.full((1, 12), np.nan, dtype=np.float32)
    nothing = model.policy.predict(rows, np.zeros((1, 3), dtype=bool))
    silent = model.policy.predict(rows, np.array([[True, False, False]]))
    assert np.isfinite(silent).all()
    assert np.abs(silent - nothing).max() < 1.0


def test_dear_experts_are_asked_less():
    test = experts(5000, 1)
    bought = []
    for price in ((1.0, 2.0, 3.0), (1.0, 2.0, 300.0)):
        model, of = fitted(price=price)
        points = curve(model, of, test)
        middle = points[np.searchsorted(points[:, 0], 3.0)]
        bought.append(middle[1])
    assert bought[0] > bought[1] + 0.02


def test_prices_of_a_row_decide_its_calls():
    model, _ = fitted()
    policy = model.policy
    cells = np.full((2, 12), np.nan, dtype=np.float32)
    none, left = np.zeros((2, 3), dtype=bool), np.full(2, np.inf)
    own = np.array([[1.0, 2.0, 8.0], [1000.0, 1000.0, 0.01]])
    stop = policy.price[len(policy.price) // 2]
    assert policy.act(cells, none, left, stop, prices=own).tolist()[1] == 2
    assert policy.act(cells, none, left, stop).tolist()[0] == policy.act(cells, none, left, stop)[1]


def test_newton_finds_the_stationary_point_of_the_penalised_likelihood():
    rng = np.random.default_rng(3)
    Z, y = rng.normal(size=(200, K, 4)), rng.integers(0, K, 200)
    copies = 1.0 + hashed(np.arange(200)) % np.uint64(3)
    w = _weights(Z, y, copies.astype(float), 2.0, np.zeros(4))
    e = np.exp(Z @ w)
    p = e / e.sum(1, keepdims=True)
    gradient = 2.0 * w
    for row in range(200):  # term by term
        gradient = gradient + copies[row] * (p[row] @ Z[row] - Z[row, y[row]])
    assert np.abs(gradient).max() < 1e-8
