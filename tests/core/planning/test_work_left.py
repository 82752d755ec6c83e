"""What of a plan is left to do, and how long that may take."""

from __future__ import annotations

import json
from typing import Any

import pytest
from helpers.toys import Prefix

from bench_core.planning.plan import (
    DatasetUse,
    Plan,
    about_run,
    expected_seconds,
    fits_left,
    trials_left,
    trials_skipped,
)
from bench_core.planning.request import RunRequest
from bench_core.results.records import FitSpec, TrialSpec


def fit(key: str, *needs: str, learner: str = "one") -> FitSpec:
    return FitSpec(
        key=key, title=key, learner={}, learner_name=learner, dataset="rows", data="", metric="m",
        seed=0, states="", needs={f"learner of {need}": need for need in needs},
    )  # fmt: skip


def trial(key: str, of: str, learner: str = "one") -> TrialSpec:
    return TrialSpec(
        key=key, title=key, fit=of, learner=learner, learner_version="", params={}, dataset="rows",
        fold=0, seed=0, fingerprint="", stand_in=False, task="binary", data="", states="",
        metrics=("m",), unit="",
    )  # fmt: skip


USE = DatasetUse(
    name="rows", title="Rows", task="binary", stand_in=False, stand_in_for="", fold=0, seed=0,
    size="quick", fingerprint="f", features=2, classes=2, rows={"train": 3}, queries={"train": 0},
    price_of_everything=2.0, unit="ms", metrics=("m",),
)  # fmt: skip


def planned(fits: list[FitSpec], trials: list[TrialSpec], **more: Any) -> Plan:
    return Plan(
        suite="", title="", profile="quick", reference="", accounting="path", metrics=("m",),
        higher_is_better={"m": True}, datasets=(USE,), run="r", fits=tuple(fits),
        trials=tuple(trials), **more,
    )  # fmt: skip


def test_a_trial_is_left_that_is_neither_finished_nor_skipped() -> None:
    trials = [trial(key, "f") for key in ("new", "done", "odd", "done and odd")]
    p = planned(
        [fit("f")],
        trials,
        finished=frozenset({"done", "done and odd"}),
        skipped=(("done and odd", "too wide"), ("odd", "too long")),
    )
    assert trials_left(p) == [trials[0]]
    assert trials_skipped(p) == [(trials[2], "too long")]


def chain(**more: Any) -> Plan:
    """Two fits on a base, one of them below a third, and one that stands alone."""
    fits = [fit("base"), fit("alone"), fit("low", "base"), fit("top", "low"), fit("side", "base")]
    trials = [trial(f"score {f.key}", f.key) for f in fits[1:]]
    return planned(fits, trials, **more)


@pytest.mark.parametrize(
    ("finished", "fitted", "left"),
    [
        ((), (), "base alone low top side"),
        (("low",), (), "base alone low top side"),  # its trial is done; top still stands on it
        (("low", "top"), (), "base alone side"),
        (("low", "top", "side"), (), "alone"),
        (("alone", "side"), ("low",), "top"),  # the base of what is fitted is not needed
        (("alone", "top"), ("base",), "low side"),
        (("alone", "low", "top", "side"), (), ""),
    ],
)
def test_fits_are_left_that_a_trial_needs_each_after_what_it_stands_on(
    finished: tuple[str, ...], fitted: tuple[str, ...], left: str
) -> None:
    done = frozenset(f"score {key}" for key in finished)
    p = chain(finished=done, finished_fits=frozenset(fitted))
    assert [f.key for f in fits_left(p)] == left.split()


def test_a_job_takes_the_median_of_its_learner_on_its_data() -> None:
    times = [("rows", 1.0, 0.1), ("rows", 3.0, 0.3), ("rows", 8.0, 0.2), ("boats", 100.0, 100.0)]
    recorded = [(dataset, "one", *seconds) for dataset, *seconds in times]
    jobs = [fit("a"), fit("b", learner="other"), trial("c", "a"), trial("d", "b", "other")]
    assert expected_seconds(jobs, recorded) == {"a": 3.0, "c": 0.2}


@pytest.mark.parametrize(("workers", "wall"), [(1, 9.0), (2, 5.0), (9, 5.0)])
def test_jobs_are_shared_by_workers_but_never_cut(workers: int, wall: float) -> None:
    known = {"base": 5.0, "alone": 3.0, "low": 1.0}
    assert chain(expected=known, workers=workers).estimate == (9, 3, 9.0, wall)


def test_what_is_kept_about_a_run_is_json_with_its_request_and_learners_by_name() -> None:
    p = planned([fit("a")], [trial("x", "a")], notes=("a note",))
    kept = about_run(p, RunRequest(learners=("gbrt", Prefix()), seeds=(3,), costs="c.csv"))
    again = json.loads(json.dumps(kept))
    assert again["request"]["learners"] == ["gbrt", "toy-prefix"]
    assert (again["request"]["seeds"], again["request"]["costs"]) == ([3], "c.csv")
    (use,) = again["datasets"]
    assert (use["name"], use["rows"], use["unit"]) == ("rows", {"train": 3}, "ms")
    assert (again["profile"], again["notes"]) == ("quick", ["a note"])
    assert not {"fits", "trials", "run"} & again.keys()
