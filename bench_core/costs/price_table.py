"""Price lists: tables of any source as names, prices, groups and a unit.

A table may be lines of text (``name,cost``, bare costs, a spreadsheet's table), records of JSON, or
a frame. The column that holds the names of the data names the features, whatever it is called and
whatever stands before it. Titles decide only among columns that fit equally well.
"""

import csv
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from typing import Any, NamedTuple

from bench_core.costs.amounts import (
    BRACKETS,
    PRICE_WORDS,
    SIGN,
    amounts,
    is_empty,
    is_price,
    unit_of_title,
)
from bench_core.errors import InputError

Entry = tuple[str, str | None, Any]
"""Location of a cost ("FILE, line 3", "" if the name is enough to find it), the feature's name if
the list has names, and the cost."""

Row = tuple[str, list[Any]]
"""Location and cells."""

SEPARATORS = ";\t|,:"
_FEATURE_WORDS = {"name", "feature", "features", "column", "variable", "sensor"}
_UNIT_TITLES = {"unit", "units", "currency", "währung", "einheit"}
_EXCEL = re.compile(r'"?sep=.["]?')
_NUMBERED = re.compile(r"f?(\d+)", re.ASCII)  # feature 7 of an SVMlight file: 7 or f7


class PriceColumn(NamedTuple):
    """A sensor whose prices stand in a column of the data."""

    sensor: str
    column: str
    features: tuple[str, ...]  # names or patterns, as ``gpt4o_*``
    quoted: bool = False  # known before the purchase
    requires: tuple[str, ...] = ()  # sensors or features bought before

    def among(self, names: Sequence[str]) -> list[str]:
        """Names that its features list."""
        patterns = [".*".join(map(re.escape, text.split("*"))) for text in self.features]
        whole = re.compile("|".join(patterns), re.DOTALL)
        return [name for name in names if whole.fullmatch(name) and name != self.column]


def columns_named(sensors: Iterable[PriceColumn]) -> tuple[str, ...]:
    """Return the columns of the prices of sensors, each once."""
    return tuple(dict.fromkeys(priced.column for priced in sensors))


@dataclass(frozen=True, slots=True)
class PriceList:
    """Entries of a table, its unit ("" if it has none), groups of entries (by position) that share
    a measurement, and titles of columns that hold none of these."""

    entries: list[Entry]
    unit: str = ""
    groups: list[list[int]] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)


class FeatureNames:
    """Look-up of the data's columns by the texts that name them."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.number = {name.strip(): j for j, name in enumerate(names)}
        self.number |= {name: j for j, name in enumerate(names)}
        numbers = [int(match[1]) for name in names if (match := _NUMBERED.fullmatch(name))]
        # if all columns are numbered, 7 names f7, and f7 names 7
        numbered = len({*numbers}) == len(names)
        self.by_number = {k: j for j, k in enumerate(numbers)} if numbered else {}

    def find(self, name: str) -> int | None:
        """Column of a name, None if no column has it."""
        match = _NUMBERED.fullmatch(name)
        return self.number.get(name, self.by_number.get(int(match[1])) if match else None)

    def count_from(self, names: Sequence[str]) -> None:
        """Accept numbers for columns if all ``names`` are numbers, from 0 or from 1, as many as
        there are columns, and no column is called so."""
        numbers = sorted(int(name) for name in names if re.fullmatch(r"\d+", name, re.ASCII))
        first = numbers[0] if len(numbers) == len(names) > 0 else -1
        complete = first in (0, 1) and numbers == [*range(first, first + len(self.names))]
        if complete and all(self.find(name) is None for name in names):
            self.by_number = {k: j for j, k in enumerate(numbers)}


def rows_of_lines(lines: Sequence[tuple[str, str]], features: FeatureNames) -> list[Row]:
    """Split lines of text, with their locations, into cells. The separator is the one that shows
    the most names of the data, else the first one that divides most lines."""
    lines = [*_joined(lines[1:] if lines and _EXCEL.fullmatch(lines[0][1].strip()) else lines)]
    rows: list[Row] = [(place, [line.strip()]) for place, line in lines]
    best, mark = (0, 0), ""
    for separator in SEPARATORS:
        if not any(separator in line for _, line in lines):
            continue
        holding = {(*_split(n, separator),): n for n in features.names if separator in n}
        divided = [(place, _cells(line, separator, holding)) for place, line in lines]
        named = max(_matches(divided, features), default=0)
        if (fit := (named, sum(len(cells) > 1 for _, cells in divided))) > best:
            best, rows, mark = fit, divided, separator
    if not mark:
        return rows
    bare = lines[len(rows[0][1]) == 1 :]  # without a title
    decimals = [match[1] for _, x in bare if (match := re.fullmatch(r"\s*(\d+),\d+\s*", x))]
    if mark == "," and not best[0] and len(decimals) == len(bare) and not _counts(decimals):
        return [(place, [line]) for place, line in lines]
    widths = Counter(len(cells) for _, cells in rows)
    first = len(rows[0][1])
    header = len(rows) > 1 and not any(is_price(cell) for cell in rows[0][1])
    width = first if header and first > 1 else max(widths, key=lambda w: (widths[w], -w))
    shown = "tabs" if mark == "\t" else f"'{mark}'"
    for place, cells in rows:
        if len(cells) > width == 2:  # a name of another feature holds separators
            at = 1 if is_price(cells[0]) and not is_price(cells[-1]) else len(cells) - 1
            cells[:] = [f"{mark} ".join(cells[:at]), f"{mark} ".join(cells[at:])]
        if len(cells) == 1 < width or any(cells[width:]):
            raise InputError(
                f"{place}: {len(cells)} cells where the other lines have {width}; columns are "
                f"separated by {shown}: complete the line, and put names that hold {shown} in "
                "quotes"
            )
        cells[:] = [*cells, *[""] * (width - len(cells))][:width]
    return rows


def _joined(lines: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    """Join lines whose quotes are closed in a later one."""
    records: list[tuple[str, str]] = []
    opened = False
    for place, line in lines:
        if opened:
            records[-1] = (records[-1][0], f"{records[-1][1]}\n{line}")
        else:
            records.append((place, line))
        if line.count('"') % 2 and (opened or re.search(rf'(?:^|[{SEPARATORS}])\s*"', line)):
            opened = not opened
    return lines if opened else records


def _split(text: str, separator: str) -> list[str]:
    return [cell.strip() for cell in text.split(separator)]


def _cells(line: str, separator: str, holding: Mapping[tuple[str, ...], str]) -> list[Any]:
    """Cells of a line; ``holding`` are names of the data that contain the separator, which need no
    quotes, by their words between separators."""
    cells = _split(line, separator)
    if '"' in line:
        with suppress(csv.Error):
            reader = csv.reader([line], delimiter=separator, skipinitialspace=True, strict=True)
            cells = [cell.strip() for cell in next(reader)]
    several = range(len(cells) - 1, 1, -1) if holding else ()
    for at, count in product(range(len(cells)), several):
        if (name := holding.get((*cells[at : at + count],))) is not None:
            return [*cells[:at], name, *cells[at + count :]]
    return cells


def price_table(rows: Sequence[Row], features: FeatureNames) -> PriceList:
    """Return the prices in a table, whose first row may hold titles.

    Raises InputError if two columns may be the names or the prices, for two units, and for prices
    that have two readings.
    """
    rows = [row for row in rows if not all(map(is_empty, row[1]))]
    if len(rows) > 1 and _row_matches(rows[0][1], features) > max(_matches(rows, features)):
        if len(rows) > 2:
            what = f"{len(rows) - 1} lines below a line of features; give one line of prices"
            raise InputError(f"{rows[1][0]}: {what}, or a line for each feature")
        (_, above), (place, below) = rows  # one row of prices below the names
        rows = [(place, [*pair]) for pair in zip(above, below, strict=True)]
    titles, rows = (rows[0][1], rows[1:]) if _is_header(rows, features) else ([], rows)
    if not rows:
        return PriceList([])
    width = len(rows[0][1])
    titles = [*map(str, titles or [""] * width)]
    lower = [title.strip().lower() for title in titles]
    groups = lower.index("group") if "group" in lower else -1
    units = next((k for k, title in enumerate(lower) if title in _UNIT_TITLES), -1)
    in_order = width - len({groups, units} - {-1}) <= 1  # a cost for each feature in order
    names = -1 if in_order else _names_column(rows, features, titles, {groups, units})
    price = _price_column(rows, titles, {names, groups, units})
    rows = [row for row in rows if names < 0 or name_of(row[1][names])]  # without sums
    texts = [name_of(cells[names]) if names >= 0 else None for _, cells in rows]
    places = [place for place, _ in rows]
    prices, unit = amounts([(place, cells[price]) for place, cells in rows])
    if units >= 0:
        different = {name_of(cells[units]) for _, cells in rows} - {""}
        if len(different) > 1:
            few = " and ".join(sorted(different)[:2])
            way = f"convert them to one unit, or rename column {titles[units]!r} if prices lack one"
            raise InputError(f"{places[0]}: prices in {few}; {way}")
        unit = next(iter(different), unit)
    shared: dict[str, list[int]] = {}
    for k, (_, cells) in enumerate(rows if groups >= 0 else []):
        if word := name_of(cells[groups]):
            shared.setdefault(word, []).append(k)
    for members in shared.values():  # one price of a group is the price of its members
        common = next((prices[k] for k in members if not is_empty(prices[k])), None)
        for k in members:
            prices[k] = common if is_empty(prices[k]) else prices[k]
    used = {names, price, groups, units}
    used |= {k for k in range(width) if _counts([cells[k] for _, cells in rows])}  # row numbers
    return PriceList(
        [*zip(places, texts, prices, strict=True)],
        unit_of_title(titles[price]) or unit,
        [*shared.values()],
        [title for k, title in enumerate(titles) if title.strip() and k not in used],
    )


def name_of(cell: Any) -> str:
    """Text of a cell that names a feature; 3.0 is 3."""
    if is_empty(cell):
        return ""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell).strip()


def _words(title: str) -> set[str]:
    return {*re.split(r"[\W_]+", title.lower())} - {""}


def _row_matches(cells: Sequence[Any], features: FeatureNames) -> int:
    """Number of columns of the data that cells name; names count more than numbers, which may
    be anything."""
    columns = {name: features.find(name) for name in map(name_of, cells)}
    words = {j for name, j in columns.items() if not name.isdecimal()} - {None}
    return len(words) * len(features.names) + len({*columns.values()} - {None})


def _matches(rows: Sequence[Row], features: FeatureNames) -> list[int]:
    """``_row_matches`` of each column of a table."""
    width = max((len(cells) for _, cells in rows), default=0)
    return [
        _row_matches([cells[k] for _, cells in rows if k < len(cells)], features)
        for k in range(width)
    ]


def _is_header(rows: Sequence[Row], features: FeatureNames) -> bool:
    """True if the first row holds titles: no price and no name of the data (but one that has its
    price below), or the title of prices, or a price below no name (the 0 above a series of pandas).
    """
    cells = rows[0][1] if rows else []
    prices = [cell for cell in cells if is_price(cell)]
    if prices:
        name = name_of(cells[0])
        words = _words(name) & {*_FEATURE_WORDS, "index"}
        return len(cells) > 1 and features.find(name) is None and (not name or bool(words))
    titled = any(_title_rank(cell) for cell in map(str, cells) if not re.search(r"\d", cell))
    names = [(k, cell) for k, cell in enumerate(cells) if features.find(name_of(cell)) is not None]
    if len(cells) == 1:
        return titled or not re.search(r"\d", str(cells[0]))
    below = all(any(row[k : k + 1] == [cell] for _, row in rows[1:]) for k, cell in names)
    return bool(cells) and (titled or below)


def _names_column(
    rows: Sequence[Row], features: FeatureNames, titles: Sequence[str], others: set[int]
) -> int:
    """Column with the most names of the data, else the one that is most likely to hold names."""
    matches, free = _matches(rows, features), [k for k in range(len(titles)) if k not in others]
    fits = {k: matches[k] for k in free if matches[k] and not _words(titles[k]) & PRICE_WORDS}
    best = [k for k in fits if fits[k] == max(fits.values())]
    # where data have numbers, any small number is a name: there titles come first
    titled = [
        k for k in (fits if features.by_number else best) if _words(titles[k]) & _FEATURE_WORDS
    ]
    best = [k for k in titled if fits[k] == max(fits[j] for j in titled)] or best
    texts = [[name_of(cells[k]) for _, cells in rows] for k in range(len(titles))]
    if len(best) > 1 and len(titles) > 2 and any(texts[k] != texts[best[0]] for k in best):
        called = " and ".join(repr(titles[k] or f"column {k + 1}") for k in best[:2])
        raise InputError(f"{rows[0][0]}: {called} both hold names of the data; remove one")
    if best:
        return best[0]
    # no name is met: a column of different texts, else one that counts the rows, else the first
    free = [k for k in free if not _title_rank(titles[k])] or free
    words = [k for k in free if not any(is_price(cells[k]) for _, cells in rows)]
    apart = [k for k in words if len({*texts[k]}) == len(rows)]
    return (apart or [k for k in free if _counts(texts[k])] or free)[0]


def _price_column(rows: Sequence[Row], titles: Sequence[str], others: set[int]) -> int:
    """Column of prices: by its title, else the only one of numbers that do not count the rows."""
    free = [k for k in range(len(titles)) if k not in others]
    ranks = {k: _title_rank(titles[k]) for k in free}
    best = [k for k in free if ranks[k] == max(ranks.values())]
    if not max(ranks.values(), default=0):
        filled = {k: [c for _, cells in rows if not is_empty(c := cells[k])] for k in free}
        best = [k for k in free if 2 * sum(map(is_price, filled[k])) > len(filled[k])]
        best = [k for k in best if not _counts(filled[k])] or best or free
    if len(best) == 1:
        return best[0]
    called = " or ".join(repr(titles[k] or f"column {k + 1}") for k in best[:3]) or "no column"
    raise InputError(f"{rows[0][0]}: prices may be in {called}; give that column the title price")


def _counts(cells: Sequence[Any]) -> bool:
    """True for the numbers from 0 or from 1 on, in any order."""
    texts = sorted(map(name_of, cells))
    return any(texts == sorted(map(str, range(k, k + len(texts)))) for k in (0, 1))


def _title_rank(title: str) -> int:
    """2 for a title of prices alone, 1 with other words or for a currency, 0 for other titles."""
    words, unit = _words(BRACKETS.sub("", title)), unit_of_title(title)
    if words & PRICE_WORDS:
        return 2 if words <= {*PRICE_WORDS, *_words(unit), "in"} else 1
    return int(re.fullmatch(rf"{SIGN}|euros?|dollars?", unit, re.IGNORECASE) is not None)
