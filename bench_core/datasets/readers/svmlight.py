"""SVMlight and LETOR files, plain or ``.gz``.

    line    = label [ "qid:" whole-number ] { index ":" value } [ "#" comment ]

Indices count from 1 (``index_base=0``: from 0) and rise on each line; cells that are not written
are 0; the value ``nan`` is a missing one. Query groups come from ``qid`` or from a file of group
sizes beside it (``FILE.query`` or ``FILE.group``). Values become the float32 nearest to the float64
nearest to the decimal number, labels float64.

Large files are read by ``svmlight_kernel``, which leaves lines that it cannot settle to
``parse_line``: the slow and exact reader, which also reads files too small to compile for.
"""

import math
import mmap
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_core._io.text import read_bytes, read_text
from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.data import Examples, Queries
from bench_core.errors import InputError, option

SMALL = 1 << 22
"""Files up to this many bytes are read without compiling anything."""
SIDE_CARS = (".query", ".group")
MOST_FEATURES = 1_000_000
NEWLINE = b"\n"

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
WHOLE = re.compile(rb"\d{1,18}")
NO_NUMBER = frozenset((b"nan", b"+nan", b"-nan"))
LARGEST = float.fromhex("0x1.fffffefffffffp+127")
"""The largest number that float32 rounds to a finite one."""

Content = bytes | mmap.mmap
Arrays = tuple[Float32Array, FloatArray, IntArray]  # X, y, qid


@dataclass(frozen=True, slots=True, eq=False)
class SvmRows:
    """What a file holds: X float32 (n, d), y float64 (n,), queries and their ids, if any."""

    X: Float32Array
    y: FloatArray
    queries: Queries | None
    qids: IntArray | None  # (q,), None where groups come from a side-car or are absent
    place: Callable[[int], str]  # row number -> "FILE, line N"

    def __len__(self) -> int:
        return len(self.y)

    def examples(self) -> Examples:
        """The rows as examples."""
        return Examples(self.X, self.y, self.queries)


class LineError(Exception):
    """What is wrong with a line, and the remedy; the caller adds file and line."""


@dataclass(frozen=True, slots=True)
class Line:
    """The parts of a line; ``qid`` -1 where it has none, ``indices`` from 0."""

    label: float
    qid: int
    indices: list[int]
    values: list[float]


def parse_line(
    text: bytes,
    index_base: int = 1,
    features: int | None = None,
    huge_is_missing: bool = False,
) -> Line | None:
    """The parts of a line, or None for a blank or comment line.

    Raises LineError, also for an index beyond ``features`` if that is given. A value beyond float32
    is NaN if ``huge_is_missing``, else an error.
    """
    tokens = text.partition(b"#")[0].split()
    if not tokens:
        return None
    label = _label(tokens[0])
    qid, rest = -1, tokens[1:]
    if rest and rest[0].startswith(b"qid:"):
        qid, rest = _qid(rest[0]), rest[1:]
    indices: list[int] = []
    values: list[float] = []
    for token in rest:
        index, value = _cell(token, huge_is_missing)
        at, last = index - index_base, indices[-1] if indices else -1
        if at < 0:
            raise LineError(
                f"index {index} in a file counted from {index_base}; "
                f"say {option('index-base', 0)} if its first feature is 0"
            )
        if at == last:
            raise LineError(f"index {index} comes twice; remove one of the two")
        if at < last:
            raise LineError(f"index {index} after {last + index_base}; sort the line by index")
        if features is not None and at >= features:
            raise LineError(f"index {index} in a file of {features} features; correct it")
        indices.append(at)
        values.append(value)
    return Line(label, qid, indices, values)


def _number(token: bytes, what: str) -> float:
    """A decimal number, infinite where it overflows, or NaN for ``nan``."""
    if NUMBER.fullmatch(token):
        return float(token)
    if token.lower() in NO_NUMBER:
        return math.nan
    raise LineError(f"{what} {_shown(token)} is not a number; correct it")


def _label(token: bytes) -> float:
    label = _number(token, "label")
    if not math.isfinite(label):
        raise LineError(f"label {_shown(token)} is not finite; correct it or remove the line")
    return label


def _qid(token: bytes) -> int:
    if not WHOLE.fullmatch(token[4:]):
        raise LineError(f"{_shown(token)}: a query id is a whole number >= 0; correct it")
    return int(token[4:])


def _cell(token: bytes, huge_is_missing: bool) -> tuple[int, float]:
    left, colon, right = token.partition(b":")
    if left == b"qid":
        raise LineError(f"{_shown(token)} must follow the label, once; correct the line")
    if not colon or not WHOLE.fullmatch(left):
        raise LineError(f"{_shown(token)} is not index:value; correct it")
    value = _number(right, f"feature {left.decode()}:")
    if abs(value) > LARGEST:
        if huge_is_missing:
            return int(left), math.nan
        raise LineError(f"feature {left.decode()}: {_shown(right)} is too large; correct it")
    return int(left), value


def _shown(token: bytes) -> str:
    return repr(token[:40].decode("utf-8", "replace"))


def read_svmlight(
    path: str | Path,
    *,
    index_base: int = 1,
    features: int | None = None,
    columns: IntArray | None = None,
    huge_is_missing: bool = False,
    threads: int = 0,
) -> SvmRows:
    """Read a file into a dense matrix.

    ``features``: how many there are (default: up to the largest index). ``columns``: which of
    them to keep, from 0, rising. ``huge_is_missing``: a value beyond float32 stands for a missing
    one, as the largest float64 does in some publishers' files; else it is an error. ``threads`` 0:
    one per core, at most 4. Raises InputError naming file and line for everything that is not in
    the module's grammar.
    """
    path = Path(path)
    if index_base not in (0, 1):
        raise ValueError("index_base is 0 or 1")
    threads = threads or min(4, os.cpu_count() or 1)
    job = _Job(path, _content(path), index_base, features, columns, huge_is_missing, threads)
    X, y, qid = (_read_small if len(job.content) <= SMALL else _read_large)(job)
    queries, qids = _queries(job, qid)
    return SvmRows(X, y, queries, qids, job.place_of_row)


def first_queries(examples: Examples, rows: int) -> Examples:
    """The first whole queries that fit into ``rows`` rows, at least one."""
    if examples.queries is None:
        raise ValueError("these examples have no queries")
    fit = np.searchsorted(examples.queries.boundaries, rows, side="right") - 1
    return some_queries(examples, 0, max(1, int(fit)))


def some_queries(examples: Examples, first: int, last: int) -> Examples:
    """The rows of the queries ``first`` to ``last - 1``."""
    if examples.queries is None:
        raise ValueError("these examples have no queries")
    b = examples.queries.boundaries[first : last + 1]
    rows = slice(int(b[0]), int(b[-1]))
    m = None if examples.multiplicity is None else examples.multiplicity[rows]
    return Examples(examples.X[rows], examples.y[rows], Queries(b - b[0]), m)


@dataclass(frozen=True, slots=True)
class _Job:
    path: Path
    content: Content
    index_base: int
    features: int | None
    columns: IntArray | None
    huge_is_missing: bool
    threads: int

    def parse(self, text: bytes) -> Line | None:
        return parse_line(text, self.index_base, self.features, self.huge_is_missing)

    def parsed(self, position: int, text: bytes) -> Line | None:
        """The line that begins there. Raises InputError with its place."""
        try:
            return self.parse(text)
        except LineError as fault:
            raise InputError(f"{self.place(position)}: {fault}") from None

    def place(self, position: int) -> str:
        return f"{self.path}, line {self.content[:position].count(NEWLINE) + 1}"

    def place_of_row(self, row: int) -> str:
        rows = (at for at, line in _lines(self.content) if line.partition(b"#")[0].strip())
        position = next(islice(rows, row, None), None)
        return str(self.path) if position is None else self.place(position)


def _content(path: Path) -> Content:
    if path.suffix == ".gz" or not path.is_file() or path.stat().st_size <= max(SMALL, 0):
        return read_bytes(path)
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the file") from error


def _lines(content: Content) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position < len(content):
        found = content.find(NEWLINE, position)
        end = found if found >= 0 else len(content)
        yield position, content[position:end]
        position = end + 1


def _arrays(job: _Job, rows: int, largest: int) -> tuple[Arrays, IntArray]:
    """X, y and qid, not yet filled, and where each feature is kept in X, -1 nowhere."""
    if rows == 0:
        raise InputError(f"{job.path}: no rows in this file; get it again or name another")
    d = max(largest + 1, 0) if job.features is None else job.features
    if d == 0:
        raise InputError(f"{job.path}: no features in this file; get it again or name another")
    width = d if job.columns is None else len(job.columns)
    try:
        X = np.zeros((rows, width if d <= MOST_FEATURES else 1 << 60), dtype=np.float32)
    except (MemoryError, ValueError) as error:
        raise InputError(
            f"{job.path}: {rows} rows with {d} features do not fit into memory as a dense matrix; "
            "number the features from 1 without gaps"
        ) from error
    kept = np.full(d, -1, dtype=np.int64)
    kept[slice(None) if job.columns is None else job.columns] = np.arange(width)
    return (X, np.empty(rows), np.full(rows, -1, dtype=np.int64)), kept


def _read_small(job: _Job) -> Arrays:
    parsed = []
    for position, text in _lines(job.content):
        line = job.parsed(position, text)
        if line is not None:
            parsed.append(line)
    largest = max((line.indices[-1] for line in parsed if line.indices), default=-1)
    out, kept = _arrays(job, len(parsed), largest)
    for row, line in enumerate(parsed):
        _store(line, row, kept, out)
    return out


def _store(line: Line, row: int, kept: IntArray, out: Arrays) -> None:
    X, y, qid = out
    y[row] = line.label
    qid[row] = max(line.qid, qid[row])
    at = kept[line.indices] if line.indices else kept[:0]
    X[row, at[at >= 0]] = np.array(line.values, dtype=np.float64)[at >= 0]


def _read_large(job: _Job) -> Arrays:
    from numba import config

    if getattr(config, "DISABLE_JIT", 0):
        return _read_small(job)
    from bench_core.datasets.readers.svmlight_kernel import count_rows

    # four pieces a thread: lines differ in length, and a thread that is done takes another piece
    pieces = _pieces(job.content, job.threads * 4)
    with ThreadPoolExecutor(job.threads) as pool:
        counts = list(pool.map(lambda piece: count_rows(piece[1]), pieces))
        largest = max(found for _, found in counts)
        if largest < job.index_base and job.features is None:
            return _read_small(job)  # nothing to allocate by: find out why
        starts = np.cumsum([0, *(rows for rows, _ in counts)]).tolist()
        (X, y, qid), kept = _arrays(job, starts[-1], largest - job.index_base)
        tasks = [
            pool.submit(_read_piece, job, *piece, kept, (X[a:b], y[a:b], qid[a:b]))
            for piece, (a, b) in zip(pieces, pairwise(starts), strict=True)
        ]
        faults = [fault for task in tasks if (fault := task.result()) is not None]
    if faults:
        # parsed again here, as threads do not know how the reader of the message spells options
        position = min(faults)
        end = job.content.find(NEWLINE, position)
        job.parsed(position, job.content[position : end if end >= 0 else None])
    return X, y, qid


def _read_piece(
    job: _Job, offset: int, content: NDArray[np.uint8], kept: IntArray, out: Arrays
) -> int | None:
    """Read one piece; where the first line that cannot be read begins, or None."""
    from bench_core.datasets.readers.svmlight_kernel import read_rows

    left = np.empty((len(out[0]), 3), dtype=np.int64)  # rows left open: row, begin, end
    used = read_rows(content, job.index_base, kept, job.huge_is_missing, *out, left)
    for row, begin, end in left[:used].tolist():
        try:
            line = job.parse(content[begin:end].tobytes())
        except LineError:
            return offset + int(begin)
        assert line is not None  # it has a label
        _store(line, row, kept, out)
    return None


def _pieces(content: Content, wanted: int) -> list[tuple[int, NDArray[np.uint8]]]:
    """Consecutive parts and where they begin; the last is a copy that surely ends its line."""
    marks = [0]
    for part in range(1, wanted):
        mark = content.find(NEWLINE, len(content) * part // wanted) + 1
        if marks[-1] < mark < len(content):
            marks.append(mark)
    whole = np.frombuffer(content, dtype=np.uint8)
    last = np.append(whole[marks[-1] :], np.uint8(ord(NEWLINE)))
    last.flags.writeable = False  # as the others are: kernels are compiled for one kind of array
    return [*((a, whole[a:b]) for a, b in pairwise(marks)), (marks[-1], last)]


def _queries(job: _Job, qid: IntArray) -> tuple[Queries | None, IntArray | None]:
    side_car = find_side_car(job.path)
    given = qid >= 0
    if not given.any():
        return (None if side_car is None else read_group_sizes(side_car, len(qid))), None
    if not given.all():
        raise InputError(
            f"{job.place_of_row(int(np.argmin(given)))}: no qid, while other lines have one; "
            "give every line its query"
        )
    queries, ids = grouped(qid, job.place_of_row)
    if side_car is not None:
        sizes = read_group_sizes(side_car, len(qid))
        if not np.array_equal(sizes.boundaries, queries.boundaries):
            raise InputError(f"{side_car}: group sizes contradict the qid of {job.path}; remove it")
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
