"""Files of a results store: the database, its lock, and fitted models.

A model's state is one file of arrays and JSON without pickle, written atomically.
"""

import json
import os
import sqlite3
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from bench_core._io.files import atomic_file, is_locked
from bench_core.class_names import find_class, remember_class
from bench_core.costs.model import CostModel
from bench_core.costs.shipped import from_json
from bench_core.errors import InputError, check_memory, one_line, option
from bench_core.protocols import State
from bench_core.results.tables import APPLICATION, SCHEMA

DEFAULT = "results/bench.db"
BEFORE = "budget-bench 0.1.0 of 29 November 2026 (commit 4fa713f7)"
"""Last version that reads stores of the schema before."""

DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError, zlib.error, json.JSONDecodeError)
"""Errors when reading a damaged store. SQLite's messages may quote bytes that are not UTF-8."""

_JSON = "json"
_ARRAY = "array."


def store_path(path: str | Path = "") -> Path:
    """Return ``path`` if given, else ``BENCH_STORE``, else ``results/bench.db``."""
    return Path(path or os.environ.get("BENCH_STORE") or DEFAULT)


def check_store(path: Path) -> bool:
    """True if there is a store; InputError for other files and for other versions.

    Only the file's header is read, so that the file is not modified.
    """
    other = f"name another with {option('store')}"
    try:
        if path.exists() and not path.is_file():  # a new store would replace a device
            raise InputError(f"{path}: is a folder or a device, not a results store; {other}")
        with path.open("rb") as file:
            head = file.read(100)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InputError(f"{path}: cannot read the store ({error.strerror}); {other}") from error
    if not head:
        return False
    if not head.startswith(b"SQLite format 3\0") or len(head) < 100:
        raise InputError(f"{path}: not a results store; {other}")
    # SQLite's file format: the user version is at byte 60, the application at 68
    schema, application = (int.from_bytes(head[k : k + 4], "big") for k in (60, 68))
    if application != APPLICATION:
        raise InputError(f"{path}: a database of another program; {other}")
    if schema < SCHEMA:
        raise InputError(
            f"{path}: made by an older version (schema {schema}); run again with another "
            f"{option('store')}, or read schema {SCHEMA - 1} with {BEFORE}"
        )
    if schema > SCHEMA:
        fault = f"made by a newer version (schema {schema}, this one knows {SCHEMA})"
        raise InputError(f"{path}: {fault}; update budget-bench or {other}")
    return True


def damaged(path: Path, fault: str) -> InputError:
    """Return the error for a damaged store, in one line."""
    remedy = f"put a copy in its place, or name another with {option('store')}"
    return InputError(f"{path}: the store is damaged ({one_line(fault, 200)}); {remedy}")


def lock_path(path: Path) -> Path:
    """Path of the writer's lock file, next to the store's own file if ``path`` is a link."""
    path = path.resolve()
    return path.with_name(f"{path.name}.lock")


def being_written(path: Path) -> bool:
    """True if a writer currently holds the lock."""
    return is_locked(lock_path(path))


def states_folder(path: Path) -> Path:
    """Folder of a store's fitted models."""
    path = path.resolve()
    return path.with_name(f"{path.stem}.fits")


class StateError(Exception):
    """A state that cannot be saved."""


def state_path(folder: str | Path, key: str) -> Path:
    """Path of the fitted model with this key."""
    return Path(folder) / key[:2] / f"{key}.npz"


def costs_path(folder: str | Path, key: str) -> Path:
    """Path of the cost model with this key."""
    return Path(folder) / "costs" / f"{key}.json"


def load_costs(folder: str | Path, key: str) -> CostModel:
    """Read the cost model with this key. Raises InputError if its file is missing or invalid."""
    path = costs_path(folder, key)
    try:
        return from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        again = f"run again with {option('fresh', True)}"
        raise InputError(f"{path}: not a cost model ({error}); {again}") from error


def trained_folder(folder: str | Path) -> Path:
    """Folder of arrays that the fits of a run share, deleted at its end."""
    return Path(folder) / "trained"


def models_in(store: Path) -> list[Path]:
    """Paths of all fitted models and cost models of a store."""
    folder = states_folder(store)
    paths = [*folder.glob("*/*.npz"), *folder.glob("costs/*.json")]
    return sorted(path for path in paths if path.name[0] != ".")


def save_model(path: Path, model: Any) -> None:
    """Write a model's state atomically. Raises StateError."""
    cls = type(model)
    if not callable(getattr(cls, "state", None)):
        raise StateError(f"fit returned {cls.__qualname__}, which has no state; return a model")
    state: State = model.state()
    if not callable(getattr(cls, "from_state", None)):
        raise StateError(f"{cls.__qualname__} has no from_state")
    arrays = {name: value for name, value in state.items() if isinstance(value, np.ndarray)}
    for name, array in arrays.items():
        if array.dtype.hasobject:
            raise StateError(f"state()[{name!r}] is an array of Python objects")
    values = {name: value for name, value in state.items() if name not in arrays}
    try:
        header = json.dumps({"model": remember_class(cls), "values": values})
    except (TypeError, ValueError) as error:
        fault = "state() holds something that is neither array nor JSON"
        raise StateError(f"{fault}: {error}") from None
    members: dict[str, Any] = {_ARRAY + name: array for name, array in arrays.items()}
    members[_JSON] = np.frombuffer(header.encode(), dtype=np.uint8)
    with atomic_file(path) as new, new.open("wb") as file:
        np.savez(file, **members)


def load_model(path: Path) -> Any:
    """Rebuild the model whose state is in a file, by its class's ``from_state``.

    Raises InputError if the file is missing or invalid.
    """
    try:  # numpy does not close damaged files that it opened
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            header = json.loads(file[_JSON].tobytes())
            arrays = {k.removeprefix(_ARRAY): file[k] for k in file.files if k != _JSON}
    except FileNotFoundError:
        again = f"run again with {option('fresh', True)}"
        raise InputError(f"{path}: the fitted model is gone; {again}") from None
    except Exception as error:  # damaged files cause any exception in numpy and zipfile
        check_memory(error, path)
        again = f"run again with {option('fresh', True)}"
        raise InputError(f"{path}: not a model's state ({error}); {again}") from error
    model: Any = find_class(header["model"])
    return model.from_state({**header["values"], **arrays})
