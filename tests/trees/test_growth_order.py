"""Level-by-level growth by hand: when leaves are reconsidered and in which order; and when leaves
may be scored a level at a time."""

from itertools import product

import numpy as np
import pytest
from bench_trees.arrays import frozen
from bench_trees.binning import find_bins
from bench_trees.boosting import boost
from bench_trees.grower import Grower
from bench_trees.kernels import growth
from bench_trees.kernels.growth import Nodes, UsableFeatures
from bench_trees.penalties import Penalty
from bench_trees.settings import Settings
from numba import njit


def grown(**kwargs):
    """Ten rows for each of the eight corners of (f0, f1, f2) in {-1, 1}^3.

    f0 divides best. Then f1 is worth 1/2 * 40 * 1 = 20 on the left and 1/2 * 40 * 9 = 180 on the
    right, and costs 50 once. f2 is free, but worth something (1/2 * 20 / 4 = 2.5) only below f1.
    """
    corners = np.array(list(product((-1, 1), repeat=3)) * 10)
    f0, f1, f2 = corners.T
    y = 100 * f0 + np.where(f0 < 0, 1, 3) * f1 + f1 * f2 / 2
    X = corners.astype(np.float32)
    bins = find_bins(X)
    settings = Settings(
        trees=1, second_order=False, order="level", max_depth=3, min_rows=1, **kwargs
    )
    price = Penalty.plain(3, coupled=np.array([0.0, 50.0, 0.0]))
    return boost(bins.codes(X), bins, y, settings=settings, penalty=price)


def test_an_unsplit_leaf_is_reconsidered_after_a_purchase_and_its_level_goes_on_in_order():
    e = grown()
    assert e.feature[:7].tolist() == [0, 1, 1, 2, 2, 2, 2]
    assert e.left[0] == 1  # the root's children are nodes 1 and 2
    assert e.left[2] == 3  # the right one buys f1 first
    assert e.left[1] == 5  # then the left one takes it for free
    assert e.left[[5, 6, 3, 4]].tolist() == [7, 9, 11, 13]  # the next level, left to right


def test_charged_at_every_node_the_purchase_next_door_saves_nothing():
    """At the full price the left node prefers f2, worth 0 and free, to 20 - 50."""
    e = grown(charge="node")
    assert e.feature[:3].tolist() == [0, 2, 1]


def test_with_few_leaves_the_first_in_order_are_split():
    e = grown(max_leaves=5)
    assert e.feature.tolist() == [0, 1, 1, -1, -1, 2, -1, -1, -1]


@pytest.mark.parametrize("price", [{}, {"lazy": 0.01}, {"split": 0.01}, {"coupled": 0.5}])
def test_a_tree_with_room_for_every_split_is_the_same_whenever_leaves_are_scored(
    price, monkeypatch
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 6)).astype(np.float32)
    y = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    bins = find_bins(X)
    penalty = Penalty.plain(6, **{name: np.full(6, each) for name, each in price.items()})
    settings = Settings(trees=20, max_depth=4, max_leaves=16, min_rows=5)

    def grow():
        return boost(bins.codes(X), bins, y, settings=settings, penalty=penalty, threads=2)

    found = grow()
    monkeypatch.setattr(Grower, "_any_order", lambda self: False)
    expected = grow()
    assert len(found.feature) > 200
    for name in ("start", "feature", "threshold", "left", "right", "missing_left", "value"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)


def test_nodes_are_numbered_as_they_appear_when_the_highest_gain_goes_first():
    """Grown left to right: 0 -> 1, 2; 1 -> 3, 4; 2 -> 5, 6; 5 -> 7, 8. Best first 2 comes before 1,
    and 5, which ties with 1, after it."""
    nodes = Nodes(np.full((9, growth.COLUMNS), -1), np.zeros((9, 2)))
    for node, children in {0: (1, 2), 1: (3, 4), 2: (5, 6), 5: (7, 8)}.items():
        nodes.integers[node, [growth.LEFT, growth.RIGHT]] = children
        nodes.integers[node, growth.FEATURE] = node
    nodes.integers[:, growth.CUT] = 0
    nodes.scores[[0, 1, 2, 5], growth.NET] = 9, 2, 3, 2
    none, offset = np.zeros(0, np.int64), np.zeros(10, np.int64)
    edges = frozen(none, np.float32), frozen(offset, np.int64)
    one_bin = UsableFeatures(none, none, none, none, *edges)
    nodes.integers[:, growth.BEGIN] = range(9)
    tree = growth.GrownTree.leaf(9)
    finish = njit(lambda *arguments: growth._finish(*arguments))
    finish(nodes, 9, True, one_bin, 0, 0, tree)
    assert tree.leaves.tolist() == [4, 5, 6, 7, 8]
    assert tree.ends.tolist() == tree.spans[:, 0].tolist() == [6, 3, 4, 7, 8]
    assert tree.feature.tolist() == [0, 1, 2, 5, -1, -1, -1, -1, -1]
    assert tree.left.tolist() == [1, 5, 3, 7, -1, -1, -1, -1, -1]
    assert tree.right.tolist() == [2, 6, 4, 8, -1, -1, -1, -1, -1]
    assert tree.threshold.tolist() == [np.inf] * 4 + [0.0] * 5
