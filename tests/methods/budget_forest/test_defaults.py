"""Forests with their defaults on generated data whose features differ much in price."""

import numpy as np
import pytest
from bench_methods.budget_forest import BudgetPrune, BudgetRF
from bench_methods.gbrt import GBRT

from bench_core import Examples, Splits, Task, price_list
from bench_core.conformance.cases import fit


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.5, 1 / 14])
def test_with_their_defaults_they_are_worth_what_they_cost(share):
    """The dearer a feature, the more it tells; cheap ones tell next to nothing."""
    rng, repeats = np.random.default_rng(7), [12, 5, 3]
    X = rng.normal(size=(2400, 20))
    signal = X @ np.repeat([0.1, 0.5, 1.5], repeats) + 0.5 * rng.normal(size=2400)
    X, y = X.astype(np.float32), (signal > np.quantile(signal, 1 - share)).astype(np.float64)
    parts = [Examples(X[rows], y[rows]) for rows in np.split(np.arange(2400), [1200, 1600])]
    splits = Splits(*parts, price_list(np.repeat([1.0, 10, 50], repeats)), Task.BINARY).complete()
    floor = max(parts[2].y.mean(), 1 - parts[2].y.mean())
    noise = 2 * np.sqrt(floor * (1 - floor) / len(parts[2]))

    def gained(learner):
        """Test accuracy above the constant's at the point of best validation accuracy."""
        model = fit(learner, splits)
        right = [
            [np.mean((p.scores > 0) == part.y) for p in model.predict_path(part.features)]
            for part in parts[1:]
        ]
        return right[1][int(np.argmax(right[0]))] - floor

    boosted = gained(GBRT(trees=60))
    for learner in (BudgetRF(), BudgetPrune()):
        assert gained(learner) > (0.5 * boosted if boosted > 2 * noise else -noise)
