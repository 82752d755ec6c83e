"""A user's named data sets: tables of ``datasets.toml`` in the data folder and the current folder.

::

    [clicks]
    title = "Clicks on the results page"
    file = "clicks/all.csv"           # paths are relative to this file's folder
    valid = "clicks/valid.csv"        # both optional
    test = "clicks/test.csv"
    format = "csv"                    # svmlight, csv or parquet; default: by suffix or content
    task = "ranking"                  # binary, multiclass, ranking or regression
    label = "clicked"                 # columns of tables
    query = "session"
    positive = "yes"                  # label of class 1; default: the second
    split = "part"                    # a column, or shares such as [0.7, 0.15, 0.15]
    folds = 5                         # folds of cross-validation
    index_base = 0                    # number of the first feature in SVMlight files
    drop = ["note"]                   # columns to leave out
    keep_column = ["day"]             # columns to keep although they number the rows
    decimal = ","                     # CSV files have decimal commas
    encoding = "cp1252"               # of files that are not UTF-8
    dates = true                      # read dates as days since 1970-01-01
    unwritten = "missing"             # value of cells absent from SVMlight files; default: zero
    costs = "clicks/costs.json"       # default: every feature costs 1
    unit = "ms"                       # unit of the costs
    group = ["age,job:5"]             # columns measured by one sensor, and its cost

Each table is a data set, usable like a plugin's.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, make_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from bench_core._io.files import at_home
from bench_core._io.text import parse_toml, read_text
from bench_core.data import Task
from bench_core.datasets.data_folder import data_folder, local_path
from bench_core.datasets.user_files import FileData
from bench_core.errors import InputError, UsageError, as_argument, spelt, unknown
from bench_core.parameters import convert, in_words
from bench_core.plugins import PluginInfo, Registry, load_registry
from bench_core.protocols import Source
from bench_core.splits import Splits

FILE = "datasets.toml"
_PATHS = ("file", "valid", "test", "costs")
_KEYS: dict[str, Any] = dict.fromkeys(
    (*_PATHS, "title", "label", "query", "unit", "encoding"), str
) | {
    "format": Literal["svmlight", "csv", "parquet"],
    "task": Task,
    "split": str | tuple[float, float, float],
    "positive": str | int | float | bool,
    "folds": int,
    "index_base": Literal[0, 1],
    "unwritten": Literal["zero", "missing"],
    "drop": tuple[str, ...],
    "keep_column": tuple[str, ...],
    "group": tuple[str, ...],
    "decimal": Literal[",", "."],
    "dates": bool,
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
MOST_FOLDS = 100


@dataclass(frozen=True)
class Entry:
    """A data set of ``datasets.toml``; ``own`` holds the values of its table."""

    own: FileData = field(init=False)
    place: ClassVar[str] = ""  # file and table, for messages

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Read the files; ``source``, ``size`` and ``seed`` are ignored."""
        try:
            with spelt(as_argument):  # they are keys of the table
                return self.own.prepare(source, size, fold, seed)
        except InputError as error:  # it may be the table that is wrong, as in a column's name
            raise InputError(f"{self.place}: {error}") from error


def groups_and_unit(dataset: Any, request: Any) -> dict[str, Any]:
    """Return the groups and the unit that complete given costs: of the table of ``datasets.toml``,
    or of the request if ``dataset`` is another one."""
    own = dataset.own if getattr(dataset, "place", "") else request
    return {"groups": own.groups, "unit": own.unit}


def read_entries(path: Path) -> list[type[Any]]:
    """Return one class per table of the file. Raises InputError naming file, table and key."""
    tables = parse_toml(path, read_text(path))
    return [_entry(path, name, table) for name, table in tables.items()]


def _entry(path: Path, name: str, table: Any) -> type[Any]:
    """Return the class of one table."""
    if not isinstance(table, Mapping) or not _NAME.fullmatch(name):
        raise InputError(f"{path}: {name!r}: expected a table [NAME] of letters, digits, '-', '_'")
    place = f"{path}, [{name}]"
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key not in _KEYS:
            raise InputError(f"{place}: {unknown('key', key, _KEYS)}")
        try:
            values[key] = convert(value, _KEYS[key], f"{place}, key {key!r}")
        except UsageError as error:
            raise InputError(str(error)) from None
    for key in ("file", "task"):
        if not values.get(key):
            raise _fault(place, key, f"is missing: expected {in_words(_KEYS[key])}")
    for key in _PATHS:
        if text := values.get(key):
            values[key] = str((path.parent / at_home(local_path(text))).absolute())
    if "positive" in values:
        values["positive"] = str(values["positive"])
    column, shares, folds = _division(place, values)
    task, title = values.pop("task"), values.pop("title", "")
    values |= {
        "groups": values.pop("group", ()),
        "train": values.pop("file"),
        "split": column,
        "shares": shares,
        "folds": folds,
    }
    own = FileData(**values, task=task.value)
    about: dict[str, Any] = {
        "name": name,
        "title": title or own.title,
        "task": task,
        "folds": folds,
        "files": own.files,
        "depends_on": own.depends_on,
        "place": place,
        "__module__": __name__,
        "__doc__": f"From {path}.",
    }
    own_field = ("own", FileData, field(init=False, default=own))
    return make_dataclass(name, [own_field], bases=(Entry,), frozen=True, namespace=about)


def _division(place: str, values: Mapping[str, Any]) -> tuple[str, tuple[float, ...], int]:
    """Return the column of splits, or shares and folds."""
    split, folds = values.get("split", ""), values.get("folds", 1)
    divided = values.get("valid") or values.get("test")
    column, shares = (split, ()) if isinstance(split, str) else ("", split)
    if shares and (min(shares) <= 0 or abs(sum(shares) - 1) > 1e-9):
        raise _fault(place, "split", f"expected shares above 0 whose sum is 1, got {[*split]}")
    if shares and divided:
        raise _fault(place, "split", "shares divide one file; leave out valid and test")
    if not 1 <= folds <= MOST_FOLDS:
        raise _fault(place, "folds", f"expected a number 1 to {MOST_FOLDS}, got {folds}")
    if folds > 1:
        if divided or column:
            raise _fault(place, "folds", "folds divide one file; leave out valid, test, a column")
        if folds < 3 and not shares:
            raise _fault(place, "folds", "give at least 3, or set split = [TRAIN, VALID, TEST]")
        shares = shares or (1 - 2 / folds, 1 / folds, 1 / folds)
        if shares[2] > 1 / folds + 1e-9:
            raise _fault(place, "folds", f"the test share is above 1/{folds}: test splits overlap")
    return column, shares, folds


def _fault(place: str, key: str, why: str) -> InputError:
    return InputError(f"{place}, key {key!r}: {why}")


def open_registry(plugins: Iterable[str] = (), data_dir: str | Path | None = None) -> Registry:
    """Return a registry of installed plugins, the modules ``plugins`` and the user's data sets."""
    registry = load_registry(plugins)
    folders = data_folder(data_dir or None).absolute(), Path.cwd()
    for folder in dict.fromkeys(folders):
        add_own_data(registry, folder)
    return registry


def project_names() -> list[str]:
    """Return the data sets of ``datasets.toml`` in the current folder."""
    path = Path.cwd() / FILE
    return [cls.name for cls in read_entries(path)] if path.is_file() else []


def add_own_data(to: Registry, folder: Path) -> None:
    """Register the data sets of ``datasets.toml`` in a folder, if there is one.

    An unusable file is listed with its error, like a failed plugin.
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
