"""Boosting on subsets of features, and several models as one path."""

from __future__ import annotations

import json

import numpy as np
import pytest
from bench_models.boosting import BoostedTrees
from bench_models.path_of_models import PathOfModels, Subsets, readable
from helpers.boosted_cases import examples, mean_cost, prices
from helpers.fakes import FakeContext

from bench_core import DiscountGroup, Examples, Task, price_list


def subsets(train: Examples, task: Task = Task.REGRESSION, trees: int = 5) -> Subsets:
    from bench_trees import Settings

    return Subsets(BoostedTrees(), Settings(trees=trees), train, prices(), FakeContext(task))


def mask(*features: int, of: int = 4) -> np.ndarray:
    return np.isin(np.arange(of), features)


def silent(done: int, total: int) -> None:
    pass


def test_boosting_on_a_subset_is_boosting_on_the_data_cut_to_it() -> None:
    train = examples(Task.REGRESSION)
    cut = Examples(np.ascontiguousarray(train.X[:, [1, 3]]), train.y)
    context = FakeContext(Task.REGRESSION)
    from bench_methods.gbrt import GBRT

    plain = GBRT(trees=5).fit(cut, cut, price_list(np.ones(2)), context).ensemble
    ours = subsets(train).boost(mask(1, 3), silent)
    assert plain is not None
    assert ours.value.tolist() == plain.value.tolist()
    assert ours.threshold.tolist() == plain.threshold.tolist()
    assert ours.feature.tolist() == [{-1: -1, 0: 1, 1: 3}[j] for j in plain.feature.tolist()]
    assert ours.features == 4


def test_no_features_give_the_constant() -> None:
    train = examples(Task.REGRESSION)
    ensemble = subsets(train).boost(mask(), silent)
    assert ensemble.trees == 0
    assert ensemble.base.tolist() == [pytest.approx(train.y.mean())]


def test_a_path_bills_each_model_for_itself() -> None:
    train = examples(Task.REGRESSION)
    of = subsets(train)
    chosen = [mask(3), mask(0)]
    models = [of.whole(of.boost(m, silent), {"model": k}) for k, m in enumerate(chosen)]
    first, second = PathOfModels(models).predict_path(train.features)
    assert [dict(p.point) for p in (first, second)] == [{"model": 0}, {"model": 1}]
    assert mean_cost(first, prices()) == 50
    assert mean_cost(second, prices()) == 1


def test_a_rebuilt_path_predicts_the_same() -> None:
    train = examples(Task.REGRESSION)
    of = subsets(train)
    models = [of.whole(of.boost(mask(*range(k)), silent), {"features": k}) for k in range(12)]
    path = PathOfModels(models)  # more than ten: numbers of two digits
    again = PathOfModels.from_state(path.state())
    json.dumps({k: v for k, v in path.state().items() if not isinstance(v, np.ndarray)})
    for a, b in zip(
        path.predict_path(train.features), again.predict_path(train.features), strict=True
    ):
        assert dict(a.point) == dict(b.point)
        assert a.scores.tolist() == b.scores.tolist()


def test_what_costs_nothing_more_is_readable() -> None:
    at = price_list(
        np.array([1.0, 4.0, 4.0, 8.0, 6.0, 0.0, 9.0]),
        shared=[[1, 2]],
        discounted=[DiscountGroup((3, 4), (5.0, 3.0))],
        derived={6: [0, 1]},
    )
    assert np.flatnonzero(readable(at, mask(of=7))).tolist() == [5]
    assert np.flatnonzero(readable(at, mask(1, of=7))).tolist() == [1, 2, 5]
    assert np.flatnonzero(readable(at, mask(0, 2, of=7))).tolist() == [0, 1, 2, 5, 6]
