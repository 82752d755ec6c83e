"""A user's own data, from files or memory, as the splits of a data set.

A table (or an SVMlight file) becomes a ``Part``: features, labels, queries. ``splits_of`` gives all
parts the same columns, makes missing parts, encodes text, and determines the task.

Splits. With ``--split COLUMN`` that column holds ``train``, ``valid`` or ``test``. Otherwise
missing parts are cut off the first part by a hash of the query, or of the row number without
queries. If both are missing: 60% train, 20% valid, 20% test (or ``shares``). If one is missing, it
gets a quarter of the first part. With ``cv`` of k, the hash is rotated by 1/k from fold to fold,
so that test splits never overlap.

Text. A column with at most ``ONE_HOT`` different texts in the training rows is one-hot encoded
(``sex=f``). Other columns of text become codes, 0 for the most frequent text. Labels are not used.
All features of a column share one sensor. A missing cell is missing in all of them; an unseen text
is 0 in all of them, or a missing code.

Task, unless given: ranking if there are queries; binary for two labels; multi-class for text or at
most 20 different integers; else regression. The training rows decide. Classes are their labels in
sorted order; another label in validation or test is an error. Every feature costs 1 without a cost
file.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.costs.cost_file import LARGEST_COST
from bench_core.costs.price_table import PriceColumn, columns_named
from bench_core.data import Examples, Queries, Task
from bench_core.datasets.pricing import unit_prices
from bench_core.datasets.readers.tables import (
    EXACT,
    DataColumn,
    DataTable,
    different_texts,
    float32_offset,
    hold_text,
    read_features,
)
from bench_core.datasets.splitting import hashed
from bench_core.datasets.table_options import TableOptions
from bench_core.encoding import MISSING, ColumnEncoding
from bench_core.errors import InputError, option, unknown
from bench_core.option_fields import listed
from bench_core.splits import (
    CUT,
    MOST_CLASSES,
    SPLITS,
    Note,
    Splits,
    source_columns,
    task_of_labels,
)

if TYPE_CHECKING:
    import pandas as pd

APART = "float32 does not tell its values apart"
MERGED = f"{APART}, so some become one"
ONE_HOT = 12
LABELS = ("label", "target", "y", "class", "relevance", "grade")
LARGEST_GRADE = 1000.0  # the gain 2^grade of a larger one overflows float64
LARGEST_LABEL = 1e15  # squared errors stay below 1e30 for all that a learner may predict
# With fewer rows, a column may number them by chance or on purpose.
SMALLEST = 50
# Names of row numbers, as Unnamed: 0, row_id, customerId, No.
_INDEX = re.compile(
    r"unnamed: \d+|level_\d|#|(.*[\W_])?(index|idx|id|row|no|nr|number|key|rowid|rownum)[\W_]*"
    r"|.*(?-i:[a-z](Id|ID))",
    re.IGNORECASE,
)
WORDS = {
    "train": "train", "training": "train", "valid": "valid", "validation": "valid",
    "vali": "valid", "val": "valid", "dev": "valid", "test": "test",
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows of one file or table.

    ``frame`` (n, d) holds the features: numbers as float32, or as float64 if float32 merges values;
    text as objects, "" if missing. ``labels`` (n,) are float64 or text. ``unit`` uint64 is one hash
    per query, or per row without queries; random splits use it. ``split`` (n,) is text or None.
    Unless the task is ranking, queries are groups of rows that depend on each other.
    ``place`` turns a row number into "FILE, line N" (of data in memory "y, row N").
    """

    path: Path
    frame: pd.DataFrame
    labels: NDArray[Any]  # (n,)
    queries: Queries | None
    unit: NDArray[np.uint64]  # (q,), or (n,) without queries
    split: NDArray[Any] | None  # (n,) train, valid or test
    place: Callable[[int], str]  # row -> "FILE, line N"
    numbered: bool = False  # columns are known by number; cells beyond the last are ``unwritten``
    unwritten: float = 0.0  # cells that the file does not write
    notes: tuple[str, ...] = ()
    typed: bool = True  # texts such as "NA" are texts, not missing cells
    formats: Mapping[str, str] = field(default_factory=dict)  # of columns (``ColumnEncoding``)
    copies: IntArray | None = None  # (n,) that a row represents
    query: str = ""  # what names the queries, "" if they are only numbered
    prices: FloatArray | None = None  # (n, c) of ``TableOptions.prices_by_row``

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the features."""
        return tuple(self.frame.columns)

    def __len__(self) -> int:
        return len(self.labels)

    def choose(self, units: NDArray[np.bool_]) -> Part:
        """Return the rows of some queries (or some rows), in order."""
        rows, queries = units, self.queries
        if queries is not None:
            rows = np.repeat(units, queries.sizes)
            queries = Queries.from_sizes(queries.sizes[units])
        numbers = np.flatnonzero(rows)  # of the chosen rows in this part, for messages
        return replace(
            self,
            frame=self.frame[rows],
            labels=self.labels[rows],
            queries=queries,
            unit=self.unit[units],
            split=None,
            copies=None if self.copies is None else self.copies[rows],
            prices=None if self.prices is None else self.prices[rows],
            place=lambda row: self.place(int(numbers[row])),
        )


def score_columns(options: TableOptions, table: DataTable) -> dict[str, str]:
    """Return the source of each column of scores, {} without: what ``*`` stands for, else the
    column's name without its last word. Raises InputError for unknown names and fewer than two."""
    sources: dict[str, str] = {}
    for text in options.choose:
        for name in listed(text, table.names.__contains__):
            if "*" not in name and name not in table.names:
                raise InputError(
                    f"{table.path}: {option('choose')}: {unknown('column', name, table.names)}"
                )
            pattern = re.compile("(.+)".join(map(re.escape, name.split("*", 1))), re.DOTALL)
            for column in table.names:
                if match := pattern.fullmatch(column):
                    word = column.rpartition("_")[0] or column
                    sources[column] = match[1] if pattern.groups else word
    if options.choose and len({*sources.values()}) < max(len(sources), 2):
        columns = ", ".join(sources) or f"no column is called {' or '.join(options.choose)}"
        what = "name the scores of two or more sources, one column for each"
        raise InputError(f"{table.path}: {option('choose')}: {columns}; {what}")
    return sources


PricedColumns = Sequence[tuple[PriceColumn, DataColumn]]
"""Sensors with prices by row, and the columns of their prices."""


def columns_of_prices(
    table: DataTable, sensors: Sequence[PriceColumn], others: Collection[str] = ()
) -> PricedColumns:
    """Return the columns of prices in a table. Raises InputError for unknown ones, and for the
    columns ``others``, which have another role."""
    for priced in sensors:
        what = ""
        if priced.column not in table.names:
            what = unknown("column", priced.column, table.names)
        elif priced.column in others:
            what = f"column {priced.column!r} is the label, or has another role; name another"
        if what:
            raise InputError(f"{table.path}: prices of sensor {priced.sensor!r}: {what}")
    return [(priced, table.column(priced.column)) for priced in sensors]


def prices_of_rows(columns: PricedColumns, frame: pd.DataFrame) -> FloatArray | None:
    """Return the prices (n, c) of rows with these features, 0 where nothing was bought.

    Raises InputError for a negative price, and for none where a feature of its sensor has a value.
    """
    prices: dict[str, FloatArray] = {}
    for priced, column in columns:
        values = column.numbers()
        at = f"column {column.name!r}: the price of sensor {priced.sensor!r}"
        if (values < 0).any():
            row = int(np.argmax(values < 0))
            raise InputError(f"{column.place(row)}, {at} is {values[row]:g}; correct it")
        if (values > LARGEST_COST).any():
            row = int(np.argmax(values > LARGEST_COST))
            what = f"is {values[row]:g}; give at most {LARGEST_COST:g}"
            raise InputError(f"{column.place(row)}, {at} {what}")
        missing = np.isnan(values)
        if missing.any() and not priced.features:  # of errors
            raise InputError(f"{column.place(int(np.argmax(missing)))}, {at} is missing")
        if missing.any():
            cells = frame[priced.among([*frame.columns])]
            bought = ((cells.notna()) & (cells != "")).to_numpy().any(axis=1) & missing
            if bought.any():
                what = "is missing, but it has values there; fill in one or leave out the other"
                raise InputError(f"{column.place(int(np.argmax(bought)))}, {at} {what}")
        prices[priced.column] = np.where(missing, 0.0, values)
    return np.column_stack([*prices.values()]) if prices else None


@dataclass(frozen=True, slots=True, eq=False)
class TablePart:
    """A table before it becomes a ``Part``: the kind of a column, numbers or text, is decided over
    all tables together."""

    table: DataTable
    columns: tuple[str, ...]  # of features
    label: DataColumn
    query: DataColumn | None
    split: DataColumn | None
    notes: tuple[str, ...] = ()
    named: bool = True  # the columns have names
    guessed: tuple[str, ...] = ()  # columns whose role was guessed from their name
    copies: IntArray | None = None  # (n,) that a row represents
    prices: PricedColumns = ()
    scores: Mapping[str, DataColumn] = field(default_factory=dict)  # of a choice, by source

    @property
    def path(self) -> Path:
        """File, or argument in Python."""
        return self.table.path

    @contextmanager
    def found(self, column: DataColumn) -> Iterator[None]:
        """Add to errors about a guessed column that it can be dropped."""
        try:
            yield
        except InputError as error:
            if column.name not in self.guessed:
                raise
            remedy = f"or leave column {column.name!r} out: {option('drop', [column.name])}"
            raise InputError(f"{error}; {remedy}") from error


def read_parts(parts: Mapping[str, Part | TablePart], keep: Sequence[str] = ()) -> dict[str, Part]:
    """Return the parts with their cells read. Columns that number the rows are left out, except
    those to ``keep``. Raises InputError for unusable cells."""
    raw_parts = {name: raw for name, raw in parts.items() if isinstance(raw, TablePart)}
    by_split = {name: part for name, part in parts.items() if isinstance(part, Part)}
    if not raw_parts:
        return by_split
    import pandas as pd

    first = next(iter(raw_parts.values()))
    frames = read_features([raw.table for raw in raw_parts.values()], first.columns)
    labels = [_scores(raw.scores) for raw in raw_parts.values()]
    if not first.scores:
        labels = _labels([raw.label for raw in raw_parts.values()])
    notes, answers = [*first.notes], [n for n in first.columns if n.lower() in LABELS]
    for column in answers if first.scores else ():
        if column not in keep:
            frames = [frame.drop(columns=column) for frame in frames]
            what = f"column {column!r} may be an answer and is left out"
            notes.append(f"{what}: {option('keep_column', [column])} keeps it")
    frames = [_with_calls(frame, first.scores) for frame in frames]
    numbering = [name for name in _numbering(frames) if name not in keep]
    for column in numbering:
        what = f"column {column!r} numbers the rows"
        if not first.named or len(numbering) == len(first.columns):  # nothing would be left
            notes.append(f"{what}: leave it out of {first.path}")
        else:
            frames = [frame.drop(columns=column) for frame in frames]
            notes.append(f"{what} and is left out: {option('keep_column', [column])} keeps it")
    for (name, raw), frame, y in zip(raw_parts.items(), frames, labels, strict=True):
        queries, unit, words = None, hashed(np.arange(len(y))), None
        order: IntArray | slice = slice(None)
        if raw.query is not None:
            with raw.found(raw.query):
                texts = raw.query.texts()
            number, ids = pd.factorize(texts)  # in order of first appearance
            if np.any(np.diff(number) < 0):
                order = np.argsort(number, kind="stable")
                if (column := raw.query.name) in raw.guessed:  # it may be a feature
                    row = int(np.argmax(np.diff(number) < 0)) + 1
                    with raw.found(raw.query):
                        raise InputError(
                            f"{raw.table.place(row)}: other queries lie between the rows of query "
                            f"{texts[row]!r}; give {option('query', column)} if that is the query"
                        )
            queries = Queries.from_sizes(np.bincount(number))
            digests = (blake2b(str(name).encode(), digest_size=8).digest() for name in ids)
            unit = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
        if raw.split is not None:
            with raw.found(raw.split):
                words = _words(raw.split)
        typed = raw.table.written is None
        prices = prices_of_rows(raw.prices, frame)  # in the order of the file
        by_split[name] = Part(
            *(raw.path, frame.iloc[order] if len(frame) else frame, y[order], queries, unit),
            *(words if words is None else words[order], _in_order(raw.label.place, order)),
            typed=typed,
            formats=raw.table.formats,
            copies=raw.copies if raw.copies is None else raw.copies[order],
            query="" if raw.query is None else raw.query.name,
            prices=None if prices is None else prices[order],
        )
    by_split[next(iter(raw_parts))] = replace(by_split[next(iter(raw_parts))], notes=tuple(notes))
    return {name: by_split[name] for name in parts}


def _in_order(place: Callable[[int], str], order: IntArray | slice) -> Callable[[int], str]:
    """Return the locations of rows in another order."""
    return place if isinstance(order, slice) else lambda row: place(int(order[row]))


def _words(column: DataColumn) -> NDArray[Any]:
    """Return the splits (n,) named by the cells."""
    texts = column.texts()
    words = np.array([WORDS.get(text.lower(), "") for text in texts])
    if not words.all():
        row = int(np.argmin(words != ""))
        place = f"{column.place(row)}, column {column.name or 'split'!r}"
        raise InputError(f"{place}: {texts[row]!r} is not a split; write train, valid or test")
    return words


def _labels(columns: Sequence[DataColumn]) -> list[NDArray[Any]]:
    """Return the labels (n,) of several tables as float64, or as text in all."""
    if not hold_text(columns):
        numbers = [column.numbers(missing=False) for column in columns]
        if max(np.abs(y).max() for y in numbers) < EXACT:
            return numbers
        texts = [column.texts() for column in columns]  # long ids of classes may be one float64
        different = len({*np.concatenate(texts)})
        if not len(np.unique(np.concatenate(numbers))) < different <= MOST_CLASSES:
            return numbers
    return [column.texts() for column in columns]


def _scores(columns: Mapping[str, DataColumn]) -> FloatArray:
    """Return the qualities (n, K) of the answers of a choice. Raises InputError for a missing one
    and for one that is not from 0 to 1."""
    scores = [column.numbers(missing=False) for column in columns.values()]
    for column, values in zip(columns.values(), scores, strict=True):
        wrong = (values < 0) | (values > 1)
        if wrong.any():
            row = int(np.argmax(wrong))
            what = f"the score {values[row]:g} is not from 0 to 1; scale the column"
            raise InputError(f"{column.place(row)}, column {column.name!r}: {what}")
    return np.column_stack(scores) if scores else np.zeros((0, 0))


def _with_calls(frame: pd.DataFrame, sources: Collection[str]) -> pd.DataFrame:
    """Return a frame with a column of ones for each source whose call yields no column: its answer
    is only returned."""
    called = source_columns([*sources], [*frame.columns])
    pairs = zip(sources, called, strict=True)
    return frame.assign(**{source: np.float32(1.0) for source, columns in pairs if not columns})


def _numbering(frames: Sequence[pd.DataFrame]) -> list[str]:
    """Return the columns that number rows: whole numbers without repeats that are consecutive, in
    the first table or in all together, or that are called an index or id, in each table."""

    def different(cells: Float32Array) -> bool:
        values = np.unique(cells.astype(np.float64))
        rounded = 0.01 if values[-1] > 2**24 else 0.0  # float32 merges large neighbours
        whole = len(np.unique(values % 1)) == 1
        return whole and len(values) >= len(cells) * (1 - rounded)

    def consecutive(cells: Float32Array) -> bool:
        return float(cells.max()) - float(cells.min()) == len(cells) - 1 and different(cells)

    names = frames[0].select_dtypes("number").columns
    if len(frames[0]) <= SMALLEST:
        return []
    numbering = []
    for name in names:
        columns = [frame[name].to_numpy() for frame in frames]
        called = _INDEX.fullmatch(name) is not None and all(map(different, columns))
        if called or consecutive(columns[0]) or consecutive(np.concatenate(columns)):
            numbering.append(name)
    return numbering


def splits_of(
    tables: Mapping[str, Part | TablePart], options: TableOptions, fold: int = 0
) -> Splits:
    """Return the splits of a user's data, with at least a part ``train``; every feature costs 1.

    Without a column of splits ``_by_hash`` makes missing parts. Raises InputError for unusable
    parts.
    """
    parts = _same_columns(tables, options.keep_column)
    first = parts["train"]
    notes: list[str | Note] = [*first.notes]
    if first.split is not None and not options.shares:
        parts = _by_column(parts, first.split, options.split or "split")
    elif len(parts) < len(SPLITS):
        parts = _by_hash(parts, notes, options.shares, fold / (options.cv or 1))
    X, names, encodings = _encoded(parts, notes)
    if options.choose:
        kind, classes = Task.CHOICE, sources_of(tables)
        y: Mapping[str, FloatArray] = {name: parts[name].labels for name in SPLITS}
    else:
        kind = _task(options.task, parts, notes)
        y, classes = _numbered(kind, parts, notes, options.positive)
    notes += _ids_in_two(parts)
    ranking = kind is Task.RANKING
    train, valid, test = (
        Examples(
            X[n], y[n], part.queries if ranking else None, part.copies,
            None if ranking else part.queries, part.prices,
        )
        for n, part in ((n, parts[n]) for n in SPLITS)
    )  # fmt: skip
    return Splits(
        train, valid, test, unit_prices(len(names), encodings), kind, len(classes), names,
        notes=tuple(notes), costs_assumed=True,
        encodings=encodings, class_names=classes,
        price_columns=columns_named(options.prices_by_row),
    )  # fmt: skip


def sources_of(tables: Mapping[str, Part | TablePart]) -> tuple[str, ...]:
    """Return the sources of a choice. Raises InputError if tables name others."""
    of_tables = [table for table in tables.values() if isinstance(table, TablePart)]
    named = [(table.path, (*table.scores,)) for table in of_tables]
    for path, sources in named:
        if sources != named[0][1]:
            what = f"scores of {', '.join(sources)}; {named[0][0]} has {', '.join(named[0][1])}"
            raise InputError(f"{path}: {what}; give both the same")
    return named[0][1]


def _ids_in_two(parts: Mapping[str, Part]) -> Iterator[str]:
    """Yield a note for each two parts that have ids of queries in common."""
    for (a, first), (b, second) in combinations(parts.items(), 2):
        shorter = min(len(first.unit), len(second.unit))
        alike = np.array_equal(first.unit[:shorter], second.unit[:shorter])
        if alike and first.numbered and second.numbered:
            continue  # numbers from 1 in each file
        if first.query and second.query and (count := len(np.intersect1d(first.unit, second.unit))):
            yield (
                f"{count} of {len(second.unit)} ids of {second.query!r} in {b} are in {a} too: if "
                "they are the same, results are too good; give each to one split"
            )


def _same_columns(tables: Mapping[str, Part | TablePart], keep: Sequence[str]) -> dict[str, Part]:
    """Give all parts the same columns: pad SVMlight with zeros, order tables as the first."""
    first = tables["train"]
    if not all(isinstance(table, Part) and table.numbered for table in tables.values()):
        for table in tables.values():
            for here, there in ((table, first), (first, table)):
                for name in there.columns:
                    if name not in here.columns:
                        spare = [c for c in here.columns if c not in there.columns]
                        near = get_close_matches(name, spare, 1)
                        hint = f"rename {near[0]!r}?" if near else "give both the same columns"
                        raise InputError(
                            f"{here.path}: no column {name!r}, which {there.path} has; {hint}"
                        )
        return read_parts(tables, keep)
    # the largest index used sets an SVMlight file's width, so files may differ
    parts = read_parts(tables)
    columns = max((table.frame.columns for table in parts.values()), key=len)
    wide = {
        name: table.frame.reindex(columns=columns, fill_value=np.float32(table.unwritten))
        for name, table in parts.items()
    }
    return {name: replace(table, frame=wide[name]) for name, table in parts.items()}


def _by_column(parts: dict[str, Part], words: NDArray[Any], column: str) -> dict[str, Part]:
    """Divide the only part by a column (n,) of words."""
    first = parts["train"]
    place = f"{first.path}, column {column!r}"
    if len(parts) > 1:
        raise InputError(
            f"{first.path}: column {column!r} gives the splits, but {option('valid')} or "
            f"{option('test')} is given too; use one of the two"
        )
    queries = first.queries or Queries(np.arange(len(first) + 1))  # else one per row
    of_unit = words[queries.boundaries[:-1]]  # the split of each query
    apart = np.flatnonzero(words != np.repeat(of_unit, queries.sizes))
    if len(apart):
        raise InputError(
            f"{first.place(int(apart[0]))}: the query began in another split (column {column!r}); "
            "keep each query in one split"
        )
    if lost := [n for n in SPLITS if n not in of_unit]:
        raise InputError(f"{place}: no row of split {lost[0]}; name all three splits")
    return {n: first.choose(of_unit == n) for n in SPLITS}


def _by_hash(
    parts: dict[str, Part], notes: list[str | Note], shares: tuple[float, ...], turn: float
) -> dict[str, Part]:
    missing = [n for n in SPLITS if n not in parts]
    first = parts["train"]
    shares = shares or ((0.6, 0.2, 0.2) if len(missing) == 2 else (0.75, 0.25))
    # hashes lie on a circle; each fold rotates it, so that test splits cover it once
    angle = (first.unit.astype(np.float64) / 2.0**64 + turn) % 1.0
    place = np.searchsorted(np.cumsum(shares)[:-1], angle, side="right")
    chosen = np.array(["train", *missing])[place]
    splits = dict(parts)
    for n in ("train", *missing):
        splits[n] = first.choose(chosen == n)
        if not len(splits[n]):
            raise InputError(
                f"{first.path}: too small to cut a {n} split off by a hash; "
                f"give {option('valid')} and {option('test')}, or a {option('split')} column"
            )
    unit = "row number" if first.queries is None else "query"
    how = f"a quarter of {first.path.name} as {missing[0]}"
    if len(missing) == 2:
        how = "/".join(f"{100 * share:.3g}" for share in shares)
    notes.append(Note(CUT, f"split: {how}, by a hash of the {unit}"))
    return splits


def _encoded(
    parts: dict[str, Part], notes: list[str | Note]
) -> tuple[dict[str, Float32Array], tuple[str, ...], tuple[ColumnEncoding, ...]]:
    """Return each part's features, their names and the columns' encodings, () if no column is
    encoded. Adds a note for each encoded column."""
    frames = {split: part.frame for split, part in parts.items()}
    train = parts["train"]
    plain = {*train.frame.dtypes} == {np.dtype(np.float32)}
    if plain and not any(map(train.formats.get, train.columns)):
        X = {split: frame.to_numpy(np.float32) for split, frame in frames.items()}
        return X, train.columns, ()
    missing = () if train.typed else MISSING
    encodings = frame_encodings(train.frame, notes, missing, train.formats)
    counts = Counter(name for encoding in encodings for name in encoding.features)
    if twice := [name for name, times in counts.items() if times > 1]:
        raise InputError(f"{train.path}: two features would be called {twice[0]!r}")
    X = {
        split: np.hstack([e.spread(e.codes(frame[e.name].to_numpy())) for e in encodings])
        for split, frame in frames.items()
    }
    return X, tuple(counts), encodings


def frame_encodings(
    frame: pd.DataFrame,
    notes: list[str | Note],
    missing: tuple[str, ...] = (),
    formats: Mapping[str, str] = MappingProxyType({}),
) -> tuple[ColumnEncoding, ...]:
    """Return the encodings of the training columns from ``read_features``.

    Adds a note for each encoded column.
    """
    encodings = []
    for name in frame:
        cells, encoding = frame[name].to_numpy(), ColumnEncoding(name, format=formats.get(name, ""))
        if cells.dtype == np.float64:
            encoding = replace(encoding, offset=float32_offset(cells) or 0.0)
            what = f"{APART}: made {encoding.features[0]!r}" if encoding.offset else MERGED
            notes.append(f"column {name!r}: {what}")
        elif cells.dtype != np.float32:
            texts = tuple(different_texts(cells)) or ("-",)
            encoding = ColumnEncoding(name, texts, 1 < len(texts) <= ONE_HOT, missing)
            how = f"{len(texts)} one-hot features of one sensor"
            how = how if encoding.one_hot else "codes, 0 for the most frequent"
            what = f"column {name!r} holds text ({len(texts)} values in training)"
            notes.append(f"{what}: made {how}")
        encodings.append(encoding)
    return tuple(encodings)


def _task(name: str, parts: dict[str, Part], notes: list[str | Note]) -> Task:
    without = [part for part in parts.values() if part.queries is None]
    if len({part.labels.dtype.kind for part in parts.values()}) > 1:  # of SVMlight and a table
        path = parts["train"].path
        raise InputError(f"{path}: labels are text here or elsewhere and numbers in another file")
    if name:
        task = Task(name)
    else:
        task, reason = Task.RANKING, "there are queries"
        if len(without) == len(parts):
            task, reason = task_of_labels(parts["train"].labels)
        notes.append(f"task: {task}, because {reason}; --task (in Python task=) changes it")
    if task is Task.RANKING and without:
        first, remedy = without[0], f"give {option('query', like='COLUMN')}"
        if first.numbered:
            remedy = f"add qid, or a file {first.path.name}.query"
        raise InputError(f"{first.path}: ranking needs queries; {remedy}")
    return task


def _numbered(
    task: Task, parts: dict[str, Part], notes: list[str | Note], positive: str
) -> tuple[dict[str, FloatArray], tuple[str, ...]]:
    """Return labels as numbers by split, and the classes by number, () without classes."""
    train = parts["train"]
    values = np.unique(train.labels)  # the classes, in order
    text = train.labels.dtype.kind != "f"
    if len(values) == 1:
        raise InputError(
            f"{train.path}: all labels of the training rows are {class_name(values[0])}, so "
            "there is nothing to learn; give rows with different labels"
        )
    if task is Task.RANKING and not _differ_in_a_query(train.labels, train.queries):
        what = "the rows of each training query have equal labels: there is no order to learn"
        notes.append(f"{what}; name queries of several rows")
    if text and len(values) > max(ONE_HOT, len(train) / 2):
        raise InputError(
            f"{train.path}: {len(values)} different labels in {len(train)} training rows are too "
            "many for classes; give another label"
        )
    if positive and task is not Task.BINARY:
        raise InputError(f"{option('positive', positive)}: a {task} task has no positive class")
    if task in (Task.RANKING, Task.REGRESSION):
        if text:
            label = str(train.labels[0])
            raise InputError(f"{train.place(0)}: label {label!r} is text; {task} needs numbers")
        for split in parts.values() if task is Task.RANKING else ():
            wrong = (split.labels < 0) | (split.labels > LARGEST_GRADE)
            if wrong.any():
                row = int(np.argmax(wrong))
                raise InputError(
                    f"{split.place(row)}: label {split.labels[row]:g} is not a grade: grades start "
                    f"at 0, and their gain is 2^grade; scale the labels to 0..{LARGEST_GRADE:g}, "
                    f"or give {option('task', 'regression')}"
                )
        for split in parts.values():
            if (large := np.abs(split.labels) > LARGEST_LABEL).any():
                row = int(np.argmax(large))
                raise InputError(
                    f"{split.place(row)}: label {split.labels[row]:g} is beyond "
                    f"{LARGEST_LABEL:g}: its squared error has no exact sums; scale the labels"
                )
        return {n: parts[n].labels for n in SPLITS}, ()
    if (task is Task.BINARY) != (len(values) == 2):
        number, remedy = ("two", Task.BINARY) if len(values) == 2 else (len(values), "multiclass")
        raise InputError(
            f"{train.path}: {number} different labels do not fit a {task} task; "
            f"give {option('task', remedy)}"
        )
    names = tuple(map(class_name, values))
    if positive:
        wanted = positive
        if not text:  # labels are numbers or booleans
            with suppress(ValueError):
                numbered = {"true": "1", "false": "0"}.get(positive.lower(), positive)
                wanted = class_name(float(numbered))
        if wanted not in names:
            what = f"no such class; the classes are {' and '.join(names)}"
            raise InputError(f"{option('positive', positive)}: {what}")
        names = (*(name for name in names if name != wanted), wanted)
    if names != tuple(map(str, range(len(names)))):
        listing = ", ".join(f"{name} is {k}" for k, name in enumerate(names[:6]))
        notes.append(f"classes: {listing}{', ...' if len(values) > 6 else ''}")
    for split in parts.values():
        new = ~np.isin(split.labels, values)
        if new.any():
            row = int(np.argmax(new))
            numbers = f"; for numeric targets give {option('task', 'regression')}"
            raise InputError(
                f"{split.place(row)}: label {class_name(split.labels[row])!r} is not in the "
                "training rows; correct it, leave the row out, or give training rows that have it"
                f"{'' if text else numbers}"
            )
    codes = np.array([names.index(class_name(value)) for value in values], dtype=np.float64)
    return {n: codes[np.searchsorted(values, parts[n].labels)] for n in SPLITS}, names


def _differ_in_a_query(labels: NDArray[Any], queries: Queries | None) -> bool:
    """True if some rows of a query have different labels."""
    assert queries is not None
    first = np.repeat(labels[queries.boundaries[:-1]], queries.sizes)
    return bool((labels != first).any())


def class_name(label: Any) -> str:
    """Return a label as text, such as "1" for 1.0."""
    return f"{label:.15g}" if isinstance(label, float) else str(label)
