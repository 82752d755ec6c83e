"""Predict a split block by block and bill each prediction."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from bench_core._io.large_arrays import zeros
from bench_core.arrays import FloatArray, IntArray
from bench_core.costs.bill import Acquired, Prediction
from bench_core.costs.model import CostModel, SensorPrices
from bench_core.data import Examples, Features, Queries
from bench_core.execution.caps import Caps
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
METER_ROWS = 1000  # fewer are not worth loading a compiler

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


@dataclass(frozen=True, slots=True, eq=False)
class PredictedPath:
    """A model's whole path on one split: ``scores`` (p, n) or (p, n, K), ``cost`` (p, n) total
    per row, mean feature and evaluation costs (p,), the share of rows that bought each sensor
    (p, s) and of those that ``ended`` at each stage (p, S), where the model has a ``stage_tree``
    (else S is 0). ``capped`` is the same with a point for each cap, where there are any."""

    points: Points
    scores: FloatArray
    cost: FloatArray
    feature_cost: FloatArray
    evaluation_cost: FloatArray
    bought: FloatArray
    ended: FloatArray
    seconds: float = 0.0
    capped: PredictedPath | None = None

    @property
    def places(self) -> list[tuple[PredictedPath, int]]:
        """Where the arrays of each point are; the points of caps follow those of the path."""
        paths = [self] if self.capped is None else [self, self.capped]
        return [(path, p) for path in paths for p in range(len(path.points))]


class _Arrays:
    """The arrays of a path while it is filled; ``sums`` (p, 2 + s + S) over rows, of feature and
    evaluation costs, of the buyers of each sensor and of the rows that ended at each stage."""

    def __init__(self, points: int, rows: int, classes: int, width: int) -> None:
        self.scores = zeros((points, rows, classes) if classes > 2 else (points, rows))
        self.cost = zeros((points, rows))
        self.sums = np.zeros((points, width))

    def path(self, points: Points, copies: float, sensors: int, **more: Any) -> PredictedPath:
        """The path of the points found, with means over so many copies in place of sums."""
        p = len(points)
        means = self.sums[:p] / copies
        parts = means[:, 0], means[:, 1], means[:, 2 : 2 + sensors], means[:, 2 + sensors :]
        return PredictedPath(points, self.scores[:p], self.cost[:p], *parts, **more)


@dataclass(frozen=True, slots=True, eq=False)
class _Seen:
    """What a block adds to its path: the points, their sums, and those under caps."""

    points: Points
    sums: FloatArray
    capped: FloatArray
    seconds: float


def predict_split(
    model: Any,
    examples: Examples,
    costs: CostModel,
    classes: int,
    accounting: str = "path",
    progress: Callable[[int], None] = lambda rows: None,
    threads: int = 1,
    caps: Caps | None = None,
) -> PredictedPath:
    """Every operating point on a whole split, and what each of the ``caps`` leaves of them.
    ``classes`` > 2 asks for scores (n, K).

    A model with ``concurrent = True`` may be asked about several blocks at the same time.
    Raises ContractError where the model breaks its contract.
    """
    n, copies = len(examples), examples.weights
    tree = model.stage_tree if isinstance(model, Staged) else None
    width = 2 + costs.sensors + (len(tree.parent) if tree else 0)
    # how many points there are is known after the first block; pages unused cost nothing
    arrays = _Arrays(MAX_POINTS, n, classes, width)
    limits = caps.limits if caps else ()
    capped = _Arrays(len(limits), n, classes, 2 + costs.sensors)
    points: Points = ()
    seconds = 0.0

    def followed(block: Block) -> tuple[Block, _Seen]:
        own = copies[block.rows]
        return block, _follow(model, block, costs, classes, accounting, own, arrays, caps, capped)

    crew = threads if isinstance(model, Concurrent) and model.concurrent else 1
    for block, seen in in_order(followed, blocks(examples.features), crew):
        points = points or _distinct(seen.points)
        if seen.points != points:
            raise ContractError(_other_points(points, seen.points))
        arrays.sums[: len(points)] += seen.sums
        capped.sums += seen.capped
        seconds += seen.seconds
        progress(block.rows.stop)
    if not points:
        raise ContractError("there are no rows to predict")
    total = float(copies.sum())
    under = capped.path(caps.points, total, costs.sensors) if caps and limits else None
    return arrays.path(points, total, costs.sensors, seconds=seconds, capped=under)


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


def _follow(
    model: Any,
    block: Block,
    costs: CostModel,
    classes: int,
    accounting: str,
    copies: FloatArray,
    arrays: _Arrays,
    caps: Caps | None,
    capped: _Arrays,
) -> _Seen:
    """The path of a block: scores and costs go into the arrays, sums are returned.

    All of a prediction is taken before the model goes on: it may write to its arrays.
    """
    rows, n, queries, seconds = block.rows, len(copies), block.features.queries, 0.0
    points: list[dict[str, int | float]] = []
    sums = []
    meter = _meter(costs, copies)
    stages = arrays.sums.shape[1] - 2 - costs.sensors
    under = caps.start(model, costs, queries, copies) if caps else []
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
            feature, bought = None, _buyers(bill.acquired, copies)
        if feature is None or type(costs) is not SensorPrices:
            feature = bill.feature_cost(costs, n, queries, copies)
        evaluation = bill.evaluation_cost(costs, n)
        cost = feature + evaluation
        check_costs(cost, costs, prediction.point)
        arrays.scores[len(points), rows], arrays.cost[len(points), rows] = prediction.scores, cost
        spent = [(feature * copies).sum(), (evaluation * copies).sum()]
        sums.append(np.concatenate([spent, bought, _ended(prediction, copies, stages)]))
        points.append(dict(prediction.point))
        for answers in under:
            answers.take(prediction.scores, bill, feature, evaluation)
        started = time.perf_counter()
    over = np.zeros_like(capped.sums)
    for k, answers in enumerate(under):
        capped.scores[k, rows], capped.cost[k, rows] = answers.scores, answers.cost
        over[k, :2] = (answers.feature * copies).sum(), (answers.evaluation * copies).sum()
        over[k, 2:] = _buyers(Acquired(answers.bits, costs.sensors), copies)
    return _Seen(tuple(points), np.array(sums), over, seconds)


def _meter(costs: CostModel, copies: FloatArray) -> Meter | None:
    """The compiled meter, where the rows are worth it: of prices that add up, or of buyers."""
    if len(copies) < METER_ROWS:
        return None
    from bench_core.costs.meter import Meter

    return Meter(costs.sensor if type(costs) is SensorPrices else np.zeros(costs.sensors), copies)


def _buyers(acquired: Acquired, copies: FloatArray) -> FloatArray:
    """How many copies bought each sensor (s,)."""
    mask = acquired.unpack()
    return np.asarray((copies if len(mask) == len(copies) else copies.sum()[None]) @ mask)


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


def _distinct(points: Points) -> Points:
    if same := [point for p, point in enumerate(points) if point in points[:p]]:
        raise ContractError(f"two points of its path are {same[0]}")
    return points


def _other_points(first: Points, here: Points) -> str:
    if len(first) != len(here):
        return f"its path has {len(first)} points on one block and {len(here)} on another"
    p = next(i for i, (a, b) in enumerate(zip(first, here, strict=True)) if a != b)
    return f"point {p} of its path is {first[p]} on one block and {here[p]} on another"
