"""A model's state as one file: arrays and JSON, no pickle, never half written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from bench_core._io.files import atomic_file
from bench_core.class_names import find_class, remember_class
from bench_core.errors import InputError
from bench_core.protocols import State

_JSON = "json"
_ARRAY = "array."


class StateError(Exception):
    """A state that cannot be saved."""


def state_path(folder: str | Path, key: str) -> Path:
    """Where the state of the fit with this key lies."""
    return Path(folder) / key[:2] / f"{key}.npz"


def costs_path(folder: str | Path, key: str) -> Path:
    """Where the cost model with this key lies."""
    return Path(folder) / "costs" / f"{key}.npz"


def save_model(path: Path, model: Any) -> None:
    """Write a model's state, whole or not at all. Raises StateError."""
    arrays, values = _sort(model.state())
    cls = type(model)
    if not callable(getattr(cls, "from_state", None)):
        raise StateError(f"{cls.__qualname__} has no from_state")
    header = {"model": remember_class(cls), "values": values}
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    members: dict[str, Any] = {_JSON: text, **{_ARRAY + k: v for k, v in arrays.items()}}
    with atomic_file(path) as new, new.open("wb") as file:
        np.savez(file, **members)


def load_model(path: Path) -> Any:
    """The model whose state a file holds, rebuilt by its class's ``from_state``.

    Raises InputError where the file is gone or is none.
    """
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            header = json.loads(file[_JSON].tobytes())
            arrays = {k.removeprefix(_ARRAY): file[k] for k in file.files if k != _JSON}
    except FileNotFoundError:
        raise InputError(f"{path}: the fitted model is gone; run again --fresh") from None
    except MemoryError:
        raise  # says nothing about the file
    except Exception as error:
        raise InputError(f"{path}: not a model's state ({error}); run again --fresh") from error
    model: Any = find_class(header["model"])
    return model.from_state({**header["values"], **arrays})


def _sort(state: State) -> tuple[dict[str, np.ndarray[Any, Any]], dict[str, Any]]:
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise StateError(f"state()[{name!r}] is an array of Python objects")
    values = {name: value for name, value in state.items() if name not in arrays}
    try:
        json.dumps(values)
    except (TypeError, ValueError) as error:
        fault = "state() holds something that is neither array nor JSON"
        raise StateError(f"{fault}: {error}") from None
    return arrays, values
