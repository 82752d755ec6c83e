"""Prices in lines of text: ``name,cost``, bare costs, and tables from spreadsheets.

A table has a header that names the columns of features and prices. Its separator is a semicolon, a
tab, a comma or ``|``; other columns are ignored. Prices may have a currency and decimal commas.
"""

import csv
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from bench_core.errors import InputError

Entry = tuple[str, str | None, Any]
"""Location of a cost ("FILE, line 3"), the feature's name if the file has names, and the cost."""

FEATURE_WORDS = ("name", "feature", "features", "index", "column", "variable", "sensor")
PRICE_WORDS = ("cost", "costs", "price", "prices", "fee", "fees")
_SEPARATORS = ";\t,|"
_EXCEL = re.compile(r'"?sep=.["]?')
_UNIT = re.compile(r"[(\[]\s*([^)\]]+?)\s*[)\]]|([$€£¥])")  # in a header: price (EUR)
_CURRENCY = r"[$€£¥]|[A-Z]{3}"
_PRICE = re.compile(
    rf"({_CURRENCY})?\s*([-+]?\d[\d.,'\s]*(?:[eE][-+]?\d+)?|[-+]?\.\d+)\s*({_CURRENCY})?"
)
_GROUPED = re.compile(r"[-+]?[1-9]\d{0,2}([.,])\d{3}")  # 1,234: other prices show which mark it is


def listed(lines: Sequence[tuple[str, str]]) -> tuple[list[Entry], str]:
    """Parse lines with their locations into costs and their unit ("" if none is given).

    Raises InputError for a line of another form, and for two currencies.
    """
    lines = lines[1:] if lines and _EXCEL.fullmatch(lines[0][1]) else lines
    if not lines:
        return [], ""
    separator, header, feature, price = _layout(lines)
    unit = ""
    if price < 0:
        rows = _plain_rows(lines, separator)
    else:
        found = _UNIT.search(header[price]) if price < len(header) else None
        unit = next(filter(None, found.groups()), "") if found else ""
        rows = _table_rows(lines[1:], separator, len(header), feature, price)
    texts, currency = _amounts(rows)
    return [(place, name, text) for (place, name, _), text in zip(rows, texts, strict=True)], (
        unit or currency
    )


def unused_columns(lines: Sequence[tuple[str, str]]) -> list[str]:
    """Return the titles of a table's columns that hold neither features nor prices."""
    lines = lines[1:] if lines and _EXCEL.fullmatch(lines[0][1]) else lines
    _, header, *used = _layout(lines) if lines else ("", [])
    return [cell for k, cell in enumerate(header) if cell and k not in used and used[1] >= 0]


def _layout(lines: Sequence[tuple[str, str]]) -> tuple[str, list[str], int, int]:
    """The separator and cells of the first line, and the columns of features and of prices, -1 if
    it is not a header: a line with a word for features or prices, or, in any language, one above
    the only column of prices."""
    line = lines[0][1]
    separator = next((mark for mark in _SEPARATORS if len(_cells(line, mark)) > 1), ",")
    header = _cells(line, separator)
    titles = [{*re.split(r"[\W_]+", cell.lower())} for cell in header]
    feature, price = (
        next((k for k, title in enumerate(titles) if title & {*known}), -1)
        for known in (FEATURE_WORDS, PRICE_WORDS)
    )
    if any(map(_is_price, header)):
        return separator, header, -1, -1
    if max(feature, price) < 0:
        below = [_cells(text, separator) for _, text in lines[1:]]
        columns = range(len(header) if len(below) > 1 else 0)
        found = [k for k in columns if all(len(b) > k and _is_price(b[k]) for b in below)]
        if len(found) != 1 or len(header) < 2:
            return separator, header, -1, -1
        price = found[0]
    feature = feature if feature >= 0 else int(price == 0)
    return separator, header, feature, price if price >= 0 else int(feature == 0)


def _cells(line: str, separator: str) -> list[str]:
    with suppress(csv.Error):
        reader = csv.reader([line], delimiter=separator, skipinitialspace=True, strict=True)
        return [cell.strip() for cell in next(reader)]
    return [cell.strip() for cell in line.split(separator)]


def _is_price(text: str) -> bool:
    return _PRICE.fullmatch(text.strip()) is not None


def _table_rows(
    lines: Sequence[tuple[str, str]], separator: str, columns: int, feature: int, price: int
) -> list[Entry]:
    """Name and price in each line below a header."""
    rows: list[Entry] = []
    for place, line in lines:
        cells = _cells(line, separator)
        if columns == 2 and len(cells) != 2:  # a name may contain separators
            name, cost = _name_and_cost(line)
            cells = [name or "", cost] if feature == 0 else cells
        if len(cells) <= max(feature, price):
            mark = "tabs" if separator == "\t" else f"'{separator}'"
            raise InputError(
                f"{place}: {len(cells)} cells where the header has {columns}; complete the line: "
                f"columns are separated by {mark}"
            )
        rows.append((place, cells[feature], cells[price]))
    return rows


def _plain_rows(lines: Sequence[tuple[str, str]], separator: str) -> list[Entry]:
    """Name and price in each line without a header: the first two of several cells, or
    ``name,cost``, ``name:cost``, or a bare cost."""
    rows: list[Entry] = []
    first = _cells(lines[0][1], separator)
    several = len(first) > 2 and _is_price(first[1]) and not _is_price(first[-1])
    for place, line in lines:
        cells = _cells(line, separator)
        name, cost = (cells[0], cells[1]) if several and len(cells) > 1 else _name_and_cost(line)
        if rows and bool(rows[0][1]) != bool(name):
            raise InputError(f"{place}: {line!r} is not name,cost like the others; correct it")
        rows.append((place, name, cost))
    return rows


def _name_and_cost(line: str) -> tuple[str | None, str]:
    """Split a line into name and cost. A quoted name may contain separators; other names end at the
    last separator before a price."""
    for separator in ",:;\t|" if '"' in line else "":
        cells = _cells(line, separator)
        if len(cells) == 2 and line.count('"') != sum(cell.count('"') for cell in cells):
            return cells[0], cells[1]
    for separator in ";\t:|,":
        name, found, cost = line.rpartition(separator)
        if found and _is_price(cost):
            return name.strip(), cost.strip()
    at = max(map(line.rfind, ",:;\t|"))
    return line[:at].strip() if at >= 0 else None, line[at + 1 :].strip(' \t"')


def _amounts(rows: Sequence[Entry]) -> tuple[list[str], str]:
    """Return prices with decimal points, other text unchanged, and the currency.

    ``0,50`` and ``1.234,50`` show that commas are decimal, ``1,234.50`` that points are. If no
    price shows it, ``1,234`` is left unchanged and is not a number.
    """
    texts = [str(cost).strip() for *_, cost in rows]
    matches = [_PRICE.fullmatch(text) for text in texts]
    signs: dict[str, str] = {}  # first location of each currency
    numbers = []
    for (place, *_), text, match in zip(rows, texts, matches, strict=True):
        if match is not None and (sign := match[1] or match[3]):
            signs.setdefault(sign, place)
        numbers.append(text if match is None else re.sub(r"['\s]", "", match[2]))
    if len(signs) > 1:
        (first, _), (second, place) = [*signs.items()][:2]
        raise InputError(f"{place}: a price in {second} where others are in {first}; convert it")
    clear = [
        n for n, match in zip(numbers, matches, strict=True) if match and not _GROUPED.fullmatch(n)
    ]
    commas = any("," in n and n.rfind(",") > n.rfind(".") and n.count(",") == 1 for n in clear)
    points = any("." in n and n.rfind(".") > n.rfind(",") and n.count(".") == 1 for n in clear)
    amounts = []
    for number, match in zip(numbers, matches, strict=True):
        if match is not None and commas and not points:
            number = number.replace(".", "").replace(",", ".")
        elif match is not None and (points or number.count(",") > 1) and not commas:
            number = number.replace(",", "")
        amounts.append(number)
    return amounts, next(iter(signs), "")
