"""A user's own data, from files or memory, as the splits of a data set.

A table (or an SVMlight file) becomes a ``Part``: features, labels, queries. ``splits_of`` gives all
parts the same columns, cuts off those that are not there, encodes text, and settles the task.

Splits. With ``--split COLUMN`` that column holds ``train``, ``valid`` or ``test``. Otherwise a part
that is not given is cut off the first one by a hash of the query (of the row number where there
are no queries), which depends on nothing else: with neither part 60% train, 20% valid, 20% test
(or ``shares``); with one of them given a quarter of the first part makes the other. With ``folds``
k folds, the hash turns by 1/k from fold to fold, so that no two test splits overlap.

Text. A column of at most ``ONE_HOT`` different texts in the training rows becomes one column of 0
and 1 for each of them (``sex=f``), another one a column of codes, 0 for the most frequent text. No
label is looked at. All columns made of one are read by one sensor. A missing cell is missing in
all of them; a text of no training row is 0 everywhere, or a missing code.

Task, where it is not given: queries make it ranking; two different labels binary; text, or at
most 20 different whole numbers, multi-class; else regression. The training rows decide. Classes
are their labels, numbered in sorted order; another label in validation or test is an error. Every
feature costs 1 unless there is a cost file.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import Float32Array, FloatArray
from bench_core.costs.model import SensorPrices
from bench_core.data import Examples, Queries, Task
from bench_core.datasets.readers.svmlight import grouped
from bench_core.datasets.readers.tables import Column, Table, TextArray, different_texts
from bench_core.datasets.splitting import hashed
from bench_core.errors import InputError, option
from bench_core.splits import SPLITS, Splits, task_of_labels

CUT = "split: "
"""How the note begins that says which parts were cut off, and how."""

ONE_HOT = 12
LARGEST_GRADE = 1000.0
"""The gain 2^grade of a larger one is no float64."""
SMALLEST = 50
"""Of fewer rows a column may number them by chance or on purpose."""
WORDS = {
    "train": "train", "training": "train", "valid": "valid", "validation": "valid",
    "vali": "valid", "val": "valid", "dev": "valid", "test": "test",
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows of one file or table.

    ``labels`` (n,) are float64 or text. ``unit`` uint64 is one hash per query, or per row where
    there are no queries: what a random split goes by. ``split`` (n,) text or None. ``place`` turns
    a row number into "FILE, line N". ``texts`` are the columns of text by name, (n,) with "" for a
    missing cell; their columns of X are NaN.
    """

    path: Path
    X: Float32Array
    labels: NDArray[Any]
    queries: Queries | None
    unit: NDArray[np.uint64]
    names: tuple[str, ...]
    split: NDArray[Any] | None
    place: Callable[[int], str]
    numbered: bool = False  # columns are known by number, and those beyond the last are 0
    notes: tuple[str, ...] = ()
    texts: Mapping[str, TextArray] = field(default_factory=dict)

    @classmethod
    def of_table(
        cls, table: Table, names: Sequence[str], label: Column, query: Column | None,
        split: Column | None, notes: Sequence[str] = (),
    ) -> "Part":  # fmt: skip
        """The columns ``names`` of a table as features, with labels, queries and splits."""
        X, texts = table.features(names)
        queries, unit = None, hashed(np.arange(len(table)))
        if query is not None:
            queries, ids = grouped(query.texts(), table.place)
            digests = (blake2b(str(name).encode(), digest_size=8).digest() for name in ids)
            unit = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
        notes = [*notes]
        spread = X.max(axis=0) - X.min(axis=0)
        for j in np.flatnonzero((spread == len(X) - 1) & (len(X) > SMALLEST)).tolist():
            if len(np.unique(X[:, j] % 1)) == 1 and len(np.unique(X[:, j])) == len(X):
                drop = table.drop([names[j]])
                notes.append(f"column {names[j]!r} numbers the rows: {drop} leaves it out")
        words = None if split is None else split.texts()
        return cls(
            *(table.path, X, label.labels(), queries, unit, tuple(names), words, table.place),
            notes=tuple(notes),
            texts=texts,
        )

    def __len__(self) -> int:
        return len(self.X)

    def choose(self, units: NDArray[np.bool_]) -> "Part":
        """The rows of some queries (or some rows), in order."""
        rows, queries = units, self.queries
        if queries is not None:
            rows = np.repeat(units, queries.sizes)
            queries = Queries.from_sizes(queries.sizes[units])
        numbers = np.flatnonzero(rows)  # of the chosen rows in this part, for messages
        return replace(
            self,
            X=self.X[rows],
            labels=self.labels[rows],
            queries=queries,
            unit=self.unit[units],
            split=None,
            texts={name: column[rows] for name, column in self.texts.items()},
            place=lambda row: self.place(int(numbers[row])),
        )


def splits_of(
    parts: dict[str, Part],
    task: str,
    split: str = "",
    shares: tuple[float, ...] = (),
    turn: float = 0.0,
) -> Splits:
    """The splits of a user's data, at least a part ``train``, where every feature costs 1.

    ``split`` names the column that divides it, else the hash of ``_by_hash`` cuts off what is not
    there. Raises InputError for parts that cannot be used.
    """
    first = parts["train"]
    notes = list(first.notes)
    parts = _same_columns(parts)
    if first.split is not None and not shares:
        parts = _by_column(parts, first.split, split or "split")
    elif len(parts) < len(SPLITS):
        parts = _by_hash(parts, notes, shares, turn)
    parts, origins = _encoded(parts, notes)
    kind = _task(task, parts, notes)
    y, classes = _numbered(kind, parts, notes)
    train, valid, test = (
        Examples(parts[n].X, y[n], parts[n].queries if kind is Task.RANKING else None)
        for n in SPLITS
    )
    names = parts["train"].names
    column = {name: k for k, name in enumerate(dict.fromkeys(origins or names))}
    prices = SensorPrices.additive(np.ones(len(column)))  # a sensor for each column of the user
    if origins:
        prices = prices.of_columns([column[name] for name in origins])
    return Splits(
        train, valid, test, prices, kind, classes, names,
        notes=tuple(notes), costs_assumed=True, origins=origins,
    )  # fmt: skip


def _same_columns(parts: dict[str, Part]) -> dict[str, Part]:
    """All parts with the same columns: SVMlight padded with zeros, tables in the first's order."""
    # an SVMlight file ends with the largest index that it uses, so files may differ in width
    widest = max((p.names for p in parts.values()), key=len)
    first = parts["train"]
    made = {}
    for name, part in parts.items():
        if part.numbered and first.numbered:
            more = len(widest) - len(part.names)
            X = np.pad(part.X, ((0, 0), (0, more))) if more else part.X
            made[name] = replace(part, X=X, names=widest)
            continue
        for here, there in ((part, first), (first, part)):
            if missing := sorted({*there.names} - {*here.names}):
                raise InputError(
                    f"{here.path}: no column {missing[0]!r}, which {there.path} has; "
                    "give both the same columns"
                )
        position = {n: j for j, n in enumerate(part.names)}
        order = [position[n] for n in first.names]
        made[name] = replace(part, X=part.X[:, order], names=first.names)  # texts go by name
    return made


def _by_column(parts: dict[str, Part], names: NDArray[Any], column: str) -> dict[str, Part]:
    """The one part divided by a column (n,) of words."""
    first = parts["train"]
    place = f"{first.path}, column {column!r}"
    if len(parts) > 1:
        raise InputError(
            f"{first.path}: column {column!r} splits it, but {option('valid')} or {option('test')} "
            "is given too; use one of the two"
        )
    known = np.array([WORDS.get(str(n).strip().lower(), "") for n in names])
    if not known.all():
        row = int(np.argmin(known != ""))
        raise InputError(
            f"{first.place(row)}, column {column!r}: {str(names[row])!r} is no split; "
            "write train, valid or test"
        )
    queries = first.queries or Queries(np.arange(len(first) + 1))  # else each row by itself
    of_unit = known[queries.boundaries[:-1]]
    apart = np.flatnonzero(known != np.repeat(of_unit, queries.sizes))
    if len(apart):
        raise InputError(
            f"{first.place(int(apart[0]))}, column {column!r}: the query began in another "
            "split; keep queries whole"
        )
    if lost := [n for n in SPLITS if n not in of_unit]:
        raise InputError(f"{place}: no row of split {lost[0]}; name all three splits")
    return {n: first.choose(of_unit == n) for n in SPLITS}


def _by_hash(
    parts: dict[str, Part], notes: list[str], shares: tuple[float, ...], turn: float
) -> dict[str, Part]:
    missing = [n for n in SPLITS if n not in parts]
    first = parts["train"]
    shares = shares or ((0.6, 0.2, 0.2) if len(missing) == 2 else (0.75, 0.25))
    # hashes lie on a circle; a fold turns it, so that the test splits of all folds cover it once
    angle = (first.unit.astype(np.float64) / 2.0**64 + turn) % 1.0
    place = np.searchsorted(np.cumsum(shares)[:-1], angle, side="right")
    chosen = np.array(["train", *missing])[place]
    made = dict(parts)
    for n in ("train", *missing):
        made[n] = first.choose(chosen == n)
        if not len(made[n]):
            raise InputError(
                f"{first.path}: too small to cut a {n} split off by a hash; "
                f"give {option('valid')} and {option('test')}, or a {option('split')} column"
            )
    unit = "row number" if first.queries is None else "query"
    how = f"a quarter of {first.path.name} as {missing[0]}"
    if len(missing) == 2:
        how = "/".join(f"{100 * share:.3g}" for share in shares)
    notes.append(f"{CUT}{how}, by a hash of the {unit}")
    return made


def _encoded(parts: dict[str, Part], notes: list[str]) -> tuple[dict[str, Part], tuple[str, ...]]:
    """The parts with all columns as numbers, and the column that each feature is made of ("()" if
    none was text). A note is added for each column of text."""
    texts = {name for part in parts.values() for name in part.texts}
    if not texts:
        return parts, ()
    made: dict[str, list[Float32Array]] = {split: [] for split in parts}
    features: dict[str, str] = {}  # name -> its column, as {"age": "age", "sex=f": "sex", ...}
    for j, name in enumerate(parts["train"].names):
        known = _known_texts(parts, name) if name in texts else []
        one_hot = 1 < len(known) <= ONE_HOT
        for feature in [f"{name}={text}" for text in known] if one_hot else [name]:
            if feature in features:
                path = parts["train"].path
                raise InputError(f"{path}: two features would be called {feature!r}")
            features[feature] = name
        if known:
            how = f"{len(known)} features of 0 and 1, read by one sensor"
            how = how if one_hot else "codes, 0 for the most frequent"
            what = f"column {name!r} holds text ({len(known)} values in training)"
            notes.append(f"{what}: made {how}")
        for split, part in parts.items():
            text = part.texts.get(name)
            own = part.X[:, j : j + 1] if text is None else _columns(text, known, one_hot)
            made[split].append(own)
    return {
        split: replace(part, X=np.hstack(made[split]), names=tuple(features), texts={})
        for split, part in parts.items()
    }, tuple(features.values())


def _known_texts(parts: dict[str, Part], name: str) -> list[str]:
    """The texts of the training rows, the most frequent first, equals in order."""
    for part in parts.values():
        if name not in part.texts:
            raise InputError(
                f"{part.path}: column {name!r} holds numbers here and text elsewhere; use one"
            )
    return [*different_texts(parts["train"].texts[name])] or ["-"]


def _columns(texts: TextArray, known: list[str], one_hot: bool) -> Float32Array:
    """The features (n, k) made of a column (n,), where "" is a missing cell."""
    import pandas as pd

    codes = pd.Index(known).get_indexer(texts)  # -1: missing, or of no training row
    made: Float32Array = np.where(codes < 0, np.nan, codes)[:, None].astype(np.float32)
    if one_hot:
        made = (codes[:, None] == np.arange(len(known))).astype(np.float32)
        made[texts == ""] = np.nan
    return made


def _task(asked: str, parts: dict[str, Part], notes: list[str]) -> Task:
    without = [part.path for part in parts.values() if part.queries is None]
    text = [part.path for part in parts.values() if part.labels.dtype.kind != "f"]
    if 0 < len(text) < len(parts):
        raise InputError(f"{text[0]}: labels are text here and numbers elsewhere; use one of them")
    if asked:
        try:
            task = Task(asked)
        except ValueError:
            known = ", ".join(t.value for t in Task)
            raise InputError(f"{option('task', asked)}: no such task; known: {known}") from None
    else:
        task, reason = Task.RANKING, "there are queries"
        if len(without) == len(parts):
            task, reason = task_of_labels(parts["train"].labels)
        notes.append(f"task: {task}, because {reason}; option 'task' changes it")
    if task is Task.RANKING and without:
        raise InputError(
            f"{without[0]}: ranking needs queries; add qid, a file {without[0].name}.query, "
            f"or {option('query', like='COLUMN')}"
        )
    return task


def _numbered(
    task: Task, parts: dict[str, Part], notes: list[str]
) -> tuple[dict[str, FloatArray], int]:
    """Labels as numbers by split, and the number of classes (0: no classes)."""
    train = parts["train"]
    values = np.unique(train.labels)
    text = train.labels.dtype.kind != "f"
    if len(values) == 1:
        raise InputError(
            f"{train.path}: all labels of the training rows are {_short(values[0])}, so "
            "there is nothing to learn; give rows with different labels"
        )
    if task in (Task.RANKING, Task.REGRESSION):
        if text:
            label = str(train.labels[0])
            raise InputError(f"{train.place(0)}: label {label!r} is text; {task} needs numbers")
        for part in parts.values() if task is Task.RANKING else ():
            wrong = (part.labels < 0) | (part.labels > LARGEST_GRADE)
            if wrong.any():
                row = int(np.argmax(wrong))
                raise InputError(
                    f"{part.place(row)}: label {part.labels[row]:g} is not a grade: grades start "
                    f"at 0, and their gain is 2^grade; scale the labels to 0..{LARGEST_GRADE:g}"
                )
        return {n: parts[n].labels for n in SPLITS}, 0
    if (task is Task.BINARY) != (len(values) == 2):
        number, other = ("two", Task.BINARY) if len(values) == 2 else (len(values), "multiclass")
        raise InputError(
            f"{train.path}: {number} different labels are not those of a {task} task; "
            f"say {option('task', other)}"
        )
    if text or not np.array_equal(values, np.arange(len(values))):
        shown = ", ".join(f"{_short(v)} is {k}" for k, v in enumerate(values[:6]))
        notes.append(f"classes: {shown}{', ...' if len(values) > 6 else ''}")
    for part in parts.values():
        new = ~np.isin(part.labels, values)
        if new.any():
            row = int(np.argmax(new))
            numbers = f"; for labels that are no classes say {option('task', 'regression')}"
            raise InputError(
                f"{part.place(row)}: label {_short(part.labels[row])!r} is of no training row; "
                "correct it, leave the row out, or give training rows that have it"
                f"{'' if text else numbers}"
            )
    y = {n: np.searchsorted(values, parts[n].labels).astype(np.float64) for n in SPLITS}
    return y, len(values)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
