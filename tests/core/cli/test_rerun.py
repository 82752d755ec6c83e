"""``bench rerun``: one trial again, from nothing."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bench_core.results.rows import checksum
from helpers.commands import QUICK, Run

from bench_core.arrays import FloatArray

INLINE = (*QUICK, "--costs", "costs.csv", "--learners", "toy", "--seeds", "0,1")


def exported(bench: Run) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(bench("export").out)))


@pytest.fixture
def row(bench: Run, material: Path) -> dict[str, str]:
    """A row of the second repeat."""
    assert bench("run", *INLINE).status == 0
    return exported(bench)[-1]


def written(table: str, row: dict[str, Any], **values: object) -> None:
    """Put values into a row as the store's writer would, with its checksum."""
    new = {**row, **values}
    new["checksum"] = checksum(new)
    names = ", ".join(new)
    with closing(sqlite3.connect("results/bench.db")) as db, db:
        sql = f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({', '.join('?' * len(new))})"
        db.execute(sql, [*new.values()])


def stored(table: str, where: str = "true") -> list[dict[str, Any]]:
    with closing(sqlite3.connect("results/bench.db")) as db:
        db.row_factory = sqlite3.Row
        return [dict(row) for row in db.execute(f"SELECT * FROM {table} WHERE {where}")]


def changed(column: str, change: Callable[[FloatArray], FloatArray]) -> None:
    """Change a column of all test points."""
    for row in stored("point", "split = 'test'"):
        names = json.loads(row["columns"])
        cells = np.frombuffer(row["cells"], "<f8").reshape(-1, len(names)).copy()
        cells[:, names.index(column)] = change(cells[:, names.index(column)])
        written("point", row, cells=cells.tobytes())


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
    changed("total_cost", lambda costs: costs + 1e-12)
    for trial in stored("trial"):
        spec = json.loads(trial["spec"]) | {"installed": "python 3.9", "code": "old"}
        written("trial", trial, spec=json.dumps(spec))
    again = bench("rerun", row["trial"][:6], "-p", "mine", "--no-progress")
    assert again.status == 1
    assert ": 3 of its numbers differ (6 rows)" in again.out
    assert 'test {"columns":1}: total_cost 10.000000000001 then, 10.0 now' in again.out
    assert f"code: old then, {row['code']} now" in again.out
    assert "versions: python 3.9 then, python 3." in again.out
    assert "settings" not in again.out


def test_where_nothing_recorded_differs_the_learner_is_blamed(
    bench: Run, row: dict[str, str]
) -> None:
    changed("auc", lambda values: np.full_like(values, 0.123))
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
