"""Trees grown by the engine in one call, and losses of scores (K, n) row by row."""

import numpy as np
from bench_trees.binning import find_bins
from bench_trees.boosting import boost
from bench_trees.grower import Grower
from bench_trees.penalties import Ledger, Penalty
from bench_trees.threads import Workers


def boosted(X, y, **how):
    """Boosted trees on bins of X."""
    bins = find_bins(X, multiplicity=how.get("multiplicity"))
    return boost(bins.codes(X), bins, y, **how)


def priced(d, **each):
    """Penalties that are alike for d features, each its own sensor."""
    return Penalty.plain(d, **{name: np.full(d, price) for name, price in each.items()})


def grower_of(X, settings, penalty, copies=None, pool=None, **binning):
    """A grower of trees on X, which has paid for nothing."""
    bins = find_bins(X, **binning)
    words = bins.words(X)
    words.flags.writeable = False
    ledger = Ledger(penalty, len(X), copies)
    return Grower(words, bins, settings, ledger, copies, pool or Workers(1))


def assert_same_bits(a, b, *names):
    """Equal arrays, all of them or these."""
    one, other = a.state(), b.state()
    for name in names or one:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def squared(f, y):
    return np.asarray((y - f[0]) ** 2 / 2)


def logistic(f, y):
    return np.asarray(np.logaddexp(0, -(2 * y - 1) * f[0]))


def softmax(f, y):
    return np.asarray(np.logaddexp.reduce(f, axis=0) - f[y.astype(int), np.arange(len(y))])
