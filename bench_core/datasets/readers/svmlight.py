"""SVMlight and LETOR files, plain or packed.

    line    = label [ "qid:" whole-number ] { index ":" value } [ "#" comment ]

Indices count from 1 (``index_base=0``: from 0) and rise on each line. Absent cells are 0, or
missing; ``nan`` is a missing value. Query groups come from ``qid`` or from a side-car file of group
sizes (``FILE.query`` or ``FILE.group``). Decimal numbers are rounded to float64, then values to
float32; labels stay float64.

pandas reads the cells as a table of two columns, index and value. If that table breaks a rule,
``check_line`` finds the first invalid line.
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

from bench_core._io.text import PACKED, opened, read_text
from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.data import Examples, Queries
from bench_core.datasets.readers.tables import exact_floats, float32_offset
from bench_core.errors import InputError, check_memory, option

SIDE_CARS = (".query", ".group")
MOST_FEATURES = 1_000_000
CHUNK = 1 << 24  # bytes read at once, up to the end of a line

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(nan|NaN|NAN|Nan)")
NANS = [sign + word for sign in ("", "+", "-") for word in ("nan", "NaN", "NAN", "Nan")]
NAN = "correct it, or write nan for a missing value"
WHOLE = re.compile(rb"\d{1,18}")
# The largest number that float32 rounds to a finite one.
LARGEST = float.fromhex("0x1.fffffefffffffp+127")

# Indices of labels and query ids: on a line with rising indices all numbers rise.
LABEL, QUERY = -2_000_000_002, -2_000_000_001


@dataclass(frozen=True, slots=True, eq=False)
class SvmRows:
    """Content of a file: X float32 (n, d), y float64 (n,), queries and their ids, if any."""

    X: Float32Array  # (n, d)
    y: FloatArray  # (n,)
    queries: Queries | None
    # (q,) integers of any size, None if groups come from a side-car or are absent
    qids: NDArray[Any] | None
    place: Callable[[int], str]  # row number -> "FILE, line N"
    merged: frozenset[int] = frozenset()  # columns whose values float32 merges

    def examples(self) -> Examples:
        """Return the rows as examples of a publisher's ranking. Raises InputError without
        queries."""
        if self.queries is None:
            raise InputError(f"{self.place(0)}: no qid; get the publisher's file")
        return Examples(self.X, self.y, self.queries)


def read_svmlight(
    path: str | Path,
    *,
    index_base: int = 1,
    features: int | None = None,
    columns: IntArray | None = None,
    huge_is_missing: bool = False,
    unwritten: float = 0.0,
) -> SvmRows:
    """Read a file into a dense matrix.

    ``features``: their number (default: the largest index). ``columns``: features to keep, from 0,
    rising. ``huge_is_missing``: treat a value beyond float32 as missing, since some publishers
    write the largest float64; otherwise it is an error. ``unwritten``: the value of absent cells.
    Raises InputError naming file and line for anything outside the module's grammar.
    """
    path = Path(path)
    if index_base not in (0, 1):
        raise ValueError("index_base is 0 or 1")

    def place(row: int) -> str:
        with opened(path) as file:
            lines = (k for k, text in enumerate(file, start=1) if text.partition(b"#")[0].strip())
            line = next(islice(lines, row, None), None)
        return str(path) if line is None else f"{path}, line {line}"

    parts: list[tuple[Float32Array, FloatArray, NDArray[Any]]] = []
    lines = width = 0
    merged: set[int] = set()
    with opened(path) as file:
        while text := file.read(CHUNK) + file.readline():
            plain = re.sub(rb"#[^\n]*", b"", text) if b"#" in text else text
            if plain.strip():
                cells = _cells(plain, index_base, features, huge_is_missing)
                if cells is None:
                    raise _fault(path, text, lines, index_base, features, huge_is_missing)
                y, qid, row, index, value = cells
                width = max(width, features or int(index.max(initial=-1)) + 1)
                X = _filled(path, len(y), width, unwritten)
                X[row, index] = value
                for j in np.unique(index[(np.abs(value) >= 2**20) & (np.float32(value) != value)]):
                    if float32_offset(value[index == j]) is not None:
                        merged.add(int(j))
                parts.append((X if columns is None else X[:, columns], y, qid))
            lines += text.count(b"\n")
    rows = sum(len(y) for _, y, _ in parts)
    for size, what in (
        (lines + rows, "the file is empty"),
        (rows, "no rows in this file"),
        (width, "no features in this file"),
    ):
        if not size:
            raise InputError(f"{path}: {what}; get it again or name another")
    X = parts[-1][0]
    if len(parts) > 1:
        X = _filled(path, rows, X.shape[1], unwritten)
    at = 0
    for part, _, _ in parts if len(parts) > 1 else ():
        X[at : at + len(part), : part.shape[1]] = part
        at += len(part)
    y, qid = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
    queries, qids = _queries(path, qid, place)
    return SvmRows(X, y, queries, qids, place, frozenset(merged))


def _filled(path: Path, rows: int, features: int, value: float) -> Float32Array:
    try:
        if features > MOST_FEATURES:
            raise MemoryError
        if value == 0:  # untouched pages use no memory
            return np.zeros((rows, features), dtype=np.float32)
        return np.full((rows, features), value, dtype=np.float32)
    except MemoryError as error:
        raise InputError(
            f"{path}: {rows} rows with {features} features in this file do not fit into memory as "
            "a dense matrix; number the features from 1 without gaps"
        ) from error


def _cells(
    text: bytes, index_base: int, features: int | None, huge_is_missing: bool
) -> tuple[FloatArray, NDArray[Any], IntArray, IntArray, FloatArray] | None:
    """Return labels (n,) and query ids (n,) of complete lines, and row, index and value of cells.

    None if a line breaks a rule.
    """
    import pandas as pd

    # each number on its own line: "2 qid:7 3:0.5" -> "LABEL:2", "QUERY:7", "3:0.5"
    table = re.sub(rb"\n\s*", b"\n%d:" % LABEL, b"\n" + text.strip())
    table = table.replace(b"qid:", b"%d:" % QUERY)
    table = table.translate(bytes.maketrans(b" \t\r\f\v", b"\n" * 5))
    form: dict[str, Any] = {"sep": ":", "header": None, "keep_default_na": False, "na_values": NANS}
    form |= {"quoting": csv.QUOTE_NONE, **exact_floats()}
    try:
        with np.errstate(invalid="ignore"):  # an index beyond int64 raises ValueError below
            try:
                kinds = {0: np.int64, 1: np.float64}
                frame = pd.read_csv(BytesIO(table), dtype=kinds, **form)
            except ValueError:  # old versions refuse numbers beyond float64
                form |= {"dtype": {0: np.int64}, "converters": {1: _float}}
                frame = pd.read_csv(BytesIO(table), **form)
        index, value = (frame[k].to_numpy() for k in frame)
    except (ValueError, OverflowError, pd.errors.ParserError) as error:
        check_memory(error)
        return None
    label, query = index == LABEL, index == QUERY
    cell = ~(label | query)
    row = np.cumsum(label) - 1  # a row begins with its label
    at, y, ids, values = index[cell] - index_base, value[label], value[query], value[cell]
    huge = np.abs(values) > LARGEST
    rising = label[1:] | (np.diff(index) > 0)  # LABEL < QUERY < all others
    whole = (ids >= 0) & (ids < np.inf) & (ids % 1 == 0)
    if (
        not (rising.all() and whole.all() and np.isfinite(y).all())
        or at.min(initial=0) < 0
        or (features is not None and at.max(initial=-1) >= features)
        or (huge.any() and not huge_is_missing)
        or re.search(rb"[.eE+-][^\s:]*:", text)  # indices that pandas reads, as 2.0 and +2
    ):
        return None
    # read as integers: float64 would lose their last digits
    exact = [int(digits) for digits in re.findall(rb"qid:(\d{1,99})(?=\s|$)", text)]
    if len(exact) != len(ids):
        return None
    values[huge] = np.nan
    small = max(exact, default=0) < 2**63
    qid = np.full(len(y), -1, dtype=np.int64 if small else object)
    qid[row[query]] = exact
    return y, qid, row[cell], at, values


def _float(token: str) -> float:
    if not NUMBER.fullmatch(token.encode()):
        raise ValueError(f"{token!r:.60} is not a number")
    return float(token)


def _fault(
    path: Path, text: bytes, before: int, index_base: int, features: int | None, huge: bool
) -> InputError:
    """Return the error for the first invalid line; ``before`` lines precede the text."""
    for number, line in enumerate(text.split(b"\n"), start=before + 1):
        try:
            check_line(line, index_base, features, huge)
        except InputError as fault:
            return InputError(f"{path}, line {number}: {fault}")
    return InputError(f"{path}, below line {before}: not SVMlight; write it again")


def check_line(text: bytes, index_base: int, features: int | None, huge_is_missing: bool) -> None:
    """Raise InputError, without its place, for an invalid line."""
    tokens = text.partition(b"#")[0].split()
    if not tokens:
        return
    if b"\0" in text:
        raise InputError("not text in UTF-8 but in UTF-16, or no text; save it as UTF-8")
    label, *cells = tokens
    if not math.isfinite(_number(label, "label")):
        raise InputError(f"label {_shown(label)} is not finite; correct it or remove the line")
    if cells and cells[0].startswith(b"qid:"):
        if not re.fullmatch(rb"\d{1,99}", cells[0][4:]):
            raise InputError(f"{_shown(cells[0])}: a query id is a whole number >= 0; correct it")
        cells = cells[1:]
    last = index_base - 1
    for cell in cells:
        written, colon, number = cell.partition(b":")
        if written == b"qid":
            raise InputError(f"{_shown(cell)} must follow the label, once; correct the line")
        if not colon or not WHOLE.fullmatch(written):
            raise InputError(f"{_shown(cell)} is not index:value; correct it")
        index = int(written)
        if abs(_number(number, f"feature {index}:")) > LARGEST and not huge_is_missing:
            raise InputError(f"feature {index}: {_shown(number)} is too large; {NAN}")
        if index < index_base:
            raise InputError(
                f"index {index} in a file counted from {index_base}; "
                f"give {option('index_base', 0)} if its first feature is 0"
            )
        if index == last:
            raise InputError(f"index {index} comes twice; remove one of the two")
        if index < last:
            raise InputError(f"index {index} after {last}; sort the line by index")
        if features is not None and index - index_base >= features:
            raise InputError(f"index {index} in a file of {features} features; correct it")
        last = index


def _number(token: bytes, what: str) -> float:
    """Parse a decimal number; an overflow is infinite, ``nan`` is NaN."""
    if not NUMBER.fullmatch(token):
        remedy = "correct it" if what == "label" else NAN
        raise InputError(f"{what} {_shown(token)} is not a number; {remedy}")
    return float(token)


def _shown(token: bytes) -> str:
    return repr(token[:40].decode("utf-8", "replace"))


def some_queries(examples: Examples, first: int, last: int) -> Examples:
    """Return the rows of the queries ``first`` to ``last - 1``."""
    assert examples.queries is not None
    rows = slice(*examples.queries.boundaries[[first, last]].tolist())
    return Examples(examples.X[rows], examples.y[rows], examples.queries.select(first, last))


def first_queries(examples: Examples, rows: int) -> Examples:
    """Return the first complete queries that fit into ``rows`` rows, at least one."""
    assert examples.queries is not None
    fit = np.searchsorted(examples.queries.boundaries, rows, side="right") - 1
    return some_queries(examples, 0, max(1, int(fit)))


def _queries(
    path: Path, qid: NDArray[Any], place: Callable[[int], str]
) -> tuple[Queries | None, NDArray[Any] | None]:
    side_car = find_side_car(path)
    sizes = None if side_car is None else read_group_sizes(side_car, len(qid))
    has_qid = qid >= 0
    if not has_qid.any():
        return sizes, None
    if not has_qid.all():
        raise InputError(
            f"{place(int(np.argmin(has_qid)))}: no qid, while other lines have one; "
            "give every line its query"
        )
    queries, ids = grouped(qid, place)
    if sizes is not None and not np.array_equal(sizes.boundaries, queries.boundaries):
        raise InputError(f"{side_car}: group sizes contradict the qid of {path}; remove it")
    return queries, ids


def grouped(ids: NDArray[Any], place: Callable[[int], str]) -> tuple[Queries, NDArray[Any]]:
    """Return queries from the id of each row (n,), and the ids (q,).

    Raises InputError, with the ``place`` of the row, if the rows of a query are not adjacent.
    """
    import pandas as pd

    starts = np.flatnonzero(np.append(True, ids[1:] != ids[:-1]))  # of the queries
    names = ids[starts]
    again = pd.Series(names).duplicated().to_numpy()
    if again.any():
        group = int(np.argmax(again))
        raise InputError(
            f"{place(int(starts[group]))}: query {names.tolist()[group]!r} is split: "
            "other queries lie between its lines; put its lines together"
        )
    return Queries(np.append(starts, len(ids)).astype(np.int64)), names


def find_side_car(path: Path) -> Path | None:
    """Return the file of group sizes next to a data file. Raises InputError if there are two."""
    packed = path.suffix.lower() in PACKED
    bases = [str(path), *([str(path.with_suffix(""))] if packed else [])]
    try:
        files = [p for base in bases for end in SIDE_CARS if (p := Path(base + end)).is_file()]
    except OSError as error:  # the name is too long
        raise InputError(f"{path!s:.100}: {error.strerror}") from None
    if len(files) > 1:
        raise InputError(f"{files[0]} and {files[1]} both give the groups of {path}: keep one")
    return files[0] if files else None


def read_group_sizes(path: Path, rows: int) -> Queries:
    """Read queries from one group size per line; their sum must be ``rows``."""
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
