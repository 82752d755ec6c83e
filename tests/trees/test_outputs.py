"""Trees of several outputs, which one call grows one after the other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench_trees import Settings, find_bins, grower
from bench_trees.grower import Grower
from bench_trees.kernels.tree import ROOM
from bench_trees.penalties import Ledger, Penalty
from bench_trees.threads import Workers


def growing(X: np.ndarray, settings: Settings, penalty: Penalty) -> Grower:
    bins = find_bins(X)
    words = bins.words(X)
    words.flags.writeable = False
    return Grower(words, bins, settings, Ledger(penalty, len(X)), None, Workers(1))


@pytest.mark.parametrize("hessians", ["none", "one for all", "one for each"])
@pytest.mark.parametrize("priced", ["free", "coupled", "lazy"])
def test_outputs_together_grow_the_trees_of_each_alone(
    hessians: str, priced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of as many leaves as there is use for, so that room runs out amid a tree and between two; the
    third output has nothing to split."""
    rng = np.random.default_rng(0)
    n, outputs = 500, 5
    X = rng.normal(size=(n, 4)).astype(np.float32)
    gradient = rng.normal(size=(outputs, n))
    gradient[2] = 0
    shape = {"none": None, "one for all": (1, n), "one for each": (outputs, n)}[hessians]
    hessian = None if shape is None else rng.uniform(0.5, 1, shape)
    settings = Settings(max_depth=None, max_leaves=120, min_rows=2)
    owed: dict[str, Any] = {} if priced == "free" else {priced: np.full(4, 1e-4)}
    asked: list[int] = []
    run = grower.grow
    monkeypatch.setattr(grower, "grow", lambda *a: asked.append(int(run(*a))) or asked[-1])

    together = growing(X, settings, Penalty.plain(4, **owed))
    scores = np.zeros((outputs, n))
    trees = together.grow(gradient, hessian, scores)
    assert asked.count(ROOM) > (1 if priced == "free" else 0)
    alone = growing(X, settings, Penalty.plain(4, **owed))
    for k, tree in enumerate(trees):
        second = None if hessian is None else hessian[[k % len(hessian)]]
        own = np.zeros((1, n))
        (expected,) = alone.grow(gradient[[k]], second, own) or [None]
        assert (expected is None) == (k == 2)
        if expected is None:
            assert (tree.feature.tolist(), tree.value.tolist()) == ([-1], [0.0])
            assert not scores[k].any()
            continue
        assert len(expected.feature) > 60
        for one, other in zip(tree, expected, strict=True):
            np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(scores[k], own[0])


def test_outputs_of_which_none_is_split_have_no_trees() -> None:
    together = growing(np.zeros((9, 2), np.float32), Settings(min_rows=1), Penalty.plain(2))
    assert together.grow(np.ones((3, 9)), None) == []
