"""Reading of entire files, plain or packed, with errors in one line."""

import bz2
import gzip
import lzma
import tomllib
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

from bench_core.errors import InputError, check_memory, option

PACKED = (".gz", ".bz2", ".xz")
"""Suffixes of packed files. Whether a file is packed is decided by its first bytes alone."""
_OPENERS: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
_FORMATS = {
    b"PK\x03\x04": "a zip archive, such as Excel's .xlsx",
    b"\x28\xb5\x2f\xfd": "packed by zstd",
    b"7z\xbc\xaf": "packed by 7-Zip",
    b"\xd0\xcf\x11\xe0": "an old Excel file",
    b"ARROW1": "an Arrow (Feather) file",
    b"\x93NUMPY": "a NumPy file",
    b"\x89HDF": "an HDF5 file",
    b"SQLite format": "a SQLite database",
    b"\x80": "a pickle",
    b"{": "JSON",
    b"[": "JSON",
    b"@": "an ARFF file",
    b"<!": "a web page",
    b"<html": "a web page",
    b"<HTML": "a web page",
    b"<?xml": "XML",
    **dict.fromkeys((b"INSERT ", b"CREATE ", b"COPY ", b"DROP ", b"-- ", b"--\n"), "a dump of SQL"),
    b"+--": "a table drawn with lines",
}


def other_format(path: Path) -> str:
    """Return the format of a file that holds no table as text, by its first bytes, else ""."""
    beginning = read_beginning(path, 64).lstrip()
    return next((name for start, name in _FORMATS.items() if beginning.startswith(start)), "")


def read_bytes(path: str | Path) -> bytes:
    """Return the unpacked content of a file, without a byte order mark of UTF-8.

    Raises InputError for a file that is missing, unreadable, truncated or empty.
    """
    with opened(Path(path)) as file:
        content: bytes = file.read()
    if not content.strip():
        raise InputError(f"{path}: the file is empty; get it again or name another")
    return content


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file's unpacked content, behind a byte order mark of UTF-8.

    Raises InputError if it is unreadable or truncated.
    """
    with _readable(path), path.open("rb") as raw:
        start = raw.peek(6)
        opener = next((o for mark, o in _OPENERS.items() if start.startswith(mark)), nullcontext)
        with opener(raw) as file:
            if file.peek(3)[:3] == BOM_UTF8:
                file.read(3)
            yield file


def read_beginning(path: str | Path, size: int) -> bytes:
    """Return the first ``size`` bytes of a file's unpacked content. Raises InputError as above."""
    with opened(Path(path)) as file:
        return file.read(size)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        if path.is_dir():
            remedy = "join its Parquet files to one" if any(path.glob("*.p*q*")) else "name a file"
            raise InputError(f"{path}: a folder, not a file; {remedy}")
        if path.exists() and not path.is_file():
            raise InputError(
                f"{path}: a pipe or a device, which cannot be read more than once; "
                "write its content to a file"
            )
        yield
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file; check the name") from error
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise InputError(
            f"{path}: truncated or damaged packed file ({error}); get the file again"
        ) from error
    except OSError as error:
        check_memory(error, path)
        raise InputError(
            f"{path}: cannot be read ({error.strerror or error}); check the file"
        ) from error


def read_text(path: str | Path, encoding: str | None = None) -> str:
    """Return the content of ``read_bytes`` as text, without a byte order mark.

    A file that is not UTF-8 is read in ``encoding``, the option of the caller: "" if it was not
    given, None if there is none. Raises InputError also for a file in neither.
    """
    content = read_bytes(path)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        if not encoding:
            line = content.count(b"\n", 0, error.start) + 1
            guess = "utf-16" if content[:2] in (BOM_UTF16_LE, BOM_UTF16_BE) else "cp1252"
            remedy = f"in Python read it with encoding='{guess}' and write it with encoding='utf-8'"
            if encoding is not None:
                remedy = f"or give its encoding, such as {option('encoding', guess)}"
            fault = f"not text in UTF-8; in Excel save it as 'CSV UTF-8', {remedy}"
            raise InputError(f"{path}, line {line}: {fault}") from error
    try:
        return content.decode(encoding)
    except (LookupError, UnicodeError) as error:
        raise InputError(f"{path}: {option('encoding', encoding)}: {error}") from error


def parse_toml(path: Path, text: str) -> dict[str, Any]:
    """Return the tables of a TOML file with this text. Raises InputError."""
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a TOML file: {error}; correct it") from error
