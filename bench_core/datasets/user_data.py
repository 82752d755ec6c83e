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

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bench_core.arrays import Float32Array, FloatArray
from bench_core.costs.model import SensorPrices
from bench_core.data import Examples, Queries, Task
from bench_core.datasets.readers.svmlight import grouped
from bench_core.datasets.readers.tables import DataColumn, DataTable, different_texts
from bench_core.datasets.splitting import hashed
from bench_core.errors import InputError, option
from bench_core.splits import SPLITS, Splits, task_of_labels

if TYPE_CHECKING:
    import pandas as pd

# How the note begins that says which parts were cut off, and how.
CUT = "split: "

ONE_HOT = 12
LARGEST_GRADE = 1000.0  # the gain 2^grade of a larger one is no float64
# Of fewer rows a column may number them by chance or on purpose.
SMALLEST = 50
WORDS = {
    "train": "train", "training": "train", "valid": "valid", "validation": "valid",
    "vali": "valid", "val": "valid", "dev": "valid", "test": "test",
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows of one file or table.

    ``frame`` (n, d) holds the features: a column of float32 for numbers, another kind for text,
    where "" is a missing cell. ``labels`` (n,) are float64 or text. ``unit`` uint64 is one hash per
    query, or per row where there are no queries: what a random split goes by. ``split`` (n,) text
    or None. ``place`` turns a row number into "FILE, line N".
    """

    path: Path
    frame: pd.DataFrame
    labels: NDArray[Any]  # (n,)
    queries: Queries | None
    unit: NDArray[np.uint64]  # (q,), or (n,) without queries
    split: NDArray[Any] | None  # (n,) words
    place: Callable[[int], str]  # row -> "FILE, line N"
    numbered: bool = False  # columns are known by number, and those beyond the last are 0
    notes: tuple[str, ...] = ()

    @classmethod
    def of_table(
        cls, table: DataTable, names: Sequence[str], label: DataColumn, query: DataColumn | None,
        split: DataColumn | None, notes: Sequence[str] = (),
    ) -> Part:  # fmt: skip
        """The columns ``names`` of a table as features, with labels, queries and splits."""
        frame = table.features(names)
        queries, unit = None, hashed(np.arange(len(table)))
        if query is not None:
            queries, ids = grouped(query.texts(), table.place)
            digests = (blake2b(str(name).encode(), digest_size=8).digest() for name in ids)
            unit = np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)
        notes = [*notes]
        numbers = frame.select_dtypes("float32")
        spread = numbers.max(skipna=False) - numbers.min(skipna=False)
        for name in spread.index[(spread == len(frame) - 1) & (len(frame) > SMALLEST)]:
            if numbers[name].is_unique and (numbers[name] % 1).nunique() == 1:
                notes.append(
                    f"column {name!r} numbers the rows: {table.drop([name])} leaves it out"
                )
        words = None if split is None else split.texts()
        labels = label.labels()
        return cls(table.path, frame, labels, queries, unit, words, table.place, notes=tuple(notes))

    def __len__(self) -> int:
        return len(self.labels)

    def choose(self, units: NDArray[np.bool_]) -> Part:
        """The rows of some queries (or some rows), in order."""
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
            place=lambda row: self.place(int(numbers[row])),
        )


def splits_of(
    parts: dict[str, Part],
    task: str,
    split: str = "",
    shares: tuple[float, ...] = (),
    turn: float = 0.0,
    positive: str = "",
) -> Splits:
    """The splits of a user's data, at least a part ``train``, where every feature costs 1.

    ``split`` names the column that divides it, else the hash of ``_by_hash`` cuts off what is not
    there; ``positive`` is the label of class 1, else the second one in order. Raises InputError for
    parts that cannot be used.
    """
    first = parts["train"]
    notes = list(first.notes)
    parts = _same_columns(parts)
    if first.split is not None and not shares:
        parts = _by_column(parts, first.split, split or "split")
    elif len(parts) < len(SPLITS):
        parts = _by_hash(parts, notes, shares, turn)
    X, names, origins = _encoded(parts, notes)
    kind = _task(task, parts, notes)
    y, classes = _numbered(kind, parts, notes, positive)
    train, valid, test = (
        Examples(X[n], y[n], parts[n].queries if kind is Task.RANKING else None) for n in SPLITS
    )
    column = {name: k for k, name in enumerate(dict.fromkeys(origins or names))}
    prices = SensorPrices.additive(np.ones(len(column)))  # a sensor for each column of the user
    if origins:
        prices = prices.of_columns([column[name] for name in origins])
    return Splits(
        train, valid, test, prices, kind, len(classes), names,
        notes=tuple(notes), costs_assumed=True, origins=origins, class_names=classes,
    )  # fmt: skip


def _same_columns(parts: dict[str, Part]) -> dict[str, Part]:
    """All parts with the same columns: SVMlight padded with zeros, tables in the first's order."""
    # an SVMlight file ends with the largest index that it uses, so files may differ in width
    first = parts["train"]
    numbered = all(part.numbered for part in parts.values())
    columns = max((p.frame.columns for p in parts.values()), key=len)
    columns = columns if numbered else first.frame.columns
    made = {}
    for name, part in parts.items():
        for here, there in ((part, first), (first, part)) if not numbered else ():
            missing = there.frame.columns.difference(here.frame.columns)
            if len(missing):
                raise InputError(
                    f"{here.path}: no column {missing[0]!r}, which {there.path} has; "
                    "give both the same columns"
                )
        frame = part.frame
        if not frame.columns.equals(columns):
            frame = frame.reindex(columns=columns, fill_value=np.float32(0))
        made[name] = replace(part, frame=frame)
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
    of_unit = known[queries.boundaries[:-1]]  # the split of each query
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


def _encoded(
    parts: dict[str, Part], notes: list[str]
) -> tuple[dict[str, Float32Array], tuple[str, ...], tuple[str, ...]]:
    """The features of each part, their names, and the column that each is made of ("()" if none
    was text). A note is added for each column of text."""
    frames = {split: part.frame for split, part in parts.items()}
    kinds = (kind for frame in frames.values() for kind in frame.dtypes.items())
    texts = {name for name, kind in kinds if kind != np.float32}
    if not texts:
        X = {split: frame.to_numpy(np.float32) for split, frame in frames.items()}
        return X, tuple(frames["train"]), ()
    made: dict[str, list[Float32Array]] = {split: [] for split in parts}
    features: dict[str, str] = {}  # name -> its column, as {"age": "age", "sex=f": "sex", ...}
    for name in frames["train"]:
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
        for split, frame in frames.items():
            column = frame[name].to_numpy()
            made[split].append(_columns(column, known, one_hot) if known else column[:, None])
    X = {split: np.hstack(columns) for split, columns in made.items()}
    return X, tuple(features), tuple(features.values())


def _known_texts(parts: dict[str, Part], name: str) -> list[str]:
    """The texts of the training rows, the most frequent first, equals in order."""
    for part in parts.values():
        if part.frame[name].dtype == np.float32:
            raise InputError(
                f"{part.path}: column {name!r} holds numbers here and text elsewhere; use one"
            )
    return [*different_texts(parts["train"].frame[name].to_numpy())] or ["-"]


def _columns(texts: NDArray[Any], known: list[str], one_hot: bool) -> Float32Array:
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
    task: Task, parts: dict[str, Part], notes: list[str], positive: str
) -> tuple[dict[str, FloatArray], tuple[str, ...]]:
    """Labels as numbers by split, and the classes by number, () without classes."""
    train = parts["train"]
    values = np.unique(train.labels)  # the classes, in order
    text = train.labels.dtype.kind != "f"
    if len(values) == 1:
        raise InputError(
            f"{train.path}: all labels of the training rows are {class_name(values[0])}, so "
            "there is nothing to learn; give rows with different labels"
        )
    if positive and task is not Task.BINARY:
        raise InputError(f"{option('positive', positive)}: a {task} task has no positive class")
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
        return {n: parts[n].labels for n in SPLITS}, ()
    if (task is Task.BINARY) != (len(values) == 2):
        number, other = ("two", Task.BINARY) if len(values) == 2 else (len(values), "multiclass")
        raise InputError(
            f"{train.path}: {number} different labels are not those of a {task} task; "
            f"say {option('task', other)}"
        )
    names = tuple(map(class_name, values))
    if positive:
        wanted = positive if text else _number(positive)
        if wanted not in names:
            what = f"no such class; the classes are {' and '.join(names)}"
            raise InputError(f"{option('positive', positive)}: {what}")
        names = (*(name for name in names if name != wanted), wanted)
    if names != tuple(map(str, range(len(names)))):
        shown = ", ".join(f"{name} is {k}" for k, name in enumerate(names[:6]))
        notes.append(f"classes: {shown}{', ...' if len(values) > 6 else ''}")
    for part in parts.values():
        new = ~np.isin(part.labels, values)
        if new.any():
            row = int(np.argmax(new))
            numbers = f"; for labels that are no classes say {option('task', 'regression')}"
            raise InputError(
                f"{part.place(row)}: label {class_name(part.labels[row])!r} is of no training row; "
                "correct it, leave the row out, or give training rows that have it"
                f"{'' if text else numbers}"
            )
    codes = np.array([names.index(class_name(value)) for value in values], dtype=np.float64)
    return {n: codes[np.searchsorted(values, parts[n].labels)] for n in SPLITS}, names


def class_name(label: Any) -> str:
    """A label as text, such as "1" for 1.0."""
    return f"{label:.15g}" if isinstance(label, float) else str(label)


def _number(text: str) -> str:
    """The name of the class that a text means where labels are numbers, or truths."""
    try:
        return class_name(float({"true": "1", "false": "0"}.get(text.lower(), text)))
    except ValueError:
        return text
