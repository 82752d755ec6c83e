"""An exported model as a folder: ``model.json`` and one ``.npy`` file per array.

No pickle. ``model.json`` holds the format's version, the model's needs and figures, and a checksum
of everything. Arrays of steps are concatenated: step k owns the entries
``steps.start[k]:steps.start[k + 1]`` of ``steps.trees``, ``steps.weights`` and ``steps.fresh``.
``columns.start`` cuts ``columns.*`` in the same way.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from bench_trees.ensemble import Ensemble

from bench_core._io.files import atomic_folder
from bench_core.costs.model import CostModel
from bench_core.costs.shipped import from_json, to_json
from bench_core.encoding import ColumnEncoding, encodings_from
from bench_core.errors import InputError, UsageError, check_memory
from bench_core.protocols import Export
from bench_core.sequential import Evaluated
from bench_core.serving.policy_program import PolicyProgram
from bench_core.serving.program import Finish, Kernel, Program, Step, Stop, WeightedColumns
from bench_core.serving.query_ranks import INPUTS

FORMAT, VERSION = "budget-bench model", 5
INDEX = "model.json"
_COLUMNS = tuple(f.name for f in fields(WeightedColumns))
_KERNEL = tuple(f.name for f in fields(Kernel) if f.name != "tile")
_TREES = ("start", "feature", "threshold", "left", "right", "missing_left", "value", "output")
_POLICY = ("outputs", "rule", "least", "skip", "each_act", "each_answer")
_STEP = ("carry", "combine", "gate", "k")
Arrays = Mapping[str, np.ndarray[Any, Any]]
_UNSOUND = (OSError, EOFError, LookupError, ValueError, TypeError, RecursionError)


@dataclass(frozen=True, slots=True, eq=False)
class Folder:
    """Content of a folder: the program, the cost model, features' ``names``, and ``about``: JSON
    values such as task, unit, point, figures and provenance. ``encodings`` turn raw columns into
    features; () if columns are features."""

    program: Program | PolicyProgram
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
    """Write arrays and ``model.json`` into an empty folder."""
    arrays, index = program_state(folder.program)
    index |= {
        "format": FORMAT,
        "version": VERSION,
        "names": list(folder.names),
        "columns": [{"kind": e.kind, **asdict(e)} for e in folder.encodings],
        "about": dict(folder.about),
        "costs": to_json(folder.costs),
    }
    for name, array in arrays.items():
        np.save(new / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)
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
        arrays = {file.stem: np.load(file, allow_pickle=False) for file in path.glob("*.npy")}
        costs = from_json(index["costs"])
        program, names = program_from(arrays, index), tuple(map(str, index["names"]))
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
    for file in sorted(path.glob("*.npy")):
        whole.update(file.name.encode() + file.read_bytes())
    return whole.hexdigest()


def _policy_state(policy: PolicyProgram) -> tuple[dict[str, Any], dict[str, Any]]:
    arrays, index = program_state(policy.scores)
    arrays["marked"] = policy.marked
    values = {name: getattr(policy, name) for name in _POLICY}
    return arrays, index | {"policy": values | {"prices": to_json(policy.prices)}}


def _policy_from(scores: Program, arrays: Arrays, about: Mapping[str, Any]) -> PolicyProgram:
    options = {name: about[name] for name in _POLICY}
    options |= {name: Evaluated(*about[name]) for name in ("each_act", "each_answer")}
    prices: Any = from_json(about["prices"])
    return PolicyProgram(scores, prices=prices, marked=arrays["marked"], **options)


def program_state(program: Program | PolicyProgram) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a program as arrays by name and JSON values."""
    if isinstance(program, PolicyProgram):
        return _policy_state(program)
    steps = program.steps
    arrays: dict[str, Any] = {f"trees.{name}": getattr(program.trees, name) for name in _TREES}
    arrays["multiplier"] = program.multiplier
    for name, array in (("vectors", program.trees.vectors), ("nothing", program.nothing)):
        if array is not None:
            arrays[name] = array
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
        for part, names in (("kernel", _KERNEL), ("sentinel", _TREES)):
            if (what := getattr(step, part)) is not None:
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
        "sentinel": None if step.sentinel is None else float(step.sentinel.base[0]),
    }


def program_from(arrays: Arrays, index: Mapping[str, Any]) -> Program | PolicyProgram:
    """Invert ``program_state``."""
    uses = [_parts(arrays, "steps", name) for name in ("trees", "weights", "fresh")]
    columns = [_parts(arrays, "columns", name) for name in _COLUMNS]
    steps = []
    for k, about in enumerate(index["steps"]):
        then, otherwise = arrays["steps.onward"][k].tolist()
        kernel, sentinel = (_inside(f"{name}{k}.", arrays) for name in ("kernel", "sentinel"))
        step = Step(
            trees=uses[0][k],
            weights=uses[1][k],
            fresh=uses[2][k],
            bias=arrays["steps.bias"][k],
            columns=WeightedColumns(*(values[k] for values in columns)),
            **{name: about[name] for name in _STEP},
            value=float(arrays["steps.value"][k]),
            then=then,
            otherwise=otherwise,
            finish=_finish(about["finish"]),
            kernel=Kernel(**kernel, tile=about["tile"]) if kernel else None,
            sentinel=_trees(sentinel, [about["sentinel"]], INPUTS) if sentinel else None,
        )
        steps.append(step)
    program = Program(
        outputs=index["outputs"],
        steps=steps,
        trees=_trees(
            _inside("trees.", arrays),
            [0.0] * index["outputs"],
            len(arrays["multiplier"]),
            arrays.get("vectors"),
        ),
        multiplier=arrays["multiplier"],
        stops=[Stop(stop["step"], stop["point"]) for stop in index["stops"]],
        rejected=index["rejected"],
        nothing=arrays.get("nothing"),
    )
    return _policy_from(program, arrays, index["policy"]) if "policy" in index else program


def _trees(arrays: Arrays, base: Sequence[float], features: int, vectors: Any = None) -> Ensemble:
    constant: Any = np.array(base)
    return Ensemble(**arrays, base=constant, features=features, vectors=vectors)  # type: ignore[arg-type]


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
