"""Squared loss on integers: the histogram that is carried along is the one a count would give."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from bench_trees import grower as grower_module
from bench_trees.fixed_point import Residuals, sum_bits
from bench_trees.kernels.packed_codes import codes_of
from bench_trees.kernels.tree import KNOWN, ROOT
from bench_trees.losses import Squared
from bench_trees.settings import Settings
from bench_trees.threads import workers
from helpers.grown import assert_same_bits, boosted, grower_of, priced
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Recounted:
    """Squared loss by the general path: gradients in float64, every root counted anew."""

    outputs: int = 1

    def base(self, labels):
        return Squared().base(labels)

    def gradients(self, scores, labels, pool):
        return Squared().gradients(scores, labels, pool)


def rows(rng, n, d=10):
    """Continuous, few-valued, missing, constant and twin columns."""
    X = rng.normal(size=(n, d)).astype(np.float32)
    X[:, 1] = rng.integers(0, 3, n)
    X[rng.random(n) < 0.3, 2] = np.nan
    X[:, 3] = 1
    X[:, 4] = X[:, 0]
    y = X[:, 0] + np.nan_to_num(X[:, 2]) * (X[:, 1] > 0) + rng.normal(size=n) / 4
    return X, y.astype(np.float64)


def counted(grower, residuals):
    """The root's histogram by a plain count."""
    first = grower.sums.first
    sums = [0] * int(first[-1])
    for j in grower.usable.features:
        codes = codes_of(grower.rows.words, int(j))
        for code, value in zip(codes, residuals.packed, strict=True):
            sums[first[j] + code] += int(value)
    return sums


def held(grower):
    """The carried histogram, without columns that are never looked at."""
    first, out = grower.sums.first, [0] * int(grower.sums.first[-1])
    for j in grower.usable.features:
        a, b = int(first[j]), int(first[j + 1])
        out[a:b] = grower.sums.hist[ROOT, 0, a:b].tolist()
    return out


shapes = st.fixed_dictionaries(
    {
        "learning_rate": st.sampled_from([0.1, 0.5, 1.0]),
        "max_depth": st.sampled_from([1, 2, 3, None]),
        "max_leaves": st.sampled_from([2, 3, 5, 8]),
        "l2": st.sampled_from([0.0, 1.5]),
        "order": st.sampled_from(["best", "level"]),
        "stop": st.sampled_from(["net", "raw"]),
        "second_order": st.booleans(),
    }
)


@hypothesis_settings(deadline=None, max_examples=60)
@given(st.integers(0, 10**6), shapes, st.booleans(), st.booleans(), st.sampled_from([1, 2]))
def test_the_carried_histogram_is_that_of_a_fresh_count(seed, shape, repeated, charged, threads):
    """Carried even where so few rows would be counted sooner, unless the unit has changed."""
    rng = np.random.default_rng(seed)
    X, y = rows(rng, int(rng.integers(8, 60)))
    copies = rng.integers(1, 5, len(y)) if repeated else None
    penalty = priced(X.shape[1], **({"coupled": 0.4, "lazy": 0.01} if charged else {}))
    settings = Settings(min_rows=1, **shape)
    with workers(threads) as pool:
        grower = grower_of(X, settings, penalty, copies, pool, max_bins=9)
        residuals = Residuals(y, float(y.mean()), grower.copies, grower.total)
        rounding = 1e-12 * residuals.squares  # of a running sum, which may end below 0
        for tree in range(6):
            squares, unit = residuals.squares, residuals.unit
            grower.carried.state[KNOWN] = tree > 0
            before = counted(grower, residuals)
            if not grower.grow_on(residuals):
                break
            assert residuals.unit != unit or held(grower) == before
            assert residuals.squares <= squares + rounding
            g = residuals.packed >> residuals.count_bits
            assert int(np.abs(g).sum()) < 2 ** sum_bits(residuals.count_bits)


STRUCTURE = ("start", "feature", "threshold", "left", "right", "missing_left")


@pytest.mark.parametrize("copies", [False, True])
@pytest.mark.parametrize("shape", [{}, {"order": "level", "second_order": False}, {"l2": 3.0}])
@pytest.mark.parametrize("price", [{}, {"coupled": 5.0, "lazy": 0.002}])
def test_trees_are_those_of_counting_every_root(copies, shape, price):
    rng = np.random.default_rng(7)
    X, y = rows(rng, 1000, 30)
    kwargs = {
        "settings": Settings(trees=40, **shape),
        "penalty": priced(30, **price),
        "multiplicity": rng.integers(1, 4, len(y)) if copies else None,
    }
    carried, recounted = boosted(X, y, **kwargs), boosted(X, y, loss=Recounted(), **kwargs)
    assert carried.trees == recounted.trees == 40
    assert_same_bits(carried, recounted, *STRUCTURE)
    np.testing.assert_allclose(carried.value, recounted.value, rtol=0, atol=1e-11)


@pytest.mark.parametrize("price", [{}, {"coupled": 5.0}, {"lazy": 0.002}])
@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"max_leaves": None, "max_depth": 9, "min_rows": 1},
        {"charge": "node", "order": "level"},
    ],
)
def test_trees_grown_in_one_call_are_those_of_a_call_each(price, shape, monkeypatch):
    """Through refinements, and to a root that is not split."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 40, (500, 8)).astype(np.float32)
    y = np.exp(X[:, 0] / 5)
    how = {"penalty": priced(8, **price), "settings": Settings(60, 0.9, **shape)}
    calls = []
    kernel = grower_module.grow
    monkeypatch.setattr(grower_module, "grow", lambda *a: calls.append(a) or kernel(*a))
    found = []
    for cells in (0, 10**9):
        monkeypatch.setattr(grower_module, "CELLS", cells)
        calls.clear()
        done = []
        ensemble = boosted(X, y, progress=lambda k, _, d=done: d.append(k), **how)
        assert done == list(range(1, ensemble.trees + 1))
        assert (len(calls) < ensemble.trees) == (
            cells > 0 and "lazy" not in price and "charge" not in shape
        )
        found.append(ensemble)
    assert_same_bits(*found)


def test_integers_are_rounded_labels_plus_the_steps_taken():
    """Through refinements: full steps on a signal that trees can follow."""
    rng = np.random.default_rng(3)
    X = rng.integers(0, 50, (400, 3)).astype(np.float32)
    y = np.exp(X[:, 0] / 5) + X[:, 1] / 7
    grower = grower_of(X, Settings(learning_rate=1.0, min_rows=1), priced(3))
    residuals = Residuals(y, 1.0, NONE, 400)
    units = [residuals.unit]
    steps = [Fraction(0)] * 400
    for _ in range(12):
        (tree,) = grower.grow_on(residuals)
        units.append(residuals.unit)
        for node, (begin, end) in zip(tree.leaves, tree.spans, strict=True):
            assert tree.value[node] % residuals.unit == 0
            for i in grower.rows.order[begin:end]:
                steps[i] += Fraction(tree.value[node])
        unit = Fraction(residuals.unit)
        rounded = [round(Fraction(float(1.0 - v)) / unit) for v in y]
        expected = [r + s / unit for r, s in zip(rounded, steps, strict=True)]
        assert (residuals.packed >> residuals.count_bits).tolist() == expected
    assert units[-1] < units[0] / 8


def test_the_unit_is_as_fine_as_stated():
    """Of root mean square 1: N / 2^bits, twice that at most for the power of two."""
    for n, finest in ((1000, -41), (10_000, -33), (100_000, -27)):
        y = np.resize([1.0, -1.0], n)
        unit = Residuals(y, 0.0, NONE, n).unit
        assert 2.0 ** (finest - 2) <= unit <= 2.0**finest


@pytest.mark.parametrize("scale", [2.0**-300, 2.0**-90, 2.0**90])
def test_the_scale_of_labels_does_not_matter(scale):
    rng = np.random.default_rng(0)
    X, y = rows(rng, 200)
    settings = Settings(trees=5, min_rows=2)
    one, other = (boosted(X, label, settings=settings) for label in (y, y * scale))
    assert_same_bits(one, other, *STRUCTURE)
    assert other.value.tolist() == (one.value * scale).tolist()


def test_steps_beyond_the_mean_go_by_the_general_path():
    """With a learning rate above 1 squares may rise: gradients are then rounded anew."""
    X, y = rows(np.random.default_rng(0), 300)
    settings = Settings(trees=8, learning_rate=1.7)
    one, other = (boosted(X, y, loss=loss, settings=settings) for loss in (Squared(), Recounted()))
    assert_same_bits(one, other)
