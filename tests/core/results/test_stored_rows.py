"""``bench audit`` compares what doing a trial again gives with what the store says."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

import bench_core
from bench_core.results.store import Store


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


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("", ""),
        ("UPDATE point SET feature_cost = -48", "the store says feature_cost -48"),
        ("UPDATE point SET cost_p95 = 9 WHERE split = 'valid'", "valid at "),
        ("UPDATE point SET cost_max = 9", "the store says cost_max 9"),
        ("UPDATE point SET metrics = json_set(metrics, '$.accuracy', 1.0)", "says accuracy 1.0"),
        ("DELETE FROM point WHERE split = 'test'", "the store has other points than the model"),
        ("UPDATE unit SET cost = metric", "another cost by query or row than the model"),
    ],
)
def test_what_the_store_says_must_be_what_the_trial_gives(
    made: Path, change: str, reason: str, tmp_path: Path
) -> None:
    store = tmp_path / "b.db"
    shutil.copy(made, store)
    shutil.copytree(made.with_name("b.fits"), tmp_path / "b.fits")
    with closing(sqlite3.connect(store)) as db:
        db.executescript(change)
    result = bench_core.audit(store=str(store), executor="inline")
    (ended,) = Store(store).ended()
    assert ended.audit == ("failed" if reason else "verified")
    assert reason in ended.error
    assert result.exit_status == bool(reason)
