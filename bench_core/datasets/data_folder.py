"""A data set's files: the publisher's relative paths under one folder."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Callable
from pathlib import Path

from bench_core._io.files import at_home
from bench_core.errors import InputError, UsageError, option


def local_path(name: str) -> Path:
    """Return the path of a user's file. Raises UsageError for a URL."""
    if re.match(r"[a-z][a-z0-9+]*://", name, re.IGNORECASE):
        raise UsageError(f"{name}: a URL; download the file first (curl -LO URL) and name it here")
    return Path(name)


def data_folder(folder: str | Path | None = None) -> Path:
    """Return ``folder`` if given, else ``BENCH_DATA``, else the platform's user data folder."""
    if chosen := folder or os.environ.get("BENCH_DATA"):
        found = at_home(local_path(str(chosen)))
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
        self.say = say
        self.remedy = remedy

    def find_folder(self, name: str) -> Path:
        """Return the folder of this path: absolute, in the current folder, or else in this one.

        Raises InputError if there is no such folder, or more than one.
        """
        here = at_home(name)
        if here.is_dir():
            return here.resolve()
        matches = [] if here.is_absolute() else self._below(name, Path.is_dir)
        absent = f"{name}: no such folder, neither here nor in {self.folder}; check the name"
        return _the_one(matches, name, absent)

    def find(self, *names: str) -> Path:
        """Return the file with one of these relative paths, packed (``.gz``) or not.

        Raises InputError if there is no such file, with the place to put it, or more than one,
        naming two of them.
        """
        either = " or ".join(dict.fromkeys(names))
        absent = (
            f"{self.folder}: no file {either}; {self.remedy}, "
            f"or name the folder that has it with {option('data_dir')} or BENCH_DATA"
        )
        return _the_one(self._all(names), either, absent)

    def has(self, *names: str) -> bool:
        """True if ``find`` would succeed. Raises InputError for two matches."""
        return bool(self._all(names) and self.find(*names))

    def _all(self, names: tuple[str, ...]) -> list[Path]:
        files: dict[Path, Path] = {}
        for name in names:
            places = [Path(name)]  # a user's own file is exactly this one
            if not places[0].is_absolute():
                plain = name.removesuffix(".gz")
                places = self._below(plain, Path.is_file) + self._below(f"{plain}.gz", Path.is_file)
            files |= {p.resolve(): p for p in places if p.is_file()}
        return sorted(files.values())

    def _below(self, name: str, wanted: Callable[[Path], bool]) -> list[Path]:
        """Return matches of this path in the folder and two levels below, hidden folders
        excluded."""
        matches = []
        for above in ("", "*/", "*/*/"):
            for path in self.folder.glob(above + glob.escape(name)):
                parts = path.relative_to(self.folder).parts
                if wanted(path) and not any(part.startswith(".") for part in parts):
                    matches.append(path)
        return sorted(matches)


def _the_one(matches: list[Path], name: str, absent: str) -> Path:
    if len(matches) > 1:
        raise InputError(
            f"{matches[0]} and {matches[1]} both match {name}: keep one, or choose a folder with "
            f"{option('data_dir')}"
        )
    if not matches:
        raise InputError(absent)
    return matches[0]
