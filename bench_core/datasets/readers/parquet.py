"""Parquet files as data frames, within the limit that packed text has.

Before anything is unpacked, the pages must add up to what the footer says and to no more than
``RATIO`` times the file and ``FLOOR``, where a cell counts at least as the two bytes that it has in
a CSV file. Text is read as categories: each one is in memory once, however many rows hold it.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core._io.text import FLOOR, RATIO
from bench_core.datasets.readers.parquet_pages import Footer, PageError, footer, pages
from bench_core.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

CELL = 2
MOST_BATCHES = 2000


@dataclass(frozen=True, slots=True)
class _Content:
    """Columns (by position) of text by differences, and the largest of their pages in bytes."""

    largest: int
    deltas: frozenset[int]


def read_parquet(path: Path) -> pd.DataFrame:
    """The columns of a file, named by text, without those that pandas kept an index in.

    Raises InputError for a file that is missing, empty, unsound or a bomb.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such file; check the name")
    try:
        import pyarrow as pa
    except ImportError as error:
        raise InputError(
            f"{path}: reading Parquet needs pyarrow; pip install 'budget-bench[parquet]'"
        ) from error
    try:
        frame = _frame(path)
    except (InputError, MemoryError):
        raise
    except (pa.ArrowException, OSError, ValueError, TypeError, LookupError, RuntimeError) as error:
        said = type(error) in (OSError, ValueError, PageError)
        reason = f"{error}" if said else f"{type(error).__name__}: {error}"
        reason = reason.strip().splitlines()[0][:200]
        raise InputError(f"{path}: not a Parquet file ({reason}); get the file again") from error
    if not len(frame):
        raise InputError(f"{path}: the file is empty; get it again or name another")
    return frame


def _frame(path: Path) -> pd.DataFrame:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with path.open("rb") as opened:
        size = path.stat().st_size
        raw = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    found = footer(raw)
    limits = {"thrift_string_size_limit": size + 1, "thrift_container_size_limit": size + 1}
    with pq.ParquetFile(path, **limits) as file:
        schema = file.schema_arrow
        paths = [file.schema.column(j).path for j in range(len(file.schema))]
        metadata, indexes = file.metadata, _indexes(file.metadata.metadata or {})
    _refuse_nested(path, schema, found)
    content = _checked(path, raw, found)
    text = []
    for j, field in enumerate(schema):
        if not found.columns[j].is_bytes or j in content.deltas:
            continue
        text.append(paths[j])
        if not _is_text(field.type):
            raise InputError(
                f"{path}, column {field.name!r}: {field.type} as bytes; write it as a number"
            )
    with pq.ParquetFile(path, metadata=metadata, read_dictionary=text, **limits) as file:
        table = _in_batches(path, file, content) if content.deltas else file.read()
    if table.num_rows != found.rows:
        raise ValueError(f"{table.num_rows} rows where its footer has {found.rows}")
    kept = [
        column.cast(pa.uint8()) if pa.types.is_boolean(column.type) else column
        for column in table.columns
    ]
    names = [str(name) for name in table.column_names]
    table = pa.Table.from_arrays(kept, names=[str(j) for j in range(len(kept))])
    frame = table.to_pandas(ignore_metadata=True)
    frame.columns = names
    return frame[[name for name in names if name not in indexes]] if indexes else frame


def _refuse_nested(path: Path, schema: Any, found: Footer) -> None:
    import pyarrow as pa

    for field in schema:
        if pa.types.is_nested(getattr(field.type, "storage_type", field.type)):
            raise InputError(
                f"{path}, column {field.name!r} holds {field.type}, not one value for each row; "
                "write the file without it"
            )
    if len(schema) != len(found.columns) or not all(column.flat for column in found.columns):
        raise ValueError("its schema contradicts itself")


def _is_text(kind: Any) -> bool:
    import pyarrow as pa

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return any(f"{kind}".endswith(name) for name in ("string", "binary", "_view"))


def _checked(path: Path, raw: Any, found: Footer) -> _Content:
    """What the pages hold. Raises InputError for a bomb, ValueError where the footer lies."""
    limit, packed, unpacked, values, largest, deltas = RATIO * len(raw) + FLOOR, 0, 0, 0, 0, set()
    for chunk in found.chunks:
        if not chunk.rows and chunk.start < 4:  # as pyarrow writes a table without rows
            continue
        packed += chunk.size
        if min(chunk.start, chunk.size) < 0 or max(chunk.start + chunk.size, packed) > len(raw):
            raise ValueError(f"the pages of column {chunk.column + 1} lie beyond the file")
        rows = 0
        for page in pages(raw, chunk.start, chunk.size):
            rows += page.values if page.is_data else 0
            values += page.values
            unpacked += page.size + page.values * found.columns[chunk.column].width
            if page.deltas:
                deltas.add(chunk.column)
                largest = max(largest, page.size)
            if max(unpacked, CELL * values) > limit:
                raise InputError(
                    f"{path}: unpacks to a decompression bomb, more than {RATIO} times the file; "
                    "get the file again, or write it as CSV"
                )
        if rows != chunk.rows:
            raise ValueError(
                f"{rows} values in column {chunk.column + 1} where its footer has {chunk.rows}"
            )
    return _Content(largest, frozenset(deltas))


def _in_batches(path: Path, file: Any, content: _Content) -> Any:
    """The table of a file some of whose text is kept by differences: one long cell may be repeated
    in every row, so only few rows are in memory as they are."""
    import pyarrow as pa

    limit = RATIO * path.stat().st_size + FLOOR
    rows = min(1 << 16, limit // (content.largest * len(content.deltas) + 1))
    if rows * MOST_BATCHES < file.metadata.num_rows:
        raise InputError(
            f"{path}: text by differences (DELTA_BYTE_ARRAY) in pages of {content.largest} bytes; "
            "write it with dictionaries"
        )
    batches, total = [], 0
    for batch in file.iter_batches(batch_size=rows):
        made = [
            column.dictionary_encode() if j in content.deltas else column
            for j, column in enumerate(batch.columns)
        ]
        batches.append(pa.RecordBatch.from_arrays(made, names=list(map(str, range(len(made))))))
        total += sum(made[j].nbytes for j in content.deltas)
        if total > limit:
            raise InputError(f"{path}: unpacks to a decompression bomb; get the file again")
    table = pa.Table.from_batches(batches)
    return table.rename_columns(file.schema_arrow.names).unify_dictionaries()


def _indexes(metadata: Mapping[bytes, bytes]) -> set[str]:
    """The columns that pandas wrote an index in; none where its notes make no sense."""
    try:
        kept = json.loads(metadata.get(b"pandas", b"{}"))["index_columns"]
        return {name for name in kept if isinstance(name, str)}
    except (ValueError, TypeError, LookupError, RecursionError):
        return set()
