"""Merging stores: nothing is lost, in whatever order."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from helpers.stores import filled, outcome

from bench_core import InputError
from bench_core.results import writer
from bench_core.results.merge import merge
from bench_core.results.records import Status, Verdict
from bench_core.results.store import Store
from bench_core.results.writer import open_writer

TABLES = ("run", "run_trial", "trial", "point", "unit_values", "sensor", "fit", "attempt")


def content(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All that a store holds but its own numbers, as sets of rows."""
    found = {}
    with closing(sqlite3.connect(path)) as db:
        for table in TABLES:
            cursor = db.execute(f"SELECT * FROM {table}")
            kept = [i for i, column in enumerate(cursor.description) if column[0] != "number"]
            found[table] = sorted(repr([row[i] for i in kept]) for row in cursor)
    return found


def merged(folder: Path, name: str, *stores: Path) -> Path:
    merge(folder / name, stores)
    return folder / name


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Stores that share trials: finished, failed, tried at other times, audited otherwise."""
    folder = tmp_path_factory.mktemp("pool")
    made = []
    statuses = (Status.OK, Status.FAILED, Status.TIMEOUT, Status.OK)
    for number in range(6):
        path = folder / f"{number}.db"
        trials = {
            f"t{(number + k) % 5}": statuses[(number * k + k) % 4] for k in range(number % 3 + 1)
        }
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(writer, "now", lambda n=number: f"2026-01-0{1 + n % 4}T00:00:00Z")
            filled(path, trials, run=f"r{number % 2}", listed=["t0", "t1", "t2", "t3", "t4"])
            if number % 2:
                with open_writer(path) as w:
                    w.audit(next(iter(trials)), Verdict("verified"))
        made.append(path)
    return made


def test_the_order_and_repeats_change_neither_what_is_finished_nor_the_runs(
    pool: list[Path], tmp_path: Path
) -> None:
    straight = merged(tmp_path, "straight.db", *pool)
    once = content(straight)
    assert content(merged(tmp_path, "straight.db", *pool)) == once
    mixed = merged(tmp_path, "mixed.db", *pool[::-1], pool[2])
    assert statuses(mixed) == statuses(straight)
    for table in ("run_trial", "fit", "sensor", "point", "attempt"):
        assert content(mixed)[table] == once[table]


def test_the_merged_store_holds_what_each_had(pool: list[Path], tmp_path: Path) -> None:
    whole = content(merged(tmp_path, "all.db", *pool))
    for path in pool:
        own = content(path)
        for table in ("attempt", "sensor", "point", "unit_values", "run_trial"):
            assert {*own[table]} <= {*whole[table]}
    ok = {key for path in pool for key, status in statuses(path).items() if status == "ok"}
    assert ok
    assert {key for key, status in statuses(tmp_path / "all.db").items() if status == "ok"} == ok


@pytest.mark.parametrize(
    ("own", "other", "stays"),
    [
        ("sampled", "verified", "sampled"),
        ("verified", "sampled", "sampled"),
        ("declared", "sampled", "declared"),
        ("verified", "failed", "failed"),
        ("failed", "verified", "failed"),
        ("verified", "verified", "verified"),
    ],
)
def test_of_two_audits_the_weaker_stays(tmp_path: Path, own: str, other: str, stays: str) -> None:
    for name, word in (("own", own), ("other", other)):
        filled(tmp_path / f"{name}.db", {"t": Status.OK})
        with open_writer(tmp_path / f"{name}.db") as w:
            w.audit("t", Verdict(word, f"by {name}"))
    store = Store(merged(tmp_path, "own.db", tmp_path / "other.db"))
    assert store.trial("t").audit == stays
    assert store.trial("t").error == f"by {'own' if stays == own else 'other'}"


def statuses(path: Path) -> dict[str, str]:
    with closing(sqlite3.connect(path)) as db:
        return dict(db.execute("SELECT key, status FROM trial"))


def test_what_failed_gives_way_to_what_is_finished(tmp_path: Path) -> None:
    filled(tmp_path / "failed.db", {"t": Status.CRASHED})
    filled(tmp_path / "done.db", {"t": Status.OK})
    store = Store(merged(tmp_path, "all.db", tmp_path / "failed.db", tmp_path / "done.db"))
    assert store.info().counts == {"ok": 1}
    assert [a.status for a in store.attempts() if a.kind == "score"] == ["crashed", "ok"]
    assert [*store.values()]


def test_a_run_is_finished_when_all_its_trials_are_there(tmp_path: Path) -> None:
    for key in ("a", "b"):
        filled(tmp_path / f"{key}.db", {key: Status.OK}, listed=["a", "b"])
    one = merged(tmp_path, "all.db", tmp_path / "b.db")
    assert (Store(one).info().state, Store(one).info().planned) == ("interrupted", 2)
    merge(one, [tmp_path / "a.db"])
    assert Store(one).info().state == "finished"
    assert [spec.key for spec in Store(one).specs()] == ["a", "b"]


@pytest.mark.parametrize("what", ["metric", "value"])
def test_another_result_under_one_key_is_refused_in_one_line_and_nothing_is_taken(
    tmp_path: Path, what: str
) -> None:
    filled(tmp_path / "one.db", {"t": Status.OK})
    filled(tmp_path / "two.db", {"new": Status.OK})
    with open_writer(tmp_path / "two.db") as w:
        w.trial(outcome("t", Status.OK, **{what: 0.25}))
    target = merged(tmp_path, "all.db", tmp_path / "one.db")
    before = content(target)
    with pytest.raises(InputError) as refused:
        merge(target, [tmp_path / "two.db"])
    (line,) = str(refused.value).splitlines()
    assert "two.db" in line
    assert "of one on cars (trial t) differs" in line
    assert content(target) == before


def test_models_come_with_their_rows(tmp_path: Path) -> None:
    filled(tmp_path / "one.db", {"t": Status.OK}, weight=1.0)
    merged(tmp_path, "all.db", tmp_path / "one.db")
    (there,) = (tmp_path / "one.fits").glob("*/*.npz")
    here = tmp_path / "all.fits" / there.relative_to(tmp_path / "one.fits")
    assert here.read_bytes() == there.read_bytes()


def test_numbers_that_differ_by_rounding_are_no_conflict_and_the_targets_stay(
    tmp_path: Path,
) -> None:
    filled(tmp_path / "one.db", {"t": Status.OK})
    shutil.copy(tmp_path / "one.db", tmp_path / "two.db")
    with closing(sqlite3.connect(tmp_path / "two.db")) as db, db:
        db.execute("UPDATE point SET mse = mse + 1e-12")
        db.execute("UPDATE trial SET created_at = '1970'")
    merge(tmp_path / "one.db", [tmp_path / "two.db"])
    assert set(Store(tmp_path / "one.db").frame()["mse"]) == {0.5}


def test_stores_of_other_metrics_are_joined(tmp_path: Path) -> None:
    filled(tmp_path / "one.db", {"t": Status.OK})
    filled(tmp_path / "two.db", {"u": Status.OK}, run="s")
    with closing(sqlite3.connect(tmp_path / "two.db")) as db, db:
        db.execute('ALTER TABLE point RENAME COLUMN mse TO "ndcg@5"')
        db.execute("""UPDATE run SET metrics = '["ndcg@5"]'""")
    store = Store(merged(tmp_path, "all.db", tmp_path / "one.db", tmp_path / "two.db"))
    assert store.frame("r")["mse"].tolist() == store.frame("s")["ndcg@5"].tolist() == [0.5, 0.5]


def test_a_source_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no results there"):
        merge(tmp_path / "all.db", [tmp_path / "none.db"])
    assert not [*tmp_path.iterdir()]
