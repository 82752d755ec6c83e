"""Whether code of others, while it was imported, changed functions or classes of Budget Bench.

Without ``--isolate`` plugins are imported in the process that writes results. What one replaces
there is put back, and the plugin is refused: it adds, and changes nothing. What it asks of warnings
and of numpy's errors for itself ends with its import: for others an overflow must stay what it was.
"""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

from bench_core._io.found_modules import witnessed
from bench_core.errors import UsageError

OURS = {f"bench_{name}" for name in ("core", "claims", "datasets", "measure", "methods")}
OURS |= {f"bench_{name}" for name in ("models", "reports", "trees")}
_WRITE = ("execution.runner", "planning.planner", "results.store", "results.writer")
"""Modules of ``bench_core`` that are imported before others could."""

_KINDS = (FunctionType, type, classmethod, staticmethod, property)


@contextmanager
def untouched(plugin: str = "") -> Iterator[None]:
    """Undo what is changed within, and raise UsageError with the name of the first of it."""
    import numpy as np  # heavy for commands that load no plugin

    for name in _WRITE:
        import_module(f"bench_core.{name}")
    before, codes = _state()
    try:
        with witnessed(), warnings.catch_warnings(), np.errstate():
            yield
    finally:
        changed: list[tuple[Any, str, Any]] = [
            (owner, name, value)
            for owner, kept in before
            for now in [vars(owner)]
            for name, value in kept.items()
            if now.get(name) is not value and isinstance(value, _KINDS)
        ]
        changed += [(f, "__code__", code) for f, code in codes.items() if f.__code__ is not code]
        for owner, name, value in changed:
            setattr(owner, name, value)
    if changed:
        owner, name, _ = changed[0]
        parts = [getattr(owner, "__module__", ""), getattr(owner, "__qualname__", owner.__name__)]
        raise UsageError(
            f"{plugin}it changes {'.'.join(filter(None, parts))}.{name}: a plugin adds to "
            "Budget Bench, it replaces nothing of it"
        )


def _state() -> tuple[list[tuple[Any, dict[str, Any]]], dict[FunctionType, CodeType]]:
    """Our modules and classes with their attributes, and the code of each function there."""
    ours = [m for n, m in list(sys.modules.items()) if n.partition(".")[0] in OURS and m]
    kept: list[tuple[Any, dict[str, Any]]] = [(module, dict(vars(module))) for module in ours]
    kept += [
        (value, dict(vars(value)))
        for module, values in kept
        for value in values.values()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]
    values = (value for _, attributes in kept for value in attributes.values())
    return kept, {value: value.__code__ for value in values if type(value) is FunctionType}
