"""Where the pages of a Parquet file are, and what they unpack to by their own headers: the footer
may say anything, and pyarrow ends the process where parts of it are missing.

Both are structs of Thrift's compact protocol, FileMetaData and PageHeader of the format's
parquet.thrift; values that are not needed are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

Bytes = Any  # anything indexed as bytes are
Fields = dict[int, Any]

SCHEMA, ROWS, GROUPS = 2, 3, 4  # fields of FileMetaData
TYPE, WIDTH, REPETITION, CHILDREN = 1, 2, 3, 5  # of SchemaElement
CHUNKS, GROUP_ROWS, CHUNK = 1, 3, 3  # of RowGroup and ColumnChunk
VALUES, LENGTH, FIRST_DATA, FIRST_DICTIONARY = 5, 7, 9, 11  # of ColumnMetaData
REPEATED, BYTE_ARRAY = 2, 6
PAGE_TYPE, UNPACKED_SIZE, PACKED_SIZE = 1, 2, 3  # fields of PageHeader
DATA, DICTIONARY, DATA_V2 = 5, 7, 8
DATA_PAGE, DATA_PAGE_V2 = 0, 3
COUNT, ENCODING, ENCODING_V2 = 1, 2, 4  # of the headers within
DELTA_LENGTHS, DELTA_STRINGS = 6, 7  # encodings of text by differences
STRUCT = 12
DEEPEST = 8


class PageError(ValueError):
    """A footer or a header that is none."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of the schema: whether it has one value for each row, whether its values are
    bytes of any length, and how many bytes each has where that is fixed."""

    flat: bool
    is_bytes: bool
    width: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """The pages of one column (by position) in one group of rows."""

    column: int
    rows: int
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class Footer:
    """What is needed of a file's footer."""

    rows: int
    columns: tuple[Column, ...]
    chunks: tuple[Chunk, ...]


def footer(content: Bytes) -> Footer:
    """The footer of a file. Raises PageError where a part of it is missing or contradicts others.

    Columns that are nested count as one each, which is not flat, and then no chunk is given.
    """
    end = len(content) - 8
    if end < 4 or content[end + 4 :] != b"PAR1":
        raise PageError("it does not end as one does")
    start = end - int.from_bytes(content[end : end + 4], "little")
    if start < 4:
        raise PageError("its footer is cut off")
    try:
        fields, _ = _struct(content, start, 0)
        root, *schema = fields[SCHEMA]
        columns = tuple(
            Column(
                not one.get(CHILDREN) and one.get(REPETITION) != REPEATED,
                one.get(TYPE) == BYTE_ARRAY,
                max(one.get(WIDTH, 0), 0),
            )
            for one in schema
        )
        if not all(column.flat for column in columns) or root.get(CHILDREN) != len(columns):
            return Footer(fields[ROWS], columns, ())
        groups = fields[GROUPS]
        chunks = tuple(_chunks(groups, len(columns)))
        if fields[ROWS] != sum(group[GROUP_ROWS] for group in groups):
            raise PageError("its footer contradicts itself")
        return Footer(fields[ROWS], columns, chunks)
    except (IndexError, KeyError, TypeError, AttributeError, ValueError) as error:
        raise PageError(str(error) if isinstance(error, PageError) else DAMAGED) from error


DAMAGED = "its footer is damaged"


def _chunks(groups: Any, columns: int) -> Iterator[Chunk]:
    for group in groups:
        if len(group[CHUNKS]) != columns:
            raise PageError("a group of rows has not as many columns as the schema")
        for j, one in enumerate(group[CHUNKS]):
            about = one[CHUNK]
            start, first = about[FIRST_DATA], about.get(FIRST_DICTIONARY, 0)
            start = first if 0 < first < start else start
            if about[VALUES] != group[GROUP_ROWS]:
                raise PageError("its footer contradicts itself")
            yield Chunk(j, group[GROUP_ROWS], start, about[LENGTH])


@dataclass(frozen=True, slots=True)
class Page:
    """One page: its bytes when unpacked, the values that it holds, and whether these are rows or a
    dictionary; ``deltas`` where they are text by differences."""

    size: int
    values: int
    is_data: bool
    deltas: bool


def pages(content: Bytes, start: int, size: int) -> Iterator[Page]:
    """The pages of a column chunk. Raises PageError."""
    at, end = start, start + size
    while at < end:
        try:
            fields, at = _struct(content, at, 0)
            page, packed = _page(fields), fields[PACKED_SIZE]
        except (IndexError, KeyError, TypeError, AttributeError) as error:
            raise PageError("the header of a page is damaged") from error
        if min(page.size, page.values, packed) < 0:
            raise PageError("the header of a page is damaged")
        yield page
        at += packed


def _page(fields: Fields) -> Page:
    kind, size = fields[PAGE_TYPE], fields[UNPACKED_SIZE]
    if kind not in (DATA_PAGE, DATA_PAGE_V2):
        return Page(size, fields.get(DICTIONARY, {}).get(COUNT, 0), False, False)
    inner = fields[DATA if kind == DATA_PAGE else DATA_V2]
    code = inner[ENCODING if kind == DATA_PAGE else ENCODING_V2]
    return Page(size, inner[COUNT], True, code in (DELTA_LENGTHS, DELTA_STRINGS))


def _struct(content: Bytes, at: int, depth: int) -> tuple[Fields, int]:
    if depth > DEEPEST:
        raise PageError("it is nested too deeply")
    found: Fields = {}
    field = 0
    while head := content[at]:
        at += 1
        step, kind = head >> 4, head & 15
        if step:
            field += step
        else:
            field, at = _number(content, at)
        field = ((field + 0x8000) & 0xFFFF) - 0x8000  # 16 bits, as the format has it
        value, at = (kind, at) if kind <= 2 else _value(content, at, kind, depth)
        if isinstance(value, dict):  # a struct that comes twice is one, as it is to pyarrow
            value = {**found.get(field, {}), **value}
        found[field] = value
    return found, at + 1


def _value(content: Bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in (1, 2, 3):  # a truth value in a list, a byte
        return content[at], at + 1
    if kind in (4, 5, 6):
        return _number(content, at)
    if kind == 7:
        return None, at + 8
    if kind == 8:
        length, at = _whole(content, at)
        return None, at + length
    if kind in (9, 10):
        head, at = content[at], at + 1
        count, of = head >> 4, head & 15
        if count == 15:
            count, at = _whole(content, at)
        if count > len(content) - at or depth > DEEPEST:  # no item takes less than a byte
            raise PageError("its notes are damaged")
        items = []
        for _ in range(count):
            item, at = _value(content, at, of, depth + 1)
            if of == STRUCT:
                items.append(item)
        return items, at
    if kind == STRUCT:
        return _struct(content, at, depth + 1)
    raise PageError("its notes are damaged")


def _whole(content: Bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        byte, at = content[at], at + 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
    raise PageError("its notes are damaged")


def _number(content: Bytes, at: int) -> tuple[int, int]:
    value, at = _whole(content, at)
    return (value >> 1) ^ -(value & 1), at
