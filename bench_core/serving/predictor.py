"""A loaded model: it asks for features, never twice, stops by itself and tells what it spent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.costs.acquired import Acquired, words
from bench_core.costs.model import CostModel, SensorPrices
from bench_core.costs.shipped import ParallelPrices
from bench_core.data import Queries
from bench_core.errors import UsageError
from bench_core.serving.answers import Answer, Answers
from bench_core.serving.compiled import compilable, prices_of
from bench_core.serving.folder import Folder, read_folder
from bench_core.serving.gates import below, finished
from bench_core.serving.program import END, Program
from bench_core.serving.tables import Row, Tables
from bench_core.serving.walk import Afford, Ask, Values, checked, narrow, walk

if TYPE_CHECKING:
    from bench_core.serving.engine import Engine

Acquire = Callable[[list[str]], Sequence[Any]]
AcquireInto = Callable[[IntArray, Float32Array], object]
AcquireFor = Callable[[int, list[str]], Sequence[Any]]
AcquireLater = Callable[[list[str]], Awaitable[Sequence[Any]]]
AcquireLaterFor = Callable[[int, list[str]], Awaitable[Sequence[Any]]]
Way = Generator[list[Ask], list[Values], None]
Rounds = Generator[list[tuple[int, list[str]]], Any, list[Any]]
"""Yields rows with the names of the features that they need, and is sent what was returned."""

WORTH = 300_000
"""Trees that the plain walk takes through rows (3 us each) in the time that loading numba takes."""


def load(folder: str | Path) -> Predictor:
    """The model that ``bench model export`` wrote into a folder.

    Raises InputError, in one line, where the folder is none, is of another version, or was changed.
    """
    return Predictor(read_folder(Path(folder)))


class Predictor:
    """A model at the operating point that it was exported at.

    ``about`` is what the folder says of it: point, figures, provenance. ``cap`` is the budget of
    every row where the model was exported under one: calls without a cap keep it. May be used by
    several threads at once.
    """

    def __init__(self, folder: Folder) -> None:
        self.program: Program = folder.program
        self.costs: CostModel = folder.costs
        self.names: tuple[str, ...] = folder.names
        self.about: Mapping[str, Any] = folder.about
        budget = folder.about.get("budget") or {}
        self.cap: float | None = budget["amount"] if budget.get("kind") == "cap" else None
        self._compiled: Engine | None = None
        self._walked = 0

    def compile(self) -> bool:
        """Walk by compiled code from now on, which needs numba: with the same answers.

        For the start of a service: it loads numba, and compiles once per machine. Many rows at
        hand do it by themselves. False where the model, its costs or this machine allow the plain
        walk only.
        """
        prices = prices_of(self.costs)
        if self._compiled is None and prices is not None and compilable(self.program):
            try:
                from bench_core.serving.engine import Engine
            except ImportError:  # no numba here
                return False
            self._compiled = Engine(self.program, prices, self.names)
            self._compiled.warm_up()
        return self._compiled is not None

    def _engine(self, rows: int, grouped: bool) -> Engine | None:
        """Compiled code, where it knows the model and ``rows`` at hand have paid for loading it."""
        if grouped and (self.program.in_queries or not isinstance(self.costs, SensorPrices)):
            return None
        if self._compiled is None and self._walked < WORTH:
            self._walked += rows * self._uses
            if self._walked >= WORTH:
                self.compile()
        return self._compiled

    def _limit(self, cap: float | None) -> float:
        cap = self.cap if cap is None else cap
        return inf if cap is None else cap

    @cached_property
    def _uses(self) -> int:
        return sum(len(step.trees) for step in self.program.steps)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that it may ask for."""
        return tuple(self.names[f] for f in self._tables.features)

    def predict(self, acquire: Acquire, *, cap: float | None = None) -> Answer:
        """One row. ``acquire(names)`` returns the values of features, None or NaN where missing.

        It is called with all that a sensor, or several, yield to this model, never twice for
        the same. With ``cap`` the row never costs more: it answers at the last point of the path
        that was reached. A model that compares the rows of a query takes the row by itself.
        """
        if (engine := self._compiled) is None:
            return self._run(self._rounds(1, False, cap), lambda _, names: acquire(names))[0]
        return Answer(*engine.ask(acquire, self._limit(cap)), engine.names)

    def predict_into(self, acquire: AcquireInto, *, cap: float | None = None) -> Answer:
        """As ``predict``, without lists of names and values: the fastest way to ask.

        ``acquire(numbers, values)`` is called with the places of features in ``names``, and writes
        what they are into ``values``, float32, NaN before; both are its own until it returns, but
        for their shapes. The answer's ``bought`` is an array of such numbers.
        """
        if (engine := self._compiled) is not None:
            return Answer(*engine.fill(acquire, self._limit(cap)))

        def values_of(_: int, names: list[str]) -> Any:
            numbers = np.array([self._numbers[name] for name in names])
            values = np.full(len(names), np.nan, dtype=np.float32)
            acquire(numbers, values)
            return values

        (answer,) = self._run(self._rounds(1, False, cap), values_of)
        numbers = np.array([self._numbers[name] for name in answer.bought], dtype=np.int64)
        return Answer(answer.score, answer.spent, numbers, answer.step, answer.stopped)

    def predict_query(
        self, acquire: AcquireFor, documents: int, *, cap: float | None = None
    ) -> list[Answer]:
        """The rows of one query together, ``acquire(document, names)`` for each of them.

        ``cap`` is per row; one that it stops takes no part in later comparisons.
        """
        return self._run(self._rounds(documents, True, cap), acquire)

    async def predict_async(self, acquire: AcquireLater, *, cap: float | None = None) -> Answer:
        """As ``predict``, where ``acquire`` is a coroutine function."""
        rounds = self._rounds(1, False, cap)
        return (await self._run_async(rounds, lambda _, names: acquire(names)))[0]

    async def predict_query_async(
        self, acquire: AcquireLaterFor, documents: int, *, cap: float | None = None
    ) -> list[Answer]:
        """As ``predict_query``; what the rows need next is acquired at the same time."""
        return await self._run_async(self._rounds(documents, True, cap), acquire)

    def _rounds(self, rows: int, grouped: bool, cap: float | None) -> Rounds:
        """All that the rows need next, round by round; returns their answers."""
        if (engine := self._engine(0, grouped)) is not None:
            return self._side_by_side(engine, rows, cap)
        return self._plain(*self._begin(rows, grouped, cap), grouped)

    def _run(self, way: Rounds, acquire: AcquireFor) -> list[Answer]:
        values: Any = None
        while True:
            try:
                asks = way.send(values)
            except StopIteration as end:
                return list(end.value)
            values = [acquire(row, names) for row, names in asks]

    async def _run_async(self, way: Rounds, acquire: AcquireLaterFor) -> list[Answer]:
        from asyncio import gather

        values: Any = None
        while True:
            try:
                asks = way.send(values)
            except StopIteration as end:
                return list(end.value)
            values = await gather(*(acquire(row, names) for row, names in asks))

    def _plain(self, rows: Sequence[Row], way: Way, grouped: bool) -> Rounds:
        asks = next(way, None)
        while asks is not None:
            names = [[self.names[f] for f in ask.features] for ask in asks]
            got = yield [(ask.row, own.copy()) for ask, own in zip(asks, names, strict=True)]
            values = [checked(own, len(own), found) for own, found in zip(names, got, strict=True)]
            cells = [narrow([np.nan if v is None else v for v in g]).tolist() for g in values]
            asks = _send(way, cells)
        return self._answers(rows, grouped)

    def _side_by_side(self, engine: Engine, rows: int, cap: float | None) -> Rounds:
        """Rows by compiled code; in each round all that are not at their ends ask."""
        ways = [engine.way(self._limit(cap)) for _ in range(rows)]
        answers: list[Any] = [None] * rows
        values: list[Any] = [None] * rows
        here = list(range(rows))
        while here:
            asks = []
            for i, value in zip(here, values, strict=True):
                try:
                    asks.append((i, ways[i].send(value)))
                except StopIteration as end:
                    answers[i] = Answer(*(*end.value, engine.names))
            here = [i for i, _ in asks]
            values = (yield asks) if asks else []
        return answers

    def predict_rows(
        self, X: Any, queries: Queries | None = None, *, cap: float | None = None
    ) -> Answers:
        """Rows whose cells ``X`` (n, d) are at hand; the bill is as if each had been asked for."""
        cells = np.asarray(X)
        if cells.ndim != 2 or cells.shape[1] != len(self.names):
            raise UsageError(f"X must be (n, {len(self.names)}), not {cells.shape}")
        if (engine := self._engine(len(cells), queries is not None)) is not None:
            return Answers(*engine.rows(narrow(cells), self._limit(cap)))
        if queries is None or (not self.program.in_queries and self._by_row):
            groups = [np.arange(len(cells))]
        else:
            b = queries.boundaries
            groups = [np.arange(*pair) for pair in pairwise(b.tolist())] or [np.arange(0)]
        parts = [self._whole(narrow(cells[group]), queries is not None, cap) for group in groups]
        return Answers(*(np.concatenate(column) for column in zip(*parts, strict=True)))

    def predict_proba(self, X: Any, queries: Queries | None = None) -> FloatArray:
        """Probabilities of the classes (n, K) of rows at hand. UsageError for other tasks."""
        return probabilities(self.predict_rows(X, queries).scores, str(self.about["task"]))

    def _whole(self, X: Float32Array, grouped: bool, cap: float | None) -> tuple[Any, ...]:
        rows, way = self._begin(len(X), grouped, cap)
        for row in rows:
            row.walked = len(self.program.steps)  # it need not ask for much at a time
        asks = next(way, None)
        while asks is not None:
            asks = _send(way, [X[ask.row, ask.features].tolist() for ask in asks])
        step = np.array([_state(row)[0] for row in rows], dtype=np.int64)
        capped = np.array([row.stopped == "cap" for row in rows], dtype=bool)
        scores, spent = self._scores(rows, grouped), self._spent(rows, grouped)
        return scores, spent, self._mask(rows), step, capped

    def _begin(self, count: int, grouped: bool, cap: float | None) -> tuple[list[Row], Way]:
        limit = self._limit(cap)
        rows = [self._tables.row() for _ in range(count)]
        if limit < inf and count > 1 and grouped and not self._by_row:
            raise UsageError(
                f"no cap per row: costs {self.costs.name!r} share bills within a query"
            )
        return rows, walk(
            self._tables, rows, grouped, None if limit == inf else self._within(limit)
        )

    def _within(self, cap: float) -> Afford:
        def afford(bits: int, splits: float, trees: int) -> bool:
            return bool(self._bill([bits], [splits], [trees], None)[0] <= cap)

        return afford

    def _bill(
        self,
        bits: Sequence[int],
        splits: Sequence[float],
        trees: Sequence[int],
        queries: Queries | None,
    ) -> FloatArray:
        n = len(bits)
        price = self.costs.feature_cost(self._acquired(bits), queries)
        evaluation = self.costs.evaluation_cost(np.array(splits), np.array(trees, float), n)
        return np.broadcast_to(price, (n,)) + np.broadcast_to(evaluation, (n,))

    def _spent(self, rows: Sequence[Row], grouped: bool) -> FloatArray:
        queries = Queries(np.array([0, len(rows)])) if grouped and rows else None
        bill = ([r.bits for r in rows], [r.splits for r in rows], [r.trees for r in rows])
        return self._bill(*bill, queries)

    def _acquired(self, bits: Sequence[int]) -> Acquired:
        size = 8 * words(self.costs.sensors)
        raw = b"".join(b.to_bytes(size, "little") for b in bits)
        found = np.frombuffer(raw, "<u8").reshape(len(bits), size // 8)
        return Acquired(found, self.costs.sensors)

    def _mask(self, rows: Sequence[Row]) -> BoolArray:
        return self._acquired([row.bits for row in rows]).unpack()

    def _scores(self, rows: Sequence[Row], grouped: bool) -> FloatArray:
        program = self.program
        found = np.array([_state(row)[1] for row in rows], float).reshape(-1, program.outputs)
        rejected = np.array([row.stopped == "rejected" for row in rows], dtype=bool)
        last = np.array([_state(row)[0] for row in rows], dtype=np.int64)
        if isinstance(program.rejected, float | int):
            found[rejected] = program.rejected
        elif program.rejected == "below" and grouped and rejected.any():
            found[:, 0] = below(found[:, 0], rejected, last)
        for i, step in enumerate(np.maximum(last, 0).tolist()):
            finish = program.steps[step].finish
            if last[i] == END:
                found[i] = np.nan if program.nothing is None else program.nothing
            elif finish is not None:
                found[i : i + 1] = finished(finish, found[i : i + 1])
        return found[:, 0] if program.outputs == 1 else found

    def _answers(self, rows: Sequence[Row], grouped: bool) -> list[Answer]:
        scores, spent = self._scores(rows, grouped), self._spent(rows, grouped)
        found = []
        for row, score, paid in zip(rows, scores, spent.tolist(), strict=True):
            how = "gate" if row.stopped == "rejected" else row.stopped
            value = score.copy() if score.ndim else float(score)
            bought = tuple(self.names[f] for f in row.bought)
            found.append(Answer(value, paid, bought, _state(row)[0], how))
        return found

    @property
    def _by_row(self) -> bool:
        """Whether a row's bill does not depend on the other rows of its query."""
        return isinstance(self.costs, SensorPrices | ParallelPrices)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: number for number, name in enumerate(self.names)}

    @cached_property
    def _tables(self) -> Tables:
        return Tables(self.program, self.costs.sensors_of)


def probabilities(scores: FloatArray, task: str) -> FloatArray:
    """Of the classes (n, K) from scores (n,) or (n, K). UsageError for ranking and regression."""
    if task not in ("binary", "multiclass"):
        raise UsageError(f"a {task} model has no probabilities; use predict")
    if scores.ndim == 1:
        share = np.exp(-np.logaddexp(0.0, -scores))
        return np.stack([np.exp(-np.logaddexp(0.0, scores)), share], axis=1)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _send(way: Way, values: list[Values]) -> list[Ask] | None:
    try:
        return way.send(values)
    except StopIteration:
        return None


def _state(row: Row) -> tuple[int, list[float]]:
    """Step and score that the row answers by; -1 where a cap let it do nothing."""
    if row.stopped != "cap":
        return row.last, row.score
    return row.stop or (END, row.score)
