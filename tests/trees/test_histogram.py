import math

import numpy as np
import pytest
from bench_trees.kernels.histograms import AHEAD, SCRATCH, _accumulate, _add_counts
from bench_trees.kernels.packed_codes import pack
from bench_trees.settings import Settings
from helpers.grown import grower_of, priced
from hypothesis import given
from hypothesis import strategies as st
from numba import njit

accumulate = njit(lambda *arguments: _accumulate(*arguments))
add_counts = njit(lambda *arguments: _add_counts(*arguments))


def random_case(seed, n, d, hessians):
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 5, (d, n)).astype(np.uint8)
    return codes, rng.integers(-1000, 1000, (n, 2 if hessians else 1))


def words_of(codes):
    words = pack(codes)
    words.flags.writeable = False
    return words


def naive(codes, values, rows, first):
    sums = [0] * int(first[-1])
    for j, column in enumerate(codes):
        for value, row in zip(values, rows, strict=True):
            sums[first[j] + column[row]] += int(value)
    return sums


def count(words, rows, values, pairs, groups, first, out):
    """All words of ``groups`` one after the other, which leave nothing behind for the next one."""
    scratch = np.zeros(SCRATCH, np.int64)
    for number in range(len(groups)):
        accumulate(words, rows, values, pairs, groups, number, first, out, scratch)
        assert not scratch.any()


@given(st.integers(0, 10_000), st.integers(1, 9), st.integers(1, 20), st.booleans())
def test_both_children_have_the_sums_of_a_plain_loop(seed, n, d, hessians):
    codes, values = random_case(seed, n, d, hessians)
    rows = np.random.default_rng(seed).permutation(n).astype(np.uint32)
    values = values[rows]
    words, first = words_of(codes), np.arange(0, 5 * d + 1, 5)
    groups = np.arange(len(words))
    out = np.zeros((2, 2 if hessians else 1, 5 * d), np.int64)
    cut = n // 3
    # the parent, in slot 0; a child in slot 1, whose sibling takes slot 0
    for pair in ([0, n, 0, -1, 1], [0, cut, 1, 0, 1]):
        count(words, rows, values, np.array([pair]), groups, first, out)
    for channel, own in enumerate(values.T):
        small = naive(codes, own[:cut], rows[:cut], first)
        large = naive(codes, own[cut:], rows[cut:], first)
        assert out[1, channel].tolist() == small
        assert out[0, channel].tolist() == large


@pytest.mark.parametrize(("n", "step"), [(5000, 7), (5000, 1), (AHEAD, 1), (2 * AHEAD + 1, 2)])
@pytest.mark.parametrize("hessians", [False, True])
def test_rows_in_order_and_rows_far_apart_are_summed_alike(n, step, hessians):
    """Memory is asked for ahead, but not beyond the last row."""
    codes, values = random_case(0, n, 9, hessians)
    rows = np.arange(0, n, step, dtype=np.uint32)
    first, values = np.arange(0, 46, 5), values[rows]
    out = np.zeros((1, 1 + hessians, 45), np.int64)
    work = np.array([[0, len(rows), 0, -1, step > 1]])
    count(words_of(codes), rows, values, work, np.arange(2), first, out)
    for channel in range(1 + hessians):
        assert out[0, channel].tolist() == naive(codes, values[:, channel], rows, first)


def test_only_the_features_of_the_asked_words_are_touched():
    codes, values = random_case(0, 8, 17, False)
    first = np.arange(0, 86, 5)
    out = np.full((1, 1, 85), 7, np.int64)
    rows = np.arange(8, dtype=np.uint32)
    pair = np.array([[0, 8, 0, -1, 0]])
    count(words_of(codes), rows, values, pair, np.array([0, 2]), first, out)
    expected = naive(codes, values[:, 0], rows, first)
    assert out[0, 0].tolist() == [*expected[:40], *[7] * 40, *expected[80:]]


def test_a_step_per_counted_copy_reaches_the_gradients_of_its_bins_only():
    """Counts in the low 4 bits: slot 1 holds 2 and 3 copies of steps 5, slot 2 holds 1 of -7."""
    hist = np.array([[[16 * 100 + 9, 16 * 200 + 9]], [[16 * 8 + 2, 3]], [[1, 0]]], np.int64)
    add_counts(hist, np.array([[1, 5], [2, -7]]), 0, 2, 4, 0)
    assert hist[0, 0].tolist() == [16 * (100 + 10 - 7) + 9, 16 * (200 + 15) + 9]
    assert hist[1:].tolist() == [[[130, 3]], [[1, 0]]]


def in_fixed_point(gradient, hessian=None, copies=None):
    """What growth sums (n, channels), and in which units: here of rows that are all alike, which
    nothing divides."""
    X = np.zeros((len(gradient), 1), np.float32)
    grower = grower_of(X, Settings(min_rows=1), priced(1), copies)
    assert not grower.grow(gradient[None], None if hessian is None else hessian[None])
    return grower.rows.values, grower.sums


def unpacked(total, count_bits, unit):
    return (total >> count_bits) * unit, total & ((1 << count_bits) - 1)


@given(st.lists(st.floats(-1e30, 1e30), min_size=1, max_size=50), st.integers(1, 10**7))
def test_rounding_stays_within_the_stated_resolution(values, copies):
    g = np.array(values)
    found, sums = in_fixed_point(g, None, np.full(len(g), copies))
    for value, packed in zip(values, found[:, 0], strict=True):
        got, count = unpacked(int(packed), sums.count_bits, sums.units[0])
        size = float(np.abs(g).sum()) * copies
        assert count == copies
        bound = size * 2.0 ** (max(sums.count_bits - 62, -52) + 1)
        assert abs(got / copies - value) <= bound + 1e-300


def test_hessians_are_kept_to_52_bits():
    h = np.array([0.1, 0.2, 0.25])
    values, sums = in_fixed_point(np.zeros(3), h)
    np.testing.assert_allclose(values[:, 1] * sums.units[1], h, rtol=1e-14)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_gradients_that_are_not_finite_are_refused(bad):
    with pytest.raises(ValueError, match="not finite"):
        in_fixed_point(np.array([1.0, bad]))


@pytest.mark.parametrize("copies", [None, np.array([3, 1, 2, 1, 5])])
def test_the_unit_is_the_finest_in_which_the_sum_has_room(copies):
    g = np.array([0.3, -1e-7, 12.5, -40.0, 0.01])
    times = np.ones(5, np.int64) if copies is None else copies
    total = int(times.sum())
    _, sums = in_fixed_point(g, None, copies)
    room = 2.0 ** min(62 - sums.count_bits, 52) - total
    size = math.fsum(np.abs(g) * times)
    assert size / sums.units[0] <= room < 2 * size / sums.units[0]
