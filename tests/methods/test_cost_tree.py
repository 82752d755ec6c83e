"""A tree grown by gain per price, and its prunings."""

from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from bench_methods.cost_tree import CostTree
from bench_methods.cost_tree.model import CostedTree, nested_prunings, without_useless
from helpers.boosted_cases import examples, fit, mean_cost, path

from bench_core import Examples, Task, price_list

WHOLE = CostTree(min_rows=1)


def table(*columns):
    return np.array([[float(v) for v in column] for column in columns], np.float32).T


def splits(model):
    """Feature and threshold of the nodes that some point splits, root first."""
    trees = model.whole.trees
    inner = np.flatnonzero(model.rank < len(model.names))
    return [(int(trees.feature[u]), float(trees.threshold[u])) for u in inner]


def root(model):
    return int(model.whole.trees.feature[0])


@pytest.mark.parametrize(
    ("price", "of"),
    [
        (2.0, {"idx": 2, "eg2": 2, "cs-id3": 2}),
        (3.0, {"idx": 0, "eg2": 2, "cs-id3": 2}),
        (4.5, {"idx": 0, "eg2": 0, "cs-id3": 2}),
        (7.0, {"idx": 0, "eg2": 0, "cs-id3": 0}),
    ],
)
def test_the_root_is_the_feature_of_highest_worth(price, of):
    """Feature 2 at ``price`` gains 1 bit. Feature 0 at price 1 has sides 000 and 01111 and gains
    1 - 5/8 H(1/5) = .5488: worth .2744 by idx, (2^.5488 - 1) / 2 = .2314 by eg2, .5488^2 / 2 =
    .1506 by cs-id3, where feature 2 is worth 1 / (price + 1)."""
    train = Examples(table("00011111", "01010101", "00001111"), np.array([0.0] * 4 + [1.0] * 4))
    at = price_list(np.array([1.0, 1.0, price]))
    for criterion, feature in of.items():
        model = fit(replace(WHOLE, criterion=criterion), train, Task.BINARY, at)
        assert root(model) == feature
    blind = fit(replace(WHOLE, price_power=0.0), train, Task.BINARY, at)
    assert root(blind) == 2


def test_of_numbers_the_gain_is_the_share_of_the_squares():
    """y = 4 x0 + 3 x1 on all four cells: 16 / 25 against 9 / 25, squared 16 times 3.16 apart."""
    X = table("00110011", "01010101", "00000000")
    train = Examples(X, X.astype(float) @ np.array([4.0, 3.0, 0.0]) + 1e6)
    roots = {}
    for price in (1.0, 4.0, 7.0):
        at = price_list(np.array([price, 1.0, 1.0]))
        roots[price] = root(fit(WHOLE, train, Task.REGRESSION, at))
    # .64^2 / (c + 1) against .36^2 / 2: equal at c = 5.32
    assert roots == {1.0: 0, 4.0: 0, 7.0: 1}


def test_what_the_path_has_bought_is_free():
    """Where x0 > 0, y = 10 + 3 [x0 = 2] + 3.5 x1: x0 again explains .42 of the squares, x1 .58.
    By idx that is .42 for nothing against .58 / 2."""
    X = table("000011112222", "001100110011")
    y = np.where(X[:, 0] > 0, 10 + 3.0 * (X[:, 0] == 2) + 3.5 * X[:, 1], 0)
    learner = replace(WHOLE, criterion="idx")
    model = fit(learner, Examples(X, y), Task.REGRESSION, price_list(np.ones(2)))
    assert splits(model)[:2] == [(0, 0.5), (0, 1.5)]
    assert [f for f, _ in splits(model)[2:]] == [1, 1]


def test_a_shared_sensor_is_paid_once_on_a_path():
    X = table("00110011", "01010101")
    train = Examples(X, X.astype(float) @ np.array([2.0, 1.0]))
    at = price_list(np.array([3.0, 3.0]), shared=[[0, 1]])
    last = path(fit(WHOLE, train, Task.REGRESSION, at), train)[-1]
    assert last.scores == pytest.approx(train.y)
    assert mean_cost(last, at) == 3.0


def test_missing_cells_go_where_they_gain_more():
    X = np.array([[0], [1], [np.nan], [2], [3], [np.nan]], np.float32)
    train = Examples(X, np.array([0.0, 0, 0, 1, 1, 0]))
    model = fit(WHOLE, train, Task.BINARY, price_list(np.ones(1)))
    assert splits(model) == [(0, 1.5)]
    assert bool(model.whole.trees.missing_left[0])


def test_leaves_answer_smoothed_shares():
    """Sides of 3 and 5 rows of 8, half of them 1: (0 + 1) / (3 + 2) and (4 + 1) / (5 + 2)."""
    train = Examples(table("00011111"), np.array([0.0] * 4 + [1.0] * 4))
    first, last = path(fit(WHOLE, train, Task.BINARY, price_list(np.ones(1))), train)
    assert first.scores == pytest.approx(0.0)
    assert last.scores[[0, 7]] == pytest.approx([np.log(0.2 / 0.8), np.log(5 / 2)])


def hand_made(cost, root=4.0):
    """The root pays ``root``, and loses 10 as a leaf; leaf 1 loses 2, split 2 pays ``cost``."""
    tree = CostedTree()
    for loss in (10.0, 2.0, 5.0, 1.0, 1.0):
        tree.add(np.zeros(1), loss)
    tree.feature = [0, -1, 1, -1, -1]
    tree.left, tree.right = [1, -1, 3, -1, -1], [2, -1, 4, -1, -1]
    tree.cost = [root, 0.0, cost, 0.0, 0.0]
    return tree


ALL = np.array([True, False, True, False, False])


def test_prunings_are_the_corners_of_loss_over_cost_and_levels_between_them():
    # (cost, loss): (0, 10), (4, 7), (10, 4) fall by .75 and .5; (0, 10), (4, 7), (6, 4) do not bend
    assert [p.sum() for p in nested_prunings(hand_made(6.0), ALL)] == [0, 1, 2]
    assert [p.sum() for p in nested_prunings(hand_made(2.0), ALL)] == [0, 1, 2]
    assert [p.sum() for p in nested_prunings(hand_made(0.0), ALL)] == [0, 2]  # no budget between
    assert [p.sum() for p in nested_prunings(hand_made(6.0, root=0.0), ALL)] == [1, 2]


def test_what_other_rows_do_not_confirm_is_cut_off():
    tree = hand_made(6.0)
    assert without_useless(tree, np.array([9.0, 3, 4, 2, 1])).tolist() == ALL.tolist()
    assert without_useless(tree, np.array([9.0, 3, 4, 2, 2])).sum() == 1
    # the split of node 2 helps, but all together loses more than the root
    assert without_useless(tree, np.array([5.0, 3, 4, 2, 1])).sum() == 0


def test_no_pruning_is_better_at_any_lambda():
    """Against all prunings of random trees of seven splits in three levels."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        tree = CostedTree()
        for _ in range(15):
            tree.add(np.zeros(1), float(rng.integers(1, 4)))
        tree.feature = [0] * 7 + [-1] * 8
        tree.left = [2 * u + 1 if u < 7 else -1 for u in range(15)]
        tree.right = [2 * u + 2 if u < 7 else -1 for u in range(15)]
        for u in range(6, -1, -1):
            tree.loss[u] = tree.loss[2 * u + 1] + tree.loss[2 * u + 2] + float(rng.integers(0, 9))
        tree.cost = [float(rng.integers(0, 5)) for _ in range(7)] + [0.0] * 8
        kept = np.array(tree.feature) >= 0
        ours = [worth(tree, p) for p in nested_prunings(tree, kept)]
        every = [worth(tree, np.array([*some, *[False] * 8])) for some in product((0, 1), repeat=7)]
        for price in (0.0, 0.1, 0.5, 1.0, 2.0, 7.0, 100.0):
            best = min(loss + price * cost for loss, cost in every)
            assert min(loss + price * cost for loss, cost in ours) == pytest.approx(best)
        assert all(a[1] < b[1] for a, b in pairwise(ours))


def worth(tree, asked):
    """Loss and cost of the subtree of those splits that are reached."""
    loss = cost = 0.0
    stack = [0]
    while stack:
        u = stack.pop()
        if asked[u]:
            cost += tree.cost[u]
            stack += [tree.left[u], tree.right[u]]
        else:
            loss += tree.loss[u]
    return loss, cost


def test_limits_hold():
    train = examples(Task.REGRESSION)
    stump = fit(CostTree(depth=1), train, Task.REGRESSION)
    assert len(splits(stump)) == 1
    model = fit(CostTree(min_rows=40), train, Task.REGRESSION)
    last = path(model, train)[-1]
    assert np.unique(last.scores, return_counts=True)[1].min() >= 40
