"""Folders in which modules of ``-p`` lie, and what of them a process can import.

Much else may lie there that libraries look for: modules that they can do without, and metadata with
entry points. So Python's path has such a folder last, where it hides nothing. One that is ``apart``
(``--isolate``) is on the path of processes alone that run what lies in it; all others find there
the modules that they ``admit``, by name. Bytecode that lies there is not used.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from bench_core._io.found_modules import find

_HOME = Path(__file__).resolve().parents[2]
_OURS = (_HOME, _HOME / "plugins", _HOME / "reports")
_apart: dict[str, bool] = {}
_admitted: set[str] = set()


def is_plugin_folder(folder: Path) -> bool:
    """Whether modules of ``-p`` lie in it: then no library is installed there."""
    return str(folder) in _apart


def look_in(folders: Mapping[str, bool]) -> None:
    """Find modules of ``-p`` in these folders too; of each whether it is apart. One that holds
    Budget Bench or installed libraries is as it was."""
    _apart.update((f, apart) for f, apart in folders.items() if not _is_installation(Path(f)))
    if _Finder not in sys.meta_path:
        sys.meta_path.append(_Finder)
        sys.path_hooks.insert(0, _from_sources)
    for place in [place for place in sys.path_importer_cache if _lies_in_one(Path(place))]:
        del sys.path_importer_cache[place]


def homes(modules: Iterable[str]) -> list[str]:
    """The folders in which modules lie."""
    specs = (spec_of(module) for module in modules)
    return [*dict.fromkeys(str(folder) for spec in specs for folder in _around(spec))]


def take_off_the_path(folder: str) -> None:
    """Let this process find in a folder that is apart no more than it admits."""
    sys.path[:] = _without({folder} & {*_apart})


def for_a_process() -> dict[str, Any]:
    """What a new process must know: its path, and folders besides."""
    return {"path": _without({f for f, apart in _apart.items() if apart}), "folders": _apart}


def code_folders() -> Sequence[str]:
    """All folders that code is imported from."""
    return [*sys.path, *_apart]


def run_from(modules: Iterable[str]) -> None:
    """Put the folders of modules that this process is to run last on its path."""
    sys.path += [home for home in homes(modules) if home in _apart and home not in sys.path]


def admit(modules: Iterable[str]) -> None:
    """Let this process import these modules, wherever they lie."""
    _admitted.update(module.partition(".")[0] for module in modules)


def spec_of(module: str) -> ModuleSpec | None:
    """Where the package of a module, or the module itself, lies; nothing of it is executed."""
    top = module.partition(":")[0].partition(".")[0]
    try:
        return find(top) or PathFinder.find_spec(top, [*_apart]) or find_spec(top)
    except (ImportError, ValueError):  # made by a program, without a file
        return None


class _Finder:
    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        known = path is None and name in _admitted
        return PathFinder.find_spec(name, [*_apart]) if known else None


class _Source(SourceFileLoader):
    """Bytecode that lies beside a module need not be of it: Python takes some for it unseen, and
    digests are of what can be read."""

    def get_code(self, fullname: str) -> Any:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _from_sources(place: str) -> FileFinder:
    if not _lies_in_one(Path(place)):
        raise ImportError
    return FileFinder(place, (ExtensionFileLoader, EXTENSION_SUFFIXES), (_Source, [".py"]))


def _lies_in_one(folder: Path) -> bool:
    for place in (folder, *folder.parents) if _apart else ():
        if str(place) in _apart:
            return True
        if _is_installation(place):  # of an environment that lies there
            return False
    return False


def _around(spec: ModuleSpec | None) -> list[Path]:
    """The folders in which a module or package lies."""
    within = list((spec and spec.submodule_search_locations) or ())
    found = within or ([spec.origin] if spec and spec.has_location and spec.origin else [])
    return [Path(place).resolve().parent for place in found]


def _is_installation(folder: Path) -> bool:
    return folder in _OURS or (
        folder.name in ("site-packages", "dist-packages") or (folder / "os.py").is_file()
    )


def _without(folders: set[str]) -> list[str]:
    return [place for place in sys.path if str(Path(place).resolve()) not in folders]
