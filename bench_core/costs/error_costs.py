"""Costs of answers of a classifier, by the true class and the answer.

``--error-costs`` is a number for every error, a number for each true class in the order of the
classes (``50,500``), or a file: a CSV table of the true class (rows) and the answer (columns), with
the classes' names, or JSON. In place of a number ``column:NAME`` stands for a column of the data,
with the cost in each row; such a cost is known only afterwards: rows are billed by it, and answers
are decided by its mean over the training rows of the class. A right answer costs 0 unless the table
says otherwise. In Python the option may also be a mapping, a matrix or a data frame.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from bench_core._io.frames import pandas_of
from bench_core._io.text import read_text
from bench_core.arrays import FloatArray, IntArray
from bench_core.costs.price_table import PriceColumn
from bench_core.data import Examples
from bench_core.errors import InputError, UsageError, option, unknown

_TABLE = "the first column names the true class, the first line the answers"

Entry = float | str
Matrix = tuple[tuple[Entry, ...], ...]
"""Costs (K, K) by true class and answer: numbers, or ``column:NAME``."""

COLUMN = "column:"
_FORMS = (
    "give a number for every error, one for each class (50,500), column:NAME, or a CSV file of the "
    "true class (rows) and the answer (columns)"
)


def error_costs_text(value: Any) -> str:
    """Return Python's forms of error costs as a text that the command takes, too: JSON for
    mappings, matrices and frames, which has the true class first."""
    if isinstance(value, str | Path):
        return str(value)
    value = pandas_of(value)
    if hasattr(value, "columns"):
        value = {i: dict(zip(value.columns, row, strict=True)) for i, row in
                 zip(value.index, value.to_numpy().tolist(), strict=True)}  # fmt: skip
    elif hasattr(value, "to_dict"):  # a series
        value = value.to_dict()
    return json.dumps(_plain(value))


def _plain(value: Any) -> Any:
    value = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    if isinstance(value, Mapping):
        return {str(key): _plain(cell) for key, cell in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_plain, value)]
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        return value
    raise UsageError(f"error_costs: {value!r:.60} is not a cost; {_FORMS}")


def error_columns(text: str, encoding: str | None = None) -> tuple[PriceColumn, ...]:
    """Return the columns of the data that hold costs of errors, as a table's reader takes them."""
    if not text:
        return ()
    cells = _cells(_content(text, encoding)[1])
    names = (str(cell)[len(COLUMN) :].strip() for cell in cells if str(cell).startswith(COLUMN))
    return tuple(PriceColumn("errors", name, ()) for name in dict.fromkeys(names))


def _cells(content: Any) -> list[Any]:
    if isinstance(content, Mapping | list):
        parts = content.values() if isinstance(content, Mapping) else content
        return [cell for part in parts for cell in _cells(part)]
    return [content]


def error_costs(text: str, classes: Sequence[str], encoding: str | None = None) -> Matrix:
    """Return the costs of answers between ``classes`` (K,). Raises InputError or UsageError, in one
    line, for a text or a file that does not give them."""
    place, content = _content(text, encoding)
    k, is_table = len(classes), text == place and not text.lower().endswith(".json")

    def wrong(what: str) -> NoReturn:
        kind = InputError if Path(place).is_file() else UsageError
        raise kind(f"{place}: {what}")

    def number(cell: Any, where: str) -> Entry:
        if isinstance(cell, str) and cell.strip().startswith(COLUMN):
            return cell.strip()
        try:
            cost = float(cell)
        except (TypeError, ValueError):
            cost = math.nan
        if not 0 <= cost < math.inf:
            wrong(f"the cost of {where} is {cell!r:.40}; give a number of at least 0")
        return cost

    def of_class(true: int, cell: Any) -> list[Entry]:
        cost = number(cell, f"errors on {classes[true]}")
        return [0.0 if true == answer else cost for answer in range(k)]

    def named(table: Mapping[str, Any], what: str) -> list[Any]:
        for name in table:
            if name not in classes:
                hint = f"known: {', '.join(classes)}; {_TABLE}"
                wrong(unknown(what, str(name), classes, hint if is_table else ""))
        return [table.get(name) for name in classes]

    if isinstance(content, Mapping):
        content = named(content, "class")
        if lacking := [n for n, row in zip(classes, content, strict=True) if row is None]:
            wrong(f"no costs of class {lacking[0]}; give a row for each of {', '.join(classes)}")
    elif not isinstance(content, list):
        content = [content] * k
    if len(content) != k:
        wrong(f"{len(content)} costs for {k} classes ({', '.join(classes)}); {_FORMS}")
    rows = list[list[Entry]]()
    for true, row in enumerate(content):
        if isinstance(row, Mapping):
            row = named(row, "answer")
        if not isinstance(row, list):
            rows.append(of_class(true, row))
            continue
        if len(row) != k:
            wrong(f"the row of class {classes[true]} has {len(row)} costs for {k} classes")
        cells = [0.0 if c in (None, "") and true == a else c for a, c in enumerate(row)]
        where = [f"{answer} for {classes[true]}" for answer in classes]
        rows.append([number(cell, at) for cell, at in zip(cells, where, strict=True)])
    if not any(cell for row in rows for cell in row):
        wrong("every cost of an error is 0; give at least one above 0")
    return tuple(map(tuple, rows))


def _content(text: str, encoding: str | None) -> tuple[str, Any]:
    """Return the place for messages, and the costs: a number, a list of them, or lists or mappings
    by class."""
    place = option("error_costs", text if len(text) < 60 else None)
    words = [word.strip() for word in text.split(",")]
    if text.startswith(COLUMN):
        return place, text
    if text.lstrip()[:1] in ("{", "["):
        return place, _json(text, place)
    try:
        numbers = [*map(float, words)]
    except ValueError:
        if not Path(text).is_file():
            raise UsageError(f"{place}: no such file, and not a number; {_FORMS}") from None
    else:
        return place, numbers if len(numbers) > 1 else numbers[0]
    content = read_text(text, encoding)
    if text.lower().endswith(".json"):
        return text, _json(content, text)
    return text, _table(content, text)


def _json(text: str, place: str) -> Any:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: not JSON ({error}); correct it") from error
    return content


def _table(text: str, place: str) -> dict[str, dict[str, Any]]:
    """Return the rows of a CSV table by true class and answer."""
    head = text.strip().partition("\n")[0]
    lines = csv.reader(text.strip().splitlines(), delimiter=max(",;\t", key=head.count))
    (_, *answers), *rows = [[cell.strip() for cell in line] for line in lines if line] or [[""]]
    table = dict[str, dict[str, Any]]()
    for number, (true, *cells) in enumerate(rows, start=2):
        if true in table or len(cells) != len(answers):
            fault = (
                "is given twice" if true in table else f"has {len(cells)} of {len(answers)} costs"
            )
            raise InputError(f"{place}, line {number}: class {true!r} {fault}; correct it")
        table[true] = dict(zip(answers, cells, strict=True))
    if len({*answers}) < len(answers) or not table:
        raise InputError(f"{place}: not a table of the true class (rows) and the answer (columns)")
    return table


@dataclass(frozen=True, slots=True, eq=False)
class ErrorCosts:
    """Costs of answers. ``matrix`` (K, K) by true class and answer; ``column`` (K, K) the number of
    the column of ``Examples.price_columns`` that holds the cost of each row instead, or -1."""

    matrix: FloatArray
    column: IntArray

    @classmethod
    def of(cls, costs: Matrix, train: Examples, columns: Sequence[str]) -> ErrorCosts:
        """Return costs; the means of columns are over the training rows of the true class."""
        k = len(costs)
        matrix, column = np.zeros((k, k)), np.full((k, k), -1)
        for true, row in enumerate(costs):
            for answer, entry in enumerate(row):
                if not isinstance(entry, str):
                    matrix[true, answer] = entry
                    continue
                name = entry[len(COLUMN) :].strip()
                if name not in columns or train.price_columns is None:
                    what = unknown("column of costs", name, columns)
                    raise InputError(f"{option('error_costs')}: {what}; such costs need a file")
                column[true, answer] = columns.index(name)
                weights = train.weights * (train.y == true)
                paid = train.price_columns[:, column[true, answer]]
                matrix[true, answer] = np.average(paid, weights=weights) if weights.any() else 0.0
        return cls(matrix, column)

    def answers(self, scores: FloatArray) -> IntArray:
        """Return the answer (n,) of least expected cost, by scores (n,) or (n, K)."""
        return answers_of_least_cost(scores, self.matrix)

    def billed(self, y: FloatArray, answers: IntArray, paid: FloatArray | None) -> FloatArray:
        """Return the cost of each row's answer (n,); ``paid`` (n, c) are ``price_columns``."""
        true = y.astype(np.int64)
        costs, at = self.matrix[true, answers], self.column[true, answers]
        if paid is not None and (at >= 0).any():
            costs = np.where(at >= 0, paid[np.arange(len(true)), np.maximum(at, 0)], costs)
        return np.asarray(costs, dtype=np.float64)


def answers_of_least_cost(scores: FloatArray, matrix: FloatArray) -> IntArray:
    """Return the answer (n,) of least expected cost under the probabilities that scores (n,) or
    (n, K) stand for; the lowest class in ties."""
    logits = np.stack([np.zeros(len(scores)), scores], axis=1) if scores.ndim == 1 else scores
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected = np.zeros((len(scores), matrix.shape[1]))
    for true, costs in enumerate(matrix):  # in this order, as exported models do
        expected += shares[:, [true]] * costs
    return np.asarray(expected.argmin(axis=1), dtype=np.int64)
