"""The search for exits, against trying everything."""

import numpy as np
import pytest
from bench_methods.budget_boosting.exits import (
    ALL,
    NONE,
    Held,
    Policy,
    Search,
    by_class,
    by_rank,
    kept,
    threshold,
)
from bench_models.nested_sets.routes import NestedBoosters
from bench_trees import Ensemble

from bench_core import Examples, Queries, price_list
from bench_core.metrics import parse_metric


@pytest.mark.parametrize("seed", range(5))
def test_a_threshold_saves_as_much_as_any_other(seed):
    rng = np.random.default_rng(seed)
    sure = rng.integers(5, 10, 30) / 10  # with ties
    saved = rng.normal(size=30)
    found = threshold(sure, saved, np.argsort(sure, kind="stable"))
    tried = [saved[sure <= t].sum() for t in (NONE, *np.arange(0.5, 1, 0.1) + 0.01, ALL)]
    assert saved[sure <= found].sum() == pytest.approx(max(tried))


def stages(count, prices):
    """A model of the constant and ``count`` stages, stage k a split on each of k features."""
    trees = [
        Ensemble(
            *(np.array([0, 3], "i4"), np.array([j, -1, -1], "i4"), np.zeros(3, "f4")),
            *(np.array([1, -1, -1], "i4"), np.array([2, -1, -1], "i4")),
            *(np.zeros(3, bool), np.zeros(3)),
            *(np.zeros(1, np.int32), np.zeros(1), count),
        )
        for k in range(1, count + 1)
        for j in range(k)
    ]
    start = np.cumsum([0, *range(count + 1)])
    return NestedBoosters(Ensemble.concat(trees), start, np.ones(count + 1, np.int64), prices, ())


def held(metric="accuracy", split=0.0):
    """Stage 1 is sure and right on half the rows, stage 2 (at 9 more) right on all."""
    y = np.arange(40) % 2.0
    easy = np.arange(40) < 20
    sign = 2 * y - 1
    scores = np.stack([0 * y, np.where(easy, 4 * sign, -0.1), 5 * sign])[:, None, :]
    prices = price_list(np.array([1.0, 9.0]), split=split)
    rows = Examples(np.zeros((40, 2), np.float32), y)
    return Held(rows, scores, stages(2, prices), parse_metric(metric))


def test_rows_that_are_sure_leave_and_the_others_go_on():
    (route,) = by_class(held(), [[0, 1, 2]], 60)
    costs = [point["expected_cost"] for point in route.points]
    assert costs[-1] == pytest.approx(5.5)  # half pay 1, half 10, and none are wrong
    first, second = route.values[-1]
    # at least half sure, and as sure as the easy rows
    assert first >= 0.5
    assert 0.53 < second < 0.98


def test_an_exit_that_makes_the_metric_worse_than_a_cheaper_set_is_dropped():
    """All rows leave surely wrong at stage 1, which only the loss of its cost would allow."""
    plain = held("auc")
    scores = plain.scores.copy()
    scores[1] = -scores[1]
    wrong = Held(plain.rows, scores, plain.model, plain.metric)
    for route in by_class(wrong, [[0, 1, 2]], 60):
        for point in route.points:
            assert point["expected_cost"] < 1 or point["expected_cost"] >= 10


def test_evaluation_is_paid_at_every_stage_of_a_chain():
    priced = held(split=2.0)
    assert priced.costs([0, 1, 2])[:, 0].tolist() == [0.0, 1 + 2, 1 + 9 + 2 + 4]
    assert priced.costs([0, 2])[:, 0].tolist() == [0.0, 14.0]


def test_no_thresholds_cost_less_at_the_same_loss():
    """Against all settings of two exits: none has a lower loss plus price of cost."""
    rng = np.random.default_rng(4)
    lost, sure = rng.random((3, 30)), rng.random((3, 30))
    cost = np.repeat([[0.0], [1.0], [3.0]], 30, axis=1)
    order, weight = np.argsort(sure, axis=1), np.full(30, 1 / 30)
    found = Search(lost, cost, sure, order, weight).searched(0, 2, 0.1)
    one = [(found.loss + 0.1 * found.cost)]
    for s in [NONE, *sure[0], ALL]:
        on = sure[0] <= s
        # the last exit is the best one for the rows that reach it
        total = np.where(on, 0, lost[0])
        best = min(
            np.where(on, np.where(sure[1] <= t, lost[2] + 0.3, lost[1] + 0.1), total).mean()
            for t in [NONE, *sure[1], ALL]
        )
        one.append(best)
    assert one[0] <= min(one[1:]) + 0.02


def test_documents_of_low_rank_do_not_reach_the_second_stage():
    rng = np.random.default_rng(0)
    y = np.tile(np.r_[np.full(2, 3.0), np.zeros(18)], 10)
    cheap = y + rng.normal(size=200)
    scores = np.stack([0 * y, cheap, y])[:, None, :]
    rows = Examples(np.zeros((200, 2), np.float32), y, Queries.from_sizes(np.full(10, 20)))
    model = stages(2, price_list(np.array([1.0, 10.0])))
    (route,) = by_rank(Held(rows, scores, model, parse_metric("ndcg@5")), [0, 1, 2], 60)
    assert route.stages == [1, 2]
    # the truth of a second stage needs no more than the best documents of the first
    assert 0 < len(route.points) < 6
    assert all(point["after"] == 1 and point["stage"] == 2 for point in route.points)


def test_what_is_dominated_is_dropped_and_costs_are_spread():
    none = np.zeros(0)
    policies = [
        Policy(none, c, -q) for c, q in ((1, 0.5), (2, 0.4), (3, 0.6), (3.1, 0.61), (9, 0.7))
    ]
    assert [p.cost for p in kept(policies, 9)] == [1, 3, 3.1, 9]
    assert [p.cost for p in kept(policies, 3)] == [1, 3, 9]
