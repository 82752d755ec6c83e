"""A user's own files as a data set: ``--data train.svm --test test.svm``.

Formats: SVMlight (with ``qid`` or a side-car of group sizes), CSV with a header, Parquet.
``user_data`` describes splits, the encoding of text and the choice of the task.
"""

from collections.abc import Container, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bench_core._io.text import PACKED, other_format, read_beginning
from bench_core.costs.cost_file import price_columns_of
from bench_core.datasets.data_folder import local_path
from bench_core.datasets.pricing import under_groups, with_costs
from bench_core.datasets.readers.number_formats import with_days, with_decimal_commas
from bench_core.datasets.readers.svmlight import find_side_car, read_svmlight
from bench_core.datasets.readers.tables import DataTable, read_table
from bench_core.datasets.splitting import hashed
from bench_core.datasets.table_options import USUAL, TableOptions
from bench_core.datasets.user_data import (
    MERGED,
    Part,
    TablePart,
    columns_of_prices,
    prices_of_rows,
    splits_of,
)
from bench_core.errors import InputError, one_line, option, unknown
from bench_core.option_fields import FILE, choice, declared, listed
from bench_core.protocols import Source
from bench_core.splits import SPLITS, Splits

LABELS = ("label", "target", "y", "class", "relevance", "grade")
QUERIES = ("query", "qid", "query_id")
SPLIT = "split"
ROLES = ("label", "query", "split")  # options that name a column
PATHS = ("train", "valid", "test", "costs")  # fields of ``FileData``
TABLES = (".csv", ".tsv", ".parquet", ".pq")
SVMLIGHT = (".svm", ".svmlight", ".libsvm", ".letor")
PRICES = ".prices.csv"
"""End of the name of a file with the prices by row of an SVMlight file."""
UNUSED = (".weight", ".init", ".position", ".base_margin")  # of LightGBM and XGBoost


@dataclass(frozen=True)
class FileData(TableOptions):
    """Files of the user, and how they are read."""

    train: str = declared("", "Data file.", FILE, long="file")
    valid: str = declared("", "Validation file.", FILE)
    test: str = declared("", "Test file.", FILE)
    format: str = declared(
        "", "By default found by suffix or content.", choice("svmlight", "csv", "parquet")
    )
    costs: str = declared("", "Cost file.", FILE)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_division([n for n in ("split", "valid", "test") if getattr(self, n)])

    @property
    def folds(self) -> int:
        """Folds of cross-validation, 1 without."""
        return self.cv or 1

    @property
    def depends_on(self) -> tuple[str, ...]:
        """Inputs that change the arrays."""
        return ("fold",) if self.folds > 1 else ()

    @property
    def name(self) -> str:
        """Name of the first file."""
        return one_line(Path(self.train).name)

    @property
    def title(self) -> str:
        """Title in reports."""
        return ", ".join(one_line(Path(path).name) for path in self._paths)

    @property
    def _paths(self) -> list[str]:
        return [path for path in (self.train, self.valid, self.test) if path]

    @property
    def files(self) -> tuple[str, ...]:
        """Absolute paths of the files, their side-cars and the costs."""
        given = [local_path(p).absolute() for p in self._paths]
        beside = [side for p in given if (side := find_side_car(p)) is not None]
        costs = [local_path(self.costs).absolute()] if self.costs else []
        return tuple(str(p) for p in (*given, *beside, *costs))

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Read the files; ``source``, ``size`` and ``seed`` are ignored.

        Raises InputError for unusable files, with file, line and remedy.
        """
        columns: dict[str, None] = {}  # of all files
        by_row = self.prices_by_row
        if self.costs:
            by_row = price_columns_of(local_path(self.costs), self.encoding) or by_row
        options: TableOptions = replace(self, prices_by_row=by_row)
        parts: dict[str, Part | TablePart] = {}
        for name in SPLITS:
            if path := getattr(self, name):
                part = read_part(local_path(path), options, self.format, columns)
                parts[name] = part
                if isinstance(part, TablePart):  # the others have the same label
                    options = replace(options, label=part.label.name)
        for word, texts in (("drop", self.drop), ("keep_column", self.keep_column)):
            for name in _names_in(texts, columns):
                if name not in columns:
                    raise InputError(
                        f"{self.train}: {option(word)}: {unknown('column', name, columns)}"
                    )
        keep = (*_names_in(self.keep_column, columns),)
        options = replace(self, keep_column=keep, prices_by_row=by_row)
        splits = splits_of(parts, options, fold)
        if self.costs:
            splits = with_costs(splits, self.costs, encoding=self.encoding, groups=self.groups)
        else:
            splits = under_groups(splits, self.groups)
        return splits.in_unit(self.unit) if self.unit else splits


def _names_in(texts: Sequence[str], columns: Container[str]) -> list[str]:
    return [name for text in texts for name in listed(text, columns.__contains__)]


def read_part(
    path: Path, options: TableOptions, format: str = "", columns: dict[str, None] | None = None
) -> Part | TablePart:
    """Read a file. The format is given, or inferred from the suffix or the first line.

    Names of all its columns are added to ``columns``. Raises InputError for unusable content, for
    missing names and for options of another format.
    """
    import pandas as pd

    columns = {} if columns is None else columns
    if other := other_format(path):
        raise InputError(
            f"{path}: {other}, which is not read; save its rows as CSV, Parquet or SVMlight"
        )
    if format in ("csv", "parquet") or (not format and is_table(path)):
        for name in ("index_base", "unwritten"):
            if (value := getattr(options, name)) != getattr(USUAL, name):
                raise InputError(f"{path}: {option(name, value)} is for SVMlight; leave it out")
        text = {options.query, options.split, *QUERIES, SPLIT}
        table = read_table(path, format, text, options.decimal == ",", options.encoding)
        columns.update(dict.fromkeys(table.names))
        return _table_part(table, options)
    for name in ("decimal", "dates", "encoding"):
        if value := getattr(options, name):
            raise InputError(f"{path}: {option(name, value)} is for CSV and Parquet; leave it out")
    for name in ROLES:
        if column := getattr(options, name):
            raise InputError(
                f"{path}: {option(name, column)} names a column, but an SVMlight file has no "
                "column names; leave it out"
            )
    first, fill = options.index_base, np.nan if options.unwritten == "missing" else 0.0
    rows = read_svmlight(path, index_base=first, unwritten=fill)
    count = len(rows.y) if rows.queries is None else len(rows.queries)
    ids = np.arange(count) if rows.qids is None else rows.qids
    ids = ids % 2**64 if ids.dtype == object else ids
    frame = pd.DataFrame(rows.X, columns=[str(j + first) for j in range(rows.X.shape[1])])
    columns.update(dict.fromkeys(frame.columns))
    frame = frame.drop(columns=[n for n in _names_in(options.drop, columns) if n in frame])
    unused = [f"{path.name}{end}" for end in UNUSED if Path(f"{path}{end}").is_file()]
    notes = [f"{name} is not used: all rows count alike" for name in unused]
    notes += [f"feature {j + first} of {path.name}: {MERGED}" for j in sorted(rows.merged)]
    numbered = Part(path, frame, rows.y, rows.queries, hashed(ids), None, rows.place)
    if options.prices_by_row:
        columns_read = columns_of_prices(_side_table(path, len(rows.y)), options.prices_by_row)
        numbered = replace(numbered, prices=prices_of_rows(columns_read, frame))
    query = "" if rows.qids is None else "qid"
    return replace(numbered, numbered=True, unwritten=fill, notes=tuple(notes), query=query)


def _side_table(path: Path, rows: int) -> DataTable:
    """Read the prices by row of an SVMlight file, a CSV file next to it."""
    side = Path(f"{path}{PRICES}")
    if not side.is_file():
        what = "has columns of prices: write them, with a header, into"
        raise InputError(f"{path}: the cost file {what} {side.name} next to it")
    table = read_table(side, "csv", set())
    if len(table) != rows:
        raise InputError(f"{side}: {len(table)} rows of prices for {rows} rows in {path.name}")
    return table


def is_table(path: Path) -> bool:
    """True for CSV or Parquet, False for SVMlight, by its suffix or first line."""
    beginning = read_beginning(path, 1 << 20)
    if beginning.startswith(b"PAR1"):
        return True
    suffixes = [s.lower() for s in path.suffixes if s.lower() not in PACKED]
    if suffixes and suffixes[-1] in (*TABLES, *SVMLIGHT):
        return suffixes[-1] in TABLES
    first = next((t for t in beginning.splitlines() if t.partition(b"#")[0].strip()), b"")
    cells = first.partition(b"#")[0].split()
    if not cells or (len(cells) > 1 and b":" in cells[1] and b"," not in cells[0]):
        return False
    if any(mark in first for mark in (b",", b";", b"\t", b"|")):
        return True
    if len(cells) <= 1:  # an empty file or a label without cells: the reader raises
        return False
    raise InputError(
        f"{path}, line 1: neither index:value cells nor a CSV header; "
        "give SVMlight, CSV with a header, or Parquet"
    )


def _table_part(table: DataTable, options: TableOptions) -> TablePart:
    path = table.path
    if len(table.names) == 1:
        raise InputError(
            f"{path}, line 1: one column only, {table.names[0]!r:.60}; separate cells by commas, "
            "semicolons or tabs"
        )
    drop = _names_in(options.drop, table.names)
    roles = dict.fromkeys(drop, "drop")  # of columns
    for role in ROLES:
        column = getattr(options, role)
        if column and column not in table.names:
            what = unknown("column", column, table.names)
            raise InputError(f"{path}, line 1: {option(role)}: {what}")
        if column in roles:
            both = f"{option(role)} and {option(roles[column])}"
            raise InputError(f"{path}: {both} name the same column {column!r}; choose one")
        if column:
            roles[column] = role
    notes: list[str] = []
    there = [name for name in table.names if name not in drop]
    free = [name for name in there if name not in roles]
    guessed = (
        "" if options.query else _first(free, QUERIES),
        "" if options.split else _first(free, (SPLIT,)),
    )
    query, split = options.query or guessed[0], options.split or guessed[1]
    left_out = {query, split, *drop, *(priced.column for priced in options.prices_by_row)}
    label = options.label or _first(free, LABELS)
    if not options.label:
        label = label or next((n for n in reversed(there) if n not in left_out), "")
        notes.append(f"label: column {label!r} of {path.name}")
    names = tuple(n for n in table.names if n not in left_out and n != label)
    prices = columns_of_prices(table, options.prices_by_row, {label, query, split})
    if options.decimal == ",":
        table = with_decimal_commas(table, {query, split})
    if options.dates:
        table, of_dates = with_days(table, {label, *left_out})
        notes += of_dates
    if not names:
        raise InputError(f"{path}, line 1: no feature columns besides the label; add some")
    return TablePart(
        table,
        names,
        table.column(label),
        table.column(query) if query else None,
        table.column(split) if split else None,
        tuple(notes),
        guessed=guessed,
        prices=prices,
    )


def _first(columns: Sequence[str], names: tuple[str, ...]) -> str:
    return next((n for wanted in names for n in columns if n.lower() == wanted), "")
