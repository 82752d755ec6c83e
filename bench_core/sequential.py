"""Sequential policies: what a row buys next is decided by what it has bought so far.

A learner whose ``fit`` returns ``Sequential(policy, prices)`` states two functions: what to buy
next, and what to predict. All else is done here: cells are hidden until they are bought, purchases
are billed at marginal prices and in their order, and caps are kept. So a policy cannot read what it
did not pay for, whatever it does.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.class_names import find_class, remember_class
from bench_core.costs.bill import Acquired, Bill, Prediction
from bench_core.costs.model import SensorPrices
from bench_core.data import Features
from bench_core.errors import UsageError

STOP = -1
"""As the next purchase of a row: none, predict."""

ROUNDING = 1e-9
"""A sum of prices may exceed what is left by this share of the cap: 0.1 + 0.2 is within 0.3."""


_EVALUATED = ("each_act", "each_answer")


class Evaluated(NamedTuple):
    """What one call evaluates for one row: splits (summed multipliers) and trees."""

    splits: float = 0.0
    trees: float = 0.0


class Policy(Protocol):
    """What to buy next, and what to predict. Both see rows of one block, which are independent.

    ``cells`` (n, d) float32 are NaN where they were not bought, ``bought`` (n, k) says which of the
    ``Purchases`` were made. Both belong to the policy.
    """

    stops: Mapping[str, Sequence[float]]
    """One name with its values, such as ``{"price": (1.0, 0.1, 0.0)}``: the operating points, one
    after the other. The last one spends most, and answers under caps."""

    def act(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray, stop: float
    ) -> IntArray:
        """The next purchase (n,) of each row, of those not made yet, or ``STOP``.

        ``left`` (n,) is what a cap leaves, with room for rounding; infinity without one. A purchase
        that costs more ends the row's way. ``stop`` is one of ``stops``.
        """

    def predict(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """Scores (n,) or (n, K), as those of a ``Prediction``."""

    def state(self) -> Mapping[str, Any]:
        """Everything needed to rebuild the policy: arrays and JSON only."""

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of ``state``."""


class CompletePolicy(Policy, Protocol):
    """What a policy may also have, each with its default."""

    nested: bool = False
    """True if at each stop a row buys all that it buys at the stop before, in the same order: then
    it goes on from there."""
    marks: tuple[str, ...] = ()
    """As those of a model."""
    each_act: Evaluated = Evaluated()
    """What one call of ``act`` evaluates for a row, at most."""
    each_answer: Evaluated = Evaluated()
    """What one call of ``predict`` evaluates for a row, at most."""

    def program(self, prices: SensorPrices, stop: float) -> Any:
        """The policy at a stop as a ``bench_core.serving.PolicyProgram``: then it is exported."""


@dataclass(frozen=True, eq=False)
class Purchases:
    """The k purchases that a policy chooses from, one at a time.

    Each is a set of sensors that a feature needs: columns of one sensor are one purchase, and a
    feature that others give together is none. Where every sensor serves by itself, purchase k is
    the k-th sensor.
    """

    sets: BoolArray  # (k, s)
    sensor: FloatArray  # (s,), the sensors' prices

    @classmethod
    def of(cls, prices: SensorPrices) -> Self:
        """Those that these prices allow."""
        needs = {frozenset(prices.sensors_of(j).tolist()) for j in range(prices.features)}
        several = {need for need in needs if len(need) > 1}
        others = {need: [o for o in needs if o < need] for need in several}
        given = {need for need in several if frozenset().union(*others[need]) == need}
        kept = sorted(map(sorted, needs - given - {frozenset()}))
        sets = np.zeros((len(kept), prices.sensors), dtype=bool)
        for k, sensors in enumerate(kept):
            sets[k, sensors] = True
        return cls(sets, prices.sensor)

    def __len__(self) -> int:
        return len(self.sets)

    @cached_property
    def apart(self) -> bool:
        """Whether no two purchases have a sensor in common: prices are the same at any time."""
        return bool((self.sets.sum(axis=0) <= 1).all())

    @cached_property
    def price(self) -> FloatArray:
        """The price (k,) of each purchase by itself."""
        return np.asarray(self.sets @ self.sensor)

    def sensors(self, bought: BoolArray) -> BoolArray:
        """The sensors (n, s) of purchases made (n, k)."""
        return np.asarray(bought.astype(np.float32) @ self.sets.astype(np.float32) > 0)

    def made(self, sensors: BoolArray) -> BoolArray:
        """The purchases (n, k) all of whose sensors (n, s) are bought."""
        lacking = (~sensors).astype(np.float32) @ self.sets.T.astype(np.float32)
        return np.asarray(lacking == 0)

    def marginal(self, bought: BoolArray) -> FloatArray:
        """What each purchase costs (n, k) after those made (n, k); 0 for these."""
        if self.apart:
            return np.where(bought, 0.0, self.price)
        return np.asarray(np.where(self.sensors(bought), 0.0, self.sensor) @ self.sets.T)


class _Lists:
    """Lists of numbers, one after the other."""

    def __init__(self, lists: Sequence[Sequence[int]]) -> None:
        self.size = np.array([len(own) for own in lists], dtype=np.int64)
        self.start = np.cumsum(self.size) - self.size
        self.items = np.array([item for own in lists for item in own], dtype=np.int64)

    def of(self, which: IntArray) -> tuple[IntArray, IntArray]:
        """The items of the lists ``which`` (m,), and for each its place in ``which``."""
        size = self.size[which]
        place = np.repeat(np.arange(len(which)), size)
        first = self.start[which] - (np.cumsum(size) - size)
        return place, self.items[np.arange(len(place)) + first[place]]


@dataclass(slots=True, eq=False)
class _Rows:
    """How far the rows of a block are."""

    X: Float32Array  # (n, d), never shown
    cells: Float32Array  # (n, d)
    made: BoolArray  # (n, e): the k purchases, then needs that several of them meet together
    sensors: BoolArray  # (n, s)
    order: IntArray  # (n, s)
    left: FloatArray  # (n,)
    price: FloatArray  # (s,), the prices that ``left`` is counted in
    steps: IntArray  # (n,), purchases so far
    bought: BoolArray  # (n, k), of ``made``
    short: BoolArray  # (n,), whose next purchase cost too much


@dataclass(eq=False)
class Sequential:
    """The model that a policy makes: it buys for each row what the policy says.

    Its operating points are the policy's ``stops``. Purchases cost what ``prices`` say when the row
    makes them. What is free is bought before the first step.
    """

    policy: Any
    prices: SensorPrices
    independent_rows: bool = field(default=True, init=False)

    def __post_init__(self) -> None:
        stops = self.policy.stops
        if len(stops) != 1 or not len(*stops.values()):
            fault = f"stops are {dict(stops)!r:.80}"
            raise ValueError(f"{fault}: give one name and its values, as {{'price': (1.0, 0.1)}}")
        self._purchases = Purchases.of(self.prices)
        needs = [np.flatnonzero(row).tolist() for row in self._purchases.sets]
        self._sensors = _Lists(needs)
        # the columns that each set of sensors shows: of the purchases, then of what others give
        columns: dict[tuple[int, ...], list[int]] = {tuple(need): [] for need in needs}
        for j in range(self.prices.features):
            need = sorted({*self.prices.sensors_of(j).tolist()})
            columns.setdefault(tuple(need), []).append(j)
        self._open = np.array(columns.pop((), []), dtype=np.int64)
        self._columns = _Lists([*columns.values()])
        sets = np.zeros((len(columns), self.prices.sensors), dtype=bool)
        for own, known in zip(sets, columns, strict=True):
            own[list(known)] = True
        # those that other purchases may make, or help to make
        self._joint = np.flatnonzero(sets[:, sets.sum(axis=0) > 1].any(axis=1))
        self._joint_bits = Acquired.pack(sets[self._joint]).bits

    @property
    def marks(self) -> tuple[str, ...]:
        """The policy's."""
        return tuple(getattr(self.policy, "marks", ()))

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """One prediction for each stop."""
        rows, ((name, stops),) = None, self.policy.stops.items()
        for stop in stops:
            if rows is None or not getattr(self.policy, "nested", False):
                rows = self._begin(features, self.prices)
            self._buy(rows, stop)
            yield self._answer(rows, {name: stop})

    def predict_capped(self, features: Features, cap: float, prices: SensorPrices) -> Prediction:
        """The prediction at the last stop where no row may pay more than ``cap`` for its sensors,
        by these ``prices``; the policy knows what is left."""
        return self.capped(features, cap, prices)[0]

    def capped(
        self, features: Features, cap: float, prices: SensorPrices
    ) -> tuple[Prediction, BoolArray]:
        """As ``predict_capped``, and the rows (n,) whose next purchase cost too much."""
        ((name, stops),) = self.policy.stops.items()
        rows = self._begin(features, prices, cap * (1 + ROUNDING))
        self._buy(rows, stops[-1])
        return self._answer(rows, {name: stops[-1]}), rows.short

    def program(self, point: Mapping[str, int | float]) -> Any:
        """The policy's program (``bench_core.serving.PolicyProgram``) at one of its stops.

        Raises UsageError where it has none.
        """
        ((name, _),) = self.policy.stops.items()
        if not hasattr(self.policy, "program"):
            raise UsageError(
                f"a {type(self.policy).__name__} has no 'program' and cannot be exported; "
                "docs/serving.md shows what its author adds"
            )
        evaluated = {name: getattr(self.policy, name, Evaluated()) for name in _EVALUATED}
        return replace(self.policy.program(self.prices, point[name]), **evaluated)

    def state(self) -> dict[str, Any]:
        """The policy's state under its class, and the prices."""
        own = {f"policy.{name}": value for name, value in self.policy.state().items()}
        prices = {f"prices.{name}": value for name, value in self.prices.state().items()}
        return {"kind": remember_class(type(self.policy)), **own, **prices}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of ``state``."""
        parts: dict[str, dict[str, Any]] = {"policy": {}, "prices": {}}
        for name, value in state.items():
            part, dot, own = name.partition(".")
            if dot:
                parts[part][own] = value
        policy: Any = find_class(state["kind"])
        return cls(policy.from_state(parts["policy"]), SensorPrices.from_state(parts["prices"]))

    def _begin(self, features: Features, prices: SensorPrices, left: float = np.inf) -> _Rows:
        n, (k, s) = len(features), self._purchases.sets.shape
        X = np.asarray(features.X, dtype=np.float32)
        cells = np.full(X.shape, np.nan, dtype=np.float32)
        cells[:, self._open] = X[:, self._open]
        made, sensors = np.zeros((n, len(self._columns.size)), bool), np.zeros((n, s), bool)
        order, steps = np.full((n, s), -1), np.zeros(n, dtype=np.int64)
        known = np.full(n, left), prices.sensor, steps, made[:, :k]
        rows = _Rows(X, cells, made, sensors, order, *known, np.zeros(n, dtype=bool))
        for purchase in np.flatnonzero(self._purchases.sets @ prices.sensor == 0).tolist():
            self._add(rows, np.arange(n), np.full(n, purchase))
        return rows

    def _buy(self, rows: _Rows, stop: float) -> None:
        """Buy until the policy stops, nothing is left to buy, or the next purchase costs too
        much."""
        first = int((self._purchases.sets @ rows.price == 0).any())  # what is free stands in step 0
        going = np.flatnonzero(~rows.bought.all(axis=1))
        while len(going):
            chosen = self._chosen(rows, going, stop)
            go = chosen != STOP
            going, chosen = going[go], chosen[go]
            place, sensors = self._sensors.of(chosen)
            due = np.where(rows.sensors[going[place], sensors], 0.0, rows.price[sensors])
            price = np.bincount(place, due, minlength=len(going))
            go = price <= rows.left[going]
            rows.short[going] = ~go
            going, chosen = going[go], chosen[go]
            rows.left[going] -= price[go]
            self._add(rows, going, chosen, first)
            rows.steps[going] += 1
            going = going[~rows.bought[going].all(axis=1)]

    def _chosen(self, rows: _Rows, going: IntArray, stop: float) -> IntArray:
        """What the policy buys next for these rows."""
        bought, k = rows.bought[going], len(self._purchases)
        given = np.asarray(self.policy.act(rows.cells[going], bought, rows.left[going], stop))
        if given.dtype.kind not in "iu" or given.shape != going.shape:
            fault = f"{given.dtype} {given.shape}, not whole numbers {going.shape}"
            raise ValueError(f"act gives {fault}: return a purchase for each row, or STOP")
        chosen = given.astype(np.int64)
        inside = (chosen >= 0) & (chosen < k)
        again = inside & rows.bought[going, np.where(inside, chosen, 0)]
        wrong = again | ~(inside | (chosen == STOP))
        if wrong.any():
            fault = f"purchase {chosen[wrong][0]} of {k}"
            raise ValueError(f"act gives {fault}, which does not exist or was made: return STOP")
        return chosen

    def _add(self, rows: _Rows, those: IntArray, chosen: IntArray, first: int = 0) -> None:
        """Make one purchase for each of some rows, and show its cells."""
        place, sensors = self._sensors.of(chosen)
        row = those[place]
        new = ~rows.sensors[row, sensors]
        row, sensors = row[new], sensors[new]
        rows.sensors[row, sensors] = True
        rows.order[row, sensors] = first + rows.steps[row]
        joint = np.isin(chosen, self._joint)
        pairs = [(those[~joint], chosen[~joint])]
        if joint.any():
            own = those[joint]
            known = rows.made.take(own, axis=0).take(self._joint, axis=1)
            bits = Acquired.pack(rows.sensors.take(own, axis=0)).bits
            for word, needed in zip(bits.T, self._joint_bits.T, strict=True):
                known |= (needed & ~word[:, None]) != 0
            at, which = divmod(np.flatnonzero(~known), len(self._joint))
            pairs.append((own[at], self._joint[which]))
        row, made = map(np.concatenate, zip(*pairs, strict=True))
        rows.made[row, made] = True
        place, columns = self._columns.of(made)
        row = row[place]
        rows.cells[row, columns] = rows.X[row, columns]

    def _answer(self, rows: _Rows, point: dict[str, float]) -> Prediction:
        scores = self.policy.predict(rows.cells.copy(), rows.bought.copy())
        act, answer = (getattr(self.policy, name, Evaluated()) for name in _EVALUATED)
        asked = rows.steps + ~rows.bought.all(axis=1)
        splits, trees = (
            asked * of_act + of_answer for of_act, of_answer in zip(act, answer, strict=True)
        )
        bill = Bill(Acquired.pack(rows.sensors), splits, trees, rows.order.copy())
        return Prediction(point, scores, {"path": bill})
