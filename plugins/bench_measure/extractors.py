"""Extractors and items of the user, as ``bench cost measure`` names them.

``module:name`` is one of

- a function of one item, ``def length(path): ...``: one extractor, called by its name;
- a mapping of names to such functions, one extractor each;
- a function without arguments that returns such a mapping (it may load models first).

In a mapping a value may also be a pair ``(extract, outputs)``: ``extract(item)`` returns anything,
and ``outputs`` maps feature names to functions of what it returned, which give a number each.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

from bench_core.costs.timing import Extractor
from bench_core.errors import InputError, UsageError


def load_extractors(target: str) -> tuple[Extractor, ...]:
    """The extractors that ``module:name`` stands for.

    Raises UsageError, in one line, for a module that cannot be imported, a name that is not in it,
    and a thing that is no extractor.
    """
    found = load_object(target)
    if callable(found) and _takes_nothing(found):
        try:
            found = found()
        except (Exception, SystemExit) as error:
            what = f"{type(error).__name__}: {error}"
            raise UsageError(f"{target}: calling it failed ({what}); correct it") from error
        if not isinstance(found, Mapping):
            raise UsageError(
                f"{target}: takes no item, so it must return a mapping of names to functions, but "
                f"it returned {type(found).__name__}; give it a parameter for the item"
            )
    if isinstance(found, Mapping):
        if not found:
            raise UsageError(f"{target}: an empty mapping; put names and functions in it")
        return tuple(_extractor(target, str(name), value) for name, value in found.items())
    if not callable(found):
        raise UsageError(
            f"{target}: {type(found).__name__} is neither a function of one item nor a mapping of "
            "names to such functions"
        )
    return (Extractor(target.partition(":")[2], found),)


def _takes_nothing(function: Callable[..., Any]) -> bool:
    try:
        return not inspect.signature(function).parameters
    except (TypeError, ValueError):  # built-in functions have no signature
        return False


def _extractor(target: str, name: str, value: Any) -> Extractor:
    if callable(value):
        return Extractor(name, value)
    if isinstance(value, tuple) and len(value) == 2 and callable(value[0]):
        outputs = value[1]
        if isinstance(outputs, Mapping) and outputs and all(map(callable, outputs.values())):
            return Extractor(name, value[0], {str(n): f for n, f in outputs.items()})
    raise UsageError(
        f"{target}: entry {name!r} is neither a function nor a pair (extract, "
        "{feature: function of what extract returned})"
    )


def load_object(target: str) -> Any:
    """What ``module:name`` names; ``name`` may go through objects (``module:kit.colour``)."""
    module_name, colon, path = target.partition(":")
    if not colon or not module_name or not path:
        raise UsageError(f"{target!r}: write module:name, as in my_features:extractors")
    if module_name.endswith(".py") or "/" in module_name:
        raise UsageError(
            f"{target!r}: write the module's name, not its file, as in "
            f"{Path(module_name).stem}:{path}, in the folder where it lies"
        )
    try:
        found: Any = import_module(module_name)
    except (Exception, SystemExit) as error:
        lost = isinstance(error, ModuleNotFoundError) and error.name == module_name
        remedy = (
            "give the command in the folder where it lies, or install it" if lost else "correct it"
        )
        raise UsageError(
            f"{target}: cannot import {module_name} ({type(error).__name__}: {error}); {remedy}"
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            public = [n for n in vars(found) if not n.startswith("_")] if path == part else []
            near = get_close_matches(part, public, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "check the name"
            raise UsageError(f"{target}: no {part!r} in {module_name}; {hint}")
        found = getattr(found, part)
    return found


def find_items(given: Sequence[Path], most: int) -> tuple[Path, ...]:
    """Files named or lying in folders, at most so many, evenly spaced in the order of their paths.

    Hidden files are left out. Raises InputError where there is none.
    """
    found: dict[Path, None] = {}
    for path in given:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder; check the name")
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        found |= dict.fromkeys(p for p in inside if p.is_file() and not _hidden(p, path))
    if not found:
        raise InputError(f"{', '.join(map(str, given))}: no file in it; name files or their folder")
    items = tuple(found)
    step = max(1.0, len(items) / most)
    return tuple(items[int(k * step)] for k in range(min(most, len(items))))


def _hidden(path: Path, folder: Path) -> bool:
    return path != folder and any(n.startswith(".") for n in path.relative_to(folder).parts)
