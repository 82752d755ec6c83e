"""Boosting on growing sets of features, judged on rows held out."""

from dataclasses import replace

import numpy as np
import pytest
from bench_models.nested_sets import held_out
from bench_models.nested_sets.held_out import HeldOutFit, converged
from bench_models.nested_sets.purchases import Purchases, bought_too, gaining, purchases
from bench_trees import Settings
from helpers.boosted_cases import examples, path, subsets
from helpers.toys import ALL_TASKS

from bench_core import Task, price_list

EVERYTHING = np.ones(4, dtype=bool)


@pytest.mark.parametrize("task", sorted(ALL_TASKS))
def test_continued_boosting_is_boosting(task):
    train = examples(task)
    start = HeldOutFit.begin(subsets(train, task, trees=9), train)
    once = start.subsets.boost(EVERYTHING, lambda *_: None)
    four, five = (replace(start.subsets.settings, trees=trees) for trees in (4, 5))
    fit = start.more(EVERYTHING, four).more(EVERYTHING, five)
    values = np.concatenate([part.value for part in fit.parts])
    assert np.concatenate([part.feature for part in fit.parts]).tolist() == once.feature.tolist()
    assert values == pytest.approx(once.value, abs=1e-6)
    (scores,) = path(start.subsets.whole(once, {}), train)
    assert np.allclose(fit.held_scores.T, scores.scores.reshape(len(train), -1), atol=1e-6)
    assert np.array_equal(fit.scores, fit.held_scores)


def test_what_a_part_of_the_rows_explains_hangs_on_no_other_rows():
    train = examples(Task.BINARY)
    of, some = subsets(train, Task.BINARY), np.arange(len(train)) % 3 % 2
    zeros = np.zeros((1, len(train)))
    alone = of.of_rows(some).explained(zeros[:, some > 0])
    of.explained(zeros)
    assert np.array_equal(of.of_rows(some).explained(zeros[:, some > 0]), alone)


def test_only_the_features_that_are_given_are_tested():
    train = examples(Task.BINARY)
    start = HeldOutFit.begin(subsets(train, Task.BINARY), train)
    fit = start.more(np.array([False, True, False, True]), Settings(trees=5))
    assert set(fit.parts[0].feature.tolist()) == {-1, 1, 3}
    ones = train.y.mean()
    entropy = -ones * np.log(ones) - (1 - ones) * np.log(1 - ones)
    assert fit.loss < start.loss == pytest.approx(entropy)


def test_fits_end_after_looks_that_brought_nothing_and_keep_their_best(monkeypatch):
    train = examples(Task.REGRESSION)
    start = [HeldOutFit.begin(subsets(train, Task.REGRESSION), train)]
    seen = []

    def falls(new, best):
        seen.append(sum(part.trees for part in new[0].parts))
        return seen[-1] <= 10

    monkeypatch.setattr(held_out, "falls", falls)
    how = {"chunk": 5, "patience": 2}
    (fit,) = converged(start, EVERYTHING, Settings(), 100, **how)
    assert seen == [5, 10, 15, 20]
    assert sum(part.trees for part in fit.parts) == 10
    assert converged(start, ~EVERYTHING, Settings(), 100, **how)[0].parts == ()


def test_a_purchase_is_what_is_not_paid_and_brings_all_that_needs_just_this():
    at = price_list(np.array([2.0, 2.0, 0.0, 3.0]), derived={2: [0, 1]})
    mask = np.zeros(4, dtype=bool)
    assert purchases(at, mask) == {(0,): [0], (1,): [1], (0, 1): [2], (2,): [3]}
    both = bought_too(at, mask, [2])
    assert both.tolist() == [True, True, True, False]
    assert purchases(at, both) == {(2,): [3]}
    assert purchases(at, bought_too(at, mask, [0])) == {(1,): [1, 2], (2,): [3]}


def test_purchases_have_the_price_of_what_is_missing_and_the_best_feature_to_show():
    train = examples(Task.REGRESSION)
    at = price_list(np.array([1.0, 5.0, 20.0, 20.0]), shared=[[2, 3]])
    of = subsets(train, Task.REGRESSION, at)
    fits = [HeldOutFit.begin(of, train)] * 2
    found = Purchases.of(fits, np.zeros(4, dtype=bool))
    alone = 2 * of.explained(fits[0].scores)
    assert [list(features) for features in found.brings] == [[0], [1], [2, 3]]
    assert found.price.tolist() == [1.0, 5.0, 20.0]
    assert found.explained.tolist() == [alone[0], alone[1], max(alone[2:])]


def test_what_gains_is_ordered_by_its_gain():
    assert gaining(np.array([7, 3, 5, 9]), np.array([0.1, -1.0, 2.0, 0.0])).tolist() == [5, 7]
