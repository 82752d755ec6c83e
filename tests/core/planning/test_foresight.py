"""How long a plan may take, from what was recorded."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from bench_core.planning.foresight import Durations, foresee
from bench_core.results.records import FitSpec


def fits(number: int, learner: str = "one", dataset: str = "cars") -> list[FitSpec]:
    return [
        FitSpec(f"{learner}{i}", "", {}, learner, dataset, "", "mse", 0, "") for i in range(number)
    ]


CELLS = {"cars": 1000, "boats": 4000}
KNOWN = Durations({("cars", "one"): [(10.0, 1.0, 100.0)] * 5}, CELLS)


def test_the_work_is_shared_by_the_workers_and_no_shorter_than_its_longest_job() -> None:
    one, four, many = (foresee(KNOWN, fits(8), workers, 2) for workers in (1, 4, 50))
    assert one.wall[0] == pytest.approx(82, rel=0.05)
    assert four.wall[0] == pytest.approx(22, rel=0.05)
    assert many.wall[0] == pytest.approx(12, rel=0.05)
    assert {seen.core[0] for seen in (one, four, many)} == {one.core[0]}
    assert one.core[0] == pytest.approx(160, rel=0.05)  # two threads each
    assert (one.memory[0], four.memory[0]) == (100, 400)
    assert (one.jobs, one.recorded) == (8, 8)


def test_what_was_recorded_elsewhere_is_scaled_by_size_and_trusted_less() -> None:
    near, far = foresee(KNOWN, fits(4), 1, 1), foresee(KNOWN, fits(4, dataset="boats"), 1, 1)
    other = foresee(KNOWN, fits(4, learner="two"), 1, 1)
    assert far.core[0] / near.core[0] == pytest.approx(4, rel=0.15)
    spread = [seen.core[1] / seen.core[0] for seen in (near, far, other)]
    assert spread == sorted(spread)
    assert spread[0] < 1.3 < 2 < spread[1]
    assert (far.recorded, other.recorded) == (0, 0)


def test_without_any_record_there_is_a_guess_and_without_work_nothing() -> None:
    guess = foresee(Durations({}, CELLS), fits(3), 1, 1)
    assert 0 < guess.core[0] < guess.core[1]
    assert foresee(KNOWN, [], 2, 1).wall == (0, 0)


def test_p90_holds_nine_totals_in_ten_of_durations_drawn_like_those_recorded() -> None:
    rng = np.random.default_rng(1)
    recorded = rng.lognormal(0, 0.5, (40, 3))
    durations = Durations({("cars", "one"): [tuple(map(float, row)) for row in recorded]}, CELLS)
    limit = foresee(durations, fits(30), 1, 1).wall[1]
    totals = rng.lognormal(0, 0.5, (500, 30)).sum(axis=1)
    assert 0.85 <= np.mean(totals <= limit) <= 1
    assert limit <= 1.5 * np.quantile(totals, 0.9)


def test_the_same_plan_has_the_same_answer_and_seconds_by_key() -> None:
    assert foresee(KNOWN, fits(3), 1, 1) == foresee(KNOWN, fits(3), 1, 1)
    assert KNOWN.expected(fits(2)) == {"one0": 10.0, "one1": 10.0}


def test_memory_does_not_grow_with_the_number_of_jobs() -> None:
    left = fits(3000)
    tracemalloc.start()
    try:
        foresee(KNOWN, left, 1, 1)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
