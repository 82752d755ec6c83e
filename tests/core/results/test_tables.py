"""Records as tables and as what workers send, and files of either that were damaged."""

from __future__ import annotations

import pickle
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import example
from helpers.stores import FIT, TRIAL, Weight, filled, outcome

from bench_core.errors import InputError
from bench_core.results.merge import merge
from bench_core.results.records import (
    INTERNAL,
    MEASURED,
    Job,
    Status,
    StoredValues,
    Trial,
    differences,
)
from bench_core.results.store import Store
from bench_core.results.store_files import load_model, save_model
from bench_core.results.tables import POINT_NUMBERS, packed, unpacked
from bench_core.results.writer import open_writer


def test_a_trial_comes_back_from_a_worker_and_from_a_store_as_it_was(tmp_path: Path) -> None:
    filled(tmp_path / "one.db", {"t": Status.OK})
    ended = outcome("t", Status.OK)
    sent = pickle.loads(pickle.dumps(ended)).result
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
    assert {f.name for f in fields(Trial)} - INTERNAL < {*trial}
    assert list(point) == ["trial", "number", "point", "split", *POINT_NUMBERS, "mse"]
    assert point["mse"].tolist() == [0.5, 0.5]
    assert point["cap"].isna().all()


def test_values_that_float32_cannot_hold_are_kept_as_they_are() -> None:
    huge, one = np.array([[1.5e60, -2.5e48]]), np.ones((1, 2), dtype=np.float32)
    values = StoredValues("test", (0,), huge, one, one[0], one[0], one[:, :1])
    again = unpacked("test", packed(values))
    assert again.metric.tolist() == huge.tolist()
    assert {array.dtype for name, array in again.arrays.items() if name != "metric"} == {
        np.dtype(np.float32)
    }
    assert again.bought.tolist() == [[1.0]]


def test_values_are_compressed_float32() -> None:
    noise = np.random.default_rng(0).normal(size=(4, 300)).astype(np.float32)
    one = np.ones(300, dtype=np.float32)
    steps = noise.reshape(4, 3, 100)
    values = StoredValues("test", (0, 1, 2, 3), noise, noise.round(), one, one, noise[:, :1], steps)
    block = packed(values)
    assert len(block) < 2.5 * noise.nbytes
    again = unpacked("test", block)
    assert (again.split, again.points) == ("test", (0, 1, 2, 3))
    assert again.arrays.keys() == values.arrays.keys()
    for name, array in values.arrays.items():
        assert again.arrays[name].dtype == np.float32
        assert np.array_equal(again.arrays[name], array)


@pytest.mark.parametrize("how", ["cut", "changed", "other", "empty"])
def test_a_damaged_file_is_one_line(how: str, tmp_path: Path) -> None:
    path = tmp_path / "ab" / "model.npz"
    save_model(path, Weight(2.5))
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    changed = bytearray(content)
    changed[content.index(b"values")] ^= 0xFF
    damaged = {"cut": content[:middle], "changed": changed, "other": b"no archive", "empty": b""}
    path.write_bytes(damaged[how])
    with pytest.raises(InputError, match=r"not a model's state .*; run again with fresh=True"):
        load_model(path)


def test_a_job_is_known_by_its_kind_and_key_and_names_its_learner() -> None:
    trial = replace(TRIAL, learner="two")
    jobs = [Job("fit", FIT), Job("score", trial), Job("audit", trial)]
    assert [job.key for job in jobs] == ["fit:f", "score:t", "audit:t"]
    assert [job.learner for job in jobs] == ["one", "two", "two"]


def test_a_run_is_on_a_stand_in_where_one_of_its_data_sets_is() -> None:
    sim, forest = example.info().datasets
    assert (sim.stand_in, forest.stand_in) == (True, False)
    assert example.info(datasets=(sim, forest)).stand_in
    assert example.info(datasets=(forest, sim)).stand_in
    assert not example.info(datasets=(forest,)).stand_in


@pytest.fixture
def store_path(tmp_path: Path) -> Path:
    filled(tmp_path / "bench.db", {f"t{k}": Status.OK for k in range(40)})
    return tmp_path / "bench.db"


def read_everything(store_path: Path) -> None:
    store = Store(store_path)
    store.frame()
    [*store.values()]
    store.attempts()
    store.runs()


def refusal(use: Callable[[Path], object], store_path: Path) -> str:
    """The one error that using a store may raise, if it does."""
    try:
        use(store_path)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("seed", range(6))
def test_bytes_that_were_cut_or_overwritten_are_one_line_or_change_nothing(
    store_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    content = bytearray(store_path.read_bytes())
    start = rng.randrange(100, len(content) - 4096)
    if seed % 2:
        del content[start:]
    else:
        content[start : start + 4096] = rng.randbytes(4096)
    store_path.write_bytes(content)
    for use in (
        read_everything,
        lambda store_path: merge(store_path.with_name("all.db"), [store_path]),
    ):
        line = refusal(use, store_path)
        assert not line or ("bench.db: " in line and "\n" not in line)


def test_what_sqlite_finds_is_said(store_path: Path) -> None:
    content = bytearray(store_path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    store_path.write_bytes(content)
    line = r"bench\.db: the store is damaged \(.+\); put a copy in its place, or name another"
    with pytest.raises(InputError, match=line):
        Store(store_path).frame()
    with pytest.raises(InputError, match=line), open_writer(store_path) as writer:
        writer.end("r", "finished")


@pytest.mark.parametrize("largest", [0, 1 << 30])
def test_a_changed_byte_that_loses_rows_is_found_on_opening(
    store_path: Path, largest: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bench_core.results.store._CHECKED", largest)
    content = store_path.read_bytes()
    assert content.count(b"t7test") > 0  # trial and split, the beginning of a row of `point`
    store_path.write_bytes(content.replace(b"t7test", b"t!test", 1))
    with pytest.raises(InputError, match="the store is damaged"):
        Store(store_path)


def test_values_that_were_changed_are_one_line(store_path: Path) -> None:
    with closing(sqlite3.connect(store_path)) as db, db:
        db.execute("UPDATE trial SET test = substr(test, 1, 5)")
    with pytest.raises(InputError, match="the store is damaged"):
        [*Store(store_path).values()]
