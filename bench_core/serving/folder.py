"""An exported model as a folder: ``model.json`` and one ``.npy`` file per array.

No pickle. ``model.json`` holds the format's version, what the model needs and reached, checksums of
all arrays, and its own. Arrays of steps lie one behind the other: step k owns the entries
``steps.start[k]:steps.start[k + 1]`` of ``steps.trees``, ``steps.weights`` and ``steps.fresh``;
``columns.start`` likewise cuts ``columns.*``.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from bench_core._io.files import atomic_folder
from bench_core.costs.model import CostModel
from bench_core.costs.shipped import MODELS
from bench_core.errors import InputError
from bench_core.serving.program import Columns, Finish, Kernel, Program, Step, Stop, Trees

FORMAT, VERSION = "budget-bench model", 1
INDEX = "model.json"
_COLUMNS = tuple(f.name for f in fields(Columns))
_KERNEL = tuple(f.name for f in fields(Kernel) if f.name != "tile")
_TREES = tuple(f.name for f in fields(Trees))
_STEP = ("carry", "combine", "gate", "k")
Arrays = Mapping[str, np.ndarray[Any, Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Folder:
    """What a folder holds: the program, the cost model, features' ``names``, and ``about``: JSON
    values such as task, unit, point, figures and provenance."""

    program: Program
    costs: CostModel
    names: tuple[str, ...]
    about: Mapping[str, Any]


def write_folder(path: Path, folder: Folder) -> None:
    """Write it, whole or not at all; an older one is replaced."""
    arrays, index = program_state(folder.program)
    costs: dict[str, Any] = {}
    for name, value in folder.costs.state().items():
        if isinstance(value, np.ndarray):
            arrays[f"costs.{name}"] = value
        else:
            costs[name] = value
    index |= {
        "format": FORMAT,
        "version": VERSION,
        "names": list(folder.names),
        "about": dict(folder.about),
        "costs": {"model": _spelling(folder.costs), "values": costs},
    }
    with atomic_folder(path) as new:
        sums = {}
        for name, array in sorted(arrays.items()):
            buffer = io.BytesIO()
            np.save(buffer, np.ascontiguousarray(array), allow_pickle=False)
            data = buffer.getvalue()
            sums[name] = hashlib.sha256(data).hexdigest()
            (new / f"{name}.npy").write_bytes(data)
        index["arrays"] = sums
        index["checksum"] = _own_sum(index)
        (new / INDEX).write_text(
            json.dumps(index, indent=1, sort_keys=True) + "\n", encoding="utf-8"
        )


def read_folder(path: Path) -> Folder:
    """The inverse of ``write_folder``. Raises InputError for what is no such folder, is of another
    version, or was changed."""
    index = _index(path)
    try:
        arrays = {name: _array(path, name, digest) for name, digest in index["arrays"].items()}
        costs = _costs(index["costs"], _inside("costs.", arrays))
        program = program_from(arrays, index)
        return Folder(program, costs, tuple(index["names"]), dict(index["about"]))
    except (LookupError, ValueError, TypeError, AttributeError) as error:
        fault = f"{type(error).__name__}: {error}"
        raise InputError(
            f"{path}: not a model that can be read ({fault}); export it again"
        ) from error


def _index(path: Path) -> dict[str, Any]:
    again = "export it with 'bench model export'"
    try:
        index = json.loads((path / INDEX).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{path}: not an exported model ({INDEX} is not there); {again}") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path / INDEX}: cannot be read ({error}); {again}") from error
    if not isinstance(index, dict) or index.get("format") != FORMAT:
        raise InputError(f"{path / INDEX}: not of an exported model; {again}")
    if index.get("version") != VERSION:
        found = index.get("version")
        raise InputError(f"{path}: format {found}, this version reads {VERSION}; {again} again")
    if index.get("checksum") != _own_sum(index):
        raise InputError(f"{path / INDEX}: was changed after the export; {again} again")
    return index


def _array(path: Path, name: str, digest: str) -> np.ndarray[Any, Any]:
    file = path / f"{name}.npy"
    try:
        data = file.read_bytes()
    except OSError as error:
        raise InputError(f"{file}: {error.strerror}; export the model again") from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise InputError(f"{file}: was changed after the export; export the model again")
    return np.asarray(np.load(io.BytesIO(data), allow_pickle=False))


def _own_sum(index: Mapping[str, Any]) -> str:
    rest = {key: value for key, value in index.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def _spelling(costs: CostModel) -> str:
    """A shipped model's name, or the class of a plugin's, which has to be there to serve."""
    if MODELS.get(costs.name) is type(costs):
        return costs.name
    from bench_core.class_names import remember_class

    return remember_class(type(costs))


def _costs(about: Mapping[str, Any], arrays: Arrays) -> CostModel:
    spelt = str(about["model"])
    if spelt in MODELS:
        return MODELS[spelt].from_state({**about["values"], **arrays})
    from bench_core.class_names import find_class

    found: Any = find_class(spelt)
    made: CostModel = found.from_state({**about["values"], **arrays})
    return made


def program_state(program: Program) -> tuple[dict[str, Any], dict[str, Any]]:
    """A program as arrays by name and JSON values."""
    steps = program.steps
    arrays: dict[str, Any] = {f"trees.{name}": getattr(program.trees, name) for name in _TREES}
    arrays["multiplier"] = program.multiplier
    for name in ("vectors", "nothing"):
        if (own := getattr(program, name)) is not None:
            arrays[name] = own
    arrays["steps.start"] = _starts([len(s.trees) for s in steps])
    for name, kind in (("trees", np.int32), ("weights", np.float64), ("fresh", np.bool_)):
        arrays[f"steps.{name}"] = np.concatenate([getattr(s, name) for s in steps]).astype(kind)
    arrays["steps.bias"] = np.array([s.bias for s in steps], dtype=np.float64)
    arrays["steps.value"] = np.array([s.value for s in steps], dtype=np.float64)
    arrays["steps.onward"] = np.array([(s.then, s.otherwise) for s in steps], dtype=np.int32)
    arrays["columns.start"] = _starts([len(s.columns.feature) for s in steps])
    for name in _COLUMNS:
        arrays[f"columns.{name}"] = np.concatenate([getattr(s.columns, name) for s in steps])
    for k, step in enumerate(steps):
        for part, what, names in (
            ("kernel", step.kernel, _KERNEL),
            ("sentinel", step.sentinel, _TREES),
        ):
            if what is not None:
                arrays |= {f"{part}{k}.{name}": getattr(what, name) for name in names}
    return arrays, {
        "outputs": program.outputs,
        "rejected": program.rejected,
        "stops": [{"step": stop.step, "point": dict(stop.point)} for stop in program.stops],
        "steps": [_plain(step) for step in steps],
    }


def _plain(step: Step) -> dict[str, Any]:
    return {
        **{name: getattr(step, name) for name in _STEP},
        "finish": None if step.finish is None else asdict(step.finish),
        "tile": None if step.kernel is None else step.kernel.tile,
        "sentinel": None if step.sentinel is None else step.sentinel_base,
    }


def program_from(arrays: Arrays, index: Mapping[str, Any]) -> Program:
    """The inverse of ``program_state``."""
    uses = [_parts(arrays, "steps", name) for name in ("trees", "weights", "fresh")]
    columns = [_parts(arrays, "columns", name) for name in _COLUMNS]
    steps = []
    for k, about in enumerate(index["steps"]):
        then, otherwise = arrays["steps.onward"][k].tolist()
        kernel, sentinel = (_inside(f"{part}{k}.", arrays) for part in ("kernel", "sentinel"))
        step = Step(
            trees=uses[0][k],
            weights=uses[1][k],
            fresh=uses[2][k],
            bias=arrays["steps.bias"][k],
            columns=Columns(*(part[k] for part in columns)),
            **{name: about[name] for name in _STEP},
            value=float(arrays["steps.value"][k]),
            then=then,
            otherwise=otherwise,
            finish=_finish(about["finish"]),
            kernel=Kernel(**kernel, tile=about["tile"]) if kernel else None,
            sentinel=Trees(**sentinel) if sentinel else None,
            sentinel_base=about["sentinel"] or 0.0,
        )
        steps.append(step)
    return Program(
        outputs=index["outputs"],
        steps=steps,
        trees=Trees(**_inside("trees.", arrays)),
        multiplier=arrays["multiplier"],
        stops=[Stop(stop["step"], stop["point"]) for stop in index["stops"]],
        rejected=index["rejected"],
        vectors=arrays.get("vectors"),
        nothing=arrays.get("nothing"),
    )


def _finish(about: Mapping[str, Any] | None) -> Finish | None:
    if about is None:
        return None
    onward = _finish(about.get("onward"))
    return Finish(**{**about, "base": tuple(about["base"]), "onward": onward})


def _parts(arrays: Arrays, part: str, name: str) -> Sequence[Any]:
    return np.split(arrays[f"{part}.{name}"], arrays[f"{part}.start"][1:-1])


def _inside(prefix: str, arrays: Arrays) -> dict[str, Any]:
    return {key[len(prefix) :]: a for key, a in arrays.items() if key.startswith(prefix)}


def _starts(sizes: Sequence[int]) -> Any:
    return np.cumsum([0, *sizes], dtype=np.int32)
