"""What installed distributions offer, read and imported so that no fault of theirs is ours.

Metadata may be damaged, and an import may raise what is no ``Exception``. Only a signal that came
ends a command: a ``KeyboardInterrupt`` by itself is as any other fault.
"""

import importlib.metadata
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint, distributions
from types import FrameType
from typing import Any

from bench_core.errors import UsageError

_STOPS = ("SIGINT", "SIGTERM", "SIGHUP")  # ``bench run`` takes them all for Ctrl-C


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
    """Code of a plugin. Whatever it raises is an ``Exception``; where the user asks meanwhile to
    stop, that is a KeyboardInterrupt, whatever the plugin makes of it."""
    came: list[int] = []

    def noting(handler: Callable[[int, FrameType | None], Any]) -> Callable[..., Any]:
        def note(number: int, frame: FrameType | None) -> None:
            came.append(number)
            handler(number, frame)

        return note

    handlers = {}
    if threading.current_thread() is threading.main_thread():  # no other may handle signals
        numbers = [getattr(signal, name) for name in _STOPS if hasattr(signal, name)]
        handlers = {n: h for n in numbers if callable(h := signal.getsignal(n))}
    try:
        for number, handler in handlers.items():
            signal.signal(number, noting(handler))
        yield
    except BaseException as error:
        if came:
            raise KeyboardInterrupt from error
        if isinstance(error, Exception):
            raise
        raise EndedError(error) from error
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if came:
        raise KeyboardInterrupt
