"""SVMlight and LETOR files, plain or ``.gz``.

    line    = label [ "qid:" whole-number ] { index ":" value } [ "#" comment ]

Indices count from 1 (``index_base=0``: from 0) and rise on each line; cells that are not written
are 0; the value ``nan`` is a missing one. Query groups come from ``qid`` or from a file of group
sizes beside it (``FILE.query`` or ``FILE.group``). Values become the float32 nearest to the float64
nearest to the decimal number, labels float64.

pandas reads the cells as a table of two columns, index and value. Where that table is not sound,
``parse_line`` reads the lines one by one, which is slow, and refuses the first that is wrong.
"""

import csv
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_core._io.text import opened, read_text
from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.data import Examples, Queries
from bench_core.datasets.readers.tables import exact_floats
from bench_core.errors import InputError, option

SIDE_CARS = (".query", ".group")
MOST_FEATURES = 1_000_000
CHUNK = 1 << 24  # bytes that are read at once, up to the end of a line

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(?i:nan)")
WHOLE = re.compile(rb"\d{1,18}")
# The largest number that float32 rounds to a finite one.
LARGEST = float.fromhex("0x1.fffffefffffffp+127")

# The indices that labels and query ids get: on a line with rising indices all numbers rise.
LABEL, QUERY = -2_000_000_002, -2_000_000_001


@dataclass(frozen=True, slots=True, eq=False)
class SvmRows:
    """What a file holds: X float32 (n, d), y float64 (n,), queries and their ids, if any."""

    X: Float32Array
    y: FloatArray
    queries: Queries | None
    qids: IntArray | None  # (q,), None where groups come from a side-car or are absent
    place: Callable[[int], str]  # row number -> "FILE, line N"

    def examples(self) -> Examples:
        """The rows as examples."""
        return Examples(self.X, self.y, self.queries)


# Labels (n,), query ids (n,), -1 for none, and of each cell its row, index from 0 and value.
Cells = tuple[FloatArray, IntArray, IntArray, IntArray, FloatArray]


def read_svmlight(
    path: str | Path,
    *,
    index_base: int = 1,
    features: int | None = None,
    columns: IntArray | None = None,
    huge_is_missing: bool = False,
) -> SvmRows:
    """Read a file into a dense matrix.

    ``features``: how many there are (default: up to the largest index). ``columns``: which of
    them to keep, from 0, rising. ``huge_is_missing``: a value beyond float32 stands for a missing
    one, as the largest float64 does in some publishers' files; else it is an error. Raises
    InputError naming file and line for everything that is not in the module's grammar.
    """
    path = Path(path)
    if index_base not in (0, 1):
        raise ValueError("index_base is 0 or 1")

    def place(row: int) -> str:
        with opened(path) as file:
            lines = (k for k, text in enumerate(file, start=1) if text.partition(b"#")[0].strip())
            line = next(islice(lines, row, None), None)
        return str(path) if line is None else f"{path}, line {line}"

    parts: list[tuple[Float32Array, FloatArray, IntArray]] = []
    lines = width = 0
    with opened(path) as file:
        while text := file.read(CHUNK) + file.readline():
            cells = _table(text, index_base, features, huge_is_missing)
            if cells is None:
                cells = _line_by_line(path, text, lines, index_base, features, huge_is_missing)
            y, qid, row, index, value = cells
            width = max(width, features or int(index.max(initial=-1)) + 1)
            X = _zeros(path, len(y), width)
            X[row, index] = value
            parts.append((X if columns is None else X[:, columns], y, qid))
            lines += text.count(b"\n")
    rows = sum(len(y) for _, y, _ in parts)
    for size, what in (
        (len(parts), "the file is empty"),
        (rows, "no rows in this file"),
        (width, "no features in this file"),
    ):
        if not size:
            raise InputError(f"{path}: {what}; get it again or name another")
    X = parts[-1][0] if len(parts) == 1 else _zeros(path, rows, parts[-1][0].shape[1])
    at = 0
    for part, _, _ in parts if len(parts) > 1 else ():
        X[at : at + len(part), : part.shape[1]] = part
        at += len(part)
    y, qid = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
    queries, qids = _queries(path, qid, place)
    return SvmRows(X, y, queries, qids, place)


def _zeros(path: Path, rows: int, features: int) -> Float32Array:
    try:
        if features > MOST_FEATURES:
            raise MemoryError
        return np.zeros((rows, features), dtype=np.float32)
    except MemoryError as error:
        raise InputError(
            f"{path}: {rows} rows with {features} features do not fit into memory as a dense "
            "matrix; number the features from 1 without gaps"
        ) from error


def _table(
    text: bytes, index_base: int, features: int | None, huge_is_missing: bool
) -> Cells | None:
    """The rows of whole lines, or None where one of them needs a closer look."""
    import pandas as pd

    text = re.sub(rb"#[^\n]*", b"", text) if b"#" in text else text
    # each number on its own line: "2 qid:7 3:0.5" -> "LABEL:2", "QUERY:7", "3:0.5"
    text = re.sub(rb"\n\s*", b"\n%d:" % LABEL, b"\n" + text.strip())
    text = text.replace(b"qid:", b"%d:" % QUERY)
    text = text.translate(bytes.maketrans(b" \t\r\f\v", b"\n" * 5))
    try:
        table = pd.read_csv(
            BytesIO(text),
            sep=":",
            header=None,
            dtype={0: np.int64, 1: np.float64},
            keep_default_na=False,
            na_values=["nan", "NaN", "NAN"],
            quoting=csv.QUOTE_NONE,
            **exact_floats(),
        )
    except (ValueError, OverflowError, pd.errors.ParserError):
        return None
    if table.shape[1] != 2:
        return None
    index, value = (table[k].to_numpy() for k in (0, 1))
    label, query = index == LABEL, index == QUERY
    cell = ~(label | query)
    rising = label[1:] | (np.diff(index) > 0)
    y, qids, values = value[label], value[query], value[cell]
    at, large = index[cell] - index_base, np.abs(values) > LARGEST
    if (
        not rising.all()
        or not np.isfinite(y).all()
        or not ((qids >= 0) & (qids < 2**53) & (qids % 1 == 0)).all()
        or at.min(initial=0) < 0
        or (features is not None and at.max(initial=-1) >= features)
        or (large.any() and not huge_is_missing)
    ):
        return None
    row = np.cumsum(label) - 1
    qid = np.full(len(y), -1, dtype=np.int64)
    qid[row[query]] = qids
    values[large] = np.nan
    return y, qid, row[cell], at, values


def _line_by_line(
    path: Path, text: bytes, before: int, index_base: int, features: int | None, huge: bool
) -> Cells:
    """The same by ``parse_line``; ``before`` lines stand before the text."""
    read = []
    for number, line in enumerate(text.split(b"\n"), start=before + 1):
        try:
            parsed = parse_line(line, index_base, features, huge)
        except InputError as fault:
            raise InputError(f"{path}, line {number}: {fault}") from None
        read += [] if parsed is None else [parsed]
    row = np.repeat(np.arange(len(read)), [len(indices) for _, _, indices, _ in read])
    index = np.array([j for _, _, indices, _ in read for j in indices], dtype=np.int64)
    value = np.array([v for _, _, _, values in read for v in values])
    labels, qid = (np.array([line[k] for line in read]) for k in (0, 1))
    return labels, qid.astype(np.int64), row, index, value


def parse_line(
    text: bytes, index_base: int, features: int | None, huge_is_missing: bool
) -> tuple[float, int, list[int], list[float]] | None:
    """Label, query id (-1 for none), indices from 0 and values; None for a blank or comment line.

    Raises InputError, also for an index beyond ``features`` if that is given. A value beyond
    float32 is NaN if ``huge_is_missing``, else an error.
    """
    tokens = text.partition(b"#")[0].split()
    if not tokens:
        return None
    label = _number(tokens[0], "label")
    if not math.isfinite(label):
        raise InputError(f"label {_shown(tokens[0])} is not finite; correct it or remove the line")
    qid, cells = -1, tokens[1:]
    if cells and cells[0].startswith(b"qid:"):
        if not WHOLE.fullmatch(cells[0][4:]):
            raise InputError(f"{_shown(cells[0])}: a query id is a whole number >= 0; correct it")
        qid, cells = int(cells[0][4:]), cells[1:]
    indices: list[int] = []
    values: list[float] = []
    for cell in cells:
        written, colon, number = cell.partition(b":")
        if written == b"qid":
            raise InputError(f"{_shown(cell)} must follow the label, once; correct the line")
        if not colon or not WHOLE.fullmatch(written):
            raise InputError(f"{_shown(cell)} is not index:value; correct it")
        index = int(written)
        value = _number(number, f"feature {index}:")
        if abs(value) > LARGEST:
            if not huge_is_missing:
                raise InputError(f"feature {index}: {_shown(number)} is too large; correct it")
            value = math.nan
        at, last = index - index_base, indices[-1] if indices else -1
        if at < 0:
            raise InputError(
                f"index {index} in a file counted from {index_base}; "
                f"say {option('index-base', 0)} if its first feature is 0"
            )
        if at == last:
            raise InputError(f"index {index} comes twice; remove one of the two")
        if at < last:
            raise InputError(f"index {index} after {last + index_base}; sort the line by index")
        if features is not None and at >= features:
            raise InputError(f"index {index} in a file of {features} features; correct it")
        indices.append(at)
        values.append(value)
    return label, qid, indices, values


def _number(token: bytes, what: str) -> float:
    """A decimal number, infinite where it overflows, or NaN for ``nan``."""
    if not NUMBER.fullmatch(token):
        raise InputError(f"{what} {_shown(token)} is not a number; correct it")
    return float(token)


def _shown(token: bytes) -> str:
    return repr(token[:40].decode("utf-8", "replace"))


def some_queries(examples: Examples, first: int, last: int) -> Examples:
    """The rows of the queries ``first`` to ``last - 1``."""
    if examples.queries is None:
        raise ValueError("these examples have no queries")
    b = examples.queries.boundaries[first : last + 1]
    rows = slice(int(b[0]), int(b[-1]))
    m = None if examples.multiplicity is None else examples.multiplicity[rows]
    return Examples(examples.X[rows], examples.y[rows], Queries(b - b[0]), m)


def first_queries(examples: Examples, rows: int) -> Examples:
    """The first whole queries that fit into ``rows`` rows, at least one."""
    if examples.queries is None:
        raise ValueError("these examples have no queries")
    fit = np.searchsorted(examples.queries.boundaries, rows, side="right") - 1
    return some_queries(examples, 0, max(1, int(fit)))


def _queries(
    path: Path, qid: IntArray, place: Callable[[int], str]
) -> tuple[Queries | None, IntArray | None]:
    side_car = find_side_car(path)
    sizes = None if side_car is None else read_group_sizes(side_car, len(qid))
    given = qid >= 0
    if not given.any():
        return sizes, None
    if not given.all():
        raise InputError(
            f"{place(int(np.argmin(given)))}: no qid, while other lines have one; "
            "give every line its query"
        )
    queries, ids = grouped(qid, place)
    if sizes is not None and not np.array_equal(sizes.boundaries, queries.boundaries):
        raise InputError(f"{side_car}: group sizes contradict the qid of {path}; remove it")
    return queries, ids


def grouped(ids: NDArray[Any], place: Callable[[int], str]) -> tuple[Queries, NDArray[Any]]:
    """Queries from the id of each row (n,), and the ids (q,).

    Raises InputError, with the ``place`` of the row, where a query comes a second time.
    """
    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))
    names = ids[starts]
    # equal names stand next to each other in order; the second of two is a query that came before
    order = np.argsort(names, kind="stable")
    again = order[1:][names[order[1:]] == names[order[:-1]]]
    if len(again):
        group = int(again.min())
        name = names[group : group + 1].tolist()[0]
        raise InputError(
            f"{place(int(starts[group]))}: query {name!r} is split: it came before, with "
            "other queries between; put its lines together"
        )
    return Queries(np.append(starts, len(ids)).astype(np.int64)), names


def find_side_car(path: Path) -> Path | None:
    """The file of group sizes beside a data file. Raises InputError where there are two."""
    bases = dict.fromkeys((str(path), str(path).removesuffix(".gz")))
    try:
        found = [p for base in bases for end in SIDE_CARS if (p := Path(base + end)).is_file()]
    except OSError as error:  # a name that is too long
        raise InputError(f"{path!s:.100}: {error.strerror}") from None
    if len(found) > 1:
        raise InputError(f"{found[0]} and {found[1]} both give the groups of {path}: keep one")
    return found[0] if found else None


def read_group_sizes(path: Path, rows: int) -> Queries:
    """Queries from one group size per line; their sum must be ``rows``."""
    sizes: list[int] = []
    for line, text in enumerate(read_text(path).splitlines(), start=1):
        if not text.strip():
            continue
        if not text.strip().isdecimal() or int(text) == 0:
            raise InputError(
                f"{path}, line {line}: {text.strip()[:40]!r} is not a group size; "
                "give a whole number >= 1"
            )
        sizes.append(int(text))
    if sum(sizes) != rows:
        raise InputError(
            f"{path}: group sizes add up to {sum(sizes)}, the data file has {rows} rows; "
            "take the side-car that belongs to it"
        )
    return Queries.from_sizes(np.array(sizes, dtype=np.int64))
