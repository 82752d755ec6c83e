"""Inspection of a user's files, which writes their table of ``datasets.toml``."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench_core.data import Task
from bench_core.datasets.data_folder import DataFolder
from bench_core.datasets.readers.tables import UnusableColumnsError
from bench_core.datasets.user_data import TablePart
from bench_core.datasets.user_datasets import KEYS
from bench_core.datasets.user_files import PATHS, FileData, read_part
from bench_core.errors import option
from bench_core.option_fields import options_of
from bench_core.splits import Splits

_COMMENT = (
    "# written by 'bench init', used by 'bench run' in this folder; "
    "docs/guide/data.md lists all keys\n"
)
_NO_COSTS = '# costs = "prices.csv"  # lines feature,price; without it every feature costs 1\n'


def described(data: FileData, folder: Path) -> tuple[dict[str, Any], Splits]:
    """Return the table of ``datasets.toml`` in ``folder`` for these files, and their splits.

    Dates and decimal commas are recognized; other unusable columns are dropped. Raises InputError
    for unusable files.
    """
    while True:
        try:
            splits = data.prepare(DataFolder(folder), "quick", 0, 0)
            break
        except UnusableColumnsError as error:
            faults = " ".join(error.faults.values())
            decimal = "," if f"{option('decimal', ',')} reads" in faults else data.decimal
            dates = data.dates or option("dates", True) in faults
            if (decimal, dates) != (data.decimal, data.dates):
                data = replace(data, decimal=decimal, dates=dates)
            else:
                data = replace(data, drop=(*data.drop, *error.faults))
    train = read_part(Path(data.train), data, data.format)
    if isinstance(train, TablePart):
        split = None if data.shares else train.split
        data = replace(
            data,
            label="" if data.choose else train.label.name,
            query=train.query.name if train.query else "",
            split=split.name if split else "",
        )
    positive = splits.class_names[1] if splits.task is Task.BINARY else ""
    task = "" if data.choose else str(splits.task)
    data = replace(data, task=task, positive=positive)
    table: dict[str, Any] = {}
    for key, name in sorted(KEYS.items(), key=lambda entry: entry[1] not in PATHS):
        value = getattr(data, name)
        if value == options_of(FileData)[name].default:
            continue
        if name in PATHS:
            path, home = Path(value).absolute(), folder.absolute()
            value = (path.relative_to(home) if path.is_relative_to(home) else path).as_posix()
        table[key] = value
    if data.share:
        table["split"] = data.shares
    return table, splits


_PRICE, _AFTERWARDS = ("price", "cost", "seconds"), ("correct", "score")
"""Ends of the names of columns that hold prices of a sensor, and of those known only afterwards."""


def recognised_prices(columns: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """Return the content of a cost file, whose sensors have the prices of columns such as
    ``gpt_price`` next to ``gpt_answer``, {} if there are none; and columns to leave out, such as
    ``gpt_correct``, which would tell the label."""
    ends = {name: name.rpartition("_")[::2] for name in columns}  # "gpt", "price"
    priced = {sensor: name for name, (sensor, end) in ends.items() if sensor and end in _PRICE}
    costs, late, free = dict[str, Any](), list[str](), list[str]()
    for name in columns:
        owners = [sensor for sensor in priced if name.startswith(f"{sensor}_")]
        if name in priced.values():
            continue
        if not owners:
            free.append(name)
        elif ends[name][1] in _AFTERWARDS:
            late.append(name)
        else:
            sensor = max(owners, key=len)
            costs.setdefault(sensor, {"column": priced[sensor], "features": []})
            costs[sensor]["features"].append(name)
    late += [name for sensor, name in priced.items() if sensor not in costs] if costs else []
    return ({"costs": costs | dict.fromkeys(free, 0)} if costs else {}), late


def as_toml(name: str, table: Mapping[str, Any]) -> str:
    """Return the text of a table of ``datasets.toml``."""
    lines = [f"{key} = {json.dumps(value, ensure_ascii=False)}\n" for key, value in table.items()]
    return f"{_COMMENT}[{name}]\n{''.join(lines)}{'' if 'costs' in table else _NO_COSTS}"


def name_for(file: str) -> str:
    """Return a data set's name made from its file: letters, digits, ``-`` and ``_``."""
    return re.sub(r"[^A-Za-z0-9_]+", "-", Path(file).name.partition(".")[0]).strip("-_") or "data"
