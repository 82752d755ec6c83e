"""One file of a user's own data in any format: features, labels, queries, split column."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_core._io.text import read_beginning
from bench_core.arrays import Float32Array
from bench_core.data import Queries
from bench_core.datasets.readers.svmlight import grouped, read_svmlight
from bench_core.datasets.readers.tables import Table, read_table
from bench_core.datasets.readers.texts import TextArray
from bench_core.datasets.splitting import hashed
from bench_core.errors import InputError, unknown

LABELS = ("label", "target", "y", "class", "relevance", "grade")
QUERIES = ("query", "qid", "query_id")
SPLIT = "split"
SMALLEST = 50
"""Of fewer rows a column may number them by chance or on purpose."""

TABLES = (".csv", ".tsv", ".parquet", ".pq")
FORMATS = ("svmlight", "csv", "parquet")


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows of one file.

    ``labels`` (n,) are float64 or text. ``unit`` uint64 is one hash per query, or per row where
    there are no queries: what a random split goes by. ``split`` (n,) text or None. ``place`` turns
    a row number into "FILE, line N". ``texts`` are the columns of text by name, (n,) with "" for a
    missing cell; their columns of X are NaN.
    """

    path: Path
    X: Float32Array
    labels: NDArray[Any]
    queries: Queries | None
    unit: NDArray[np.uint64]
    names: tuple[str, ...]
    split: NDArray[Any] | None
    place: Callable[[int], str]
    numbered: bool = False  # columns are known by number, and those beyond the last are 0
    notes: tuple[str, ...] = ()
    texts: Mapping[str, TextArray] = field(default_factory=dict)
    dropped: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.X)

    def choose(self, units: NDArray[np.bool_]) -> Part:
        """The rows of some queries (or some rows), in order."""
        rows, queries = units, self.queries
        if queries is not None:
            rows, queries = (
                np.repeat(units, queries.sizes),
                Queries.from_sizes(queries.sizes[units]),
            )
        numbers = np.flatnonzero(rows)
        return replace(
            self,
            X=self.X[rows],
            labels=self.labels[rows],
            queries=queries,
            unit=self.unit[units],
            split=None if self.split is None else self.split[rows],
            texts={name: column[rows] for name, column in self.texts.items()},
            place=lambda row: self.place(int(numbers[row])),
        )


def read_part(
    path: Path,
    columns: Mapping[str, str],
    index_base: int,
    format: str,
    drop: Sequence[str] = (),
) -> Part:
    """Read a file. The format is the given one, or follows from the suffix or the first line.

    ``columns`` are the names of label, query and split, "" where none is given, by the option that
    gives them; features of ``drop`` are left out. Raises InputError for content that cannot be
    used, and for names that are not there.
    """
    _refuse_other_formats(path)
    if format in ("csv", "parquet") or (not format and _is_table(path)):
        return _table_part(path, columns, format, drop)
    for option, column in columns.items():
        if column:
            raise InputError(
                f"{path}: {option} {column} names a column, an SVMlight file has none; leave it out"
            )
    rows = read_svmlight(path, index_base=index_base)
    count = len(rows) if rows.queries is None else len(rows.queries)
    ids = np.arange(count) if rows.qids is None else rows.qids
    names = tuple(str(j + index_base) for j in range(rows.X.shape[1]))
    left_out = set(drop)
    kept = [j for j, name in enumerate(names) if name not in left_out]
    return Part(
        path,
        rows.X if len(kept) == len(names) else rows.X[:, kept],
        rows.y,
        rows.queries,
        hashed(ids),
        tuple(names[j] for j in kept),
        None,
        rows.place,
        numbered=not drop,
        dropped=tuple(name for name in names if name in left_out),
    )


_OTHER_FORMATS = {
    b"ARROW1": "an Arrow or Feather file",
    b"PK\x03\x04": "a zip archive, as .xlsx and .npz files are",
    b"\x93NUMPY": "a NumPy array",
    b"\x89HDF": "an HDF5 file",
    b"\x80": "a pickle, which could run any code",
    b"{": "JSON",
    b"[": "JSON",
    b"@": "an ARFF file",
}


def _refuse_other_formats(path: Path) -> None:
    """Name the format of a file that is read as none of ours, by how it begins."""
    beginning = read_beginning(path, 64).removeprefix(b"\xef\xbb\xbf").lstrip()
    for start, what in _OTHER_FORMATS.items():
        if beginning.startswith(start):
            raise InputError(f"{path}: {what}; save the rows as CSV, Parquet or SVMlight")


def _is_table(path: Path) -> bool:
    suffixes = [s.lower() for s in path.suffixes if s != ".gz"]
    if suffixes and suffixes[-1] in (*TABLES, ".svm", ".svmlight", ".libsvm", ".letor"):
        return suffixes[-1] in TABLES
    beginning = read_beginning(path, 1 << 20)
    first = next((t for t in beginning.splitlines() if t.strip()), b"")
    cells = first.partition(b"#")[0].split()
    if not cells or (len(cells) > 1 and b":" in cells[1] and b"," not in cells[0]):
        return False
    if any(mark in first for mark in (b",", b";", b"\t")):
        return True
    if len(cells) <= 1:  # an empty file, a label without cells: the reader refuses it
        return False
    raise InputError(
        f"{path}, line 1: neither index:value cells nor a CSV header; "
        "give SVMlight, CSV with a header, or Parquet"
    )


def _table_part(path: Path, columns: Mapping[str, str], format: str, drop: Sequence[str]) -> Part:
    table = read_table(path, format)
    for option, column in columns.items():
        if column and column not in table.names:
            what = unknown("column", column, table.names)
            raise InputError(f"{path}, line 1: {option}: {what}")
    label, query, split = columns.values()
    notes: list[str] = []
    query = query or _named(table, QUERIES)
    split = split or _named(table, (SPLIT,))
    left_out = {query, split, *drop}
    if not label:
        label = _named(table, LABELS) or next(
            (n for n in reversed(table.names) if n not in left_out), ""
        )
        notes.append(f"label: column {label!r} of {path.name}")
    names = tuple(n for n in table.names if n not in left_out and n != label)
    if not names:
        raise InputError(f"{path}, line 1: no feature columns beside the label; add some")
    X, texts = table.features(names)
    notes += _identifiers(X, names)
    queries, unit, dropped = None, hashed(np.arange(len(table))), set(drop)
    if query:
        queries, ids = grouped(table.texts(query), table.place)
        digests = (blake2b(str(name).encode(), digest_size=8).digest() for name in ids)
        unit = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
    return Part(
        path,
        X,
        table.texts(label)
        if table.is_text(label)
        else np.asarray(table.numbers(label, missing=False)),
        queries,
        unit,
        names,
        table.texts(split) if split else None,
        table.place,
        notes=tuple(notes),
        texts=texts,
        dropped=tuple(n for n in table.names if n in dropped),
    )


def _identifiers(X: Float32Array, names: Sequence[str]) -> Iterator[str]:
    """A note for each column that numbers the rows."""
    for j, name in enumerate(names):
        column = X[:, j]
        if len(X) > SMALLEST and np.array_equal(np.sort(column), column.min() + np.arange(len(X))):
            yield f"column {name!r} numbers the rows: --drop {name} leaves it out"


def _named(table: Table, names: tuple[str, ...]) -> str:
    return next((n for wanted in names for n in table.names if n.lower() == wanted), "")
