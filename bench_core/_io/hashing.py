"""Digests of values and of source code."""

from __future__ import annotations

import hashlib
import inspect
import json
import uuid
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def canonical(value: Any) -> str:
    """JSON with sorted keys and no spaces: one text per value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def digest(value: Any) -> str:
    """32 hexadecimal digits over the canonical JSON of a value."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:32]


def code_key(cls: type) -> str:
    """A digest of the source of a class's module and of the modules and packages in ``code``."""
    own = _own_source(cls)
    listed = [module_digest(name) for name in sorted(set(getattr(cls, "code", ())))]
    return digest([own, listed])


def _own_source(cls: type) -> str:
    if cls.__module__ != "__main__":
        return module_digest(cls.__module__)
    try:
        return digest(inspect.getsource(cls))
    except (OSError, TypeError):
        return uuid.uuid4().hex  # typed at a prompt: never taken for something computed before


def packages_digest(names: Iterable[str]) -> str:
    """A digest of the whole top-level packages that hold these modules."""
    return digest([module_digest(top) for top in sorted({n.partition(".")[0] for n in names})])


@cache
def module_digest(name: str) -> str:
    """A digest of one module's source, or of all Python files of a package."""
    spec = find_spec(name)
    if spec is None:
        raise ImportError(f"no module {name!r} (named by a learner's ``code``)")
    if spec.submodule_search_locations:
        roots = [Path(p) for p in spec.submodule_search_locations]
        files = [(p.relative_to(r).as_posix(), p) for r in roots for p in r.rglob("*.py")]
    else:
        files = [(name, Path(spec.origin or ""))]
    h = hashlib.sha256()
    for relative, path in sorted(files):
        h.update(relative.encode() + b"\0" + path.read_bytes() + b"\0")
    return h.hexdigest()[:32]
