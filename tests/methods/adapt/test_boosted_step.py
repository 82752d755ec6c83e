"""ADAPT-GBRT: its residuals, one purse for two ensembles, and Greedy Miser as a special case."""

from dataclasses import replace

import numpy as np
import pytest
from bench_methods.adapt import AdaptGBRT
from bench_methods.adapt.boosted_step import F1, GATE, JointLoss, output_of
from bench_methods.gbrt import GBRT
from bench_methods.miser import GreedyMiser
from bench_trees.losses import Labels
from helpers.adapt_cases import Fixed, fitted, noisy

from bench_core import Prices, price_list

ARRAYS = ("start", "feature", "threshold", "left", "right", "missing_left", "value", "base")


def residuals(q, y, f1, g):
    loss = JointLoss(np.asarray(q, float))
    gradient, _ = loss.gradients(np.stack([f1, g]), Labels(np.asarray(y, float)), None)
    return -gradient


def test_the_residuals_are_those_of_the_printed_loss():
    rng = np.random.default_rng(0)
    q, y, f1, g = rng.uniform(size=9), rng.integers(0, 2, 9), rng.normal(size=9), rng.normal(size=9)
    sign = 2 * y - 1

    def loss(f1, g):
        kept = np.log1p(np.exp(-sign * f1)) + np.log1p(np.exp(g))
        return (1 - q) * kept + q * np.log1p(np.exp(-g))

    h = 1e-6
    by_f1 = (loss(f1 + h, g) - loss(f1 - h, g)) / (2 * h)
    by_g = (loss(f1, g + h) - loss(f1, g - h)) / (2 * h)
    found = residuals(q, y, f1, g)
    assert found[F1].tolist() == pytest.approx((-by_f1).tolist(), abs=1e-8)
    assert found[GATE].tolist() == pytest.approx((-by_g).tolist(), abs=1e-8)


def test_the_start_is_where_both_residuals_sum_to_zero():
    rng = np.random.default_rng(1)
    q, y, m = rng.uniform(size=20), rng.integers(0, 2, 20).astype(float), rng.integers(1, 4, 20)
    f1, g = JointLoss(q).base(Labels(y, m))
    found = residuals(q, y, np.full(20, f1), np.full(20, g))
    assert (found @ m).tolist() == pytest.approx([0, 0], abs=1e-9)


@pytest.mark.parametrize("charge", [1e-9, 0.03, 0.3])
def test_with_a_limit_of_zero_it_is_greedy_miser_to_the_bit(charge):
    splits = noisy()
    same = {"tradeoff": charge, "trees": 12, "learning_rate": 0.3, "depth": 3}
    model = fitted(AdaptGBRT(f0=Fixed((1.0,) * 4), p_full=0.0, **same), splits)
    miser = fitted(GreedyMiser(l2=0.0, **same), splits).ensemble  # as printed, like ADAPT's
    (pair,) = model.gated
    assert pair.cuts == [[(0.0, 0.0)]]
    for name in ARRAYS:
        assert np.array_equal(getattr(pair.model.ensemble, name), getattr(miser, name))


def test_what_the_classifier_buys_is_free_for_the_gate():
    """The feature is worth its price to f1 (about 0.03 a row) but not to the gate (0.005)."""
    from bench_trees import Penalty, Settings, boost, find_bins

    x = np.linspace(-1, 1, 400, dtype=np.float32)[:, None]
    bins = find_bins(x)
    q = np.where(x[:, 0] > 0, 0.6, 0.4)

    def gate_trees(y):
        ensemble = boost(
            bins.codes(x),
            bins,
            y,
            loss=JointLoss(q),
            settings=Settings(trees=3, second_order=False, order="level"),
            penalty=Penalty.plain(1, coupled=np.array([0.015 * 400])),
        )
        return output_of(ensemble, GATE).trees

    assert gate_trees(np.ones(400)) == 0
    assert gate_trees((x[:, 0] > 0).astype(float)) == 3


def test_features_of_one_sensor_are_bought_together():
    """One unit of cost is equally expensive in both cases."""
    splits = noisy(600, 4)
    apart, shared = Prices.additive(np.ones(4)), price_list(np.ones(4), shared=[[0, 1, 2]])

    def features(prices, unit):
        learner = AdaptGBRT(f0=GBRT(trees=20), tradeoff=unit * prices.everything, trees=15)
        return (
            fitted(learner, replace(splits, prices=prices))
            .gated[0]
            .model.points[0]
            .values["features"]
        )

    assert features(apart, 0.003) == 1
    assert features(shared, 0.003) == 3
