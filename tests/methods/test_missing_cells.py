"""A missing cell has one meaning to every linear method: the training mean, copies counted."""

from dataclasses import replace

import numpy as np
import pytest
from bench_methods.adapt import AdaptL1, AdaptLin, AdaptLstsq
from bench_methods.cstc import ASTC, CSCC, CSTC, CSTCSingle
from bench_methods.linear import L1, RBFSVM

from bench_core import Features, Task
from bench_core.conformance import task_splits
from bench_core.conformance.cases import fit

RAW = {"base": None, "tradeoff": 0.02}
PAIR = {"f0": RBFSVM(), "supports": 3, "gates": 1}
LEARNERS = [
    L1(points=8),
    RBFSVM(),
    AdaptLin(**PAIR),
    AdaptLstsq(**PAIR),
    AdaptL1(**PAIR),
    CSTCSingle(**RAW),
    CSCC(**RAW, stages=2, cycles=1, constant=False),
    CSTC(**RAW, depth=2, cycles=1, standardise=True),
    ASTC(**RAW, depth=2),
]
HOLES = [np.nan, np.inf]


def example(hole):
    """Splits without gaps, with copies, their columns far from 0, and the same with a fifth of the
    cells of three columns replaced by ``hole``; and the training means of what is left."""
    splits, rng = task_splits(Task.BINARY, 120), np.random.default_rng(0)
    whole, holed = dict[str, object](), dict[str, object]()
    for name in ("train", "valid", "test"):
        part = getattr(splits, name)
        X = np.nan_to_num(part.X) + np.float32(3)
        gaps = (rng.random(X.shape) < 0.2) & np.isin(np.arange(X.shape[1]), [0, 2, 6])
        part = replace(part, X=X, multiplicity=np.arange(len(X)) % 3 + 1)
        whole[name] = part
        holed[name] = replace(part, X=np.where(gaps, np.float32(hole), X))
    return replace(splits, **whole), replace(splits, **holed)


def filled(part, mean):
    return replace(part, X=np.where(np.isfinite(part.X), part.X, mean.astype(np.float32)))


def all_scores(model, part):
    return np.array([p.scores for p in model.predict_path(Features(part.X))])


@pytest.mark.parametrize("hole", HOLES)
@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
def test_a_missing_cell_is_served_as_the_training_mean(learner, hole):
    whole, holed = example(hole)
    mean = np.average(whole.train.X.astype(float), axis=0, weights=whole.train.weights)
    model = fit(learner, whole)
    ours = all_scores(model, holed.test)
    assert np.ptp(ours[0] if hasattr(model, "f0") else ours[-1]) > 0
    np.testing.assert_allclose(ours, all_scores(model, filled(holed.test, mean)), atol=1e-5)
    assert not np.allclose(ours, all_scores(model, whole.test), atol=1e-3)


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: learner.name)
def test_a_missing_cell_is_learned_as_the_training_mean(learner):
    _, holed = example(np.nan)
    X, weights = holed.train.X.astype(float), holed.train.weights[:, None]
    known = ~np.isnan(X)
    mean = (weights * np.where(known, X, 0)).sum(axis=0) / (weights * known).sum(axis=0)
    parts = {name: filled(getattr(holed, name), mean) for name in ("train", "valid", "test")}
    by_hand = replace(holed, **parts)
    ours, theirs = (all_scores(fit(learner, s), by_hand.test) for s in (holed, by_hand))
    np.testing.assert_allclose(ours, theirs, atol=1e-3)  # means are float32 in one of them
