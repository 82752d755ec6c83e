"""A loaded model: it asks for features, never twice, stops by itself and tells what it spent."""

from __future__ import annotations

from array import array
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.costs.acquired import Acquired
from bench_core.costs.model import CostModel, SensorPrices
from bench_core.costs.shipped import ParallelPrices
from bench_core.data import Queries
from bench_core.errors import UsageError
from bench_core.serving.folder import Folder, read_folder
from bench_core.serving.gates import answers
from bench_core.serving.naive_walk import Lists, NaiveWalk
from bench_core.serving.program import Program
from bench_core.serving.row_state import CAPPED, HOW, FeatureNeeds, bill

if TYPE_CHECKING:
    from bench_core.serving.block_walk import BlockWalk
    from bench_core.serving.row_walk import End, RowWalk

Acquire = Callable[[list[str]], Sequence[Any]]
AcquireInto = Callable[[IntArray, Float32Array], object]
AcquireFor = Callable[[int, list[str]], Sequence[Any]]
AcquireLater = Callable[[list[str]], Awaitable[Sequence[Any]]]
AcquireLaterFor = Callable[[int, list[str]], Awaitable[Sequence[Any]]]
Rounds = Generator[list[tuple[int, IntArray]], Sequence[Float32Array], "list[Answer]"]
"""Yields rows with the numbers of the features that they need, and is sent their values."""

WORTH = 300_000
"""Trees that the plain walk takes through rows (3 us each) in the time that loading numba takes."""


@dataclass(slots=True, eq=False)
class Answer:
    """What one row got and paid.

    ``score``: log-odds, label units or a ranking score; K scores for K classes. ``bought``: the
    features that were asked for, in that order: a tuple of names, or as ``predict_into`` asks an
    array of numbers. ``step``: the last of the model's steps that counts, -1 for none; ``stopped``:
    ``"end"``, ``"gate"`` (let go early) or ``"cap"``.
    """

    score: Any
    spent: float
    bought: Any
    step: int
    stopped: str


@dataclass(slots=True, eq=False)
class Answers:
    """Those of n rows: ``scores`` (n,) or (n, K), ``spent`` (n,), ``bought`` (n, s) by sensor,
    ``step`` (n,) and ``capped`` (n,)."""

    scores: FloatArray
    spent: FloatArray
    acquired: Acquired
    step: IntArray
    capped: BoolArray

    @property
    def bought(self) -> BoolArray:
        """Unpacked from bits."""
        return self.acquired.unpack()


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
        self._row_walk: RowWalk | None = None
        self._block_walk: BlockWalk | None = None
        self._walked = 0

    def compile(self) -> bool:
        """Walk single rows by compiled code from now on, which needs numba.

        For the start of a service: it loads numba, and compiles once per machine. False where the
        model, its costs or this machine allow the plain walk only.
        """
        if self._row_walk is None and self._needs.prices is not None:
            try:
                from bench_core.serving.row_walk import RowWalk, compilable
            except ImportError:  # no numba here
                return False
            if compilable(self.program):
                walk = RowWalk(self.program, self._needs)
                next(walk.way(None), None)
                self._row_walk = walk
        return self._row_walk is not None

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that it may ask for."""
        return tuple(self.names[f] for f in self._needs.features)

    def predict(self, acquire: Acquire, *, cap: float | None = None) -> Answer:
        """One row. ``acquire(names)`` returns the values of features, None or NaN where missing.

        It is called with all that a sensor, or several, yield to this model, never twice for
        the same. With ``cap`` the row never costs more: it answers at the last point of the path
        that was reached. A model that compares the rows of a query takes the row by itself.
        """
        return self._run(self._rounds(1, False, cap), lambda _, names: acquire(names))[0]

    def predict_into(self, acquire: AcquireInto, *, cap: float | None = None) -> Answer:
        """As ``predict``, without lists of names and values: the fastest way to ask.

        ``acquire(numbers, values)`` is called with the places of features in ``names``, and writes
        what they are into ``values``, float32, NaN before; both are its own until it returns. The
        answer's ``bought`` is an array of such numbers.
        """

        def fill(_: int, numbers: IntArray) -> Float32Array:
            values = np.empty(len(numbers), dtype=np.float32)
            values.fill(np.nan)
            acquire(numbers, values)
            return values

        return _answered(self._rounds(1, False, cap), fill)[0]

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

    def _run(self, rounds: Rounds, acquire: AcquireFor) -> list[Answer]:
        def ask(row: int, numbers: IntArray) -> Float32Array:
            return self._floats(numbers, acquire(row, self._names_of(numbers)))

        return self._by_name(_answered(rounds, ask))

    async def _run_async(self, rounds: Rounds, acquire: AcquireLaterFor) -> list[Answer]:
        from asyncio import gather

        values: Any = None
        while True:
            try:
                asks = rounds.send(values)
            except StopIteration as end:
                return self._by_name(end.value)
            found = await gather(*(acquire(i, self._names_of(numbers)) for i, numbers in asks))
            values = [self._floats(ask[1], own) for ask, own in zip(asks, found, strict=True)]

    def _names_of(self, numbers: IntArray) -> list[str]:
        names: list[str] = self._names_array[numbers].tolist()
        return names

    def _floats(self, numbers: IntArray, found: Any) -> Float32Array:
        """The values that a caller's function returned for these features."""
        if not isinstance(found, list | tuple | np.ndarray):
            found = list(found)
        if len(found) != len(numbers):
            raise UsageError(
                f"acquire returned {len(found)} values for {len(numbers)} features "
                f"({', '.join(self._names_of(numbers[:3]))}); "
                "return one for each, None where it is missing"
            )
        if isinstance(found, np.ndarray):
            return narrow(found)
        try:  # half the time of numpy's way
            return np.frombuffer(array("f", found), dtype=np.float32)
        except TypeError:  # a value is None
            return narrow(found)

    def _by_name(self, found: list[Answer]) -> list[Answer]:
        for answer in found:
            answer.bought = tuple(self._names_of(answer.bought))
        return found

    def _rounds(self, count: int, grouped: bool, cap: float | None) -> Rounds:
        """All that rows need next, round by round; returns their answers, by number."""
        limit = self._limit(cap)
        by_itself = not grouped or (self._by_row and not self.program.in_queries)
        if self._row_walk is not None and by_itself:
            return self._compiled(self._row_walk, count, limit)
        if limit is not None and count > 1 and grouped and not self._by_row:
            raise UsageError(
                f"no cap per row: costs {self.costs.name!r} share bills within a query"
            )
        return self._plain(count, grouped, limit)

    def _limit(self, cap: float | None) -> float | None:
        cap = self.cap if cap is None else cap
        return None if cap == inf else cap

    def _compiled(self, walk: RowWalk, count: int, cap: float | None) -> Rounds:
        """In each round all rows that are not at their ends ask."""
        ways = [walk.way(cap) for _ in range(count)]
        found: list[Any] = [None] * count
        values: Sequence[Any] = [None] * count
        here = list(range(count))
        while here:
            asks = []
            for i, value in zip(here, values, strict=True):
                try:
                    asks.append((i, ways[i].send(value)))
                except StopIteration as end:
                    found[i] = _answer(end.value)
            here = [i for i, _ in asks]
            values = (yield asks) if asks else []
        return found

    def _plain(self, count: int, grouped: bool, cap: float | None) -> Rounds:
        walk = self._begin(count, grouped, cap)
        asking = walk.run()
        asks = next(asking, None)
        while asks is not None:
            values = yield [(row, np.array(numbers, dtype=np.int64)) for row, numbers in asks]
            try:
                asks = asking.send(values)
            except StopIteration:
                asks = None
        scores = answers(self.program, walk.rows, walk.boundaries)
        spent, found = self._bill(walk), []
        for i, bought in enumerate(walk.purchases):
            score = scores[i].copy() if scores.ndim > 1 else float(scores[i])
            asked = np.array(list(bought.features), dtype=np.int64)
            step, how = int(walk.rows.final_step[i]), HOW[walk.rows.how[i]]
            found.append(Answer(score, float(spent[i]), asked, step, how))
        return found

    def _begin(self, count: int, grouped: bool, cap: float | None) -> NaiveWalk:
        return NaiveWalk(self.program, self._lists, self._needs, count, grouped=grouped, cap=cap)

    def _bill(self, walk: NaiveWalk) -> FloatArray:
        """What rows pay: as a cap compares it, where each pays a sum of prices by itself."""
        rows, prices = walk.rows, self._needs.prices
        if prices is not None and (walk.boundaries is None or self._by_row):
            price = np.array([bought.price for bought in walk.purchases])
            return price + (prices.split * rows.splits + prices.tree * rows.trees)
        queries = Queries(walk.boundaries) if walk.boundaries is not None else None
        bits = [bought.bits for bought in walk.purchases]
        return self._needs.bill(bits, rows.splits, rows.trees, queries)

    def predict_rows(
        self, X: Any, queries: Queries | None = None, *, cap: float | None = None
    ) -> Answers:
        """Rows whose cells ``X`` (n, d) are at hand; the bill is as if each had been asked for."""
        cells = np.asarray(X)
        if cells.ndim != 2 or cells.shape[1] != len(self.names):
            raise UsageError(f"X must be (n, {len(self.names)}), not {cells.shape}")
        cells, limit = narrow(cells), self._limit(cap)
        bounds = None if queries is None else queries.boundaries
        if limit is None and (walk := self._worth_loading(len(cells))) is not None:
            rows, acquired = walk.run(cells, bounds)
            scores = answers(self.program, rows, bounds)
            spent = bill(self.costs, acquired, rows.splits, rows.trees, queries)
            return Answers(scores, spent, acquired, rows.final_step, rows.how == CAPPED)
        bounds = np.arange(len(cells) + 1) if bounds is None else bounds
        parts: list[Answer] = []
        for start, stop in pairwise(bounds.tolist()):
            rounds = self._rounds(stop - start, queries is not None, cap)
            part = cells[start:stop]
            parts += _answered(rounds, partial(_taken, part))
        return self._joined(parts)

    def _joined(self, found: list[Answer]) -> Answers:
        mask = np.zeros((len(found), self.costs.sensors), dtype=bool)
        single, sensors = self._needs.single, self._needs.sensors
        for own, answer in zip(mask, found, strict=True):
            if single is not None:
                own[single[answer.bought]] = True
            else:
                own[[s for f in answer.bought.tolist() for s in sensors[f]]] = True
        shape = (-1,) if self.program.outputs == 1 else (-1, self.program.outputs)
        return Answers(
            scores=np.array([answer.score for answer in found], dtype=np.float64).reshape(shape),
            spent=np.array([answer.spent for answer in found], dtype=np.float64),
            acquired=Acquired.pack(mask),
            step=np.array([answer.step for answer in found], dtype=np.int64),
            capped=np.array([answer.stopped == "cap" for answer in found], dtype=bool),
        )

    def _worth_loading(self, rows: int) -> BlockWalk | None:
        """The block walker, where so many rows are worth loading it."""
        if self._row_walk is not None and rows < MANY:
            return None
        self._walked += rows * sum(len(step.trees) for step in self.program.steps)
        if self._block_walk is None and (self._walked >= WORTH or self._row_walk is not None):
            try:
                from bench_core.serving.block_walk import BlockWalk

                self._block_walk = BlockWalk(self.program, self.costs)
            except ImportError:  # no numba here
                self._walked = 0
        return self._block_walk

    def predict_proba(self, X: Any, queries: Queries | None = None) -> FloatArray:
        """Probabilities of the classes (n, K) of rows at hand. UsageError for other tasks."""
        return probabilities(self.predict_rows(X, queries).scores, str(self.about["task"]))

    @property
    def _by_row(self) -> bool:
        """Whether a row's bill does not depend on the other rows of its query."""
        return isinstance(self.costs, SensorPrices | ParallelPrices)

    @cached_property
    def _names_array(self) -> Any:
        return np.array(self.names, dtype=object)

    @cached_property
    def _needs(self) -> FeatureNeeds:
        return FeatureNeeds(self.program, self.costs)

    @cached_property
    def _lists(self) -> Lists:
        return Lists(self.program)


MANY = 32
"""Rows from which the block walker takes less time than one row after the other."""


def probabilities(scores: FloatArray, task: str) -> FloatArray:
    """Of the classes (n, K) from scores (n,) or (n, K). UsageError for ranking and regression."""
    if task not in ("binary", "multiclass"):
        raise UsageError(f"a {task} model has no probabilities; use predict")
    if scores.ndim == 1:
        share = np.exp(-np.logaddexp(0.0, -scores))
        return np.stack([np.exp(-np.logaddexp(0.0, scores)), share], axis=1)
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def narrow(values: Any) -> Float32Array:
    """As float32; a cell too large for it is infinite, as when training."""
    with np.errstate(over="ignore"):
        return np.asarray(values, dtype=np.float32)


def _taken(X: Float32Array, row: int, numbers: IntArray) -> Float32Array:
    return np.asarray(X[row, numbers])


def _answered(rounds: Rounds, fetch: Callable[[int, IntArray], Float32Array]) -> list[Answer]:
    """The answers of rows; ``fetch`` gets what they ask for."""
    values: Any = None
    while True:
        try:
            asks = rounds.send(values)
        except StopIteration as end:
            found: list[Answer] = end.value
            return found
        values = [fetch(row, numbers) for row, numbers in asks]


def _answer(end: End) -> Answer:
    return Answer(end.score, end.spent, end.bought, end.step, HOW[end.how])
