"""Stores that were changed, cut, copied or linked."""

from __future__ import annotations

import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import toys  # noqa: F401 - the plugin
from helpers.stores import filled

import bench_core
from bench_core import InputError
from bench_core._io.files import atomic_file
from bench_core.results.records import Status
from bench_core.results.removal import plan_removal
from bench_core.results.store import Store
from bench_core.results.store_files import states_folder
from bench_core.results.writer import open_writer

ONE = "toy-prefix.tradeoff=[0.1, 0.5]"


def run(**options: Any) -> Any:
    given = {"data": "toy-rank", "learners": ["toy-prefix", "toy-broken"], **options}
    return bench_core.run(plugins=("helpers.toys",), executor="inline", settings=ONE, **given)


WRITES = """
import sys
from pathlib import Path
from bench_core.errors import InputError
from bench_core.results.writer import open_writer
for name in sys.argv[1:]:
    try:
        with open_writer(Path(name)):
            print("written")
    except InputError as error:
        print(error)
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A finished run, in one file."""
    home = tmp_path_factory.mktemp("sound")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(home)
        patch.setenv("BENCH_CACHE", str(home / "cache"))
        yield run(store=home / "sound.db").store


@pytest.fixture
def copy(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copyfile(sound, tmp_path / "copy.db"))


def everything(path: Path) -> list[Any]:
    """All that a store holds."""
    store = Store(path)
    frame = store.frame()
    values = [v for split in ("valid", "test") for v in store.values(split=split)]
    arrays = [getattr(v, name).tobytes() for v in values for name in ("metric", "cost", "bought")]
    lists = [store.runs(), store.sensors(), store.ended(), store.attempts(), store.specs()]
    found = [frame.to_csv(), arrays, [v.settings for v in values], *lists, store.durations()]
    return [*found, store.finished(), store.contents()]


COLUMNS = [
    ("run", "about"),
    ("run", "created_at"),
    ("trial", "spec"),
    ("trial", "status"),
    ("trial", "audit"),
    ("trial", "fit_seconds"),
    ("trial", "machine"),
    ("point", "points"),
    ("point", "cells"),
    ("unit", "points"),
    ("unit", "metric"),
    ("unit", "cost"),
    ("unit", "bought"),
    ("sensors", "names"),
    ("sensors", "price"),
    ("attempt", "error"),
    ("attempt", "seconds"),
    ("run_trial", "trial"),
]


def other(value: Any) -> Any:
    """Another value of the same type; of bytes and texts one character is another."""
    if isinstance(value, bytes):
        at = len(value) // 2
        return value[:at] + bytes([value[at] ^ 1]) + value[at + 1 :]
    if isinstance(value, str):
        return f"{value[:-1]}{'0' if value[-1:] != '0' else '1'}"
    return 1.0 if value is None else value + 1


@pytest.mark.parametrize(("table", "column"), COLUMNS)
def test_a_value_that_was_changed_is_one_line(copy: Path, table: str, column: str) -> None:
    with closing(sqlite3.connect(copy)) as db, db:
        db.create_function("other", 1, other)
        db.execute(f"UPDATE {table} SET {column} = other({column})")
    with pytest.raises(InputError, match=r"copy\.db: the store is damaged \(.*; put a copy"):
        everything(copy)


@pytest.mark.parametrize(
    ("table", "column", "ask"),
    [
        ("trial", "key", Store.finished),
        ("fit", "seconds", Store.finished),
        ("trial", "spec", lambda store: plan_removal(store, ["last"])),
        ("run_trial", "trial", lambda store: plan_removal(store, ["last"])),
        ("attempt", "key", lambda store: plan_removal(store, ["last"])),
    ],
)
def test_what_is_reused_or_removed_is_checked_too(
    copy: Path, table: str, column: str, ask: Callable[[Store], Any]
) -> None:
    with closing(sqlite3.connect(copy)) as db, db:
        db.execute("PRAGMA foreign_keys = OFF")
        db.create_function("other", 1, other)
        db.execute(f"UPDATE {table} SET {column} = other({column})")
    with pytest.raises(InputError, match=r"copy\.db: the store is damaged \(.*; put a copy"):
        ask(Store(copy))


@pytest.mark.parametrize("table", ["point", "run_trial", "sensors"])
def test_rows_that_are_gone_are_one_line(copy: Path, table: str) -> None:
    with closing(sqlite3.connect(copy)) as db, db:
        key = "position" if table == "run_trial" else "rowid"
        db.execute(f"DELETE FROM {table} WHERE {key} = (SELECT min({key}) FROM {table})")
    with pytest.raises(InputError, match="the store is damaged"):
        everything(copy)


def of_a_board(path: Path) -> Any:
    """What a board reads of a run: its values on test are of the trials that have some on valid."""
    store = Store(path)
    store.frame()
    return [*store.values_of(store.valued("last", "valid", ""), "test")]


@pytest.mark.parametrize("read", [everything, of_a_board])
@pytest.mark.parametrize(("table", "entry"), [("trial", ""), ("unit", "valid"), ("unit", "test")])
def test_a_row_that_an_index_has_lost_is_one_line(
    copy: Path, table: str, entry: str, read: Callable[[Path], Any]
) -> None:
    query = "SELECT key FROM trial WHERE status = 'ok'"
    with closing(sqlite3.connect(copy)) as db:
        lost = (db.execute(query).fetchone()[0] + entry).encode()
        root = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        page = db.execute(root, [f"sqlite_autoindex_{table}_1"]).fetchone()[0]
        size = db.execute("PRAGMA page_size").fetchone()[0]
    content = bytearray(copy.read_bytes())
    at = content.index(lost, (page - 1) * size, page * size) + len(lost) - 1
    content[at] ^= 1
    copy.write_bytes(content)
    with closing(sqlite3.connect(copy)) as db:
        found = db.execute(f"PRAGMA integrity_check({table})").fetchall()
        assert "missing from index" in found[0][0]
    said = rf"a row of table {table} is (missing from its index|gone \(split test\))"
    with pytest.raises(InputError, match=rf"copy\.db: the store is damaged \({said}\); put a copy"):
        read(copy)


def bytes_changed(content: bytearray, draw: random.Random) -> None:
    for _ in range(draw.choice((1, 3, 30))):
        content[draw.randrange(100, len(content))] = draw.randrange(256)


def page_zeroed(content: bytearray, draw: random.Random) -> None:
    at = 4096 * draw.randrange(1, len(content) // 4096)
    content[at : at + 4096] = bytes(4096)


def cut(content: bytearray, draw: random.Random) -> None:
    del content[draw.randrange(100, len(content)) :]


def damaged(sound: Path, copy: Path, spoil: Callable[..., None], times: int) -> int:
    """How many of the damaged files are refused; all others hold what the sound one does."""
    before, draw, refused = everything(sound), random.Random(spoil.__name__), 0
    for _ in range(times):
        content = bytearray(sound.read_bytes())
        spoil(content, draw)
        copy.write_bytes(content)
        try:
            assert everything(copy) == before
        except InputError as error:
            says = re.fullmatch(r".*copy\.db: the store is damaged \(.*; put a copy .*", str(error))
            refused += says is not None
            assert says
    return refused


@pytest.mark.parametrize("spoil", [bytes_changed, page_zeroed, cut])
def test_a_damaged_file_is_one_line_or_reads_as_before(
    sound: Path, copy: Path, spoil: Callable[..., None]
) -> None:
    assert damaged(sound, copy, spoil, 4) > 0


@pytest.mark.slow
@pytest.mark.parametrize("spoil", [bytes_changed, page_zeroed, cut])
def test_many_damaged_files(sound: Path, copy: Path, spoil: Callable[..., None]) -> None:
    assert damaged(sound, copy, spoil, 300) > 150  # the rest were in bytes that nothing uses


def test_a_copy_of_the_one_file_has_every_finished_trial_at_any_time(home: Path) -> None:
    seen = []

    def look(event: Any) -> None:
        if event.kind == "finish":
            shutil.copyfile("results/bench.db", "copy.db")
            there, copied = Store().info(), Store("copy.db")
            assert copied.info().counts == there.counts
            assert copied.frame().equals(Store().frame())
            seen.append(sum(there.counts.values()))

    run(on_event=look)
    assert seen[0] == 0
    assert seen[-1] == 3


def test_a_link_to_a_store_has_its_lock_and_its_models(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench_core.results import writer

    monkeypatch.setattr(writer, "_LOCK_SECONDS", 0.1)
    store = run().store
    Path("link.db").symlink_to(store)
    with open_writer(store), pytest.raises(InputError, match="another run is writing"):
        run(store="link.db")
    assert states_folder(Path("link.db")) == states_folder(store.resolve())
    assert run(store="link.db").reused == 2
    os.link(store, "hard.db")
    with pytest.raises(InputError, match="a second name"):
        run(store="hard.db")


def test_a_store_in_a_mounted_folder_has_its_lock_and_one_mounted_by_itself_is_refused(
    tmp_path: Path,
) -> None:
    store, name = tmp_path / "there" / "bench.db", tmp_path / "two words.db"
    (tmp_path / "other").mkdir()
    name.touch()
    with open_writer(store):
        pass
    (tmp_path / "write.py").write_text(WRITES)
    lines = f"""mount --bind there other && mount --bind there/bench.db 'two words.db' || exit 77
        {sys.executable} write.py 'two words.db' other/bench.db"""
    with open_writer(store):
        ended = subprocess.run(
            ["unshare", "--mount", "--map-root-user", "sh", "-c", lines],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
    if ended.returncode == 77 or "unshare" in ended.stderr:
        pytest.skip("nothing may be mounted here")
    alone, other = ended.stdout.splitlines()
    assert "two words.db: the file is mounted by itself; mount its folder" in alone
    assert "other/bench.db: another run is writing" in other


def test_a_full_disk_is_one_line_and_what_had_ended_is_kept(tmp_path: Path) -> None:
    path, keys = tmp_path / "bench.db", [f"t{k}" for k in range(30)]
    connect = sqlite3.connect

    def limited(*args: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*args, **options)
        connection.execute("PRAGMA max_page_count = 24")
        return connection

    said = "cannot write to the store .*full.*; make room and run again: finished trials are kept"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sqlite3, "connect", limited)
        with pytest.raises(InputError, match=said):
            filled(path, dict.fromkeys(keys, Status.OK))
    kept = sum(Store(path).info().counts.values())
    assert 0 < kept < 30
    assert Store(path).frame()["trial"].nunique() == kept
    filled(path, dict.fromkeys(keys, Status.OK))
    assert Store(path).info().counts == {"ok": 30}


def test_what_dead_processes_left_of_models_goes_when_a_run_begins(home: Path) -> None:
    folder = states_folder(run().store.resolve()) / "0a"
    folder.mkdir(exist_ok=True)
    stray = folder / ".0abc.npz.999999999-0.new"
    stray.touch()
    with atomic_file(folder / "0abd.npz") as busy:
        busy.touch()
        run()
        assert busy.exists()
    assert not stray.exists()


def test_a_name_that_is_no_utf_8_is_kept_readably(home: Path) -> None:
    name = os.fsdecode(b"t\xff.csv")
    rows = np.random.default_rng(0).normal(size=(60, 2)).round(3)
    lines = [f"{a},{b},{int(a > b)}" for a, b in rows]
    Path(name).write_text("\n".join(["=a,b,label", *lines]) + "\n")
    result = bench_core.run(data=name, learners="constant", executor="inline")
    assert result.counts["ok"] > 0
    assert "t\\udcff" in Store().info().datasets[0]["name"]
