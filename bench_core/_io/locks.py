"""Lock files that the system releases when their process dies."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


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
