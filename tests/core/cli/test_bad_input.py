"""Bad input through the whole command: status 2, one line that says what, where and what to do,
and everything in the folder as it was. The same files unspoilt end with status 0."""

import gzip
import os
import shutil
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench_core.cli import main
from bench_core.results.writer import open_writer

STORE = Path("results/bench.db")
SMALL = ("--set", "gbrt.trees=2", "--set", "gbrt.min_rows=2", "--executor", "inline")
LEARN = ("-l", "gbrt", *SMALL)


def svm(rows, ids=False):
    """Queries of four rows, three features; the first two decide the grade."""
    lines = []
    for i in range(rows):
        a, b, c = (i * 7) % 11 - 5, (i * 5) % 7 - 3, (i * 3) % 5 + 1
        grade = (a + b > -4) + (a + b > 2)
        qid = f" qid:{i // 4 + 1}" if ids else ""
        lines.append(f"{grade}{qid} 1:{a} 2:{b} 3:{c}")
    return "\n".join(lines) + "\n"


def table(rows=60):
    """Three columns, a binary label and the split."""
    lines = ["a,b,c,label,split"]
    for i in range(rows):
        a, b, c = (i * 7) % 11 - 5, (i * 5) % 7 - 3, (i * 3) % 5 - 2
        split = ("train", "train", "train", "valid", "test")[i // 4 % 5]
        lines.append(f"{a},{b},{c},{int(a + b > 0)},{split}")
    return "\n".join(lines) + "\n"


SUITE = """title = "Mine"
datasets = ["breast-cancer"]
metrics = ["accuracy", "auc"]
reference = "gbrt"
seeds = [0]

[profiles.quick]
size = "quick"

[learners.gbrt]
trees = 2
"""

PLUGIN = "import bench_core\n\n\n@bench_core.hookimpl\ndef bench_learners():\n    return []\n"
PACKED = gzip.compress(svm(80, ids=True).encode(), mtime=0)
Files = Mapping[str, str | bytes | None]
SOUND = {
    "rows.svm": svm(80),
    "rows.svm.query": "4\n" * 20,
    "test.svm": svm(24),
    "test.svm.query": "4\n" * 6,
    "ids.svm": svm(80, ids=True),
    "packed.svm.gz": PACKED,
    "costs.csv": "index,cost\n1,10\n2,5\n3,1\n",
    "table.csv": table(),
    "names.csv": "name,cost\na,10\nb,5\nc,1\n",
    "names.json": '{"costs": {"a": 10,\n "b": 5,\n "c": 1},\n "split": 0.5}\n',
    "mine.toml": SUITE,
    "fine.py": PLUGIN,
}
BASES = {
    "svm": ("--data", "rows.svm", "--test", "test.svm", "--costs", "costs.csv", *LEARN),
    "ids": ("--data", "ids.svm", "--costs", "costs.csv", *LEARN),
    "packed": ("--data", "packed.svm.gz", "--costs", "costs.csv", *LEARN),
    "table": ("--data", "table.csv", "--costs", "names.csv", *LEARN),
    "json": ("--data", "table.csv", "--costs", "names.json", *LEARN),
    "suite": ("--suite", "mine.toml", "--executor", "inline"),
    "plugin": ("--data", "table.csv", "-p", "fine", *LEARN),
}


@dataclass(frozen=True)
class Case:
    """One thing wrong: with some of the files (None: absent), or with the words of a command."""

    name: str
    says: tuple[str, ...]  # file or option, place, remedy
    spoilt: Files = field(default_factory=dict)
    base: str = ""
    words: tuple[str, ...] = ()

    def __str__(self):
        return self.name

    def command(self, store):
        """The whole command line."""
        if not self.base:
            return *self.words, "--store", str(store)
        return "run", *BASES[self.base], *self.words, "--store", str(store)


def swap(file, old, new):
    """The sound file with the last occurrence of something replaced."""
    text = str(SOUND[file])
    before, found, after = text.rpartition(old)
    assert found, f"{old!r} is not in {file}"
    return {file: before + new + after}


def line(number, file, new):
    """The sound file with one line replaced."""
    lines = str(SOUND[file]).splitlines()
    lines[number - 1] = new
    return {file: "\n".join(lines) + "\n"}


def spoilt(name, base, files, *says):
    return Case(name, says, files, base)


def option(name, base, words, *says):
    return Case(name, says, {}, base, tuple(words.split()))


def verb(name, words, *says):
    return Case(name, says, {}, "", tuple(words.split()))


def one_class_in_training():
    rows = [row.split(",") for row in table().splitlines()]
    return "".join(
        ",".join([*cells[:3], "1" if cells[4] == "train" else cells[3], cells[4]]) + "\n"
        for cells in rows
    )


# fmt: off
FILES = [
    # SVMlight
    spoilt(
        "split query", "ids", line(9, "ids.svm", "1 qid:1 1:3"), "ids.svm, line 9",
        "query 1 is split", "put its lines together",
    ),
    spoilt(
        "truncated gz", "packed", {"packed.svm.gz": PACKED[:-20]}, "packed.svm.gz",
        "truncated or damaged", "get the file again",
    ),
    spoilt("empty file", "svm", {"rows.svm": ""}, "rows.svm", "empty", "name another"),
    # side-cars
    spoilt(
        "group sizes too small", "svm", {"rows.svm.query": "4\n" * 19}, "rows.svm.query",
        "add up to 76", "80 rows", "take the side-car",
    ),
    spoilt(
        "no queries in the test file", "svm", {"test.svm.query": None}, "test.svm",
        "ranking needs queries", "test.svm.query",
    ),
    # costs
    spoilt(
        "more features than costs", "svm", line(2, "test.svm", "1 1:3 4:1"),
        "costs.csv: feature '4' has no cost", "add a line",
    ),
    spoilt(
        "unknown name", "table", swap("names.csv", "c,1", "z,1"),
        "names.csv: feature 'c' has no cost", "not used: 'z'",
    ),
    spoilt(
        "broken JSON", "json", swap("names.json", '"b": 5,', '"b": 5'),
        "names.json, line 3: not JSON", "correct it",
    ),
    # tables
    spoilt(
        "a column of free text", "table",
        {
            "table.csv": "\n".join(
                f"{line},{f'note {k}' if k else 'd'}" for k, line in enumerate(table().split())
            )
        },
        "table.csv, column 'd' holds 60 different texts", "--drop",
    ),
    spoilt(
        "one class in training", "table", {"table.csv": one_class_in_training()}, "table.csv",
        "all labels", "train", "1",
    ),
    # suites and plugins
    spoilt(
        "unknown learner in a suite", "suite", swap("mine.toml", "learners.gbrt", "learners.gbdt"),
        "mine.toml", "'gbdt'", "gbrt",
    ),
    spoilt("a suite that is absent", "suite", {"mine.toml": None}, "mine.toml"),
    spoilt(
        "a plugin that raises", "plugin", {"fine.py": "raise RuntimeError('no\\nluck')\n"},
        "-p fine", "RuntimeError: no luck",
    ),
    spoilt(
        "a module that is no plugin", "plugin", {"fine.py": "x = 1\n"},
        "-p fine", "it has no hooks", "'bench new'",
    ),
    spoilt(
        "text behind a closing quote", "table", line(4, "table.csv", '1,"2"3,1,0,train'),
        "table.csv, line 4", "behind its closing quote", "correct it",
    ),
    spoilt(
        "a file of prices that is the file of data", "table", {"names.csv": table()},
        "names.csv, line 2", "60 lines below a line of features", "a line for each feature",
    ),
]
OPTIONS = [
    option(
        "unknown parameter", "svm", "--set gbrt.tree=3", "--set gbrt.tree=3", "did you mean trees?",
    ),
    option(
        "parameter out of range", "svm", "--set gbrt.trees=-1", "--set gbrt.trees=-1", "at least 0",
    ),
    option(
        "--set for a learner not chosen", "svm", "--set miser.trees=3", "--set miser.trees=3",
        "miser", "--learners",
    ),
    option("unknown metric", "svm", "-m ndgc@5", "'ndgc", "ndcg"),
    option(
        "metric that does not suit the task", "svm", "-m auc", "metric auc", "ranking", "rows.svm",
        "ndcg",
    ),
    option(
        "task that the file cannot have", "table", "--task ranking", "table.csv",
        "ranking needs queries", "--query",
    ),
    option(
        "column of the label absent", "table", "--label lable", "table.csv, line 1: --label",
        "did you mean label?",
    ),
    option("module with its suffix", "plugin", "-p fine.py", "-p fine.py", "by its name, fine"),
    option(
        "unknown encoding", "table", "--encoding klingon", "'--encoding'", "'klingon'", "Python",
    ),
    option(
        "an option of SVMlight", "table", "--index-base 0", "table.csv", "--index-base 0",
        "leave it out",
    ),
    option(
        "label left out", "table", "--label label --drop label", "table.csv", "--label and --drop",
        "'label'", "choose one",
    ),
    option(
        "a column of two roles", "table", "--label a --query a", "--query and --label", "'a'",
        "choose one",
    ),
    option("file absent", "svm", "--test tset.svm", "tset.svm", "no such file", "check the name"),
    option("--test with a suite", "suite", "--test test.svm", "--test", "suite", "--data FILE"),
    option(
        "a data set that is not the suite's", "suite", "--data letters", "--data", "'letters'",
        "breast-cancer",
    ),
    option("output that is a folder", "svm", "-o results", "results", "folder"),
    option(
        "output below a file", "svm", "-o rows.svm/board.html", "rows.svm/board.html",
        "another place",
    ),
    verb("a run that is not there", "report mine", "unknown run 'mine'"),
    verb("best of a run that is not there", "best mine --budget 3", "unknown run 'mine'"),
    verb("a data set the run has not", "best --budget 3 -d letters", "'letters'", "rows.svm"),
    verb("a metric the run has not", "best --budget 3 -m auc", "auc", "ndcg@5"),
    verb("report into a folder", "report -o results", "results", "folder"),
    verb("parquet on the terminal", "export -f parquet", "parquet", "-o results.parquet"),
]
# fmt: on


def write(folder, files):
    """Write files; None takes one away."""
    for name, content in files.items():
        path = folder / name
        if content is None:
            path.unlink(missing_ok=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


def contents(folder):
    """Everything below a folder but the cache of prepared data, byte by byte."""
    return {
        str(p.relative_to(folder)): p.read_bytes() if p.is_file() else None
        for p in sorted(folder.rglob("*"))
        if p.relative_to(folder).parts[0] not in ("cache", "__pycache__")
        and not p.name.endswith(("-shm", "-wal"))  # SQLite's own, empty once nobody writes
    }


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
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
def place(kept, elsewhere):
    """A copy of that folder, in which the command is called."""
    shutil.copytree(kept, elsewhere, dirs_exist_ok=True)
    sys.modules.pop("fine", None)
    return elsewhere


@pytest.fixture(autouse=True)
def unhurried(monkeypatch):
    """However slow the machine, nothing but the fault is said."""
    monkeypatch.setattr("bench_core.terminal.progress.MOMENT", 600.0)


def refused(ended, *says):
    """Status 2, nothing on stdout and one line on stderr that says all this."""
    assert (ended.status, ended.out) == (2, ""), ended
    assert len(ended.err.splitlines()) == 1, ended.err
    assert ended.err.startswith("error: ")
    missing = [words for words in says if words not in ended.err]
    assert not missing, f"{missing} not in {ended.err}"


@pytest.mark.parametrize("case", [*FILES, *OPTIONS], ids=str)
def test_is_refused_in_one_line_and_leaves_the_store_as_it_was(case, bench, place):
    write(place, case.spoilt)
    before = contents(place)
    refused(bench(*case.command(STORE)), *case.says)
    if case.base:
        refused(bench(*case.command(Path("new/bench.db"))), *case.says)
    assert contents(place) == before


@pytest.mark.parametrize("base", BASES)
def test_the_same_files_unspoilt_run(base, bench, place):
    ended = bench("run", *BASES[base], "--store", "new/bench.db")
    assert ended.status == 0, ended.err
    assert (place / "new/bench.db").is_file()


@pytest.mark.parametrize("flag", ["--learners", "--data", "--metric", "--seeds", "-p"])
def test_an_option_that_names_nothing_is_refused(flag, bench, place):
    before = contents(place)
    refused(bench("run", *BASES["table"], flag, ""), flag, "leave the option out")
    assert contents(place) == before


def altered(statement):
    """A change of the database, which is made if it is not there."""

    def alter(store):
        with closing(sqlite3.connect(store)) as db, db:
            db.execute("PRAGMA journal_mode = DELETE")
            db.execute(statement)

    return alter


def a_folder(store):
    store.unlink()
    store.mkdir()


def of_another_program(store):
    store.unlink()
    altered("CREATE TABLE mails (text TEXT)")(store)


STORES = {
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
def test_a_store_that_is_none_is_refused_and_left_alone(kind, name, bench, place):
    spoil, says = STORES[kind]
    spoil(place / STORE)
    before = contents(place)
    refused(bench(*VERBS[name], "--store", str(STORE)), str(STORE), says)
    assert contents(place) == before


@pytest.mark.parametrize("name", ["report", "best", "export", "audit", "list"])
def test_without_a_store_the_remedy_is_a_run(name, bench, place):
    before = contents(place)
    refused(bench(*VERBS[name], "--store", "new/bench.db"), "new/bench.db", "bench run")
    assert contents(place) == before


@pytest.mark.parametrize("store", ["rows.svm/bench.db", "/dev/null/bench.db"])
def test_a_store_below_a_file_is_refused(store, bench, place):
    before = contents(place)
    refused(bench("run", *BASES["svm"], "--store", store), store, "--store")
    assert contents(place) == before


@pytest.mark.parametrize("store", ["closed/bench.db", "closed/deeper/bench.db"])
def test_a_store_in_a_closed_folder_is_refused(store, bench, place):
    (place / "closed").mkdir(mode=0o500)
    if os.access(place / "closed", os.W_OK):
        pytest.skip("who may write everywhere, as root may, meets no closed folder")
    refused(bench("run", *BASES["svm"], "--store", store), store, "name another with --store")
    assert list((place / "closed").iterdir()) == []


def test_a_store_that_another_run_is_writing_is_refused(bench, place):
    with open_writer(STORE):
        before = contents(place)
        ended = bench("run", *BASES["svm"], "--fresh", "--quiet", "--store", str(STORE))
        refused(ended, str(STORE), "another run is writing", "wait for it")
        assert contents(place) == before
