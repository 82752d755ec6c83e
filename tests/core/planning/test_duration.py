"""Estimates from recorded durations."""

from dataclasses import dataclass

import pytest

from bench_core.planning.duration import estimate, job_seconds, median_seconds

RECORDED = {
    ("cars", "gbrt", '{"trees": 1}'): [(1.0, 0.1, 5.0)],
    ("cars", "gbrt", '{"trees": 2}'): [(3.0, 0.3, 5.0), (8.0, 0.2, 5.0)],
    ("boats", "gbrt", "{}"): [(100.0, 100.0, 5.0)],
}


@dataclass
class Trial:
    key: str
    dataset: str
    learner: str


def test_a_job_takes_the_median_of_its_learner_on_its_data() -> None:
    seconds = median_seconds(RECORDED)
    assert seconds == {("cars", "gbrt"): (3.0, 0.2), ("boats", "gbrt"): (100.0, 100.0)}
    trials = [Trial("a", "cars", "gbrt"), Trial("b", "cars", "cegb"), Trial("c", "planes", "gbrt")]
    assert job_seconds(trials, seconds) == {"a": 0.2}  # type: ignore[arg-type]


@pytest.mark.parametrize(("workers", "wall"), [(1, 9.0), (2, 5.0), (9, 5.0)])
def test_jobs_are_shared_by_workers_but_never_cut(workers: int, wall: float) -> None:
    known = {"a": 5.0, "b": 3.0, "c": 1.0}
    assert estimate(4, known, workers) == (4, 3, 9.0, wall)
