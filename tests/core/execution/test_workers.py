"""Answers of workers that are checked, and clocks that leave loading out."""

from __future__ import annotations

import gc
import sys
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import bench_core
from bench_core.api import plan
from bench_core.execution.loading import loading
from bench_core.execution.messages import ForeignAnswerError, result_of, result_to_wire
from bench_core.execution.trial import run_fit, run_trial
from bench_core.results.records import FitResult, Job


def test_rows_say_how_they_ran(home: Path) -> None:
    frame = bench_core.run(
        data="toy-rank",
        learners="toy-prefix",
        settings="toy-prefix.tradeoff=0.1",
        plugins="helpers.toys",
        executor="inline",
        threads=1,
    ).frame()
    assert set(zip(frame["threads"], frame["workers"], strict=True)) == {(1, 1)}
    assert all(row["machine"].startswith(row["cpu"]) for _, row in frame.iterrows())
    assert not frame["cpu"].str.contains("cores").any()


def test_an_answer_that_does_not_fit_its_job_is_refused(home: Path) -> None:
    made = plan(data="toy-binary", learners="toy-prefix", plugins="helpers.toys")
    fit, trial = made.fits[0], made.trials[0]
    run_fit(fit)
    header, arrays = result_to_wire(run_trial(trial))
    score = Job("score", trial)
    assert result_of(score, header, arrays).audit == "sampled"
    row, stored = header["rows"][0], header["values"][0]
    wrong: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"type": "FitResult"}, {}),
        ({"audit": "verified"}, {}),
        ({"audit": 3}, {}),
        ({"rows": ()}, {}),
        ({"rows": header["rows"][1:]}, {}),
        ({"rows": [{**row, "total_cost": -1.0}, *header["rows"][1:]]}, {}),
        ({"rows": [{**row, "total_cost": "0"}, *header["rows"][1:]]}, {}),
        ({"rows": [{**row, "split": "other"}, *header["rows"][1:]]}, {}),
        ({"rows": [{**row, "metrics": {}}, *header["rows"][1:]]}, {}),
        ({"rows": 5}, {}),
        ({"values": [{**stored, "points": [10**9]}, *header["values"][1:]]}, {}),
        ({"predict_seconds": None}, {}),
        ({"more": 1}, {}),
        ({}, {"0.metric": np.zeros((1, 1), np.float32)}),
        ({}, {"0.cost": arrays["0.cost"].astype(np.float64)}),
    ]
    for header_of, arrays_of in wrong:
        with pytest.raises(ForeignAnswerError):
            result_of(score, {**header, **header_of}, {**arrays, **arrays_of})
    good = {"type": "FitResult", **asdict(FitResult(1.0, 2.0))}
    assert result_of(Job("fit", fit), good, {}) == FitResult(1.0, 2.0)
    for bad in ({"seconds": -1.0}, {"seconds": "1"}, {"peak_rss_mb": True}, {"type": "Other"}):
        with pytest.raises(ForeignAnswerError):
            result_of(Job("fit", fit), {**good, **bad}, {})
    with pytest.raises(ForeignAnswerError):
        result_of(score, good, {})


def test_imports_are_no_part_of_what_a_clock_measures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock: Any = ModuleType("made_clock")
    clock.now, clock.perf_counter = 0.0, lambda: clock.now
    monkeypatch.setitem(sys.modules, "made_clock", clock)
    monkeypatch.setattr("bench_core.execution.loading.time", clock)
    passes = "import gc, made_clock\nmade_clock.now += 0.5\nassert not gc.isenabled()\n"
    (tmp_path / "slow_outer.py").write_text(f"import slow_inner\n{passes}")
    (tmp_path / "slow_inner.py").write_text(passes)
    monkeypatch.syspath_prepend(tmp_path)
    plain = __builtins__["__import__"] if isinstance(__builtins__, dict) else __import__
    with loading() as spent:
        clock.now += 4.0
        import slow_outer  # type: ignore[import-not-found]  # noqa: F401

        during = spent.seconds
        assert gc.isenabled()
    assert during == 1.0
    import builtins

    assert builtins.__import__ is plain
    for name in ("slow_outer", "slow_inner"):
        del sys.modules[name]


@pytest.mark.slow
def test_the_first_fit_of_a_worker_takes_what_the_next_ones_take(home: Path) -> None:
    frame = bench_core.run(
        data="breast-cancer",
        learners="gbrt",
        settings="gbrt.trees=60",
        seeds=[0, 1, 2, 3, 4],
        workers=1,
        threads=1,
        audit="off",
    ).frame()
    first, *others = frame.drop_duplicates("seed").sort_values("created_at")["fit_seconds"]
    assert first <= 4 * float(np.median(others)) + 0.05
