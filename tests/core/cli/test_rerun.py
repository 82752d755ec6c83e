"""``bench rerun``: one trial again, from nothing."""

from __future__ import annotations

import csv
import io
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from helpers.commands import QUICK, Run

INLINE = (*QUICK, "--costs", "costs.csv", "--learners", "toy", "--seeds", "0,1")


def exported(bench: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(bench("export").out)))


@pytest.fixture
def row(bench: Run, material: Path) -> dict[str, str]:
    """A row of the second repeat."""
    assert bench("run", *INLINE).status == 0
    return exported(bench)[-1]


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
    assert (again.status, again.out.split(": ", 1)[1]) == (0, "same bits (6 rows)\n")
    assert "seed 1" in again.out
    assert Path("results/bench.db").read_bytes() == before


def test_what_differs_is_named_with_the_ingredient(bench: Run, row: dict[str, str]) -> None:
    change("UPDATE point SET total_cost = total_cost + 1e-12 WHERE split = 'test'")
    change("UPDATE trial SET versions = 'python 3.9', code = 'old'")
    again = bench("rerun", row["trial"][:6], "-p", "mine", "--no-progress")
    assert again.status == 1
    assert ": 3 of its numbers differ (6 rows)" in again.out
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
