"""What workers answer, and what their clocks measure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import bench_core
from bench_core.api import plan
from bench_core.execution.fitting import run_fit
from bench_core.execution.messages import result_of_wire, result_to_wire
from bench_core.execution.trial import run_trial
from bench_core.results.differences import differences
from bench_core.results.records import Job


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


def test_a_result_arrives_as_it_was_sent(home: Path) -> None:
    made = plan(data="toy-binary", learners="toy-prefix", plugins="helpers.toys")
    fit, trial = made.fits[0], made.trials[0]
    result = run_fit(fit)
    assert result_of_wire(Job("fit", fit), *result_to_wire(result)) == result
    scored = run_trial(trial)
    back = result_of_wire(Job("score", trial), *result_to_wire(scored))
    assert not [*differences(scored, back)]
    assert (back.marks, back.sensors, back.audit) == (scored.marks, scored.sensors, scored.audit)


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
