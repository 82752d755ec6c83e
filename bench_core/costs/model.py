"""Cost models: prices of the sensors that rows buy and the trees they evaluate.

A feature needs one or more SENSORS, and a row pays each sensor once. ``SensorPrices`` adds prices.
A plain feature is its own sensor. Features of one measurement need the same sensor. In a discounted
group, each member has its own sensor at its discounted price, and all share one for the difference.
A derived feature needs the union of its parents' sensors, so it is free once they are bought.
Other models (``shipped.py``, plugins) bill the same purchases differently.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from bench_core._io.digests import canonical, code_key
from bench_core.arrays import Array, BitArray, BoolArray, FloatArray, Int32Array, IntArray
from bench_core.data import Examples, Queries
from bench_core.errors import UsageError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

NO_UNIT = "cost"
"""Default unit of prices."""

# One number for all rows, or one per row (n,).
Counts = int | float | FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Acquired:
    """Sensors bought by each row: bit ``s % 64`` of word ``s // 64`` of its row.

    ``bits`` is uint64 (n, w), or (1, w) if all rows buy the same.
    """

    bits: BitArray  # (n, w) or (1, w)
    sensors: int

    def __post_init__(self) -> None:
        if self.bits.ndim != 2 or self.bits.shape[1] != words(self.sensors):
            raise ValueError(
                f"{self.sensors} sensors need uint64 (n, {words(self.sensors)}), "
                f"got {self.bits.dtype} {self.bits.shape}"
            )

    @classmethod
    def pack(cls, mask: BoolArray) -> Acquired:
        """Create from a boolean mask (n, s)."""
        n, s = mask.shape
        padded = np.zeros((n, words(s) * 64), dtype=bool)
        padded[:, :s] = mask
        packed = np.packbits(padded, axis=1, bitorder="little")  # sensor 0 is bit 0
        return cls(packed.view("<u8").astype(np.uint64, copy=False), s)

    @classmethod
    def nothing(cls, sensors: int) -> Acquired:
        """Return the empty purchase for all rows."""
        return cls(np.zeros((1, words(sensors)), dtype=np.uint64), sensors)

    def rows(self, n: int) -> Acquired:
        """Expand to ``n`` rows, also from one row of bits for all."""
        return Acquired(np.broadcast_to(self.bits, (n, self.bits.shape[1])), self.sensors)

    def unpack(self) -> BoolArray:
        """Return a boolean mask (n, s) or (1, s)."""
        unpacked = np.unpackbits(self._bytes(), axis=1, bitorder="little")
        return unpacked[:, : self.sensors].astype(bool)

    def has(self, sensor: int) -> BoolArray:
        """Rows (n,) or (1,) that bought a sensor."""
        bit = np.uint64(1) << np.uint64(sensor % 64)
        return np.asarray(self.bits[:, sensor // 64] & bit != 0)

    def cost(self, price: FloatArray) -> FloatArray:
        """Sum of the prices (s,) of the bought sensors, shape (n,) or (1,).

        Tables of sums by byte are added in order, so a row's cost does not depend on its block.
        """
        raw = self._bytes()
        total = np.zeros(len(raw))
        for byte, sums in zip(raw.T, _byte_sums(np.asarray(price, float).tobytes()), strict=False):
            total += sums[byte]
        return total

    def _bytes(self) -> Array:
        """The bits as bytes (n, 8 w), starting with the first sensor."""
        return np.ascontiguousarray(self.bits).astype("<u8", copy=False).view(np.uint8)


def words(sensors: int) -> int:
    """Number of 64-bit words that hold one bit per sensor (at least 1)."""
    return max(1, -(-sensors // 64))


@lru_cache(maxsize=16)
def _byte_sums(price: bytes) -> FloatArray:
    """Price of each possible value of each byte of a row, (bytes, 256)."""
    each = np.frombuffer(price)
    padded = np.zeros(64 * words(len(each)))  # bits beyond the last sensor cost nothing
    padded[: len(each)] = each
    sums = np.zeros((len(padded) // 8, 256))
    for bit, value in enumerate(padded.reshape(-1, 8).T):
        sums[:, 1 << bit : 2 << bit] = sums[:, : 1 << bit] + value[:, None]
    return sums


@runtime_checkable
class CostModel(Protocol):
    """Computes bills for purchases and evaluations; the only source of prices.

    A plugin registers the class (hook ``bench_cost_models``). Key ``model`` of a cost file or a
    suite names it; ``options`` are the further keys it reads there. Set ``by_row = True`` if a
    row's bill does not depend on other rows.
    """

    name: ClassVar[str]
    options: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def unit(self) -> str:
        """Unit of prices, shown in tables."""

    @property
    @abstractmethod
    def features(self) -> int:
        """Number of features d."""

    @property
    @abstractmethod
    def sensors(self) -> int:
        """Number of sensors s."""

    @property
    @abstractmethod
    def everything(self) -> float:
        """Price of all features for a single row."""

    @abstractmethod
    def sensors_of(self, feature: int) -> Int32Array:
        """Sensors that a feature needs; it can be read only if all are bought."""

    @abstractmethod
    def feature_cost(self, acquired: Acquired, queries: Queries | None) -> FloatArray:
        """Price (n,) of the purchases of n rows: complete queries, or independent rows.

        ``acquired`` may have one row of bits if all rows buy the same. The result may be (1,) if it
        is the same for all rows.
        """

    @abstractmethod
    def evaluation_cost(self, splits: Counts, trees: Counts, rows: int) -> FloatArray:
        """Price (rows,) of the splits (summed multipliers) and trees evaluated for each row."""

    @abstractmethod
    def surrogate(self, train: Examples) -> SensorPrices:
        """Additive prices of the same sensors for learners to train on."""

    @abstractmethod
    def state(self) -> Mapping[str, Any]:
        """Return everything needed to rebuild the model: arrays and JSON only."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Inverse of ``state``."""

    @classmethod
    @abstractmethod
    def from_options(
        cls, prices: SensorPrices, options: Mapping[str, Any], column: Callable[[str], int]
    ) -> Self:
        """Create the model from a cost file: its ``prices`` and the values of ``options``.

        ``column`` finds a feature by name (InputError locates an unknown name). Raises ValueError,
        in one line with the remedy, for an invalid option.
        """


def pays_by_row(costs: CostModel) -> bool:
    """True if a row's bill does not depend on other rows of its query."""
    return bool(getattr(costs, "by_row", False))


@dataclass(frozen=True, slots=True, eq=False)
class SensorPrices:
    """Additive prices, on which learners train: a row pays each sensor it bought once.

    Feature ``j`` needs the sensors ``needed[start[j]:start[j + 1]]``: a sparse boolean (d, s)
    matrix in row-compressed form, ``start`` int32 (d + 1,), ``needed`` int32 (all needs,).
    ``sensor`` (s,) holds the sensors' prices. ``split`` is the price of one split (CEGB's alpha),
    and ``multiplier`` (d,) scales it for splits on each feature (eps_m). ``tree`` is the price of
    evaluating one tree. Prices are in ``unit``; all are finite and >= 0, else ValueError.
    """

    name: ClassVar[str] = "sensor"
    options: ClassVar[tuple[str, ...]] = ()
    by_row: ClassVar[bool] = True

    start: Int32Array  # (d + 1,)
    needed: Int32Array  # (all needs,)
    sensor: FloatArray  # (s,)
    multiplier: FloatArray  # (d,), eps_m
    split: float = 0.0  # alpha
    tree: float = 0.0
    unit: str = NO_UNIT

    def __post_init__(self) -> None:
        cuts = self.start[0] == 0 and self.start[-1] == len(self.needed)
        if not cuts or (np.diff(self.start) < 0).any() or len(self.multiplier) != self.features:
            raise ValueError("prices: start, needed and multiplier do not fit together")
        if not bool(np.all((self.needed >= 0) & (self.needed < self.sensors))):
            raise ValueError(f"prices: needed names a sensor outside 0..{self.sensors - 1}")
        for name, values in (("sensor", self.sensor), ("multiplier", self.multiplier)):
            if not bool(np.all(np.isfinite(values) & (values >= 0))):
                raise ValueError(f"prices: {name} holds a negative or non-finite value")
        if not (0 <= self.split < np.inf and 0 <= self.tree < np.inf):
            raise ValueError("prices: split and tree must be finite and >= 0")

    @property
    def features(self) -> int:
        """Number of features d."""
        return len(self.start) - 1

    @property
    def sensors(self) -> int:
        """Number of sensors s."""
        return len(self.sensor)

    @property
    def everything(self) -> float:
        """Price of all features for one row."""
        return float(self.sensor.sum())

    @property
    def cheapest(self) -> float:
        """Least price above 0 of a feature bought alone; 0 if all are free."""
        price = self.marginal(np.zeros(self.sensors, dtype=np.bool_))
        return float(np.min(price[price > 0], initial=np.inf)) if price.any() else 0.0

    def sensors_of(self, feature: int) -> Int32Array:
        """Sensors that a feature needs."""
        return self.needed[self.start[feature] : self.start[feature + 1]]

    @property
    def needs(self) -> csr_array:
        """Sensors that each feature needs, a sparse matrix (d, s) of ones."""
        from scipy.sparse import csr_array

        shape = (self.features, self.sensors)
        return csr_array((np.ones(len(self.needed)), self.needed, self.start), shape=shape)

    def bought_for(self, features: BoolArray | IntArray) -> BoolArray:
        """Sensors (s,) or (n, s) of features: a mask (d,) or (n, d), or numbers (k,)."""
        mask = np.asarray(features)
        if mask.dtype != bool:
            mask = np.isin(np.arange(self.features), mask)
        own = np.arange(self.features)
        each = np.array_equal(self.needed, own) and np.array_equal(self.start[:-1], own)
        if each and self.sensors == len(own):
            return np.array(mask, dtype=bool)
        return np.asarray(mask.astype(np.float64) @ self.needs > 0, dtype=bool)

    def acquired(self, features: BoolArray | IntArray) -> Acquired:
        """Purchase of all sensors that these features need, as ``bought_for``."""
        return Acquired.pack(np.atleast_2d(self.bought_for(features)))

    def of_columns(self, columns: Sequence[int] | Sequence[Sequence[int]]) -> SensorPrices:
        """Prices of features made of columns: feature ``j`` needs the sensors of ``columns[j]``,
        one column or several."""
        made_of = [np.atleast_1d(sources).astype(np.int64) for sources in columns]
        needs = [
            sorted({s for c in sources for s in self.sensors_of(c).tolist()}) for sources in made_of
        ]
        return replace(
            self,
            start=np.cumsum([0, *map(len, needs)]).astype(np.int32),
            needed=np.concatenate([*needs, np.zeros(0)]).astype(np.int32),
            multiplier=np.array([self.multiplier[sources].max(initial=0.0) for sources in made_of]),
        )

    def feature_price(self) -> FloatArray:
        """Price of each feature bought alone, shape (d,)."""
        return np.array([self.sensor[self.sensors_of(j)].sum() for j in range(self.features)])

    def marginal(self, bought: BoolArray) -> FloatArray:
        """Marginal price (d,) of each feature for a row that has bought the sensors (s,)."""
        return np.asarray(self.needs @ np.where(bought, 0.0, self.sensor))

    def feature_cost(self, acquired: Acquired, queries: Queries | None = None) -> FloatArray:
        """Sum of the prices of the bought sensors, (n,), or (1,) if all rows buy the same."""
        return acquired.cost(self.sensor)

    def evaluation_cost(self, splits: Counts, trees: Counts, rows: int) -> FloatArray:
        """Price (rows,), or (1,) if equal, of the evaluated splits and trees."""
        if not self.split and not self.tree:
            return np.zeros(1)
        cost = self.split * np.asarray(splits, float)
        return np.atleast_1d(cost + self.tree * np.asarray(trees, float))

    def surrogate(self, train: Examples) -> SensorPrices:
        """These prices, as they are additive."""
        return self

    def state(self) -> dict[str, Any]:
        """All fields by name."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """Inverse of ``state``; accepts lists for arrays and ignores further entries."""
        kinds = {"start": np.int32, "needed": np.int32, "sensor": float, "multiplier": float}
        values = {f.name: state[f.name] for f in fields(cls)}
        return cls(**values | {k: np.asarray(values[k], dtype=kind) for k, kind in kinds.items()})

    @classmethod
    def from_options(
        cls, prices: SensorPrices, options: Mapping[str, Any], column: Callable[[str], int]
    ) -> Self:
        """Return the prices of the file unchanged."""
        return cls.from_state(prices.state())

    @classmethod
    def additive(
        cls, cost: FloatArray, *, split: float = 0.0, tree: float = 0.0, unit: str = NO_UNIT
    ) -> SensorPrices:
        """Prices with one sensor per feature, costs (d,)."""
        return price_list(cost, split=split, tree=tree, unit=unit)


Prices = SensorPrices  # name in learners' signatures


@dataclass(frozen=True, slots=True)
class DiscountGroup:
    """Features with a discount: the first one bought costs its full price, others ``later``.

    ``later`` has one discounted price per member. Full price minus ``later`` must be equal for all
    members (it is their shared cost). Raises ValueError unless each member has one.
    """

    members: tuple[int, ...]  # features
    later: tuple[float, ...]  # price of each after another member

    def __post_init__(self) -> None:
        if not self.members or len(self.members) != len(self.later):
            raise ValueError(
                f"a discounted group needs members and one later price for each, not "
                f"{list(self.members)} and {list(self.later)}"
            )


class ContradictionError(ValueError):
    """Contradictory prices, described in one line; ``feature`` is one of the features involved."""

    def __init__(self, feature: int, line: str) -> None:
        super().__init__(line)
        self.feature = feature


def price_list(
    cost: FloatArray,
    *,
    shared: Sequence[Sequence[int]] = (),
    discounted: Sequence[DiscountGroup] = (),
    derived: Mapping[int, Sequence[int]] | None = None,
    split: float = 0.0,
    tree: float = 0.0,
    multiplier: FloatArray | None = None,
    unit: str = NO_UNIT,
    names: Sequence[str] = (),
) -> SensorPrices:
    """Convert full prices per feature (d,) and sharing rules into sensors.

    ``shared``: groups of features that share one sensor (costs must be equal). ``discounted``: see
    ``DiscountGroup``. ``derived``: feature -> parents; its own cost is ignored. Raises
    ContradictionError, which uses ``names``, if a rule contradicts the costs or another rule.
    """
    cost = np.asarray(cost, dtype=np.float64)
    d = len(cost)
    derived = dict(derived or {})
    _refuse_contradictions(cost, shared, discounted, derived, names or range(d))
    grouped = set(chain(*shared, *(rule.members for rule in discounted), derived))
    sensors: list[tuple[float, Sequence[int]]]  # price, and the features that need it
    sensors = [(cost[j], [j]) for j in range(d) if j not in grouped]
    sensors += [(cost[group[0]], group) for group in shared]
    for rule in discounted:
        sensors.append((cost[rule.members[0]] - rule.later[0], rule.members))
        sensors += [(later, [j]) for j, later in zip(rule.members, rule.later, strict=True)]
    needs: list[list[int]] = [[] for _ in range(d)]
    for s, (_, members) in enumerate(sensors):
        for j in members:
            needs[j].append(s)
    for j, parents in derived.items():
        needs[j] = sorted({s for parent in parents for s in needs[parent]})
    return SensorPrices(
        start=np.cumsum([0, *map(len, needs)]).astype(np.int32),
        needed=np.array([s for n in needs for s in n], dtype=np.int32),
        sensor=np.array([price for price, _ in sensors], dtype=np.float64),
        multiplier=np.ones(d) if multiplier is None else np.asarray(multiplier, float),
        split=split,
        tree=tree,
        unit=unit,
    )


def _refuse_contradictions(
    cost: FloatArray,
    shared: Sequence[Sequence[int]],
    discounted: Sequence[DiscountGroup],
    derived: Mapping[int, Sequence[int]],
    names: Sequence[str | int],
) -> None:
    grouped = Counter(chain(*shared, *(rule.members for rule in discounted), derived))
    for j in chain(grouped, *derived.values()):
        if not 0 <= j < len(cost):
            raise ValueError(f"feature {j} is outside 0..{len(cost) - 1}")
        if grouped[j] > 1:
            raise ContradictionError(j, f"feature {names[j]!r} is in two groups; keep one")
    for group in shared:
        if not group:
            raise ValueError("a group of features that share one sensor is empty")
        for j in group:
            if cost[j] != cost[group[0]]:
                raise ContradictionError(
                    j,
                    f"features {names[group[0]]!r} and {names[j]!r} share one measurement but cost "
                    f"{cost[group[0]]:g} and {cost[j]:g}; make them equal",
                )
    for rule in discounted:
        first, gaps = rule.members[0], cost[list(rule.members)] - np.asarray(rule.later)
        for j, gap in zip(rule.members, gaps, strict=True):
            if gap < 0 or abs(gap - gaps[0]) > 1e-9:
                raise ContradictionError(
                    j,
                    f"feature {names[j]!r} is {gap:g} cheaper later, {names[first]!r} "
                    f"{gaps[0]:g}; in a discounted group full minus later price must be equal and "
                    "not negative",
                )
    for j, parents in derived.items():
        for parent in parents:
            if parent in derived:
                raise ContradictionError(
                    j,
                    f"feature {names[j]!r} is derived from {names[parent]!r}, itself derived; "
                    "name what that one is derived from",
                )


def needs_of(costs: CostModel) -> tuple[Int32Array, Int32Array]:
    """``start`` (d + 1,) and ``needed`` of a cost model, as in ``SensorPrices``."""
    if isinstance(costs, SensorPrices):
        return costs.start, costs.needed
    needs = [np.sort(costs.sensors_of(j)) for j in range(costs.features)]
    start = np.concatenate([[0], np.cumsum([len(n) for n in needs])])
    return start.astype(np.int32), np.concatenate([*needs, []]).astype(np.int32)


def unit_named(unit: str) -> str:
    """Unit named by prices, "" if they name none."""
    return "" if unit == NO_UNIT else unit


def counts_features(costs: CostModel, features: int) -> bool:
    """True if costs are numbers of features: prices have no unit, and each of the ``features`` is a
    sensor of price 1."""
    if not isinstance(costs, SensorPrices) or costs.unit != NO_UNIT or costs.split or costs.tree:
        return False
    return len(costs.sensor) == features and bool((costs.sensor == 1).all())


def costs_key(costs: CostModel) -> str:
    """Digest of everything that determines a bill.

    Raises UsageError if the model's state is not arrays and JSON.
    """
    h = hashlib.sha256(costs.name.encode())
    cls = type(costs)
    if not cls.__module__.startswith("bench_core."):
        h.update(code_key(cls).encode())  # a plugin's bill depends on its code
    for name, value in sorted(costs.state().items()):
        if isinstance(value, np.ndarray):
            h.update(f"|{name}|{value.dtype}|{value.shape}|".encode() + value.tobytes())
        else:
            try:
                h.update(canonical([name, value]).encode())
            except (TypeError, ValueError) as error:
                raise UsageError(
                    f"cost model {costs.name!r}: its state()[{name!r}] is {value!r}, neither an "
                    "array nor JSON; correct it"
                ) from error
    return h.hexdigest()[:32]
