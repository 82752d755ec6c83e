"""Where modules were found, before any of their code ran.

What a module says of itself in ``sys.modules`` (``__file__``, ``__spec__``, ``__path__``) it may
have changed while it was imported; a digest of that file would be of code that never ran. So while
plugins are imported a finder that stands before all others notes what those find.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_Place = tuple[str | None, tuple[str, ...]]  # of a module's file, and the folders of a package
_places: dict[str, _Place] = {}


def place_of(name: str) -> _Place | None:
    """File and folders of a module as it was found, else as it says itself; None for one that is
    not imported."""
    if name in _places:
        return _places[name]
    return _said(sys.modules[name]) if name in sys.modules else None


def find(name: str, path: Sequence[str] | None = None) -> ModuleSpec | None:
    """What would be imported by that name if it were not yet; nothing is executed. A module's own
    word counts for nothing."""
    for finder in [finder for finder in sys.meta_path if not isinstance(finder, _Witness)]:
        look: Any = getattr(finder, "find_spec", None)
        if look is not None and (found := look(name, path, None)) is not None:
            return found  # type: ignore[no-any-return]
    return None


@contextmanager
def witnessed() -> Iterator[None]:
    """Note where modules are found within; of those there already, where they say they are."""
    for name, module in [*sys.modules.items()]:
        if name not in _places:
            _places[name] = _said(module)
    witness = _Witness()
    sys.meta_path.insert(0, witness)
    try:
        yield
    finally:
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not witness]


class _Witness:
    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if (found := find(name, path)) is not None:
            file = found.origin if found.has_location else None
            _places[name] = file, tuple(found.submodule_search_locations or ())
        return found


def _said(module: ModuleType) -> _Place:
    known = getattr(module, "__dict__", {})  # a lazy module would import more
    file, folders = known.get("__file__"), known.get("__path__")
    return file if isinstance(file, str) else None, tuple(map(str, folders or ()))
