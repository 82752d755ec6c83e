from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bench_trees.ensemble import Ensemble


def arrays(**changed: Any) -> dict[str, Any]:
    """A tree of three nodes on feature 1, one of a single leaf."""
    state: dict[str, Any] = {
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


def test_counts() -> None:
    e = Ensemble(**arrays())
    assert (e.trees, e.nodes, e.outputs_count, e.features) == (2, 4, 1, 3)


def test_the_first_trees_may_be_selected_alone() -> None:
    e = Ensemble(**arrays()).select(np.arange(1))
    assert (e.trees, e.nodes, e.value.tolist()) == (1, 3, [0, 1, -1])


def test_an_ensemble_may_have_no_trees() -> None:
    e = Ensemble(**arrays()).select(np.arange(0))
    assert (e.trees, e.nodes, e.base.tolist()) == (0, 0, [10.0])


def test_selected_trees_come_in_the_order_asked_for() -> None:
    e = Ensemble(**arrays(base=np.array([10.0, 20.0]), output=np.array([0, 1], np.int32)))
    turned = e.select(np.array([1, 0]))
    assert turned.start.tolist() == [0, 1, 4]
    assert turned.left.tolist() == [-1, 2, -1, -1]
    assert turned.right.tolist() == [-1, 3, -1, -1]
    assert turned.feature.tolist() == [-1, 1, -1, -1]
    assert turned.value.tolist() == [0.25, 0, 1, -1]
    assert turned.output.tolist() == [1, 0]
    assert e.select(np.zeros(0, int)).trees == 0


def test_the_trees_of_several_ensembles_are_joined() -> None:
    one = Ensemble(**arrays())
    both = Ensemble.concat([one.select(np.array([1])), one])
    assert both.start.tolist() == [0, 1, 4, 5]
    assert both.left.tolist() == [-1, 2, -1, -1, -1]
    assert both.right.tolist() == [-1, 3, -1, -1, -1]
    assert both.value.tolist() == [0.25, 0, 1, -1, 0.25]


def test_state_round_trip() -> None:
    state = Ensemble(**arrays()).state()
    again = Ensemble.from_state({**state, "features": np.array(3), "other": 1}).state()
    for name, value in arrays().items():
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
    ],
)
def test_arrays_that_are_no_trees_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Ensemble(**arrays(**changed))
