"""The files of a results store: the database, its lock, and fitted models.

A model's state is one file of arrays and JSON, no pickle, never half written. Arrays that it has in
common with the fits it was learned from lie in their files alone.
"""

import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from bench_core._io.files import atomic_file, is_locked
from bench_core.class_names import find_class, remember_class
from bench_core.errors import InputError, one_line, option
from bench_core.protocols import State
from bench_core.results.tables import APPLICATION, SCHEMA

DEFAULT = "results/bench.db"
BEFORE = "budget-bench 0.1.0 of 26 November 2026 (commit 86784bcb)"
"""The version that reads stores of older schemas."""

DAMAGE = (sqlite3.DatabaseError, UnicodeDecodeError, zlib.error, json.JSONDecodeError)
"""Errors raised by reading a damaged store. SQLite's messages may quote bytes that are no UTF-8."""

_JSON = "json"
_ARRAY = "array."
_LARGE = 1024  # bytes from which on an array is worth a reference


def store_path(path: str | Path = "") -> Path:
    """``path`` if given, else ``BENCH_STORE``, else ``results/bench.db``."""
    return Path(path or os.environ.get("BENCH_STORE") or DEFAULT)


def check_store(path: Path) -> bool:
    """True if there is a store; InputError for a file that is none or of another version.

    Reads the head of the file alone, so that whatever it is stays as it was.
    """
    other = f"name another with {option('store')}"
    try:
        if path.exists() and not path.is_file():  # a new store would take a device's place
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
            f"{path}: made by an older version (schema {schema}); {BEFORE} reads it: use that, or "
            f"run again with another {option('store')}"
        )
    if schema > SCHEMA:
        fault = f"made by a newer version (schema {schema}, this one knows {SCHEMA})"
        raise InputError(f"{path}: {fault}; update budget-bench or {other}")
    return True


def damaged(path: Path, error: Exception) -> InputError:
    """The error for a damaged store, in one line."""
    remedy = f"put a copy in its place, or name another with {option('store')}"
    return InputError(f"{path}: the store is damaged ({one_line(str(error), 200)}); {remedy}")


def lock_path(path: Path) -> Path:
    """The file whose lock the one writer holds, next to the store's own file where ``path`` is a
    link to it."""
    path = path.resolve()
    return path.with_name(f"{path.name}.lock")


def being_written(path: Path) -> bool:
    """True if a writer holds that lock at this moment."""
    return is_locked(lock_path(path))


def states_folder(path: Path) -> Path:
    """The folder of a store's fitted models."""
    path = path.resolve()
    return path.with_name(f"{path.stem}.fits")


class StateError(Exception):
    """A state that cannot be saved."""


def state_path(folder: str | Path, key: str) -> Path:
    """The file of the fit with this key."""
    return Path(folder) / key[:2] / f"{key}.npz"


def costs_path(folder: str | Path, key: str) -> Path:
    """The file of the cost model with this key."""
    return Path(folder) / "costs" / f"{key}.npz"


def models_in(store: Path) -> list[Path]:
    """The files of all fitted models and cost models of a store."""
    return sorted(path for path in states_folder(store).glob("*/*.npz") if path.name[0] != ".")


def save_model(path: Path, model: Any, needs: Iterable[str] = ()) -> None:
    """Write a model's state, or nothing on error. Raises StateError.

    A large array that the state of one of the fits ``needs``, next to this one, holds too is not
    written again; the file says which it is. Without ``needs`` the file is complete.
    """
    arrays, values = _sort(model.state())
    known = {
        _digest(array): (key, name)
        for key in needs
        for name, array in _read(state_path(path.parents[1], key))[1].items()
        if array.nbytes >= _LARGE
    }
    shared = {}  # name: key of the fit, its name there, digest
    for name, array in arrays.items() if known else ():
        if (digest := _digest(array)) in known:
            shared[name] = (*known[digest], digest)
    cls = type(model)
    if not callable(getattr(cls, "from_state", None)):
        raise StateError(f"{cls.__qualname__} has no from_state")
    header = {"model": remember_class(cls), "values": values, "shared": shared}
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    own = {_ARRAY + name: array for name, array in arrays.items() if name not in shared}
    members: dict[str, Any] = {_JSON: text, **own}
    with atomic_file(path) as new, new.open("wb") as file:
        np.savez(file, **members)


def load_model(path: Path) -> Any:
    """The model whose state a file holds, rebuilt by its class's ``from_state``.

    Raises InputError where the file, or one that it shares arrays with, is gone or is none.
    """
    header, arrays = _read(path)
    model: Any = find_class(header["model"])
    return model.from_state({**header["values"], **arrays})


def shared_with(path: Path) -> set[str]:
    """The keys of the fits whose arrays a state's file refers to; none of a file that is gone or
    cannot be read."""
    try:
        return {key for key, _, _ in _own(path)[0]["shared"].values()}
    except InputError:
        return set()


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Header and arrays of a state, also those that lie in the files of other fits."""
    header, arrays = _own(path)
    shared = header["shared"]
    bases = {key: state_path(path.parents[1], key) for key, _, _ in shared.values()}
    others = {key: _read(base)[1] for key, base in bases.items()}
    for name, (key, there, digest) in shared.items():
        array = others[key].get(there)
        if array is None or _digest(array) != digest:
            fault = f"not the model that {path.name} was learned from"
            raise InputError(f"{bases[key]}: {fault}; run again --fresh")
        arrays[name] = array
    return header, arrays


def _own(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Header and arrays that lie in a state's own file."""
    try:  # numpy leaves a damaged file open that it opened itself
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            header: dict[str, Any] = json.loads(file[_JSON].tobytes())
            return header, {k.removeprefix(_ARRAY): file[k] for k in file.files if k != _JSON}
    except FileNotFoundError:
        raise InputError(f"{path}: the fitted model is gone; run again --fresh") from None
    except MemoryError:
        raise  # says nothing about the file
    except Exception as error:  # numpy and zipfile raise anything for a damaged file
        raise InputError(f"{path}: not a model's state ({error}); run again --fresh") from error


def _digest(array: np.ndarray[Any, Any]) -> str:
    """Of its values, type, shape and order in memory."""
    order = "F" if array.flags.fnc else "C"
    found = hashlib.blake2b(f"{array.dtype.str}{array.shape}{order}".encode(), digest_size=16)
    found.update(np.ascontiguousarray(array).view(np.uint8).data)
    return found.hexdigest()


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
