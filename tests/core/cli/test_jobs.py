"""``bench plan --jobs``, ``bench work`` and ``bench merge`` as a user types them."""

import json
import os
import shlex
import subprocess
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from helpers import calls
from helpers.commands import BENCH, QUICK

from bench_core.planning.plan import Estimate

pytestmark = pytest.mark.usefixtures("material")
LEARNERS = ("--learners", "toy,broken", "--set", "toy.columns=[1, 2]", "--reference", "toy")


def test_a_plan_is_done_in_pieces_and_merged(bench, tmp_path):
    planned = bench(
        "plan", *QUICK, *LEARNERS, "--jobs", "8", "-o", "jobs/", "--store", "own.db"
    ).ok()
    lines = planned.out.splitlines()
    assert lines[0] == "3 job files in jobs"  # nothing is timed yet
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
    assert "2 finished trials and 2 fits added" in merged.err
    assert "3 of 3 trials" in merged.err
    again = bench("merge", "jobs/3.db", "jobs/1.db", "--store", "own.db")
    assert "0 finished trials and 0 fits" in again.err
    board = bench("report", "--store", "own.db")
    assert (board.status, "toy" in board.out) == (0, True)


def test_the_commands_of_a_folder_and_a_store_with_spaces_can_be_typed(bench, tmp_path):
    where = ("--jobs", "1", "-o", "my jobs", "--store", "my st.db")
    lines = bench("plan", *QUICK, "--learners", "toy", *where).out.splitlines()
    here, slurm, then = (line.partition(":")[2].strip() for line in lines[1:4])

    environment = {**os.environ, "PATH": f"{BENCH.parent}{os.pathsep}{os.environ['PATH']}"}
    typed = {"shell": True, "cwd": tmp_path, "env": environment, "capture_output": True}
    subprocess.run(here, check=True, **typed)
    assert [path.name for path in (tmp_path / "my jobs").glob("*.db")] == ["1.db"]

    *words, option, wrapped = shlex.split(slurm)
    assert (words[0], option) == ("sbatch", "--wrap")
    shown = f"printf '%s|' {wrapped.removeprefix('bench ')}"  # the script that sbatch would run
    script = subprocess.run(
        ["sh", "-c", shown], env={"SLURM_ARRAY_TASK_ID": "3"}, capture_output=True, check=True
    )
    assert script.stdout == b"work|my jobs/3|"

    merged = subprocess.run(then, check=True, **typed)
    assert b"1 of 1 trials" in merged.stderr
    assert (tmp_path / "my st.db").is_file()


def test_a_plan_has_the_core_hours_of_its_recorded_jobs(bench, monkeypatch):
    seen = Estimate(jobs=3, recorded=2, work=7200.0, wall=3600.0)
    monkeypatch.setattr("bench_core.planning.plan.Plan.estimate", seen)
    planned = bench("plan", *QUICK, *LEARNERS, "--threads", "1")
    assert "time: about 1 h 0 min with 1 worker (2 core hours)" in planned.out
    assert "by the medians of recorded durations for 2 and rows, columns and" in planned.out


def test_a_plan_without_data_is_that_of_the_first_suite(bench):
    """``bench run`` runs it: tests/test_packaging.py."""
    planned = bench("plan").ok()
    assert "thyroid" in planned.out
    assert "miser" in planned.out
    assert "miser" not in bench("plan", "--learners", "cegb").out


def test_prices_by_row_are_the_same_through_jobs_rerun_and_reprice(bench):
    calls.table().to_csv("calls.csv", index=False)
    Path("costs.json").write_text(json.dumps(calls.COSTS))
    costs = calls.COSTS["costs"] | {"age": 7}
    Path("more.json").write_text(json.dumps(calls.COSTS | {"costs": costs}))
    how = ("-d", "calls.csv", "--costs", "costs.json", "--label", "label", "-m", "accuracy")
    how += ("-l", "gbrt,masked-gbrt", "--set", "gbrt.trees=3", "--caps", "0.5,4")

    def exported(store, run="last"):
        text = bench("export", run, "--store", store).out
        table = pd.read_csv(StringIO(text))
        figures = [c for c in table if "cost" in c or c in ("accuracy", "over_cap", "excess")]
        return table[["learner", "point", "split", *figures]].sort_values(
            ["learner", "point", "split"], ignore_index=True
        )

    bench("run", *how, "--executor", "inline", "--store", "whole.db").ok()
    whole = exported("whole.db")
    assert whole["over_cap"].max() > 0.5
    bench("plan", *how, "--jobs", "2", "-o", "jobs/", "--store", "own.db").ok()
    files = sorted(str(path) for path in Path("jobs").glob("*.json"))
    for file in files:
        bench("work", file.removesuffix(".json"), "--no-progress").ok()
    shards = [file.replace(".json", ".db") for file in files]
    bench("merge", *shards, "--store", "own.db").ok()
    pd.testing.assert_frame_equal(exported("own.db"), whole, rtol=1e-12)

    trial = pd.read_csv(StringIO(bench("export", "--store", "whole.db").out))["trial"][0]
    bench("rerun", str(trial), "--store", "whole.db").ok()
    inline = ("--executor", "inline", "--store", "whole.db", "--caps", "0.5,4")
    bench("reprice", "--costs", "costs.json", *inline).ok()
    pd.testing.assert_frame_equal(exported("whole.db"), whole, rtol=1e-12)
    bench("reprice", "1", "--costs", "more.json", *inline).ok()
    path = ~whole["point"].str.contains("cap")
    more = exported("whole.db")[path]["cost"] - whole[path]["cost"]
    assert {*more.round(9)} <= {0.0, 5.0}  # age, by all or none
