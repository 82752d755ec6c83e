"""Boosters on classes of 2 to 20 rows: none ends above the constant, and prices still count."""

from functools import cache

import numpy as np
import pytest
from helpers.every_learner_cases import LEARNERS
from helpers.rare_classes import entropy_of, log_loss, rare_classes

from bench_core.conformance.cases import fit

BOOSTERS = ("gbrt", "miser", "cegb", "budget-boosting", "gbrt-subset", "lightgbm", "lightgbm-cegb")
TREES = {"trees": 25}

made = cache(rare_classes)


def accuracies(model, splits):
    """Test accuracy at the point of best validation accuracy, and that of the constant."""

    def right(part):
        return [
            float(np.mean(p.scores.argmax(axis=1) == part.y))
            for p in model.predict_path(part.features)
        ]

    constant = float(np.mean(splits.test.y == np.bincount(splits.train.y.astype(int)).argmax()))
    return right(splits.test)[int(np.argmax(right(splits.valid)))], constant


@pytest.mark.parametrize(
    "rare", [(2, 3, 5), pytest.param((2, 4, 9, 20), marks=pytest.mark.slow)], ids=str
)
@pytest.mark.parametrize("name", BOOSTERS)
def test_no_booster_ends_above_the_constants_training_loss(name, rare):
    splits = made(rare)
    # which would fit three sizes of trees
    fewer = {"leaves": 4} if name == "budget-boosting" else {}
    model = fit(LEARNERS[name](**TREES, **fewer), splits)
    assert getattr(model, "marks", ()) == ()
    *_, last = model.predict_path(splits.train.features)
    assert log_loss(last.scores, splits.train.y) < 0.97 * entropy_of(splits.train.y)
    reached, constant = accuracies(model, splits)
    assert reached > constant + 0.02


def test_a_high_tradeoff_keeps_cegb_from_buying_everything():
    splits = made((2, 2, 2, 3), 20_000)
    model = fit(LEARNERS["cegb"](tradeoff=3.0, trees=40), splits)
    *_, last = model.predict_path(splits.test.features)
    cost = last.bills["path"].feature_cost(splits.prices, len(splits.test)).mean()
    assert 0 < cost < 0.3 * splits.prices.everything


def test_a_fit_that_diverges_is_marked():
    splits = made((2, 3, 5))
    for name in ("gbrt", "gbrt-subset"):
        how = {"trees": 3, "l2": 0.0, "learning_rate": 50.0}
        assert fit(LEARNERS[name](**how), splits).marks == ("diverged",)
