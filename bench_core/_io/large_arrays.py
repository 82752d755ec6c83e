"""Large arrays in files: shared arrays, and arrays that may not fit in memory."""

import hashlib
import mmap
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from bench_core._io.digests import digest
from bench_core._io.files import atomic_folder, locked
from bench_core.arrays import Array, FloatArray

IN_MEMORY = 1 << 30
"""Largest size in bytes of an array in memory."""


def shared_arrays(folder: Path, build: Callable[[], Mapping[str, Array]]) -> Mapping[str, Array]:
    """Return the arrays in ``folder`` as read-only maps, built first if it does not exist.

    A second process that needs them at the same time waits for the first.
    """
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.with_name(f".{folder.name}.lock")):
            if not folder.is_dir():
                arrays = build()
                with atomic_folder(folder) as new:
                    for name, array in arrays.items():
                        np.save(new / f"{name}.npy", np.asarray(array), allow_pickle=False)
    return {p.stem: mapped(p) for p in sorted(folder.glob("*.npy"))}


def inputs_digest(inputs: Any, names: Mapping[int, str] = MappingProxyType({})) -> str:
    """Return a digest of values by content: JSON, arrays, objects with ``state()`` such as models
    and prices, and dataclasses such as examples and learners.

    ``names`` replace the content of arrays with these ids. Raises TypeError for other values.
    """

    def plain(value: Any) -> Any:
        if id(value) in names:
            return ["name", names[id(value)]]
        if isinstance(value, np.ndarray):
            cells = np.ascontiguousarray(value).reshape(-1)
            content = cells.view(np.uint8).data if cells.size else b""
            return [str(value.dtype), value.shape, hashlib.sha256(content).hexdigest()]
        if isinstance(value, np.generic):
            return plain(value.item())
        if isinstance(value, Mapping):
            return {str(key): plain(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        if value is None or isinstance(value, str | int | float):
            return value
        kind = f"{type(value).__module__}:{type(value).__qualname__}"
        if hasattr(value, "state"):
            return [kind, plain(value.state())]
        if is_dataclass(value) and not isinstance(value, type):
            return [kind, {f.name: plain(getattr(value, f.name)) for f in fields(value)}]
        raise TypeError(f"{kind} among the inputs of shared arrays: give arrays or JSON")

    return digest(plain(inputs))


def mapped(path: Path) -> Array:
    """Return the array of a ``.npy`` file as a read-only map. Raises ValueError for other files."""
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def zeros(shape: tuple[int, ...]) -> FloatArray:
    """Return float64 zeros; large arrays are in a file of the temporary folder (TMPDIR), which is
    deleted with them."""
    size = int(np.prod(shape)) * 8
    if size <= IN_MEMORY:
        return np.zeros(shape)
    with tempfile.TemporaryFile() as file:  # the map keeps the file open
        file.truncate(size)
        return np.ndarray(shape, np.float64, buffer=mmap.mmap(file.fileno(), size))
