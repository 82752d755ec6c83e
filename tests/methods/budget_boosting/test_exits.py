"""Exits from a chain of stages, on rows whose right answers are known by hand."""

import numpy as np
import pytest
from bench_methods.budget_boosting.exits import between, costs, evenly, frontier, with_exits
from bench_models.nested_sets.held_out import HeldOutFit
from bench_models.nested_sets.routes import NestedBoosters, Route
from bench_trees import Ensemble
from helpers.random_trees import stump

from bench_core import Examples, Queries, Task, price_list
from bench_core.metrics import parse_metric


def stages(count, prices):
    """A model of the constant and ``count`` stages, stage k a split on each of k features."""
    trees = [stump(j, 0.0, 0.0, features=count) for k in range(1, count + 1) for j in range(k)]
    start = np.cumsum([0, *range(count + 1)])
    routes = [Route([k], {"stage": k}) for k in range(count + 1)]
    ones = np.ones(count + 1, np.int64)
    return NestedBoosters(Ensemble.concat(trees), start, ones, prices, routes)


ROWS = Examples(np.zeros((40, 2), np.float32), np.arange(40) % 2.0)
SIGN = 2 * ROWS.y - 1
EASY = np.arange(40) < 20


def exits(cheap, metric="accuracy", rows=ROWS, last=5 * SIGN, task=Task.BINARY):
    """Points of a chain whose stage 1 costs 1 and scores ``cheap``, and stage 2 (10) ``last``."""
    fits = [
        [HeldOutFit(None, rows, np.zeros((1, 0)), scores[None])]
        for scores in (0 * cheap, cheap, last)
    ]
    plain = stages(2, price_list(np.array([1.0, 9.0])))
    model = with_exits(plain, fits, [[1, 2]], parse_metric(metric), task)
    return [(route, point) for route in model.routes for point in route.points]


def test_rows_that_are_sure_leave_and_the_others_go_on():
    """Stage 1 is sure and right on half the rows; on the others it is wrong and unsure."""
    ((route, point),) = exits(np.where(EASY, 4 * SIGN, -0.1 * SIGN))
    assert route.stages == [1, 2]
    assert point["stage"] == 2
    # the probabilities are .525 and .982
    assert 0.52 < point["threshold"] < 0.983
    assert route.values == [[point["threshold"]]]


@pytest.mark.parametrize("metric", ["accuracy", "auc"])
def test_an_exit_no_better_than_a_cheaper_set_is_dropped(metric):
    """All that leave stage 1 are surely wrong: chains are worse than the constant alone."""
    assert exits(np.where(EASY, -4, -5) * SIGN, metric) == []


GRADES = np.tile([3.0, 2.0, 0.0, 0.0], 10)
DOCUMENTS = Examples(np.zeros((40, 2), np.float32), GRADES, Queries.from_sizes(np.full(10, 4)))


def test_documents_of_low_score_leave_and_the_others_go_on():
    """Stage 1 knows which documents are irrelevant, and has the two others in the wrong order."""
    cheap = np.tile([2.0, 3.0, -4.0, -5.0], 10)
    ((route, point),) = exits(cheap, "ndcg@2", DOCUMENTS, 2 * GRADES, Task.RANKING)
    assert (route.kind, route.stages) == ("score", [1, 2])
    assert point == {"after": 1, "stage": 2, "threshold": -1.0}
    assert route.values == [[-1.0]]


def test_exits_that_rank_no_better_than_a_cheaper_set_are_dropped():
    """The best documents have the lowest scores: whichever leaves, a relevant one is among them."""
    assert exits(-GRADES, "ndcg@2", DOCUMENTS, GRADES, Task.RANKING) == []


@pytest.mark.parametrize("scores", [[3.0, 3.0, 3.0, 5.0], [0.2, 0.9, 0.9, 0.9], [2.0, 2.0]])
def test_thresholds_are_no_rows_own_value(scores):
    found = between(np.array([scores]), np.ones(len(scores)))
    assert not set(found) & set(scores)
    assert all(min(scores) < t < max(scores) for t in found)


def test_evaluation_is_paid_at_every_stage_of_a_chain():
    priced = stages(2, price_list(np.array([1.0, 9.0]), split=2.0))
    assert costs(priced, [0, 1, 2], ROWS)[:, 0].tolist() == [0.0, 1 + 2, 1 + 9 + 2 + 4]
    assert costs(priced, [0, 2], ROWS)[:, 0].tolist() == [0.0, 14.0]


def test_settings_that_cost_more_for_no_better_quality_are_dropped():
    points = [(1, 0.5, ["a"]), (2, 0.4, ["b"]), (3, 0.6, []), (3.1, 0.6, ["c"]), (9, 0.7, ["d"])]
    assert frontier(points) == ["a", "d"]


def test_values_are_spread_with_both_ends():
    assert evenly([1, 2, 3, 4, 5], 3) == [1, 3, 5]
    assert evenly([1, 2], 3) == [1, 2]
    assert evenly([], 3) == []
