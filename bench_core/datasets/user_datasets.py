"""A user's named data sets: tables of ``datasets.toml`` in the data folder and the current folder.

::

    [clicks]
    file = "clicks/all.csv"           # paths are relative to this file's folder
    task = "ranking"
    split = [0.7, 0.15, 0.15]         # or a column

Keys are the fields of ``FileData``. ``cv`` is written as ``folds``, ``share`` as three shares in
``split``. Each table is a data set, usable like a plugin's.
"""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from bench_core._io.files import at_home
from bench_core._io.text import parse_toml, read_text
from bench_core.data import Task
from bench_core.datasets.data_folder import data_folder, local_path
from bench_core.datasets.user_files import PATHS, FileData
from bench_core.errors import InputError, UsageError, spelt, unknown
from bench_core.option_fields import options_of
from bench_core.plugins import PluginInfo, Registry, load_registry
from bench_core.protocols import Source
from bench_core.splits import Splits

FILE = "datasets.toml"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_NAMES = "letters, digits, '-', '_'"


@dataclass(frozen=True)
class Entry:
    """A data set of ``datasets.toml``; each table is a subclass with its values as ``data``."""

    data: FileData = field(init=False)
    place: ClassVar[str] = ""  # file and table, for messages

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Read the files; ``source``, ``size`` and ``seed`` are ignored."""
        try:
            with spelt(_as_keys):
                return self.data.prepare(source, size, fold, seed)
        except InputError as error:  # it may be the table that is wrong, as in a column's name
            raise InputError(f"{self.place}: {error}") from error


def groups_and_unit(dataset: Any, request: Any) -> dict[str, Any]:
    """Return the groups and the unit that complete given costs: of the table of ``datasets.toml``,
    or of the request if ``dataset`` is another one."""
    table = dataset.data if getattr(dataset, "place", "") else request
    return {"groups": table.groups, "unit": table.unit}


_OTHER_KEYS = {"cv": "folds", "share": "split"}


def _key(word: str) -> str:
    """Return the key of an option of ``bench run``."""
    return _OTHER_KEYS.get(word, word.replace("-", "_"))


KEYS = {_key(described.word): name for name, described in options_of(FileData).items()}
KEYS["split"] = "split"  # a column, or three shares
"""Fields of ``FileData`` by key."""


def _as_keys(name: str, like: str, value: object) -> str:
    """Write options as keys: ``index_base=0`` as ``index_base = 0``."""
    written = like if value is None else json.dumps(value, ensure_ascii=False)
    described = options_of(FileData).get(name)
    key = f"key '{_key(described.word if described else name)}'"
    return f"{key} = {written}" if written else key


def read_entries(path: Path) -> list[type[Any]]:
    """Return one class per table of the file. Raises InputError naming file, table and key."""
    tables = parse_toml(path, read_text(path))
    return [_entry(path, name, table) for name, table in tables.items()]


def _entry(path: Path, name: str, table: Any) -> type[Any]:
    """Return the class of one table."""
    if not isinstance(table, Mapping) or not _NAME.fullmatch(name):
        raise InputError(f"{path}: {name!r}: expected a table [NAME] of {_NAMES}")
    place = f"{path}, [{name}]"
    try:
        with spelt(_as_keys):
            data = _file_data(table, path.parent)
    except UsageError as error:
        raise InputError(f"{place}: {error}") from error
    about = {
        "data": data,
        "name": name,
        "title": table.get("title") or data.title,
        "task": Task(data.task),
        "folds": data.folds,
        "files": data.files,
        "depends_on": data.depends_on,
        "place": place,
        "__module__": __name__,
        "__doc__": f"From {path}.",
    }
    return type(name, (Entry,), about)


def _file_data(table: Mapping[str, Any], folder: Path) -> FileData:
    """Return the files of one table, and how they are read. Raises UsageError."""
    values: dict[str, Any] = {}
    for key, value in table.items():
        if key != "title" and key not in KEYS:
            raise UsageError(unknown("key", key, [*KEYS, "title"]))
        values[KEYS.get(key, key)] = tuple(value) if isinstance(value, list) else value
    if not isinstance(values.pop("title", ""), str):
        raise UsageError("key 'title': expected a text")
    for key in ("file", "task"):
        if not table.get(key):
            wanted = options_of(FileData)[KEYS[key]].form.wanted
            raise UsageError(f"key {key!r}: is missing: expected {wanted}")
    if values.get("cv") == 1:
        del values["cv"]
    if "positive" in values:
        values["positive"] = str(values["positive"])
    if isinstance(shares := values.get("split"), tuple):
        numbers = all(isinstance(share, int | float) and share > 0 for share in shares)
        if len(shares) != 3 or not numbers or abs(sum(shares) - 1) > 1e-9:
            wanted = "a column, or three shares above 0 whose sum is 1"
            raise UsageError(f"key 'split': expected {wanted}, got {table['split']}")
        values |= {"split": "", "share": shares[1:]}
    data = FileData(**values)
    paths: dict[str, Any] = {name: getattr(data, name) for name in PATHS if getattr(data, name)}
    for name, text in paths.items():
        paths[name] = str((folder / at_home(local_path(text))).absolute())
    return replace(data, **paths)


def open_registry(plugins: Iterable[str] = (), data_dir: str | Path | None = None) -> Registry:
    """Return a registry of installed plugins, the modules ``plugins`` and the user's data sets."""
    registry = load_registry(plugins)
    folders = data_folder(data_dir or None).absolute(), Path.cwd()
    for folder in dict.fromkeys(folders):
        add_own_data(registry, folder)
    return registry


def check_name(name: str) -> None:
    """Raise UsageError for a name that cannot be a table of ``datasets.toml``."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"--name {name!r}: expected {_NAMES}, a letter or digit first")


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
        datasets = read_entries(path)
        for dataset in datasets:
            if dataset.name in to.datasets:
                raise InputError(f"{path}: [{dataset.name}] has the name of another data set")
        to.add(info, [("data set", dataset.name, dataset) for dataset in datasets])
    except InputError as error:
        to.plugins.append(replace(info, error=str(error)))
