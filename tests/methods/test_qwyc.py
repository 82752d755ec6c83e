"""Orders and thresholds of QWYC against a search over all of them, and what rows are answered."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from bench_methods.gbrt import GBRT
from bench_methods.qwyc import QWYC, Batches, OrderedBatch, _stages, arranged
from bench_models.staged import Point, StagedModel
from bench_trees import Ensemble
from helpers.random_trees import stump

from bench_core import Features, Task, price_list
from bench_core.conformance import task_splits
from bench_core.conformance.cases import fit

BASE = GBRT(trees=40, min_rows=5)
SPLITS = cache(lambda: task_splits(Task.BINARY, 600))


def best_cut(g, positive, mass, allowed):
    """The most rows that can leave, by trying every pair of thresholds; the rows of the first best
    pair, those with the fewest negative values first."""
    lows = [-np.inf, *sorted({(a + b) / 2 for a, b in pairwise(sorted({*g[g < 0], 0.0}))})]
    lows += [0.0]
    highs = sorted({*g[g > 0]}, reverse=True)
    found = (0.0, frozenset())
    for low in lows:
        for high in [np.inf, *highs]:
            out = np.where(g < low, True, g >= high)
            wrong = np.where(g < low, positive, ~positive) & out
            if mass[wrong].sum() <= allowed + 1e-9 and mass[out].sum() > found[0]:
                found = float(mass[out].sum()), frozenset(np.flatnonzero(out).tolist())
    return found


@pytest.mark.parametrize("alpha", [0.0, 0.05, 0.2])
def test_each_position_has_the_base_model_and_thresholds_of_the_least_ratio(alpha):
    rng = np.random.default_rng(0)
    for _ in range(30):
        count, n = 4, 25
        own = rng.integers(-4, 5, (count, n)).astype(float)
        mass = rng.integers(1, 3, n).astype(float)
        evaluation = rng.integers(1, 4, count).astype(float)
        sensors, price = rng.random((count, 3)) < 0.5, rng.integers(0, 3, 3).astype(float)
        batches = Batches([np.array([t]) for t in range(count)], own, evaluation, sensors, price)
        order = arranged(batches, 0.5, mass, alpha)
        assert sorted(p.batch for p in order) == list(range(count))
        # the same, position by position
        partial, on, bought = np.full(n, 0.5), np.arange(n), np.zeros(3, dtype=bool)
        positive, allowed = 0.5 + own.sum(axis=0) > 0, alpha * mass.sum()
        left = set(range(count))
        for position in order[:-1]:
            ratios = {}
            for t in left if len(on) else ():
                decided, _ = best_cut(partial[on] + own[t, on], positive[on], mass[on], allowed)
                cost = evaluation[t] + price[sensors[t] & ~bought].sum()
                ratios[t] = cost * mass[on].sum() / decided if decided else np.inf
            t = position.batch
            if not ratios or min(ratios.values()) == np.inf:
                assert t == min(left)
                assert (position.low, position.high) == (-np.inf, np.inf)
            else:
                assert ratios[t] == pytest.approx(min(ratios.values()))
                decided, _ = best_cut(partial[on] + own[t, on], positive[on], mass[on], allowed)
                g = partial[on] + own[t, on]
                out = (g < position.low) | (g >= position.high)
                wrong = np.where(g < position.low, positive[on], ~positive[on]) & out
                assert mass[on][out].sum() == decided
                assert mass[on][wrong].sum() <= allowed + 1e-9
                assert position.low <= 0 < position.high
                allowed -= mass[on][wrong].sum()
            partial += own[t]
            bought |= sensors[t]
            left.remove(t)
            on = on[(partial[on] >= position.low) & (partial[on] < position.high)]


def fitted(**settings):
    return fit(QWYC(base=BASE, every=4, **settings), SPLITS())


def test_a_gate_may_release_one_side_alone():
    """Scores -2, 1 after the first tree: below 0 a row leaves, and nobody above."""
    trees = Ensemble.concat([stump(0, -2.0, 1.0), stump(1, 0.0, 5.0)])
    order = [OrderedBatch(0, 0.0, np.inf), OrderedBatch(1, -np.inf, np.inf)]
    stages = _stages(order, [np.array([0]), np.array([1])], trees)
    model = StagedModel(stages, [Point(1, {})], price_list(np.ones(4)), trees)
    X = np.array([[-1, 1, 0, 0], [1, 1, 0, 0]], np.float32)
    (found,) = model.predict_path(Features(X))
    assert found.scores.tolist() == [-2.0, 6.0]


def test_training_rows_leave_on_the_wrong_side_no_more_often_than_alpha_allows():
    train = SPLITS().train
    *path, full = fitted().predict_path(train.features)
    whole = [*fit(BASE, SPLITS()).predict_path(train.features)][-1]
    assert np.array_equal(full.scores, whole.scores)
    shares = [((p.scores > 0) != (full.scores > 0)).mean() for p in path]
    assert [p.point["alpha"] for p in path] == [0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0]
    for prediction, share in zip(path, shares, strict=True):
        assert share <= prediction.point["alpha"]
    assert shares[0] > 0.02  # what is allowed is used
