"""Calibration: one rising line from scores to log-odds."""

import numpy as np
import pytest
from bench_models.calibration import platt
from hypothesis import given, settings
from hypothesis import strategies as st


def soft(positive, mass):
    """Platt's targets."""
    ones, others = mass[positive].sum(), mass[~positive].sum()
    return np.where(positive, (ones + 1) / (ones + 2), 1 / (others + 2))


def by_scikit_learn(s, positive, mass):
    """The same line: each row once as a one and once as a zero, weighted by its target."""
    from sklearn.linear_model import LogisticRegression

    target = soft(positive, mass)
    model = LogisticRegression(C=np.inf, tol=1e-12, max_iter=10_000, solver="newton-cholesky")
    model.fit(
        np.concatenate([s, s])[:, None],
        np.repeat([1, 0], len(s)),
        np.concatenate([mass * target, mass * (1 - target)]),
    )
    return float(model.coef_[0, 0]), float(model.intercept_[0])


@pytest.mark.parametrize("spread", [1.0, 1e-3, 40.0])
def test_the_line_is_that_of_scikit_learn_on_platts_targets(spread):
    rng = np.random.default_rng(1)
    s = 0.7 + spread * rng.normal(size=500)
    positive = rng.random(500) < 1 / (1 + np.exp(-1.5 * (s - 0.7) / spread + 0.4))
    mass = rng.integers(1, 5, 500).astype(float)
    line = platt(s, positive, mass)
    z_slope, z_intercept = by_scikit_learn((s - 0.7) / spread, positive, mass)
    assert line.slope * spread == pytest.approx(z_slope, rel=1e-6)
    assert line.intercept + 0.7 * line.slope == pytest.approx(z_intercept, rel=1e-6)


def test_scores_that_separate_the_classes_meet_the_targets_and_stay_finite():
    """Two scores alone: the line goes through the log-odds of both targets, log(P + 1) above."""
    positive = np.array([False] * 3 + [True] * 7)
    line = platt(positive * 2.0, positive, np.ones(10))
    assert line(np.array([0.0, 2.0])) == pytest.approx([-np.log(4), np.log(8)])


def test_a_line_never_turns_the_order_round():
    s = np.linspace(-1, 1, 50)
    line = platt(s, s < 0, np.ones(50))
    assert 0 < line.slope < 0.01
    assert line(s).mean() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("label", [False, True])
def test_one_class_or_one_score_leaves_the_mean_target(label):
    for s in (np.linspace(0, 1, 20), np.full(20, 0.3)):
        line = platt(s, np.full(20, label), np.ones(20))
        assert line.slope > 0
        assert line(s) == pytest.approx((1 if label else -1) * np.log(21), abs=0.01)


@settings(max_examples=50, deadline=None)
@given(st.integers(2, 30), st.integers(0, 10_000))
def test_copies_count_as_rows(n, seed):
    rng = np.random.default_rng(seed)
    s, positive = rng.normal(size=n), rng.random(n) < 0.5
    copies = rng.integers(1, 4, n)
    once = platt(s, positive, copies.astype(float))
    often = platt(np.repeat(s, copies), np.repeat(positive, copies), np.ones(copies.sum()))
    assert once.slope == pytest.approx(often.slope, rel=1e-6)
    assert once.intercept == pytest.approx(often.intercept, rel=1e-6, abs=1e-8)
