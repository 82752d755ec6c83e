"""What installed distributions offer, read and imported so that no fault of theirs is ours.

Metadata may be damaged, and an import may raise what is no ``Exception``.
"""

import importlib.metadata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint, distributions
from typing import Any

from bench_core.errors import UsageError


class EndedError(Exception):
    """A plugin raised what would have ended the program: ``error``."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def entry_points(group: str) -> Sequence[EntryPoint]:
    """All entry points of a group. A distribution whose own cannot be read has one, malformed."""
    try:
        return tuple(importlib.metadata.entry_points(group=group))
    except Exception:
        return tuple(_one_by_one(group))


def _one_by_one(group: str) -> Iterator[EntryPoint]:
    seen = set()
    for distribution in distributions():
        name = str(distribution.name)
        if name in seen:
            continue  # a later one on the path is not what would be imported
        seen.add(name)
        try:
            yield from distribution.entry_points.select(group=group)
        except Exception as error:
            yield EntryPoint(name, f"{type(error).__name__} in its entry_points.txt", group)


def module_of(point: EntryPoint) -> str:
    """The module that an entry point names, or nothing where it is malformed."""
    try:
        return point.module
    except (AssertionError, AttributeError, ValueError):  # by the version of Python
        return ""


def loaded(point: EntryPoint) -> Any:
    """What an entry point names, imported. Raises UsageError where it is malformed."""
    if not module_of(point):
        raise UsageError(
            f"its entry point {point.value!r} names no module: "
            "write 'module' or 'module:object', and install it again"
        )
    return point.load()


@contextmanager
def contained() -> Iterator[None]:
    """Code of a plugin: whatever it raises is an ``Exception``, but for Ctrl-C."""
    try:
        yield
    except (Exception, KeyboardInterrupt):
        raise
    except BaseException as error:  # such as SystemExit of a script
        raise EndedError(error) from error
