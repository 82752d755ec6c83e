import tracemalloc
from itertools import product

import numpy as np
import pytest
import scipy.stats

from bench_core.metrics.significance import paired_bootstrap, sign_flip


def pair(seed, n, shift=0.0):
    rng = np.random.default_rng(seed)
    first = rng.random(n)
    return first, first - shift + rng.normal(scale=0.1, size=n)


def test_the_interval_is_that_of_scipy_up_to_sampling():
    first, second = pair(0, 400, 0.02)
    found = paired_bootstrap(first, second, samples=20_000)
    theirs = scipy.stats.bootstrap(
        (first - second,), np.mean, method="percentile", n_resamples=20_000, rng=1
    ).confidence_interval
    assert found.difference == pytest.approx((first - second).mean())
    width = theirs.high - theirs.low
    assert abs(found.low - theirs.low) < 0.03 * width
    assert abs(found.high - theirs.high) < 0.03 * width


def test_values_that_take_few_levels_have_the_interval_of_scipy():
    rng = np.random.default_rng(1)
    first, second = (rng.random(3000) < 0.8) * 1.0, (rng.random(3000) < 0.78) * 1.0
    found = paired_bootstrap(first, second, samples=20_000)
    theirs = scipy.stats.bootstrap(
        (first - second,), np.mean, method="percentile", n_resamples=5_000, rng=1
    ).confidence_interval
    width = theirs.high - theirs.low
    assert abs(found.low - theirs.low) < 0.05 * width
    assert abs(found.high - theirs.high) < 0.05 * width


def test_about_95_percent_of_intervals_hold_the_true_difference():
    hits = 0
    for seed in range(300):
        first, second = pair(seed, 60, 0.03)
        found = paired_bootstrap(first, second, samples=400, seed=seed)
        hits += found.low <= 0.03 <= found.high
    assert 0.90 <= hits / 300 <= 0.98


def test_many_units_of_all_kinds_of_values_take_little_memory():
    first, second = pair(3, 20_000)
    tracemalloc.start()
    try:
        paired_bootstrap(first, second, samples=1000)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 100e6  # a count of each value in each sample would be 160 MB


def test_rows_of_weight_0_do_not_count():
    first, second = pair(2, 50)
    padded = np.append(first, 1e9), np.append(second, -1e9), np.append(np.ones(50), 0.0)
    assert paired_bootstrap(*padded, samples=500) == paired_bootstrap(first, second, samples=500)
    assert sign_flip(*padded, samples=500) == sign_flip(first, second, samples=500)


def test_the_difference_is_weighted():
    found = paired_bootstrap(np.array([1.0, 0]), np.zeros(2), np.array([3, 1]), samples=10)
    assert found.difference == pytest.approx(3 / 4)


def test_equal_models_differ_by_nothing():
    values = np.random.default_rng(0).random(30)
    found = paired_bootstrap(values, values, samples=100)
    assert (found.difference, found.low, found.high) == (0, 0, 0)
    assert sign_flip(values, values) == 1


@pytest.mark.parametrize("weighted", [False, True])
def test_few_units_are_enumerated_exactly(weighted):
    rng = np.random.default_rng(3)
    first, second = rng.integers(0, 6, 9) / 5, rng.integers(0, 6, 9) / 5
    weights = rng.integers(1, 4, 9).astype(float) if weighted else np.ones(9)
    parts = (first - second) * weights
    sums = [abs(np.dot(signs, parts)) for signs in product([1, -1], repeat=9)]
    by_hand = np.mean(np.array(sums) >= abs(parts.sum()) - 1e-9)
    assert sign_flip(first, second, weights) == pytest.approx(by_hand)


@pytest.mark.parametrize("levels", [None, 3])
def test_many_units_are_sampled_as_scipy_does(levels):
    rng = np.random.default_rng(4)
    difference = rng.normal(0.12, 1, 300) if levels is None else rng.choice([-1, 0, 1.2], 300)
    p = sign_flip(difference, np.zeros(300), samples=20_000)
    theirs = scipy.stats.permutation_test(
        (difference, np.zeros(300)),
        lambda x, y, axis: np.mean(x - y, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=5_000,
        rng=2,
    ).pvalue
    assert abs(p - theirs) < 0.03


def test_p_values_of_equal_models_are_uniform():
    p = [sign_flip(*pair(seed, 40), samples=300, seed=seed) for seed in range(200)]
    assert scipy.stats.kstest(p, "uniform").pvalue > 0.001


def test_a_sampled_p_value_is_never_0():
    assert sign_flip(np.ones(100) + np.arange(100), np.zeros(100), samples=99) == 1 / 100


def test_a_seed_gives_the_same_answer_again_and_another_seed_another():
    first, second = pair(5, 100)
    assert paired_bootstrap(first, second, seed=1) == paired_bootstrap(first, second, seed=1)
    assert paired_bootstrap(first, second, seed=1) != paired_bootstrap(first, second, seed=2)


@pytest.mark.parametrize("function", [paired_bootstrap, sign_flip])
def test_unpaired_or_empty_values_are_refused(function):
    with pytest.raises(ValueError, match="must pair up"):
        function(np.zeros(2), np.zeros(3))
    with pytest.raises(ValueError, match="nothing to compare"):
        function(np.zeros(2), np.zeros(2), np.zeros(2))


def test_a_level_outside_0_to_1_is_refused():
    with pytest.raises(ValueError, match="level"):
        paired_bootstrap(np.zeros(2), np.zeros(2), level=95)
