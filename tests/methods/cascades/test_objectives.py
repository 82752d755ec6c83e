"""The objectives of Soft-Cascade and AND-OR: by their formulas, and stage by stage."""

from math import log

import numpy as np
import pytest
from bench_methods.cascades.objectives import Hinges, Soft, hinge
from helpers.cascade_cases import probability
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import check_grad

SEEDS = st.integers(0, 2**32)
STAGES = 3


def soft(rng, positive, share, width):
    return Soft(positive, share, rng.uniform(1, 9, STAGES), 0.05)


def soft_formula(loss, positive, f):
    sigma = [probability(one) for one in f]
    p = float(np.prod(sigma))
    cost = sum(c * float(np.prod(sigma[:k])) for k, c in enumerate(loss.cost))
    return -(log(p) if positive else log(1 - p)) + loss.tau * cost


def hinges(rng, positive, share, width):
    return Hinges(positive, share, 2.5, width)


def hinges_formula(loss, positive, f):
    errors = [max(0.0, 1 - (1 if positive else -1) * one) for one in f]
    return 2.5 * max(errors) if positive else float(np.prod(errors))


each = pytest.mark.parametrize(
    ("loss_of", "formula"), [(soft, soft_formula), (hinges, hinges_formula)], ids=["soft", "and-or"]
)


def random_loss(seed, loss_of, width=0.0, n=12):
    rng = np.random.default_rng(seed)
    positive, share = rng.random(n) < 0.4, rng.random(n)
    loss = loss_of(rng, positive, share / share.sum(), width)
    return rng, loss, rng.normal(scale=2.0, size=(STAGES, n))


@each
@settings(max_examples=50, deadline=None)
@given(SEEDS, st.integers(0, STAGES - 1))
def test_the_objective_is_the_formula_row_by_row_and_stage_by_stage(loss_of, formula, seed, k):
    rng, loss, scores = random_loss(seed, loss_of)
    moved = scores.copy()
    moved[k] += rng.normal(size=scores.shape[1])
    before, after = (
        sum(
            s * formula(loss, p, f) for s, p, f in zip(loss.share, loss.positive, at.T, strict=True)
        )
        for at in (scores, moved)
    )
    assert loss.value(scores) == pytest.approx(before, rel=1e-9)
    one = loss.stage(scores, k)  # differs from the objective by a constant
    assert one(moved[k])[0] - one(scores[k])[0] == pytest.approx(after - before, abs=1e-9)


@each
@settings(max_examples=50, deadline=None)
@given(SEEDS, st.integers(0, STAGES - 1))
def test_one_stages_derivative_is_right(loss_of, formula, seed, k):
    _, loss, scores = random_loss(seed, loss_of, width=0.1)
    one = loss.stage(scores, k)
    assert check_grad(lambda f: one(f)[0], lambda f: one(f)[1], scores[k]) < 1e-5


def test_extreme_scores_have_finite_losses_and_derivatives():
    _, loss, scores = random_loss(0, soft)
    for far in (-1e3, 1e3):
        value, slope = loss.stage(scores + far, 1)(np.full(scores.shape[1], far))
        assert np.isfinite(value)
        assert np.isfinite(slope).all()


def test_the_rounded_hinge_is_the_hinge_but_for_half_its_width():
    z = np.array([-1.0, 0.0, 0.05, 0.1, 2.0])
    assert hinge(z, 0.1)[0].tolist() == pytest.approx([0, 0, 0.0125, 0.05, 1.95])
    assert hinge(z, 0.1)[1].tolist() == pytest.approx([0, 0, 0.5, 1, 1])
    assert hinge(z, 0.0)[0].tolist() == [0, 0, 0.05, 0.1, 2.0]
