"""What may stand under another learner; paths made of several models."""

import json
from dataclasses import replace

import numpy as np
import pytest
from bench_methods.cascades import AndOr, SoftCascade
from bench_methods.cronus import Cronus
from bench_methods.gbrt import GBRT
from bench_models.boosting import chain, ensemble_of
from bench_models.nested_sets.purchases import readable
from bench_models.path_of_models import PathOfModels
from bench_trees import Settings
from helpers.boosted_cases import examples, mean_cost, prices, subsets
from helpers.every_learner_cases import LEARNERS, quick
from helpers.fakes import FakeContext, fit_after_needs
from helpers.kit import refused
from helpers.random_trees import path, random_ensemble, random_rows

from bench_core import DiscountGroup, Examples, Features, Task, UsageError, price_list
from bench_core.conformance import cases as conformance
from bench_core.conformance import task_splits

CHANGES = {
    "a weight": lambda s: replace(s, weights=s.weights * 2),
    "no weight": lambda s: replace(s, weights=s.weights * 0),
    "the constant": lambda s: replace(s, bias=s.bias + 1),
    "a gate": lambda s: replace(s, bar=0.0),
    "a start afresh": lambda s: replace(s, carry=False),
    "fewer trees": lambda s: replace(s, entries=s.entries[:0], weights=s.weights[:0]),
    "other trees": lambda s: replace(s, entries=s.entries[::-1] - 1),
}


def boosted(outputs):
    rng = np.random.default_rng(outputs)
    trees = random_ensemble(rng, trees=6, features=4, leaves=5, outputs=outputs)
    return chain(trees, prices(), {})


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_a_chain_of_all_trees_adds_up(outputs):
    model = boosted(outputs)
    trees = model.ensemble
    X = random_rows(np.random.default_rng(0), 20, 4)
    expected = np.tile(trees.base, (20, 1))
    for i, row in enumerate(X):
        for t in range(trees.trees):
            expected[i, trees.output[t]] += path(trees, t, row).value
    last = list(model.predict_path(Features(X)))[-1].scores
    assert model.adds_up
    assert np.allclose(last.reshape(20, outputs), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("change", CHANGES)
def test_a_chain_with_one_stage_changed_does_not(change):
    model = boosted(1)
    last = CHANGES[change](model.stages[-1])
    assert not replace(model, stages=[*model.stages[:-1], last]).adds_up


@pytest.mark.parametrize("cascade", [Cronus, SoftCascade, AndOr])
def test_a_cascade_whose_stages_do_not_add_up_offers_no_trees(cascade):
    rows, learner = examples(Task.BINARY), cascade(base=GBRT(trees=4), stages=2, cycles=1)
    context = FakeContext(Task.BINARY, 2)
    model = fit_after_needs(learner, rows, rows, prices(), context)
    context.models = {learner: model}
    words = f"base '{learner.name}' has no trees that add up"
    refused(words, ensemble_of, "early-exit", learner, context, error=UsageError)


STANDING = ("astc", "budget-prune", "cronus", "cstc", "early-exit", "lear", "soft-cascade")
NO_SUM = sorted(name for name, cls in LEARNERS.items() if not getattr(cls, "adds_up", True))


@pytest.mark.parametrize("base", NO_SUM)
@pytest.mark.parametrize("learner", STANDING)
def test_what_never_adds_up_is_refused_before_anything_is_trained(learner, base):
    words, own = f"base '{base}' has no trees that add up", LEARNERS[base]()
    refused(words, LEARNERS[learner], base=own, error=ValueError)


MAY = [
    (name, task)
    for name in sorted(LEARNERS.keys() - NO_SUM)
    for task in sorted(LEARNERS[name].tasks)
]


@pytest.mark.parametrize(("name", "task"), MAY, ids=str)
def test_what_is_taken_for_a_base_adds_up_to_its_scores(name, task, tmp_path):
    splits = task_splits(task, 80)
    learner = quick(name, task, splits.train, tmp_path)
    model = conformance.fit(learner, splits)
    context = FakeContext(task, splits.classes, models={learner: model})
    try:
        trees = ensemble_of("early-exit", learner, context, single=False)
    except UsageError:
        return
    rows, whole = splits.test.features, chain(trees, splits.prices, {})
    summed, own = (list(m.predict_path(rows))[-1] for m in (whole, model))
    assert np.allclose(summed.scores, own.scores, rtol=1e-14, atol=0)


def mask(*features, of=4):
    return np.isin(np.arange(of), features)


def silent(done, total):
    pass


def trained(*sets):
    """Rows, boosting on their subsets, and the trees on each of these sets of features."""
    train = examples(Task.REGRESSION)
    of = subsets(train, Task.REGRESSION, shape=Settings(trees=5))
    return train, of, [of.boost(mask(*one), silent) for one in sets]


def test_boosting_on_a_subset_is_boosting_on_the_data_cut_to_it():
    train, _, (ours,) = trained([1, 3])
    cut = Examples(np.ascontiguousarray(train.X[:, [1, 3]]), train.y)
    context = FakeContext(Task.REGRESSION)
    plain = GBRT(trees=5).fit(cut, cut, price_list(np.ones(2)), context).ensemble
    assert ours.value.tolist() == plain.value.tolist()
    assert ours.threshold.tolist() == plain.threshold.tolist()
    assert ours.feature.tolist() == [{-1: -1, 0: 1, 1: 3}[j] for j in plain.feature.tolist()]
    assert ours.features == 4


def test_no_features_give_the_constant():
    train, _, (ensemble,) = trained([])
    assert ensemble.trees == 0
    assert ensemble.base.tolist() == [pytest.approx(train.y.mean())]


def test_a_path_bills_each_model_for_itself():
    train, of, made = trained([3], [0])
    models = [of.whole(trees, {"model": k}) for k, trees in enumerate(made)]
    first, second = PathOfModels(models).predict_path(train.features)
    assert [dict(p.point) for p in (first, second)] == [{"model": 0}, {"model": 1}]
    assert mean_cost(first, prices()) == 50
    assert mean_cost(second, prices()) == 1


def test_a_rebuilt_path_predicts_the_same():
    train, of, made = trained(*(range(k) for k in range(12)))
    models = [of.whole(trees, {"features": k}) for k, trees in enumerate(made)]
    path = PathOfModels(models)  # more than ten: numbers of two digits
    again = PathOfModels.from_state(path.state())
    json.dumps({k: v for k, v in path.state().items() if not isinstance(v, np.ndarray)})
    for a, b in zip(
        path.predict_path(train.features), again.predict_path(train.features), strict=True
    ):
        assert dict(a.point) == dict(b.point)
        assert a.scores.tolist() == b.scores.tolist()


def test_what_costs_nothing_more_is_readable():
    at = price_list(
        np.array([1.0, 4.0, 4.0, 8.0, 6.0, 0.0, 9.0]),
        shared=[[1, 2]],
        discounted=[DiscountGroup((3, 4), (5.0, 3.0))],
        derived={6: [0, 1]},
    )
    assert np.flatnonzero(readable(at, mask(of=7))).tolist() == [5]
    assert np.flatnonzero(readable(at, mask(1, of=7))).tolist() == [1, 2, 5]
    assert np.flatnonzero(readable(at, mask(0, 2, of=7))).tolist() == [0, 1, 2, 5, 6]
