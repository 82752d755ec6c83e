"""Bad input through the whole command: status 2, one line that says what, where and what to do,
and everything in the folder as it was. The same files unspoilt end with status 0."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from helpers.bad_input_cases import (
    BASES,
    FILES,
    OPTIONS,
    SOUND,
    STORE,
    Case,
    Files,
)
from helpers.commands import Ended, Run

from bench_core.cli import main
from bench_core.results.writer import open_writer


def write(folder: Path, files: Files) -> None:
    """Write files; None takes one away."""
    for name, content in files.items():
        path = folder / name
        if content is None:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def contents(folder: Path) -> dict[str, bytes | None]:
    """Everything below a folder but the cache of prepared data, byte by byte."""
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None
        for p in sorted(folder.rglob("*"))
        if p.relative_to(folder).parts[0] not in ("cache", "__pycache__")
        and not p.name.endswith(("-shm", "-wal"))  # SQLite's own, empty once nobody writes
    }


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sound files, a store with one run, and their prepared data."""
    folder = tmp_path_factory.mktemp("sound")
    write(folder, SOUND)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("BENCH_CACHE", str(folder / "cache"))
        with pytest.raises(SystemExit) as end:
            main(["run", *BASES["svm"], "--quiet", "--store", str(STORE)])
    assert end.value.code == 0
    return folder


@pytest.fixture
def place(kept: Path, elsewhere: Path) -> Path:
    """A copy of that folder, in which the command is called."""
    shutil.copytree(kept, elsewhere, dirs_exist_ok=True)
    sys.modules.pop("fine", None)
    return elsewhere


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """However slow the machine, nothing but the fault is said."""
    monkeypatch.setattr("bench_core.terminal.progress.MOMENT", 600.0)


def refused(ended: Ended, *says: str) -> None:
    """Status 2, nothing on stdout and one line on stderr that says all this."""
    assert (ended.status, ended.out) == (2, ""), ended
    assert len(ended.err.splitlines()) == 1, ended.err
    assert ended.err.startswith("error: ")
    missing = [words for words in says if words not in ended.err]
    assert not missing, f"{missing} not in {ended.err}"


@pytest.mark.parametrize("case", [*FILES, *OPTIONS], ids=str)
def test_is_refused_in_one_line_and_leaves_the_store_as_it_was(
    case: Case, bench: Run, place: Path
) -> None:
    write(place, case.spoilt)
    before = contents(place)
    refused(bench(*case.command(STORE)), *case.says)
    if case.base:
        refused(bench(*case.command(Path("new/bench.db"))), *case.says)
    assert contents(place) == before


@pytest.mark.parametrize("base", BASES)
def test_the_same_files_unspoilt_run(base: str, bench: Run, place: Path) -> None:
    ended = bench("run", *BASES[base], "--store", "new/bench.db")
    assert ended.status == 0, ended.err
    assert (place / "new/bench.db").is_file()


@pytest.mark.parametrize("flag", ["--learners", "--data", "--metric", "--seeds", "-p"])
def test_an_option_that_names_nothing_is_refused(flag: str, bench: Run, place: Path) -> None:
    before = contents(place)
    refused(bench("run", *BASES["table"], flag, ""), flag, "leave the option out")
    assert contents(place) == before


def altered(statement: str) -> Callable[[Path], object]:
    """A change of the database, which is made if it is not there."""

    def alter(store: Path) -> None:
        with closing(sqlite3.connect(store)) as db, db:
            db.execute("PRAGMA journal_mode = DELETE")
            db.execute(statement)

    return alter


def a_folder(store: Path) -> None:
    store.unlink()
    store.mkdir()


def of_another_program(store: Path) -> None:
    store.unlink()
    altered("CREATE TABLE mails (text TEXT)")(store)


STORES: dict[str, tuple[Callable[[Path], object], str]] = {
    "no database": (
        lambda store: store.write_text("run,learner,ndcg\n" * 20),
        "not a results store; name another",
    ),
    "of another program": (of_another_program, "another program; name another"),
    "of a newer version": (
        altered("PRAGMA user_version = 99"),
        "newer version (schema 99, this one knows",
    ),
    "a folder": (a_folder, "is a folder"),
    "cut short": (
        lambda store: store.write_bytes(store.read_bytes()[:5000]),
        "name another with --store",
    ),
}
VERBS = {
    "run": ("run", *BASES["svm"]),
    "plan": ("plan", *BASES["svm"]),
    "report": ("report",),
    "best": ("best", "--budget", "3"),
    "export": ("export",),
    "audit": ("audit", "--executor", "inline"),
    "list": ("list", "runs"),
}


@pytest.mark.parametrize("name", VERBS)
@pytest.mark.parametrize("kind", STORES)
def test_a_store_that_is_none_is_refused_and_left_alone(
    kind: str, name: str, bench: Run, place: Path
) -> None:
    spoil, says = STORES[kind]
    spoil(place / STORE)
    before = contents(place)
    refused(bench(*VERBS[name], "--store", str(STORE)), str(STORE), says)
    assert contents(place) == before


@pytest.mark.parametrize("name", ["report", "best", "export", "audit", "list"])
def test_without_a_store_the_remedy_is_a_run(name: str, bench: Run, place: Path) -> None:
    before = contents(place)
    refused(bench(*VERBS[name], "--store", "new/bench.db"), "new/bench.db", "bench run")
    assert contents(place) == before


@pytest.mark.parametrize("store", ["rows.svm/bench.db", "/dev/null/bench.db"])
def test_a_store_below_a_file_is_refused(store: str, bench: Run, place: Path) -> None:
    before = contents(place)
    refused(bench("run", *BASES["svm"], "--store", store), store, "--store")
    assert contents(place) == before


@pytest.mark.parametrize("store", ["closed/bench.db", "closed/deeper/bench.db"])
def test_a_store_in_a_closed_folder_is_refused(store: str, bench: Run, place: Path) -> None:
    (place / "closed").mkdir(mode=0o500)
    if os.access(place / "closed", os.W_OK):
        pytest.skip("who may write everywhere, as root may, meets no closed folder")
    refused(bench("run", *BASES["svm"], "--store", store), store, "name another with --store")
    assert list((place / "closed").iterdir()) == []


def test_a_store_that_another_run_is_writing_is_refused(bench: Run, place: Path) -> None:
    with open_writer(STORE):
        before = contents(place)
        ended = bench("run", *BASES["svm"], "--fresh", "--quiet", "--store", str(STORE))
        refused(ended, str(STORE), "another run is writing", "wait for it")
        assert contents(place) == before
