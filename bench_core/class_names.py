"""Naming a learner or model so that another process finds it again, without pickle.

A class that is not loaded yet must lie in bench, in a package of an installed plugin, in a module
named with ``-p`` (``trust``) or in what that imports.
"""

import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

from bench_core._io.digests import modules_behind, plugin_packages
from bench_core.annotations import convert
from bench_core.errors import InputError, option
from bench_core.parameters import is_learner, parameters, plain


def spelled(cls: type) -> str:
    """Module and name of a class."""
    return f"{cls.__module__}:{cls.__qualname__}"


def encode(instance: Any) -> dict[str, Any]:
    """A learner as JSON that another process can ``decode``: its class and its fields."""
    cls = type(instance)
    fields: dict[str, Any] = {}
    for p in parameters(cls):
        value = getattr(instance, p.name)
        fields[p.name] = encode(value) if is_learner(value) else plain(value, p)
    return {"class": remember_class(cls), "fields": fields}


def decode(spec: Mapping[str, Any]) -> Any:
    """The inverse of ``encode``; imports the class's module, which a request has named."""
    trust([spec["class"].partition(":")[0]])
    cls = find_class(spec["class"])
    known = {p.name: p for p in parameters(cls)}
    values: dict[str, Any] = {}
    for name, value in spec["fields"].items():
        if isinstance(value, Mapping) and set(value) == {"class", "fields"}:
            values[name] = decode(value)
        else:
            values[name] = convert(value, known[name].annotation, f"{spec['class']}.{name}")
    return cls(**values)


_local: dict[str, type] = {}
_named: dict[str, frozenset[str]] = {}


def trust(modules: Iterable[str]) -> None:
    """Let ``find_class`` import these modules, which the user has named, and what they import."""
    for module in modules:
        if module not in _named:
            _named[module] = modules_behind(module)


def remember_class(cls: type) -> str:
    """``module:qualname`` of a class; one that cannot be imported is kept for this process."""
    spelling = spelled(cls)
    if not importable(cls):
        _local[spelling] = cls
    return spelling


def importable(cls: type) -> bool:
    """Whether another process can import the class by its name."""
    if cls.__module__ == "__main__" or "<locals>" in cls.__qualname__:
        return False
    try:
        return _import(cls.__module__, cls.__qualname__) is cls
    except (ImportError, AttributeError):
        return False


def find_class(spelling: str) -> type:
    """The class that ``remember_class`` spelt.

    Raises ImportError or AttributeError, and InputError for a module that is not to be imported.
    """
    if spelling in _local:
        return _local[spelling]
    module, _, qualname = spelling.partition(":")
    package = module.partition(".")[0]
    trusted = any(module in behind for behind in _named.values())
    if not (module in sys.modules or trusted or package in plugin_packages()):
        raise InputError(
            f"class {spelling}: its module belongs to no installed plugin, so it is not imported; "
            f"if it is yours, name it with {option('plugin', package)}"
        )
    return _import(module, qualname)


def _import(module: str, qualname: str) -> type:
    found: Any = import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    if not isinstance(found, type):
        raise ImportError(f"{module}:{qualname} is not a class")
    return found
