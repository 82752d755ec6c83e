"""ADAPT on ranking data: grades become relevance, f0's scores log-odds of it on one scale."""

from dataclasses import replace

import numpy as np
import pytest
from bench_models.calibration import platt
from helpers.adapt_cases import QUICK, Fixed, fitted

from bench_core import Examples, Features, Prices, Queries, Splits, Task

learners = pytest.mark.parametrize("learner", QUICK, ids=lambda one: one.name)


def ranking(n=300, seed=0, sizes=10):
    """Grades 0 to 4 by a curved rule on the first three of four features of rising price."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4)).astype(np.float32)
    signal = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n)
    y = np.clip(np.round(signal + 0.5), 0, 4).astype(float)
    part = Examples(X, y, Queries.from_sizes(np.full(n // sizes, sizes)))
    prices = Prices.additive(np.arange(1.0, 5.0))
    return Splits(part, part, part, prices=prices, task=Task.RANKING, classes=0)


def relevant(part):
    return replace(part, y=(part.y >= 1).astype(float))


def scores(model, splits):
    return [p.scores for p in model.predict_path(Features(splits.test.X))]


@learners
def test_grades_one_and_four_are_alike_to_the_pair(learner):
    splits = ranking()
    two = replace(splits, train=relevant(splits.train))
    f0 = Fixed((1.0, 0.5, 0.0, 0.0))
    found, alike = (scores(fitted(replace(learner, f0=f0), some), splits) for some in (splits, two))
    for a, b in zip(found, alike, strict=True):
        assert np.array_equal(a, b)
    other = scores(fitted(replace(learner, f0=f0, relevant_grade=2), splits), splits)
    assert not np.array_equal(other[-1], found[-1])


@learners
def test_rows_sent_to_f0_score_its_line_at_every_point(learner):
    splits = ranking()
    weights = np.array([5.0, 2.0, 0.0, 0.0])
    model = fitted(replace(learner, f0=Fixed(tuple(weights))), splits)
    own = splits.test.X.astype(float) @ weights
    grown = platt(own, splits.train.y >= 1, np.ones(len(own)))
    assert model.calibration == pytest.approx(grown, rel=1e-5)
    slope, intercept = model.calibration
    line = slope * own + intercept
    path = scores(model, splits)
    assert np.array_equal(path[-1], line)
    k, mixed = 0, 0
    for pair in model.gated:
        f1 = next(iter(pair.model.predict_path(splits.test.features))).scores
        g = next(iter(pair.gate.predict_path(splits.test.features))).scores
        for threshold, _ in pair.cuts[0]:
            sent = g > threshold
            assert np.array_equal(path[k], np.where(sent, line, f1))
            mixed += 0 < sent.sum() < len(sent)
            k += 1
    assert mixed


@learners
def test_the_line_is_fitted_where_f0_was_not_trained(learner):
    splits, unseen = ranking(), ranking(seed=9).train
    weights = np.array([5.0, 2.0, 0.0, 0.0])
    made = replace(learner, f0=Fixed(tuple(weights)))
    apart = fitted(made, replace(splits, valid=unseen)).calibration
    own = unseen.X.astype(float) @ weights
    expected = platt(own, unseen.y >= 1, np.ones(len(own)))
    assert apart == pytest.approx(expected, rel=1e-5)
    none = Examples(unseen.X[:0], unseen.y[:0], Queries.from_sizes(np.zeros(0, dtype=np.int64)))
    train = fitted(made, replace(splits, valid=none)).calibration
    assert train == fitted(made, splits).calibration  # there both are the same rows


@learners
def test_on_labels_of_two_grades_the_pair_is_that_of_the_binary_task(learner):
    """f0 whose line is known: given as log-odds to the binary learner, all scores are the same."""
    splits = ranking(sizes=1)
    labels = relevant(splits.train)
    two = replace(splits, train=labels, valid=labels, test=labels)
    line = platt(labels.X.astype(float) @ np.array([1.0, 1.0, 0, 0]), labels.y > 0, labels.weights)
    ranked = fitted(replace(learner, f0=Fixed((1.0, 1.0, 0.0, 0.0))), two)
    flat = replace(labels, queries=None)
    binary = replace(two, train=flat, valid=flat, test=flat, task=Task.BINARY, classes=2)
    shifted = Fixed((1.0, 1.0, 0.0, 0.0), line.slope, line.intercept)
    plain = fitted(replace(learner, f0=shifted), binary)
    assert plain.calibration is None
    for a, b in zip(scores(ranked, two), scores(plain, binary), strict=True):
        assert a == pytest.approx(b, abs=1e-4)  # each stops short of the minimum
