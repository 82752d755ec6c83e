"""An existing model on a user's data: the column of each feature and the class of each output.

Names decide where both model and data have them. Exact names come first, then spellings with ``_``
for blanks and signs, if only one column matches. Otherwise features are matched by number. Ranges
in the file are compared with the training rows.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bench_core import InputError, Splits, Task
from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_models.matched_categories import on_categories, used_features

if TYPE_CHECKING:
    from bench_trees.importers import Imported

_KINDS = {
    Task.RANKING: ("ranking", "regression", "binary", ""),
    Task.REGRESSION: ("regression", ""),
    Task.BINARY: ("binary", "multiclass", ""),  # with two outputs
    Task.MULTICLASS: ("multiclass", ""),
}
"""Kinds of models that a task takes: any single score ranks."""

_MADE_UP = ("Column_", "f")
"""Names that libraries give to unnamed features, followed by their numbers."""

_ROWS = 10_000  # most training rows to compare with splits and ranges


def matched(model: Imported, splits: Splits, where: str) -> tuple[Imported, dict[str, bool]]:
    """The model on the columns and classes of the data, and notes: how they were matched, and
    (True) signs of a mismatch.

    Raises InputError, beginning with ``where``, for a model of another task, number of features or
    classes. So do names that are absent from the data or ambiguous.
    """
    _check_fits(model, splits, where)
    X = splits.train.X[:: -(-len(splits.train) // _ROWS)]
    found = _by_name(model, splits, where) or _by_number(model, splits, where)
    choices = []
    for how, column in found.items():
        spelt, column = on_categories(model, column, splits, X, where)
        choices.append((how, *_on_columns(spelt, column, splits, X)))
    how, moved, strange = next((c for c in choices if not c[2]), choices[0])
    if splits.task is Task.BINARY and moved.outputs == 2:
        moved = _log_odds(moved)
    moved, classes = _on_classes(moved, splits, where)
    notes = {f"columns matched by {how}{classes}": False}
    if strange:
        more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
        dated = any(own.kind == "date" and own.features[0] in strange for own in splits.encodings)
        days = "; dates are days since 1970-01-01 here" if dated else ""
        notes[
            f"column {strange[0]!r}{more} may not be the model's, or may be in another "
            "unit: no split of the model divides its training rows, or most lie outside the range "
            f"of the model's training{days}"
        ] = True
    zeros = _numbers(splits) and (X == 0).any() and not np.isnan(X).any()
    if model.source == "XGBoost" and zeros:
        notes[
            "XGBoost reads cells absent from an SVMlight file as missing, but here they are 0; use "
            "--unwritten missing"
        ] = True
    return moved, notes


def _check_fits(model: Imported, splits: Splits, where: str) -> None:
    outputs = splits.classes if splits.task is Task.MULTICLASS else 1
    outputs += splits.task is Task.BINARY and model.kind == "multiclass"
    if model.ensemble.trees == 0:
        raise InputError(f"{where}: the model has no trees")
    if model.kind not in _KINDS[splits.task]:
        raise InputError(
            f"{where}: a {model.kind} model cannot do a {splits.task} task; run it with --task "
            f"{model.kind}"
        )
    if model.outputs != outputs:
        has = "1 output" if model.outputs == 1 else f"{model.outputs} outputs"
        raise InputError(f"{where}: the model has {has}, the {splits.task} task needs {outputs}")


def _by_name(model: Imported, splits: Splits, where: str) -> dict[str, IntArray]:
    """The column of each feature, -1 if none, by the kind of match; empty without usable names.
    With d columns, d + j is column j as in the file, without its offset."""
    names, titles = splits.feature_names, model.names
    if not names or all(name.isdecimal() for name in titles):
        return {}
    place = {splits.columns[j]: j + len(names) for j, moved in enumerate(splits.offsets) if moved}
    place |= {name: j for j, name in enumerate(names)}
    for name in dict.fromkeys(splits.columns):
        place.setdefault(name, splits.columns.index(name) + 2 * len(names))  # one-hot
    column = np.array([place.get(name, -1) for name in titles])
    lost = {titles[m]: m for m in used_features(model) if column[m] < 0}
    if lost and any(titles == tuple(f"{stem}{j}" for j in range(len(titles))) for stem in _MADE_UP):
        return {}
    taken = {j % len(names) for j in column.tolist() if j >= 0}
    left: dict[str, list[str]] = {}  # columns by spelling
    for name, j in place.items():
        if j % len(names) not in taken:
            left.setdefault(_spelling(name), []).append(name)
    wanted = Counter(map(_spelling, lost))
    spelt = {name: left.get(_spelling(name), []) for name in lost}
    if absent := [name for name in lost if not spelt[name]]:
        more = f" (and {len(absent) - 1} more)" if len(absent) > 1 else ""
        raise InputError(f"{where}: the model's feature {absent[0]!r}{more} is not in the data")
    for name, m in lost.items():
        if len(spelt[name]) > 1 or wanted[_spelling(name)] > 1:
            raise InputError(
                f"{where}: the model's feature {name!r} may be column "
                f"{' or '.join(map(repr, spelt[name]))}; rename the column as the model has it"
            )
        column[m] = place[spelt[name][0]]
    first = [f", {name!r} as {found[0]!r}" for name, found in spelt.items()][:1]
    more = f" and {len(lost) - 1} more alike" if len(lost) > 1 else ""
    return {f"name{''.join(first)}{more}": column}


def _spelling(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name, flags=re.ASCII)


def _numbers(splits: Splits) -> list[int]:
    """The column numbers if these are the columns' names, as in SVMlight."""
    names = splits.feature_names
    numbered = names[:1] in (("0",), ("1",)) and all(name.isdecimal() for name in names)
    return [int(name) for name in names] if numbered else []


def _by_number(model: Imported, splits: Splits, where: str) -> dict[str, IntArray]:
    """Possible columns of the features by number, the likeliest first.

    LightGBM and XGBoost count the features of a file from 0, whatever number its first one has.
    """
    d, features, numbers = model.ensemble.features, splits.train.X.shape[1], _numbers(splits)
    moved = np.array(splits.offsets or [0.0] * features) != 0
    column = (np.arange(features) + features * moved).tolist()
    place = dict(zip(numbers or range(features), column, strict=True))
    first, width = min(place), max(place) + 1 - min(place)
    ways = {"position": first, "number: the model counts from 0, the file from 1": 0}
    order = [*ways][:1] if first == 0 else [*ways] if d == width else [*ways][::-1]
    columns = {how: np.array([place.get(m + ways[how], -1) for m in range(d)]) for how in order}
    matches = {
        how: column for how, column in columns.items() if (column[used_features(model)] >= 0).all()
    }
    if not matches or (d != width and not numbers):
        raise InputError(
            f"{where}: the model has {d} features and the data {features}; "
            "they must be the same, or both have names"
        )
    return matches


def _on_columns(
    model: Imported, column: IntArray, splits: Splits, X: Float32Array
) -> tuple[Imported, list[str]]:
    """The model with its features renumbered, and the columns that are probably wrong."""
    from bench_trees.importers.imported import at_most, at_most_written

    trees, names, d = model.ensemble, splits.names, X.shape[1]
    offset = np.where(column >= d, np.array(splits.offsets or [0.0] * d)[column % d], 0.0)
    column = np.where(column < 0, column, column % d)
    inner = trees.feature >= 0
    shift = np.where(inner, offset[trees.feature], 0.0)
    threshold = at_most_written(model.limits) if _decimal(model) else trees.threshold
    threshold = np.where(shift != 0, at_most(_exact(model) - shift), threshold)
    feature = np.where(inner, column[trees.feature], -1).astype(np.int32)
    unknown, strange = np.full((len(column), 2), np.nan), []
    ranges = unknown if model.ranges is None else model.ranges
    for m in used_features(model):
        x = X[:, column[m]][~np.isnan(X[:, column[m]])]
        sides = np.unique(np.searchsorted(np.sort(threshold[trees.feature == m]), x))
        low, high = (ranges[m] - offset[m]).astype(np.float32)
        outside = 2 * np.sum((x < low) | (x > high)) > len(x)
        if outside or len(sides) + (len(x) < len(X)) < 2:
            strange.append(names[column[m]])
    ensemble = replace(trees, feature=feature, features=d, threshold=threshold)
    return replace(model, ensemble=ensemble), strange


def _decimal(model: Imported) -> bool:
    """True if the model compares float64 cells that float32 rounds, by its ranges of training."""
    ranges = np.zeros(0) if model.ranges is None else model.ranges[np.isfinite(model.ranges)]
    return model.source == "LightGBM" and bool((ranges != ranges.astype(np.float32)).any())


def _exact(model: Imported) -> FloatArray:
    """The largest float64 (nodes,) that goes left: XGBoost and CatBoost round cells to float32."""
    if model.source == "LightGBM":
        return model.limits
    left = model.limits.astype(np.float32)
    with np.errstate(over="ignore"):  # above float32's largest number lies infinity
        right = np.nextafter(left, np.float32(np.inf))
    between = (left.astype(np.float64) + right) / 2
    odd = left.view(np.int32) % 2 != 0  # a tie goes to the even neighbour
    return np.where(odd, np.nextafter(between, -np.inf), between)


def _log_odds(model: Imported) -> Imported:
    """The model with one output of two: the log-odds of the second class. Of one class against the
    rest, each output has them, with opposite signs."""
    trees, half = model.ensemble, 0.5 if model.link == "sigmoid" else 1.0
    sign = np.array([-half, half])
    base = np.array([trees.base @ sign])
    if trees.vectors is not None:
        trees = replace(trees, vectors=(trees.vectors @ sign)[:, None], base=base)
    else:
        rounds = 2.0 if model.average else 1.0  # an average divides by twice as many trees
        of_node = np.repeat(trees.output, np.diff(trees.start))
        value, output = rounds * sign[of_node] * trees.value, np.zeros_like(trees.output)
        trees = replace(trees, value=value, output=output, base=base)
    return replace(model, ensemble=trees, link="identity")


def _on_classes(model: Imported, splits: Splits, where: str) -> tuple[Imported, str]:
    """The model with outputs in the order of the data's classes, and a note on the match."""
    names, usual = splits.class_names, tuple(map(str, range(splits.classes)))
    classes, trees = model.classes or usual, model.ensemble
    if classes == usual != names and names:
        return model, f"; class {classes[-1]} of the model is {names[-1]}"
    if not names or classes == names == usual:
        return model, ""
    if {*classes} != {*names}:
        raise InputError(
            f"{where}: the model's classes are {', '.join(classes)}, the data's are "
            f"{', '.join(names)}; use the same labels"
        )
    if classes != names and trees.vectors is not None:
        order = [classes.index(name) for name in names]
        trees = replace(trees, base=trees.base[order], vectors=trees.vectors[:, order])
    elif classes != names:  # of two classes: the log-odds of the second
        trees = replace(trees, base=-trees.base, value=-trees.value)
    return replace(model, ensemble=trees), "; classes matched by name"
