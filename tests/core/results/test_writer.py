"""What is written into a store is read back; merged stores lose nothing."""

import os
import shutil
import sqlite3
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers.kit import refused
from helpers.stores import ABOUT, FIT, TRIAL, filled, outcome, point_row

from bench_core.results import writer
from bench_core.results.merge import merge
from bench_core.results.records import (
    FitResult,
    Job,
    Outcome,
    Sensors,
    Status,
    StoredValues,
    Trial,
    Verdict,
)
from bench_core.results.store import Store
from bench_core.results.writer import check_writable, open_writer


@pytest.fixture
def path(tmp_path):
    return tmp_path / "bench.db"


def point(index, split="test"):
    return point_row(index, {"step": index}, split, {"mse": 0.5}, (1.0, 2.0, 3.0, 4.0), 5)


def values(metric, points=(0,)):
    metric = np.asarray(metric, dtype=np.float32)
    ones = np.ones(metric.shape[1], dtype=np.float32)
    bought = np.full((len(metric), 3), 0.25, dtype=np.float32)
    return StoredValues("test", points, metric, metric + 1, ones, ones, bought)


def result(points=1, peak=100.0, **changes):
    path = tuple(point(i, split) for split in ("valid", "test") for i in range(points))
    about = {"points": path, "values": (values([[7.0]]),), "audit": "sampled"}
    return Trial.of(TRIAL, predict_seconds=0.25, peak_rss_mb=peak, **about | changes)


def scored(made, status=Status.OK, error="", seconds=1.0, spec=TRIAL):
    return Outcome(Job("score", spec), status, error, result=made, seconds=seconds)


def fitted(seconds, peak=50.0):
    return Outcome(Job("fit", FIT), Status.OK, result=FitResult(seconds, peak), seconds=99.0)


def ended(path):
    return [(t.title, t.status, t.error, t.audit) for t in Store(path).trials()]


def begin(store, *trials):
    store.begin("r", ABOUT, list(trials or "t"))


def test_a_trial_has_the_seconds_of_its_fit_and_the_higher_peak_of_both(path):
    with open_writer(path) as store:
        begin(store)
        for fit_peak, peak in ((50.0, 100.0), (100.0, 50.0)):
            store.fit(fitted(12.5, fit_peak))
            store.trial(scored(result(peak=peak)))
            row = Store(path).frame().to_dict("records")[0]
            assert (row["fit_seconds"], row["peak_rss_mb"]) == (12.5, 100.0)
            assert row["predict_seconds"] == 0.25


def test_what_ended_well_is_finished_and_what_failed_is_not(path):
    other, broken = replace(TRIAL, key="u"), replace(FIT, key="g")
    with open_writer(path) as store:
        store.fit(fitted(1.0))
        store.fit(Outcome(Job("fit", broken), Status.FAILED))
        store.trial(scored(result()))
        store.trial(scored(None, Status.TIMEOUT, spec=other))
    assert Store(path).finished() == ({"t"}, {"f"})


def test_a_trial_done_anew_leaves_nothing_of_what_was_there(path):
    with open_writer(path) as store:
        begin(store)
        store.trial(scored(result(points=3)))
        store.trial(scored(result(points=2)))
        assert Store(path).frame()["point"].tolist() == ['{"step":0}', '{"step":1}'] * 2
        assert len([*Store(path).values()]) == 1
        store.trial(scored(None, Status.FAILED, "RuntimeError: worse"))
        assert [*Store(path).values()] == []
    assert Store(path).frame()[["status", "error"]].values.tolist() == [
        ["failed", "RuntimeError: worse"]
    ]


def test_a_trial_that_cannot_be_written_whole_leaves_the_one_that_was_there(path):
    with open_writer(path) as store:
        begin(store)
        store.trial(scored(result(points=3)))
        bad = result(points=1, values=(values([[1.0]], points=object()),))
        with pytest.raises(TypeError):
            store.trial(scored(bad))
    assert len(Store(path).frame()) == 6
    assert len([*Store(path).values()]) == 1


def test_values_of_several_points_and_units_are_read_back_as_they_were(path):
    metric = [[0.5, 1.5, 2.5], [3.0, 4.0, 5.0]]
    with open_writer(path) as store:
        begin(store)
        sensors = Sensors(("a", "b, c", "d"), (1.0, 2.5, 0.1))
        kept = (values(metric, (1, 3)),)
        made = result(points=4, values=kept, sensors=sensors)
        store.trial(scored(made))
    (bought,) = Store(path).values(capped=True)
    assert bought.settings == ({"step": 1}, {"step": 3})
    assert bought.bought.tolist() == [[0.25] * 3] * 2
    assert bought.trial.sensors == sensors
    (found,) = Store(path).values()
    assert Store(path).trial(TRIAL.key).sensors == sensors
    assert found.bought.tolist() == [[0.25] * 3] * 2
    assert found.points == (1, 3)
    assert found.settings == ({"step": 1}, {"step": 3})
    assert found.metric.tolist() == metric
    assert found.cost.tolist() == [[1.5, 2.5, 3.5], [4.0, 5.0, 6.0]]
    assert found.weights.tolist() == found.rows.tolist() == [1.0, 1.0, 1.0]


def test_how_trials_ended_says_why_they_failed_or_were_refused(path):
    failed, refused = replace(TRIAL, key="a", title="a"), replace(TRIAL, key="b", title="b")
    with open_writer(path) as store:
        begin(store, "a", "b", "t")
        store.trial(scored(None, Status.FAILED, "ValueError: no", spec=failed))
        store.trial(scored(result(audit="failed", error="it peeks"), spec=refused))
        store.trial(scored(result()))
        assert ended(path) == [
            ("a", "failed", "ValueError: no", ""),
            ("b", "ok", "it peeks", "failed"),
            ("one on cars", "ok", "", "sampled"),
        ]
        verified, peeks = Verdict("verified"), Verdict("failed", "it peeks too")
        for given, kept in ((verified, verified), (peeks, peeks), (verified, peeks)):
            assert store.audit("t", given) == kept  # a verdict gets no better
        assert ended(path)[2] == ("one on cars", "ok", "it peeks too", "failed")
    assert [spec.key for spec in Store(path).specs()] == ["b", "t"]


def test_durations_are_those_of_what_ended_well(path):
    taken = [(1.0, 10.0), (2.0, 30.0), (9.0, 20.0)]
    elsewhere = replace(TRIAL, key="else", dataset="boats", fit="never done")
    with open_writer(path) as store:
        for i, (fit, score) in enumerate(taken):
            store.fit(fitted(fit))
            store.trial(scored(result(), seconds=score, spec=replace(TRIAL, key=f"{i}")))
        failed = replace(TRIAL, key="failed")
        store.trial(scored(None, Status.FAILED, seconds=1000.0, spec=failed))
        for status, seconds in ((Status.OK, 4.5), (Status.TIMEOUT, 600.0)):
            store.attempt("r", replace(fitted(1.0), status=status, seconds=seconds))
        store.trial(scored(result(), seconds=5.0, spec=elsewhere))
    found = Store(path).durations()
    assert found == [
        *(("cars", "one", 4.5, score) for _, score in taken),  # with imports
        ("boats", "one", 0.0, 5.0),
    ]


def test_every_attempt_is_logged_in_order_with_its_number_and_text(path):
    broken = Outcome(Job("fit", FIT), Status.FAILED, "E: x", "trace", None, 1.5, "output")
    with open_writer(path) as store:
        begin(store)
        for outcome in (broken, fitted(1.0), scored(result())):
            store.attempt("r", outcome)
        store.trial(scored(result()))
        store.begin("later", ABOUT, ["t"])
    for run in ("r", "later"):  # which uses the same trial
        first, second, third = Store(path).attempts(run)
        assert (first.kind, first.title, first.status) == ("fit", "fit of one", "failed")
        assert (first.error, first.trace, first.output) == ("E: x", "trace", "output")
        assert (first.seconds, first.attempt) == (1.5, 1)
        assert (second.kind, second.status, second.attempt) == ("fit", "ok", 2)
        assert (third.kind, third.title, third.attempt) == ("score", "one on cars", 1)


def test_a_run_taken_up_again_has_the_trials_it_is_given_now(path):
    with open_writer(path) as store:
        begin(store, "t", "u", "v")
        begin(store, "u", "t")
    (info,) = Store(path).runs()
    assert (info.number, info.planned) == (1, 2)


def test_a_run_that_was_killed_is_interrupted_even_while_another_is_at_work(path):
    with suppress(KeyboardInterrupt), open_writer(path) as store:
        begin(store)
        raise KeyboardInterrupt
    with open_writer(path) as store:
        store.begin("next", ABOUT, [])
        states = {info.run: info.state for info in Store(path).runs()}
    assert states == {"r": "interrupted", "next": "running"}


def test_a_store_is_refused_where_the_first_folder_above_it_cannot_be_written(
    tmp_path, monkeypatch
):
    locked = tmp_path / "locked"
    locked.mkdir()
    monkeypatch.setattr(os, "access", lambda place, mode: Path(place) != locked)
    refused("cannot write there (|/locked)", check_writable, locked / "not" / "yet" / "bench.db")
    check_writable(tmp_path / "not" / "yet" / "bench.db")
    assert list(tmp_path.iterdir()) == [locked]


TABLES = ("run", "run_trial", "trial", "point", "sensor", "fit", "attempt")


def content(path):
    """All that a store holds but its own numbers, as sets of rows."""
    found = {}
    with closing(sqlite3.connect(path)) as db:
        for table in TABLES:
            cursor = db.execute(f"SELECT * FROM {table}")
            kept = [i for i, column in enumerate(cursor.description) if column[0] != "number"]
            found[table] = sorted(repr([row[i] for i in kept]) for row in cursor)
    return found


def merged(folder, name, *stores):
    merge(folder / name, stores)
    return folder / name


@pytest.fixture(scope="module")
def pool(tmp_path_factory):
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


def test_the_order_and_repeats_change_neither_what_is_finished_nor_the_runs(pool, tmp_path):
    straight = merged(tmp_path, "straight.db", *pool)
    once = content(straight)
    assert content(merged(tmp_path, "straight.db", *pool)) == once
    mixed = merged(tmp_path, "mixed.db", *pool[::-1], pool[2])
    assert statuses(mixed) == statuses(straight)
    for table in ("run_trial", "fit", "sensor", "point", "attempt"):
        assert content(mixed)[table] == once[table]


def test_after_a_merge_the_last_run_is_the_one_that_came_or_began_last(tmp_path, monkeypatch):
    """The clock of the other store is ahead, and its runs began in the order b, a."""
    clock = ["2026-11-29T12:00:00Z"]
    monkeypatch.setattr(writer, "now", lambda: clock[0])
    filled(tmp_path / "own.db", {"t": Status.OK}, run="own")
    clock[0] = "2026-11-29T16:00:00Z"
    filled(tmp_path / "other.db", {"u": Status.OK}, run="b")
    clock[0] = "2026-11-29T14:00:00Z"
    filled(tmp_path / "other.db", {"u": Status.OK}, run="a")
    merged(tmp_path, "own.db", tmp_path / "other.db")
    assert [info.run for info in Store(tmp_path / "own.db").runs()] == ["a", "b", "own"]
    clock[0] = "2026-11-29T12:30:00Z"
    filled(tmp_path / "own.db", {"v": Status.OK}, run="next")
    merged(tmp_path, "own.db", tmp_path / "other.db")  # a repeat changes nothing
    assert [info.run for info in Store(tmp_path / "own.db").runs()] == ["next", "a", "b", "own"]


def test_the_merged_store_holds_what_each_had(pool, tmp_path):
    whole = content(merged(tmp_path, "all.db", *pool))
    for path in pool:
        own = content(path)
        for table in ("attempt", "sensor", "point", "run_trial"):
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
def test_of_two_audits_the_weaker_stays(tmp_path, own, other, stays):
    for name, word in (("own", own), ("other", other)):
        filled(tmp_path / f"{name}.db", {"t": Status.OK})
        with open_writer(tmp_path / f"{name}.db") as w:
            w.audit("t", Verdict(word, f"by {name}"))
    store = Store(merged(tmp_path, "own.db", tmp_path / "other.db"))
    assert store.trial("t").audit == stays
    assert store.trial("t").error == f"by {'own' if stays == own else 'other'}"


def statuses(path):
    with closing(sqlite3.connect(path)) as db:
        return dict(db.execute("SELECT key, status FROM trial"))


def test_what_failed_gives_way_to_what_is_finished(tmp_path):
    filled(tmp_path / "failed.db", {"t": Status.CRASHED})
    filled(tmp_path / "done.db", {"t": Status.OK})
    store = Store(merged(tmp_path, "all.db", tmp_path / "failed.db", tmp_path / "done.db"))
    assert store.info().counts == {"ok": 1}
    assert [a.status for a in store.attempts() if a.kind == "score"] == ["crashed", "ok"]
    assert [*store.values()]


def test_a_run_is_finished_when_all_its_trials_are_there(tmp_path):
    for key in ("a", "b"):
        filled(tmp_path / f"{key}.db", {key: Status.OK}, listed=["a", "b"])
    one = merged(tmp_path, "all.db", tmp_path / "b.db")
    assert (Store(one).info().state, Store(one).info().planned) == ("interrupted", 2)
    merge(one, [tmp_path / "a.db"])
    assert Store(one).info().state == "finished"
    assert [spec.key for spec in Store(one).specs()] == ["a", "b"]


@pytest.mark.parametrize("what", ["metric", "value"])
def test_another_result_under_one_key_is_refused_in_one_line_and_nothing_is_taken(tmp_path, what):
    filled(tmp_path / "one.db", {"t": Status.OK})
    filled(tmp_path / "two.db", {"new": Status.OK})
    with open_writer(tmp_path / "two.db") as w:
        w.trial(outcome("t", Status.OK, **{what: 0.25}))
    target = merged(tmp_path, "all.db", tmp_path / "one.db")
    before = content(target)
    refused("two.db|of one on cars (trial t) differs", merge, target, [tmp_path / "two.db"])
    assert content(target) == before


def test_models_come_with_their_rows(tmp_path):
    filled(tmp_path / "one.db", {"t": Status.OK}, weight=1.0)
    merged(tmp_path, "all.db", tmp_path / "one.db")
    (there,) = (tmp_path / "one.fits").glob("*/*.npz")
    here = tmp_path / "all.fits" / there.relative_to(tmp_path / "one.fits")
    assert here.read_bytes() == there.read_bytes()


def test_numbers_that_differ_by_rounding_are_no_conflict_and_the_targets_stay(tmp_path):
    filled(tmp_path / "one.db", {"t": Status.OK})
    shutil.copy(tmp_path / "one.db", tmp_path / "two.db")
    with closing(sqlite3.connect(tmp_path / "two.db")) as db, db:
        db.execute("UPDATE point SET mse = mse + 1e-12")
        db.execute("UPDATE trial SET record = json_set(record, '$.created_at', '1970')")
    merge(tmp_path / "one.db", [tmp_path / "two.db"])
    assert set(Store(tmp_path / "one.db").frame()["mse"]) == {0.5}


def test_stores_of_other_metrics_are_joined(tmp_path):
    filled(tmp_path / "one.db", {"t": Status.OK})
    filled(tmp_path / "two.db", {"u": Status.OK}, run="s")
    with closing(sqlite3.connect(tmp_path / "two.db")) as db, db:
        db.execute('ALTER TABLE point RENAME COLUMN mse TO "ndcg@5"')
        db.execute("""UPDATE run SET about = replace(about, '"mse"', '"ndcg@5"')""")
    store = Store(merged(tmp_path, "all.db", tmp_path / "one.db", tmp_path / "two.db"))
    assert store.frame("r")["mse"].tolist() == store.frame("s")["ndcg@5"].tolist() == [0.5, 0.5]


def test_a_source_that_is_none_is_refused(tmp_path):
    refused("no results there", merge, tmp_path / "all.db", [tmp_path / "none.db"])
    assert not [*tmp_path.iterdir()]
