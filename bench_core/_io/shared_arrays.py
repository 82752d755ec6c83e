"""Arrays that fits on the same training data share: built once, opened as read-only maps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from bench_core._io.atomic import atomic_folder
from bench_core._io.locks import locked
from bench_core.arrays import Array


def shared_arrays(folder: Path, build: Callable[[], Mapping[str, Array]]) -> Mapping[str, Array]:
    """The arrays in ``folder``, built first where it does not exist.

    A second process that wants them at the same time waits for the first.
    """
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.with_name(f".{folder.name}.lock")):
            if not folder.is_dir():
                arrays = build()
                with atomic_folder(folder) as new:
                    for name, array in arrays.items():
                        np.save(new / f"{name}.npy", np.asarray(array), allow_pickle=False)
    return {p.stem: np.load(p, mmap_mode="r") for p in sorted(folder.glob("*.npy"))}
