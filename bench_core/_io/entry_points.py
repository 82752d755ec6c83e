"""What installed distributions offer, imported so that no fault of theirs is ours, and the hooks of
what is imported."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from inspect import isroutine
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bench_core.errors import UsageError, unknown

if TYPE_CHECKING:
    import pluggy


class EndedError(Exception):
    """A plugin raised what would have ended the program: ``error``."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def entry_points(group: str) -> Sequence[EntryPoint]:
    """All entry points of a group."""
    return tuple(importlib.metadata.entry_points(group=group))


def module_of(point: EntryPoint) -> str:
    """The module that an entry point names."""
    return point.value.partition(":")[0].strip()


def loaded(point: EntryPoint) -> Any:
    """What an entry point names, imported. Raises UsageError where it is malformed."""
    if point.pattern.match(point.value) is None:
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


def hooks_of(plugin: ModuleType, manager: pluggy.PluginManager) -> ModuleType:
    """A module's hooks without all else that it holds, as pluggy is slow on each name. Raises
    TypeError for one that is misspelt, or that has the name of one and no mark: not silence."""
    hooks = [name for name in vars(manager.hook) if not name.startswith("_")]
    found = ModuleType("hooks")
    mark = f"{manager.project_name}_impl"  # what @hookimpl sets
    for name, value in vars(plugin).items():
        if isroutine(value) and hasattr(value, mark):
            if name not in hooks:
                raise TypeError(unknown("hook", name, hooks))
            setattr(found, name, value)
        elif name in hooks and callable(value):
            raise TypeError(f"{name} is not marked: write @hookimpl above it")
    return found


def answers(hook: pluggy.HookCaller) -> Iterator[Any]:
    """What a plugin's function for a hook gives, a list or the like; pluggy drops a None."""
    found = hook()
    if len(found) < len(hook.get_hookimpls()):
        raise TypeError(f"{hook.name} gives nothing: return a list")
    for answer in found:
        if isinstance(answer, str | type) or not isinstance(answer, Iterable):
            raise TypeError(f"{hook.name} gives {answer!r}, which is no list")
        yield answer
