"""Which trees may be left out: no direction among them may lower the loss."""

from __future__ import annotations

import numpy as np
import pytest
from bench_methods.cronus.initialise import entering, gradient
from bench_models.least_squares import Growing
from helpers.cronus_cases import problem
from hypothesis import given, settings
from hypothesis import strategies as st


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), scale=st.sampled_from([0.3, 1.0, 3.0]))
def test_what_stays_outside_cannot_lower_the_loss_in_any_direction(seed: int, scale: float) -> None:
    rng = np.random.default_rng(seed)
    needs = (rng.random((4, 7)) < 0.4).astype(float)
    capacity, excess = rng.uniform(0.5, 2.0, 4), scale * rng.uniform(-0.5, 1.0, 7).clip(0)
    outside = ~entering(excess, needs, capacity)
    steps = rng.exponential(size=(2000, 7)) * (rng.random((2000, 7)) < 0.5) * outside
    # the Lagrangian bound of the best direction within one sensor, too
    steps = np.vstack([steps, needs * excess * outside, excess * outside])
    price = np.sqrt((steps**2) @ needs.T) @ capacity
    assert (steps @ excess <= price * (1 + 1e-9)).all()


def test_a_tree_whose_gradient_fits_into_its_sensors_together_stays_outside() -> None:
    both = np.array([[1.0], [1.0]])
    assert not entering(np.array([2.9]), both, np.array([1.0, 2.0])).any()
    assert entering(np.array([3.1]), both, np.array([1.0, 2.0])).all()


def test_trees_of_one_sensor_may_enter_together_where_none_would_alone() -> None:
    one = np.ones((1, 4))
    assert not entering(np.full(4, 0.9), one, np.array([2.0])).any()  # norm 1.8
    assert entering(np.full(4, 1.1), one, np.array([2.0])).all()  # norm 2.2


def test_a_tree_that_needs_nothing_new_enters_as_soon_as_it_gains() -> None:
    enters = entering(np.array([1e-9, 0.0]), np.zeros((0, 2)), np.zeros(0))
    assert enters.tolist() == [True, False]


def test_the_gradient_is_that_of_the_loss_with_its_best_constant() -> None:
    p = problem(seed=2, n=200)
    omega = p.weight * np.random.default_rng(0).random(200)
    w = np.random.default_rng(1).normal(size=p.trees)
    growing = Growing(p, omega)
    H = p.columns.astype(float)

    def loss(w: np.ndarray) -> float:
        f = w @ H
        miss = f - p.y - omega @ (f - p.y) / omega.sum()
        return float(0.5 * omega @ miss**2)

    slopes = [(loss(w + 1e-5 * e) - loss(w - 1e-5 * e)) / 2e-5 for e in np.eye(p.trees)]
    assert gradient(p, growing, w) == pytest.approx(slopes, rel=1e-4, abs=1e-7)


def test_trees_added_in_pieces_give_the_normal_equations_of_all() -> None:
    p = problem(seed=5, n=5000, trees=30)
    growing = Growing(p, p.weight)
    for trees in ([3, 1, 4], [1, 5, 9], list(range(30))):
        growing.grow(np.array(trees))
    n = growing.normal
    H, total = p.columns[n.trees].astype(float), p.weight.sum()
    centred = H - (H @ p.weight / total)[:, None]
    assert sorted(n.trees) == list(range(30))
    np.testing.assert_allclose(n.gram, (centred * p.weight) @ centred.T, atol=1e-12)
    np.testing.assert_allclose(n.moment, (centred * p.weight) @ p.y, atol=1e-12)
