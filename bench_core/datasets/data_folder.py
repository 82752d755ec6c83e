"""Find a data set's files: the publisher's relative paths under one folder."""

import glob
import os
from collections.abc import Callable
from pathlib import Path

from bench_core._io.files import at_home
from bench_core._io.text import is_url
from bench_core.datasets.remote import fetched, is_there, mirror, mirrored
from bench_core.errors import InputError, option


def data_folder(folder: str | Path | None = None) -> Path:
    """``folder`` if given, else ``BENCH_DATA``, else the user's data folder of this platform; of a
    URL the folder of the cache that stands for it."""
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
        self.url = mirrored(self.folder)
        self.say = say
        self.remedy = remedy

    def find_folder(self, name: str) -> Path:
        """The one folder of this path: absolute, in the current folder, or else in this one.

        Raises InputError where there is none, or more than one.
        """
        here = at_home(name)
        if here.is_dir():
            return here.resolve()
        found = [] if here.is_absolute() else self._below(name, Path.is_dir)
        absent = f"{name}: no such folder, neither here nor in {self.folder}; check the name"
        return _the_one(found, name, absent)

    def find(self, *names: str) -> Path:
        """The one file that has one of these relative paths, packed (``.gz``) or not.

        Where the folder stands for a URL, it is fetched from there. Raises InputError where there
        is none, saying which file to put where, or more than one, naming two of them.
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
        """Whether ``find`` would succeed. Raises InputError for two matches."""
        return bool(self._far(names)) or bool(self._all(names) and self.find(*names))

    def _far(self, names: tuple[str, ...]) -> str:
        """The first of these paths that is there under the URL, packed or not, or nothing."""
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
        """What has this path in the folder or up to two levels below, but in hidden folders."""
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
