"""Files and folders that are there as a whole or not at all, whatever is killed while they are
written: under a temporary name in the same folder, brought to the disk, then renamed."""

from __future__ import annotations

import glob
import itertools
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_NUMBERS = itertools.count()


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """A temporary path to write a file to, which takes the place of ``path`` in the end.

    The folders above are made. Where the body fails, ``path`` stays as it was.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
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
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary, old = _beside(path), _beside(path)
    try:
        temporary.mkdir()
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                _sync(file)
        if path.exists():
            path.rename(old)
        temporary.rename(path)
    finally:
        _remove(temporary)
        _remove(old)


def _beside(path: Path) -> Path:
    """A new name beside ``path``; what killed processes left under such names is removed."""
    for stray in path.parent.glob(f".{glob.escape(path.name)}.*.new"):
        process = stray.name.split(".")[-2].partition("-")[0]
        if process.isdecimal() and not _alive(int(process)):
            _remove(stray)
    return path.with_name(f".{path.name}.{os.getpid()}-{next(_NUMBERS)}.new")


def _alive(process: int) -> bool:
    if os.name == "nt":  # where asking would end it
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:  # somebody else's
        pass
    return True


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(file: Path) -> None:
    with file.open("rb+") as open_file:
        os.fsync(open_file.fileno())
