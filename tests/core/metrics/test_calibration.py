"""Calibration of scores on validation rows: its optimum, when it is used, and what it gains."""

import numpy as np
import pytest
from scipy.optimize import minimize

from bench_core import Examples, Queries
from bench_core.costs.error_costs import answers_of_least_cost
from bench_core.metrics.calibration import PENALTY, calibrated, fit
from bench_core.metrics.rows import log_losses

K = {"two classes": 1, "three classes": 3}


def drawn(k, n, seed, slope=0.4, shift=0.8):
    """Scores (n,) or (n, k), and classes whose log-odds are ``slope`` times the scores, with a
    ``shift`` for the last class."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(0, 4, (n, k))
    logits = slope * scores
    logits[:, -1] += shift
    logits = logits if k > 1 else np.hstack([np.zeros((n, 1)), logits])
    true = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return (scores if k > 1 else scores[:, 0]), true


def rows(true, groups=None):
    return Examples(np.zeros((len(true), 1), np.float32), true.astype(np.float64), groups=groups)


@pytest.mark.parametrize("k", K.values(), ids=K)
def test_the_fit_is_the_optimum_of_the_penalised_log_loss(k):
    scores, true = drawn(k, 300, 1)
    weights = np.random.default_rng(2).integers(1, 4, 300).astype(float)
    found = fit(scores, true, weights)

    def value(line):
        z = scores if k > 1 else np.stack([0 * scores, scores], axis=1)
        losses = log_losses(line[0] * z + line[1:], true)
        return losses @ weights + PENALTY * ((line[0] - 1) ** 2 + (line[1:] ** 2).sum())

    best = minimize(value, np.append(1.0, np.zeros(max(k, 2))), method="BFGS").x
    shifts = best[1:] if k > 1 else best[2:] - best[1]
    assert found.slope == pytest.approx(best[0], rel=1e-3)
    assert np.array(found.base) * found.slope == pytest.approx(shifts, abs=1e-3)
    assert fit(scores, true, weights, found).slope == pytest.approx(found.slope, rel=1e-6)


@pytest.mark.parametrize("k", K.values(), ids=K)
def test_the_truth_is_found_with_many_rows(k):
    found = fit(*drawn(k, 20_000, 3), np.ones(20_000))
    assert found.slope == pytest.approx(0.4, abs=0.02)
    shifts = found.slope * np.array(found.base)
    assert shifts[-1] - (shifts[0] if k > 1 else 0) == pytest.approx(0.8, abs=0.1)


@pytest.mark.parametrize("k", K.values(), ids=K)
def test_calibration_lowers_the_cost_of_errors_on_held_out_rows(k):
    scores, true = drawn(k, 4500, 4)
    matrix = np.full((max(k, 2),) * 2, 1.0)
    matrix[-1] = 10.0
    np.fill_diagonal(matrix, 0)
    found, _ = calibrated(scores[:500], rows(true[:500]))

    def cost(scores):
        return matrix[true[500:], answers_of_least_cost(scores, matrix)].mean()

    raw = cost(scores[500:])
    assert found is not None
    assert cost(found.of(scores[500:])) < 0.9 * raw


@pytest.mark.parametrize("k", K.values(), ids=K)
def test_probabilities_that_hold_are_left_alone_or_changed_little(k):
    changes = []
    for seed in range(10):
        scores, true = drawn(k, 200, seed, slope=1.0, shift=0.0)
        found, held = calibrated(scores, rows(true))
        changes.append(found is None)
        if found is None:
            assert held is scores
        else:
            assert 0.7 < found.slope < 1.4
    assert sum(changes) >= 4


def test_validation_rows_are_calibrated_by_others():
    scores, true = drawn(1, 400, 5)
    groups = Queries.from_sizes(np.full(100, 4))
    for units, fold in ((None, np.arange(400) % 5), (groups, np.repeat(np.arange(100), 4) % 5)):
        _, held = calibrated(scores, rows(true, units))
        for part in range(5):
            others = fit(scores[fold != part], true[fold != part], np.ones((fold != part).sum()))
            assert held[fold == part] == pytest.approx(others.of(scores)[fold == part], abs=1e-6)


def test_constants_and_few_rows_are_not_calibrated():
    true = np.arange(50) % 2
    for n, scores in ((50, np.full(50, 3.0)), (9, np.linspace(-9, 9, 9))):
        found, held = calibrated(scores, rows(true[:n]))
        assert found is None
        assert held is scores


def test_the_order_of_scores_is_kept_even_if_they_are_wrong():
    scores = np.linspace(-3, 3, 200)
    found = fit(scores, (scores < 0).astype(np.int64), np.ones(200))
    assert found.slope > 0
    assert np.isfinite(found.of(scores)).all()
