"""State of rows during a walk through a program: scores, purchases and answers."""

from __future__ import annotations

import shlex
from collections.abc import Generator, Iterable, Mapping, Set
from copy import copy
from dataclasses import dataclass, field
from math import fsum, nan
from typing import Any

import numpy as np

from bench_core.arrays import BitArray, BoolArray, Float32Array, FloatArray, IntArray
from bench_core.costs.by_row import ByRow
from bench_core.costs.error_costs import answers_of_least_cost
from bench_core.costs.model import Acquired, CostModel, SensorPrices, words
from bench_core.costs.shipped import PerQueryPrices
from bench_core.errors import UsageError
from bench_core.sequential import ROUNDING
from bench_core.serving.program import END, REJECT, Program, first_reads

ON_THE_WAY, ENDED, GATED, REJECTED, CAPPED = range(5)
HOW = ("", "end", "gate", "gate", "cap")
"""Kinds of ends, as in ``Answer.stopped``."""

Label = str | int
"""Label of a class: text, an integer or a boolean."""


@dataclass(slots=True, eq=False)
class Answer:
    """Prediction and cost of one row.

    ``score``: log-odds, label units or a ranking score; K scores for K classes. ``bought``: the
    requested features in order, a tuple of names.
    ``step``: number of the last part of the program that counts, from 0, -1 for none; a part is
    one or more trees, a stage or a purchase. ``stopped``: ``"end"`` (the whole model), ``"gate"``
    (early exit) or ``"cap"``. ``classes`` and the costs of errors (K, K) between them give the
    ``label``.
    """

    score: Any
    spent: float
    bought: Any
    step: int
    stopped: str
    classes: tuple[Label, ...] = ()
    error_costs: FloatArray | None = None

    def __repr__(self) -> str:
        label = "" if self.error_costs is None else f"label={self.label!r}, "
        figures = f"score={self.score!r}, spent={self.spent!r}, bought={self.bought!r}"
        return f"Answer({label}{figures}, step={self.step!r}, stopped={self.stopped!r})"

    @property
    def label(self) -> Label:
        """Class as pandas reads it from the table of the training, or the source whose answer to
        return: of least expected cost if errors have costs, else the most likely. UsageError
        without classes."""
        if self.error_costs is None:
            raise UsageError("this model has no classes; use the answer's score")
        return self.classes[int(answers_of_least_cost(np.array([self.score]), self.error_costs)[0])]

    def log(self) -> dict[str, Any]:
        """Return a row for the log of ``bench model watch``: ``spent``, ``bought`` (names separated
        by blanks, in quotes if they contain one) and ``capped`` (0 or 1)."""
        return {
            "spent": self.spent,
            "bought": shlex.join(self.bought),
            "capped": int(self.stopped == "cap"),
        }


_SHOWN = 5


@dataclass(slots=True, eq=False)
class Answers:
    """Predictions and costs of n rows; ``step`` as in ``Answer``, ``capped``: ended by the cap.

    ``sensors`` names the columns of ``bought`` by the columns of the table that they measure.
    """

    scores: FloatArray  # (n,) or (n, K)
    spent: FloatArray  # (n,)
    acquired: Acquired
    step: IntArray  # (n,)
    capped: BoolArray  # (n,)
    sensors: tuple[str, ...] = ()  # (s,)

    def __repr__(self) -> str:
        """Return a summary and the first rows."""
        n, more = len(self.spent), len(self.spent) - _SHOWN
        bought = Acquired(self.acquired.rows(n).bits[:_SHOWN], self.acquired.sensors).unpack()
        mean = f", {self.spent.mean():.6g} spent on average" if n else ""
        lines = [f"{n} answers{mean}, {self.capped.sum()} ended by the cap"]
        for k in range(min(n, _SHOWN)):
            score = np.array2string(self.scores[k], precision=4)
            names = [self.sensors[s] for s in np.flatnonzero(bought[k])]
            paid = ", ".join(names) or "nothing"
            lines.append(f"row {k}: score {score}, spent {self.spent[k]:.6g}, bought {paid}")
        lines += (
            [f"{more} more rows in .scores, .spent and .bought, by .sensors"] if more > 0 else []
        )
        return "\n".join(lines)

    @property
    def bought(self) -> BoolArray:
        """Sensors bought by rows (n, s)."""
        return self.acquired.rows(len(self.spent)).unpack()


Rounds = Generator[list[tuple[int, IntArray, Float32Array]], None, list[Answer]]
"""Generator of rows with the numbers of the features that they need next, and the array for their
values."""


Way = Generator[tuple[IntArray, Float32Array], None, Any]
"""Generator for one row: the numbers of the features it needs, and the array for their values."""


def side_by_side(ways: Mapping[int, Way]) -> Any:
    """Return the rows' results by number; in each round all unfinished rows make a request."""
    results = dict[int, Any]()
    here = list(ways)
    while here:
        asks = []
        for i in here:
            try:
                asks.append((i, *next(ways[i])))
            except StopIteration as end:
                results[i] = end.value
        if asks:
            yield asks
        here = [i for i, _, _ in asks]
    return results


class WalkedRows:
    """State of n rows during a walk."""

    def __init__(self, program: Program, n: int, words: int = 0) -> None:
        # (n, K): sums of the current step, the score, the score at the last stop passed
        self.sums, self.score, self.stop_score = np.zeros((3, n, program.outputs))
        self.alike = all(step.combine == "last" for step in program.steps)
        if self.alike:
            self.score = self.sums
        self.bits = np.zeros(
            (n, words), dtype=np.uint64
        )  # sensors bought, if the walk records them
        self.splits, self.trees = np.zeros((2, n))  # evaluated so far
        self.next, self.how = np.zeros((2, n), dtype=np.int64)  # the next step, the kind of end
        self.last, self.stop = np.full((2, n), END)  # the last step, and the last stop
        self.stops = [stop.step for stop in program.stops]
        # (n, s), known before a purchase; None: the means
        self.prices: FloatArray | None = None

    def arrive(
        self,
        rows: IntArray,
        number: int,
        combine: str,
        sums: FloatArray,
        bits: BitArray,
        splits: FloatArray,
        trees: FloatArray,
    ) -> None:
        """Record rows after step ``number``. Arrays are replaced, never modified."""
        if not self.alike:
            score = combined(combine, self.score[rows], sums)
            self.score = np.array(_put(self.score, rows, score))
        self.sums, self.bits = _put(self.sums, rows, sums), _put(self.bits, rows, bits)
        self.score = self.sums if self.alike else self.score
        self.splits, self.trees = _put(self.splits, rows, splits), _put(self.trees, rows, trees)
        self.last = _put(self.last, rows, np.full(len(rows), number))

    def copied(self) -> WalkedRows:
        """Return a copy with its own score, bits, splits and trees."""
        rows = copy(self)
        rows.score, rows.bits = self.score.copy(), self.bits.copy()
        rows.splits, rows.trees = self.splits.copy(), self.trees.copy()
        return rows

    def part(self, rows: slice) -> WalkedRows:
        """Return some of the rows, which share their arrays."""
        subset = copy(self)
        for name in ("score", "stop_score", "bits", "splits", "trees", "how", "last", "stop"):
            setattr(subset, name, getattr(self, name)[rows])
        return subset

    def go_on(self, rows: IntArray, number: int, onward: int, passes: bool) -> None:
        """Move rows from step ``number`` to ``onward``, past the stops between."""
        self.next[rows] = onward
        if onward < 0:
            self.how[rows] = REJECTED if onward == REJECT else ENDED if passes else GATED
        if any(number <= stop and (onward < 0 or stop < onward) for stop in self.stops):
            self.stop[rows], self.stop_score[rows] = number, self.score[rows]

    def end_capped(self, i: int, splits: float, trees: float) -> None:
        """End row i by its cap, with the splits and trees that were evaluated."""
        self.how[i], self.next[i] = CAPPED, END
        self.splits[i], self.trees[i] = splits, trees

    @property
    def final_step(self) -> IntArray:
        """Return the last step that counts (n,), END if a cap allowed none."""
        capped = self.how == CAPPED
        return np.where(capped, self.stop, self.last) if capped.any() else self.last

    @property
    def final_score(self) -> FloatArray:
        """Return the score (n, K) at that step."""
        capped = (self.how == CAPPED)[:, None]
        return np.where(capped, self.stop_score, self.score) if capped.any() else self.score


def _put(array: Any, rows: IntArray, values: Any) -> Any:
    """Return a copy of the array with ``values`` at ``rows`` (in increasing order)."""
    if len(rows) == len(array):
        return values
    new = array.copy()
    new[rows] = values
    return new


def combined(how: str, before: FloatArray, sums: FloatArray) -> FloatArray:
    """Return the score after a step, (n, K)."""
    if how == "min":
        return np.minimum(before, sums)
    if how == "add":
        return before + sums
    if how == "and":
        return np.asarray(-np.logaddexp(np.logaddexp(-before, -sums), -before - sums))
    return sums


def prices_of(costs: CostModel) -> SensorPrices | None:
    """Return the additive prices of a single row; None if its cost is not additive."""
    if isinstance(costs, ByRow):  # a served model knows the mean prices
        return prices_of(costs.base)
    if isinstance(costs, PerQueryPrices):
        return costs.alone
    # a subclass may bill otherwise
    return costs if type(costs) is SensorPrices else None


class FeatureNeeds:
    """Sensors needed by the features that a program may read."""

    def __init__(self, features: IntArray, costs: CostModel) -> None:
        self.costs, self.prices = costs, prices_of(costs)
        # sensors with prices by row, and those whose price is known only after the purchase
        self.by_row: set[int] = {*costs.priced.tolist()} if isinstance(costs, ByRow) else set()
        self.metered = {*costs.metered.tolist()} if isinstance(costs, ByRow) else set()
        self.features: list[int] = features.tolist()
        self.sensors = {f: costs.sensors_of(f).tolist() for f in self.features}
        self.price_of = (
            [0.0] * costs.sensors if self.prices is None else self.prices.sensor.tolist()
        )
        # the sensors of each feature as a set of bits
        self.bits = {f: sum(1 << s for s in set(sensors)) for f, sensors in self.sensors.items()}
        by_sensor: dict[int, list[int]] = {}
        for f, sensors in self.sensors.items():
            for s in sensors:
                by_sensor.setdefault(s, []).append(f)
        free = {f for f in self.features if not self.bits[f]}
        # features that become readable after buying one of its sensors
        self.mates = {
            f: {m for s in sensors for m in by_sensor[s]} if sensors else free
            for f, sensors in self.sensors.items()
        }
        # (d,) the features' sensors if each has its own
        self.single: IntArray | None = None
        if all(len(sensors) == len(self.mates[f]) == 1 for f, sensors in self.sensors.items()):
            self.single = np.zeros(costs.features, dtype=np.int64)
            for f, (sensor,) in self.sensors.items():
                self.single[f] = sensor

    def mark(self, bought: BoolArray, features: IntArray) -> None:
        """Mark the sensors of features among those ``bought`` (s,)."""
        if self.single is None:
            bought[[s for f in features.tolist() for s in self.sensors[f]]] = True
        else:
            bought[self.single[features]] = True

    def acquired(self, bits: Iterable[int]) -> Acquired:
        """Return the sets of sensors of rows."""
        size = 8 * words(self.costs.sensors)
        raw = b"".join(row_bits.to_bytes(size, "little") for row_bits in bits)
        return Acquired(np.frombuffer(raw, "<u8").reshape(-1, size // 8), self.costs.sensors)

    def price_beyond(self, features: Iterable[int], more: Iterable[int]) -> float:
        """Return the price, at the means, of what ``more`` features need beyond the sensors of
        ``features``; NaN if costs are not a sum."""
        needed, bought = ({s for f in of for s in self.sensors[f]} for of in (more, features))
        return nan if self.prices is None else fsum(self.price_of[s] for s in needed - bought)

    def least(self, program: Program) -> float:
        """Return what every row pays at least for an answer; 0.0 if costs are not a sum."""
        fixed = [0.0 if s in self.by_row else price for s, price in enumerate(self.price_of)]
        bought = RowPurchases(self, None, fixed)
        bought.buy(first_reads(program))
        return bought.price * (1 - ROUNDING)  # C rounds sums otherwise


def bill(
    costs: CostModel, acquired: Acquired, splits: FloatArray, trees: FloatArray, queries: Any = None
) -> FloatArray:
    """Return the costs of n rows, (n,)."""
    n = len(splits)
    price = np.broadcast_to(costs.feature_cost(acquired, queries), (n,))
    return price + np.broadcast_to(costs.evaluation_cost(splits, trees, n), (n,))


@dataclass(slots=True, eq=False)
class RowPurchases:
    """Purchases of one row, within a ``cap`` if there is one. ``price_of`` (s,) are its prices, the
    means by default; a metered one may change once its sensor is bought."""

    needs: FeatureNeeds
    cap: float | None = None
    price_of: Any = None
    bits: int = 0  # a set of sensors
    features: dict[int, None] = field(default_factory=dict)  # keys, in the order asked for
    sensors: list[int] = field(default_factory=list)
    refused: tuple[int, ...] = ()  # features that the cap forbade last

    @property
    def price(self) -> float:
        """Sum of the prices, rounded once: the order of purchases does not matter."""
        return self._sum(self.sensors)

    def _sum(self, sensors: Iterable[int]) -> float:
        price_of = self.needs.price_of if self.price_of is None else self.price_of
        return fsum([price_of[s] for s in sensors])

    def buy(
        self, wanted: Iterable[int], splits: float = 0.0, trees: float = 0.0
    ) -> list[int] | None:
        """Buy the sensors of features. Returns the newly readable features in increasing order;
        None, without a purchase, if the cap forbids it. A metered sensor is bought while money is
        left."""
        needs, bits, count, wanted = self.needs, self.bits, len(self.sensors), tuple(wanted)
        mates: set[int] = set()
        for f in wanted:
            for s in needs.sensors[f]:
                if not self.bits >> s & 1:
                    self.bits |= 1 << s
                    self.sensors.append(s)
            mates |= needs.mates[f]
        if not self.affords(splits, trees, needs.metered.intersection(self.sensors[count:])):
            self.bits, self.refused = bits, wanted
            del self.sensors[count:]
            return None
        new = sorted(m for m in mates if m not in self.features and not needs.bits[m] & ~self.bits)
        self.features.update(dict.fromkeys(new))
        return new

    def affords(self, splits: float, trees: float, unknown: Set[int] = frozenset()) -> bool:
        """True if the cap allows these splits and trees in addition to the purchases, and leaves
        some money for those at an ``unknown`` price."""
        if self.cap is None:
            return True
        prices = self.needs.prices
        if prices is not None:
            paid = self._sum(s for s in self.sensors if s not in unknown)
            paid += prices.split * splits + prices.tree * trees
            return paid < self.cap if unknown else paid <= self.cap
        bought = self.needs.acquired([self.bits])
        spent = bill(self.needs.costs, bought, np.array([splits]), np.array([trees]))
        return bool(spent[0] <= self.cap)
