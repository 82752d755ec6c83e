"""Cascades by confidence, row by row from the models that they ask."""

from functools import cache

import numpy as np
import pytest
from bench_methods.cegb import CEGB
from bench_methods.confidence_cascade import ConfidenceCascade, SelectionCascade
from bench_methods.forward_selection import ForwardSelection
from bench_methods.gbrt import GBRT
from bench_methods.scikit import RandomForest

from bench_core import Task
from bench_core.conformance import task_splits
from bench_core.conformance.cases import fit

CLASSES = [Task.BINARY, Task.MULTICLASS]
SPLITS = cache(lambda task: task_splits(task, 600))
CHEAP = CEGB(trees=20, tradeoff=0.3, learning_rate=0.3)
SETS = ForwardSelection(trees=10, steps=3, leaves=4, min_rows=5)


def surest(scores):
    """The probability of each row's likeliest class."""
    if scores.ndim == 1:
        one = 1 / (1 + np.exp(-scores))
        return np.maximum(one, 1 - one)
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    return (odds / odds.sum(axis=1, keepdims=True)).max(axis=1)


def sensors(prediction):
    return prediction.bills["path"].acquired.rows(len(prediction.scores)).unpack()


def paid(prediction, prices):
    n, bill = len(prediction.scores), prediction.bills["path"]
    return np.broadcast_to(bill.evaluation_cost(prices, n), n)


@pytest.mark.parametrize("task", CLASSES, ids=str)
@pytest.mark.parametrize("large", [GBRT(trees=30), RandomForest(trees=5)], ids=lambda m: m.name)
def test_the_unsure_rows_are_answered_by_the_large_model_and_pay_for_both(task, large):
    splits = SPLITS(task)
    test, prices = splits.test.features, splits.costs
    learner = ConfidenceCascade(base=CHEAP, large=large, prefixes=3, gates=4)
    *_, whole = fit(large, splits).predict_path(test)
    by_trees = ordinary_prefixes(test, task)
    path = list(fit(learner, splits).predict_path(test))
    prefixes = sorted({int(p.point["trees"]) for p in path[:-1]})
    assert len(prefixes) == 3
    assert prefixes[-1] == max(by_trees)
    for now in path[:-1]:
        cheap = by_trees[now.point["trees"]]
        sure = surest(cheap.scores)
        sent = np.any(np.atleast_2d((now.scores != cheap.scores).T), axis=0)
        assert np.array_equal(now.scores[~sent], cheap.scores[~sent])
        assert np.array_equal(now.scores[sent], whole.scores[sent])
        # one threshold divides them
        assert sure[sent].max(initial=0) < sure[~sent].min(initial=2)
        expected = sensors(cheap) | (sensors(whole) & sent[:, None])
        assert np.array_equal(sensors(now), expected)
        bill = paid(cheap, prices) + np.where(sent, paid(whole, prices), 0)
        assert np.allclose(paid(now, prices), bill)
    assert np.array_equal(path[-1].scores, whole.scores)
    assert path[-1].point == {"trees": 0, "sent": 1.0}


def test_a_gate_sends_the_share_of_the_training_rows_that_its_point_names():
    splits = SPLITS(Task.BINARY)
    learner = ConfidenceCascade(base=CHEAP, large=GBRT(trees=30), prefixes=2, gates=4)
    train, alone = splits.train, ordinary_prefixes(splits.train.features, Task.BINARY)
    *path, _ = fit(learner, splits).predict_path(train.features)
    for now in path:
        sent = now.scores != alone[now.point["trees"]].scores
        assert np.average(sent, weights=train.weights) == pytest.approx(now.point["sent"], abs=1e-6)
    largest = [now.point["sent"] for now in path if now.point["trees"] == max(alone)]
    assert largest[0] == 0
    assert largest == pytest.approx([0, 0.2, 0.4, 0.6, 0.8], abs=0.05)


def ordinary_prefixes(features, task):
    """By trees the points of the chain that a cascade cuts, not those of the cheap start."""
    path = fit(CHEAP, SPLITS(task)).predict_path(features)
    return {p.point["trees"]: p for p in path if "cheap" not in p.point}


@pytest.mark.parametrize("task", CLASSES, ids=str)
def test_a_row_stops_at_the_first_set_of_features_that_makes_it_sure(task):
    splits = SPLITS(task)
    test, n = splits.test.features, len(splits.test)
    alone = list(fit(SETS, splits).predict_path(test))
    learner = SelectionCascade(base=SETS, thresholds=(0.6, 0.9))
    model = fit(learner, splits)
    path = list(model.predict_path(test))
    known = {p.point["features"]: p for p in alone}
    assert [p.point for p in path if "threshold" not in p.point] == [p.point for p in alone]
    stopped = set()
    for now in path:
        if "threshold" not in now.point:
            same = known[now.point["features"]]
            assert np.array_equal(now.scores, same.scores)
            assert np.array_equal(sensors(now), sensors(same))
            continue
        # what is exported holds no larger set
        assert len(model.program(now.point).features) <= now.point["features"]
        asked = [p for size, p in known.items() if 0 < size <= now.point["features"]]
        for i in range(n):
            bought = np.zeros_like(sensors(now)[i])
            for own in asked:
                bought |= sensors(own)[i]
                if surest(own.scores[i : i + 1])[0] > now.point["threshold"]:
                    break
            stopped.add(own.point["features"])
            assert np.array_equal(now.scores[i], own.scores[i])
            assert np.array_equal(sensors(now)[i], bought)
    assert len(stopped) > 1
