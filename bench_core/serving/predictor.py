"""A loaded model: it requests each feature at most once, stops early and reports its cost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import Array, Float32Array, FloatArray, IntArray
from bench_core.costs.by_row import ByRow, priced_rows
from bench_core.costs.error_costs import ErrorCosts, answers_of_least_cost
from bench_core.costs.model import Acquired, CostModel, SensorPrices, pays_by_row
from bench_core.data import Queries, Task
from bench_core.encoding import ColumnEncoding, plain_encodings
from bench_core.errors import UsageError, shortened
from bench_core.sequential import ROUNDING
from bench_core.serving.block_walk import BlockWalk
from bench_core.serving.explanation import Explanation, Record
from bench_core.serving.folder import Folder, read_folder
from bench_core.serving.gates import answers
from bench_core.serving.policy_program import ServedProgram
from bench_core.serving.policy_walk import PolicyWalk
from bench_core.serving.program import Program
from bench_core.serving.raw_rows import (
    AcquireFor,
    AskedCells,
    RawColumns,
    columns_by_name,
    narrow,
)
from bench_core.serving.row_prices import AskedPrices, prices_in
from bench_core.serving.row_state import (
    CAPPED,
    Answer,
    Answers,
    FeatureNeeds,
    Label,
    Rounds,
    bill,
)

if TYPE_CHECKING:
    from bench_core.serving.on_demand import RowWalk

Acquire = Callable[[list[str]], Sequence[Any] | Mapping[str, Any]]

MANY = 10
"""Number of rows from which the block walk is faster."""
_TOGETHER = 1000
"""Rows that walk on demand at a time: each has its own memory."""


def load(folder: str | Path) -> Predictor:
    """Load the model that ``bench model export`` wrote into a folder.

    Raises InputError, in one line, if the folder is not an exported model or has another version.
    """
    return Predictor(read_folder(Path(folder)))


class Predictor:
    """A model at its exported operating point.

    ``names`` are the table's columns in training; the predictor encodes text by ``encodings``, ()
    if columns are features. ``about`` holds the
    folder's facts: point, figures, provenance. ``price_columns`` are the columns of prices that
    differ by row. ``cap`` is the cap of the export, if any; a call
    can only lower it. Thread-safe.
    """

    def __init__(self, folder: Folder) -> None:
        self.program: ServedProgram = folder.program
        self.costs: CostModel = folder.costs
        self.encodings: tuple[ColumnEncoding, ...] = folder.encodings
        self._raw = RawColumns(folder.encodings or plain_encodings(folder.names))
        self.names: tuple[str, ...] = self._raw.names
        self.about: Mapping[str, Any] = folder.about
        self.price_columns: tuple[str, ...] = tuple(folder.about.get("price_columns", ()))
        errors = folder.about.get("error_costs")
        self.error_costs: ErrorCosts | None = errors and ErrorCosts(
            *(np.array(errors[name]) for name in ("matrix", "column"))
        )
        budget = folder.about.get("budget") or {}
        self.cap: float | None = budget["amount"] if budget.get("kind") == "cap" else None

    def compile(self) -> None:
        """Load the compiled code of single rows, which the first row does otherwise.

        Call it when a service starts: it compiles for some seconds the first time on a machine.
        """
        next(self._walk.rounds(1, None, None), None)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns that it may request."""
        return tuple(self.names[column] for column in self._needed)

    @property
    def sensors(self) -> Mapping[int, list[str]]:
        """Columns that it may request, by the sensor that measures them."""
        return self._by_sensor(self._read)

    @cached_property
    def _sensors(self) -> set[int]:
        return {*self.sensors}

    def _by_sensor(self, features: Iterable[int]) -> Mapping[int, list[str]]:
        columns = defaultdict[int, dict[str, None]](dict)
        for f in features:
            for s in self.costs.sensors_of(f).tolist():
                columns[s][self.names[self._raw.column[f]]] = None
        return {s: [*names] for s, names in columns.items()}

    @cached_property
    def _sensor_names(self) -> tuple[str, ...]:
        """The columns that each sensor measures; its number if there is none."""
        columns = self._by_sensor(range(self.costs.features))
        return tuple(" + ".join(columns.get(s, [str(s)])) for s in range(self.costs.sensors))

    def __repr__(self) -> str:
        """Return what it is and what it may ask for."""
        about, few = self.about, shortened(self.features, 5)
        where = f"{about.get('learner', 'model')} on {about.get('dataset', 'data')}"
        return f"<Predictor of {where}: asks for {few or 'nothing'}; {self.meaning}>"

    @cached_property
    def classes(self) -> tuple[Label, ...]:
        """Labels of the classes by number; () for other tasks."""
        return classes_of(self.about)

    @property
    def meaning(self) -> str:
        """Meaning of a score, in one line."""
        return meaning_of(self.about)

    def table_features(self, X: Any) -> Float32Array:
        """Return the rows of a table (see ``predict_rows``) as encoded features (n, d)."""
        return self._raw.table(X, self._needed)

    @cached_property
    def _read(self) -> list[int]:
        """Features that it reads, in increasing order; without those that its cap never affords."""
        features = sorted(self._needs.features)
        if self.cap is not None and type(self.costs) is SensorPrices:
            price = self.costs.feature_price()
            features = [f for f in features if price[f] <= self.cap * (1 + ROUNDING)]
        return features

    @cached_property
    def _needed(self) -> list[int]:
        """Raw columns of these features, each once."""
        return self._raw.of(self._read)

    def predict(self, acquire: Acquire | Mapping[str, Any], *, cap: float | None = None) -> Answer:
        """Predict one row. ``acquire(names)`` returns cells of columns, None or NaN if missing, as
        a list in this order or a mapping. A row at hand may be given as a mapping instead.

        Each call names all columns that one or more sensors yield to this model, and the columns of
        their prices if these differ by row (under a cap, those that are quoted before all else); no
        column is requested twice. The row never costs more than ``cap``, except by a purchase whose
        price is metered, which it makes while money is left: it answers at the last point of the
        path that it reached. A model that compares rows of a query treats the row as a query.
        """
        return self._run(1, None, cap, _of_row(acquire, "predict"))[0]

    def explain(self, row: Acquire | Mapping[str, Any], *, cap: float | None = None) -> Explanation:
        """Explain the answer of one row, given as to ``predict``: what it bought in order, the
        score after each step, why it stopped, and the price of what it declined.

        >>> predictor.explain({"age": 61, "hb": None})  # doctest: +SKIP
        step 0: bought age for 1, score -0.4
        step 1: bought hb for 3, score 1.2
        score 1.2 for 4; the model has no further step
        """
        cells, limit = AskedCells(self._raw, 1), self._limit(cap)
        record = Record(cells.names[0], self._needs)
        (answer,) = self._asked(cells, None, limit, _of_row(row, "explain"), record)
        if limit is None:
            return record.explained(answer, self.program, "")
        amount = min(inf if given is None else given for given in (cap, self.cap))
        refused = [self._raw.names[c] for c in self._raw.of(record.refused)]
        why = record.beyond_cap(refused, f"the cap of {amount:.6g}")
        if amount < self.least_cap:
            why = f"the cap of {amount:.6g} is below {self.least_cap:.6g}, the price of any answer"
        return record.explained(answer, self.program, why)

    def predict_query(
        self, acquire: AcquireFor, documents: int, *, cap: float | None = None
    ) -> list[Answer]:
        """Predict the rows of one query together, with ``acquire(document, names)`` for each.

        ``cap`` is per row; a row stopped by it takes no part in later comparisons.
        """
        if not isinstance(documents, int | np.integer) or documents < 0:
            raise UsageError(f"documents is the number of documents, not {documents!r}")
        queries = Queries.from_sizes(np.array([documents])) if documents else None
        return self._run(documents, queries, cap, acquire)

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
        if not self._raw.plain or columns is not None or typed not in "biuf":
            X = X if columns is None else columns
            prices = None if columns is None else prices_in(columns, self.price_columns)
            return self.predict_features(self.table_features(X), queries, cap, prices)
        cells = narrow(X)  # an array has no prices
        if cells.ndim != 2 or cells.shape[1] != len(self.names):
            raise UsageError(f"X must be (n, {len(self.names)}), not {cells.shape}")
        return self.predict_features(cells, queries, cap)

    def predict_features(
        self,
        cells: Float32Array,
        queries: Any = None,
        cap: float | None = None,
        prices: FloatArray | None = None,
    ) -> Answers:
        """Predict as ``predict_rows`` does, from encoded features (n, d) of a prepared data set and
        its ``price_columns`` (n, c), NaN for the mean price."""
        if queries is not None and not isinstance(queries, Queries):
            try:
                queries = Queries.from_ids(queries)
            except ValueError as error:
                raise UsageError(f"queries: {error}") from error
        if queries is not None and queries.rows != len(cells):
            raise UsageError(f"queries has {queries.rows} rows, X {len(cells)}")
        answers = self._rows(cells, queries, cap, self._costs_of(len(cells), prices))
        answers.sensors = self._sensor_names
        return answers

    def _costs_of(self, rows: int, prices: FloatArray | None = None) -> CostModel:
        """Return the cost model of rows with these ``prices`` (n, c), without at the means."""
        if not isinstance(self.costs, ByRow):
            return self.costs
        if prices is None:
            return replace(self.costs, of_rows=np.tile(self.costs.base.sensor, (rows, 1)))
        return self.costs.on(prices)

    def _rows(
        self,
        cells: Float32Array,
        queries: Queries | None,
        cap: float | None,
        costs: CostModel,
    ) -> Answers:
        if not isinstance(self.program, Program):
            return self._policy.at_hand(cells, queries, self._limit(cap), costs)
        limit = self._limit(cap, queries)
        if limit is None and len(cells) >= MANY:
            boundaries = None if queries is None else queries.boundaries
            by_row = priced_rows(costs) if self.program.reads_prices else None
            seen = None if by_row is None else by_row.known()
            rows, acquired = self._block_walk.run(cells, boundaries, seen)
            scores = answers(self.program, rows, boundaries)
            spent = bill(costs, acquired, rows.splits, rows.trees, queries)
            return Answers(scores, spent, acquired, rows.final_step, rows.how == CAPPED)
        return self._asking(cells, queries, limit, costs)

    def replay(
        self,
        cells: Float32Array,
        queries: Queries | None = None,
        prices: FloatArray | None = None,
    ) -> Answers:
        """Predict as ``predict_features`` does, from cells that are handed out one by one, each
        when the program asks for it."""
        costs = self._costs_of(len(cells), prices)
        if not isinstance(self.program, Program):
            return self._policy.at_hand(cells, queries, None, costs)
        return self._asking(cells, queries, None, costs)

    def _asking(
        self,
        cells: Float32Array,
        queries: Queries | None,
        limit: float | None,
        costs: CostModel,
    ) -> Answers:
        each: list[Answer] = []
        for start, stop, inside in _parts(len(cells), queries):
            part = cells[start:stop]

            def copy(row: int, features: IntArray, values: Float32Array, part: Any = part) -> None:
                values[:] = part[row, features]

            by_row = priced_rows(costs)
            of_part = costs if by_row is None else by_row.rows(slice(start, stop))
            walk = self._row_walk.rounds(stop - start, inside, limit, None, of_part)
            each += _answered(walk, copy)
        mask = np.zeros((len(each), self.costs.sensors), dtype=bool)
        for bought, answer in zip(mask, each, strict=True):
            self._needs.mark(bought, answer.bought)
        outputs = self._row_walk.program.outputs
        shape = (-1,) if outputs == 1 else (-1, outputs)
        return Answers(
            scores=np.array([answer.score for answer in each], dtype=np.float64).reshape(shape),
            spent=np.array([answer.spent for answer in each], dtype=np.float64),
            acquired=Acquired.pack(mask),
            step=np.array([answer.step for answer in each], dtype=np.int64),
            capped=np.array([answer.stopped == "cap" for answer in each], dtype=bool),
        )

    def predict_proba(self, X: Any, queries: Any = None) -> FloatArray:
        """Return class probabilities (n, K) of known rows. Raises UsageError for other tasks."""
        return probabilities(self.predict_rows(X, queries).scores, str(self.about["task"]))

    def labels(self, scores: Any) -> Array:
        """Return the class, or the source whose answer to return, (n,) of each row by its scores
        (n,) or (n, K): the class of least expected cost if errors have costs, else the most likely.
        The score of one row, a number or (K,) for K > 2, gives its class alone. UsageError for
        other tasks and shapes."""
        matrix = self._matrix
        if matrix is None:
            raise UsageError(f"a {self.about['task']} model has no classes; use the scores")
        scores, k = np.asarray(scores, dtype=np.float64), len(matrix)
        alone = scores.ndim == (0 if k == 2 else 1)
        rows = scores[None] if alone else scores
        if rows.shape[1:] not in ((k,), () if k == 2 else (k,)):
            wanted = "(n,)" if k == 2 else f"(n, {k})"
            raise UsageError(f"scores must be {wanted} for {k} classes, not {scores.shape}")
        labels = np.array(self.classes)[answers_of_least_cost(rows, matrix)]
        return labels[0] if alone else labels

    @cached_property
    def _matrix(self) -> FloatArray | None:
        """Costs of errors (K, K), 1 for each if none were given; None without classes."""
        if self.error_costs is not None:
            return self.error_costs.matrix
        return 1.0 - np.eye(len(self.classes)) if self.classes else None

    def _run(
        self, count: int, queries: Queries | None, cap: float | None, acquire: AcquireFor
    ) -> list[Answer]:
        return self._asked(
            AskedCells(self._raw, count), queries, self._limit(cap, queries), acquire
        )

    def _asked(
        self,
        cells: AskedCells,
        queries: Queries | None,
        limit: float | None,
        acquire: AcquireFor,
        record: Record | None = None,
    ) -> list[Answer]:
        """Return the answers of rows that ask for their cells, and for their prices."""
        costs = self._costs_of(len(cells.names)) if self.price_columns else self.costs
        by_row = priced_rows(costs)
        prices = None
        if by_row is not None:
            prices = AskedPrices(by_row, self.price_columns, self._needs.sensors)
        if prices is not None and (self.program.reads_prices or limit is not None):
            prices.ask_quoted(acquire, self._sensors)

        def fill(row: int, features: IntArray, values: Float32Array) -> None:
            ask = acquire if prices is None else prices.with_prices(acquire, features)
            cells.fill(row, features, values, ask)
            if record is not None:
                record.features += features.tolist()

        watch = None if record is None else record.watch
        answers = _answered(self._walk.rounds(len(cells.names), queries, limit, watch, costs), fill)
        for answer, names in zip(answers, cells.names, strict=True):
            answer.bought = tuple(names)
            answer.classes, answer.error_costs = self.classes, self._matrix
        return answers

    @property
    def _walk(self) -> PolicyWalk | RowWalk:
        """Walk of rows on demand."""
        return self._row_walk if isinstance(self.program, Program) else self._policy

    def _limit(self, cap: float | None, queries: Queries | None = None) -> float | None:
        """Return the cap of rows, None for none. Raises UsageError if there can be none."""
        if cap is not None and not (
            isinstance(cap, int | float | np.number) and cap >= 0
        ):  # NaN is not
            raise UsageError(f"cap={cap!r}: a cap must be a number of at least 0")
        cap = min(inf if limit is None else limit for limit in (cap, self.cap))
        if cap == inf:
            return None
        if self.about.get("task") == Task.CHOICE:
            raise UsageError(f"cap={cap:g}: a row that can buy no call has no answer; leave it out")
        if queries is not None and not pays_by_row(self.costs) and (queries.sizes > 1).any():
            fault = f"costs {self.costs.name!r} share bills within a query"
            raise UsageError(f"no cap per row: {fault}")
        if not isinstance(self.program, Program) and self._needs.prices is None:
            fault = f"costs {self.costs.name!r} are not a sum over purchases"
            raise UsageError(f"no cap for a policy: {fault}")
        if cap < self.least_cap:
            return -1.0  # buys nothing: the answer would be the constant
        return cap

    @cached_property
    def least_cap(self) -> float:
        """Price that every row needs for an answer; a lower cap buys nothing. 0.0: unknown."""
        return self._needs.least(self.program) if isinstance(self.program, Program) else 0.0

    @cached_property
    def _block_walk(self) -> BlockWalk:
        assert isinstance(self.program, Program)
        return BlockWalk(self.program, self.costs)

    @cached_property
    def _row_walk(self) -> RowWalk:
        from bench_core.serving.on_demand import RowWalk  # loads numba

        assert isinstance(self.program, Program)
        return RowWalk(self.program, self._needs)

    @cached_property
    def _policy(self) -> PolicyWalk:
        assert not isinstance(self.program, Program)
        return PolicyWalk(self.program, self.costs)

    @cached_property
    def _needs(self) -> FeatureNeeds:
        return FeatureNeeds(self.program.features, self.costs)


def _of_row(row: Acquire | Mapping[str, Any], method: str) -> AcquireFor:
    """Return the function that asks for the cells of one row. Raises UsageError for a table."""
    if callable(row):
        return lambda _, names: row(names)
    if not hasattr(row, "keys") or hasattr(row, "columns"):
        raise UsageError(
            f"{method} takes a row as a mapping, or a function that returns its cells, not a "
            f"{type(row).__name__}; predict_rows takes tables"
        )
    return lambda _, names: row


def classes_of(about: Mapping[str, Any]) -> tuple[Label, ...]:
    """Return the labels of the classes, by number, as pandas reads them from a table: integers or
    booleans if all are, else text. Sources of a choice are text."""
    names = tuple(about.get("class_names") or map(str, range(int(about.get("classes", 0)))))
    if about.get("task") == Task.CHOICE:
        return names
    if {*names} <= {"False", "True"}:
        return tuple(name == "True" for name in names)
    if all(name.removeprefix("-").isdecimal() and str(int(name)) == name for name in names):
        return tuple(map(int, names))
    return names


def meaning_of(about: Mapping[str, Any]) -> str:
    """Return the meaning of a score, in one line."""
    classes = [*map(str, classes_of(about))]
    if about.get("task") == Task.CHOICE:
        how = "> 0 returns the second of" if len(classes) == 2 else "the largest returns its of"
        return f"scores: {how} {', '.join(classes)}"
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


def _answered(
    rounds: Rounds, fill: Callable[[int, IntArray, Float32Array], object]
) -> list[Answer]:
    """Return the answers of rows; ``fill`` writes the values that they request."""
    while True:
        try:
            asks = next(rounds)
        except StopIteration as end:
            each: list[Answer] = end.value
            return each
        for ask in asks:
            fill(*ask)


def _parts(count: int, queries: Queries | None) -> Iterator[tuple[int, int, Queries | None]]:
    """Cut rows into parts of whole queries: first row, end, and the queries of each part."""
    if queries is None:
        for start in range(0, count, _TOGETHER):
            yield start, min(start + _TOGETHER, count), None
        return
    boundaries, first = queries.boundaries, 0
    while first < len(boundaries) - 1:
        stop = int(np.searchsorted(boundaries, boundaries[first] + _TOGETHER, side="right")) - 1
        last = max(stop, first + 1)  # a longer query is a part
        yield int(boundaries[first]), int(boundaries[last]), queries.select(first, last)
        first = last
