"""Processor seconds of one fit of a linear ADAPT learner on generated rows, its f0 not counted.

python tests/speed/adapt_fits.py adapt-lin 10000 50
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from bench_methods.adapt import AdaptLin, AdaptLstsq
from bench_methods.gbrt import GBRT

from bench_core import Prices, Task

sys.path.insert(0, str(Path(__file__).parents[1]))


def main(name: str, rows: int, features: int) -> None:
    """A linear border with two interactions and noise."""
    from helpers.adapt_cases import binary
    from helpers.fakes import FakeContext

    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features)).astype(np.float32)
    score = X @ (rng.normal(size=features) * (rng.random(features) < min(0.5, 25 / features)))
    score += 2 * np.sin(2 * X[:, 0]) * X[:, 1] + 2 * X[:, 2] * X[:, 3] + rng.logistic(size=rows)
    splits = binary(X, score > 0, Prices.additive(np.ones(features)))
    f0 = GBRT(trees=100)
    large = f0.fit(splits.train, splits.valid, splits.prices, FakeContext(Task.BINARY, 2))
    context = FakeContext(Task.BINARY, 2, models={f0: large})
    learner = {"adapt-lin": AdaptLin, "adapt-lstsq": AdaptLstsq}[name](f0=f0)
    started = time.process_time()
    model = learner.fit(splits.train, splits.valid, splits.prices, context)
    print(f"{time.process_time() - started:.1f} s, {len(model.pairs)} sets of features")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
