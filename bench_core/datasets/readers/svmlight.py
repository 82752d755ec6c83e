"""SVMlight and LETOR files: ``label [qid:N] index:value ... [# comment]``, plain or ``.gz``.

Indices count from 1 (``index_base=0``: from 0) and rise on each line; cells that are not written
are 0; the value ``nan`` is a missing one. Query groups come from ``qid`` or from a file of group
sizes beside it (``FILE.query`` or ``FILE.group``). Values become the float32 nearest to the float64
nearest to the decimal number, labels float64.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench_core._io.text import read_bytes, read_text
from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.data import Examples, Queries
from bench_core.datasets.readers.svmlight_grammar import (
    LARGEST,
    Line,
    LineError,
    number,
    parse_line,
)
from bench_core.errors import InputError

SMALL = 1 << 22
"""Files up to this many bytes are read without compiling anything."""
SIDE_CARS = (".query", ".group")
MOST_FEATURES = 1_000_000

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class SvmRows:
    """What a file holds: X float32 (n, d), y float64 (n,), queries and their ids, if any."""

    path: Path
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
    content = _content(path)
    threads = threads or min(4, os.cpu_count() or 1)
    job = _Job(path, content, index_base, huge_is_missing, threads)
    read = _read_small if len(content) <= SMALL or _uncompiled() else _read_large
    X, y, qid = read(job, features, columns)
    queries, qids = _queries(job, qid)
    return SvmRows(path, X, y, queries, qids, job.place_of_row)


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
    content: Bytes
    index_base: int
    huge_is_missing: bool
    threads: int

    def parse(self, text: bytes, features: int | None) -> Line | None:
        return parse_line(text, self.index_base, features, self.huge_is_missing)

    def line_number(self, position: int) -> int:
        return int(np.count_nonzero(self.content[:position] == ord("\n"))) + 1

    def fault(self, position: int, features: int | None, otherwise: str = "") -> InputError:
        """The error for the line that begins at a position."""
        end = _line_end(self.content, position)
        number_ = self.line_number(position)
        try:
            self.parse(self.content[position:end].tobytes(), features)
        except LineError as fault:
            return InputError(f"{self.path}, line {number_}: {fault}")
        return InputError(f"{self.path}, line {number_}: {otherwise or 'cannot be read'}")

    def place_of_row(self, row: int) -> str:
        """The file and line of a data row (from 0)."""
        for position, line in _lines(self.content):
            if line.partition(b"#")[0].strip():
                if row == 0:
                    return f"{self.path}, line {self.line_number(position)}"
                row -= 1
        return str(self.path)


def _content(path: Path) -> Bytes:
    plain = path.suffix != ".gz" and path.is_file()
    if not plain or path.stat().st_size <= max(SMALL, 0):
        return np.frombuffer(read_bytes(path), dtype=np.uint8)
    try:
        return np.asarray(np.memmap(path, dtype=np.uint8, mode="r"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the file") from error


def _line_end(content: Bytes, position: int) -> int:
    step = 1 << 16
    for start in range(position, len(content), step):
        found = np.flatnonzero(content[start : start + step] == ord("\n"))
        if len(found):
            return start + int(found[0])
    return len(content)


def _lines(content: Bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position < len(content):
        end = _line_end(content, position)
        yield position, content[position:end].tobytes()
        position = end + 1


def _kept(d: int, columns: IntArray | None) -> IntArray:
    """Where each of ``d`` features is kept in X, -1 nowhere."""
    if columns is None:
        return np.arange(d, dtype=np.int64)
    kept = np.full(d, -1, dtype=np.int64)
    kept[columns] = np.arange(len(columns))
    return kept


def _matrix(job: _Job, rows: int, largest: int, d: int | None, kept: int | None) -> Float32Array:
    if rows == 0:
        raise InputError(f"{job.path}: no rows in this file; get it again or name another")
    found = largest - job.index_base + 1
    d = max(found, 0) if d is None else d
    if d == 0:
        raise InputError(f"{job.path}: no features in this file; get it again or name another")
    width = d if kept is None else kept
    if d > MOST_FEATURES or rows * width * 4 > _memory():
        raise InputError(
            f"{job.path}: {rows} rows with {d} features do not fit into memory as a dense matrix; "
            "number the features from 1 without gaps"
        )
    return np.zeros((rows, width), dtype=np.float32)


def _uncompiled() -> bool:
    from numba import config

    return bool(getattr(config, "DISABLE_JIT", 0))


def _memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # not told by this system
        return 1 << 46


Arrays = tuple[Float32Array, FloatArray, IntArray]


def _read_small(job: _Job, features: int | None, columns: IntArray | None) -> Arrays:
    parsed = []
    for position, text in _lines(job.content):
        try:
            line = job.parse(text, features)
        except LineError as fault:
            raise InputError(f"{job.path}, line {job.line_number(position)}: {fault}") from None
        if line is not None:
            parsed.append(line)
    largest = max((line.indices[-1] for line in parsed if line.indices), default=-1)
    X = _matrix(
        job, len(parsed), largest + job.index_base, features,
        None if columns is None else len(columns),
    )  # fmt: skip
    kept = _kept(features if features is not None else largest + 1, columns)
    for row, line in enumerate(parsed):
        at = kept[line.indices] if line.indices else np.empty(0, dtype=np.int64)
        X[row, at[at >= 0]] = np.array(line.values, dtype=np.float64)[at >= 0]
    y = np.array([line.label for line in parsed])
    return X, y, np.array([line.qid for line in parsed], dtype=np.int64)


def _read_large(job: _Job, features: int | None, columns: IntArray | None) -> Arrays:
    from bench_core.datasets.readers import svmlight_kernel

    pieces = _pieces(job.content, job.threads * 4)
    with ThreadPoolExecutor(job.threads) as pool:
        counts = list(
            pool.map(lambda p: svmlight_kernel.count_rows(p.buffer, p.start, p.stop), pieces)
        )
        rows = [int(n) for n, _ in counts]
        largest = max(int(found) for _, found in counts)
        if largest < job.index_base and features is None:  # nothing to allocate by: find out why
            return _read_small(job, features, columns)
        X = _matrix(job, sum(rows), largest, features, None if columns is None else len(columns))
        d = features if features is not None else largest - job.index_base + 1
        out = X, np.empty(len(X)), np.empty(len(X), dtype=np.int64)
        kept = _kept(d, columns)
        first = np.concatenate([[0], np.cumsum(rows)])
        tasks = [
            pool.submit(_read_piece, job, piece, int(row), kept, out)
            for piece, row in zip(pieces, first[:-1], strict=True)
        ]
        faults = [position for task in tasks if (position := task.result()) is not None]
    if faults:
        raise job.fault(min(faults), features)
    return out


def _read_piece(job: _Job, piece: _Piece, row: int, kept: IntArray, out: Arrays) -> int | None:
    """Read one piece; the position of a line that cannot be read, or None."""
    from bench_core.datasets.readers import svmlight_kernel

    X, y, qid = out
    at = piece.start
    slow = np.empty((len(kept) + 4096, 4), dtype=np.int64)
    while True:
        status, at, row, used = svmlight_kernel.read_rows(
            piece.buffer, at, piece.stop, row, job.index_base, kept, X, y, qid, slow,
            job.huge_is_missing,
        )  # fmt: skip
        for cell in slow[:used]:
            if not _read_cell(piece.buffer, cell, kept, X, y, job.huge_is_missing):
                return piece.offset + _line_start(piece.buffer, int(cell[2]))
        if status == svmlight_kernel.FAULT:
            return piece.offset + int(at)
        if status == svmlight_kernel.DONE:
            return None


def _read_cell(
    content: Bytes, cell: IntArray, kept: IntArray, X: Float32Array, y: FloatArray,
    huge_is_missing: bool,
) -> bool:  # fmt: skip
    """Store one number the kernel left to us; False where it is none or may not be there."""
    row, feature, begin, end = (int(x) for x in cell)
    try:
        value = number(content[begin:end].tobytes())
    except ValueError:
        return False
    if feature < 0:
        y[row] = value
        return bool(np.isfinite(value))
    if abs(value) > LARGEST:
        if not huge_is_missing:
            return False
        value = np.nan
    if kept[feature] >= 0:
        X[row, kept[feature]] = value
    return True


def _line_start(content: Bytes, position: int) -> int:
    while position > 0 and content[position - 1] != ord("\n"):
        position -= 1
    return position


@dataclass(frozen=True, slots=True)
class _Piece:
    """Whole lines ``buffer[start:stop]``; position p of the buffer is p + offset in the file."""

    buffer: Bytes
    start: int
    stop: int
    offset: int = 0


def _pieces(content: Bytes, wanted: int) -> list[_Piece]:
    """Consecutive parts of the content; the last one is a copy that ends as the kernels need."""
    from bench_core.datasets.readers.svmlight_kernel import PADDING

    marks = [0]
    for part in range(1, wanted):
        mark = _line_end(content, len(content) * part // wanted) + 1
        if mark + len(PADDING) <= len(content):  # kernels may look that far beyond a piece
            marks.append(max(mark, marks[-1]))
    pieces = [_Piece(content, a, b) for a, b in pairwise(marks) if a < b]
    last = np.concatenate([content[marks[-1] :], np.frombuffer(PADDING, dtype=np.uint8)])
    last.flags.writeable = False  # as the content is: kernels are compiled for one kind of array
    return [*pieces, _Piece(last, 0, len(last), marks[-1])]


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
    starts = np.flatnonzero(np.diff(qid, prepend=-1))
    ids = qid[starts]
    order = np.argsort(ids, kind="stable")
    again = order[1:][ids[order[1:]] == ids[order[:-1]]]
    if len(again):
        group = int(again.min())
        raise InputError(
            f"{job.place_of_row(int(starts[group]))}: query {ids[group]} is split: it came before, "
            "with other queries between; put its lines together"
        )
    queries = Queries(np.append(starts, len(qid)).astype(np.int64))
    if side_car is not None:
        sizes = read_group_sizes(side_car, len(qid))
        if not np.array_equal(sizes.boundaries, queries.boundaries):
            raise InputError(f"{side_car}: group sizes contradict the qid of {job.path}; remove it")
    return queries, ids


def find_side_car(path: Path) -> Path | None:
    """The file of group sizes beside a data file. Raises InputError where there are two."""
    bases = dict.fromkeys((str(path), str(path).removesuffix(".gz")))
    found = [p for base in bases for end in SIDE_CARS if (p := Path(base + end)).is_file()]
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
