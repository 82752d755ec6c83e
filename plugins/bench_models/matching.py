"""An existing model on a user's data: the column of each feature and the class of each output.

Names decide where model and data have them: first exact ones, then spellings in which blanks and
signs are ``_``, if one column alone has that spelling. Otherwise features are counted. What the
file says about its training is compared with the training rows.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bench_core import FitContext, InputError, Splits, Task
from bench_core.arrays import Float32Array, FloatArray, IntArray

if TYPE_CHECKING:
    from bench_trees.importers import Imported

_KINDS = {
    Task.RANKING: ("ranking", "regression", "binary", ""),
    Task.REGRESSION: ("regression", ""),
    Task.BINARY: ("binary", ""),
    Task.MULTICLASS: ("multiclass", ""),
}
"""Kinds of models that a task takes: any single score ranks."""

_ROWS = 10_000  # of the training rows, that ranges and splits are compared with


Described = Splits | FitContext
"""What is known of the data."""


def matched(
    model: Imported, data: Described, X: Float32Array, where: str
) -> tuple[Imported, list[str], list[str]]:
    """The model on the columns and classes of the data, how they were matched, and what speaks
    against it, compared with training cells X (n, d).

    Raises InputError, begun by ``where``, for a model of another task, number of features or
    classes, and for names that are not in the data or may be several columns.
    """
    _check_fits(model, data, where)
    X = X[:: -(-len(X) // _ROWS)]
    candidates, how = _by_name(model, data, where)
    if not candidates:
        candidates, how = _by_number(model, data, X.shape[1], where)
    choices = [_on_columns(model, column, data, X) for column in candidates]
    place = next((k for k, (_, strange) in enumerate(choices) if not strange), 0)
    moved, strange = choices[place]
    moved, classes = _on_classes(moved, data, where)
    doubts = []
    if strange:
        more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        doubts.append(
            f"column {strange[0]!r}{more} may be another one than the model's, or in another "
            "unit: its training rows are not divided by the model's splits, or most lie outside "
            "the range that the model was trained on"
        )
    return moved, [f"columns matched by {how[place]}", *classes], doubts


def _check_fits(model: Imported, data: Described, where: str) -> None:
    outputs = data.classes if data.task is Task.MULTICLASS else 1
    if model.ensemble.trees == 0:
        raise InputError(f"{where}: the model has no trees")
    if model.kind not in _KINDS[data.task]:
        raise InputError(f"{where}: a {model.kind} model cannot do a {data.task} task")
    if model.outputs != outputs:
        has = "1 output" if model.outputs == 1 else f"{model.outputs} outputs"
        raise InputError(f"{where}: the model has {has}, the {data.task} task wants {outputs}")


def _used(model: Imported) -> list[int]:
    feature = model.ensemble.feature
    return [int(m) for m in np.unique(feature[feature >= 0])]


def _by_name(model: Imported, data: Described, where: str) -> tuple[list[IntArray], list[str]]:
    """The column of each feature, -1 where there is none, and how it was found; none where names
    say nothing."""
    names, own = data.feature_names, model.names
    if not names or not own or all(name.isdecimal() for name in own):
        return [], []
    place = {data.columns[j]: j for j, offset in enumerate(data.offsets) if offset}
    place |= {name: j for j, name in enumerate(names)}
    column = np.array([place.get(name, -1) for name in own])
    lost = [m for m in _used(model) if column[m] < 0]
    if lost and any(own == tuple(f"{stem}{j}" for j in range(len(own))) for stem in _MADE_UP):
        return [], []
    spelt = defaultdict(list)  # columns that are left, by spelling
    for name, j in place.items():
        if j not in column:
            spelt[_spelling(name)].append(name)
    wanted = [_spelling(own[m]) for m in lost]
    if absent := [own[m] for m in lost if not spelt[_spelling(own[m])]]:
        more = f" (and {len(absent) - 1} more)" if len(absent) > 1 else ""
        raise InputError(f"{where}: the model's feature {absent[0]!r}{more} is not in the data")
    for m, spelling in zip(lost, wanted, strict=True):
        found = spelt[spelling]
        if len(found) > 1 or wanted.count(spelling) > 1:
            raise InputError(
                f"{where}: the model's feature {own[m]!r} may be column "
                f"{' or '.join(map(repr, found))}; rename the column as the model has it"
            )
        column[m] = place[found[0]]
    first = f", {own[lost[0]]!r} as {spelt[wanted[0]][0]!r}" if lost else ""
    more = f" and {len(lost) - 1} more alike" if len(lost) > 1 else ""
    return [column], [f"name{first}{more}"]


_MADE_UP = ("Column_", "f")
"""What libraries call features that were given no names, followed by their numbers."""


def _spelling(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name, flags=re.ASCII)


def _by_number(
    model: Imported, data: Described, features: int, where: str
) -> tuple[list[IntArray], list[str]]:
    """The columns that features may be by their numbers, the likeliest first, and what that is.

    LightGBM and XGBoost count the features of a file from 0, whatever its first one is called.
    """
    d, used, names = model.ensemble.features, _used(model), data.feature_names
    numbered = all(name.isdecimal() for name in names) and names[:1] in (("0",), ("1",))
    number = [int(name) for name in names] if numbered else [*range(features)]
    place = {n: j for j, n in enumerate(number)}
    first, width = number[0], number[-1] + 1 - number[0]
    shifts = [0] if first == 0 else [1, 0] if d == width else [0, 1]
    found = [np.array([place.get(m + shift, -1) for m in range(d)]) for shift in shifts]
    how = {first: "position", first - 1: "number: the model counts from 0, the file from 1"}
    fit = [k for k, column in enumerate(found) if all(column[m] >= 0 for m in used)]
    if not fit or (d != width and not numbered):
        raise InputError(
            f"{where}: the model has {d} features and the data {features}; "
            "they must be the same, or both have names"
        )
    return [found[k] for k in fit], [how[shifts[k]] for k in fit]


def _on_columns(
    model: Imported, column: IntArray, data: Described, X: Float32Array
) -> tuple[Imported, list[str]]:
    """The model with its features renumbered, and the columns that are probably others."""
    from bench_trees.importers.imported import at_most

    trees, d, offset = model.ensemble, X.shape[1], np.zeros(len(column))
    for k in np.flatnonzero(column >= 0) if data.offsets else ():
        j = int(column[k])
        if model.names[k : k + 1] != data.feature_names[j : j + 1]:
            offset[k] = data.offsets[j]
    inner = trees.feature >= 0
    shift = np.where(inner, offset[trees.feature], 0.0)
    threshold = np.where(shift != 0, at_most(_exact(model) - shift), trees.threshold)
    feature = np.where(inner, column[trees.feature], -1).astype(np.int32)
    moved = replace(trees, feature=feature, features=d, threshold=threshold)
    strange = []
    for m in _used(model):
        j = int(column[m])
        x = X[:, j][~np.isnan(X[:, j])]
        sides = np.unique(np.searchsorted(np.sort(threshold[feature == j]), x))
        alone = len(sides) + (len(x) < len(X)) < 2
        if model.ranges is not None:
            low, high = (model.ranges[m] - offset[m]).astype(np.float32)
            alone |= bool(2 * np.sum((x < low) | (x > high)) > len(x))
        strange += [data.feature_names[j] if data.feature_names else str(j + 1)] if alone else []
    return replace(model, ensemble=moved), strange


def _exact(model: Imported) -> FloatArray:
    """The largest float64 (nodes,) that goes left: XGBoost and CatBoost round cells to float32."""
    if model.source == "LightGBM":
        return model.limits
    left = model.limits.astype(np.float32)
    between = (left.astype(np.float64) + np.nextafter(left, np.float32(np.inf))) / 2
    odd = left.view(np.int32) % 2 != 0  # a tie goes to the even neighbour
    return np.where(odd, np.nextafter(between, -np.inf), between)


def _on_classes(model: Imported, data: Described, where: str) -> tuple[Imported, list[str]]:
    """The model with outputs in the order of the data's classes, and how they were matched."""
    names, own = data.class_names, model.classes
    usual = tuple(map(str, range(len(names))))
    if not names or (names == usual and own in ((), usual)):
        return model, []
    if own in ((), usual):
        return model, [f"class {k} of the model is {name}" for k, name in enumerate(names)][-1:]
    if {*own} != {*names}:
        if names != usual:
            raise InputError(
                f"{where}: the model's classes are {', '.join(own)}, those of the data "
                f"{', '.join(names)}; label the rows alike"
            )
        return model, [f"class {len(own) - 1} of the model, {own[-1]}, is {names[-1]}"]
    if own != names:
        order, trees = [own.index(name) for name in names], model.ensemble
        if model.vectors is not None:
            trees = replace(trees, base=trees.base[order])
            model = replace(model, vectors=model.vectors[:, order])
        else:  # of two classes, the log-odds of the second
            trees = replace(trees, base=-trees.base, value=-trees.value)
        model = replace(model, ensemble=trees)
    return model, ["classes matched by name"]
