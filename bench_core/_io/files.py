"""Files and folders that are there as a whole or not at all, and lock files.

What is killed while it writes does no harm: files are written under a temporary name in the same
folder, brought to the disk, then renamed.
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
    """A path that may begin with ``~`` or ``~USER``; as it stands where there is no such user."""
    with suppress(RuntimeError):
        return Path(path).expanduser()
    return Path(path)


def cache_folder(folder: str | Path | None = None) -> Path:
    """``folder`` if given, else ``BENCH_CACHE``, else the user's cache folder."""
    if chosen := folder or os.environ.get("BENCH_CACHE"):
        return at_home(chosen)
    from platformdirs import user_cache_path

    return user_cache_path("budget-bench", appauthor=False)


def in_cache(path: str) -> str:
    """The name of a path within the cache folder, which tells nothing of the machine."""
    place, home = Path(path), cache_folder()
    return place.relative_to(home).as_posix() if home in place.parents else path


def from_cache(name: str) -> str:
    """The inverse of ``in_cache``, on this machine."""
    return str(cache_folder() / name)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary path to write a file to, which takes the place of ``path`` in the end.

    The folders above are made. Where the body fails, ``path`` stays as it was.
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
    """As ``atomic_file``, an empty folder; who has files of an old one open keeps them."""
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
    """A new name next to ``path``; what killed processes left under such names is removed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _remove(_strays(path.parent.glob(f".{glob.escape(path.name)}.*.new")))
    return path.with_name(f".{path.name}.{os.getpid()}-{next(_NUMBERS)}.new")


def remove_strays(folder: Path) -> None:
    """Remove what killed processes left in a folder, and in those in it, under temporary names."""
    _remove(_strays(folder.rglob(".*.new")))


def _strays(found: Iterable[Path]) -> Iterator[Path]:
    """Those of processes that have ended: ``.NAME.PID-NUMBER.new``."""
    import psutil

    for path in found:
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
    """Hold a lock file, alone or ``together`` with others who only look at it.

    The system lets go of it when the process dies.

    Raises BlockingIOError where ``wait`` is false and another process holds it.
    """
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _lock(handle, wait, together)
        yield
    finally:
        os.close(handle)


def is_locked(path: Path) -> bool:
    """Whether another process holds a lock file."""
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
