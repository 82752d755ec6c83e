import json
import os
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from helpers import toys
from helpers.kit import refused

import bench_core
from bench_core._io.digests import canonical
from bench_core.errors import InputError
from bench_core.results import writer
from bench_core.results.store import Store
from bench_core.results.store_files import lock_path
from bench_core.results.writer import open_writer

FIRST = [
    *("run", "suite", "profile", "trial", "dataset", "fold", "fingerprint", "stand_in"),
    *("learner", "learner_version", "params", "seed", "point", "split", "status", "error"),
    *("ndcg@5", "precision@5", "feature_cost", "evaluation_cost", "cost"),
    *("cost_max", "cap", "over_cap", "excess", "features_used"),
]
OTHERS = [
    *("accounting", "unit", "cost_model", "surrogate", "audit", "marks", "fit_seconds"),
    *("predict_seconds", "peak_rss_mb", "threads", "workers", "cpu", "machine", "code"),
    *("versions", "created_at"),
]


SOURCE = Path(toys.__file__).read_text()
LINE = SOURCE[: SOURCE.index("deliberately")].count("\n") + 1
FAULT = f"RuntimeError: deliberately broken (toys.py:{LINE})"


def run(**options):
    given = {"data": "toy-rank", "learners": "toy-prefix", "executor": "inline", **options}
    return bench_core.run(plugins=("helpers.toys",), **given)


def test_the_frame_has_the_export_columns_in_order(home):
    frame = run().frame()
    assert list(frame.columns[: len(FIRST)]) == FIRST
    assert sorted(frame.columns[len(FIRST) :]) == sorted(OTHERS)
    assert set(frame["split"]) == {"valid", "test"}
    assert frame["stand_in"].all()
    assert [*map(json.loads, frame["point"][:2])] == [{"constant": 1}, {"features": 1}]
    constant = frame[frame["point"] == frame["point"][0]]
    assert len(constant) == 2 * frame["trial"].nunique()
    assert not constant[["cost", "cost_max", "features_used"]].any(axis=None)
    assert json.loads(frame["params"][0]) == {"seconds": 0.0, "tradeoff": 0.003}


TOY, ONE = "toy-prefix", "toy-prefix.tradeoff=0.5"


def test_caps_are_further_points_that_nothing_chooses_unless_asked(home):
    frame = run(caps=[3, 10], settings=ONE).frame()
    frame = frame[frame["learner"] == TOY]
    capped = frame.dropna(subset="cap")
    assert [json.loads(point)["cap"] for point in capped["point"]] == capped["cap"].tolist()
    assert set(capped["cap"]) == {3.0, 10.0}
    assert (capped["cost_max"] <= capped["cap"]).all()
    store = Store()
    (plain,) = store.values(learner=TOY)
    (under,) = store.values(learner=TOY, cap=10)
    inside = frame[frame["cap"].isna()].groupby("point")["cost_max"].max() <= 10
    assert under.settings[-1] == {"cap": 10.0}
    others = {json.dumps(setting, separators=(",", ":")) for setting in under.settings[:-1]}
    assert others
    assert others <= {*inside.index[inside]}
    assert all("cap" not in setting for setting in plain.settings)
    test = capped[(capped["split"] == "test") & (capped["cap"] == 10)]
    *_, mean = (under.cost @ under.rows / under.rows.sum()).tolist()
    assert mean == pytest.approx(test["cost"].item())
    (free,) = store.values(learner=TOY, cap=4)
    assert not free.cost.any()


@pytest.mark.parametrize("caps", [0, -1, "ten", [5, float("inf")], [None]])
def test_caps_that_are_no_costs_are_one_line(home, caps):
    refused("caps: |write numbers", run, caps=caps)


def test_a_failed_trial_is_one_row_without_point_and_split(home):
    result = run(learners=["toy-prefix", "toy-broken"])
    broken = result.frame().query("learner == 'toy-broken'")
    assert broken[["status", "point", "split", "error"]].values.tolist() == [
        ["failed", "", "", FAULT]
    ]
    assert result.exit_status == 1


def test_a_run_is_found_by_last_number_id_and_beginning(home):
    first, second = run(seeds=0).run, run(seeds=1).run
    store = Store()
    assert store.resolve() == second
    assert store.resolve("1") == first
    assert store.resolve(first) == first
    assert store.resolve(first[:-2]) == first
    assert [info.run for info in store.runs()] == [second, first]


def test_the_last_run_is_the_one_that_began_last_whatever_the_clock_said(home, monkeypatch):
    """The first clock is two hours ahead; a run that is resumed is the last again."""
    clock = ["14"]
    monkeypatch.setattr(writer, "now", lambda: f"2026-11-29T{clock[0]}:00:00.000000Z")
    first = run(seeds=0).run
    clock[0] = "12"
    second = run(seeds=1).run
    store = Store()
    begun = {info.run: info.created_at[11:13] for info in store.runs()}
    assert begun == {first: "14", second: "12"}
    assert (store.resolve(), store.info().run) == (second, second)
    assert run(seeds=0).run == first
    assert (store.resolve(), store.info("1").run) == (first, first)
    assert [info.number for info in store.runs()] == [1, 2]
    run(seeds=1)
    assert store.resolve() == second


def test_attempts_are_numbered_as_they_were_made_whatever_the_clock_said(home, monkeypatch):
    made = run(learners="toy-broken").run
    monkeypatch.setattr(writer, "now", lambda: "2001-01-01T00:00:00.000000Z")
    run(learners="toy-broken")
    years = {a.attempt: a.created_at[:4] for a in Store().attempts(made) if a.status == "failed"}
    assert years[2] == "2001"
    assert years[1] != "2001"


def test_an_ambiguous_or_unknown_run_is_one_line(home):
    run(seeds=0)
    run(seeds=1)
    refused("may be toy-rank-quick-|write more of it", Store().resolve, "toy-rank")
    refused("unknown run 'nope'", Store().resolve, "nope")


def test_a_run_tells_what_it_was(home):
    result = run(learners=["toy-prefix", "toy-broken"])
    info = Store().info(result.run)
    assert (info.state, info.planned, info.counts) == ("finished", 8, {"failed": 1, "ok": 7})
    assert info.metrics == ("ndcg@5", "precision@5")
    assert info.higher_is_better == {"ndcg@5": True, "precision@5": True}
    assert info.stand_in
    assert info.datasets[0].rows.keys() == {"train", "valid", "test"}
    assert info.request["learners"] == ["toy-prefix", "toy-broken"]
    assert info.notes == (
        "no saving will be measured: no learner here is a reference; add gbrt to the learners, or "
        "name one of them with reference",
        "toy-rank: made of random numbers",
        "toy-rank: fewer than 500 validation queries: the choice of points, and savings, are "
        "uncertain",
    )


def test_values_stand_in_the_same_order_for_all_learners(home):
    run(learners=["toy-prefix", "toy-stacked"])
    values = [*Store().values()]
    assert {v.trial.learner for v in values} == {"toy-prefix", "toy-stacked"}
    assert len({v.metric.shape[1] for v in values}) == 1
    frame = Store().frame()
    for v in values:
        rows = frame[
            (frame["learner"] == v.trial.learner)
            & (frame["split"] == "test")
            & (frame["params"].map(json.loads) == dict(v.trial.params))
        ].set_index("point")
        assert len(v.settings) == len(v.points) == len(v.metric) == len(v.cost) > 0
        for i, setting in enumerate(v.settings):
            row = rows.loc[canonical(dict(setting))]
            mean = np.average(v.metric[i], weights=v.weights)
            assert mean == pytest.approx(row["ndcg@5"], rel=1e-6)
            cost = np.average(v.cost[i], weights=v.rows)
            assert cost == pytest.approx(row["cost"], rel=1e-6)


def test_values_are_kept_for_all_points_of_the_validation_frontier(home):
    run()
    frame = Store().frame().query("split == 'valid'")
    for v in Store().values():
        rows = frame[frame["params"].map(json.loads) == dict(v.trial.params)]
        cost, quality = rows["cost"].to_numpy(), rows["ndcg@5"].to_numpy()
        better = (cost[:, None] >= cost) & (quality[:, None] < quality)
        cheaper = (cost[:, None] > cost) & (quality[:, None] <= quality)
        alone = ~np.any(better | cheaper, axis=1)
        found = {canonical(dict(s)) for s in v.settings}
        assert found == set(rows["point"][alone])


def test_a_trial_serves_every_run_that_asks_for_it(home):
    run(settings="toy-prefix.tradeoff=0.5")
    result = run(settings="toy-prefix.tradeoff=[0.5, 0.7]")
    assert (result.reused, result.counts) == (1, {"ok": 2})
    assert len(Store().frame(result.run)) == 2 * len(Store().frame("1"))


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"SQLite format 3\0" + bytes(84), "a database of another program"),
        (b"SQLite format 3\0" + bytes(44) + b"\0\0\0\x02\0\0\0\0bnch" + bytes(27), "not a results"),
    ],
)
def test_a_file_that_is_no_store_is_refused_and_left_as_it_was(home, content, line):
    path = home / "mine.db"
    path.write_bytes(content)
    refused(line, run, store=path)
    refused(line, Store, path)
    assert path.read_bytes() == content
    assert sorted(p.name for p in home.iterdir()) == ["data", "mine.db"]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("user_version = 12", "older version (schema 12)|run again|budget-bench 0.1.0"),
        ("user_version = 14", "newer version (schema 14, this one knows 13)|update"),
        ("user_version = 16777219", "a newer version"),
        ("application_id = 0", "a database of another program"),
    ],
)
def test_another_schema_is_refused_in_one_line_and_left_as_it_was(home, change, line):
    result = run()
    with closing(sqlite3.connect(result.store)) as db:
        db.execute(f"PRAGMA {change}")
        db.commit()
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = result.store.read_bytes()
    for use in (run, Store):
        refused(line, use)
    assert result.store.read_bytes() == before


def test_damaged_bytes_are_one_line_when_the_store_is_opened(home):
    result = run()
    with closing(sqlite3.connect(result.store)) as db:
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole, rows, draws = result.store.read_bytes(), result.frame(), random.Random(0)
    page = int.from_bytes(whole[16:18], "big")
    where = [(draws.randrange(100, len(whole)), 1 << draws.randrange(8)) for _ in range(25)]
    where += [(start, 128) for start in range(page, len(whole), page)]  # kinds of pages
    names = b"cost_max", b"dataset AS", b"learner TEXT", b"position", b"memory"
    where += [(at, 3) for name in names if (at := whole.find(name, 0, 3 * page)) > 0]
    refusals = []
    for at, bits in where:
        path = home / f"{at}.db"
        path.write_bytes(whole[:at] + bytes([whole[at] ^ bits]) + whole[at + 1 :])
        try:
            assert len(Store(path).frame("1")) == len(rows)
        except InputError as error:
            refusals.append(str(error).removeprefix(f"{path}: the store is damaged ("))
    assert len(refusals) >= 12
    assert not any("\n" in line or line.startswith("/") for line in refusals)


def test_points_whose_trial_has_a_damaged_key_are_a_fault_when_the_store_is_opened(home):
    """SQLite checks the order of keys only: another last digit does not change that."""
    result = run()
    with closing(sqlite3.connect(result.store)) as db, db:
        (key,) = db.execute("SELECT max(trial) FROM point").fetchone()
        first = "WHERE trial = ? AND split = 'valid' AND number = 0"
        db.execute(f"UPDATE point SET trial = ? {first}", [f"{key[:-1]}z", key])
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    refused("damaged (points of a trial that it does not have)", Store, result.store)


def test_a_device_is_refused_and_never_replaced(home):
    (home / "x.db").symlink_to(os.devnull)
    refused("is a folder or a device", run, store="x.db")
    assert sorted(p.name for p in home.iterdir()) == ["data", "x.db"]


def test_a_run_that_finds_another_at_work_says_so_before_it_prepares_anything(home):
    seen = []
    with open_writer(home / "results" / "bench.db"):
        refused("another run is writing", run, on_event=seen.append)
    assert seen == []
    assert run().counts == {"ok": 7}


def test_what_a_killed_run_left_of_a_deleted_store_stays_out_of_the_next(home):
    path = run(seeds=0).store
    log = path.with_name("bench.db-wal")
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA wal_autocheckpoint = 0")
        database.execute("UPDATE run SET state = 'running'")
        database.commit()
        left = log.read_bytes()
    path.unlink()
    log.write_bytes(left)
    second = run(seeds=1).run
    assert [info.run for info in Store().runs()] == [second]


def test_all_that_is_read_while_held_is_of_one_moment(home):
    path = run().store
    store = Store(path)
    with store.held():
        before = store.frame()
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("UPDATE trial SET record = json_set(record, '$.status', 'timeout')")
            other.execute("DELETE FROM point")
        assert store.frame().equals(before)
    assert set(store.frame()["status"]) == {"timeout"}


def test_readers_do_not_disturb_the_writer(home):
    seen = []

    def look(event):
        if event.kind == "finish":
            seen.append(Store().info().state)

    run(on_event=look)
    assert set(seen) == {"running"}
    assert Store().info().state == "finished"


def test_a_store_can_be_read_in_a_folder_that_cannot_be_written(home):
    path = run().store
    rows = len(Store(path).frame())
    for extra in path.parent.glob("bench.db-*"):
        extra.unlink()
    lock_path(path).unlink()
    path.parent.chmod(0o500)
    try:
        assert len(Store(path).frame()) == rows
    finally:
        path.parent.chmod(0o700)


def test_everything_is_read_back_in_the_order_of_the_plan(home):
    result = run(learners=["toy-stacked", "toy-prefix"])
    order = result.frame()["learner"].drop_duplicates().tolist()
    assert order == ["toy-stacked", "toy-prefix"]
