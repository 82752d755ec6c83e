"""Find a data set's files: the publisher's relative paths under one folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path

from bench_core.errors import InputError

DEPTH = 2  # levels of subfolders that are looked into


def data_folder(folder: str | Path | None = None) -> Path:
    """``folder`` if given, else ``BENCH_DATA``, else the user's data folder of this platform."""
    chosen = folder or os.environ.get("BENCH_DATA")
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_data_path

    return user_data_path("budget-bench", appauthor=False)


class DataFolder:
    """A ``Source``: looks in a folder and up to two levels of its subfolders, but hidden ones.

    ``say`` gets lines on the progress of long work on its files; ``remedy`` stands in the error for
    a file that is not there.
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
        """The one folder of this path: absolute, in the current folder, or else in this one.

        Raises InputError where there is none, or more than one.
        """
        here = Path(name).expanduser()
        if here.is_dir():
            return here.resolve()
        within = () if here.is_absolute() else self._folders
        folders = sorted({(p / name).resolve() for p in within if (p / name).is_dir()})
        if len(folders) > 1:
            raise InputError(
                f"{folders[0]} and {folders[1]} both match {name}: keep one, or give its whole path"
            )
        if not folders:
            raise InputError(
                f"{name}: no such folder, neither here nor in {self.folder}; check the name"
            )
        return folders[0]

    def find(self, *names: str) -> Path:
        """The one file that has one of these relative paths, packed (``.gz``) or not.

        Raises InputError where there is none, saying which file to put where, or more than one,
        naming two of them.
        """
        found = self._all(names)
        if len(found) > 1:
            raise InputError(
                f"{found[0]} and {found[1]} both match {_either(names)}: "
                "keep one, or choose a folder with --data-dir"
            )
        if not found:
            raise InputError(
                f"{self.folder}: no file {_either(names)}; {self.remedy}, "
                "or name the folder that has it with --data-dir or BENCH_DATA"
            )
        return found[0]

    def has(self, *names: str) -> bool:
        """Whether ``find`` would succeed. Raises InputError for two matches."""
        return bool(self._all(names)) and bool(self.find(*names))

    def _all(self, names: tuple[str, ...]) -> list[Path]:
        found = {p.resolve(): p for name in names for p in self._matches(name)}
        return sorted(found.values())

    def _matches(self, name: str) -> Iterator[Path]:
        if Path(name).is_absolute():  # a user's own file: exactly this one
            yield from (p for p in [Path(name)] if p.is_file())
            return
        plain = name.removesuffix(".gz")
        for folder in self._folders:
            for spelling in (plain, f"{plain}.gz"):
                if (folder / spelling).is_file():
                    yield folder / spelling

    @cached_property
    def _folders(self) -> list[Path]:
        """Where to look, listed once. Hidden folders hold what is not finished."""
        found = level = [self.folder]
        for _ in range(DEPTH):
            level = [inner for folder in level for inner in _subfolders(folder)]
            found = [*found, *level]
        return found


def _subfolders(folder: Path) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            seen = [e for e in entries if not e.name.startswith(".") and e.is_dir()]
    except OSError:  # not there, or not ours to read
        return []
    return sorted(Path(e) for e in seen if os.access(e, os.X_OK))


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(dict.fromkeys(names))
