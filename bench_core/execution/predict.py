"""Prediction of a split in blocks, with a bill for each prediction."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np

from bench_core._io.large_arrays import zeros
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.contracts import model_of
from bench_core.costs.bill import Acquired, Bill
from bench_core.costs.by_row import ByRow, on_rows, priced_rows
from bench_core.costs.model import CostModel, SensorPrices, needs_of, pays_by_row, words
from bench_core.data import Examples, Features, Queries
from bench_core.execution.caps import Caps, served_under_caps
from bench_core.execution.contract import (
    MAX_POINTS,
    ContractError,
    billed,
    check_costs,
    check_returned,
    plain,
    predictions,
)
from bench_core.results.budgets import CONSTANT
from bench_core.sequential import ROUNDING, Sequential

BLOCK_ROWS = 8000
METER_ROWS = 1000  # fewer rows do not justify loading a compiler
STEPS = 16
"""Number of purchase steps that are counted separately."""

_In = TypeVar("_In")
_Out = TypeVar("_Out")
Points = tuple[dict[str, int | float], ...]


class Block(NamedTuple):
    """Consecutive complete queries of a split, its rows ``rows``."""

    rows: slice
    features: Features


def blocks(features: Features, rows: int = BLOCK_ROWS) -> Iterator[Block]:
    """Split the rows into blocks of about ``rows`` rows without dividing a query.

    Each block owns its array, so a model that modifies its input affects only its block.
    """
    boundaries, first = units(features), 0
    while first < len(boundaries) - 1:
        last = int(np.searchsorted(boundaries, boundaries[first] + rows, side="right")) - 1
        last = max(last, first + 1)  # a longer query is a separate block
        start, stop = int(boundaries[first]), int(boundaries[last])
        X = np.array(features.X[start:stop], dtype=np.float32, order="C")
        inside = None if features.queries is None else features.queries.select(first, last)
        prices = None if features.prices is None else np.array(features.prices[start:stop])
        yield Block(slice(start, stop), Features(X, inside, prices))
        first = last


def units(features: Features) -> IntArray:
    """Boundaries of units predicted independently: queries or single rows."""
    queries = features.queries
    return np.arange(len(features) + 1) if queries is None else queries.boundaries


def gather(
    features: Features,
    chosen: Sequence[int] | IntArray,
    rng: np.random.Generator | None = None,
) -> tuple[Features, IntArray, IntArray]:
    """Return a block of the chosen queries (or rows) in that order, its rows in the split, and each
    row's position in ``chosen``. With ``rng``, rows are shuffled within each query."""
    boundaries = units(features)
    sizes = np.diff(boundaries)[chosen]
    # queries of 2, 1 and 3 rows, chosen [2, 0]: unit_of 0 0 0 1 1, rows 3 4 5 0 1
    unit_of = np.repeat(np.arange(len(sizes)), sizes)
    first = np.cumsum(sizes) - sizes
    rows = np.arange(len(unit_of)) - first[unit_of] + boundaries[chosen][unit_of]
    if rng is not None:
        rows = rows[np.lexsort((rng.random(len(rows)), unit_of))]
    queries = None if features.queries is None else Queries.from_sizes(sizes)
    X = np.array(features.X[rows], dtype=np.float32, order="C")
    prices = None if features.prices is None else features.prices[rows]
    return Features(X, queries, prices), rows, unit_of


@dataclass(slots=True, eq=False)
class PredictedPath:
    """Predictions of a model's path of p points on a split of n rows. Arrays have P >= p entries:
    the path's points, then those of caps, then the best constant."""

    points: Points  # p, points of the path
    others: Points  # P - p, points of caps and the constant
    scores: FloatArray  # (P, n) or (P, n, K)
    cost: FloatArray  # (P, n), features and evaluations
    feature_cost: FloatArray  # (P,), mean over the copies of rows
    evaluation_cost: FloatArray  # (P,)
    bought: FloatArray  # (P, s), fraction of rows that bought each sensor
    # by number of the point, if bills declare the order of purchases, (1 + STEPS, s): for each
    # sensor the mean over rows of its step (0 for rows without it), then the fraction of rows that
    # buy it in the first step, the second and so on
    steps: Mapping[int, FloatArray] = field(default_factory=dict)
    seconds: float = 0.0
    acquired: Acquired | None = None  # purchases of rows at the point ``kept``
    # (P, s) fraction of rows that bought each sensor and got no value; None if all got some
    nothing: FloatArray | None = None
    # (P, s) mean over rows of what they pay for each sensor; None if no price differs by row
    paid: FloatArray | None = None

    @property
    def numbered(self) -> dict[int, dict[str, int | float]]:
        """All points by number: -1 for the constant; points of caps follow the path's."""
        first = -1 if self.others else 0
        points = (*self.points, *self.others)
        return {k: points[k] for k in range(first, len(points) + first)}


def predict_split(
    model: Any,
    examples: Examples,
    costs: CostModel,
    classes: int,
    accounting: str = "path",
    progress: Callable[[int], None] = lambda rows: None,
    threads: int = 1,
    caps: Caps | None = None,
    kept: int | None = None,
    calls: Sequence[int] = (),
) -> PredictedPath:
    """Predict every operating point on a full split; with ``caps`` also each cap's results and the
    best constant. ``classes`` > 2 requires scores (n, K). The purchases of every row are returned
    for the point number ``kept``; under a cap without those of a point that it cut short. With
    ``calls`` (``Splits.calls``) a row must buy the source whose answer it returns.

    Threads may call a model with ``concurrent = True`` on several blocks at once.
    Raises ContractError if the model violates its protocol.
    """
    n, copies, sensors = len(examples), examples.weights, costs.sensors
    limits = caps.limits if caps else ()
    knows_cap = keeps_caps(model, costs)
    program = cache(lambda: served_under_caps(model, costs, caps, examples.features))
    # The first block determines the number of points. Unused memory pages cost nothing.
    room = MAX_POINTS + len(limits) + 1
    scores = zeros((room, n, classes) if classes > 2 else (room, n))
    cost = zeros((room, n))
    empty = without_values(examples, costs)
    by_row = costs.priced if isinstance(costs, ByRow) else np.zeros(0, dtype=np.int64)
    # over copies: feature and evaluation costs, buyers, buyers that got nothing, prices by row
    sums = np.zeros((room, 2 + sensors + len(empty) + len(by_row)))
    steps: dict[int, FloatArray] = {}
    acquired = None if kept is None else np.zeros((n, words(sensors)), np.uint64)
    # free sensors are bought before the first step
    sensor: Any = getattr(costs, "sensor", 1) if pays_by_row(costs) else 1
    first = 0 if np.any(sensor == 0) else 1

    def follow(
        block: Block,
    ) -> tuple[Block, Points, FloatArray, dict[int, FloatArray], float]:
        """Predict a block: store scores and costs, return sums over rows.

        Predictions are copied before the model continues, as it may modify its arrays.
        """
        rows, queries, seconds = block.rows, block.features.queries, 0.0
        weights = copies[rows]
        points, parts, bought_in = [], [], {}
        here = on_rows(costs, examples, rows)
        buyers = _Buyers(here, weights, queries)
        under = caps.start(model, here, queries, weights) if caps else []

        def add(
            feature: FloatArray, evaluation: FloatArray, bought: FloatArray, acquired: Acquired
        ) -> None:
            spent = [(feature * weights).sum(), (evaluation * weights).sum()]
            lost = [weights @ (lacks[rows] & acquired.has(s)) for s, lacks in empty.items()]
            if isinstance(here, ByRow):
                lost += (weights @ here.paid_by(acquired)).tolist()
            parts.append(np.concatenate([spent, bought, lost]))

        started = time.perf_counter()
        for k, prediction in enumerate(predictions(model, block.features, costs, classes)):
            seconds += time.perf_counter() - started
            bill = billed(prediction, accounting)
            if len(calls):
                check_returned(prediction, costs, calls)
            feature, bought = buyers.pay(bill)
            evaluation = bill.evaluation_cost(costs, len(weights))
            scores[k, rows], cost[k, rows] = prediction.scores, feature + evaluation
            check_costs(cost[k, rows], costs, prediction.point)
            add(feature, evaluation, bought, bill.acquired)
            if acquired is not None and k == kept:
                acquired[rows] = bill.acquired.bits
            if bill.order is not None:
                bought_in[k] = _steps(bill.order, first, weights)
            points.append(dict(prediction.point))
            for answers in () if knows_cap else under:
                answers.take(prediction.scores, bill, feature, evaluation)
            started = time.perf_counter()
        for k, answers in enumerate(under, start=len(points)):
            if knows_cap:
                capped = model.predict_capped(block.features, answers.limit, here)
                bill = plain(capped, len(weights), costs, classes).bills["path"]
                answers.put(capped.scores, bill.acquired, buyers.pay(bill)[0])
                if bill.order is not None:
                    bought_in[k] = _steps(bill.order, first, weights)
            elif answers.unsure.any() and (served := program()):
                some, paid = np.flatnonzero(answers.unsure), examples.price_columns
                assert paid is not None
                paid = paid[rows][some]
                replies = served.predict_features(block.features.X[some], None, answers.limit, paid)
                feature = on_rows(costs, examples, rows.start + some).feature_cost(
                    replies.acquired, None
                )
                more = replies.spent - feature  # of splits and trees, or of rounding
                more = np.where(more > ROUNDING * replies.spent, more, 0.0)
                answers.put(replies.scores, replies.acquired, feature, more, some)
            scores[k, rows], cost[k, rows] = answers.scores, answers.cost
            if acquired is not None and k == kept:
                acquired[rows] = answers.bits
            purchases = Acquired(answers.bits, sensors)
            bought = _count(purchases, weights)
            add(answers.feature, answers.evaluation, bought, purchases)
        return block, tuple(points), np.array(parts), bought_in, seconds

    points: Points = ()
    seconds = 0.0
    ahead = threads if model_of(model).concurrent else 1
    for block, path, parts, bought_in, took in in_order(follow, blocks(examples.features), ahead):
        if same := [point for p, point in enumerate(path) if point in path[:p]]:
            raise ContractError(f"two points of its path are {same[0]}")
        points = points or path
        if len(path) != len(points):  # the path must be the same on every block
            where = f"{len(points)} points on one block and {len(path)} on another"
            raise ContractError(f"its path has {where}")
        for p, (usual, here) in enumerate(zip(points, path, strict=True)):
            if usual != here:
                where = f"{usual} on one block and {here} on another"
                raise ContractError(f"point {p} of its path is {where}")
        sums[: len(parts)] += parts
        for k, counts in bought_in.items():
            steps[k] = steps.get(k, 0.0) + counts
        seconds += took
        progress(block.rows.stop)
    if not points:
        raise ContractError("there are no rows to predict")

    others: Points = (*caps.points, {CONSTANT: 1}) if caps else ()
    whole = len(points) + len(others)
    if caps:
        scores[whole - 1] = caps.constant
    means = sums[:whole] / copies.sum()
    bought, lost, paid_there = np.split(means, [2 + sensors, 2 + sensors + len(empty)], axis=1)
    bought, nothing, paid = bought[:, 2:], None, None
    if empty:
        nothing = np.zeros((whole, sensors))
        nothing[:, [*empty]] = lost
    if isinstance(costs, ByRow):
        paid = bought * costs.base.sensor
        paid[:, by_row] = paid_there
    return PredictedPath(
        points,
        others,
        scores[:whole],
        cost[:whole],
        feature_cost=means[:, 0],
        evaluation_cost=means[:, 1],
        bought=bought,
        nothing=nothing,
        paid=paid,
        steps={k: counts / copies.sum() for k, counts in steps.items()},
        seconds=seconds,
        acquired=None if acquired is None else Acquired(acquired, sensors),
    )


def without_values(examples: Examples, costs: CostModel) -> dict[int, BoolArray]:
    """Return the rows (n,) for which a sensor gives no value though it is paid, by sensor, of those
    with prices by row that lack some."""
    lacking: dict[int, BoolArray] = {}
    if not isinstance(costs, ByRow):
        return lacking
    for sensor in costs.priced.tolist():
        rows = np.asarray(np.isnan(examples.X[:, costs.yields(sensor)]).all(axis=1))
        if rows.any():
            lacking[sensor] = rows
    return lacking


def keeps_caps(model: Any, costs: CostModel) -> bool:
    """True for a policy, which receives the remainder of a cap, if only sensors have costs. Not for
    a subclass, which may show cells to its policy."""
    base = costs.base if isinstance(costs, ByRow) else costs
    sensors_alone = type(base) is SensorPrices and not base.split and not base.tree
    return type(model) is Sequential and sensors_alone


def in_order(
    work: Callable[[_In], _Out], items: Iterator[_In] | Sequence[_In], threads: int
) -> Iterator[_Out]:
    """Yield the results of ``work`` in the order of the items, with few items in progress."""
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


class _Buyers:
    """Feature costs of a block's rows, and the number of copies that buy each sensor."""

    def __init__(self, costs: CostModel, copies: FloatArray, queries: Queries | None) -> None:
        self.costs, self.copies, self.queries = costs, copies, queries
        self.by_row = priced_rows(costs)
        base = costs if self.by_row is None else self.by_row.fixed()
        self.additive = type(base) is SensorPrices
        self.meter: Any = None
        if len(copies) >= METER_ROWS:
            from bench_core.costs.meter import Meter

            # for non-additive costs it only counts the buyers
            price: Any = base.sensor if type(base) is SensorPrices else np.zeros(costs.sensors)
            self.meter = Meter(price, copies)

    def pay(self, bill: Bill) -> tuple[FloatArray, FloatArray]:
        """Return costs (n,) and buyers (s,)."""
        n, feature = len(self.copies), None
        if self.meter is not None and len(bill.acquired.bits) == n:
            feature, bought = self.meter.cost(bill.acquired)
        else:
            bought = _count(bill.acquired, self.copies)
        if feature is None or not self.additive:
            feature = bill.feature_cost(self.costs, n, self.queries, self.copies)
        elif self.by_row is not None:
            feature += self.by_row.paid_by(bill.acquired).sum(axis=1)
        return feature, bought


def _count(acquired: Acquired, copies: FloatArray) -> FloatArray:
    """Number of copies that bought each sensor (s,)."""
    mask = acquired.unpack()
    return np.asarray((copies if len(mask) == len(copies) else copies.sum()[None]) @ mask)


def _steps(order: IntArray, first: int, copies: FloatArray) -> FloatArray:
    """Sum over copies of each sensor's purchase step, and the number of copies that buy it in each
    of the first steps: (1 + STEPS, s). Step 0 of ``order`` counts as ``first``."""
    from bench_core.costs.meter import count_steps

    copies = copies if len(order) == len(copies) else copies.sum()[None]
    counts = np.zeros((1 + STEPS, order.shape[1]))
    count_steps(np.ascontiguousarray(order), first, np.ascontiguousarray(copies), counts)
    return counts


def readable(mask: BoolArray, costs: CostModel) -> BoolArray:
    """True for features (n, d) readable by rows that bought the sensors ``mask`` (n, s).

    A feature that needs no sensor is always readable.
    """
    start, needed = needs_of(costs)
    missing = np.zeros((len(mask), len(start)), dtype=np.int64)
    lacking = np.cumsum(~mask[:, needed], axis=1)
    missing[:, 1:] = np.pad(lacking, ((0, 0), (1, 0)))[:, start[1:]]
    return np.asarray(np.diff(missing, axis=1) == 0)
