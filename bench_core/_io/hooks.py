"""The functions of a module that are marked as hooks, and what they answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from inspect import isroutine
from types import ModuleType
from typing import TYPE_CHECKING, Any

from bench_core.errors import unknown

if TYPE_CHECKING:
    import pluggy


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
