"""A reader of pickles that runs none of their code.

It makes dictionaries, lists, tuples, texts, numbers and numpy's scalars. Objects of named classes
become empty ones; any other name in the file is refused before it is looked up.
"""

import pickle
from collections.abc import Collection
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bench_core import InputError


class _Ignored:
    """Takes the place of an object that is not needed."""

    def __init__(self, *values: Any) -> None:
        """Drop the values."""

    def __setstate__(self, state: Any) -> None:
        """Drop the state."""


class _Dtype:
    """The type of numpy's scalars: kind, size and order of bytes."""

    plain: ClassVar[tuple[str, ...]] = ("f8", "f4", "i8", "i4", "b1")

    def __init__(self, code: str, *flags: Any) -> None:
        self.code, self.order = code, "<"

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        self.order = state[1]


def _scalar(dtype: _Dtype, raw: bytes) -> Any:
    if dtype.code not in _Dtype.plain or dtype.order not in "<>|":
        raise pickle.UnpicklingError(f"values of type {dtype.code!r:.40}")
    return np.frombuffer(raw, dtype.order + dtype.code, 1)[0].item()


_NUMPY = {
    ("numpy", "dtype"): _Dtype,
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy._core.multiarray", "scalar"): _scalar,
}


class _Reader(pickle.Unpickler):
    def __init__(self, file: Any, ignored: Collection[str]) -> None:
        super().__init__(file)
        self.ignored = ignored

    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" in self.ignored:
            return _Ignored
        if (module, name) in _NUMPY:
            return _NUMPY[module, name]
        raise pickle.UnpicklingError(f"it asks for {f'{module}.{name}'!r:.60}")


def read_pickle(path: Path, ignored: Collection[str] = ()) -> Any:
    """Return the content of a pickle, with empty objects for those of the classes ``ignored``.

    Raises InputError if it holds anything but plain values, or is damaged.
    """
    try:
        with path.open("rb") as file:
            return _Reader(file, ignored).load()
    except (OSError, MemoryError) as error:
        raise InputError(f"{path}: cannot be read ({type(error).__name__}); get it again") from None
    except Exception as error:  # a damaged pickle may raise anything
        why = error if isinstance(error, pickle.UnpicklingError) else type(error).__name__
        raise InputError(
            f"{path}: not the publisher's pickle of plain values ({why}); nothing of it was run; "
            "get the file again"
        ) from None
