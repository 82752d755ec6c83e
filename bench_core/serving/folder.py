"""An exported model as a folder: ``model.json``, ``program.json`` and ``.npy`` files.

No pickle. ``model.json`` holds the format's version, the model's needs and figures, and a checksum
of everything. ``program.json`` holds the parts of the program by their fields, and the shapes of
their arrays. An array file has the arrays of a field of all parts, one after the other:
``steps.weights.npy`` those of all steps. A policy without a program is the name of its class, and
its state.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from bench_trees.ensemble import Ensemble

from bench_core._io.files import atomic_folder
from bench_core.class_names import find_class, remember_class
from bench_core.costs.model import CostModel, SensorPrices
from bench_core.costs.shipped import from_json, to_json
from bench_core.encoding import ColumnEncoding, encodings_from
from bench_core.errors import InputError, UsageError, check_memory
from bench_core.protocols import Export
from bench_core.sequential import Evaluated, StoredPolicy
from bench_core.serving.policy_program import PolicyProgram, ServedProgram
from bench_core.serving.program import (
    Finish,
    Kernel,
    Program,
    Step,
    Stop,
    WeightedColumns,
    WeightedPrices,
)

FORMAT, VERSION = "budget-bench model", 7
INDEX, PROGRAM = "model.json", "program.json"
_UNSOUND = (OSError, EOFError, LookupError, ValueError, TypeError, RecursionError)


@dataclass(frozen=True, slots=True, eq=False)
class Folder:
    """Content of a folder: the program, the cost model, features' ``names``, and ``about``: JSON
    values such as task, unit, point, figures and provenance. ``encodings`` turn raw columns into
    features; () if columns are features."""

    program: ServedProgram
    costs: CostModel
    names: tuple[str, ...]
    about: Mapping[str, Any]
    encodings: tuple[ColumnEncoding, ...] = ()


def check_folder(path: Path) -> None:
    """Raise UsageError if a folder has content that is not an export, which alone is replaced."""
    if path.is_file():
        raise UsageError(f"{path}: a file; name an empty or a new folder")
    if path.is_dir() and any(path.iterdir()) and not (path / INDEX).is_file():
        raise UsageError(f"{path}: contains other files; name an empty or a new folder")


def write_folder(path: Path, folder: Folder) -> None:
    """Write a folder atomically; an older one is replaced."""
    with atomic_folder(path) as new:
        fill(new, folder)


def write_as(path: Path, folder: Folder, name: str, write: Export) -> str:
    """Write a folder as ``write_folder`` does, in a format; return its remark for the user.

    ``model.json`` marks it as an export, and has its point, figures and origin.
    """
    with atomic_folder(path) as new:
        remark = write(folder, new)
        if not (new / INDEX).exists():
            _write_index(new, {"format": name, "about": dict(folder.about)})
    return remark or ""


def fill(new: Path, folder: Folder) -> None:
    """Write arrays, ``program.json`` and ``model.json`` into an empty folder."""
    arrays, program = program_state(folder.program)
    index = {
        "format": FORMAT,
        "version": VERSION,
        "names": list(folder.names),
        "columns": [{"kind": e.kind, **asdict(e)} for e in folder.encodings],
        "about": dict(folder.about),
        "costs": to_json(folder.costs),
    }
    for name, array in arrays.items():
        np.save(new / f"{name[1:]}.npy", array, allow_pickle=False)
    text = json.dumps(program, separators=(",", ":")) + "\n"
    (new / PROGRAM).write_text(text, encoding="utf-8")
    _write_index(new, index | {"sum": _sum(new, index)})


def _write_index(new: Path, index: Mapping[str, Any]) -> None:
    text = json.dumps(index, indent=1, sort_keys=True) + "\n"
    (new / INDEX).write_text(text, encoding="utf-8")


def read_folder(path: Path) -> Folder:
    """Invert ``write_folder``. Raises InputError if it is not such a folder, has another version,
    or lacks a part."""
    again = "export it with 'bench model export'"
    try:
        index = json.loads((path / INDEX).read_text(encoding="utf-8"))
        header = index["format"], index.get("version")
    except _UNSOUND as error:
        fault = getattr(error, "strerror", "") or f"not the {INDEX} of an export"
        raise InputError(
            f"{path}: not an exported model ({INDEX}: {fault.lower()}); {again}"
        ) from error
    if header[0] != FORMAT:
        raise InputError(
            f"{path}: an export in the format {header[0]!r}, which cannot be opened here; "
            "for Python and 'bench model check', export without --format"
        )
    if header != (FORMAT, VERSION):
        raise InputError(f"{path}: format {header}, this version reads {VERSION}; {again} again")
    if index.pop("sum", None) != _sum(path, index):
        raise InputError(f"{path}: changed after the export; {again} again")
    try:
        files = path.glob("*.npy")
        arrays = {f".{file.stem}": np.load(file, allow_pickle=False) for file in files}
        parts = json.loads((path / PROGRAM).read_text(encoding="utf-8"))
        costs = from_json(index["costs"])
        program, names = program_from(arrays, parts), tuple(map(str, index["names"]))
        if not len(names) == len(program.multiplier) == costs.features:
            raise ValueError("names, program and costs differ in their features")
        columns = [{k: v for k, v in entry.items() if k != "kind"} for entry in index["columns"]]
        encodings = encodings_from(columns)
        if encodings and names != tuple(f for encoding in encodings for f in encoding.features):
            raise ValueError("the columns do not make the features")
        return Folder(program, costs, names, dict(index["about"]), encodings)
    except (*_UNSOUND, AttributeError) as error:
        check_memory(error, path)
        fault = f"{type(error).__name__}: {error}"
        raise InputError(
            f"{path}: not a model that can be read ({fault}); export it again"
        ) from error


def _sum(path: Path, index: Mapping[str, Any]) -> str:
    """Return a checksum of all arrays and of the index."""
    whole = hashlib.sha256(json.dumps(index, sort_keys=True).encode())
    for file in sorted([*path.glob("*.npy"), *path.glob(PROGRAM)]):
        whole.update(file.name.encode() + file.read_bytes())
    return whole.hexdigest()


Arrays = dict[str, list[Any]]
"""Arrays of the parts of a program by the names of their fields, in the order of the parts."""

_PARTS: dict[str, Any] = {
    part.__name__: part
    for part in (
        *(Program, PolicyProgram, Step, Stop, Finish, Kernel, Ensemble),
        *(WeightedColumns, WeightedPrices, Evaluated, StoredPolicy),
    )
}


def program_state(program: ServedProgram) -> tuple[dict[str, Any], Any]:
    """Return a program as arrays by name and JSON values."""
    arrays: Arrays = {}
    index = _packed(program, "", arrays)
    flat = {name: np.concatenate([*map(np.ravel, each)]) for name, each in arrays.items()}
    return flat, index


def _packed(value: Any, name: str, arrays: Arrays) -> Any:
    """Return a part of a program as JSON; its arrays are added to ``arrays``."""
    if isinstance(value, np.ndarray):
        arrays.setdefault(name, []).append(value)
        return {"shape": value.shape}
    if isinstance(value, SensorPrices):
        return {"costs": to_json(value)}
    if (part := type(value).__name__) in _PARTS:
        inside = {f: _packed(getattr(value, f), f"{name}.{f}", arrays) for f in _fields(value)}
        return {"part": part, "fields": inside}
    if isinstance(value, list | tuple):
        return [_packed(item, name, arrays) for item in value]
    if isinstance(value, Mapping):
        return {"values": dict(value)}
    if hasattr(value, "state"):  # a policy
        state = {
            key: _packed(entry, f"{name}.{key}", arrays)
            if isinstance(entry, np.ndarray)
            else {"values": entry}
            for key, entry in value.state().items()
        }
        return {"class": remember_class(type(value)), "state": state}
    return value.item() if isinstance(value, np.generic) else value


def _fields(part: Any) -> Sequence[str]:
    if isinstance(part, Evaluated):
        return part._fields
    return [f.name for f in fields(part) if f.init]


def program_from(arrays: Mapping[str, Any], index: Any) -> Any:
    """Invert ``program_state``. Raises ValueError if an array has other lengths."""
    left = dict(arrays)
    program = _unpacked(index, "", left)
    if any(array.size for array in left.values()):
        raise ValueError("an array is longer than its parts")
    return program


def _unpacked(packed: Any, name: str, left: dict[str, Any]) -> Any:
    """Return a part of a program; its arrays are cut off from those ``left``."""
    if isinstance(packed, list):
        return tuple(_unpacked(item, name, left) for item in packed)
    if not isinstance(packed, Mapping):
        return packed
    if "shape" in packed:
        array, left[name] = np.split(left[name], [prod(packed["shape"])])
        return array.reshape(packed["shape"])
    if "costs" in packed:
        return from_json(packed["costs"])
    if "values" in packed:
        return packed["values"]
    if "class" in packed:
        kind: Any = find_class(packed["class"])
        state = packed["state"].items()
        return kind.from_state({k: _unpacked(v, f"{name}.{k}", left) for k, v in state})
    inside = packed["fields"].items()
    return _PARTS[packed["part"]](**{f: _unpacked(v, f"{name}.{f}", left) for f, v in inside})
