"""The paired bootstrap of a large board: 10000 resamples of 50 learners, 20 points each, 7000
queries; the bar is 10 s for 20 such data sets, so half a second each, on one thread.

    OPENBLAS_NUM_THREADS=1 pytest -m speed tests/speed/test_certainty.py -s
"""

from __future__ import annotations

import time

import numpy as np
import pytest

from bench_core.statistics.bootstrap import Candidates, Units, draw
from bench_core.statistics.point_selection import at_budget, taken

LEARNERS, POINTS, QUERIES, RESAMPLES = 50, 20, 7000, 10_000
SETS, BAR = 20, 10.0


def board() -> list[Candidates]:
    """Learners whose quality rises with cost, on queries that are hard for all alike."""
    rng = np.random.default_rng(0)
    hard = [rng.normal(0.5, 0.3, QUERIES) for _ in range(2)]
    ones = np.ones(QUERIES, dtype=np.float32)
    made = []
    for _ in range(LEARNERS):
        cost = np.sort(rng.lognormal(2, 1, (POINTS, 1)), axis=0)
        skill = 0.05 * np.log(cost) + rng.normal(0, 0.002)
        splits = []
        for shared in hard:
            quality = shared + skill + rng.normal(0, 0.2, (POINTS, QUERIES))
            paid = cost * rng.lognormal(0, 0.4, (POINTS, QUERIES))
            splits.append(Units(quality.astype(np.float32), paid.astype(np.float32), ones, ones))
        made.append(Candidates(*splits))
    return made


@pytest.mark.speed
def test_ten_thousand_resamples_of_fifty_learners() -> None:
    made = board()
    work = {"at their best": (np.inf,), "at six budgets": (2, 4, 8, 16, 32, np.inf)}
    print(f"\n{'choice':<16}{'s':>7}{'CPU s':>7}{f'{SETS} sets':>9}{'bar s':>7}")
    for name, budgets in work.items():
        start, cpu = time.perf_counter(), time.process_time()
        for one in made:
            drawn = draw(one, RESAMPLES)
            for budget in budgets:
                choice = at_budget(drawn.valid_quality, drawn.valid_cost, budget, higher=True)
                taken(drawn.test_quality, choice)
        seconds, busy = time.perf_counter() - start, time.process_time() - cpu
        bar = f"{BAR:7.1f}" if len(budgets) == 1 else f"{'-':>7}"
        print(f"{name:<16}{seconds:7.2f}{busy:7.2f}{SETS * busy:9.1f}{bar}")
