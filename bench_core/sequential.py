"""Sequential policies: the next purchase of a row depends on the values bought so far.

A learner's ``fit`` returns ``Sequential(policy, prices)``. The policy defines two functions: the
next purchase, and the prediction. ``Sequential`` hides cells until they are bought, bills
purchases at marginal prices in their order, and enforces caps. A policy therefore cannot read
values that it has not paid for.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.class_names import find_class, importable, remember_class
from bench_core.costs.bill import Acquired, Bill, Prediction
from bench_core.costs.by_row import ByRow
from bench_core.costs.model import SensorPrices
from bench_core.data import Features
from bench_core.errors import UsageError

STOP = -1
"""Action of a row: stop buying and predict."""

ROUNDING = 1e-9
"""Relative tolerance of a cap for sums of prices: 0.1 + 0.2 is within 0.3."""


_EVALUATED = ("each_act", "each_answer")


class Evaluated(NamedTuple):
    """Evaluations of one call for one row: splits (summed multipliers) and trees."""

    splits: float = 0.0
    trees: float = 0.0


class Policy(Protocol):
    """Required members of a policy. Its functions receive independent rows of one block.

    ``cells`` (n, d) float32 are NaN if not bought. ``bought`` (n, k) marks the ``Purchases`` made.
    The policy may modify both, and keeps nothing of a row for another call.

    Optional members: ``nested = True`` if each stop extends the purchases of the previous stop in
    the same order; the computation then continues from there. ``offer(cells, bought, left)``
    returns the next purchase (n,) of each row, and the highest stop (n,) at which ``act`` makes it
    instead of ending; a row is then asked once per purchase, not at each stop. ``marks`` are as for
    a model. ``each_act`` and ``each_answer`` (``Evaluated``) are the maximum evaluations per row of
    one call of ``act`` and of ``predict``. ``program(prices, stop)`` returns the policy at a stop
    as a ``bench_core.serving.PolicyProgram``, for export; without it an export keeps the policy's
    state, and needs its class. With ``reads_prices = True``, ``act``
    gets ``Features.prices`` (n, s) of its rows as ``prices=``, if a price is quoted by row.
    """

    stops: Mapping[str, Sequence[float]]
    """One name with its values, such as ``{"price": (1.0, 0.1, 0.0)}``: the operating points in
    order. The last has the highest cost and is used under caps."""

    def act(
        self, cells: Float32Array, bought: BoolArray, left: FloatArray, stop: float
    ) -> IntArray:
        """Return the next purchase (n,) of each row, not yet made, or ``STOP``.

        ``left`` (n,) is the remainder of the cap, with tolerance for rounding; infinity without a
        cap. A purchase that costs more ends the row. ``stop`` is one of ``stops``.
        """

    def predict(self, cells: Float32Array, bought: BoolArray) -> FloatArray:
        """Return scores (n,) or (n, K), as in ``Prediction``."""

    def state(self) -> Mapping[str, Any]:
        """Return everything needed to rebuild the policy: arrays and JSON only."""

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Inverse of ``state``."""


@dataclass(frozen=True, eq=False)
class StoredPolicy:
    """A policy at one of its stops, served by its own class.

    Answers are ``slope`` * (``base`` + the policy's scores), without a ``base`` its scores.
    """

    policy: Any
    prices: SensorPrices
    stop: float
    slope: float = 1.0
    base: tuple[float, ...] = ()

    @property
    def features(self) -> IntArray:
        """Features that it may request: all."""
        return np.arange(self.prices.features)

    @property
    def multiplier(self) -> FloatArray:
        """Evaluations counted for a split on each feature (d,)."""
        return self.prices.multiplier

    @property
    def reads_prices(self) -> bool:
        """True if it sees the quoted prices of a row before it buys."""
        return bool(getattr(self.policy, "reads_prices", False))


@dataclass(frozen=True, eq=False)
class Purchases:
    """The k purchases that a policy chooses from, one at a time.

    Each purchase is a set of sensors needed by a feature. Columns of one sensor share a purchase. A
    feature covered by the purchases of others has no purchase. If every sensor can be bought
    separately, purchase k is the k-th sensor.
    """

    sets: BoolArray  # (k, s)
    sensor: FloatArray  # (s,), the sensors' prices

    @classmethod
    def of(cls, prices: SensorPrices) -> Self:
        """Purchases under these prices."""
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
        """True if purchase k is sensor k, so that prices are constant."""
        return np.array_equal(self.sets, np.eye(len(self.sets), dtype=bool))

    @cached_property
    def price(self) -> FloatArray:
        """Price (k,) of each purchase alone."""
        return np.asarray(self.sets @ self.sensor)

    def sensors(self, bought: BoolArray) -> BoolArray:
        """Sensors (n, s) of the purchases made (n, k)."""
        if self.apart:
            return bought
        return np.asarray(bought.astype(np.float32) @ self.sets.astype(np.float32) > 0)

    def made(self, sensors: BoolArray) -> BoolArray:
        """Purchases (n, k) whose sensors (n, s) are all bought."""
        lacking = (~sensors).astype(np.float32) @ self.sets.T.astype(np.float32)
        return np.asarray(lacking == 0)

    def marginal(self, bought: BoolArray) -> FloatArray:
        """Marginal price (n, k) after the purchases made (n, k); 0 for purchases made."""
        if self.apart:
            return np.where(bought, 0.0, self.price)
        return np.asarray(np.where(self.sensors(bought), 0.0, self.sensor) @ self.sets.T)

    def best(
        self,
        worth: FloatArray,
        bought: BoolArray,
        left: FloatArray,
        least: FloatArray | float,
        skip: bool = True,
    ) -> IntArray:
        """Return the purchase (n,) of largest ``worth`` (n, k) among those not made and, with
        ``skip``, affordable, if it is at least ``least``; else ``STOP``."""
        chosen, most = self.most(worth, bought, left, skip)
        return np.where((most >= least) & (most > -np.inf), chosen, STOP)

    def most(
        self, worth: FloatArray, bought: BoolArray, left: FloatArray, skip: bool = True
    ) -> tuple[IntArray, FloatArray]:
        """Return the purchase (n,) of ``best``, and its worth (n,), -inf where there is none."""
        if len(self) == 0:
            return np.full(len(bought), STOP), np.full(len(bought), -np.inf)
        if skip and np.isfinite(left).any():
            bought = bought | (self.marginal(bought) > left[:, None])
        worth = np.where(bought, -np.inf, worth)
        chosen = worth.argmax(axis=1)
        return chosen, worth[np.arange(len(chosen)), chosen]


def purchases_of(given: Any, bought: BoolArray) -> IntArray:
    """Check the result of ``act`` for rows with purchases ``bought`` (n, k). Raises ValueError
    unless each row has a new purchase or ``STOP``."""
    chosen, (n, k) = np.asarray(given), bought.shape
    if chosen.dtype.kind not in "iu" or chosen.shape != (n,):
        fault = f"{chosen.dtype} {chosen.shape}, not whole numbers {(n,)}"
        raise ValueError(f"act gives {fault}: return a purchase for each row, or STOP")
    inside = (chosen >= 0) & (chosen < k)
    wrong = ~inside & (chosen != STOP)
    wrong[inside] = bought[inside, chosen[inside]]
    if wrong.any():
        fault = f"purchase {chosen[wrong][0]} of {k}"
        raise ValueError(f"act gives {fault}, which does not exist or was made: return STOP")
    return chosen.astype(np.int64)


class _Lists:
    """Lists of integers in one array."""

    def __init__(self, lists: Sequence[Sequence[int]]) -> None:
        self.size = np.array([len(own) for own in lists], dtype=np.int64)
        self.start = np.cumsum(self.size) - self.size
        self.items = np.array([item for own in lists for item in own], dtype=np.int64)

    def of(self, which: IntArray) -> tuple[IntArray, IntArray]:
        """Items of the lists ``which`` (m,), and the position in ``which`` of each item."""
        size = self.size[which]
        place = np.repeat(np.arange(len(which)), size)
        first = self.start[which] - (np.cumsum(size) - size)
        return place, self.items[np.arange(len(place)) + first[place]]


@dataclass(slots=True, eq=False)
class PolicyRows:
    """State of n rows while they buy."""

    cells: Float32Array  # (n, d)
    bought: BoolArray  # (n, k)
    sensors: BoolArray  # (n, s)
    order: IntArray  # (n, s)
    lacking: Any  # unsigned (n, d + k), missing sensors of features and purchases
    price: FloatArray  # (n, s), prices that reduce ``left``
    metered: BoolArray  # (s,), True if a price is known only after the purchase
    free: IntArray  # purchases without a price, made before the first step
    row_prices: FloatArray | None  # (n, s), ``Features.prices``
    left: FloatArray  # (n,)
    slack: float  # the tolerance for rounding in ``left``
    steps: IntArray  # (n,), purchases so far
    asked: IntArray  # (n,), calls of ``act``
    short: BoolArray  # (n,), True if the next purchase was too expensive
    offer: IntArray  # (n,), next purchase by the policy's ``offer``
    until: FloatArray  # (n,), highest stop at which it is made, NaN: not asked yet
    begun: bool = False
    alike: bool = False  # no row has a visible cell or another remainder


@dataclass(eq=False)
class Sequential:
    """Model that buys features for each row according to a policy.

    Its operating points are the policy's ``stops``. ``prices`` give the cost of a purchase at the
    time it is made. Free sensors are bought before the first step.
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
        sets = [np.flatnonzero(row).tolist() for row in self._purchases.sets]
        needs = [{*self.prices.sensors_of(j).tolist()} for j in range(self.prices.features)]
        served: list[list[int]] = [[] for _ in range(self.prices.sensors)]
        for thing, sensors in enumerate([*needs, *sets]):
            for sensor in sensors:
                served[sensor].append(thing)
        self._sensors, self._served = _Lists(sets), _Lists(served)
        needed = np.array([len(sensors) for sensors in [*needs, *sets]], dtype=np.int64)
        self._needed = needed.astype(np.min_scalar_type(needed.max(initial=0)))  # mostly uint8

    @property
    def marks(self) -> tuple[str, ...]:
        """Marks of the policy."""
        return tuple(getattr(self.policy, "marks", ()))

    def predict_path(self, features: Features) -> Iterator[Prediction]:
        """Yield one prediction per stop. Rows with the same purchases as at the previous stop keep
        their scores."""
        rows, before, ((name, stops),) = None, None, self.policy.stops.items()
        for stop in stops:
            if rows is None or not getattr(self.policy, "nested", False):
                rows = self.begin(len(features), self.prices, row_prices=features.prices)
            found = self._answer(features, rows, {name: stop}, before)
            before = rows.bought.copy(), found.scores
            yield found

    def predict_at(self, features: Features, point: Mapping[str, Any]) -> Prediction:
        """Prediction at one of the stops alone."""
        rows = self.begin(len(features), self.prices, row_prices=features.prices)
        return self._answer(features, rows, dict(point))

    def predict_capped(
        self, features: Features, cap: float, prices: SensorPrices | ByRow
    ) -> Prediction:
        """Prediction at the last stop if each row may pay at most ``cap`` for its sensors under
        these ``prices``; the policy receives the remainder. A metered price may exceed it."""
        ((name, stops),) = self.policy.stops.items()
        rows = self.begin(len(features), prices, cap * (1 + ROUNDING), features.prices)
        return self._answer(features, rows, {name: stops[-1]})

    def program(self, point: Mapping[str, int | float]) -> Any:
        """The policy at one of its stops: its program (``bench_core.serving.PolicyProgram``), or
        else a ``StoredPolicy``.

        Raises UsageError if it has no program and its class cannot be imported elsewhere.
        """
        ((name, _),) = self.policy.stops.items()
        if not hasattr(self.policy, "program"):
            if not importable(type(self.policy)):
                raise UsageError(
                    f"a {type(self.policy).__name__} has no 'program', and its class cannot be "
                    "imported; move the class into a module to export the model"
                )
            return StoredPolicy(self.policy, self.prices, point[name])
        evaluated = {name: getattr(self.policy, name, Evaluated()) for name in _EVALUATED}
        return replace(self.policy.program(self.prices, point[name]), **evaluated)

    def state(self) -> dict[str, Any]:
        """State of the policy, prefixed by its class, and the prices."""
        own = {f"policy.{name}": value for name, value in self.policy.state().items()}
        prices = {f"prices.{name}": value for name, value in self.prices.state().items()}
        return {"kind": remember_class(type(self.policy)), **own, **prices}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Inverse of ``state``."""
        parts: dict[str, dict[str, Any]] = {"policy": {}, "prices": {}}
        for name, value in state.items():
            part, dot, own = name.partition(".")
            if dot:
                parts[part][own] = value
        policy: Any = find_class(state["kind"])
        return cls(policy.from_state(parts["policy"]), SensorPrices.from_state(parts["prices"]))

    def begin(
        self,
        n: int,
        prices: SensorPrices | ByRow,
        left: float = np.inf,
        row_prices: FloatArray | None = None,
    ) -> PolicyRows:
        """Return rows without purchases. ``row_prices`` are the ``Features.prices``."""
        (k, s), d = self._purchases.sets.shape, self.prices.features
        cells, lacking = np.full((n, d), np.nan, np.float32), np.tile(self._needed, (n, 1))
        bought, sensors, order = np.zeros((n, k), bool), np.zeros((n, s), bool), np.full((n, s), -1)
        steps, calls = np.zeros((2, n), dtype=np.int64)
        if isinstance(prices, ByRow):
            mean, price = prices.base.sensor, prices.of_rows
        else:
            mean, price = prices.sensor, np.broadcast_to(prices.sensor, (n, s))
        metered = np.zeros(s, dtype=bool)
        metered[getattr(prices, "metered", [])] = True
        free = np.flatnonzero(self._purchases.sets @ mean == 0)
        slack = 2 * ROUNDING * left if left < np.inf else 0.0
        money = (
            *(price, metered, free, row_prices, np.full(n, left), slack, steps, calls),
            np.zeros(n, dtype=bool),
        )
        offer = np.full(n, STOP), np.full(n, np.nan)
        return PolicyRows(cells, bought, sensors, order, lacking, *money, *offer)

    def buy(
        self, rows: PolicyRows, stop: float, each: float = 0.0
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Buy until the policy stops, all is bought, or the next purchase is too expensive.

        Yields rows (m,), ascending, and the columns (m,) they now see. The caller writes their
        ``cells`` before the next iteration. ``each`` is the price of one call of ``act``.
        """
        free = rows.free
        if not rows.begun:
            rows.begun, every = True, np.arange(len(rows.left))
            open_ = np.flatnonzero(self._needed[: rows.cells.shape[1]] == 0)
            shown = [(every.repeat(len(open_)), np.tile(open_, len(every)))]
            shown += [self._add(rows, every, np.full(len(every), j), 0) for j in free.tolist()]
            row, column = map(np.concatenate, zip(*shown, strict=True))
            order = np.lexsort((column, row))
            rows.alike = len(row) == 0 and bool((rows.left == rows.left[:1]).all())
            rows.alike &= not self._shows_prices(rows)
            yield row[order], column[order]
            if len(free):  # on average: a row may pay for them
                rows.left -= rows.price[:, self._purchases.sets[free].any(axis=0)].sum(axis=1)
        rows.asked[:] = rows.steps
        going = np.flatnonzero(~rows.bought.all(axis=1))
        while len(going):
            rows.short[going] = each > rows.left[going]
            going = going[~rows.short[going]]
            if not len(going):
                return
            rows.left[going] -= each
            rows.asked[going] += 1
            chosen = self._next(rows, going, stop)
            go = chosen != STOP
            going, chosen = going[go], chosen[go]
            place, sensors = self._sensors.of(chosen)
            row = going[place]
            new, metered = ~rows.sensors[row, sensors], rows.metered[sensors]
            total = partial(np.bincount, place, minlength=len(going))
            price = total(np.where(new & ~metered, rows.price[row, sensors], 0.0))
            left, unknown = rows.left[going], metered.any() and total(new & metered) > 0
            # a metered sensor is bought while money is left, whatever it turns out to cost
            go = np.where(unknown, price < left - rows.slack, price <= left)
            rows.short[going] = ~go
            bought, chosen = going[go], chosen[go]
            rows.until[bought], rows.alike = np.nan, rows.alike and len(bought) == 0
            yield self._add(rows, bought, chosen, min(1, len(free)))  # free sensors are step 0
            if metered.any():
                price += total(np.where(new & metered, rows.price[row, sensors], 0.0))
            rows.left[bought] -= price[go]
            going = bought
            rows.steps[going] += 1
            going = going[~rows.bought[going].all(axis=1)]

    def _next(self, rows: PolicyRows, those: IntArray, stop: float) -> IntArray:
        """Next purchase of some rows (m,), or ``STOP``."""
        some, offer = those[:1] if rows.alike else those, getattr(self.policy, "offer", None)
        bought = rows.bought[some]
        if offer is None:
            left = np.maximum(rows.left[some], 0.0)
            known = {}
            if rows.row_prices is not None and self._shows_prices(rows):
                known = {"prices": rows.row_prices[some]}
            actions = self.policy.act(rows.cells[some], bought.copy(), left, stop, **known)
        else:
            if len(new := some[np.isnan(rows.until[some])]):
                asked = rows.cells[new], rows.bought[new], rows.left[new]
                rows.offer[new], rows.until[new] = offer(*asked)
            actions = np.where(rows.until[some] >= stop, rows.offer[some], STOP)
        chosen = purchases_of(actions, bought)
        return np.repeat(chosen, len(those)) if rows.alike else chosen

    def _shows_prices(self, rows: PolicyRows) -> bool:
        return rows.row_prices is not None and bool(getattr(self.policy, "reads_prices", False))

    def evaluated(self, rows: PolicyRows) -> tuple[FloatArray, FloatArray]:
        """Splits (n,) and trees (n,) of all calls of ``act`` and of ``predict``."""
        act, answer = (getattr(self.policy, name, Evaluated()) for name in _EVALUATED)
        splits, trees = (
            rows.asked * of_act + of_answer for of_act, of_answer in zip(act, answer, strict=True)
        )
        return splits, trees

    def _add(
        self, rows: PolicyRows, those: IntArray, chosen: IntArray, first: int
    ) -> tuple[IntArray, IntArray]:
        """Make one purchase for each of some rows; return the rows and columns that it reveals."""
        place, sensors = self._sensors.of(chosen)
        row = those[place]
        new = ~rows.sensors[row, sensors]
        row, sensors = row[new], sensors[new]
        rows.sensors[row, sensors] = True
        rows.order[row, sensors] = first + rows.steps[row]
        place, things = self._served.of(sensors)
        row, (_, width), d = row[place], rows.lacking.shape, rows.cells.shape[1]
        lacking, at = rows.lacking.reshape(-1), row * width + things
        if self._purchases.apart:  # each row has one new sensor, so ``at`` has no copies
            lacking[at] -= 1
        else:
            np.subtract.at(lacking, at, 1)
        done = lacking[at] == 0
        row, things = row[done], things[done]
        if len(sensors) > len(those):  # a purchase may have two new sensors
            row, things = np.divmod(np.unique(at[done]), width)
        column = things < d
        rows.bought[row[~column], things[~column] - d] = True
        return row[column], things[column]

    def _answer(
        self,
        features: Features,
        rows: PolicyRows,
        point: dict[str, float],
        before: tuple[BoolArray, FloatArray] | None = None,
    ) -> Prediction:
        """Prediction when all cells are available. ``before`` are purchases (n, k) and scores of an
        earlier one."""
        X, (stop,) = np.asarray(features.X, dtype=np.float32), point.values()
        for row, column in self.buy(rows, stop):
            rows.cells[row, column] = X[row, column]
        if before is None:
            scores = self.policy.predict(rows.cells.copy(), rows.bought.copy())
        else:
            scores, new = before[1].astype(np.float64), (rows.bought != before[0]).any(axis=1)
            if new.any():
                scores[new] = self.policy.predict(rows.cells[new], rows.bought[new])
        bill = Bill(Acquired.pack(rows.sensors), *self.evaluated(rows), rows.order.copy())
        return Prediction(point, scores, {"path": bill})
