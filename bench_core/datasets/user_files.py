"""A user's own files as a data set: ``--data train.svm --test test.svm``.

Formats: SVMlight (with ``qid`` or a side-car of group sizes), CSV with a header, Parquet.

Splits. With ``--split COLUMN`` that column holds ``train``, ``valid`` or ``test``. Otherwise a file
that is not given is cut off the first one by a hash of the query (of the row number where there
are no queries), which depends on nothing else: with neither file 60% train, 20% valid, 20% test
(or ``shares``); with one of them given a quarter of the first file makes the other. With ``folds``
k folds, the hash turns by 1/k from fold to fold, so that no two test splits overlap.

Task, where it is not given: queries make it ranking; two different labels binary; text, or at
most 20 different whole numbers, multi-class; else regression. The training rows decide. Classes
are their labels, numbered in sorted order; another label in validation or test is an error. Every
feature costs 1 unless there is a cost file.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench_core._io.text import is_url
from bench_core.arrays import FloatArray
from bench_core.costs.model import SensorPrices
from bench_core.data import Examples, Queries, Task
from bench_core.datasets.encoding import encoded, positions
from bench_core.datasets.file_parts import Part, read_part
from bench_core.datasets.groups import under_groups
from bench_core.datasets.priced import with_costs
from bench_core.datasets.readers.svmlight import SIDE_CARS, find_side_car
from bench_core.datasets.remote import fetched, is_there, name_of_url
from bench_core.errors import InputError, one_line, unknown
from bench_core.protocols import Source
from bench_core.splits import SPLITS, Splits

CUT = "split: "
"""How the note begins that says which parts were cut off, and how."""

MOST_CLASSES = 20
LARGEST_GRADE = 1000.0
"""The gain 2^grade of a larger one is no float64."""
SPELLINGS = {
    "train": "train", "training": "train", "valid": "valid", "validation": "valid",
    "vali": "valid", "val": "valid", "dev": "valid", "test": "test",
}  # fmt: skip


@dataclass(frozen=True)
class FileData:
    """Files of the user; the fields are the options of ``bench run``."""

    train: str
    valid: str = ""
    test: str = ""
    label: str = ""
    query: str = ""
    split: str = ""
    task: str = ""
    index_base: int = 1
    format: str = ""
    costs: str = ""
    shares: tuple[float, ...] = ()
    folds: int = 1
    drop: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()

    @property
    def depends_on(self) -> tuple[str, ...]:
        """What changes the arrays."""
        return ("fold",) if self.folds > 1 else ()

    @property
    def name(self) -> str:
        """The name of the first file."""
        return _name(self.train)

    @property
    def title(self) -> str:
        """What a report calls it."""
        return ", ".join(map(_name, self._paths))

    @property
    def _paths(self) -> list[str]:
        return [path for path in (self.train, self.valid, self.test) if path]

    @property
    def files(self) -> tuple[str, ...]:
        """Absolute paths of the files, their side-cars and the costs."""
        given = [_here(p, SIDE_CARS).absolute() for p in self._paths]
        beside = [side for p in given if (side := find_side_car(p)) is not None]
        costs = [_here(self.costs).absolute()] if self.costs else []
        return tuple(str(p) for p in (*given, *beside, *costs))

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Read the files; ``source``, ``size`` and ``seed`` mean nothing here.

        Raises InputError for files that cannot be used, with file, line and remedy.
        """
        columns = {"--label": self.label, "--query": self.query, "--split": self.split}
        parts = {
            name: read_part(
                _here(path, SIDE_CARS), columns, self.index_base, self.format, self.drop
            )
            for name in SPLITS
            if (path := getattr(self, name))
        }
        dropped = {name for part in parts.values() for name in part.dropped}
        for name in self.drop:
            if name not in dropped:
                what = unknown("column", name, parts["train"].names)
                raise InputError(f"{self.train}: --drop: {what}")
        splits = splits_of(parts, self.task, self.split, self.shares, fold / self.folds)
        if self.costs:
            splits = with_costs(splits, str(_here(self.costs)))
        return under_groups(splits, self.groups)


def _name(file: str) -> str:
    return one_line(name_of_url(file) if is_url(file) else Path(file).name)


def _here(file: str, beside: Sequence[str] = ()) -> Path:
    """A file on this machine: of a URL as it lies in the cache, with those whose names end so."""
    if not is_url(file):
        return Path(file)
    found = fetched(file)
    for end in beside if found.suffix not in (".csv", ".parquet") else ():
        place = file.partition("#")[0] + end
        if is_there(place):
            fetched(place, found.with_name(found.name + end))
    return found


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
        parts = _by_column(parts, split or "split")
    else:
        parts = _by_hash(parts, notes, shares, turn)
    parts, origins = encoded(parts, notes)
    _refuse_constant(parts["train"])
    kind = _task(task, parts, notes)
    y, classes = _numbered(kind, parts, notes)
    train, valid, test = (
        Examples(parts[n].X, y[n], parts[n].queries if kind is Task.RANKING else None)
        for n in SPLITS
    )
    names, told = parts["train"].names, tuple(notes)
    made = Splits(
        *(train, valid, test, SensorPrices.additive(np.ones(len(names))), kind, classes, names),
        notes=told,
        costs_assumed=True,
        origins=origins,
    )
    each = SensorPrices.additive(np.ones(len(dict.fromkeys(made.columns))))
    return replace(made, prices=each.of_columns([*positions(made.columns)])) if origins else made


def _same_columns(parts: dict[str, Part]) -> dict[str, Part]:
    """All parts with the same columns: SVMlight padded with zeros, tables in the first's order."""
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
                    f"{here.path}, line 1: no column {missing[0]!r}, which {there.path} has; "
                    "give all files the same columns"
                )
        position = {n: j for j, n in enumerate(part.names)}
        order = [position[n] for n in first.names]
        made[name] = replace(part, X=part.X[:, order], names=first.names)  # texts go by name
    return made


def _by_column(parts: dict[str, Part], column: str) -> dict[str, Part]:
    first = parts["train"]
    if len(parts) > 1:
        raise InputError(
            f"{first.path}: column {column!r} splits it, but --valid or --test is given too; "
            "use one of the two"
        )
    names = first.split if first.split is not None else np.empty(0)
    known = np.array([SPELLINGS.get(str(n).strip().lower(), "") for n in names])
    if not known.all():
        row = int(np.argmin(known.astype(bool)))
        raise InputError(
            f"{first.place(row)}, column {column!r}: {str(names[row])!r} is no split; "
            "write train, valid or test"
        )
    queries = first.queries or Queries(np.arange(len(first) + 1))
    of_unit = known[queries.boundaries[:-1]]
    apart = np.flatnonzero(known != np.repeat(of_unit, queries.sizes))
    if len(apart):
        raise InputError(
            f"{first.place(int(apart[0]))}, column {column!r}: the query began in another "
            "split; keep queries whole"
        )
    made = {n: first.choose(of_unit == n) for n in SPLITS}
    for n, part in made.items():
        if not len(part):
            raise InputError(
                f"{first.path}, column {column!r}: no row of split {n}; name all three splits"
            )
    return made


def _by_hash(
    parts: dict[str, Part], notes: list[str], shares: tuple[float, ...], turn: float
) -> dict[str, Part]:
    missing = [n for n in SPLITS if n not in parts]
    if not missing:
        return parts
    first = parts["train"]
    shares = shares or ((0.6, 0.2, 0.2) if len(missing) == 2 else (0.75, 0.25))
    angle = (first.unit.astype(np.float64) / 2.0**64 + turn) % 1.0
    place = np.searchsorted(np.cumsum(shares)[:-1], angle, side="right")
    chosen = np.array(["train", *missing])[place]
    made = dict(parts)
    for n in ("train", *missing):
        made[n] = first.choose(chosen == n)
        if not len(made[n]):
            raise InputError(
                f"{first.path}: too small to cut a {n} split off by a hash; "
                "give --valid and --test, or a --split column"
            )
    unit = "row number" if first.queries is None else "query"
    how = f"a quarter of {first.path.name} as {missing[0]}"
    if len(missing) == 2:
        how = "/".join(f"{100 * share:.3g}" for share in shares)
    notes.append(f"{CUT}{how}, by a hash of the {unit}")
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
            raise InputError(f"--task {asked}: no such task; known: {known}") from None
    else:
        task, reason = Task.RANKING, "there are queries"
        if len(without) == len(parts):
            task, reason = _task_of_labels(parts["train"].labels)
        notes.append(f"task: {task}, because {reason}; --task changes it")
    if task is Task.RANKING and without:
        raise InputError(
            f"{without[0]}: ranking needs queries; add qid, a file {without[0].name}.query, "
            "or --query COLUMN"
        )
    return task


def _task_of_labels(labels: NDArray[Any]) -> tuple[Task, str]:
    values = np.unique(labels)
    if len(values) == 2:
        return Task.BINARY, "there are two different labels"
    if labels.dtype.kind not in "fiu":
        return Task.MULTICLASS, "labels are text"
    if len(values) <= MOST_CLASSES and bool(np.all(values == np.round(values))):
        return Task.MULTICLASS, f"there are {len(values)} different whole labels"
    return Task.REGRESSION, "labels are numbers"


def _numbered(
    task: Task, parts: dict[str, Part], notes: list[str]
) -> tuple[dict[str, FloatArray], int]:
    """Labels as numbers by split, and the number of classes (0: no classes)."""
    if task in (Task.RANKING, Task.REGRESSION):
        for part in parts.values():
            _refuse_labels(task, part)
        return {n: parts[n].labels.astype(np.float64) for n in SPLITS}, 0
    labels, path = parts["train"].labels, parts["train"].path
    values = np.unique(labels)
    if task is Task.BINARY and len(values) > 2:
        raise InputError(
            f"{path}: {len(values)} different labels, a binary task has two; say --task multiclass"
        )
    if task is Task.MULTICLASS and len(values) == 2:
        raise InputError(
            f"{path}: two different labels, a multiclass task has more; say --task binary"
        )
    if labels.dtype.kind != "f" or not np.array_equal(values, np.arange(len(values))):
        shown = ", ".join(f"{_short(v)} is {k}" for k, v in enumerate(values[:6]))
        notes.append(f"classes: {shown}{', ...' if len(values) > 6 else ''}")
    for part in parts.values():
        _refuse_new_class(part, values)
    y = {n: np.searchsorted(values, parts[n].labels).astype(np.float64) for n in SPLITS}
    return y, len(values)


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _refuse_labels(task: Task, part: Part) -> None:
    labels = part.labels
    if labels.dtype.kind != "f":
        raise InputError(f"{part.place(0)}: label {str(labels[0])!r} is text; {task} needs numbers")
    large = "too large for a grade, whose gain is 2^grade; scale the labels down to at most"
    faults = (
        (labels < 0, "negative; grades of a ranking start at 0"),
        (labels > LARGEST_GRADE, f"{large} {LARGEST_GRADE:g}"),
    )
    for wrong, why in faults if task is Task.RANKING else ():
        if wrong.any():
            row = int(np.argmax(wrong))
            raise InputError(f"{part.place(row)}: label {labels[row]:g} is {why}")


def _refuse_new_class(part: Part, known: NDArray[Any]) -> None:
    at = np.searchsorted(known, part.labels)
    new = known[at.clip(max=len(known) - 1)] != part.labels
    if new.any():
        row = int(np.argmax(new))
        number = (
            ""
            if part.labels.dtype.kind != "f"
            else "; for labels that are no classes say --task regression"
        )
        raise InputError(
            f"{part.place(row)}: label {_short(part.labels[row])!r} is of no training row; correct "
            f"it, leave the row out, or give training rows that have it{number}"
        )


def _refuse_constant(train: Part) -> None:
    if np.all(train.labels == train.labels[0]):
        raise InputError(
            f"{train.path}: all labels of the training rows are {_short(train.labels[0])}, so "
            "there is nothing to learn; give rows with different labels"
        )
