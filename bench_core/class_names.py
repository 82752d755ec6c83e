"""Naming a learner or model so that another process finds it again, without pickle."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from bench_core.errors import InputError, option
from bench_core.parameters import convert, is_learner, parameters, plain

_local: dict[str, type] = {}
"""Classes that no import finds, such as those of a notebook, for this process."""


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
    """The inverse of ``encode``."""
    cls = find_class(spec["class"])
    known = {p.name: p for p in parameters(cls)}
    values: dict[str, Any] = {}
    for name, value in spec["fields"].items():
        # a learner inside another
        if isinstance(value, Mapping) and set(value) == {"class", "fields"}:
            values[name] = decode(value)
        else:
            values[name] = convert(value, known[name].annotation, f"{spec['class']}.{name}")
    return cls(**values)


def remember_class(cls: type) -> str:
    """``module:qualname`` of a class; one that cannot be imported is kept for this process."""
    spelling = spelled(cls)
    if not importable(cls):
        _local[spelling] = cls
    return spelling


def importable(cls: type) -> bool:
    """Whether another process can import the class by its name."""
    # a worker's __main__ is another one
    if cls.__module__ == "__main__" or "<locals>" in cls.__qualname__:
        return False
    try:
        return _import(spelled(cls)) is cls
    except (ImportError, AttributeError):
        return False


def find_class(spelling: str) -> type:
    """The class that ``remember_class`` spelt. Raises InputError where it cannot be imported."""
    if spelling in _local:
        return _local[spelling]
    try:
        return _import(spelling)
    except (ImportError, AttributeError) as error:
        package = option("plugin", spelling.partition(".")[0].partition(":")[0])
        raise InputError(
            f"class {spelling}: {error}; install its plugin, or name its module with {package}"
        ) from error


def _import(spelling: str) -> type:
    module, _, qualname = spelling.partition(":")
    found: Any = import_module(module)
    for part in qualname.split("."):
        found = getattr(found, part)
    if not isinstance(found, type):
        raise ImportError(f"{spelling} is not a class")
    return found
