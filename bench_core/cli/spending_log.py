"""Log of a service: what its answers cost and bought, next to the export of its model."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bench_core.arrays import BoolArray
from bench_core.datasets.readers.tables import DataTable, read_table
from bench_core.errors import InputError, unknown
from bench_core.serving import Predictor
from bench_core.serving.spending import Figure, compare_spending


def figures_of(log: Path, model: Predictor, folder: Path) -> tuple[int, list[Figure]]:
    """Return the number of answers in a log, and its figures next to those of the model's folder.

    Raises InputError for a log of another form, or an export without its spending.
    """
    expected = model.about.get("spending")
    if expected is None:
        raise InputError(f"{folder}: exported by an older version; export the model again")
    table = read_table(log, text={"bought"})
    if "spent" not in table.names or not len(table):
        what = "no rows" if "spent" in table.names else "no column 'spent'"
        raise InputError(f"{log}: {what}; write a row of answer.log() for each answer")
    spent = table.numbers("spent", missing=False)
    return len(table), compare_spending(expected, spent, _shares(table, model, expected))


def _shares(
    table: DataTable, model: Predictor, expected: Mapping[str, Any]
) -> list[tuple[str, float, BoolArray]]:
    """Return a name, the expected share and the rows (n,) of a log: of capped rows if it says so,
    and of those that bought each column."""
    shares = []
    if "capped" in table.names:
        shares.append(("capped", float(expected["capped"]), _flags(table, "capped")))
    for name, rows in _bought(table, model.features).items():
        if name in expected["bought"]:  # others are free
            shares.append((name, float(expected["bought"][name]), rows))
    return shares


def _bought(table: DataTable, features: Sequence[str]) -> dict[str, BoolArray]:
    """Return the rows (n,) of a log that bought each column of a model; {} if it does not say."""
    if "bought" not in table.names:
        return {name: _flags(table, name) for name in features if name in table.names}
    column = table.column("bought")
    texts = column.cells() if column.written is None else column.written()  # NA may be a name
    number, different = pd.factorize(texts)
    bought = {name: np.zeros(len(different), dtype=bool) for name in features}
    for k, text in enumerate(different):
        try:
            for name in shlex.split(text):
                bought[name][k] = True
        except (ValueError, KeyError) as error:  # an open quote, or a name
            wrong = unknown("column of the model", error.args[0], features)
            what = wrong if isinstance(error, KeyError) else f"{text!r:.60}: {error}"
            raise InputError(f"{table.place(int((number == k).argmax()))}: {what}") from None
    return {name: of_text[number] for name, of_text in bought.items()}


def _flags(table: DataTable, name: str) -> BoolArray:
    """Return a column of 0 and 1 (n,). Raises InputError for other cells."""
    values = table.numbers(name, missing=False)
    wrong = ~np.isin(values, (0, 1))
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(f"{table.place(row)}, column {name!r}: {values[row]:g} is not 0 or 1")
    return np.asarray(values == 1)
