"""Files by URL (``file``, ``s3``, ``gs``, ``http(s)``, ``memory``), brought into the cache.

A file is fetched once per machine and again where the server says that it is another (length,
entity tag, time). ``URL#sha256=SUM`` is checked, whenever it is fetched; what was prepared from a
file is checked by its fingerprint. All goes through fsspec (extra ``remote``).
"""

from __future__ import annotations

import hashlib
import json
import shutil
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from bench_core._io.digests import digest
from bench_core._io.files import atomic_file, cache_folder, locked
from bench_core.errors import InputError, one_line

CHUNK = 1 << 20
NOTE = ".url"
_SUM = "#sha256="
_MARKS = ("size", "ETag", "etag", "LastModified", "mtime", "updated", "created", "md5Hash")


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
        raise InputError(
            f"{folder}: cannot be written ({error}); name another BENCH_CACHE"
        ) from error
    return folder


def mirrored(folder: Path) -> str:
    """The URL that a folder stands for, or nothing."""
    try:
        return (folder / NOTE).read_text()
    except OSError:
        return ""


@cache
def is_there(url: str) -> bool:
    """Whether there is such a file; asked once per process. Raises InputError as ``fetched``."""
    system, path = _system(url)
    return bool(_asked(url, system.exists, path))


@cache
def fetched(url: str, to: Path | None = None) -> Path:
    """The file as it lies in the cache, fetched unless it is there; asked once per process.

    Raises InputError in one line where it cannot be had, is too long for the disk, or is not that
    of the sum.
    """
    place, _, wanted = url.partition(_SUM)
    to = to or url_folder(place) / name_of_url(place)
    note = to.with_name(f".{to.name}.json")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with locked(to.with_name(f".{to.name}.lock")):
            about = _about(place)
            mark = {name: str(about[name]) for name in _MARKS if about.get(name) is not None}
            known = json.loads(note.read_text()) if note.is_file() and to.is_file() else {}
            if known.get("mark") != mark:
                known = {"mark": mark, "sha256": _fetch(place, to, about.get("size"))}
                note.write_text(json.dumps(known))
            if wanted not in ("", known["sha256"]):
                raise InputError(
                    f"{place}: its sha256 is {known['sha256']}, not {wanted}: correct the sum, or "
                    "get the file that was meant"
                )
    except OSError as error:
        raise InputError(f"{to}: cannot be written ({error}); name another BENCH_CACHE") from error
    return to


def _fetch(url: str, to: Path, size: int | None) -> str:
    """Write a file; its sha256."""
    free, done, sums = shutil.disk_usage(to.parent).free, 0, hashlib.sha256()
    with atomic_file(to) as new, new.open("wb") as out, _opened(url) as source:
        while block := _asked(url, source.read, CHUNK):
            done += len(block)
            if done > free or (size and done > size):
                why = "more than the disk holds" if done > free else f"more than {size} bytes"
                raise InputError(f"{url}: {why}; get it by hand, and name the file")
            sums.update(block)
            out.write(block)
    if size and done != size:
        raise InputError(f"{url}: {done} bytes instead of {size} came; try again")
    return sums.hexdigest()


def _about(url: str) -> dict[str, Any]:
    """What its server says of a file."""
    system, path = _system(url)
    return dict(_asked(url, system.info, path))


def _opened(url: str) -> Any:
    system, path = _system(url)
    return _asked(url, system.open, path, "rb")


def _system(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        remedy = "pip install 'budget-bench[remote]'"
        raise InputError(f"{url}: fsspec is not installed, which reads URLs: {remedy}") from error
    found: tuple[Any, str] = _asked(url, url_to_fs, url)
    return found


def _asked(url: str, function: Any, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except ImportError as error:  # s3fs, gcsfs, aiohttp
        raise InputError(f"{url}: {one_line(str(error), 200)}") from error
    except Exception as error:  # each kind of storage has its own
        why = one_line(f"{type(error).__name__}: {error}", 200)
        raise InputError(f"{url}: cannot be read ({why}); check the address") from error
