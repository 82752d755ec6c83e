"""Fields of records are the columns of tables, of the frame, and what workers send."""

from __future__ import annotations

import io
import sqlite3
import zlib
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
from helpers.stores import filled, outcome

from bench_core.execution.messages import receive, result_of_wire, result_to_wire, send
from bench_core.results.differences import differences
from bench_core.results.records import MEASURED, OperatingPoint, Status, StoredValues, Trial
from bench_core.results.store import Store
from bench_core.results.tables import columns_of, row_of


def test_a_trial_comes_back_from_a_worker_and_from_a_store_as_it_was(tmp_path: Path) -> None:
    filled(tmp_path / "one.db", {"t": Status.OK})
    ended = outcome("t", Status.OK)
    pipe = io.BytesIO()
    send(pipe, *result_to_wire(ended.result))
    pipe.seek(0)
    sent = result_of_wire(ended.job, *receive(pipe))
    kept = Store(tmp_path / "one.db").trial("t")
    for found in (sent, kept):
        assert [*differences(ended.result, found)] == []
        assert found.points == ended.result.points
        assert found.sensors == ended.result.sensors
    assert {name: getattr(sent, name) for name in MEASURED if name != "values"} == {
        name: getattr(ended.result, name) for name in MEASURED if name != "values"
    }


def test_differences_name_the_number(tmp_path: Path) -> None:
    one, two = (outcome("t", Status.OK, metric=m).result for m in (0.5, 0.5 + 1e-10))
    found = [*differences(one, two)]
    assert [(where, what) for where, what, *_ in found] == [
        ('valid at {"step":0}', "mse"),
        ('test at {"step":0}', "mse"),
    ]
    assert [*differences(one, two, 1e-9)] == []
    other = outcome("t", Status.OK, value=2.0).result
    assert "metric by query or row" in {what for _, what, *_ in differences(one, other, 1e-9)}


def test_tables_have_the_fields_and_a_column_for_each_metric(tmp_path: Path) -> None:
    filled(tmp_path / "one.db", {"t": Status.OK})
    with closing(sqlite3.connect(tmp_path / "one.db")) as db:
        trial = pd.read_sql("SELECT * FROM trial", db)
        point = pd.read_sql("SELECT * FROM point", db)
    assert list(trial) == [f.name for f in fields(Trial) if f.name not in ("points", "values")]
    own = [f.name for f in fields(OperatingPoint) if f.name != "metrics"]
    assert list(point) == ["trial", *own, "mse"]
    assert point["mse"].tolist() == [0.5, 0.5]
    assert point["cap"].isna().all()


def test_values_are_compressed_float32() -> None:
    noise = np.random.default_rng(0).normal(size=(4, 300)).astype(np.float32)
    one = np.ones(300, dtype=np.float32)
    row = row_of(StoredValues("test", (0, 1, 2, 3), noise, noise.round(), one, one, one[None]))
    assert len(row["cost"]) < noise.nbytes / 2
    for name, values in (("metric", noise), ("cost", noise.round())):
        assert zlib.decompress(row[name]) == values.tobytes()
    assert {c.name for c in columns_of(StoredValues)} == {*row}
