"""Walking ensembles: against the plain walk node by node, bit for bit."""

from dataclasses import replace

import numpy as np
import pytest
from bench_trees.ensemble import Ensemble
from bench_trees.inference import Needs, Steps, Walked, lay_out, walk
from helpers.random_trees import path, random_ensemble, random_rows, stump
from hypothesis import given, settings
from hypothesis import strategies as st

D = 6


# Features 0 and 1 share sensor 70, feature 2 needs three, feature 5 none. Sensors 0 and 63 lie at
# the two ends of a word: a word that passes through a float loses one of them.
def plain(features):
    """Every feature is its own sensor and every split counts 1."""
    own = np.arange(features + 1, dtype=np.int32)
    return Needs(own, own[:-1], np.ones(features), features)


SHARED = Needs(
    start=np.array([0, 1, 2, 5, 6, 7, 7], dtype=np.int32),
    needed=np.array([70, 70, 0, 63, 70, 1, 64], dtype=np.int32),
    multiplier=np.array([1.0, 0.25, 2.0, 1.0, 1.0, 3.0]),
    sensors=71,
)


def whole(ensemble, X, ends, needs=SHARED):
    layout = lay_out(ensemble, needs)
    before = Walked.begin(len(X), len(ensemble.base), layout.words)
    return walk(layout, Steps.prefixes(ends, ensemble.base), X, before)


def tree_outputs(ensemble, X, chosen=None):
    """(n, T): every tree by itself, as a step that does not carry."""
    layout = lay_out(ensemble, plain(ensemble.features), chosen)
    count = layout.trees
    steps = Steps(np.arange(1, count + 1), np.zeros((count, 1)), np.zeros(count, dtype=bool))
    done = walk(layout, steps, X, Walked.begin(len(X), 1, layout.words))
    return done.scores[:, :, 0].T


def bits_of(sensors):
    return [sum(1 << (s - 64 * w) for s in sensors if s // 64 == w) for w in range(2)]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 3), st.integers(0, 130))
def test_scores_sensors_and_splits_of_every_prefix_are_those_of_the_plain_walk(seed, outputs, n):
    rng = np.random.default_rng(seed)
    ensemble = random_ensemble(rng, trees=7, features=D, outputs=outputs)
    X = random_rows(rng, n, D)
    ends = [1, 4, 4, 7]
    got = whole(ensemble, X, ends)
    for i, row in enumerate(X):
        score, sensors, splits, t = ensemble.base.copy(), set(), 0.0, 0
        for p, end in enumerate(ends):
            while t < end:
                features, value, _ = path(ensemble, t, row)
                score[ensemble.output[t]] += value
                splits += sum(SHARED.multiplier[f] for f in features)
                for f in features:
                    sensors |= set(SHARED.needed[SHARED.start[f] : SHARED.start[f + 1]].tolist())
                t += 1
            assert got.scores[p, i].tolist() == score.tolist()
            assert got.bits[p, i].tolist() == bits_of(sensors)
            assert got.splits[p, i] == splits


@pytest.mark.parametrize(
    ("shape", "leaves"),
    [
        ("any", 2),
        ("any", 200),
        ("even", 256),
        ("even", 257),
        ("comb", 6),
        ("comb", 9),
        ("comb", 60),
    ],
)
def test_trees_of_all_shapes_give_the_outputs_of_the_plain_walk(shape, leaves):
    rng = np.random.default_rng(leaves)
    ensemble = random_ensemble(rng, trees=5, features=D, leaves=leaves, shape=shape)
    X = random_rows(rng, 70, D)
    ways = [[path(ensemble, t, row) for t in range(5)] for row in X]
    assert tree_outputs(ensemble, X).tolist() == [[w.value for w in way] for way in ways]
    spent = [sum(len(w.features) for w in way) for way in ways]
    assert whole(ensemble, X, [5], plain(D)).splits[0].tolist() == spent


def test_of_many_features_the_few_that_are_used_may_be_the_last():
    rng = np.random.default_rng(11)
    ensemble = replace(random_ensemble(rng, trees=4, features=2), features=700)
    ensemble.feature[ensemble.feature >= 0] += 698
    X = random_rows(rng, 70, 700)
    expected = [[path(ensemble, t, row).value for t in range(4)] for row in X]
    assert tree_outputs(ensemble, X).tolist() == expected
    got = whole(ensemble, X, [4], plain(700)).bits[0, :, 698 // 64]
    tested = [{f for t in range(4) for f in path(ensemble, t, row).features} for row in X]
    assert got.tolist() == [sum(1 << (f % 64) for f in features) for features in tested]


def test_no_trees_and_no_rows_give_empty_outputs():
    rng = np.random.default_rng(4)
    ensemble = random_ensemble(rng, trees=3, features=D)
    assert tree_outputs(ensemble, random_rows(rng, 0, D)).shape == (0, 3)
    assert tree_outputs(ensemble, random_rows(rng, 2, D), []).shape == (2, 0)
    none = ensemble.select(np.arange(0))
    assert whole(none, random_rows(rng, 2, D), [0]).scores.shape == (1, 2, 1)


@pytest.mark.parametrize(
    ("missing_left", "cell", "left"),
    [
        (True, np.nan, True),
        (False, np.nan, False),
        (True, 0.5, True),
        (False, 0.5, True),
        (True, np.nextafter(np.float32(0.5), np.float32(1)), False),
        (True, np.inf, False),
        (True, -np.inf, True),
    ],
)
def test_a_cell_goes_left_up_to_the_threshold_and_missing_where_told(missing_left, cell, left):
    tree = stump(0, -1.0, 1.0, 0.5, features=1)
    tree.missing_left[0] = missing_left
    assert tree_outputs(tree, np.array([[cell]], dtype=np.float32))[0, 0] == (-1 if left else 1)


def test_a_block_and_its_rows_one_by_one_agree_bitwise():
    rng = np.random.default_rng(5)
    ensemble = random_ensemble(rng, trees=40, features=D)
    X = random_rows(rng, 3000, D)
    ends = [10, 40]
    block = whole(ensemble, X, ends)
    for i in (0, 63, 64, 2999):
        alone = whole(ensemble, X[i : i + 1], ends)
        assert alone.scores[:, 0].tobytes() == block.scores[:, i].tobytes()
        assert alone.splits[:, 0].tobytes() == block.splits[:, i].tobytes()


def test_memory_maps_and_strided_arrays_are_read_as_they_are(tmp_path_factory):
    rng = np.random.default_rng(9)
    ensemble = random_ensemble(rng, trees=3, features=D)
    X = random_rows(rng, 80, D)
    file = tmp_path_factory.mktemp("maps") / "X.npy"
    np.save(file, X)
    expected = tree_outputs(ensemble, X).tolist()
    assert tree_outputs(ensemble, np.load(file, mmap_mode="r")).tolist() == expected
    assert tree_outputs(ensemble, np.asfortranarray(X)).tolist() == expected


def two_trees(**changed):
    """A tree of three nodes on feature 1, one of a single leaf."""
    state = {
        "start": np.array([0, 3, 4], np.int32),
        "feature": np.array([1, -1, -1, -1], np.int32),
        "threshold": np.array([0.5, 0, 0, 0], np.float32),
        "left": np.array([1, -1, -1, -1], np.int32),
        "right": np.array([2, -1, -1, -1], np.int32),
        "missing_left": np.zeros(4, bool),
        "value": np.array([0, 1, -1, 0.25]),
        "output": np.zeros(2, np.int32),
        "base": np.array([10.0]),
        "features": 3,
    }
    return {**state, **changed}


def test_selected_trees_come_in_the_order_asked_for():
    e = Ensemble(**two_trees(base=np.array([10.0, 20.0]), output=np.array([0, 1], np.int32)))
    turned = e.select(np.array([1, 0]))
    assert turned.start.tolist() == [0, 1, 4]
    assert turned.left.tolist() == [-1, 2, -1, -1]
    assert turned.right.tolist() == [-1, 3, -1, -1]
    assert turned.feature.tolist() == [-1, 1, -1, -1]
    assert turned.value.tolist() == [0.25, 0, 1, -1]
    assert turned.output.tolist() == [1, 0]
    assert e.select(np.zeros(0, int)).trees == 0


def test_leaves_number_vectors_in_all_parts_of_a_joined_ensemble():
    vectors = np.array([[1.0], [2.0], [3.0]])
    numbers = two_trees(value=np.array([0, 2.0, 0, 1]))
    one = Ensemble(**numbers).with_vectors(vectors)
    plain = Ensemble(**two_trees())
    both = Ensemble.concat([one.select(np.array([1])), plain, one])
    assert both.output.tolist() == [-1, 0, 0, -1, -1]
    # the leaves of the last part begin after the three vectors of the first
    assert both.value.tolist() == [1, 0, 1, -1, 0.25, 0, 5, 3, 4]
    assert both.vectors.tolist() == [[1], [2], [3]] * 2
    assert Ensemble.from_state(both.state()).vectors.tolist() == both.vectors.tolist()
    assert "vectors" not in plain.state()


def test_state_round_trip():
    state = Ensemble(**two_trees()).state()
    again = Ensemble.from_state({**state, "features": np.array(3), "other": 1}).state()
    for name, value in two_trees().items():
        np.testing.assert_array_equal(again[name], value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"value": np.zeros(3)}, "differ in length"),
        ({"value": np.zeros(4, np.float32)}, "value must be one-dimensional float64"),
        ({"start": np.array([0, 3, 5], np.int32)}, "start must rise"),
        ({"start": np.array([0, 0, 4], np.int32)}, "start must rise"),
        ({"output": np.array([0, 1], np.int32)}, "output that does not exist"),
        ({"feature": np.array([3, -1, -1, -1], np.int32)}, "feature must be -1 or 0..2"),
        ({"value": np.array([0, np.nan, 0, 0])}, "not finite"),
        ({"threshold": np.array([np.nan, 0, 0, 0], np.float32)}, "threshold is NaN"),
        ({"right": np.array([3, -1, -1, -1], np.int32)}, "outside its tree"),
        ({"left": np.array([0, -1, -1, -1], np.int32)}, "outside its tree"),
        ({"left": np.array([1, 2, -1, -1], np.int32)}, "outside its tree"),
        ({"right": np.array([1, -1, -1, -1], np.int32)}, "exactly one parent"),
        ({"vectors": np.zeros((2, 2))}, "a value for each output"),
        ({"vectors": np.full((2, 1), np.inf)}, "a vector is not finite"),
        ({"output": np.array([0, -1], np.int32)}, "numbers no vector"),
        ({"output": np.array([0, -1], np.int32), "vectors": np.zeros((2, 1))}, "numbers no vector"),
    ],
)
def test_arrays_that_are_no_trees_are_refused(changed, message):
    with pytest.raises(ValueError, match=message):
        Ensemble(**two_trees(**changed))
