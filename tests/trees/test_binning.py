import numpy as np
import pytest
from bench_trees.binning import Bins, find_bins
from hypothesis import given
from hypothesis import strategies as st

NAN, INF = np.nan, np.inf
finite = st.floats(width=32, allow_nan=False, allow_infinity=True)
cells = st.one_of(finite, st.just(NAN), st.sampled_from([0.0, -0.0, 1.0, 2.0]))
columns = st.lists(cells, min_size=1, max_size=60).map(
    lambda values: np.array(values, np.float32)[:, None]
)


def column(*values):
    return np.array(values, np.float32)[:, None]


def edges(X, **kwargs):
    return [float(e) for e in find_bins(X, **kwargs).edges]


def test_infinities_are_extreme_values():
    X = column(-INF, 0, INF, NAN)
    bins = find_bins(X)
    assert bins.codes(X).tolist() == [[0, 1, 2, 3]]
    assert bins.codes(column(-1e30, 1e30)).tolist() == [[1, 1]]  # and no other value is with them


def test_neighbouring_floats_are_told_apart():
    """Half-way between two of them lies one of both, in turn the lower and the higher."""
    values = np.float32(1) + np.arange(4, dtype=np.float32) * np.finfo(np.float32).eps
    assert find_bins(column(*values)).codes(column(*values)).tolist() == [[0, 1, 2, 3]]


def test_255_values_and_nan_fill_the_byte():
    X = column(*range(255), NAN)
    assert find_bins(X).codes(X).tolist() == [list(range(256))]


def test_frequent_values_have_bins_of_their_own():
    rng = np.random.default_rng(0)
    X = column(*np.zeros(500), *rng.exponential(size=500))
    codes = find_bins(X, max_bins=20).codes(X)[0]
    assert set(codes[:500]) == {codes[0]}
    assert codes[0] not in codes[500:]
    assert np.bincount(codes[500:]).max() < 60  # 500 rows in 19 bins


def test_quantiles_are_even():
    X = column(*np.random.default_rng(0).normal(size=10_000))
    counts = np.bincount(find_bins(X, max_bins=100).codes(X)[0])
    assert len(counts) == 100
    assert counts.min() >= 90
    assert counts.max() <= 110


@given(columns, st.integers(2, 20))
def test_a_code_says_on_which_side_of_every_edge_a_value_lies(X, most):
    bins = find_bins(X, max_bins=most)
    codes = bins.codes(X)[0]
    known = ~np.isnan(X[:, 0])
    assert len(bins.edges) < most
    assert (codes[~known] == bins.counts[0]).all()
    for b, edge in enumerate(bins.edges):
        np.testing.assert_array_equal(codes[known] <= b, X[known, 0] <= edge)


@given(columns)
def test_every_distinct_value_has_its_bin_where_there_is_room(X):
    codes = find_bins(X).codes(X)[0]
    known = X[:, 0][~np.isnan(X[:, 0])]
    assert len(np.unique(codes[~np.isnan(X[:, 0])])) == len(np.unique(known))


@given(columns, st.integers(2, 6), st.randoms(use_true_random=False))
def test_multiplicity_gives_the_edges_of_copies(X, most, random):
    copies = np.array([random.randint(1, 5) for _ in X], np.int64)
    weighted = find_bins(X, max_bins=most, multiplicity=copies)
    physical = find_bins(np.repeat(X, copies, axis=0), max_bins=most)
    np.testing.assert_array_equal(weighted.edges, physical.edges)


def test_threads_do_not_change_edges_or_codes():
    X = np.random.default_rng(0).normal(size=(9000, 40)).astype(np.float32)
    one, two = find_bins(X), find_bins(X, threads=2)
    np.testing.assert_array_equal(one.edges, two.edges)
    np.testing.assert_array_equal(one.codes(X), one.codes(X, threads=2))


def test_codes_are_feature_major_and_take_any_memory_order():
    X = np.array([[1, 10], [2, 20], [3, 20]], np.float32)
    bins = find_bins(X)
    assert bins.codes(np.asfortranarray(X)).tolist() == [[0, 1, 2], [0, 1, 1]]


def test_state_round_trip():
    bins = find_bins(column(1, 2, 5))
    again = Bins.from_state(bins.state())
    assert again.edges.tolist() == [1.5, 3.5]
    assert again.offset.tolist() == [0, 2]


@pytest.mark.parametrize("most", [1, 256])
def test_impossible_bin_numbers_are_refused(most):
    with pytest.raises(ValueError, match=r"max_bins must be 2\.\.255"):
        find_bins(column(1, 2), max_bins=most)


def test_rows_of_another_width_are_refused():
    with pytest.raises(ValueError, match=r"X must be \(n, 1\)"):
        find_bins(column(1, 2)).codes(np.zeros((2, 3), np.float32))
