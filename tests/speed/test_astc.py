"""How much faster the greedy tree is trained than the jointly optimised one, and what it loses.

    pytest -m speed tests/speed/test_astc.py -s

On the synthetic problem and on letters (300 and 100 boosted trees, trained beforehand and not
counted): seconds of a fit, of its training alone (the trees' outputs given, before refits and
pruning), and quality and cost on the test rows. Writes results/speed/astc.json; never fails on a
time.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from bench_plugins.cstc import ASTC, CSTC
from bench_plugins.cstc.inputs import inputs
from bench_plugins.datasets.letters import Letters
from bench_plugins.gbrt import GBRT

from bench_core import Splits, Task
from bench_core.formats.source import DataFolder

sys.path.insert(0, str(Path(__file__).parents[1] / "plugins"))

from cstc_cases import synthetic, tradeoff
from fakes import FakeContext

pytestmark = pytest.mark.speed

ROUNDS = 3
OUTPUT = Path(__file__).parents[2] / "results" / "speed" / "astc.json"


@pytest.fixture(scope="module")
def figures() -> Iterator[dict[str, Any]]:
    found: dict[str, Any] = {"cores": os.cpu_count(), "python": platform.python_version()}
    yield found
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    OUTPUT.write_text(json.dumps(found, indent=2) + "\n")


def measured(learner: Any, splits: Splits, context: Any, quality: Callable[[Any], float]) -> Any:
    """Median seconds of a fit and of its training, quality and mean cost of a test row."""
    seconds: list[float] = []
    training: list[float] = []
    for _ in range(ROUNDS):
        last: list[float] = []
        context.progress = lambda done, total, last=last: last.append(time.perf_counter())
        begin = time.perf_counter()
        inputs(learner.name, learner.base, splits.train, splits.prices, context, standardise=False)
        start = time.perf_counter()
        model = learner.fit(splits.train, splits.valid, splits.prices, context)
        seconds.append(time.perf_counter() - start)
        training.append(last[-1] - start - (start - begin))
    found = list(model.predict_path(splits.test.features))[-1]
    cost = found.bills["path"].feature_cost(splits.prices, len(splits.test))
    return {
        "seconds": median(seconds),
        "training": median(training),
        "quality": quality(found.scores),
        "cost": float(cost.mean()),
    }


def compare(name: str, figures: dict[str, Any], joint: Any, greedy: Any) -> None:
    fit, training = (joint[k] / greedy[k] for k in ("seconds", "training"))
    figures[name] = {"cstc": joint, "astc": greedy, "fit": fit, "training": training}
    print(f"\n{name}: astc fits {fit:.1f} times faster, trains {training:.1f} times faster")
    for who, found in (("cstc", joint), ("astc", greedy)):
        print(
            f"  {who}: fit {found['seconds']:.4f} s, training {found['training']:.4f} s, "
            f"quality {found['quality']:.4g}, cost {found['cost']:.2f}"
        )


def test_on_the_synthetic_problem(figures: dict[str, Any]) -> None:
    splits = synthetic(0)

    def error(scores: Any) -> float:
        return float(((scores - splits.test.y) ** 2).mean())

    joint, greedy = (
        measured(
            kind(base=None, tradeoff=tradeoff(splits, lam)),
            splits,
            FakeContext(Task.REGRESSION),
            error,
        )
        for kind, lam in ((CSTC, 0.08), (ASTC, 0.035))
    )
    compare("synthetic (mean squared error)", figures, joint, greedy)


@pytest.mark.parametrize("trees", [100, 300])
def test_on_letters(trees: int, figures: dict[str, Any], real_data: Path) -> None:
    splits = Letters().prepare(DataFolder(real_data), "quick", 0, 0)
    base = GBRT(trees=trees)
    boosted = base.fit(splits.train, splits.valid, splits.prices, FakeContext(Task.BINARY, 2))

    def accuracy(scores: Any) -> float:
        return float(((scores > 0) == (splits.test.y > 0.5)).mean())

    for value in (0.01, 0.1):
        joint, greedy = (
            measured(
                kind(base=base, tradeoff=value),
                splits,
                FakeContext(Task.BINARY, 2, models={base: boosted}),
                accuracy,
            )
            for kind in (CSTC, ASTC)
        )
        compare(f"letters, {trees} trees, tradeoff {value} (accuracy)", figures, joint, greedy)
        assert np.isfinite(joint["quality"])
