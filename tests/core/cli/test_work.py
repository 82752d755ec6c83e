"""``bench plan --jobs``, ``bench work`` and ``bench merge`` as a user types them."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.commands import QUICK, Run

from bench_core.planning.job_seconds import Machine

pytestmark = pytest.mark.usefixtures("material")
LEARNERS = ("--learners", "toy,broken", "--set", "toy.columns=[1, 2]", "--reference", "toy")


def test_a_plan_is_done_in_pieces_and_merged(
    bench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = Machine(1.0, contention=5.0)  # the planning machine, which does none of the jobs
    monkeypatch.setattr("bench_core.planning.planner.machine_now", lambda threads: busy)
    planned = bench("plan", *QUICK, *LEARNERS, "--jobs", "8", "-o", "jobs/", "--store", "own.db")
    assert planned.status == 0
    assert "others use this machine" not in planned.out
    lines = planned.out.splitlines()
    assert lines[0].startswith("3 job files in jobs, the longest about ")
    assert lines[1].endswith("seq 3 | xargs -P 2 -I{} bench work jobs/{}")
    assert "--array=1-3" in lines[2]
    assert lines[3].endswith("bench merge jobs/*.db --store own.db")
    assert sorted(path.name for path in (tmp_path / "jobs").iterdir()) == [
        "1.json", "2.json", "3.json"
    ]  # fmt: skip

    ended = [bench("work", f"jobs/{n}", "--no-progress") for n in (1, 2, 3)]
    assert sorted(end.status for end in ended) == [0, 0, 1]  # one learner fails, and says so
    assert any("no luck" in end.err for end in ended)

    merged = bench("merge", "jobs/1.db", "jobs/2.db", "jobs/3.db", "--store", "own.db")
    assert (merged.status, merged.out) == (0, "")
    assert "2 finished trials and 2 fits that it had not" in merged.err
    assert "3 of 3 trials" in merged.err
    again = bench("merge", "jobs/3.db", "jobs/1.db", "--store", "own.db")
    assert "0 finished trials and 0 fits" in again.err
    board = bench("report", "--store", "own.db")
    assert (board.status, "toy" in board.out) == (0, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("plan", *QUICK, "-l", "toy", "--jobs", "2"), "name their folder with -o"),
        (("plan", *QUICK, "-l", "toy", "-o", "."), "is a folder"),
        (("work", "jobs/1"), "jobs/1.json: no job file"),
        (("work", "data.csv"), "data.csv.json: no job file"),
        (("merge",), "nothing to merge"),
        (("merge", "no.db"), "no.db: no results there"),
        (("merge", "data.csv"), "data.csv: not a results store"),
    ],
)
def test_what_cannot_be_done_is_one_line(bench: Run, words: tuple[str, ...], said: str) -> None:
    ended = bench(*words)
    assert ended.status == 2
    assert ended.out == ""
    assert said in ended.err
    assert len(ended.err.splitlines()) == 1
