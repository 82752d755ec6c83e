"""Arrays that fits on the same training data share: built once, opened as read-only maps."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from bench_core.protocols import Array


def shared_arrays(folder: Path, build: Callable[[], Mapping[str, Array]]) -> Mapping[str, Array]:
    """The arrays in ``folder``, built first where it does not exist.

    A second process that wants them at the same time waits for the first.
    """
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.with_name(f".{folder.name}.lock")):
            if not folder.is_dir():
                _write(folder, build())
    return {p.stem: np.load(p, mmap_mode="r") for p in sorted(folder.glob("*.npy"))}


def _write(folder: Path, arrays: Mapping[str, Array]) -> None:
    temporary = folder.with_name(f".building-{folder.name}")
    shutil.rmtree(temporary, ignore_errors=True)  # of a process that was killed
    temporary.mkdir()
    try:
        for name, array in arrays.items():
            np.save(temporary / f"{name}.npy", np.asarray(array), allow_pickle=False)
        temporary.rename(folder)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


@contextmanager
def locked(path: Path, *, wait: bool = True, together: bool = False) -> Iterator[None]:
    """Hold a lock file, alone or ``together`` with others who look at it; the system lets go of
    it when the process dies.

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
    if not path.exists():
        return False
    try:
        with locked(path, wait=False, together=True):
            return False
    except BlockingIOError:
        return True
    except OSError:
        return False  # a folder that cannot be written has no writer


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
