"""The three learners: labels, prices, the served cascade and its bills."""

from dataclasses import replace
from itertools import product
from math import log

import numpy as np
import pytest
from bench_methods.cronus import (
    Cronus,
    CronusInit,
    CronusSingle,
    cascade_of,
    gentle_drop,
    staged,
    units_of,
)
from bench_methods.cronus.cascade import Cascade
from helpers import boosted_cases
from helpers.cronus_cases import Fixed, examples, forest, prices, stumps
from helpers.fakes import FakeContext, fit_after_needs
from helpers.staged_cases import walk_rows

from bench_core import Examples, InputError, Prices, Task

KINDS = [CronusSingle, CronusInit, Cronus]


def fit(kind, train, task=Task.RANKING, at=None, **changed):
    stages = {} if kind is CronusSingle else {"stages": 4}
    how = {"base": Fixed(forest(train.X, train.y)), "tradeoff": 0.05, **stages, **changed}
    return boosted_cases.fit(kind(**how), train, task, at or prices())


def last(model, features):
    return list(model.predict_path(features))[-1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("task", [Task.RANKING, Task.BINARY])
def test_the_fitted_cascade_is_that_of_its_definition_and_rejects_some(kind, task):
    train = examples(task)
    model = fit(kind, train, task)
    found, rows = last(model, train.features), walk_rows(model, train.features)[-1]
    gone = np.array([row.rejected for row in rows])
    assert kind is CronusSingle or 0.1 < gone.mean() < 0.95
    bought = found.bills["path"].acquired.unpack()
    assert [set(np.flatnonzero(own)) for own in bought] == [row.sensors for row in rows]
    if task is Task.BINARY:  # in rankings only the order counts
        scores = np.where(gone, -2.0, [row.score[0] for row in rows])
        assert found.scores == pytest.approx(scores)


def test_binary_scores_are_corrected_for_the_class_weight():
    # one stump that separates perfectly: f is the weighted mean label on each side, +1 or -1
    X = np.repeat([[0.0], [1.0]], 50, axis=0).astype(np.float32)
    train = Examples(X, np.repeat([0.0, 1.0], 50))
    stump = stumps([0], [0.5], [-0.1], [0.1])
    learner = CronusSingle(base=Fixed(stump), tradeoff=0.0, rho_last=(0.0,), positive_weight=2.0)
    model = learner.fit(train, train, Prices.additive(np.ones(1)), FakeContext(Task.BINARY, 2))
    scores = last(model, train.features).scores
    np.testing.assert_allclose(scores, np.repeat([-2.0, 2.0], 50) - log(2.0), rtol=1e-6)


def test_class_weights_are_the_papers_for_ranking_and_none_for_binary():
    usual, three, one = (CronusInit(positive_weight=w) for w in (None, 3.5, 1.0))
    for task, same in ((Task.RANKING, three), (Task.BINARY, one)):
        train = examples(task)
        base = Fixed(forest(train.X, train.y))
        a, b = (
            boosted_cases.fit(replace(x, base=base), train, task, prices()) for x in (usual, same)
        )
        np.testing.assert_array_equal(
            last(a, train.features).scores, last(b, train.features).scores
        )


def test_rejected_documents_may_all_score_minus_one():
    """The paper's test-time prediction, in units of the labels."""
    train, rho = examples(Task.RANKING), {"rho_first": (0.01,), "rho_last": (0.01,)}
    ordered, printed = (fit(CronusInit, train, rejected=r, **rho) for r in ("score", "minus-one"))
    kept, scores = (last(model, train.features).scores for model in (ordered, printed))
    out = scores != kept
    assert 0.1 < out.mean() < 0.9
    assert set(scores[out].tolist()) == {-1.0}


def test_documents_are_positive_from_the_relevant_grade_on():
    train = examples(Task.RANKING)
    rho = {"rho_first": (0.01,), "rho_last": (0.01,)}  # the same, whatever validation says
    as_grades = fit(CronusInit, train, relevant_grade=2, **rho)
    trees = as_grades.ensemble
    relabelled = replace(train, y=np.where(train.y >= 2, 3.0, 2.0))
    same = fit(CronusInit, relabelled, base=Fixed(trees), relevant_grade=3, **rho)
    np.testing.assert_allclose(
        last(as_grades, train.features).scores, last(same, train.features).scores, rtol=1e-9
    )


def test_documents_of_one_class_are_one_clear_line():
    train = examples(Task.RANKING)
    low = replace(train, y=np.minimum(train.y, 2.0))
    with pytest.raises(InputError, match=r"no training document reaches grade 3 .*highest is 2"):
        fit(Cronus, low)
    with pytest.raises(InputError, match="every training document reaches grade 1"):
        fit(Cronus, replace(train, y=np.maximum(train.y, 1.0)), relevant_grade=1)


@pytest.mark.parametrize("kind", KINDS)
def test_rho_has_no_unit(kind):
    """Trees that say eight times as much get an eighth of the weight, and no other."""
    train = examples(Task.RANKING)
    trees = forest(train.X, train.y)
    louder = replace(trees, value=8 * trees.value)
    how = {"tradeoff": 0.0, "rho_last": (0.05,)}
    if kind is not CronusSingle:
        how |= {"rho_first": (0.2,), "stages": 10}
    one, other = (
        fit(kind, train, base=Fixed(base), cut_off=cut_off, **how)
        for base, cut_off in ((trees, 8e-4), (louder, 1e-4))
    )
    assert one.facts["trees_per_stage"] == other.facts["trees_per_stage"]
    assert 0 < one.facts["trees_per_stage"][-1] < 12
    np.testing.assert_allclose(
        last(one, train.features).scores, last(other, train.features).scores, rtol=1e-3, atol=1e-3
    )


def test_the_setting_that_is_best_on_validation_when_initialised_is_optimised():
    train, valid = examples(Task.RANKING), examples(Task.RANKING, seed=1)
    trees, context = forest(train.X, train.y), FakeContext(Task.RANKING, 2)
    tried = {"rho_first": (0.5, 0.02), "rho_last": (0.4, 0.01, 0.8)}

    def model(kind, first, last):
        learner = kind(base=Fixed(trees), tradeoff=0.05, stages=3, rho_first=first, rho_last=last)
        return fit_after_needs(learner, train, valid, prices(), context)

    def judged(found):
        scores = last(found, valid.features).scores
        return float(context.metric.values(scores, valid.y, valid.queries, None).mean)

    values = {
        (a, b): judged(model(CronusInit, (a,), (b,)))
        for a, b in product(tried["rho_first"], tried["rho_last"])
    }
    assert len(set(values.values())) > 1
    best = max(values, key=values.__getitem__)
    assert best != (0.5, 0.4)  # the first
    chosen, alone = model(Cronus, *tried.values()), model(Cronus, (best[0],), (best[1],))
    assert tuple(chosen.facts["rho"]) == best
    np.testing.assert_array_equal(
        last(chosen, valid.features).scores, last(alone, valid.features).scores
    )


@pytest.mark.parametrize(
    ("survivors", "expected"), [(0.1, 0.15), (0.5**9, 0.15), (0.95**9, 0.05), (1.4, 0.0)]
)
def test_the_drop_spares_the_positives(survivors, expected):
    assert gentle_drop(0.15, 10, survivors) == pytest.approx(expected)


def test_a_vanished_stage_is_not_served():
    trees = stumps([0, 1], [0, 0], [0, 0], [1, 1])
    cascade = Cascade(
        np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [0.0, 2.0]]),
        np.array([0.5, 0.0, 0.1, 0.0]),
        np.array([-np.inf, 0.2, -3.0, -np.inf]),
    )
    model = staged(
        cascade, ensemble=trees, prices=prices(), binary=False, positive_weight=3.5, rejected="out"
    )
    assert [s.entries.tolist() for s in model.stages] == [[0], [1]]
    assert model.stages[0].bar == 0.2


def test_the_cascade_of_a_served_model_is_the_one_that_was_served():
    trees = stumps([0, 1, 2], [0, 0, 0], [0, 0, 0], [1, 1, 1])
    weights = np.array([[0.0, 0.0, 0.0], [0.5, 0.0, 0.0], [0.0, 0.0, 2.0]])
    cascade = Cascade(weights, np.array([0.0, 0.25, -0.1]), np.array([-np.inf, 0.2, -np.inf]))
    model = staged(
        cascade,
        ensemble=trees,
        prices=prices(),
        binary=True,
        positive_weight=1.0,
        rejected="out",
        facts={"stages": 3, "vanished": [0]},
    )
    found = cascade_of(model, 2, *units_of(binary=True, positive_weight=1.0))
    np.testing.assert_array_equal(found.weights, weights[:, [0, 2]])  # without the idle tree
    np.testing.assert_array_equal(found.bias, cascade.bias)
    np.testing.assert_array_equal(found.threshold, cascade.threshold)
