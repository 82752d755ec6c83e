"""A user's own data sets by name: the tables of ``datasets.toml`` in the data folder.

::

    [clicks]
    title = "Clicks on the results page"
    file = "clicks/all.csv"           # paths count from the folder of this file
    valid = "clicks/valid.csv"        # both optional
    test = "clicks/test.csv"
    format = "csv"                    # svmlight, csv or parquet; default: by suffix or content
    task = "ranking"                  # binary, multiclass, ranking or regression
    label = "clicked"                 # columns of tables
    query = "session"
    split = "part"                    # a column, or shares such as [0.7, 0.15, 0.15]
    folds = 5                         # cross-validation: every row is in one test split
    index_base = 0                    # number of the first feature in SVMlight files
    costs = "clicks/costs.json"       # default: every feature costs 1

Each table is then a data set like those of plugins.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from bench_core._io.files import at_home
from bench_core._io.text import is_url, parse_toml, read_settings
from bench_core.data import Task
from bench_core.datasets.user_files import FORMATS, FileData
from bench_core.errors import InputError, spelt, unknown
from bench_core.plugins import PluginInfo, Registry
from bench_core.protocols import Source
from bench_core.splits import Splits

FILE = "datasets.toml"
_PATHS = ("file", "valid", "test", "costs")
_TEXTS = ("title", *_PATHS, "format", "task", "label", "query")
_KEYS = (*_TEXTS, "split", "folds", "index_base")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
MOST_FOLDS = 100


@dataclass(frozen=True)
class Entry:
    """A data set of ``datasets.toml``; ``own`` holds the values of its table."""

    own: FileData = field(init=False)
    place: ClassVar[str] = ""  # file and table, for messages

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Read the files; ``source``, ``size`` and ``seed`` mean nothing here."""
        try:
            with spelt(_as_keys):
                return self.own.prepare(source, size, fold, seed)
        except InputError as error:  # it may be the table that is wrong, as in a column's name
            raise InputError(f"{self.place}: {error}") from error


def _as_keys(name: str, like: str, value: object) -> str:
    """The options of ``bench run`` are keys here: ``--index-base 0`` is ``index_base = 0``."""
    written = like if value is None else str(value)
    key = f"key '{name.replace('-', '_')}'"
    return f"{key} = {written}" if written else key


def read_entries(path: Path) -> list[type[Any]]:
    """One class per table of the file. Raises InputError naming file, table and key."""
    tables = parse_toml(path, read_settings(path))
    return [_Table(path, name, table).entry() for name, table in tables.items()]


@dataclass(frozen=True, slots=True)
class _Table:
    """Checks one table; every refusal names the file, the table and the key."""

    path: Path
    name: str
    table: Any

    def entry(self) -> type[Any]:
        if not isinstance(self.table, Mapping):
            raise InputError(f"{self.path}: {self.name!r}: a table [{self.name}] is wanted")
        if not _NAME.fullmatch(self.name):
            raise InputError(
                f"{self.path}: [{self.name}]: a name of letters, digits, '-' and '_' is wanted"
            )
        for key in self.table:
            if key not in _KEYS:
                raise InputError(f"{self.path}, [{self.name}]: {unknown('key', key, _KEYS)}")
        own = self.data()
        about: dict[str, Any] = {
            "name": self.name,
            "title": self.text("title") or own.title,
            "task": Task(own.task),
            "folds": own.folds,
            "files": own.files,
            "depends_on": own.depends_on,
            "place": f"{self.path}, [{self.name}]",
            "__module__": __name__,
            "__doc__": f"From {self.path}.",
        }
        own_field = ("own", FileData, field(init=False, default=own))
        return make_dataclass(self.name, [own_field], bases=(Entry,), frozen=True, namespace=about)

    def data(self) -> FileData:
        files = {key: self.place(key) for key in _PATHS}
        if not files["file"]:
            raise self.refuse("file", "is missing: name the file of the (training) rows")
        split, folds = self.table.get("split", ""), self.number("folds", 1, MOST_FOLDS, 1)
        column, shares = (split, ()) if isinstance(split, str) else ("", self.shares(split))
        if folds > 1:
            shares = self.rotated(shares, folds, bool(column or files["valid"] or files["test"]))
        elif shares and (files["valid"] or files["test"]):
            raise self.refuse("split", "shares divide one file; leave out valid and test")
        return FileData(
            train=files["file"],
            valid=files["valid"],
            test=files["test"],
            costs=files["costs"],
            label=self.text("label"),
            query=self.text("query"),
            split=column,
            task=self.one_of("task", [t.value for t in Task], needed=True),
            format=self.one_of("format", FORMATS),
            index_base=self.number("index_base", 0, 1, 1),
            shares=shares,
            folds=folds,
        )

    def shares(self, value: Any) -> tuple[float, ...]:
        numbers = value if isinstance(value, list) else []
        good = len(numbers) == 3 and all(type(v) in (int, float) and 0 < v < 1 for v in numbers)
        if not good or abs(sum(numbers) - 1) > 1e-9:
            raise self.refuse(
                "split",
                "a column, or the shares of train, valid and test as [0.6, 0.2, 0.2], whose sum "
                f"is 1, is wanted, not {value!r}",
            )
        return tuple(float(v) for v in numbers)

    def rotated(self, shares: tuple[float, ...], folds: int, divided: bool) -> tuple[float, ...]:
        if divided:
            raise self.refuse("folds", "folds divide one file; leave out valid, test and a column")
        if folds < 3 and not shares:
            raise self.refuse("folds", "at least 3 are wanted, or say split = [TRAIN, VALID, TEST]")
        shares = shares or (1 - 2 / folds, 1 / folds, 1 / folds)
        if shares[2] > 1 / folds + 1e-9:
            raise self.refuse("folds", f"the test share is above 1/{folds}: test splits overlap")
        return shares

    def place(self, key: str) -> str:
        text = self.text(key)
        if is_url(text):
            return text
        return str((self.path.parent / at_home(text)).absolute()) if text else ""

    def text(self, key: str) -> str:
        value = self.table.get(key, "")
        if not isinstance(value, str):
            raise self.refuse(key, f"text is wanted, not {value!r}")
        return value

    def one_of(self, key: str, known: Any, needed: bool = False) -> str:
        value = self.text(key)
        if value not in known and (needed or value):
            raise self.refuse(key, f"one of {', '.join(known)} is wanted, not {value!r}")
        return value

    def number(self, key: str, least: int, most: int, default: int) -> int:
        value = self.table.get(key, default)
        if type(value) is not int or not least <= value <= most:
            raise self.refuse(key, f"a whole number {least} to {most} is wanted, not {value!r}")
        return value

    def refuse(self, key: str, why: str) -> InputError:
        return InputError(f"{self.path}, [{self.name}], key {key!r}: {why}")


def add_own_data(to: Registry, folder: Path) -> None:
    """Register the data sets of ``datasets.toml`` in the data folder, if there is one.

    A file that cannot be used becomes a row with its error, like a plugin.
    """
    path = folder / FILE
    if not path.is_file():
        return
    info = PluginInfo(FILE, str(folder), "", str(path))
    try:
        found = read_entries(path)
        for dataset in found:
            if dataset.name in to.datasets:
                raise InputError(f"{path}: [{dataset.name}] has the name of another data set")
        to.add(info, [("data set", dataset.name, dataset) for dataset in found])
    except InputError as error:
        to.plugins.append(replace(info, error=str(error)))
