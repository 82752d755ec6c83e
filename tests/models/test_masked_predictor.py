"""Boosted trees on rows of which some cells are hidden."""

from dataclasses import replace

import numpy as np
import pytest
from bench_methods.masked_gbrt import MaskedGbrt
from bench_models.masked_predictor import (
    MaskedPredictor,
    fitted_predictor,
    masked,
    random_purchases,
    training_copies,
)
from helpers.fakes import FakeContext
from helpers.kit import refused
from scipy.special import log_softmax
from scipy.stats import entropy

from bench_core import Examples, Prices, Purchases, Task, UsageError

CLASSES = {Task.BINARY: 2, Task.MULTICLASS: 3, Task.REGRESSION: 0}


def rows(task, n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3)).astype(np.float32)
    signal = X[:, 0] + X[:, 1] + 0.3 * rng.normal(size=n)
    y = {
        Task.BINARY: signal > 0,
        Task.MULTICLASS: np.digitize(signal, [-0.6, 0.6]),
        Task.REGRESSION: signal,
    }
    return Examples(X, y[task].astype(np.float64))


def noise_of(n):
    """Rows whose labels cells say nothing of."""
    rng = np.random.default_rng(0)
    return Examples(rng.normal(size=(n, 3)).astype(np.float32), rng.integers(2, size=n) * 1.0)


def predictor(train, task=Task.BINARY, **settings):
    given = {"trees": 20, "parts": 2, "copies": 3, "min_rows": 2, **settings}
    learner, context = MaskedGbrt(**given), FakeContext(task, CLASSES[task])
    prices = Prices.additive(np.ones(train.X.shape[1]))
    nobody = Examples(train.X[:0], train.y[:0])
    model = learner.fit(train, nobody, prices, context)
    return model.policy.predictor


def test_copies_are_those_of_physical_rows_in_any_order():
    train = rows(Task.BINARY, 50)
    train = replace(train, X=np.where(train.X > 1, np.nan, train.X).astype(np.float32))
    copies = np.arange(50) % 3 + 1
    weighted = training_copies(replace(train, multiplicity=copies), 1)
    place = np.random.default_rng(0).permutation(np.repeat(np.arange(50), copies))
    physical = training_copies(Examples(train.X[place], train.y[place]), 1)
    assert np.array_equal(weighted.X, physical.X, equal_nan=True)
    assert np.array_equal(weighted.y, physical.y)
    for seed in (1, 2):
        own = training_copies(train, seed)
        # the same rows, and not in their order
        assert np.array_equal(np.sort(own.X[:, 0]), np.sort(train.X[:, 0]), equal_nan=True)
        assert not np.array_equal(own.X[:, 0], train.X[:, 0], equal_nan=True)


def test_purchases_are_drawn_with_a_probability_of_each_row():
    purchases = Purchases.of(Prices.additive(np.append(np.ones(200), 0.0)))
    drawn = random_purchases(purchases, 4000, np.random.default_rng(0))
    share = drawn[:, :200].mean(axis=1)
    assert drawn[:, 200].all()  # free
    # U(0, 1), and what 200 draws of the row add: variance 1/12 + (1/2 - 1/3) / 200
    assert share.mean() == pytest.approx(0.5, abs=0.02)
    assert share.var() == pytest.approx(1 / 12 + (1 / 6) / 200, abs=0.003)
    assert (share > 0.9).mean() == pytest.approx(0.1, abs=0.03)


def test_a_cell_is_hidden_until_all_of_its_sensors_are_bought():
    # sensors a and b; features of a, of a, of b, of both
    start = np.array([0, 1, 2, 3, 5], dtype=np.int32)
    needed = np.array([0, 0, 1, 0, 1], dtype=np.int32)
    prices = Prices(start, needed, np.array([2.0, 3.0]), np.ones(4))
    purchases = Purchases.of(prices)
    bought = np.array([[False, False], [True, False], [False, True], [True, True]])
    seen = ~np.isnan(masked(np.ones((4, 4), np.float32), bought, purchases, prices))
    expected = [[0, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [1, 1, 1, 1]]
    assert seen.astype(int).tolist() == expected


@pytest.mark.parametrize("task", CLASSES)
def test_losses_are_those_of_scipy(task):
    name = {Task.BINARY: "logistic", Task.MULTICLASS: "softmax", Task.REGRESSION: "squared"}[task]
    model = MaskedPredictor(None, [], name)
    rng = np.random.default_rng(0)
    y = rng.integers(CLASSES[task] or 9, size=20).astype(np.float64)
    scores = rng.normal(size=(20, 3) if task is Task.MULTICLASS else 20) * 3
    if task is Task.REGRESSION:
        assert model.loss(scores, y) == pytest.approx((scores - y) ** 2 / 2)
        assert model.expected_loss(scores, y) == pytest.approx((scores - y) ** 2 / 2)
        return
    both = scores if scores.ndim == 2 else np.column_stack([0 * scores, scores])
    logs = log_softmax(both, axis=1)
    assert model.loss(scores, y) == pytest.approx(-logs[np.arange(20), y.astype(int)])
    assert model.expected_loss(scores, scores) == pytest.approx(entropy(np.exp(logs), axis=1))
    other = np.roll(np.exp(logs), 1, axis=0)  # cross-entropy = entropy + divergence
    cross = entropy(other, axis=1) + entropy(other, np.exp(logs), axis=1)
    assert model.expected_loss(scores, np.roll(scores, 1, axis=0)) == pytest.approx(cross)


@pytest.mark.parametrize("task", CLASSES)
def test_it_uses_what_is_bought(task):
    model, test = predictor(rows(task, 2000), task), rows(task, 500, seed=1)
    prices = Prices.additive(np.ones(3))
    losses = []
    for made in ((0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1)):
        bought = np.tile(np.array(made, dtype=bool), (500, 1))
        cells = masked(test.X, bought, Purchases.of(prices), prices)
        losses.append(model.loss(model.scores(cells, bought), test.y).mean())
    assert losses[1] < losses[0] - 0.05
    assert losses[2] < losses[1] - 0.05
    assert losses[3] == pytest.approx(losses[2], abs=0.02)  # noise


def test_rows_are_predicted_by_trees_that_did_not_see_them():
    train = noise_of(300)
    model = predictor(train, trees=60, min_rows=1, leaves=64, learning_rate=0.3, parts=3)
    copies, bought = training_copies(train, 0), np.ones((300, 3), dtype=bool)
    part = model.parts_of(copies)
    assert sorted(np.bincount(part)) == [100, 100, 100]
    learned = model.loss(model.scores(copies.X, bought), copies.y).mean()
    blind = model.loss(model.cross_fitted(copies.X, bought, part), copies.y).mean()
    assert learned < 0.2  # by heart
    assert blind > np.log(2)  # labels are noise
    other = model.loss(model.cross_fitted(copies.X, bought, (part + 1) % 3), copies.y).mean()
    assert other < 0.2


def test_a_missing_answer_is_not_an_unasked_question():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=1000).astype(np.float64)
    X = rng.normal(size=(1000, 2)).astype(np.float32)
    X[y == 1, 0] = np.nan
    model = predictor(Examples(X, y))
    nothing, asked = np.full((1, 2), np.nan, np.float32), np.array([[True, False]])
    assert model.scores(nothing, asked)[0] > 2
    assert abs(model.scores(nothing, ~asked & False)[0]) < 0.5


def test_validation_rows_end_boosting():
    noise = noise_of(200)
    context, prices = FakeContext(Task.BINARY, 2), Prices.additive(np.ones(3))
    short = MaskedGbrt(trees=400, parts=2).fit(noise, rows(Task.BINARY), prices, context)
    assert short.policy.predictor.whole.ensemble.trees < 100
    more = rows(Task.BINARY, 2000)
    long = MaskedGbrt(trees=400, parts=2).fit(more, rows(Task.BINARY), prices, context)
    found = long.policy.predictor
    ensembles = [trees.ensemble.trees for trees in (found.whole, *found.without)]
    assert 20 <= ensembles[0] < 400
    assert len({*ensembles}) == 1


def test_another_learner_has_no_predictor():
    class Other:
        name = "gbrt"

        def fit(self, *_):
            return object()

    words = "mine: 'gbrt' has no predictor|choose masked-gbrt"
    refused(words, fitted_predictor, "mine", Other(), FakeContext(Task.BINARY), error=UsageError)
