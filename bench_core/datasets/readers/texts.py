"""Columns of text: their cells as objects, and whether these are categories.

An array of text is one of Python's strings, where equal cells are one string: eight bytes a row,
however long the longest cell is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bench_core.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

TextArray = NDArray[np.object_]

MOST_TEXTS, FEW_TEXTS = 100, 12
"""A column of more different texts is no category, nor one where fewer than two rows share a text,
unless there are at most so few."""

LONGEST = 1000
"""A category, label, query or split of more characters is refused: it would name features, and
stand in every message."""

_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4}")


def cells(column: pd.Series[Any]) -> TextArray:
    """A column as text (n,), "" where a cell is missing."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        known = column.cat.categories
        texts = [*map(str, known.astype("str").to_numpy(dtype=object)), ""]  # -1: a missing cell
        chosen: TextArray = np.array(texts, dtype=object)[column.cat.codes.to_numpy(np.int64)]
        return chosen
    given = column if column.dtype == object else column.astype("str")
    missing = column.isna().to_numpy(bool)
    out = np.where(missing, "", given.to_numpy(dtype=object))
    once: dict[str, str] = {}
    for row, text in enumerate(map(str, out.tolist())):
        out[row] = once.setdefault(text, text)
    return out


def refuse_long(texts: TextArray, place: Callable[[int], str], name: str) -> None:
    """Raise InputError, with the ``place`` of its row, for a cell that is too long."""
    longest = max((text for text in set(texts.tolist())), key=len, default="")
    if len(longest) > LONGEST:
        row = texts.tolist().index(longest)
        raise InputError(
            f"{place(row)}, column {name!r}: a cell of {len(longest)} characters, more than "
            f"{LONGEST}; shorten it"
        )


def number_shares(column: pd.Series[Any]) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which cells (n,) of a column of text are numbers, and which are something else."""
    import pandas as pd

    texts = cells(column)
    different = [*dict.fromkeys(texts.tolist())]
    values = pd.to_numeric(pd.Series(different, dtype=object), errors="coerce").notna()
    numeric = dict(zip(different, values.tolist(), strict=True))
    numbers = np.fromiter(map(numeric.__getitem__, texts), dtype=bool, count=len(texts))
    return numbers, ~numbers & ~column.isna().to_numpy(bool)


def different_texts(texts: TextArray) -> dict[str, int]:
    """How often each text occurs, in sorted order, without the missing ones."""
    counts = Counter(texts.tolist())
    return {text: counts[text] for text in sorted(counts) if text}


def has_decimal_commas(texts: TextArray) -> bool:
    """Whether most of the different cells are numbers such as 1,5."""
    found = different_texts(texts)
    return sum(map(is_decimal_comma, found)) * 2 > len(found)


def no_categories(texts: TextArray) -> str:
    """What a column of text (n,) holds in place of categories: dates, or texts too different from
    row to row, or too long; "" where they are categories."""
    found = [*different_texts(texts)]
    if found and all(_DATE.match(text) for text in found):
        return f"dates ({found[0]!r}): give them as numbers, such as days"
    if len(found) > MOST_TEXTS or len(found) * 2 > max(len(texts), 2 * FEW_TEXTS):
        return f"{len(found)} different texts, as {found[0]!r:.40}: too many for categories"
    return ""


def is_decimal_comma(cell: str) -> bool:
    """Whether a cell is a number with a decimal comma."""
    return "," in cell and is_number(cell.replace(",", ".", 1))


def is_number(text: str) -> bool:
    """Whether a cell is a number with a decimal point, or a whole one."""
    try:
        float(text)
    except ValueError:
        return False
    return True
