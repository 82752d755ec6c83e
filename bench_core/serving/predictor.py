"""A loaded model: it requests each feature at most once, stops early and reports its cost."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from functools import cached_property, partial
from itertools import pairwise
from math import inf, nan
from pathlib import Path
from struct import error, pack_into
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.costs.model import Acquired, CostModel, SensorPrices, pays_by_row
from bench_core.data import Queries
from bench_core.encoding import ColumnEncoding, plain_encodings
from bench_core.errors import UsageError, one_line
from bench_core.sequential import ROUNDING
from bench_core.serving.block_walk import BlockWalk
from bench_core.serving.folder import Folder, read_folder
from bench_core.serving.gates import answers
from bench_core.serving.policy_program import PolicyProgram
from bench_core.serving.policy_walk import PolicyWalk
from bench_core.serving.program import Program
from bench_core.serving.raw_rows import AskedRow, RawColumns, columns_by_name
from bench_core.serving.row_state import CAPPED, Answer, Answers, FeatureNeeds, Rounds, bill

if TYPE_CHECKING:
    from bench_core.serving.row_walk import RowWalk

Acquire = Callable[[list[str]], Sequence[Any] | Mapping[str, Any]]
AcquireFor = Callable[[int, list[str]], Sequence[Any]]

MANY = 32
"""Number of rows from which the block walker is faster, with its loading time."""


def load(folder: str | Path) -> Predictor:
    """Load the model that ``bench model export`` wrote into a folder.

    Raises InputError, in one line, if the folder is not an exported model or has another version.
    """
    return Predictor(read_folder(Path(folder)))


class Predictor:
    """A model at its exported operating point.

    ``names`` are the table's columns in training; the predictor encodes text. ``about`` holds the
    folder's facts: point, figures, provenance. ``cap`` is the cap of the export, if any; a call
    can only lower it. Thread-safe.
    """

    def __init__(self, folder: Folder) -> None:
        self.program: Program | PolicyProgram = folder.program
        self.costs: CostModel = folder.costs
        self._raw = RawColumns(folder.encodings) if folder.encodings else None
        self.names: tuple[str, ...] = self._raw.names if self._raw else folder.names
        self.about: Mapping[str, Any] = folder.about
        budget = folder.about.get("budget") or {}
        self.cap: float | None = budget["amount"] if budget.get("kind") == "cap" else None

    def compile(self) -> None:
        """Load the compiled code of single rows, which the first row does otherwise.

        Call it when a service starts: it compiles for some seconds the first time on a machine.
        """
        next(self._rounds(1, False, None), None)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns that it may request."""
        return tuple(self.names[column] for column in self._needed)

    @property
    def sensors(self) -> Mapping[int, list[str]]:
        """Columns that it may request, by the sensor that measures them."""
        return self._by_sensor(self._read)

    def _by_sensor(self, features: Iterable[int]) -> Mapping[int, list[str]]:
        found = defaultdict[int, dict[str, None]](dict)
        for f in features:
            (column,) = self._columns([f])
            for s in self.costs.sensors_of(f).tolist():
                found[s][self.names[column]] = None
        return {s: [*names] for s, names in found.items()}

    @cached_property
    def _sensor_names(self) -> tuple[str, ...]:
        """The columns that each sensor measures; its number if there is none."""
        found = self._by_sensor(range(self.costs.features))
        return tuple(" + ".join(found.get(s, [str(s)])) for s in range(self.costs.sensors))

    def __repr__(self) -> str:
        """Return what it is and what it may ask for."""
        about, few = self.about, ", ".join(self.features[:5])
        more = f" and {len(self.features) - 5} more" if len(self.features) > 5 else ""
        where = f"{about.get('learner', 'model')} on {about.get('dataset', 'data')}"
        return f"<Predictor of {where}: asks for {few or 'nothing'}{more}; {self.meaning}>"

    @property
    def classes(self) -> tuple[str, ...]:
        """Labels of the classes by number; () for other tasks."""
        return classes_of(self.about)

    @property
    def encodings(self) -> tuple[ColumnEncoding, ...]:
        """Encodings of raw columns as features; () if columns are features."""
        return () if self._raw is None else self._raw.encodings

    @property
    def meaning(self) -> str:
        """Meaning of a score, in one line."""
        return meaning_of(self.about)

    def table_features(self, X: Any) -> Float32Array:
        """Return the rows of a table (see ``predict_rows``) as encoded features (n, d)."""
        raw = self._raw or RawColumns(plain_encodings(self.names))
        return raw.table(X, self._needed)

    @cached_property
    def _read(self) -> list[int]:
        """Features that it reads, in increasing order; without those that its cap never affords."""
        found = sorted(self._needs.features)
        if self.cap is not None and type(self.costs) is SensorPrices:
            price = self.costs.feature_price()
            found = [f for f in found if price[f] <= self.cap * (1 + ROUNDING)]
        return found

    @cached_property
    def _needed(self) -> list[int]:
        return self._columns(self._read)

    def _columns(self, features: list[int]) -> list[int]:
        """Return the raw columns of features, each once."""
        return features if self._raw is None else self._raw.of(features)

    def predict(self, acquire: Acquire | Mapping[str, Any], *, cap: float | None = None) -> Answer:
        """Predict one row. ``acquire(names)`` returns cells of columns, None or NaN if missing, as
        a list in this order or a mapping. A row at hand may be given as a mapping instead.

        Each call names all columns that one or more sensors yield to this model; no column is
        requested twice. The row never costs more than ``cap``: it answers at the last point of the
        path that it reached. A model that compares rows of a query treats the row as a query.
        """
        if not callable(acquire) and (not hasattr(acquire, "keys") or hasattr(acquire, "columns")):
            kind = type(acquire).__name__
            raise UsageError(
                "predict takes a row as a mapping, or a function that returns its cells, not a "
                f"{kind}; predict_rows takes tables"
            )
        found: Any = acquire if callable(acquire) else lambda names: acquire
        return self._run(self._rounds(1, False, cap), lambda _, names: found(names))[0]

    def predict_query(
        self, acquire: AcquireFor, documents: int, *, cap: float | None = None
    ) -> list[Answer]:
        """Predict the rows of one query together, with ``acquire(document, names)`` for each.

        ``cap`` is per row; a row stopped by it takes no part in later comparisons.
        """
        return self._run(self._rounds(documents, True, cap), acquire)

    def predict_rows(self, X: Any, queries: Any = None, *, cap: float | None = None) -> Answers:
        """Predict rows with known cells; the bill is the same as if cells were acquired.

        Text is read as in the table of the training: dates, numbers, decimal commas, and its words
        for missing cells.
        ``X``: an array (n, columns) in the order of ``names``, a data frame, a mapping of columns
        or a list of mappings; other columns are ignored. ``queries``: the id of each row's query
        (n,), or ``bench_core.Queries``.
        """
        if hasattr(X, "toarray"):
            raise UsageError(
                "X is sparse; give X.toarray(), with NaN for cells that are not stored if they "
                "were missing in training"
            )
        shape = getattr(X, "shape", (len(X),) if hasattr(X, "__len__") else ())
        if {*shape} == {0}:
            X = np.zeros((0, len(self.names)))  # no rows, and no columns either
        columns, typed = columns_by_name(X), getattr(getattr(X, "dtype", None), "kind", "f")
        if self._raw is not None or columns is not None or typed not in "biuf":
            X = X if columns is None else columns
            return self.predict_features(self.table_features(X), queries, cap)
        cells = narrow(X)
        if cells.ndim != 2 or cells.shape[1] != len(self.names):
            raise UsageError(f"X must be (n, {len(self.names)}), not {cells.shape}")
        return self.predict_features(cells, queries, cap)

    def predict_features(
        self, cells: Float32Array, queries: Any = None, cap: float | None = None
    ) -> Answers:
        """Predict as ``predict_rows`` does, from encoded features (n, d) of a prepared data set."""
        if queries is not None and not isinstance(queries, Queries):
            try:
                queries = Queries.from_ids(queries)
            except ValueError as error:
                raise UsageError(f"queries: {error}") from error
        if queries is not None and queries.rows != len(cells):
            raise UsageError(f"queries has {queries.rows} rows, X {len(cells)}")
        found = self._rows(cells, queries, cap)
        found.sensors = self._sensor_names
        return found

    def _rows(self, cells: Float32Array, queries: Queries | None, cap: float | None) -> Answers:
        bounds, limit = None if queries is None else queries.boundaries, self._limit(cap)
        if isinstance(self.program, PolicyProgram):
            return self._policy.at_hand(cells, queries, limit)
        if limit is None and len(cells) >= MANY:
            rows, acquired = self._block_walk.run(cells, bounds)
            scores = answers(self.program, rows, bounds)
            spent = bill(self.costs, acquired, rows.splits, rows.trees, queries)
            return Answers(scores, spent, acquired, rows.final_step, rows.how == CAPPED)
        bounds = np.arange(len(cells) + 1) if bounds is None else bounds
        found: list[Answer] = []
        for start, stop in pairwise(bounds.tolist()):
            rounds = self._rounds(stop - start, queries is not None, cap)
            found += _answered(rounds, partial(_copy, cells[start:stop]))
        mask = np.zeros((len(found), self.costs.sensors), dtype=bool)
        single, sensors = self._needs.single, self._needs.sensors
        for own, answer in zip(mask, found, strict=True):
            if single is None:
                own[[s for f in answer.bought.tolist() for s in sensors[f]]] = True
            else:
                own[single[answer.bought]] = True
        shape = (-1,) if self.program.outputs == 1 else (-1, self.program.outputs)
        return Answers(
            scores=np.array([answer.score for answer in found], dtype=np.float64).reshape(shape),
            spent=np.array([answer.spent for answer in found], dtype=np.float64),
            acquired=Acquired.pack(mask),
            step=np.array([answer.step for answer in found], dtype=np.int64),
            capped=np.array([answer.stopped == "cap" for answer in found], dtype=bool),
        )

    def predict_proba(self, X: Any, queries: Any = None) -> FloatArray:
        """Return class probabilities (n, K) of known rows. Raises UsageError for other tasks."""
        return probabilities(self.predict_rows(X, queries).scores, str(self.about["task"]))

    def _run(self, rounds: Rounds, acquire: AcquireFor) -> list[Answer]:
        asked = _Asked(self)

        def fill(row: int, numbers: IntArray, values: Float32Array) -> None:
            names = asked.new(row, numbers)
            asked.put(row, numbers, values, acquire(row, names) if names else ())

        return _by_name(_answered(rounds, fill), asked.names)

    def _names_of(self, numbers: IntArray | list[int]) -> list[str]:
        names: list[str] = self._names_array[numbers].tolist()
        return names

    def _rounds(self, count: int, grouped: bool, cap: float | None) -> Rounds:
        """Yield the rows' next needs, round by round; return their answers by number."""
        limit = self._limit(cap)
        by_row = pays_by_row(self.costs)
        if limit is not None and count > 1 and grouped and not by_row:
            raise UsageError(
                f"no cap per row: costs {self.costs.name!r} share bills within a query"
            )
        if isinstance(self.program, PolicyProgram):
            return self._policy.rounds(count, grouped, limit)
        return self._row_walk.rounds(count, grouped=grouped, cap=limit)

    def _limit(self, cap: float | None) -> float | None:
        if cap is not None and not cap >= 0:  # NaN is not
            raise UsageError(f"cap={cap!r}: a cap must be a number of at least 0")
        cap = min((one for one in (cap, self.cap) if one is not None), default=None)
        policy = isinstance(self.program, PolicyProgram)
        if policy and cap not in (None, inf) and self._needs.prices is None:
            fault = f"costs {self.costs.name!r} are not a sum over purchases"
            raise UsageError(f"no cap for a policy: {fault}")
        if cap is not None and cap < self.least_cap:
            return -1.0  # buys nothing: the answer would be the constant
        return None if cap == inf else cap

    @cached_property
    def least_cap(self) -> float:
        """Price that every row needs for an answer; a lower cap buys nothing. 0.0: unknown."""
        return 0.0 if isinstance(self.program, PolicyProgram) else self._needs.least(self.program)

    @cached_property
    def _block_walk(self) -> BlockWalk:
        assert isinstance(self.program, Program)
        return BlockWalk(self.program, self.costs)

    @cached_property
    def _row_walk(self) -> RowWalk:
        from bench_core.serving.row_walk import RowWalk  # loads numba

        assert isinstance(self.program, Program)
        return RowWalk(self.program, self._needs)

    @cached_property
    def _policy(self) -> PolicyWalk:
        assert isinstance(self.program, PolicyProgram)
        return PolicyWalk(self.program, self.costs)

    @cached_property
    def _names_array(self) -> Any:
        return np.array(self.names, dtype=object)

    @cached_property
    def _needs(self) -> FeatureNeeds:
        return FeatureNeeds(self.program.features, self.costs)


def classes_of(about: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the labels of the classes, by number."""
    return tuple(about.get("class_names") or map(str, range(int(about.get("classes", 0)))))


def meaning_of(about: Mapping[str, Any]) -> str:
    """Return the meaning of a score, in one line."""
    classes = classes_of(about)
    if len(classes) == 2:
        return f"score = log-odds of {classes[1]} (class 1); {classes[0]} is class 0"
    if classes:
        return f"scores = log-probabilities up to a constant, in this order: {', '.join(classes)}"
    if about.get("task") == "ranking":
        return "score: within a query, the largest comes first"
    return "score = the predicted label"


def probabilities(scores: FloatArray, task: str) -> FloatArray:
    """Return class probabilities (n, K) from scores (n,) or (n, K). Raises UsageError for ranking
    and regression."""
    if task not in ("binary", "multiclass"):
        raise UsageError(f"a {task} model has no probabilities; use predict")
    if scores.ndim == 1:
        share = np.exp(-np.logaddexp(0.0, -scores))
        return np.stack([np.exp(-np.logaddexp(0.0, scores)), share], axis=1)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def narrow(values: Any, dimensions: int = 0) -> Float32Array:
    """Convert real numbers, None for NaN, to float32; too large cells are infinite, as in training.
    Raises UsageError for anything else, including text and complex numbers."""
    if type(values) is np.ndarray and values.dtype == np.float32 and dimensions in (0, values.ndim):
        return values
    try:
        cells = np.ma.filled(values, nan)  # an array
        if cells.dtype == object:
            flat = [nan if v is None else v for v in cells.ravel().tolist()]
            cells = np.array(array("d", flat)).reshape(cells.shape)
    except (TypeError, ValueError, OverflowError):  # ragged, or of no numbers
        cells = np.array("")
    if cells.dtype.kind not in "biuf" or dimensions not in (0, cells.ndim):
        shown = one_line(repr(values), 60)
        raise UsageError(f"cells must be real numbers, None where missing, not {shown}")
    with np.errstate(over="ignore"):
        return cells.astype(np.float32, copy=False)


def _copy(cells: Float32Array, row: int, numbers: IntArray, values: Float32Array) -> None:
    values[:] = cells[row][numbers]


class _Asked:
    """Names requested from rows, and the values returned."""

    def __init__(self, model: Predictor) -> None:
        self.model, self.names = model, defaultdict[int, list[str]](list)
        self.rows = dict[int, AskedRow]()

    def new(self, row: int, features: IntArray) -> list[str]:
        """Return the names of features to request from one row, each once."""
        raw = self.model._raw
        columns: IntArray | list[int] = features
        if raw is not None:
            columns = self.rows.setdefault(row, AskedRow(raw)).new(features)
        names = self.model._names_of(columns)
        self.names[row] += names
        return names

    def put(self, row: int, features: IntArray, values: Float32Array, found: Any) -> None:
        """Write into ``values`` the cells returned for the last of these names."""
        raw = self.model._raw
        if raw is None:
            return _put(values, found, self.names[row])
        own = self.rows[row]
        columns = own.new(features)
        cells = _listed(found, self.names[row], len(columns))
        own.codes |= {c: raw.code(c, cell) for c, cell in zip(columns, cells, strict=True)}
        return own.put(features, values)


def _listed(found: Any, names: list[str], wanted: int) -> Any:
    """Return the cells that a caller's function returned for the last names, in order."""
    if hasattr(found, "keys"):  # a mapping, or a row of a frame
        if lost := [name for name in names[-wanted:] if name not in found]:
            raise UsageError(f"the row has no column {lost[0]!r}; give None where it is missing")
        return [found[name] for name in names[-wanted:]]
    if not isinstance(found, list | tuple | np.ndarray):
        if not isinstance(found, Iterable):
            kind = type(found).__name__
            raise UsageError(f"acquire returned a {kind}; return a list of values, or a mapping")
        # not numbers, or unordered
        unsound = isinstance(found, str | bytes | Set)
        found = [found] if unsound else list(found)
    if len(found) != wanted:
        asked = ", ".join([*names[-wanted:][:3], *(["..."] if wanted > 3 else [])])
        raise UsageError(
            f"acquire returned {len(found)} values for {wanted} features "
            f"({asked}); return one for each, None where it is missing"
        )
    return found


def _put(values: Float32Array, found: Any, names: list[str]) -> None:
    """Write into ``values`` the cells returned for the last of these features."""
    found = _listed(found, names, len(values))
    if not isinstance(found, np.ndarray):
        try:  # three times as fast as numpy
            return pack_into(f"{len(found)}f", values.data, 0, *found)
        except (error, OverflowError):  # a value is None, text or too large
            if any(isinstance(cell, str) or str(cell) in ("NaT", "<NA>") for cell in found):
                raw = RawColumns(plain_encodings(names[-len(values) :]))
                found = [raw.code(column, cell) for column, cell in enumerate(found)]
    values[:] = narrow(found, dimensions=1)
    return None


def _by_name(found: list[Answer], asked: Mapping[int, list[str]]) -> list[Answer]:
    for row, answer in enumerate(found):
        answer.bought = tuple(asked[row])
    return found


def _answered(
    rounds: Rounds, fill: Callable[[int, IntArray, Float32Array], object]
) -> list[Answer]:
    """Return the answers of rows; ``fill`` writes the values that they request."""
    while True:
        try:
            asks = next(rounds)
        except StopIteration as end:
            found: list[Answer] = end.value
            return found
        for ask in asks:
            fill(*ask)
