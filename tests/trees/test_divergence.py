"""A fit whose training loss rises above the constant's ends, keeps what was good, and says so."""

import numpy as np
import pytest
from bench_models.boosting import prefix_chain
from bench_trees.ensemble import Ensemble
from bench_trees.losses import Logistic, Softmax, Squared
from bench_trees.settings import Settings
from helpers.grown import boosted
from helpers.rare_classes import CLASSES, entropy_of, log_loss, rare_classes

from bench_core import Features, Prices


def diverging(trees=20):
    """Newton steps without l2 for classes of 2 to 5 rows."""
    train = rare_classes((2, 3, 5)).train
    return trained(train.X, train.y, Softmax(CLASSES), trees=trees, l2=0.0), train.X, train.y


def training_loss(e, X, y):
    prices = Prices.additive(np.ones(X.shape[1]))
    *_, last = prefix_chain(e, [e.trees], prices, {}).predict_path(Features(X))
    return log_loss(last.scores, y)


def trained(X, y, loss, **settings):
    return boosted(X, y, loss=loss, settings=Settings(**settings))


def noisy():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3)).astype(np.float32)
    return X, (X[:, 0] + rng.normal(size=200) > 0).astype(float)


def test_boosting_ends_before_the_training_loss_is_above_the_constants():
    e, X, y = diverging()
    assert e.diverged
    assert 0 < e.trees < 20 * CLASSES
    assert e.trees % CLASSES == 0
    assert training_loss(e, X, y) <= entropy_of(y)


@pytest.mark.parametrize(("loss", "rate"), [(Squared(), 2.5), (Logistic(), 500.0)])
def test_steps_that_are_far_too_long_leave_the_constant(loss, rate):
    e = trained(*noisy(), loss, trees=5, learning_rate=rate)
    assert e.diverged
    assert e.trees == 0


@pytest.mark.parametrize("rate", [0.1, 30.0])
@pytest.mark.parametrize("copies", [None, np.arange(200) % 3 + 1])
def test_gradients_rule_out_only_rises_that_are_none(rate, copies):
    class Counted(Logistic):
        calls = 0

        def mean(self, scores, labels):
            Counted.calls += 1
            return super().mean(scores, labels)

    class Plain(Counted):
        convex = False

    settings, fits, calls = Settings(trees=20, learning_rate=rate), [], []
    for loss in (Plain(), Counted()):
        Counted.calls = 0
        fits.append(boosted(*noisy(), loss=loss, settings=settings, multiplicity=copies))
        calls.append(Counted.calls)
    assert fits[0].diverged == fits[1].diverged == (rate > 1)
    np.testing.assert_array_equal(fits[0].value, fits[1].value)
    assert calls[1] == 2 if rate > 1 else calls == [21, 0]


def test_a_loss_that_has_no_value_is_not_watched():
    class Gradients:
        """Squared loss as others may write it, without ``mean``."""

        outputs = 1
        base = Squared().base
        gradients = Squared().gradients

    X = np.arange(60, dtype=np.float32)[:, None]
    e = trained(X, X[:, 0].astype(float), Gradients(), trees=5, learning_rate=2.5)
    assert not e.diverged
    assert e.trees == 5


def test_the_mark_is_kept_in_files_and_by_parts_of_the_trees():
    e = diverging()[0]
    sound = trained(np.zeros((50, 10), np.float32), np.zeros(50), Softmax(CLASSES))
    assert Ensemble.from_state(e.state()).diverged
    assert e.select(np.arange(2)).diverged
    assert Ensemble.concat([sound, e]).diverged
    assert not Ensemble.from_state(sound.state()).diverged
