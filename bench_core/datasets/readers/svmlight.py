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
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
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
CHUNK = 1 << 24  # bytes

NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?(?i:nan)")
WHOLE = re.compile(rb"\d{1,18}")
LARGEST = float.fromhex("0x1.fffffefffffffp+127")
"""The largest number that float32 rounds to a finite one."""

Content = bytes | mmap.mmap


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
    content = _content(path)

    def place(position: int) -> str:
        return f"{path}, line {content[:position].count(NEWLINE) + 1}"

    def place_of_row(row: int) -> str:
        rows = (at for at, line in _lines(content) if line.partition(b"#")[0].strip())
        position = next(islice(rows, row, None), None)
        return str(path) if position is None else place(position)

    kept = _kept(path, content, index_base, features, columns)
    X, y, qid = _allocated(path, content, kept)
    # the kernel wants a line break at the end; what follows the last one is parsed below
    whole = np.frombuffer(content, dtype=np.uint8)[: content.rfind(NEWLINE) + 1]
    at = row = 0
    while at < len(content):
        if len(content) > SMALL and at < len(whole):
            from bench_core.datasets.readers.svmlight_kernel import read_rows

            at, row = read_rows(whole, at, row, index_base, kept, huge_is_missing, X, y, qid)
            if at == len(content):
                break
        end = content.find(NEWLINE, at)
        end = end if end >= 0 else len(content)
        try:
            line = parse_line(content[at:end], index_base, features, huge_is_missing)
        except InputError as fault:
            raise InputError(f"{place(at)}: {fault}") from None
        if line is not None:
            y[row], qid[row], indices, values = line
            own = kept[indices]
            X[row, own[own >= 0]] = np.array(values)[own >= 0]
            row += 1
        at = end + 1
    if row == 0:
        raise InputError(f"{path}: no rows in this file; get it again or name another")
    if len(kept) == 0:
        raise InputError(f"{path}: no features in this file; get it again or name another")
    queries, qids = _queries(path, qid[:row], place_of_row)
    return SvmRows(X[:row], y[:row], queries, qids, place_of_row)


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


def _content(path: Path) -> Content:
    if path.suffix == ".gz" or not path.is_file() or path.stat().st_size <= max(SMALL, 0):
        return read_bytes(path)
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the file") from error


def _lines(content: Content) -> Iterator[tuple[int, bytes]]:
    """Each line after its position."""
    position = 0
    while position < len(content):
        found = content.find(NEWLINE, position)
        end = found if found >= 0 else len(content)
        yield position, content[position:end]
        position = end + 1


def _kept(
    path: Path, content: Content, index_base: int, features: int | None, columns: IntArray | None
) -> IntArray:
    """The column of X for each feature (d,), -1 for one that is left out."""
    if features is None:
        features = 0
        for _, line in _lines(content):
            # "2 qid:1 3:0.5 8:1 # note": the last index; a line that does not rise is found later
            written = line.partition(b"#")[0].rpartition(b":")[0].rsplit(None, 1)[-1:]
            if written and WHOLE.fullmatch(written[0]):
                features = max(features, int(written[0]) - index_base + 1)
    if features > MOST_FEATURES:
        raise _too_large(path, features)
    kept = np.full(features, -1, dtype=np.int64)
    columns = np.arange(features) if columns is None else columns
    kept[columns] = np.arange(len(columns))
    return kept


def _allocated(
    path: Path, content: Content, kept: IntArray
) -> tuple[Float32Array, FloatArray, IntArray]:
    """X, y and qid for as many rows as lines; pages that stay empty take no memory."""
    parts = (content[at : at + CHUNK] for at in range(0, len(content), CHUNK))
    rows = sum(part.count(NEWLINE) for part in parts) + 1
    try:
        X = np.zeros((rows, int(kept.max(initial=-1)) + 1), dtype=np.float32)
    except (MemoryError, ValueError) as error:
        raise _too_large(path, len(kept)) from error
    return X, np.zeros(rows), np.full(rows, -1, dtype=np.int64)


def _too_large(path: Path, features: int) -> InputError:
    return InputError(
        f"{path}: rows with {features} features do not fit into memory as a dense matrix; "
        "number the features from 1 without gaps"
    )


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
