"""Inspection of a user's files, which writes their table of ``datasets.toml``."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench_core.data import Task
from bench_core.datasets.data_folder import DataFolder
from bench_core.datasets.readers.tables import UnusableColumnsError
from bench_core.datasets.user_data import TablePart
from bench_core.datasets.user_files import FileData, read_part
from bench_core.errors import option
from bench_core.splits import Splits

_COMMENT = (
    "# written by 'bench init', used by 'bench run' in this folder; docs/data.md lists all keys\n"
)
_NO_COSTS = '# costs = "prices.csv"  # lines feature,price; without it every feature costs 1\n'


def described(given: FileData, folder: Path) -> tuple[dict[str, Any], Splits]:
    """Return the table of ``datasets.toml`` in ``folder`` for these files, and their splits.

    Dates and decimal commas are recognized; other unusable columns are dropped. Raises InputError
    for unusable files.
    """
    own = given
    while True:
        try:
            splits = own.prepare(DataFolder(folder), "quick", 0, 0)
            break
        except UnusableColumnsError as error:
            faults = " ".join(error.faults.values())
            decimal = "," if f"{option('decimal', ',')} reads" in faults else own.decimal
            dates = own.dates or option("dates", True) in faults
            if (decimal, dates) != (own.decimal, own.dates):
                own = replace(own, decimal=decimal, dates=dates)
            else:
                own = replace(own, drop=(*own.drop, *error.faults))
    table: dict[str, Any] = {"file": own.train, "valid": own.valid, "test": own.test}
    table |= {"task": str(splits.task), "label": own.label, "query": own.query, "split": own.split}
    columns = {name: getattr(own, name) for name in ("label", "query", "split")}
    part = read_part(
        Path(own.train), columns, own.index_base, own.format, own.drop, encoding=own.encoding
    )
    if isinstance(part, TablePart):
        found = {"label": part.label, "query": part.query, "split": part.split}
        table |= {key: column.name for key, column in found.items() if column is not None}
    if splits.task is Task.BINARY:
        table["positive"] = splits.class_names[1]
    names = (
        *("drop", "keep_column", "decimal", "encoding", "dates"),
        *("index_base", "unwritten", "costs", "unit"),
    )
    usual = FileData("")
    table |= {
        name: getattr(own, name) for name in names if getattr(own, name) != getattr(usual, name)
    }
    table["group"] = own.groups
    for key in ("file", "valid", "test", "costs"):
        if path := table.get(key):
            table[key] = _relative(Path(path), folder)
    return {key: value for key, value in table.items() if value not in ("", ())}, splits


def _relative(path: Path, folder: Path) -> str:
    absolute = path.absolute()
    inside = absolute.is_relative_to(folder.absolute())
    return (absolute.relative_to(folder.absolute()) if inside else absolute).as_posix()


def as_toml(name: str, table: Mapping[str, Any]) -> str:
    """Return the text of a table of ``datasets.toml``."""
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in table.items()]
    return f"{_COMMENT}[{name}]\n{''.join(lines)}{'' if 'costs' in table else _NO_COSTS}"


def name_for(file: str) -> str:
    """Return a data set's name made from its file: letters, digits, ``-`` and ``_``."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", Path(file).name.partition(".")[0]).strip("-_") or "data"
