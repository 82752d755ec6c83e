"""Reading of entire files, plain or packed, with errors in one line."""

import gzip
import tomllib
import zlib
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from bench_core.errors import InputError, check_memory, option


def read_bytes(path: str | Path) -> bytes:
    """Return the content of a file, unpacked if it ends in ``.gz``.

    Raises InputError for a file that is missing, unreadable, truncated or empty.
    """
    path = Path(path)
    with _readable(path):
        raw = path.read_bytes()
        content = gzip.decompress(raw) if path.suffix == ".gz" else raw
    if not content.strip():
        raise InputError(f"{path}: the file is empty; get it again or name another")
    return content


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO | gzip.GzipFile]:
    """Open a file's unpacked content. Raises InputError if it is unreadable or truncated."""
    with _readable(path), gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        yield file


def read_beginning(path: str | Path, size: int) -> bytes:
    """Return the first ``size`` bytes of a file's unpacked content. Raises InputError as above."""
    with opened(Path(path)) as file:
        return file.read(size)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise InputError(
                f"{path}: a pipe or a device, which cannot be read more than once; "
                "write its content to a file"
            )
        yield
    except FileNotFoundError as error:
        raise InputError(f"{path}: no such file; check the name") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{path}: truncated or damaged gzip file ({error}); get the file again"
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
        return content.decode("utf-8-sig")
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
