"""Cache for derived arrays and text shared by all folds of a data set.

Computing them for each fold would repeat the work, and measured values would differ by fold.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from bench_core._io.digests import digest, module_digest
from bench_core._io.files import atomic_file, locked
from bench_core._io.large_arrays import shared_arrays
from bench_core.arrays import Array
from bench_core.datasets.cache import cache_folder
from bench_core.errors import InputError

Made = TypeVar("Made")


def kept_arrays(
    name: str,
    depends: Any,
    modules: Sequence[str],
    build: Callable[[], Mapping[str, Array]],
) -> Mapping[str, Array]:
    """The arrays of that name as read-only maps, built unless they are there.

    ``depends`` is JSON of all that decides them beside the source of ``modules``.
    """
    folder = cache_folder() / "kept" / f"{name}-{_key(depends, modules)}"
    with _writable(folder):
        return shared_arrays(folder, lambda: _built(name, build))


def kept_text(name: str, depends: Any, modules: Sequence[str], build: Callable[[], str]) -> Path:
    """A file with the text of that name, as ``kept_arrays``; ``name`` has its suffix."""
    stem, suffix = os.path.splitext(name)  # noqa: PTH122 - a name, no path
    path = cache_folder() / "kept" / f"{stem}-{_key(depends, modules)}{suffix}"
    with _writable(path):
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            with locked(path.with_name(f".{path.name}.lock")):
                if not path.is_file():
                    text = _built(name, build)
                    with atomic_file(path) as new:
                        new.write_text(text, encoding="utf-8")
    return path


def _key(depends: Any, modules: Sequence[str]) -> str:
    return digest([depends, [module_digest(name) for name in modules]])


def _built(name: str, build: Callable[[], Made]) -> Made:
    try:
        return build()
    except OSError as error:  # not the cache's fault
        raise InputError(f"{name}: a file that it is made from fails ({error})") from error


@contextmanager
def _writable(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{path}: cannot be kept ({error}); name a writable folder in BENCH_CACHE"
        ) from error
