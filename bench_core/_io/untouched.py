"""Whether code of others, while it was imported, changed functions or classes of Budget Bench.

Plugins are imported in the process that writes results. What one replaces there is put back, and
the plugin is refused: it adds, and changes nothing.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FunctionType
from typing import Any

from bench_core.errors import UsageError

OURS = {f"bench_{name}" for name in ("core", "claims", "datasets", "measure", "methods")}
OURS |= {f"bench_{name}" for name in ("models", "reports", "trees")}
_WRITE = ("execution.runner", "planning.planner", "results.store", "results.writer")
"""Modules of ``bench_core`` that are imported before others could."""

_KINDS = (FunctionType, type, classmethod, staticmethod, property)

Place = tuple[Any, str, Any]
"""An object, the name of one of its attributes, and the attribute."""


@contextmanager
def untouched(plugin: str = "") -> Iterator[None]:
    """Undo what is changed within, and raise UsageError with the name of the first of it."""
    for name in _WRITE:
        import_module(f"bench_core.{name}")
    before = list(_places())
    try:
        yield
    finally:
        changed = [place for place in before if _attributes(place[0]).get(place[1]) is not place[2]]
        for owner, name, value in changed:
            setattr(owner, name, value)
    if changed:
        owner, name, _ = changed[0]
        parts = [getattr(owner, "__module__", ""), getattr(owner, "__qualname__", owner.__name__)]
        raise UsageError(
            f"{plugin}it changes {'.'.join(filter(None, parts))}.{name}: a plugin adds to "
            "Budget Bench, it replaces nothing of it"
        )


def _attributes(owner: Any) -> Any:
    """Attributes by name; of a function the one that decides what it does."""
    return {"__code__": owner.__code__} if isinstance(owner, FunctionType) else vars(owner)


def _places() -> Iterator[Place]:
    ours = [m for n, m in list(sys.modules.items()) if n.partition(".")[0] in OURS and m]
    for module in ours:
        for owner, name, value in list(_kept(module)):
            yield owner, name, value
            if isinstance(value, FunctionType):
                yield value, "__code__", value.__code__
            if isinstance(value, type) and value.__module__ == module.__name__:
                for of_class in _kept(value):
                    yield of_class
                    if isinstance(of_class[2], FunctionType):
                        yield of_class[2], "__code__", of_class[2].__code__


def _kept(owner: Any) -> Iterator[Place]:
    for name, value in list(vars(owner).items()):
        if isinstance(value, _KINDS):
            yield owner, name, value
