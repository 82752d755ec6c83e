"""The engine's trees are those of a plain Python search, split by split.

Gradients, hessians and prices are short binary fractions, so that every sum is exact and equality
can be asked of features, thresholds, order and ties, not only of gains.
"""

import numpy as np
import pytest
from bench_trees.binning import find_bins
from bench_trees.grower import Grower
from bench_trees.penalties import Penalty
from bench_trees.settings import Settings
from helpers import reference
from helpers.grown import assert_same_bits, boosted, grower_of, priced

TREES = 3


def random_rows(rng, n):
    """Columns with ties, continuous values, NaN, a constant, NaN only, and a duplicate."""
    X = np.empty((n, 7), np.float32)
    X[:, 0] = rng.integers(0, 3, n)
    X[:, 1] = rng.normal(size=n)
    X[:, 2] = rng.integers(-2, 3, n)
    X[rng.random(n) < 0.3, 2] = np.nan
    X[:, 3] = 1.5
    X[rng.random(n) < 0.3, 3] = np.nan
    X[:, 4] = np.nan
    X[:, 5] = X[:, 1]
    X[:, 6] = np.where(rng.random(n) < 0.2, np.inf, rng.integers(0, 2, n))
    return X


def random_needs(rng, d, sensors):
    """Own, shared and several sensors; sometimes none."""
    sizes = rng.integers(0, 4, d)
    return [sorted(rng.choice(sensors, size, replace=False).tolist()) for size in sizes]


def eighths(rng, low, high, size):
    return rng.integers(low, high, size) / 8


def both(seed, penalties, **kwargs):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(12, 30))
    X = random_rows(rng, n)
    d, sensors = X.shape[1], 5
    bins = find_bins(X, max_bins=(most := int(rng.integers(4, 12))))
    copies = rng.integers(1, 4, n) if seed % 2 else None
    needs = random_needs(rng, d, sensors)
    scale = 2.0 ** rng.integers(-3, 1)
    penalty = Penalty.over(
        np.concatenate([[0], np.cumsum([len(k) for k in needs])]).astype(np.int32),
        np.array([k for row in needs for k in row], np.int32),
        sensors,
        coupled=eighths(rng, 0, 16, sensors) * scale if "coupled" in penalties else None,
        lazy=eighths(rng, 0, 4, sensors) * scale / 8 if "lazy" in penalties else None,
        split=eighths(rng, 0, 4, d) * scale / 16 if "split" in penalties else None,
    )
    settings = Settings(**{"min_rows": 1, "max_depth": None, "max_leaves": 8, **kwargs})
    grower = grower_of(X, settings, penalty, copies, max_bins=most)
    problem = reference.Problem(
        X=X.tolist(),
        edges=[edges_of(bins, j) for j in range(d)],
        copies=[1] * n if copies is None else copies.tolist(),
        needs=needs,
        coupled=penalty.coupled.tolist(),
        lazy=penalty.lazy.tolist(),
        split=penalty.split.tolist(),
        order=settings.order,
        stop=settings.stop,
        charge=settings.charge,
        max_depth=settings.max_depth,
        max_leaves=settings.max_leaves or n,
        min_rows=settings.min_rows,
        l2=settings.l2,
    )
    return grower, problem, rng


def edges_of(bins, j):
    return [float(e) for e in bins.edges[bins.offset[j] : bins.offset[j + 1]]]


def assert_same_trees(grower, problem, rng, hessians):
    """Grow some trees on both sides, purchases carried over; the number of splits compared."""
    n = len(problem.X)
    splits = 0
    for _ in range(TREES):
        g = eighths(rng, -16, 17, n)
        h = eighths(rng, 1, 9, n) if hessians else None
        trees = grower.grow(g[None], None if h is None else h[None])
        expected = reference.grow(problem, g.tolist(), [1.0] * n if h is None else h.tolist())
        if not trees:
            assert len(expected) == 1
            continue
        (tree,) = trees
        assert tree.feature.tolist() == [node.feature for node in expected]
        assert tree.threshold.tolist() == [node.threshold for node in expected]
        assert tree.missing_left.tolist() == [node.missing_left for node in expected]
        assert tree.left.tolist() == [node.left for node in expected]
        assert tree.right.tolist() == [node.right for node in expected]
        values = [grower.settings.learning_rate * node.value for node in expected]
        assert tree.value.tolist() == pytest.approx(values, rel=1e-12, abs=0)
        splits += sum(f >= 0 for f in tree.feature)
    return splits


MODES = {
    "best-first": {"order": "best"},
    "best-first, raw stop": {"order": "best", "stop": "raw"},
    "best-first, room for all": {"order": "best", "max_depth": 3},
    "best-first, room for all, raw stop": {"order": "best", "max_depth": 3, "stop": "raw"},
    "best-first, room for most": {"order": "best", "max_depth": 3, "max_leaves": 7},
    "level by level": {"order": "level", "max_depth": 3},
    "level by level, raw stop": {"order": "level", "stop": "raw", "max_depth": 3},
    "charged at every node": {"order": "level", "charge": "node", "max_depth": 3},
    "l2 and min_rows": {"order": "best", "l2": 0.5, "min_rows": 4, "max_depth": 3},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("penalties", ["", "coupled", "lazy", "split", "coupled lazy split"])
def test_trees_are_those_of_the_plain_search(mode, penalties):
    splits = 0
    for seed in range(4):
        grower, problem, rng = both(seed, penalties, **MODES[mode])
        splits += assert_same_trees(grower, problem, rng, hessians=False)
    assert splits > 20


@pytest.mark.parametrize("penalties", ["", "coupled lazy split"])
def test_newton_trees_are_those_of_the_plain_search(penalties):
    splits = 0
    for seed in range(6):
        grower, problem, rng = both(seed, penalties, min_hessian=0.0)
        splits += assert_same_trees(grower, problem, rng, hessians=True)
    assert splits > 20


@pytest.mark.parametrize("price", [{}, {"lazy": 0.01}, {"split": 0.01}, {"coupled": 0.5}])
def test_a_tree_with_room_for_every_split_is_the_same_whenever_leaves_are_scored(
    price, monkeypatch
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6)).astype(np.float32)
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    settings = Settings(trees=20, max_depth=4, max_leaves=16, min_rows=5)
    how = {"settings": settings, "penalty": priced(6, **price), "threads": 2}
    found = boosted(X, y, **how)
    monkeypatch.setattr(Grower, "_any_order", lambda self: False)
    assert len(found.feature) > 200
    assert_same_bits(found, boosted(X, y, **how))
