"""Trees of several outputs, which one call grows one after the other; what features owe."""

import numpy as np
import pytest
from bench_trees import Settings, grower
from bench_trees.kernels.payments import count_unpaid, mark_paid
from bench_trees.kernels.tree import ROOM
from bench_trees.penalties import Ledger, Penalty
from helpers.grown import assert_same_bits, boosted, grower_of, priced


@pytest.mark.parametrize("hessians", ["none", "one for all", "one for each"])
@pytest.mark.parametrize("kind", ["free", "coupled", "lazy"])
def test_outputs_together_grow_the_trees_of_each_alone(hessians, kind, monkeypatch):
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
    owed = priced(4, **({} if kind == "free" else {kind: 1e-4}))
    asked = []
    run = grower.grow
    monkeypatch.setattr(grower, "grow", lambda *a: asked.append(int(run(*a))) or asked[-1])

    together = grower_of(X, settings, owed)
    scores = np.zeros((outputs, n))
    trees = together.grow(gradient, hessian, scores)
    assert asked.count(ROOM) > (1 if kind == "free" else 0)
    alone = grower_of(X, settings, owed)
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


def test_outputs_of_which_none_is_split_have_no_trees():
    together = grower_of(np.zeros((9, 2), np.float32), Settings(min_rows=1), priced(2))
    assert together.grow(np.ones((3, 9)), None) == []


def shared():
    """Feature 0 needs sensors 0 and 1, feature 1 sensor 1, feature 2 none, feature 3 sensor 2."""
    return Penalty.over(
        np.array([0, 2, 3, 3, 4], np.int32),
        np.array([0, 1, 1, 2], np.int32),
        3,
        coupled=np.array([4.0, 2.0, 1.0]),
        lazy=np.array([0.5, 0.25, 0.0]),
    )


@pytest.mark.parametrize("copies", [None, np.array([3, 1, 4, 1, 5] * 40)])
def test_unpaid_counts_are_those_of_a_plain_set(copies):
    rng = np.random.default_rng(0)
    ledger = Ledger(shared(), 200)
    owing = {(k, r) for k in range(3) for r in range(200)}
    for _ in range(5):
        sensors = rng.choice(3, 2, replace=False)
        rows = rng.choice(200, 30, replace=False).astype(np.uint32)
        mark_paid(ledger.paid, sensors, rows)
        owing -= {(int(k), int(r)) for k in sensors for r in rows}
    rows = rng.choice(200, 90, replace=False).astype(np.uint32)
    out = np.zeros(3, np.int64)
    count_unpaid(
        ledger.paid, np.arange(3), rows, np.empty(0, np.int64) if copies is None else copies, out
    )
    weight = np.ones(200, int) if copies is None else copies
    expected = [sum(weight[r] for r in rows if (k, int(r)) in owing) for k in range(3)]
    assert out.tolist() == expected


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"coupled": np.array([1.0, -1, 0])}, "coupled holds a negative"),
        ({"lazy": np.array([1.0, np.nan, 0])}, "lazy holds a negative or non-finite"),
        ({"lazy": np.zeros(2)}, r"coupled and lazy must be \(s,\)"),
        ({"split": np.zeros(3)}, r"split \(d,\)"),
        ({"needed": np.array([0, 1, 1, 3], np.int32)}, "sensors 0..2"),
        ({"needed": np.array([0, 1, 1], np.int32)}, "do not fit together"),
    ],
)
def test_impossible_penalties_are_refused(changed, message):
    p = shared()
    fields = {name: getattr(p, name) for name in ("start", "needed", "coupled", "lazy", "split")}
    with pytest.raises(ValueError, match=message):
        Penalty(**{**fields, **changed})


@pytest.mark.parametrize("second_order", [True, False])
@pytest.mark.parametrize("copies", [None, np.arange(400) % 3 + 1])
@pytest.mark.parametrize("classes", [2, 5])
def test_iterations_in_one_call_are_those_of_one_call_each(
    classes, copies, second_order, monkeypatch
):
    """Prices end boosting before the last iteration."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 4)).astype(np.float32)
    y = (np.abs(X[:, 0]) * 9).astype(int) % classes * 1.0
    settings = Settings(trees=30, min_rows=5, second_order=second_order)
    how = {"multiplicity": copies, "penalty": priced(4, split=2e-3), "settings": settings}
    how["loss"] = "logistic" if classes == 2 else "softmax"
    fits = []
    for cells in (grower.CELLS, 1):
        monkeypatch.setattr(grower, "CELLS", cells)
        fits.append(boosted(X, y, **how))
    assert 0 < fits[0].trees < 30 * len(fits[0].base)
    assert_same_bits(*fits)
