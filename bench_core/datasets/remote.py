"""Files by URL (``s3``, ``gs``, ``http(s)``, ``file``, ``memory``), brought into the cache.

A file is fetched once per machine and again where the server says that it is another (length,
entity tag, time). ``URL#sha256=SUM`` is checked, whenever it is fetched; what was prepared from a
file is checked by its fingerprint. All goes through fsspec (extra ``remote``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from bench_core._io.digests import digest
from bench_core._io.files import atomic_file, cache_folder, locked
from bench_core.errors import InputError, one_line

NOTE = ".url"
_SUM = "#sha256="
_MARKS = ("size", "ETag", "etag", "LastModified", "mtime", "updated", "created", "md5Hash")
Answer = TypeVar("Answer")


def name_of_url(url: str) -> str:
    """The name of its file."""
    return PurePosixPath(url.partition("#")[0].partition("?")[0]).name


def url_folder(url: str) -> Path:
    """Where what lies under a URL is kept on this machine."""
    return cache_folder() / "remote" / digest(url)[:16]


def mirror(url: str) -> Path:
    """The folder that stands for one at a URL, which is noted in it."""
    folder = url_folder(url)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NOTE).write_text(url.rstrip("/"))
    except OSError as error:
        raise _unwritable(folder, error) from error
    return folder


def mirrored(folder: Path) -> str:
    """The URL that a folder stands for, or nothing."""
    note = folder / NOTE
    return note.read_text() if note.is_file() else ""


@cache
def is_there(url: str) -> bool:
    """Whether there is such a file; asked once per process. Raises InputError as ``fetched``."""
    return bool(_asked(url, lambda system, path: system.exists(path)))


@cache
def fetched(url: str, to: Path | None = None) -> Path:
    """The file as it lies in the cache, fetched unless it is there; asked once per process.

    Raises InputError in one line where it cannot be had, or is not that of the sum.
    """
    place, _, wanted = url.partition(_SUM)
    to = to or url_folder(place) / name_of_url(place)
    note = to.with_name(f".{to.name}.json")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with locked(to.with_name(f".{to.name}.lock")):
            about = dict(_asked(place, lambda system, path: system.info(path)))
            # each kind of storage has other facts that change with a file's content
            mark = {name: str(about[name]) for name in _MARKS if about.get(name) is not None}
            known = json.loads(note.read_text()) if note.is_file() and to.is_file() else {}
            if known.get("mark") != mark:
                with atomic_file(to) as new:
                    _asked(place, lambda system, path: system.get_file(path, str(new)))
                with to.open("rb") as file:
                    found = hashlib.file_digest(file, "sha256").hexdigest()
                known = {"mark": mark, "sha256": found}
                note.write_text(json.dumps(known))
    except OSError as error:
        raise _unwritable(to, error) from error
    if wanted not in ("", known["sha256"]):
        raise InputError(
            f"{place}: its sha256 is {known['sha256']}, not {wanted}: correct the sum, or "
            "get the file that was meant"
        )
    return to


def _unwritable(path: Path, error: OSError) -> InputError:
    return InputError(f"{path}: cannot be written ({error}); name another BENCH_CACHE")


def _asked(url: str, ask: Callable[[Any, str], Answer]) -> Answer:
    """What the file system of a URL answers. Raises InputError."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        remedy = "pip install 'budget-bench[remote]'"
        raise InputError(f"{url}: fsspec is not installed, which reads URLs: {remedy}") from error
    try:
        return ask(*url_to_fs(url))
    except ImportError as error:  # s3fs, gcsfs, aiohttp
        raise InputError(f"{url}: {one_line(str(error), 200)}") from error
    except Exception as error:  # each kind of storage has its own
        why = one_line(f"{type(error).__name__}: {error}", 200)
        raise InputError(f"{url}: cannot be read ({why}); check the address") from error
