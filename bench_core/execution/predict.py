"""Predict a split block by block and bill each prediction."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bench_core._io.large_arrays import forget, zeros
from bench_core.arrays import FloatArray, IntArray
from bench_core.costs.bill import Acquired, Prediction
from bench_core.costs.model import CostModel, SensorPrices
from bench_core.data import Examples, Features, Queries
from bench_core.execution.caps import Answers, Caps, Ground
from bench_core.execution.contract import (
    MAX_POINTS,
    ContractError,
    check_accounting,
    check_costs,
    predictions,
)
from bench_core.protocols import Concurrent, Staged

if TYPE_CHECKING:
    from bench_core.costs.meter import Meter

BLOCK_ROWS = 8000
METER_ROWS = 1000
FORGET_ROWS = 250_000  # of large splits, after which their pages are given back

_In = TypeVar("_In")
_Out = TypeVar("_Out")
Points = tuple[dict[str, int | float], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Consecutive whole queries of a split: rows ``rows``, queries ``queries``."""

    rows: slice
    queries: slice
    features: Features


def blocks(features: Features, rows: int = BLOCK_ROWS) -> Iterator[Block]:
    """A split in blocks of about ``rows`` rows, none of which cuts a query.

    Each block owns its array, so a model that writes to its input harms nobody else.
    """
    boundaries, first = units(features), 0
    while first < len(boundaries) - 1:
        last = int(np.searchsorted(boundaries, boundaries[first] + rows, side="right")) - 1
        last = max(last, first + 1)
        start, stop = int(boundaries[first]), int(boundaries[last])
        X = np.array(features.X[start:stop], dtype=np.float32, order="C")
        inside = None if features.queries is None else features.queries.select(first, last)
        yield Block(slice(start, stop), slice(first, last), Features(X, inside))
        first = last


def units(features: Features) -> IntArray:
    """Boundaries of what is predicted independently: queries, or single rows."""
    queries = features.queries
    return np.arange(len(features) + 1) if queries is None else queries.boundaries


def gather(
    features: Features,
    chosen: Sequence[int] | IntArray,
    rng: np.random.Generator | None = None,
) -> tuple[Features, IntArray, IntArray]:
    """A block of the chosen queries (or rows) in that order, the rows it holds, and for each
    row the place of its query in ``chosen``. With ``rng`` a query's rows are in random order."""
    boundaries = units(features)
    sizes = np.diff(boundaries)[chosen]
    own = np.repeat(np.arange(len(sizes)), sizes)
    first = np.cumsum(sizes) - sizes
    rows = np.arange(len(own)) - first[own] + boundaries[chosen][own]
    if rng is not None:
        rows = rows[np.lexsort((rng.random(len(rows)), own))]
    queries = None if features.queries is None else Queries.from_sizes(sizes)
    X = np.array(features.X[rows], dtype=np.float32, order="C")
    return Features(X, queries), rows, own


@dataclass(slots=True, eq=False)
class Path:
    """A model's whole path on one split: ``scores`` (p, n) or (p, n, K), ``cost`` (p, n) total
    per row, mean feature and evaluation costs (p,), the share of rows that bought each sensor
    (p, s) and of those that ``ended`` at each stage (p, S), where the model has a ``stage_tree``
    (else S is 0). While it is being filled p is 100. ``capped`` is the same with a point for each
    cap, where there are any."""

    points: Points
    scores: FloatArray
    cost: FloatArray
    feature_cost: FloatArray
    evaluation_cost: FloatArray
    bought: FloatArray
    ended: FloatArray
    seconds: float
    capped: Path | None = None

    def at(self, point: int) -> tuple[Path, int]:
        """Where the arrays of a point are, those of caps standing behind the others."""
        p = len(self.points)
        if point < p or self.capped is None:
            return self, point
        return self.capped, point - p

    @property
    def all_points(self) -> Points:
        """Its own points, and then one for each cap."""
        return self.points + (() if self.capped is None else self.capped.points)

    def add(self, block: Path) -> None:
        """Count in what was summed over a block, whose rows are written already."""
        here = slice(len(block.points))
        self.feature_cost[here] += block.feature_cost
        self.evaluation_cost[here] += block.evaluation_cost
        self.bought[here] += block.bought
        self.ended[here] += block.ended
        self.seconds += block.seconds
        if self.capped is not None and block.capped is not None:
            self.capped.add(block.capped)

    def averaged(self, copies: float) -> Path:
        """The same with sums over so many rows as means, its arrays cut to the points found."""
        for sums in (self.feature_cost, self.evaluation_cost, self.bought, self.ended):
            sums /= copies
        capped = None if self.capped is None else self.capped.averaged(copies)
        return replace(self._cut_to_points(), capped=capped)

    def _cut_to_points(self) -> Path:
        p = len(self.points)
        numbers = ("scores", "cost", "feature_cost", "evaluation_cost", "bought", "ended")
        return replace(self, **{name: getattr(self, name)[:p] for name in numbers})

    def forget(self) -> None:
        """Large paths lie in files: keep no page of them in memory."""
        forget(self.scores)
        forget(self.cost)
        if self.capped is not None:
            self.capped.forget()


def predict_split(
    model: Any,
    examples: Examples,
    costs: CostModel,
    classes: int,
    accounting: str = "path",
    progress: Callable[[int], None] = lambda rows: None,
    threads: int = 1,
    caps: Caps | None = None,
) -> Path:
    """Every operating point on a whole split, and what each of the ``caps`` leaves of them.
    ``classes`` > 2 asks for scores (n, K).

    A model with ``concurrent = True`` may be asked about several blocks at the same time.
    Raises ContractError where the model breaks its contract.
    """
    copies = examples.weights
    tree = model.stage_tree if isinstance(model, Staged) else None
    stages = len(tree.parent) if tree else 0
    path = _empty(len(examples), classes, costs.sensors, MAX_POINTS, stages)
    if caps is not None and caps.limits:
        path.capped = _empty(len(examples), classes, costs.sensors, len(caps.limits))
        path.capped.points = caps.points

    def followed(block: Block) -> tuple[Block, Path]:
        return block, _follow(model, block, costs, classes, accounting, copies, path, caps)

    crew = threads if isinstance(model, Concurrent) and model.concurrent else 1
    for block, seen in in_order(followed, blocks(examples.features), crew):
        if not path.points:
            points = seen.points
            if same := [point for p, point in enumerate(points) if point in points[:p]]:
                raise ContractError(f"two points of its path are {same[0]}")
            path.points = points
        elif seen.points != path.points:
            raise ContractError(_other_points(path.points, seen.points))
        path.add(seen)
        if block.rows.stop // FORGET_ROWS > block.rows.start // FORGET_ROWS:
            path.forget()
        progress(block.rows.stop)
    if not path.points:
        raise ContractError("there are no rows to predict")
    return path.averaged(float(copies.sum()))


def in_order(
    work: Callable[[_In], _Out], items: Iterator[_In] | Sequence[_In], threads: int
) -> Iterator[_Out]:
    """The results of ``work`` in the order of the items, few of which are under way at once."""
    if threads < 2:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="bench-scoring") as pool:
        waiting: deque[Future[_Out]] = deque()
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _empty(n: int, classes: int, sensors: int, p: int, stages: int = 0) -> Path:
    """How many points there are is known after the first block; pages unused cost nothing."""
    scores, cost = zeros((p, n, classes) if classes > 2 else (p, n)), zeros((p, n))
    bought, ended = zeros((p, sensors)), np.zeros((p, stages))
    return Path((), scores, cost, np.zeros(p), np.zeros(p), bought, ended, 0.0)


def _follow(
    model: Any,
    block: Block,
    costs: CostModel,
    classes: int,
    accounting: str,
    copies: FloatArray,
    path: Path,
    caps: Caps | None,
) -> Path:
    """The path of a block: scores and costs are written into the whole ``path``, costs are summed.

    All of a prediction is taken before the model goes on: it may write to its arrays.
    """
    rows, n, seconds = block.rows, len(block.features), 0.0
    points: list[dict[str, int | float]] = []
    numbers, sensors, ends = [], [], []
    queries, copies = block.features.queries, copies[rows]
    meter = _meter(costs, copies)
    capped = caps.start(Ground.of(model, costs, queries, copies)) if caps is not None else []
    started = time.perf_counter()
    for prediction in predictions(model, block.features, costs, classes):
        seconds += time.perf_counter() - started
        bill = prediction.bills.get(accounting)
        if bill is None:
            has = ", ".join(sorted(prediction.bills))
            raise ContractError(f"no bill {accounting!r} (its accountings: {has})")
        check_accounting(prediction, accounting)
        if meter is not None and len(bill.acquired.bits) == n:
            feature, bought = meter.cost(bill.acquired)
        else:
            feature = bill.feature_cost(costs, n, queries, copies)
            bought = _buyers(bill.acquired, copies)
        evaluation = bill.evaluation_cost(costs, n)
        check_costs(feature + evaluation, costs, prediction.point)
        numbers.append(
            _written(path, len(points), rows, prediction.scores, feature, evaluation, copies)
        )
        points.append(dict(prediction.point))
        sensors.append(bought)
        ends.append(_ended(prediction, copies, path.ended.shape[1]))
        for answers in capped:
            answers.take(prediction.scores, bill, feature, evaluation)
        started = time.perf_counter()
    seen = _block(path, tuple(points), rows, numbers, sensors, ends, seconds)
    if path.capped is not None:
        seen.capped = _capped(path.capped, capped, rows, costs, copies)
    return seen


def _capped(
    path: Path, capped: Sequence[Answers], rows: slice, costs: CostModel, copies: FloatArray
) -> Path:
    """A block under each cap, written into the whole ``path``."""
    numbers, sensors = [], []
    for k, answers in enumerate(capped):
        bill = (answers.feature, answers.evaluation, copies)
        numbers.append(_written(path, k, rows, answers.scores, *bill))
        path.cost[k, rows] = answers.cost
        sensors.append(_buyers(Acquired(answers.bits, costs.sensors), copies))
    return _block(path, path.points, rows, numbers, sensors, [np.zeros(0)] * len(capped), 0.0)


def _written(
    path: Path,
    point: int,
    rows: slice,
    scores: FloatArray,
    feature: FloatArray,
    evaluation: FloatArray,
    copies: FloatArray,
) -> tuple[float, float]:
    """Write a block's scores and costs at a point; both costs' sums."""
    path.scores[point, rows] = scores
    np.add(feature, evaluation, out=path.cost[point, rows])
    return ((feature * copies).sum(), (evaluation * copies).sum())


def _block(
    path: Path,
    points: Points,
    rows: slice,
    numbers: Sequence[tuple[float, float]],
    sensors: Sequence[FloatArray],
    ends: Sequence[FloatArray],
    seconds: float,
) -> Path:
    """The rows of a block as a path, with the sums over them (``_written``, ``_buyers``,
    ``_ended``)."""
    found, p = np.array(numbers, dtype=np.float64), len(points)
    parts = path.scores[:p, rows], path.cost[:p, rows]
    shares = np.array(sensors), np.array(ends)
    return Path(points, *parts, found[:, 0], found[:, 1], *shares, seconds)


def _meter(costs: CostModel, copies: FloatArray) -> Meter | None:
    """The compiled meter of additive prices, where the rows are worth loading a compiler."""
    if len(copies) < METER_ROWS or type(costs) is not SensorPrices:
        return None
    from bench_core.costs.meter import Meter

    return Meter(costs.sensor, copies)


def _buyers(acquired: Acquired, copies: FloatArray) -> FloatArray:
    """How many copies bought each sensor (s,)."""
    if len(acquired.bits) < METER_ROWS:
        mask = acquired.unpack()
        return (copies if len(mask) == len(copies) else copies.sum()[None]) @ mask
    from bench_core.costs.meter import buyers

    return buyers(acquired, copies)


def _ended(prediction: Prediction, copies: FloatArray, stages: int) -> FloatArray:
    """How many copies saw each stage last (S,)."""
    last = prediction.stage
    if not stages:
        return np.zeros(0)
    if (
        last is None
        or last.shape != copies.shape
        or not bool(np.all((last >= 0) & (last < stages)))
    ):
        raise ContractError(f"at {dict(prediction.point)}: stage must be (n,), one of {stages}")
    return np.bincount(last, copies, stages).astype(np.float64)


def _other_points(first: Points, here: Points) -> str:
    if len(first) != len(here):
        return f"its path has {len(first)} points on one block and {len(here)} on another"
    p = next(i for i, (a, b) in enumerate(zip(first, here, strict=True)) if a != b)
    return f"point {p} of its path is {first[p]} on one block and {here[p]} on another"
