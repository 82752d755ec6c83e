"""A plain sum of trees as LightGBM's model file, which has no prices or purchases.

Its raw scores equal the predictor's up to rounding: the constant is part of the first tree.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from bench_trees.ensemble import Ensemble

from bench_core._io.files import atomic_folder
from bench_core.arrays import FloatArray
from bench_core.errors import UsageError
from bench_core.serving.folder import Folder
from bench_core.serving.policy_program import PolicyProgram
from bench_core.serving.program import END, Program

_MISSING, _LEFT = 8, 2  # NaN is missing; it goes left
_LARGEST = float(np.finfo(np.float64).max)
_OBJECTIVES = {"binary": "binary sigmoid:1", "multiclass": "multiclass num_class:{}"}


def write_lightgbm(path: Path, folder: Folder) -> None:
    """Write ``model.txt`` into a folder. Raises UsageError if it is not a plain sum of trees."""
    content = text(folder)
    with atomic_folder(path) as new:
        (new / "model.txt").write_text(content, encoding="utf-8")


def text(folder: Folder) -> str:
    """Return the file's content. Raises UsageError if the model is not a plain sum of trees."""
    folder.single("lightgbm")
    program, d = folder.program, len(folder.names)
    reason = "a policy" if isinstance(program, PolicyProgram) else _more(program)
    if isinstance(program, PolicyProgram) or reason is not None:
        raise UsageError(
            f"lightgbm: the model is not a plain sum of trees ({reason}); export a folder or C"
        )
    objective = _OBJECTIVES.get(str(folder.about.get("task")), "regression")
    lines = [
        "tree",
        "version=v4",
        f"num_class={program.outputs}",
        f"num_tree_per_iteration={program.outputs}",
        "label_index=0",
        f"max_feature_idx={d - 1}",
        f"objective={objective.format(program.outputs)}",
        f"feature_names={' '.join(_names(folder.names))}",
        f"feature_infos={' '.join(['[-inf:inf]'] * d)}",
        "",
    ]
    for number, tree in enumerate(_in_turns(program)):
        lines += [f"Tree={number}", *tree, ""]
    return "\n".join([*lines, "end of trees", ""])


def _more(program: Program) -> str | None:
    """Return the reason why a model is not a plain sum of trees, or None."""
    steps = program.steps
    if program.vectors is not None or any(s.finish is not None for s in steps):
        return "its sum is averaged or passes a link"
    if any(s.gate != "always" for s in steps):
        return "it has gates"
    if any(len(s.columns.feature) or s.kernel is not None for s in steps):
        return "it has columns"
    ways = [s.then for s in steps] == [*range(1, len(steps)), END]
    if not ways or any(s.combine != "last" or not s.carry for s in steps[1:]):
        return "its stages restart the sum"
    return None


def _names(names: tuple[str, ...]) -> list[str]:
    plain = [re.sub(r"[^\w.-]", "_", name, flags=re.ASCII) for name in names]
    return plain if len(set(plain)) == len(plain) else [f"Column_{j}" for j in range(len(names))]


def _in_turns(program: Program) -> Iterator[list[str]]:
    """Yield trees of outputs 0, 1, ..., K - 1 in turn; constants if an output has no more."""
    steps = program.steps
    used = np.concatenate([s.trees for s in steps]).astype(np.int64)
    weights = np.concatenate([s.weights for s in steps])
    base = np.sum([s.bias for s in steps], axis=0)
    output = program.trees.output[used]
    own = [np.flatnonzero(output == k) for k in range(program.outputs)]
    for turn in range(max(1, *map(len, own))):
        for k, places in enumerate(own):
            constant = float(base[k]) if turn == 0 else 0.0
            if turn < len(places):
                u = places[turn]
                yield _tree(program.trees, int(used[u]), float(weights[u]), constant)
            else:
                yield _lines(1, leaf_value=[constant])


def _tree(trees: Ensemble, t: int, weight: float, constant: float) -> list[str]:
    nodes = np.arange(trees.start[t], trees.start[t + 1])
    leaf = trees.feature[nodes] < 0
    value: FloatArray = trees.value[nodes][leaf] * weight + constant
    number = np.where(
        leaf, -np.cumsum(leaf, dtype=np.int64), np.cumsum(~leaf) - 1
    )  # leaves: -1, ...
    inner = nodes[~leaf]
    if len(inner) == 0:
        return _lines(1, leaf_value=value.tolist())
    threshold = np.clip(trees.threshold[inner].astype(np.float64), -_LARGEST, _LARGEST)
    return _lines(
        len(value),
        split_feature=trees.feature[inner].tolist(),
        threshold=threshold.tolist(),
        decision_type=(_MISSING + _LEFT * trees.missing_left[inner]).tolist(),
        left_child=number[trees.left[inner] - nodes[0]].tolist(),
        right_child=number[trees.right[inner] - nodes[0]].tolist(),
        leaf_value=value.tolist(),
    )


def _lines(leaves: int, **fields: list[Any]) -> list[str]:
    listed = [f"{name}={' '.join(map(repr, values))}" for name, values in fields.items()]
    return [f"num_leaves={leaves}", "num_cat=0", *listed, "is_linear=0", "shrinkage=1"]
