"""Means over few blocks of units, which a trial keeps beside its values."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.stores import ABOUT, FIT, TRIAL, ended_well, point_row, put_fit, put_trial

from bench_core.errors import InputError
from bench_core.results import rows
from bench_core.results.blocks import FEW, block_sums
from bench_core.results.budgets import Budget
from bench_core.results.records import Sensors, StoredValues
from bench_core.results.rows import select
from bench_core.results.store import Store
from bench_core.results.trial_values import ValuedTrial
from bench_core.results.writer import open_writer, put_row

UNITS = {"few": 100, "many": 300}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Trials of few and of many units, the second of their three points under a cap."""
    path = tmp_path_factory.mktemp("blocks") / "b.db"
    rng = np.random.default_rng(0)
    with open_writer(path) as writer:
        writer.begin("r", ABOUT, [*UNITS])
        put_fit(writer, "r", FIT)
        for key, units in UNITS.items():
            points = [{"step": 0}, {"cap": 1.0}, {"step": 1}]
            rows = [
                point_row(k, point, split, {"mse": 0.5}, (1.0,) * 5, 1)
                for split in ("valid", "test")
                for k, point in enumerate(points)
            ]
            values = [values_of(rng, split, units) for split in ("valid", "test")]
            ended = ended_well(replace(TRIAL, key=key), rows, values, Sensors(("a",), (1.0,)))
            put_trial(writer, "r", ended)
        writer.end("r", "finished")
    return Store(path)


def values_of(rng: np.random.Generator, split: str, units: int) -> StoredValues:
    metric, cost = rng.random((2, 3, units)).astype(np.float32)
    weights, rows = rng.integers(1, 4, (2, units)).astype(np.float32)
    return StoredValues(split, (0, 1, 2), metric, cost, weights, rows, metric[:, :1])


@pytest.mark.parametrize("within", [None, Budget(1.0, "cap")])
def test_means_over_blocks_are_kept_for_the_points_of_a_budget(
    store: Store, within: Budget | None
) -> None:
    trials = store.valued("r", "valid", "", within=within)
    for split in ("valid", "test"):
        whole = {one.trial: one for one in store.values_of(trials, split)}
        found = {one.trial: one for one in store.values_of(trials, split, FEW)}
        assert found.keys() == whole.keys() == UNITS.keys()
        assert np.array_equal(found["few"].metric, whole["few"].metric)
        few, many = found["many"], whole["many"]
        assert few.points == many.points == ((0, 2) if within is None else (1,))
        assert few.metric.shape == few.cost.shape == (len(few.points), FEW)
        sums = block_sums(many.metric, many.weights, FEW)
        np.testing.assert_allclose(few.metric * few.weights, sums, rtol=1e-6)
        np.testing.assert_allclose((few.cost @ few.rows), many.cost @ many.rows, rtol=1e-5)
        assert few.rows.sum() == many.rows.sum()


def test_means_that_were_changed_are_damage(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "b.db"
    path.write_bytes(store.path.read_bytes())
    copy = Store(path)
    trials = copy.valued("r", "valid", "")
    copy.of_trial("many")
    with closing(sqlite3.connect(path)) as db, db:
        db.row_factory = sqlite3.Row
        (row,) = select(db, "block", "split = 'test'")
        cells = np.frombuffer(row["cells"], "<f4") + 1
        put_row(db, "block", **row | {"cells": cells.tobytes()})  # with its checksum
    with pytest.raises(InputError, match="is not of the values"):
        copy.of_trial("many")
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE block SET cells = zeroblob(length(cells))")
    with pytest.raises(InputError, match="row of table block"):
        list(copy.values_of(trials, "test", FEW))


@pytest.mark.parametrize("compact", [True, False])
def test_what_a_held_store_read_for_a_frame_is_not_read_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, compact: bool
) -> None:
    apart = [told(one) for one in store.valued("r", "valid", "cars")]
    assert [one["trial"] for one in apart] == [*UNITS]
    with store.held():
        store.frame("r", compact=compact)
        monkeypatch.setattr(rows, "trials_with_points", None)  # cannot be called
        assert [told(one) for one in store.valued("r", "valid", "cars")] == apart
        assert store.valued("r", "valid", "other") == []
    monkeypatch.undo()
    assert [told(one) for one in store.valued("r", "valid", "cars")] == apart


def told(one: ValuedTrial) -> dict[str, Any]:
    known = {field.name: getattr(one, field.name) for field in fields(one)}
    return known | {name: known[name].tolist() for name in ("tails", "within")}
