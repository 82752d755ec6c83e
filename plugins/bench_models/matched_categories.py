"""Categories of an existing model on a user's data: what its codes stand for in each column.

A file has the names of categories by code. XGBoost says whose they are. LightGBM only lists them
in the order of the columns, with ordered categories, which it splits by thresholds on their codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from math import isnan, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core import InputError, Splits
from bench_core.arrays import Float32Array, IntArray

if TYPE_CHECKING:
    from bench_trees.importers import Imported


def on_categories(
    model: Imported, column: IntArray, splits: Splits, X: Float32Array, where: str
) -> tuple[Imported, IntArray]:
    """The model with its category splits over the data's columns, and the column of each feature;
    the data's features are numbered after the model's.

    Categories are matched by name where the model has names. Unknown texts go where missing values
    go. Raises InputError where categories cannot be matched. X: training rows (n, d).
    """
    model = _with_lists(model, column, splits, X, where)
    _check_texts(model, column, splits, where)
    if model.spell is None:
        return model, column
    from bench_trees.importers import ModelError
    from bench_trees.importers.categories import (
        CategorySplit,
        Chain,
        by_codes,
        by_columns,
        by_ranges,
    )
    from bench_trees.importers.imported import below

    offset, d = model.ensemble.features, len(splits.names)
    of_feature = [encoding for encoding in splits.encodings for _ in encoding.features]

    def chain_of(split: CategorySplit) -> Chain:
        m, names = split.feature, model.categories[split.feature]
        j = int(column[m]) % d
        encoding = of_feature[j] if of_feature else None
        texts, title = (encoding.texts if encoding else ()), splits.columns[j]
        if not names and texts:
            raise InputError(
                f"{where}: the model has codes for the categories of column {title!r}, which "
                "holds text; give your data these codes, or train the model on the texts"
            )
        if not names:
            return by_codes(split)
        # so that unknown categories, which go where missing cells go, are outside; to CatBoost a
        # missing cell is one text of many
        if split.missing_inside and model.source != "CatBoost":
            others = frozenset(range(len(names))) - split.codes
            left = not split.inside_left
            split = replace(split, codes=others, inside_left=left, missing_inside=False)
        chosen = {names[code] for code in split.codes if code < len(names)}
        if encoding is not None and texts:
            spelt = {*map(str, chosen)}
            inside = [k for k, text in enumerate(texts) if text in spelt]
            if encoding.one_hot:
                start = offset + of_feature.index(encoding)
                whole = range(start, start + len(texts))
                return by_columns(split, [whole[k] for k in inside], whole)
            return by_codes(replace(split, codes=frozenset(inside), lowest=0.0))
        numbers, chosen_numbers = sorted(map(_number, names)), {*map(_number, chosen)}
        if isnan(sum(numbers)):
            raise InputError(
                f"{where}: the categories of column {title!r} are text in the model, as "
                f"{names[0]!r}, and numbers in the data"
            )
        ranges: list[tuple[float, float]] = []
        for place, value in enumerate(numbers):
            if value in chosen_numbers:
                joined = place and numbers[place - 1] in chosen_numbers
                low = ranges.pop()[0] if joined else float(below(value))
                ranges.append((low, float(np.float32(value))))
        return by_ranges(split, m, ranges)

    counts = {m: len(names) for m, names in model.categories.items() if names}
    try:
        ensemble, limits = model.spell(chain_of, offset + d, counts)
    except ModelError as error:
        raise InputError(f"{where}: {error}") from error
    places = np.where(column >= 2 * d, column % d, column)
    matched = replace(model, ensemble=ensemble, limits=limits)
    if model.ranges is not None:
        codes = [m in counts for m in range(offset)]  # ranges of codes, not of the data's cells
        ranges = np.where(np.array(codes)[:, None], np.nan, model.ranges)
        matched = replace(matched, ranges=np.vstack([ranges, np.full((d, 2), np.nan)]))
    return matched, np.append(places, np.arange(d))


def _with_lists(
    model: Imported, column: IntArray, splits: Splits, X: Float32Array, where: str
) -> Imported:
    """The model with each list of categories at its feature: in the order of the features, where
    the columns' cells and the ranges of the codes fit best."""
    of_feature = [own for own in splits.encodings for _ in own.features]
    ranges = np.full((len(column), 2), nan) if model.ranges is None else model.ranges
    # the best features of the first lists, for each number of lists
    best: list[tuple[float, dict[int, tuple[Any, ...]]] | None] = [(0.0, {})]
    best += [None] * len(model.listed)
    for m, j in enumerate(column.tolist() if model.listed else ()):
        place = j % X.shape[1]
        encoding = of_feature[place] if of_feature else None
        texts = encoding.texts if encoding else ()
        cells = (texts or _numbers(X[:, place])) if j >= 0 else ()
        for k, names in reversed([*enumerate(model.listed)]):
            before, after = best[k], best[k + 1]
            fit = None if before is None else _fit(names, cells, *ranges[m].tolist())
            if before is None or fit is None:
                continue
            score = before[0] + fit[0] + (m in model.categories)
            if after is None or score > after[0]:
                best[k + 1] = score, {**before[1], m: fit[1]}
    if best[-1] is None:
        few = ", ".join(map(str, model.listed[best.index(None) - 1][:3]))
        raise InputError(
            f"{where}: no column holds the model's categories {few} ...; give them as in training"
        )
    return replace(model, categories={**model.categories, **best[-1][1]})


def _numbers(x: Float32Array) -> list[float]:
    """The different cells (n,) without missing ones."""
    numbers: list[float] = np.unique(x[~np.isnan(x)]).tolist()
    return numbers


def _fit(
    names: tuple[Any, ...], cells: Sequence[Any], low: float, high: float
) -> tuple[float, tuple[Any, ...]] | None:
    """The fit of a list of categories with a column, and the list, () if the cells are its codes;
    None if it is another column's. ``low``, ``high``: the range of the model's training."""
    count = len(names)
    if low < 0 or high >= count or low % 1 > 0 or high % 1 > 0:
        return None
    as_codes = 0.5 * (low == 0) + 0.5 * (high == count - 1)
    if not cells:
        return as_codes, names
    text = isinstance(cells[0], str)
    known = {str(name) if text else float(np.float32(_number(name))) for name in names}
    inside = sum(cell in known for cell in cells) / len(cells)
    if inside:
        return as_codes + inside + text, names  # a column of text has categories
    codes = not text and all(cell % 1 == 0 and -1 <= cell < count for cell in cells)
    return (as_codes, ()) if codes else None


def _number(name: Any) -> float:
    """A category as the number of its cells, NaN if it has none."""
    with suppress(ValueError):
        return float({"True": 1.0, "False": 0.0}.get(str(name), name))
    return nan


def _check_texts(model: Imported, column: IntArray, splits: Splits, where: str) -> None:
    """Raise InputError if the model has numbers for columns that are encoded from text here."""
    of_feature, d = [own for own in splits.encodings for _ in own.features], len(splits.names)
    numbers = [int(column[m]) for m in used_features(model) if m not in model.categories]
    met = {j: of_feature[j % d] for j in numbers if of_feature}
    texts = [own.name for j, own in met.items() if own.kind == "codes" or j >= 2 * d]
    if texts:
        more = f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""
        raise InputError(
            f"{where}: the model has numbers for column {texts[0]!r}{more}, which holds text; "
            "write the numbers of its training into your data, or train it (LightGBM, XGBoost) on "
            "categories"
        )


def used_features(model: Imported) -> list[int]:
    """The features that the model splits on."""
    return [m for m in np.unique(model.ensemble.feature).tolist() if m >= 0]
