"""A data set's files: the publisher's relative paths under one folder, or files by URL.

A file at a URL (``s3``, ``gs``, ``http(s)``, ``file``, ``memory``) is fetched into the cache once
per machine, and again if it changed on the server (length, entity tag, time). ``URL#sha256=SUM`` is
checked at each fetch; data prepared from a file are checked by their fingerprint. All access goes
through fsspec (extra ``remote``).
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from bench_core._io.digests import digest
from bench_core._io.files import at_home, atomic_file, cache_folder, locked
from bench_core._io.text import is_url
from bench_core.errors import InputError, one_line, option

NOTE = ".url"
_SUM = "#sha256="
_MARKS = ("size", "ETag", "etag", "LastModified", "mtime", "updated", "created", "md5Hash")
Answer = TypeVar("Answer")


def name_of_url(url: str) -> str:
    """Return the file name in a URL."""
    return PurePosixPath(url.partition("#")[0].partition("?")[0]).name


def url_folder(url: str) -> Path:
    """Return the folder on this machine for files under a URL."""
    return cache_folder() / "remote" / digest(url)[:16]


def mirror(url: str) -> Path:
    """Return the local folder that mirrors a URL; the URL is recorded in it."""
    folder = url_folder(url)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NOTE).write_text(url.rstrip("/"))
    except OSError as error:
        raise _unwritable(folder, error) from error
    return folder


def mirrored(folder: Path) -> str:
    """Return the URL that a folder mirrors, or ""."""
    note = folder / NOTE
    return note.read_text() if note.is_file() else ""


@cache
def is_there(url: str) -> bool:
    """True if the file exists; asked once per process. Raises InputError as ``fetched`` does."""
    return bool(_asked(url, lambda system, path: system.exists(path)))


@cache
def fetched(url: str, to: Path | None = None) -> Path:
    """Return the file in the cache, fetched if absent; asked once per process.

    Raises InputError in one line if it cannot be fetched or has another sha256.
    """
    place, _, wanted = url.partition(_SUM)
    to = to or url_folder(place) / name_of_url(place)
    note = to.with_name(f".{to.name}.json")
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        with locked(to.with_name(f".{to.name}.lock")):
            about = dict(_asked(place, lambda system, path: system.info(path)))
            # the facts that change with a file's content depend on the kind of storage
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
    """Return the answer of a URL's file system. Raises InputError."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        remedy = "pip install 'budget-bench[remote]'"
        raise InputError(f"{url}: reading URLs needs fsspec: {remedy}") from error
    try:
        return ask(*url_to_fs(url))
    except ImportError as error:  # s3fs, gcsfs, aiohttp
        raise InputError(f"{url}: {one_line(str(error), 200)}") from error
    except Exception as error:  # each kind of storage has its own
        why = one_line(f"{type(error).__name__}: {error}", 200)
        raise InputError(f"{url}: cannot be read ({why}); check the address") from error


def data_folder(folder: str | Path | None = None) -> Path:
    """Return ``folder`` if given, else ``BENCH_DATA``, else the platform's user data folder. For a
    URL, return its mirror in the cache."""
    chosen = folder or os.environ.get("BENCH_DATA")
    if chosen and is_url(str(chosen)):
        return mirror(str(chosen))
    if chosen:
        found = at_home(chosen)
        if found.is_file():
            raise InputError(f"{found}: a file; the data folder must be a folder")
        return found
    from platformdirs import user_data_path

    return user_data_path("budget-bench", appauthor=False)


class DataFolder:
    """A ``Source`` that searches a folder and two levels of its subfolders, except hidden ones.

    ``say`` gets lines on the progress of long work on its files. ``remedy`` is part of the error
    for a missing file.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        say: Callable[[str], None] = lambda message: None,
        remedy: str = "put it there",
    ) -> None:
        self.folder = data_folder(folder)
        self.url = mirrored(self.folder)
        self.say = say
        self.remedy = remedy

    def find_folder(self, name: str) -> Path:
        """Return the folder of this path: absolute, in the current folder, or else in this one.

        Raises InputError if there is no such folder, or more than one.
        """
        here = at_home(name)
        if here.is_dir():
            return here.resolve()
        found = [] if here.is_absolute() else self._below(name, Path.is_dir)
        absent = f"{name}: no such folder, neither here nor in {self.folder}; check the name"
        return _the_one(found, name, absent)

    def find(self, *names: str) -> Path:
        """Return the file with one of these relative paths, packed (``.gz``) or not.

        If the folder mirrors a URL, the file is fetched from there. Raises InputError if there is
        no such file, with the place to put it, or more than one, naming two of them.
        """
        if far := self._far(names):
            return fetched(f"{self.url}/{far}", self.folder / far)
        either = " or ".join(dict.fromkeys(names))
        absent = (
            f"{self.url or self.folder}: no file {either}; {self.remedy}, "
            f"or name the folder that has it with {option('data-dir')} or BENCH_DATA"
        )
        return _the_one(self._all(names), either, absent)

    def has(self, *names: str) -> bool:
        """True if ``find`` would succeed. Raises InputError for two matches."""
        return bool(self._far(names)) or bool(self._all(names) and self.find(*names))

    def _far(self, names: tuple[str, ...]) -> str:
        """Return the first of these paths that exists under the URL, packed or not, or ""."""
        for name in names if self.url else ():
            for spelling in _spellings(name):
                if not Path(name).is_absolute() and is_there(f"{self.url}/{spelling}"):
                    return spelling
        return ""

    def _all(self, names: tuple[str, ...]) -> list[Path]:
        found: dict[Path, Path] = {}
        for name in names:
            places = [Path(name)]  # a user's own file is exactly this one
            if not places[0].is_absolute():
                places = [p for spelt in _spellings(name) for p in self._below(spelt, Path.is_file)]
            found |= {p.resolve(): p for p in places if p.is_file()}
        return sorted(found.values())

    def _below(self, name: str, wanted: Callable[[Path], bool]) -> list[Path]:
        """Return matches of this path in the folder and two levels below, hidden folders
        excluded."""
        found = []
        for above in ("", "*/", "*/*/"):
            for path in self.folder.glob(above + glob.escape(name)):
                parts = path.relative_to(self.folder).parts
                if wanted(path) and not any(part.startswith(".") for part in parts):
                    found.append(path)
        return sorted(found)


def _spellings(name: str) -> tuple[str, str]:
    plain = name.removesuffix(".gz")
    return plain, f"{plain}.gz"


def _the_one(found: list[Path], name: str, absent: str) -> Path:
    if len(found) > 1:
        raise InputError(
            f"{found[0]} and {found[1]} both match {name}: keep one, or choose a folder with "
            f"{option('data-dir')}"
        )
    if not found:
        raise InputError(absent)
    return found[0]
