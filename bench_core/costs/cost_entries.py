"""The costs in a file as they are written, one entry each; ``cost_file.py`` has the forms."""

from __future__ import annotations

import csv
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_core.errors import InputError

LARGEST_COST = 1e100
"""Sums over rows and features stay far below what float64 can hold."""
HEADERS = ("name", "feature", "index")


@dataclass(frozen=True, slots=True)
class Entry:
    """One cost as written. Where the file has no names, ``name`` is the position from 1."""

    name: str
    cost: float
    place: str  # "FILE, line 3"
    positional: bool = False


@dataclass(frozen=True, slots=True)
class CostFile:
    """A cost file's text, and how messages name places in it.

    ``table``: its parsed content where the text holds more than that (a suite).
    """

    path: Path
    text: str
    table: Mapping[str, Any] | None = None

    def lines(self) -> Iterator[tuple[int, str]]:
        """The lines that say something, by number."""
        for number, line in enumerate(self.text.splitlines(), start=1):
            if line.strip() and not line.lstrip().startswith("#"):
                yield number, line.strip()

    def at(self, line: int) -> str:
        """The place of a line."""
        return f"{self.path}, line {line}"

    def near(self, name: str) -> str:
        """The place of a key or text in JSON or TOML."""
        found = re.search(rf"{re.escape(json.dumps(name))}|\b{re.escape(name)}\s*=", self.text)
        if found is None:
            return str(self.path)
        return self.at(self.text.count("\n", 0, found.start()) + 1)


def repeated(entry: Entry) -> str:
    """The message for a feature's second cost."""
    return f"{entry.place}: feature {entry.name!r} has a second cost; keep one line"


def document_of(file: CostFile) -> Any:
    """The parsed JSON or TOML, or None where the file is neither."""
    if file.table is not None:
        return file.table
    if file.path.suffix.lower() == ".toml":
        try:
            return tomllib.loads(file.text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{file.path}: not a TOML file: {error}; correct it") from error
    if file.path.suffix.lower() != ".json" and file.text.lstrip()[:1] not in ("{", "["):
        return None

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for key, value in pairs:
            if key in seen:
                raise InputError(repeated(Entry(key, 0, file.near(key))))
            seen[key] = value
        return seen

    try:
        return json.loads(file.text, object_pairs_hook=once)
    except json.JSONDecodeError as error:
        raise InputError(f"{file.at(error.lineno)}: not JSON ({error.msg}); correct it") from error
    except (RecursionError, ValueError) as error:
        deep = isinstance(error, RecursionError)
        what = "brackets in brackets" if deep else "a number of too many digits"
        raise InputError(f"{file.path}: not costs ({what}); correct it") from error


def entries_of(file: CostFile, document: Any) -> list[Entry]:
    """The costs of a file, or of its parsed JSON (all of it, or its ``costs``)."""
    entries = list(_parse(file, document))
    if not entries:
        raise InputError(
            f"{file.path}: no costs in this file; write one line name,cost per feature"
        )
    return entries


def _parse(file: CostFile, document: Any) -> Iterator[Entry]:
    if isinstance(document, Mapping):
        for name, value in document.items():
            yield entry_of(name, value, file.near(name))
    elif isinstance(document, list):
        for position, value in enumerate(document, start=1):
            yield entry_of(str(position), value, f"{file.path}, entry {position}", True)
    elif document is not None:
        raise InputError(f"{file.path}: a mapping or a list of costs is wanted; see --help")
    else:
        yield from _parser_for(file)(file)


def _parser_for(file: CostFile) -> Callable[[CostFile], Iterator[Entry]]:
    first = next((line for _, line in file.lines()), "")
    if file.path.suffix.lower() in (".csv", ".tsv") or "," in first or "\t" in first:
        return _csv_lines
    return _named_lines if ":" in first else _bare_lines


def _csv_lines(file: CostFile) -> Iterator[Entry]:
    for order, (number, line) in enumerate(file.lines()):
        cells = next(csv.reader([line], delimiter="\t" if "\t" in line else ","))
        if len(cells) != 2:
            raise InputError(
                f"{file.at(number)}: {len(cells)} cells instead of name,cost; correct the line"
            )
        name, cost = (cell.strip() for cell in cells)
        if not (order == 0 and name.lower() in HEADERS and _number(cost) is None):
            yield entry_of(name, cost, file.at(number))


def _named_lines(file: CostFile) -> Iterator[Entry]:
    for number, line in file.lines():
        name, colon, cost = line.rpartition(":")
        if not colon:
            raise InputError(f"{file.at(number)}: {line!r} is not name:cost; correct the line")
        yield entry_of(name.strip(), cost.strip(), file.at(number))


def _bare_lines(file: CostFile) -> Iterator[Entry]:
    for position, (number, line) in enumerate(file.lines(), start=1):
        yield entry_of(str(position), line, file.at(number), True)


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def entry_of(name: str, value: Any, place: str, positional: bool = False) -> Entry:
    """One cost, checked: a finite number from 0 to ``LARGEST_COST``."""
    cost = _number(value)
    if cost is None:
        raise InputError(f"{place}: feature {name!r} costs {value!r}, not a number; correct it")
    if not 0 <= cost < math.inf:
        raise InputError(
            f"{place}: feature {name!r} costs {value}; costs are finite and >= 0, correct it"
        )
    if cost > LARGEST_COST:
        raise InputError(
            f"{place}: feature {name!r} costs {value}, more than can be added up; give all costs "
            "in a larger unit"
        )
    return Entry(name, cost, place, positional)
