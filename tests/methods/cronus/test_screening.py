"""Which trees may be left out: no direction among them may lower the loss."""

from __future__ import annotations

import numpy as np
from bench_methods.cronus.initialise import entering
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
