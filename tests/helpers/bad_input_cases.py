"""Sound files, commands that run on them, and what can be wrong with either.

Of each reader there are a few faults: its own tests have them all.
"""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

STORE = Path("results/bench.db")
SMALL = ("--set", "gbrt.trees=2", "--set", "gbrt.min_rows=2", "--executor", "inline")
LEARN = ("-l", "gbrt", *SMALL)


def svm(rows: int, ids: bool = False) -> str:
    """Queries of four rows, three features; the first two decide the grade."""
    lines = []
    for i in range(rows):
        a, b, c = (i * 7) % 11 - 5, (i * 5) % 7 - 3, (i * 3) % 5 + 1
        grade = (a + b > -4) + (a + b > 2)
        qid = f" qid:{i // 4 + 1}" if ids else ""
        lines.append(f"{grade}{qid} 1:{a} 2:{b} 3:{c}")
    return "\n".join(lines) + "\n"


def table(rows: int = 60) -> str:
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

PACKED = gzip.compress(svm(80, ids=True).encode(), mtime=0)
Files = Mapping[str, str | bytes | None]
SOUND: Files = {
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
    "fine.py": "",
}
BASES: dict[str, tuple[str, ...]] = {
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

    def __str__(self) -> str:
        return self.name

    def command(self, store: Path) -> tuple[str, ...]:
        """The whole command line."""
        if not self.base:
            return *self.words, "--store", str(store)
        return "run", *BASES[self.base], *self.words, "--store", str(store)


def swap(file: str, old: str, new: str) -> Files:
    """The sound file with the last occurrence of something replaced."""
    text = str(SOUND[file])
    before, found, after = text.rpartition(old)
    assert found, f"{old!r} is not in {file}"
    return {file: before + new + after}


def line(number: int, file: str, new: str) -> Files:
    """The sound file with one line replaced."""
    lines = str(SOUND[file]).splitlines()
    lines[number - 1] = new
    return {file: "\n".join(lines) + "\n"}


def spoilt(name: str, base: str, files: Files, *says: str) -> Case:
    return Case(name, says, files, base)


def option(name: str, base: str, words: str, *says: str) -> Case:
    return Case(name, says, {}, base, tuple(words.split()))


def verb(name: str, words: str, *says: str) -> Case:
    return Case(name, says, {}, "", tuple(words.split()))


def hook(body: str, name: str = "bench_learners") -> str:
    """A plugin module with one hook."""
    return f"import bench_core\n\n\n@bench_core.hookimpl\ndef {name}():\n    {body}\n"


def one_class_in_training() -> str:
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
        "no number", "svm", line(3, "rows.svm", "1 1:3 2:high"),
        "rows.svm, line 3: feature 2: 'high'", "correct it",
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
        "negative cost", "svm", swap("costs.csv", "2,5", "2,-5"), "costs.csv, line 3: feature '2'",
        "correct it",
    ),
    spoilt(
        "unknown name", "table", swap("names.csv", "c,1", "z,1"), "names.csv, line 4", "'z'",
        "correct or remove", "known: a, b, c",
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
        "unknown split", "table", line(7, "table.csv", "2,1,3,1,practice"),
        "table.csv, line 7, column 'split': 'practice'", "write train, valid or test",
    ),
    spoilt(
        "one class in training", "table", {"table.csv": one_class_in_training()}, "table.csv",
        "all labels", "train", "1",
    ),
    # suites and plugins
    spoilt(
        "broken TOML", "suite", swap("mine.toml", "seeds = [0]", "seeds = [0"),
        "mine.toml: not a TOML file", "line",
    ),
    spoilt(
        "unknown learner in a suite", "suite", swap("mine.toml", "learners.gbrt", "learners.gbdt"),
        "mine.toml", "'gbdt'", "gbrt",
    ),
    spoilt(
        "parameter out of range in a suite", "suite", swap("mine.toml", "trees = 2", "trees = -2"),
        "mine.toml", "gbrt", "trees must be at least 0",
    ),
    spoilt("a suite that is absent", "suite", {"mine.toml": None}, "mine.toml"),
    spoilt(
        "a plugin that raises", "plugin", {"fine.py": "raise RuntimeError('no\\nluck')\n"},
        "-p fine", "RuntimeError: no luck",
    ),
    spoilt(
        "a plugin with a misspelt hook", "plugin", {"fine.py": hook("return []", "bench_learnerz")},
        "-p fine", "bench_learnerz", "correct", "fine.py",
    ),
    spoilt(
        "a plugin whose hook raises", "plugin", {"fine.py": hook("raise KeyError(3)")},
        "-p fine", "KeyError: 3", "correct", "fine.py",
    ),
]
OPTIONS = [
    option(
        "unknown parameter", "svm", "--set gbrt.tree=3", "--set gbrt.tree=3", "did you mean trees?",
    ),
    option(
        "parameter of the wrong type", "svm", "--set gbrt.trees=many", "--set gbrt.trees=many",
        "whole number",
    ),
    option(
        "parameter out of range", "svm", "--set gbrt.trees=-1", "--set gbrt.trees=-1", "at least 0",
    ),
    option("empty grid", "svm", "--set gbrt.trees=[]", "--set 'gbrt.trees=[]'", "at least one"),
    option(
        "--set without a value", "svm", "--set gbrt.trees", "--set gbrt.trees",
        "LEARNER.PARAMETER=VALUE",
    ),
    option(
        "--set for a learner not chosen", "svm", "--set miser.trees=3", "--set miser.trees=3",
        "miser", "--learners",
    ),
    option(
        "--set for a learner unknown", "svm", "--set misr.trees=3", "--set misr.trees=3",
        "did you mean miser?",
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
