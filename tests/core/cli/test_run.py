"""The main job with a third party's learner; ``audit``, ``reprice`` and ``rerun`` of it."""

import csv
import json
import re
import sqlite3
from contextlib import closing
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from helpers import toys
from helpers.commands import DATA, QUICK, write_csv
from pyarrow import parquet

from bench_core import UsageError, load_run
from bench_core.execution.runner import Interrupted
from bench_core.results.store import Store

ONE = (*QUICK, "--costs", "costs.csv", "--learners", "toy")


@pytest.fixture
def done(ran):
    return ran(*ONE).ok()


def test_a_third_partys_module_runs_through_the_installed_command(shell, material):
    ended = shell("run", *DATA, "-p", "mine", "-l", "toy", "--costs", "costs.csv").ok()
    assert re.search(r"^toy +10\.00 +0 +1\.0000 ", ended.out, flags=re.M)
    assert "[2/2] ok score toy on data.csv" in ended.err


def test_the_board_is_the_only_thing_on_stdout(done, bench):
    assert done.out == bench("report").out


def test_quiet_leaves_stderr_empty(bench, material):
    ended = bench("run", *ONE, "--quiet")
    assert ended.err == ""
    assert "toy" in ended.out


def test_the_learner_of_against_is_on_the_board_without_being_named(bench, material):
    bench("run", *QUICK, "-l", "toy,constant,greedy-order", "-q").ok()
    bench("report", "-l", "toy,constant", "--against", "greedy-order", "-o", "b.csv").ok()
    assert {*pd.read_csv("b.csv")["learner"]} == {"toy", "constant", "greedy-order"}


def test_notes_of_a_run_are_shown_once_on_a_terminal(on_terminal, material):
    lines = on_terminal("run", *ONE)
    [line] = [line for line in lines if "fewer than 500 validation rows" in line]
    assert line.startswith("data.csv: ")
    lines = on_terminal("report")
    assert any(line.startswith("note: fewer than 500 validation rows") for line in lines)


def test_the_run_can_be_written_as_a_page_at_once(bench, material):
    ended = bench("run", *ONE, "-o", "board.html")
    assert ended.out == ""
    assert (material / "board.html").read_text().startswith("<!doctype html>")


def test_a_stand_in_is_announced_once_and_noted_once_on_the_board(bench, tmp_path, monkeypatch):
    (tmp_path / "toys.toml").write_text(toys.SUITE)
    monkeypatch.setenv("TOY_SUITES", str(tmp_path))
    words = ("--suite", "toys", "-p", "helpers.toys", "--data-dir", ".", "--executor", "inline")
    ended = bench("run", *words).ok()
    (warning,) = [line for line in ended.err.splitlines() if "generated data" in line]
    assert warning.startswith("warning: licensed.txt of toy-licensed was not found")
    assert ended.words.count("generated data") == 1
    assert "Use them to check the installation, not to compare methods." in ended.words


def test_plan_says_what_is_to_do_and_does_not_do_it(bench, material):
    ended = bench("plan", *QUICK, "-l", "toy", "--set", "toy.columns=[1,2]", "--seeds", "0-2")
    rows = [line.split() for line in ended.out.splitlines()]
    assert ["data.csv", "toy", "6", "0"] in rows
    assert "6 fits and 6 trials to do" in ended.out
    assert not (material / "results").exists()


def test_plan_counts_what_is_finished_and_estimates_the_rest(done, bench):
    ended = bench("plan", *ONE, "--seeds", "0,1")
    assert ["data.csv", "toy", "1", "1"] in [line.split() for line in ended.out.splitlines()]
    assert "1 fit and 1 trial to do\ntime: about" in ended.out


def test_csv_json_and_parquet_hold_the_same_rows(done, bench, tmp_path):
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
    kept = json.loads(parquet.read_schema(tmp_path / "results.parquet").metadata[b"pandas"])
    assert kept["index_columns"] == []
    assert [row["point"] for row in rows] == [o["point"] for o in objects] == list(frame["point"])
    costs = [float(row["cost"]) for row in rows]
    assert costs == [o["cost"] for o in objects] == list(frame["cost"])
    assert sorted(set(costs)) == [0.0, 10.0, 15.0]


def test_the_format_may_be_given_for_any_name(done, bench, tmp_path):
    bench("export", "--format", "json", "-o", "results.txt")
    assert isinstance(json.loads((tmp_path / "results.txt").read_text()), list)


def test_runs_are_listed_the_last_first(done, bench):
    bench("run", *QUICK, "--learners", "broken")
    rows = [line.split() for line in bench("list", "runs").out.splitlines()[1:]]
    assert [(row[0], row[6]) for row in rows] == [("2", "1"), ("1", "1")]
    assert [row[7] for row in rows] == ["failed", "ok"]
    assert rows[1][1] in bench("report", "1").out
    assert rows[1][1] in bench("report", rows[1][1][:-2]).out
    for words in (("report",), ("export",), ("log",), ("features", "-b", "inf")):
        first = bench(*words, "1")
        assert bench(*words, "--run", "1") == bench(*words, "1", "--run", "1") == first
        assert bench(*words) != first


@pytest.mark.parametrize(
    "words", [("best", "--budget", "inf"), ("features", "--budget", "inf"), ("export",), ("log",)]
)
def test_answers_name_their_run(words, done, bench):
    (row,) = bench("list", "runs").out.splitlines()[1:]
    number, run = row.split()[:2]
    ended = bench(*words).ok()
    assert f"run {number}, {run}, of " in ended.err


def test_best_names_the_winner_within_the_budget_and_how_to_train_it(done, bench):
    ended = bench("best", "-p", "mine", "--budget", "10").ok()
    assert "data.csv: best accuracy within 10 on average" in ended.out
    assert "toy: best at columns=1" in ended.out  # two columns cost 15
    (command,) = [line for line in ended.out.splitlines() if line.startswith("bench run ")]
    assert command == (
        "bench run --data data.csv --label label --task binary --costs costs.csv "
        "--learners toy --plugin mine"
    )
    again = bench(*command.split()[1:])
    assert "1 of 1 trials already finished" in again.err


def test_best_repeats_parameters_that_are_not_the_default(bench, material):
    bench("run", *ONE, "--set", "toy.columns=[1,3]")
    ended = bench("best", "--budget", "100")
    assert "--set toy.columns=" in ended.out


def test_where_everything_failed_no_budget_helps(bench, material):
    assert bench("run", *QUICK, "--learners", "broken").status == 1
    nothing = bench("best", "--budget", "3")
    assert nothing.status == 1
    assert (
        "no result of any learner within 3 on average; 'bench log --failed' shows why"
        in nothing.out
    )
    assert "affordable" not in nothing.out


def test_audit_replays_everything_and_says_so_on_the_board(done, bench):
    assert "audit: sampled." in bench("report").words
    ended = bench("audit", "-p", "mine", "--executor", "inline")
    assert (ended.status, ended.out.split(": ")[-1]) == (0, "1 verified\n")
    assert "audit: verified." in bench("report").words


def test_a_store_by_itself_imports_no_plugin(bench, done):
    bench("audit").refused("made with -p mine|add -p mine")


def test_a_terminal_sees_bars_and_colours(on_terminal, material, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    said = "".join(on_terminal("run", *ONE))
    assert "all jobs" in said
    assert "\x1b[1m" in said


def test_forty_columns_are_enough(done, on_terminal, monkeypatch):
    for name, value in (("COLUMNS", "40"), ("TERM", "xterm"), ("NO_COLOR", "1")):
        monkeypatch.setenv(name, value)
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in on_terminal("report")]
    assert max(map(len, lines)) <= 40
    # 31 of 31 right: the interval ends at 1
    assert re.search(r"^toy +10\.00 +0 +1\.0000 +-\.1\d{3}$", "\n".join(lines), flags=re.M), lines


def test_a_report_of_some_learners_leaves_the_others_out(bench, material, tmp_path):
    bench("run", *QUICK, "--learners", "toy,constant", "--reference", "toy").ok()
    for words, names in (((), {"toy", "constant"}), (("-l", "toy"), {"toy"})):
        bench("report", *words, "-o", "b.csv").ok()
        with (tmp_path / "b.csv").open() as file:
            assert {row["learner"] for row in csv.DictReader(file)} == names
    assert "toy's cost divided" in bench("report", "--methods").out
    assert "cost divided" not in bench("report", "-l", "constant", "--methods").out


RUN = ("run", "--data", "data.csv", "--executor", "inline", "-q", "--task", "binary")


def test_folds_unit_and_reference_reach_the_results(tmp_path, bench):
    write_csv(tmp_path / "data.csv")
    words = ("-l", "constant,greedy-order", "--cv", "3", "--unit", "ms", "--group", "a,b:2")
    bench(*RUN, *words, "--reference", "greedy-order", "--drop", "c").ok()
    store = Store()
    info, frame = store.info(), store.frame()
    assert {use.reference for use in info.datasets} == {"greedy-order"}
    assert sorted(set(frame["fold"])) == [0, 1, 2]
    assert set(frame["unit"]) == {"ms"}
    assert [use.rows["test"] for use in info.datasets] != [0, 0, 0]
    assert sum(use.rows["test"] for use in info.datasets) == 120
    assert {use.features for use in info.datasets} == {2}
    assert {use.price_of_everything for use in info.datasets} == {2.0}
    best = bench("best", "--budget", "5").out
    command = next(line for line in best.splitlines() if line.startswith("bench run"))
    for option in ("--cv 3", "--unit ms", "--group a,b:2", "--drop c"):
        assert option in command


MODELS = (*QUICK, "--costs", "costs.csv", "-l", "toy,gbrt", "--set", "gbrt.trees=5")
FEE = ("-p", "helpers.flat_costs_plugin")
SAME = ("learner", "params", "point", "split", "accuracy", "log_loss", "features_used", "audit")


@pytest.fixture
def both_done(ran, material):
    ended = ran(*MODELS, "-m", "accuracy,log_loss").ok()
    (material / "new.csv").write_text("a,1\nb,2\nc,30\n")
    (material / "together.json").write_text(json.dumps({"model": "visit-fee", "fee": 3}))
    return ended


def exported(bench, run="last"):
    return pd.read_csv(StringIO(bench("export", run).ok().out))


def test_metrics_stay_and_costs_are_those_of_the_new_file(both_done, bench, material):
    before = exported(bench)
    states = sorted((material / "results/bench.fits").glob("??/*"))
    ended = bench("reprice", "--costs", "new.csv", "-p", "mine", "--executor", "inline").ok()
    assert ended.out.splitlines()[0].startswith("run 2, data.csv-quick-")
    assert "-new-" in ended.out.splitlines()[0]
    after = exported(bench)
    pd.testing.assert_frame_equal(before[[*SAME]], after[[*SAME]])
    # toy buys a (10, now 1), then b (5, now 2)
    toy = [f[(f["learner"] == "toy") & (f["split"] == "test")] for f in (before, after)]
    assert toy[0]["cost"].tolist() == [0, 0, 10, 15]  # the constant, then no column
    assert toy[1]["cost"].tolist() == [0, 0, 1, 3]
    assert toy[1]["cost_max"].tolist() == [0, 0, 1, 3]
    assert not before["surrogate"].any()
    assert after["surrogate"].all()
    assert sorted((material / "results/bench.fits").glob("??/*")) == states
    assert exported(bench, "1").equals(before)


def test_repriced_costs_are_those_of_models_billed_by_the_file_from_the_start(bench, material):
    blind = (*QUICK, "-l", "gbrt", "--set", "gbrt.trees=5")
    (material / "together.json").write_text(json.dumps({"model": "visit-fee", "fee": 3}))
    bench("run", *blind).ok()
    bench("reprice", "--costs", "together.json", *FEE, "-p", "mine", "--executor", "inline").ok()
    repriced = exported(bench)
    bench("run", *blind, "--costs", "together.json", *FEE).ok()
    fresh = exported(bench)
    costs = ["point", "split", "accuracy", "feature_cost", "cost", "cost_max"]
    pd.testing.assert_frame_equal(repriced[costs], fresh[costs])


def test_a_repriced_run_is_reused_audited_and_listed(both_done, bench):
    again = ("reprice", "1", "--costs", "together.json", *FEE, "-p", "mine", "--executor", "inline")
    first = bench(*again)
    assert (first.status, "2 ok in" in first.err) == (0, True)
    assert "2 ok (2 reused)" in bench(*again).err
    audit = bench("audit", *FEE, "-p", "mine", "--executor", "inline")
    assert (audit.status, "2 verified" in audit.out) == (0, True)
    listed = bench("list", "runs").out
    assert "-together-" in listed
    assert bench("report").out.count("trained on other prices") == 1  # not at gbrt
    board = bench("report").out
    assert "note: billed again from run 1 under together.json" in board
    assert "note: costs by model 'visit-fee'" in board


def test_what_was_asked_of_the_first_run_is_kept_and_the_name_tells_the_costs(bench, material):
    (material / "our-costs (2).csv").write_text("a,1\nb,2\nc,30\n")
    asked = ("-l", "toy", "-m", "accuracy,log_loss", "--seeds", "3", "--set", "toy.columns=1")
    bench("run", *QUICK, *asked).ok()
    anew = ("--costs", "our-costs (2).csv", "-p", "mine", "--executor", "inline")
    bench("reprice", *anew).ok()
    store = Store(material / "results/bench.db")
    first, second = store.info("1"), store.info("2")
    assert second.run.startswith(f"{first.run}-our-costs__2_-")
    assert first.request["metrics"] == ["accuracy", "log_loss"]
    kept = {**first.request, "costs": "our-costs (2).csv", "store": second.request["store"]}
    assert second.request == kept


def test_a_cost_file_in_another_encoding_can_bill_a_run(both_done, bench, material):
    (material / "own.csv").write_text(
        "feature,cost,Währung\na,1,euro\nb,2,euro\nc,30,euro\n", "cp1252"
    )
    words = ("reprice", "--costs", "own.csv", "-p", "mine", "--executor", "inline")
    assert "own.csv, line 1: not text in UTF-8" in bench(*words).err
    ended = bench(*words, "--encoding", "cp1252").ok()
    assert "all of them cost 33" in ended.out


def test_a_computed_optimum_is_computed_again_under_the_new_prices(bench, elsewhere):
    problem = ("-d", "bayes-net", "--set", "bayes-net.problem=parity-2")
    bench("run", *problem, "-l", "constant", "--executor", "inline", "-q").ok()
    features = ("x0", "x1", "z0", "z1", "z2", "z3")  # at a price of 1
    (elsewhere / "double.csv").write_text("".join(f"{name},2\n" for name in features))
    bench("reprice", "--costs", "double.csv", "--executor", "inline").ok()
    store = Store(elsewhere / "results/bench.db")
    known = [store.info(run).datasets[0].optimum["accuracy"] for run in "12"]
    # without a feature half of the rows are right, with x0 and x1 .95 of them
    for (nothing, both), paid in zip(known, (2, 4), strict=True):
        assert [*nothing, *both] == pytest.approx([0, 0.5, paid, 0.95])


def test_a_model_that_is_gone_is_one_line(both_done, bench, material):
    for path in (material / "results/bench.fits").glob("??/*"):
        path.unlink()
    bench("reprice", "--costs", "new.csv", "-p", "mine").refused(
        "the fitted model of toy on data.csv is gone; run again with --fresh"
    )


def test_a_lying_bill_is_still_caught(bench, material):
    (material / "new.csv").write_text("a,1\nb,2\nc,30\n")
    bench("run", *QUICK, "-l", "peeking", "--audit", "off").ok()
    bench("reprice", "--costs", "new.csv", "-p", "mine", "--executor", "inline").ok()  # not audited
    audited = bench("audit", "-p", "mine", "--executor", "inline")
    assert audited.status == 1
    assert "1 failed the audit" in audited.out


def test_an_audit_has_limits_of_time_and_memory(bench, both_done, monkeypatch):
    seen = []

    def catch(run, request, notify):
        seen.append(request)
        raise UsageError("that is all")

    monkeypatch.setattr("bench_core.execution.orchestration.audited", catch)
    assert bench("audit", "-p", "mine", "--timeout", "10m", "--memory", "1GiB").status == 2
    assert (seen[0].timeout, seen[0].memory) == (600.0, 2**30)


def test_an_interrupted_audit_says_so_and_gives_no_advice(bench, both_done, monkeypatch):
    def interrupt(run, request, notify):
        raise Interrupted(load_run())

    monkeypatch.setattr("bench_core.execution.orchestration.audited", interrupt)
    ended = bench("audit", "-p", "mine")
    assert ended.status == load_run().exit_status
    assert ended.err.startswith("interrupted: run data.csv-quick-")
    assert ended.err.endswith(" kept in results/bench.db\n")


@pytest.fixture
def row(bench, ran):
    """A row of the second repeat."""
    words = ("--costs", "costs.csv", "--learners", "toy", "--seeds", "0,1")
    ran(*QUICK, *words).ok()
    return list(csv.DictReader(StringIO(bench("export").out)))[-1]


def change(statement):
    """Change the store as another program would."""
    with closing(sqlite3.connect("results/bench.db")) as db, db:
        db.execute(statement)


def test_a_row_is_made_again_with_the_same_bits(bench, row):
    assert len(row["trial"]) == 12
    assert row["versions"].startswith("python 3.")
    assert "numpy " in row["versions"]
    assert len(row["code"]) == 16
    assert f", trial {row['trial']}" in bench("log").out
    before = Path("results/bench.db").read_bytes()
    again = bench("rerun", row["trial"], "-p", "mine", "--no-progress")
    assert (again.status, again.out.split(": ", 1)[1]) == (0, "same bits (8 rows)\n")
    assert "seed 1" in again.out
    assert Path("results/bench.db").read_bytes() == before


def test_what_differs_is_named_with_the_ingredient(bench, row):
    change("UPDATE point SET cost = cost + 1e-12 WHERE split = 'test'")
    altered = "json_set(record, '$.versions', 'python 3.9', '$.code', 'old')"
    change(f"UPDATE trial SET record = {altered}")
    again = bench("rerun", row["trial"][:6], "-p", "mine", "--no-progress")
    assert again.status == 1
    assert ": 4 of its numbers differ (8 rows)" in again.out
    assert 'test at {"columns":1}: cost 10.000000000001 then, 10.0 now' in again.out
    assert f"code: old then, {row['code']} now" in again.out
    assert "versions: python 3.9 then, python 3." in again.out
    assert "settings" not in again.out


def test_a_row_is_made_again_without_the_modules_of_other_learners(bench, ran):
    words = ("-l", "toy,gbrt", "--reference", "gbrt", "--set", "gbrt.trees=2", "--set")
    ran(*QUICK, *words, "toy.columns=1").ok()
    rows = csv.DictReader(StringIO(bench("export").out))
    of = {row["learner"]: row["trial"] for row in rows}
    again = bench("rerun", of["gbrt"], "--no-progress")
    assert (again.status, again.out.split(": ", 1)[1][:9]) == (0, "same bits")
    ended = bench("rerun", of["toy"])
    assert (ended.status, ended.err) == (
        2,
        "error: learner 'toy' is not installed; the run had -p mine\n",
    )


def test_where_nothing_recorded_differs_the_learner_is_blamed(bench, row):
    change("UPDATE point SET auc = 0.123 WHERE split = 'test'")
    again = bench("rerun", row["trial"], "-p", "mine", "--no-progress")
    assert again.status == 1
    assert again.out.endswith("the learner is not deterministic\n")


def test_a_repriced_run_that_is_repriced_again_keeps_one_suffix(both_done, bench, material):
    (material / "again.csv").write_text("a,3\nb,2\nc,1\n")
    more = (*FEE, "-p", "mine", "--executor", "inline")
    bench("reprice", "1", "--costs", "together.json", *more).ok()
    bench("reprice", "last", "--costs", "again.csv", *more).ok()
    store = Store(material / "results/bench.db")
    first, last = store.info("1").run, store.info("last").run
    assert re.fullmatch(rf"{re.escape(first)}-again-[0-9a-f]{{6}}", last)
