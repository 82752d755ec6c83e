"""Tables of logged calls as data sets: free columns, and sensors that are priced by row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar
from zlib import crc32

import numpy as np

from bench_core import ByRow, Examples, InputError, Queries, SensorPrices, Source, Splits
from bench_core.arrays import FloatArray, IntArray
from bench_core.datasets.readers.tables import read_table
from bench_core.encoding import ColumnEncoding

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

TEXT = ("chars", "digit_share", "lines", "words", *(f"w{k}" for k in range(8)))
"""Statistics of a prompt."""
TRAIN = 0.7
"""Share of the training half; the rest validates."""


@dataclass(frozen=True)
class Sensor:
    """A call: the columns of features that it yields, and the column of its price."""

    price: str
    columns: tuple[str, ...]
    quoted: bool = False
    requires: tuple[int, ...] = ()
    """Sensors that are paid before, by number."""


class Logged:
    """Members of a data set with a table in our layout, first of ``files``, or the publisher's."""

    folds: ClassVar[int] = 1
    depends_on: ClassVar[tuple[str, ...]] = ("seed",)
    code: ClassVar[tuple[str, ...]] = ("bench_datasets._logged_calls",)
    files: ClassVar[tuple[str, ...]]

    def complete(self, source: Source) -> bool:
        """True for our table or all of the publisher's files."""
        return source.has(self.files[0]) or all(source.has(name) for name in self.files[1:])

    def table(
        self, source: Source, published: Callable[[], pd.DataFrame], text: Sequence[str] = ()
    ) -> tuple[Path, pd.DataFrame]:
        """Return the path and the rows of our table, made of the publisher's files if absent."""
        if source.has(self.files[0]):
            path = source.find(self.files[0])
            return path, read_table(path, text=text).frame
        return source.find(self.files[1]), published()


def text_columns(prompts: Iterable[str]) -> dict[str, list[float]]:
    """Return the columns ``TEXT`` of prompts.

    Words are runs of a-z and 0-9 in lower case. ``w0`` to ``w7`` are sums of signs over the words:
    a hash decides the column and the sign (feature hashing).
    """
    rows = []
    for prompt in prompts:
        words = re.findall("[a-z0-9]+", prompt.lower())
        digits = sum(sign.isdigit() for sign in prompt) / max(len(prompt), 1)
        sums = [0] * 8
        for h in (crc32(word.encode()) for word in words):
            sums[h % 8] += 1 if (h >> 3) % 2 else -1
        rows.append([len(prompt), round(digits, 4), prompt.count("\n") + 1, len(words), *sums])
    return dict(zip(TEXT, map(list, zip(*rows, strict=True)), strict=True))


def first_rows(prompts: Sequence[str]) -> list[int]:
    """Return for each prompt the number of the first row that has it."""
    first: dict[str, int] = {}
    return [first.setdefault(prompt, k) for k, prompt in enumerate(prompts)]


def halves(group: IntArray, seed: int) -> list[IntArray]:
    """Return row numbers for training, validation and test.

    A random half trains and validates. Rows of one group (n,) go where its first row goes.
    """
    n = len(group)
    order = np.random.default_rng(seed).permutation(n)
    part = np.full(n, 2)
    part[order[: n // 2]] = 1
    part[order[: round(TRAIN * (n // 2))]] = 0
    return [np.flatnonzero(part[group] == k) for k in range(3)]


def require(path: Path, frame: pd.DataFrame, columns: Iterable[str]) -> None:
    """Raise InputError if the table lacks a column."""
    for name in columns:
        if name not in frame:
            raise InputError(f"{path}: no column {name!r}; get the file again")


def splits(
    frame: pd.DataFrame,
    y: FloatArray,
    parts: Sequence[IntArray],
    free: Sequence[str],
    sensors: Sequence[Sensor],
    unit: str,
    group: IntArray | None = None,
    **rest: Any,
) -> Splits:
    """Return the data set of a table: row numbers of training, validation and test in ``parts``.

    Columns of text become one feature for each text of the training rows; a missing cell is missing
    in all of them. Rows of the same ``group`` (n,) are drawn together by statistics. ``rest`` are
    further fields of ``Splits``.
    """
    if group is not None:  # rows of a group stand together
        parts = [rows[np.argsort(group[rows], kind="stable")] for rows in parts]
    encodings = [
        _encoding(frame[name], parts[0])
        for name in (*free, *(name for sensor in sensors for name in sensor.columns))
    ]
    X = np.column_stack([e.spread(e.codes(_cells(frame[e.name]))) for e in encodings])
    prices = frame[[sensor.price for sensor in sensors]].to_numpy(np.float64)
    if not (prices >= 0).all():
        row, k = np.argwhere(~(prices >= 0))[0]
        raise InputError(
            f"row {row + 1}, column {sensors[k].price!r}: {prices[row, k]:g} is no price; "
            "get the file again"
        )
    examples = []
    for rows in parts:
        groups = None
        if group is not None and len({*group[rows].tolist()}) < len(rows):
            groups = Queries.from_ids(group[rows])
        examples.append(Examples(X[rows], y[rows], groups=groups, price_columns=prices[rows]))
    costs = _costs(encodings, len(free), sensors, unit).on_average(examples[0])
    train, valid, test = examples
    return Splits(
        train, valid, test, costs.base,
        cost_model=costs,
        encodings=tuple(encodings),
        feature_names=tuple(name for e in encodings for name in e.features),
        price_columns=tuple(sensor.price for sensor in sensors),
        **rest,
    )  # fmt: skip


def _cells(column: pd.Series[Any]) -> Any:
    if column.dtype.kind in "biuf":
        return column.to_numpy(np.float64)
    return ["" if cell != cell else cell for cell in column.tolist()]


def _encoding(column: pd.Series[Any], train: IntArray) -> ColumnEncoding:
    name = str(column.name)
    if column.dtype.kind in "biuf":
        return ColumnEncoding(name)
    texts = Counter(column.iloc[train].dropna().tolist() or column.dropna().tolist())
    return ColumnEncoding(name, tuple(sorted(texts, key=lambda t: (-texts[t], t))), one_hot=True)


def _costs(
    encodings: Sequence[ColumnEncoding], free: int, sensors: Sequence[Sensor], unit: str
) -> ByRow:
    """Return the cost model: sensor 0 is free, sensor k + 1 is the k-th of ``sensors``."""
    needs: dict[str, list[int]] = {}
    for k, sensor in enumerate(sensors, start=1):
        needs |= dict.fromkeys(sensor.columns, sorted({k, *(s + 1 for s in sensor.requires)}))
    of_feature = [needs.get(e.name, [0]) for e in encodings for _ in e.features]
    base = SensorPrices(
        np.cumsum([0, *map(len, of_feature)]).astype(np.int32),
        np.array([s for needed in of_feature for s in needed], dtype=np.int32),
        np.zeros(len(sensors) + 1),
        np.ones(len(of_feature)),
        unit=unit,
    )
    numbers = np.arange(len(sensors))
    return ByRow(base, numbers + 1, numbers, np.array([sensor.quoted for sensor in sensors]))
