"""Names of classes by which another process finds them, without pickle."""

from importlib import import_module
from typing import Any

from bench_core.errors import InputError, option

_local: dict[str, type] = {}
"""Classes of this process that cannot be imported, such as those of a notebook."""


def spelled(cls: type) -> str:
    """Return ``module:qualname`` of a class."""
    return f"{cls.__module__}:{cls.__qualname__}"


def remember_class(cls: type) -> str:
    """Return ``module:qualname`` of a class; keep a class that cannot be imported."""
    spelling = spelled(cls)
    if not importable(cls):
        _local[spelling] = cls
    return spelling


def importable(cls: type) -> bool:
    """True if another process can import the class by its name."""
    # a worker has its own __main__
    if cls.__module__ == "__main__" or "<locals>" in cls.__qualname__:
        return False
    try:
        return _import(spelled(cls)) is cls
    except (ImportError, AttributeError):
        return False


def find_class(spelling: str) -> type:
    """Return the class of a spelling by ``remember_class``. Raises InputError if not importable."""
    if spelling in _local:
        return _local[spelling]
    try:
        return _import(spelling)
    except (ImportError, AttributeError) as error:
        package = option("plugins", spelling.partition(".")[0].partition(":")[0])
        raise InputError(
            f"class {spelling}: {error}; install its plugin, or name its module with {package}"
        ) from error


def _import(spelling: str) -> type:
    module, _, qualname = spelling.partition(":")
    target: Any = import_module(module)
    for part in qualname.split("."):
        target = getattr(target, part)
    if not isinstance(target, type):
        raise ImportError(f"{spelling} is not a class")
    return target
