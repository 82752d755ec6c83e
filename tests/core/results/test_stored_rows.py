"""``bench audit`` compares what doing a trial again gives with what the store says."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bench_core
from bench_core.results.rows import select
from bench_core.results.store import Store
from bench_core.results.writer import put_row
from bench_core.splits import SPLITS

Change = Callable[[str, dict[str, Any]], dict[str, Any]]
"""Makes another row of one of a table."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    home = tmp_path_factory.mktemp("stored")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("BENCH_CACHE", str(home / "cache"))
        (home / "rows.csv").write_text("a,y\n" + "".join(f"{i},{i % 7 > 3}\n" for i in range(200)))
        bench_core.run(
            data="rows.csv",
            learners="constant",
            metrics=["accuracy"],
            executor="inline",
            store="b.db",
        )
        yield home / "b.db"


@pytest.fixture
def copied(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made.with_name("b.fits"), tmp_path / "b.fits")
    return Path(shutil.copy(made, tmp_path / "b.db"))


def cells(column: str, value: float, *splits: str) -> Change:
    """Another value at all points of these splits."""

    def change(table: str, row: dict[str, Any]) -> dict[str, Any]:
        if table != "point" or row["split"] not in (splits or SPLITS):
            return row
        columns = json.loads(row["columns"])
        kept = np.frombuffer(row["cells"], "<f8").reshape(-1, len(columns)).copy()
        kept[:, columns.index(column)] = value
        return row | {"cells": kept.tobytes()}

    return change


def points(split: str) -> Change:
    """No point on this split."""

    def change(table: str, row: dict[str, Any]) -> dict[str, Any]:
        gone = table == "point" and row["split"] == split
        return row | {"points": "[]", "cells": b""} if gone else row

    return change


def costs(table: str, row: dict[str, Any]) -> dict[str, Any]:
    return row | {"cost": row["metric"]} if table == "unit" else row


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda table, row: row, ""),
        (cells("feature_cost", -48), "the store says feature_cost -48"),
        (cells("cost_p95", 9, "valid"), "valid at "),
        (cells("cost_max", 9), "the store says cost_max 9"),
        (cells("accuracy", 1.0), "says accuracy 1.0"),
        (points("test"), "the store has other points than the model"),
        (costs, "another cost by query or row than the model"),
    ],
)
def test_what_the_store_says_must_be_what_the_trial_gives(
    copied: Path, change: Change, reason: str
) -> None:
    with closing(sqlite3.connect(copied)) as db, db:
        db.row_factory = sqlite3.Row
        for table in ("point", "unit"):
            for row in select(db, table, "true"):
                put_row(db, table, **change(table, row))  # with its checksum
    result = bench_core.audit(store=str(copied), executor="inline")
    (ended,) = Store(copied).ended()
    assert ended.audit == ("failed" if reason else "verified")
    assert reason in ended.error
    assert result.exit_status == bool(reason)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE point SET cells = zeroblob(length(cells))",
        "DELETE FROM point WHERE split = 'test'",
        "UPDATE unit SET cost = metric",
    ],
)
def test_a_row_without_its_checksum_is_damage(copied: Path, change: str) -> None:
    with closing(sqlite3.connect(copied)) as db:
        db.executescript(change)
    with pytest.raises(bench_core.InputError, match=r"b\.db: the store is damaged"):
        bench_core.audit(store=str(copied), executor="inline")
