"""A store that was cut, overwritten or changed is one line."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from helpers.stores import filled

from bench_core import InputError
from bench_core.results.merge import merge
from bench_core.results.records import Status
from bench_core.results.store import Store
from bench_core.results.writer import open_writer


@pytest.fixture
def path(tmp_path: Path) -> Path:
    filled(tmp_path / "bench.db", {f"t{k}": Status.OK for k in range(40)})
    return tmp_path / "bench.db"


def everything(path: Path) -> None:
    store = Store(path)
    store.frame()
    [*store.values()]
    store.attempts()
    store.runs()


def refusal(use: Callable[[Path], object], path: Path) -> str:
    """The one error that using a store may raise, if it does."""
    try:
        use(path)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("seed", range(6))
def test_bytes_that_were_cut_or_overwritten_are_one_line_or_change_nothing(
    path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    content = bytearray(path.read_bytes())
    start = rng.randrange(100, len(content) - 4096)
    if seed % 2:
        del content[start:]
    else:
        content[start : start + 4096] = rng.randbytes(4096)
    path.write_bytes(content)
    for use in (everything, lambda path: merge(path.with_name("all.db"), [path])):
        line = refusal(use, path)
        assert not line or ("bench.db: " in line and "\n" not in line)


def test_what_sqlite_finds_is_said(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    path.write_bytes(content)
    line = r"bench\.db: the store is damaged \(.+\); put a copy in its place, or name another"
    with pytest.raises(InputError, match=line):
        Store(path).frame()
    with pytest.raises(InputError, match=line), open_writer(path) as writer:
        writer.end("r", "finished")


def test_values_that_were_changed_are_one_line(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE unit_values SET metric = substr(metric, 1, 5)")
    with pytest.raises(InputError, match="the store is damaged"):
        [*Store(path).values()]
