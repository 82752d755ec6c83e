"""``bench audit``, ``reprice`` and ``rerun``: the work of a stored run done again."""

from __future__ import annotations

import csv
import json
import sqlite3
from contextlib import closing
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from helpers.commands import QUICK, Ended, Run

from bench_core import UsageError
from bench_core.planning.request import RunRequest
from bench_core.results.store import Store

MODELS = (*QUICK, "--costs", "costs.csv", "-l", "toy,gbrt", "--set", "gbrt.trees=5")
SAME = ("learner", "params", "point", "split", "accuracy", "log_loss", "features_used", "audit")


@pytest.fixture
def done(bench: Run, material: Path) -> Ended:
    ended = bench("run", *MODELS, "-m", "accuracy,log_loss")
    assert ended.status == 0
    (material / "new.csv").write_text("a,1\nb,2\nc,30\n")
    (material / "together.json").write_text(
        json.dumps({"model": "parallel", "services": {"both": ["a", "b"]}})
    )
    return ended


def exported(bench: Run, run: str = "last") -> pd.DataFrame:
    ended = bench("export", run)
    assert ended.status == 0
    return pd.read_csv(StringIO(ended.out))


def test_metrics_stay_and_costs_are_those_of_the_new_file(
    done: Ended, bench: Run, material: Path
) -> None:
    before = exported(bench)
    states = sorted((material / "results/bench.fits").glob("??/*"))
    ended = bench("reprice", "--costs", "new.csv", "-p", "mine", "--executor", "inline")
    assert ended.status == 0
    assert ended.out.splitlines()[0].startswith("run 2, data.csv-quick-")
    assert "-new-" in ended.out.splitlines()[0]
    after = exported(bench)
    pd.testing.assert_frame_equal(before[[*SAME]], after[[*SAME]])
    # toy buys a (10, now 1), then b (5, now 2)
    toy = [f[(f["learner"] == "toy") & (f["split"] == "test")] for f in (before, after)]
    assert toy[0]["total_cost"].tolist() == [0, 0, 10, 15]  # the constant, then no column
    assert toy[1]["total_cost"].tolist() == [0, 0, 1, 3]
    assert toy[1]["cost_max"].tolist() == toy[1]["cost_p95"].tolist() == [0, 0, 1, 3]
    assert not before["surrogate"].any()
    assert after["surrogate"].all()
    assert sorted((material / "results/bench.fits").glob("??/*")) == states
    assert exported(bench, "1").equals(before)


def test_repriced_costs_are_those_of_models_billed_by_the_file_from_the_start(
    bench: Run, material: Path
) -> None:
    blind = (*QUICK, "-l", "gbrt", "--set", "gbrt.trees=5")
    (material / "together.json").write_text(
        json.dumps({"model": "parallel", "services": {"both": ["a", "b"]}})
    )
    assert bench("run", *blind).status == 0
    ended = bench("reprice", "--costs", "together.json", "-p", "mine", "--executor", "inline")
    assert ended.status == 0
    repriced = exported(bench)
    assert bench("run", *blind, "--costs", "together.json").status == 0
    fresh = exported(bench)
    costs = ["point", "split", "accuracy", "feature_cost", "total_cost", "cost_p95", "cost_max"]
    pd.testing.assert_frame_equal(repriced[costs], fresh[costs])


def test_a_repriced_run_is_reused_audited_and_listed(done: Ended, bench: Run) -> None:
    again = ("reprice", "1", "--costs", "together.json", "-p", "mine", "--executor", "inline")
    first = bench(*again)
    assert (first.status, "2 ok in" in first.err) == (0, True)
    assert "2 ok (2 of them from before)" in bench(*again).err
    audit = bench("audit", "-p", "mine", "--executor", "inline")
    assert (audit.status, "2 verified" in audit.out) == (0, True)
    listed = bench("list", "runs").out
    assert "-together-" in listed
    assert "trained on surrogate prices" in bench("report").out
    board = bench("report", "-v").out
    assert "note: billed again from run 1 under together.json" in board
    assert "note: costs by model 'parallel'" in board


def test_what_was_asked_of_the_first_run_is_kept_and_the_name_tells_the_costs(
    bench: Run, material: Path
) -> None:
    (material / "our-costs (2).csv").write_text("a,1\nb,2\nc,30\n")
    asked = ("-l", "toy", "-m", "accuracy,log_loss", "--seeds", "3", "--set", "toy.columns=1")
    assert bench("run", *QUICK, *asked).status == 0
    anew = ("--costs", "our-costs (2).csv", "-p", "mine", "--executor", "inline")
    assert bench("reprice", *anew).status == 0
    store = Store(material / "results/bench.db")
    first, second = store.info("1"), store.info("2")
    assert second.run.startswith(f"{first.run}-our-costs__2_-")
    assert first.request["metrics"] == ["accuracy", "log_loss"]
    kept = {**first.request, "costs": "our-costs (2).csv", "store": second.request["store"]}
    assert second.request == kept


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--costs", "none.csv"), "none.csv: no such file; check the name"),
        (("--costs", "short.csv"), "short.csv: feature 'c' has no cost"),
        (("--costs", "shared.json"), "its features share other measurements than in the run"),
        (("--costs", "new.csv", "-d", "dat.csv"), "unknown data set of this run 'dat.csv': did"),
        (("nope", "--costs", "new.csv"), "unknown run 'nope'"),
        ((), "Missing option '--costs'"),
    ],
)
def test_what_cannot_be_repriced_is_one_line(
    done: Ended, bench: Run, material: Path, words: tuple[str, ...], line: str
) -> None:
    (material / "short.csv").write_text("a,1\nb,2\n")
    shared = {"costs": {"a": 1, "b": 1, "c": 2}, "shared": [["a", "b"]]}
    (material / "shared.json").write_text(json.dumps(shared))
    ended = bench("reprice", *words, "-p", "mine")
    assert ended.status == 2
    assert line in ended.err
    assert "run 2" not in bench("list", "runs").out


def test_a_model_that_is_gone_is_one_line(done: Ended, bench: Run, material: Path) -> None:
    for path in (material / "results/bench.fits").glob("??/*"):
        path.unlink()
    ended = bench("reprice", "--costs", "new.csv", "-p", "mine")
    assert ended.status == 2
    assert "the fitted model of toy on data.csv is gone; run again with --fresh" in ended.err


def test_a_lying_bill_is_still_caught(bench: Run, material: Path) -> None:
    (material / "new.csv").write_text("a,1\nb,2\nc,30\n")
    assert bench("run", *QUICK, "-l", "peeking", "--audit", "off").status == 0
    ended = bench("reprice", "--costs", "new.csv", "-p", "mine", "--executor", "inline")
    assert ended.status == 0  # its run was not audited, and neither is this one
    audited = bench("audit", "-p", "mine", "--executor", "inline")
    assert audited.status == 1
    assert "1 failed the audit" in audited.out


def test_an_audit_has_limits_of_time_and_memory(
    bench: Run, done: Ended, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[RunRequest] = []

    def catch(run: str, request: RunRequest, notify: object) -> None:
        seen.append(request)
        raise UsageError("that is all")

    monkeypatch.setattr("bench_core.api.orchestration.audited", catch)
    assert bench("audit", "-p", "mine", "--timeout", "10m", "--memory", "1GiB").status == 2
    assert (seen[0].timeout, seen[0].memory) == (600.0, 2**30)


@pytest.fixture
def row(bench: Run, material: Path) -> dict[str, str]:
    """A row of the second repeat."""
    words = ("--costs", "costs.csv", "--learners", "toy", "--seeds", "0,1")
    assert bench("run", *QUICK, *words).status == 0
    return list(csv.DictReader(StringIO(bench("export").out)))[-1]


def change(statement: str) -> None:
    """Change the store as another program would."""
    with closing(sqlite3.connect("results/bench.db")) as db, db:
        db.execute(statement)


def test_a_row_is_made_again_with_the_same_bits(bench: Run, row: dict[str, str]) -> None:
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


def test_what_differs_is_named_with_the_ingredient(bench: Run, row: dict[str, str]) -> None:
    change("UPDATE point SET total_cost = total_cost + 1e-12 WHERE split = 'test'")
    change("UPDATE trial SET versions = 'python 3.9', code = 'old'")
    again = bench("rerun", row["trial"][:6], "-p", "mine", "--no-progress")
    assert again.status == 1
    assert ": 4 of its numbers differ (8 rows)" in again.out
    assert 'test at {"columns":1}: total_cost 10.000000000001 then, 10.0 now' in again.out
    assert f"code: old then, {row['code']} now" in again.out
    assert "versions: python 3.9 then, python 3." in again.out
    assert "settings" not in again.out


def test_where_nothing_recorded_differs_the_learner_is_blamed(
    bench: Run, row: dict[str, str]
) -> None:
    change("UPDATE point SET auc = 0.123 WHERE split = 'test'")
    again = bench("rerun", row["trial"], "-p", "mine", "--no-progress")
    assert again.status == 1
    assert again.out.endswith("the learner itself is not repeatable\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("zzz", "-p", "mine"), "no finished trial 'zzz'; see trial in 'bench export'"),
        (("", "-p", "mine"), "no finished trial ''"),
        (("{trial}",), "toy"),
    ],
)
def test_what_cannot_be_done_again_is_one_line(
    bench: Run, row: dict[str, str], words: tuple[str, ...], said: str
) -> None:
    ended = bench("rerun", *(word.format(**row) for word in words))
    assert ended.status == 2
    assert said in ended.err
    assert ended.err.count("\n") == 1
