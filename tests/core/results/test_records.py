from __future__ import annotations

from helpers import example

from bench_core.results.records import FitSpec, Job, TrialSpec

FIT = FitSpec("f", "fit of one", {}, "one", "cars", "", "mse", 0, "")
TRIAL = TrialSpec(
    "t", "two on cars", "f", "two", "1", {}, "cars", 0, 0, "0", False, "regression", "", "",
    ("mse",), "euro",
)  # fmt: skip


def test_a_job_is_known_by_its_kind_and_key_and_names_its_learner() -> None:
    jobs = [Job("fit", FIT), Job("score", TRIAL), Job("audit", TRIAL)]
    assert [job.key for job in jobs] == ["fit:f", "score:t", "audit:t"]
    assert [job.learner for job in jobs] == ["one", "two", "two"]


def test_a_run_is_on_a_stand_in_where_one_of_its_data_sets_is() -> None:
    sim, forest = example.info().datasets
    assert (sim["stand_in"], forest["stand_in"]) == (True, False)
    assert example.info(datasets=(sim, forest)).stand_in
    assert example.info(datasets=(forest, sim)).stand_in
    assert not example.info(datasets=(forest,)).stand_in
