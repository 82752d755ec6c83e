"""The main job on a small file and a third party's learner."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from helpers.commands import BENCH, DATA, QUICK, Ended, Run

ONE = (*QUICK, "--costs", "costs.csv", "--learners", "toy")


@pytest.fixture
def done(bench: Run, material: Path) -> Ended:
    ended = bench("run", *ONE)
    assert ended.status == 0
    return ended


def test_a_third_partys_module_runs_through_the_installed_command(
    shell: Run, material: Path
) -> None:
    ended = shell("run", *DATA, "-p", "mine", "-l", "toy", "--costs", "costs.csv")
    assert ended.status == 0
    assert re.search(r"^data\.csv  toy +1 +1 +\d\.\d{4} ", ended.out, flags=re.M)
    assert "[2/2] ok score toy on data.csv" in ended.err


def test_the_board_is_the_only_thing_on_stdout(done: Ended, bench: Run) -> None:
    assert done.out == bench("report").out


def test_quiet_leaves_stderr_empty(bench: Run, material: Path) -> None:
    ended = bench("run", *ONE, "--quiet")
    assert ended.err == ""
    assert "toy" in ended.out


def test_the_same_command_again_does_nothing_anew(done: Ended, bench: Run) -> None:
    again = bench("run", *ONE)
    assert "0 jobs to do, 1 of 1 trials are there already" in again.err
    assert "1 ok (1 of them from before)" in again.err


def test_the_run_can_be_written_as_a_page_at_once(bench: Run, material: Path) -> None:
    ended = bench("run", *ONE, "-o", "board.html")
    assert ended.out == ""
    assert (material / "board.html").read_text().startswith("<!doctype html>")


def test_plan_says_what_is_to_do_and_does_not_do_it(bench: Run, material: Path) -> None:
    ended = bench("plan", *QUICK, "-l", "toy", "--set", "toy.columns=[1,2]", "--seeds", "0-2")
    rows = [line.split() for line in ended.out.splitlines()]
    assert ["data.csv", "toy", "6", "0"] in rows
    assert "6 fits and 6 trials to do" in ended.out
    assert not (material / "results").exists()


def test_plan_counts_what_is_finished_and_estimates_the_rest(done: Ended, bench: Run) -> None:
    ended = bench("plan", *ONE, "--seeds", "0,1")
    assert ["data.csv", "toy", "1", "1"] in [line.split() for line in ended.out.splitlines()]
    assert "1 fit and 1 trial to do\ntime: about" in ended.out


def test_csv_json_and_parquet_hold_the_same_rows(done: Ended, bench: Run, tmp_path: Path) -> None:
    text = bench("export").out
    rows = list(csv.DictReader(text.splitlines()))
    for split in ("valid", "test"):  # none, one and two columns
        assert [r["point"] for r in rows if r["split"] == split] == [
            '{"constant":1}',
            *(f'{{"columns":{k}}}' for k in range(3)),
        ]
    bench("export", "-o", "results.json")
    objects = json.loads((tmp_path / "results.json").read_text())
    bench("export", "-o", "results.parquet")
    frame = pd.read_parquet(tmp_path / "results.parquet")
    assert [row["point"] for row in rows] == [o["point"] for o in objects] == list(frame["point"])
    costs = [float(row["total_cost"]) for row in rows]
    assert costs == [o["total_cost"] for o in objects] == list(frame["total_cost"])
    assert sorted(set(costs)) == [0.0, 10.0, 15.0]


def test_the_format_may_be_given_for_any_name(done: Ended, bench: Run, tmp_path: Path) -> None:
    bench("export", "--format", "json", "-o", "results.txt")
    assert isinstance(json.loads((tmp_path / "results.txt").read_text()), list)


def test_runs_are_listed_the_last_first(done: Ended, bench: Run) -> None:
    bench("run", *QUICK, "--learners", "broken")
    rows = [line.split() for line in bench("list", "runs").out.splitlines()[1:]]
    assert [(row[0], row[6]) for row in rows] == [("2", "1"), ("1", "1")]
    assert [row[7] for row in rows] == ["failed", "ok"]
    assert rows[1][1] in bench("report", "1").out
    assert rows[1][1] in bench("report", rows[1][1][:-2]).out


def test_best_names_the_winner_within_the_budget_and_how_to_train_it(
    done: Ended, bench: Run
) -> None:
    ended = bench("best", "-p", "mine", "--budget", "10")
    assert ended.status == 0
    assert "data.csv: best accuracy within 10 on average" in ended.out
    assert "toy: best at columns=1" in ended.out  # two columns cost 15
    (command,) = [line for line in ended.out.splitlines() if line.startswith("bench run ")]
    assert command == (
        "bench run --data data.csv --label label --task binary --costs costs.csv "
        "--learners toy --plugin mine"
    )
    again = bench(*command.split()[1:])
    assert "1 of 1 trials are there already" in again.err


def test_best_repeats_parameters_that_are_not_the_default(bench: Run, material: Path) -> None:
    bench("run", *ONE, "--set", "toy.columns=[1,3]")
    ended = bench("best", "--budget", "100")
    assert "--set toy.columns=" in ended.out


def test_a_budget_that_buys_nothing_is_met_by_the_constant(bench: Run, material: Path) -> None:
    one_tree = ("--set", "gbrt.trees=1", "--set", "gbrt.min_rows=1")
    assert bench("run", *QUICK, "--learners", "gbrt", *one_tree).status == 0
    nothing = bench("best", "--budget", "0")
    assert nothing.status == 0, nothing.err
    assert "gbrt: best at the constant" in nothing.out
    assert "bought never: 3 sensors (3.00 saved)" in nothing.out


def test_where_everything_failed_no_budget_helps(bench: Run, material: Path) -> None:
    assert bench("run", *QUICK, "--learners", "broken").status == 1
    nothing = bench("best", "--budget", "3")
    assert nothing.status == 1
    assert "no learner has a result; 'bench log --failed' shows why" in nothing.out
    assert "affordable" not in nothing.out


def test_audit_replays_everything_and_says_so_on_the_board(done: Ended, bench: Run) -> None:
    assert " sampled " in bench("report").out
    ended = bench("audit", "-p", "mine", "--executor", "inline")
    assert (ended.status, ended.out.split(": ")[-1]) == (0, "1 verified\n")
    assert " verified " in bench("report").out


def test_a_store_by_itself_imports_no_plugin(bench: Run, done: Ended) -> None:
    refused = bench("audit")
    assert refused.status == 2
    assert "made with -p mine" in refused.err
    assert "add -p mine" in refused.err


def test_an_audit_that_finds_a_peeking_model_is_status_1(bench: Run, material: Path) -> None:
    bench("run", *QUICK, "--learners", "peeking", "--audit", "off")
    assert "declared" in bench("report").out
    ended = bench("audit", "-p", "mine", "--executor", "inline")
    assert ended.status == 1
    assert ended.out.splitlines()[-1].endswith(": 1 failed the audit")
    assert len(ended.out.splitlines()) == 2


def on_a_terminal(material: Path, *words: str, columns: int, **environment: str) -> str:
    """What the command writes when stdout and stderr are a terminal that many columns wide."""
    control, terminal = pty.openpty()
    variables = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm", **environment}
    process = subprocess.Popen(
        [str(BENCH), *words],
        cwd=material,
        stdout=terminal,
        stderr=terminal,
        stdin=subprocess.DEVNULL,
        env=variables,
    )
    os.close(terminal)
    said = b""
    while True:
        try:
            piece = os.read(control, 1 << 16)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        said += piece
    os.close(control)
    process.wait(timeout=60)
    return said.decode()


def test_a_terminal_sees_bars_and_colours(material: Path) -> None:
    said = on_a_terminal(material, "run", *ONE, columns=100)
    assert "all jobs" in said
    assert "\x1b[1m" in said


@pytest.mark.usefixtures("done")
def test_forty_columns_are_enough(material: Path) -> None:
    said = on_a_terminal(material, "report", columns=40, NO_COLOR="1")
    lines = re.sub(r"\x1b\[[0-9;]*m", "", said).splitlines()
    assert max(map(len, lines)) <= 40
    assert re.search(r"^toy +1 +1\.0000\* +\.0000 +10\.00", "\n".join(lines), flags=re.M)


def test_last_is_a_near_match_of_a_run_and_best_writes_only_text(done: Ended, bench: Run) -> None:
    assert "did you mean last?" in bench("report", "lst").err
    for name in ("best.json", "best.html", "best.tex"):
        ended = bench("best", "-p", "mine", "--budget", "10", "-o", name)
        assert ended.status == 2
        assert f"{name}: this is written as plain text (.txt)" in ended.err
    assert bench("best", "-p", "mine", "--budget", "10", "-o", "best.txt").status == 0


def test_a_report_of_another_ending_is_refused_and_files_are_named_by_theirs(
    done: Ended, bench: Run, tmp_path: Path
) -> None:
    before = sorted(tmp_path.iterdir())
    for words in (
        ("-o", "noending"),
        ("-o", "board.docx"),
        ("--plot", "c.html"),
        ("-o", "b.md", "--plot", "c.jpg"),
    ):
        ended = bench("report", *words)
        assert ended.status == 2
        assert words[-1] in ended.err
        assert ".tex" in ended.err or ".pdf" in ended.err
    assert sorted(tmp_path.iterdir()) == before
    assert "Budget Bench" in bench("report", "--methods").out
    assert bench("report", "-o", "board.tex", "-q", "-p", "mine").status == 0
    assert "\\toprule" in (tmp_path / "board.tex").read_text()
