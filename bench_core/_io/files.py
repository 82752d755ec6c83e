"""Atomic files and folders, and lock files.

A process may be killed while it writes: files are written under a temporary name in the same
folder, flushed to the disk, then renamed.
"""

import glob
import itertools
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_NUMBERS = itertools.count()


def at_home(path: str | Path) -> Path:
    """Expand ``~`` or ``~USER`` at the start of a path; unchanged if there is no such user."""
    with suppress(RuntimeError):
        return Path(path).expanduser()
    return Path(path)


def cache_folder(folder: str | Path | None = None) -> Path:
    """Return ``folder`` if given, else ``BENCH_CACHE``, else the user's cache folder."""
    if chosen := folder or os.environ.get("BENCH_CACHE"):
        return at_home(chosen)
    from platformdirs import user_cache_path

    return user_cache_path("budget-bench", appauthor=False)


def file_name(text: str) -> str:
    """Return text as part of a file's name, with ``_`` for other signs than ``-``, ``_``, ``.``."""
    return "".join(c if c.isalnum() or c in "-_." else "_" for c in text)


def in_cache(path: str) -> str:
    """Return a path relative to the cache folder, independent of the machine."""
    place, home = Path(path), cache_folder()
    return place.relative_to(home).as_posix() if home in place.parents else path


def from_cache(name: str) -> str:
    """Invert ``in_cache`` on this machine."""
    return str(cache_folder() / name)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Yield a temporary path for a file, which replaces ``path`` at the end.

    Parent folders are created. If the body fails, ``path`` is unchanged.
    """
    temporary = _beside(path)
    try:
        yield temporary
        _sync(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder as ``atomic_file`` does; open files of an old one stay readable."""
    temporary, old = _beside(path), _beside(path)
    try:
        temporary.mkdir()
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _sync(file)
        if path.exists():  # a folder cannot be renamed onto another
            path.rename(old)
        temporary.rename(path)
    finally:
        _remove([temporary, old])


def _beside(path: Path) -> Path:
    """Return a new name next to ``path``, and remove such files left by killed processes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove(_strays(path.parent.glob(f".{glob.escape(path.name)}.*.new")))
    return path.with_name(f".{path.name}.{os.getpid()}-{next(_NUMBERS)}.new")


def remove_strays(folder: Path) -> None:
    """Remove temporary files left by killed processes in a folder and its subfolders."""
    _remove(_strays(folder.rglob(".*.new")))


def _strays(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield temporary files ``.NAME.PID-NUMBER.new`` of processes that have ended."""
    import psutil

    for path in paths:
        process = path.name.split(".")[-2].partition("-")[0]
        if process.isdecimal() and not psutil.pid_exists(int(process)):
            yield path


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        with suppress(OSError):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def _sync(file: Path) -> None:
    with file.open("rb+") as open_file:
        os.fsync(open_file.fileno())


@contextmanager
def locked(path: Path, *, wait: bool = True, together: bool = False) -> Iterator[None]:
    """Hold a lock file, exclusively or ``together`` with other readers.

    The system releases it when the process dies.

    Raises BlockingIOError if ``wait`` is false and another process holds it.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock(handle, wait, together)
        yield
    finally:
        os.close(handle)


def is_locked(path: Path) -> bool:
    """True if another process holds a lock file."""
    try:
        if path.exists():
            with locked(path, wait=False, together=True):
                pass
    except BlockingIOError:
        return True
    except OSError:
        pass  # a folder that cannot be written has no writer
    return False


def _lock(handle: int, wait: bool, together: bool) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        import msvcrt as windows

        module: Any = windows
        try:
            module.locking(handle, module.LK_LOCK if wait else module.LK_NBLCK, 1)
        except OSError as error:
            raise BlockingIOError(str(error)) from error
        return
    kind = fcntl.LOCK_SH if together else fcntl.LOCK_EX
    fcntl.flock(handle, kind | (0 if wait else fcntl.LOCK_NB))
