"""Penalties of splits: prices over sensors, purchases so far, and the account of a tree.

A feature needs one or more sensors (``start``, ``needed``: sparse rows, as in a price list). All
prices are in loss units, that is, already multiplied by the trade-off. With D and C the purchases
so far, a split of a leaf on feature m is charged (Peter et al., NIPS 2017, eq. 13)

    sum over m's sensors k of  coupled_k (1 - D_k) + lazy_k U_k(leaf)   +   split_m W(leaf)

U_k(leaf), the sum of 1 - C_ik over the leaf's rows i, is the multiplicity of rows that have not
paid k; W(leaf) is the multiplicity of all. ``growth._choose`` sums the three terms, from these
arrays:

    Ledger.bought  D (s,)      Ledger.paid  C (s, n) as bits     Account.unpaid[leaf]  U (s,)
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from bench_trees.arrays import Float64Array, Int32Array, Int64Array, UInt32Array, grown
from bench_trees.kernels.payments import count_unpaid, mark_paid
from bench_trees.settings import Settings


@dataclass(frozen=True, slots=True, eq=False)
class Penalty:
    """Prices of acquiring and evaluating, in loss units; zeros = free.

    Raises ValueError for negative or non-finite prices and for unfit shapes.
    """

    start: Int32Array  # (d+1,) feature j needs sensors needed[start[j]:start[j+1]]
    needed: Int32Array
    coupled: Float64Array  # (s,) paid once for all rows
    lazy: Float64Array  # (s,) paid by each row (times its multiplicity) the first time
    split: Float64Array  # (d,) paid by each row of the leaf, at every split

    def __post_init__(self) -> None:
        if self.coupled.shape != self.lazy.shape or self.split.shape != (len(self.start) - 1,):
            raise ValueError("penalty: coupled and lazy must be (s,), split (d,)")
        if self.start[0] != 0 or self.start[-1] != len(self.needed):
            raise ValueError("penalty: start and needed do not fit together")
        if bool(np.any((self.needed < 0) | (self.needed >= self.sensors))):
            raise ValueError(f"penalty: needed must name sensors 0..{self.sensors - 1}")
        for name in ("coupled", "lazy", "split"):
            values = getattr(self, name)
            if not bool(np.all(np.isfinite(values) & (values >= 0))):
                raise ValueError(f"penalty: {name} holds a negative or non-finite price")

    @property
    def features(self) -> int:
        """Number of features d."""
        return len(self.start) - 1

    @property
    def sensors(self) -> int:
        """Number of sensors s."""
        return len(self.coupled)

    @property
    def free(self) -> bool:
        """True if all prices are zero."""
        return not (self.coupled.any() or self.lazy.any() or self.split.any())

    def of(self, feature: int) -> Int32Array:
        """The sensors that one feature needs."""
        return self.needed[self.start[feature] : self.start[feature + 1]]

    @classmethod
    def over(
        cls,
        start: Int32Array,
        needed: Int32Array,
        sensors: int,
        *,
        coupled: Float64Array | None = None,
        lazy: Float64Array | None = None,
        split: Float64Array | None = None,
    ) -> Self:
        """Prices over given sensors; omitted ones are free."""
        d = len(start) - 1
        return cls(
            start=np.asarray(start, np.int32),
            needed=np.asarray(needed, np.int32),
            coupled=np.zeros(sensors) if coupled is None else np.asarray(coupled, np.float64),
            lazy=np.zeros(sensors) if lazy is None else np.asarray(lazy, np.float64),
            split=np.zeros(d) if split is None else np.asarray(split, np.float64),
        )

    @classmethod
    def plain(cls, features: int, **prices: Float64Array | None) -> Self:
        """Every feature as its own sensor; ``prices`` as for ``over``."""
        start = np.arange(features + 1, dtype=np.int32)
        return cls.over(start, start[:-1], features, **prices)


class Ledger:
    """Purchases so far, over all trees that share it."""

    def __init__(self, penalty: Penalty, rows: int, multiplicity: Int64Array | None = None) -> None:
        self.penalty = penalty
        self.rows = rows
        self.bought = np.zeros(penalty.sensors, dtype=np.bool_)  # coupled sensors, by some split
        total = rows if multiplicity is None else int(multiplicity.sum())
        # of each sensor, the multiplicity of rows that have not paid it yet
        self.unpaid = np.full(penalty.sensors, total, dtype=np.int64)
        words = -(-rows // 64) if penalty.lazy.any() else 0  # bit i % 64 of word i // 64 is row i's
        self.paid = np.zeros((penalty.sensors, words), dtype=np.uint64)
        self._feature = np.repeat(np.arange(penalty.features), np.diff(penalty.start))

    def coupled_owed(self) -> Float64Array:
        """Sum over the sensors of each feature of coupled_k (1 - D_k), (d,)."""
        return self._per_feature(np.where(self.bought, 0.0, self.penalty.coupled))  # eq. 13

    def lazy_owed(self, unpaid: Int64Array) -> Float64Array:
        """Sum over the sensors of each feature of lazy_k U_k, (d,); U is ``unpaid`` (s,)."""
        return self._per_feature(self.penalty.lazy * unpaid)  # eq. 13

    def buy(self, *features: int) -> bool:
        """Pay the features' coupled sensors; return True if that changes a charge."""
        sensors = np.concatenate([self.penalty.of(feature) for feature in features])
        new = sensors[~self.bought[sensors]]
        self.bought[new] = True
        return bool(np.any(self.penalty.coupled[new] > 0))

    def _per_feature(self, sensor: Float64Array) -> Float64Array:
        weights = sensor[self.penalty.needed]
        d = self.penalty.features
        return np.bincount(self._feature, weights, minlength=d).astype(np.float64, copy=False)


class Account:
    """Charges the splits of one tree after another to a ledger."""

    def __init__(self, ledger: Ledger, settings: Settings, copies: Int64Array) -> None:
        self.ledger = ledger
        self.per_node = settings.charge == "node"
        self.copies = copies  # (n,) the multiplicity, or (0,) if all are 1
        self.lazy = bool(ledger.penalty.lazy.any())
        self.bought: set[int] = set()  # features whose coupled sensors are bought
        self.lazy_owed = np.zeros((0, ledger.penalty.features))  # of every node, if there are any
        self.coupled_owed = ledger.coupled_owed()  # (d,) after the purchases so far
        self.begin()

    def begin(self) -> None:
        """Open the account of a new tree."""
        self.unpaid: dict[int, Int64Array] = {}  # U of every node (s,), empty if nothing is lazy
        if self.lazy:
            self._open(0, self.ledger.unpaid.copy())

    def end(self, features: Int64Array) -> None:
        """Buy unpaid sensors used by the finished tree: the free ones and, with ``charge="node"``,
        all. ``features`` are -1 at leaves."""
        new = set(features.tolist()) - self.bought - {-1}
        if new and self.ledger.buy(*new):
            self.coupled_owed = self.ledger.coupled_owed()
        self.bought |= new

    def pay(self, node: int, feature: int, rows: UInt32Array) -> bool:
        """Charge a split of the node with these rows; return True if other leaves now owe less."""
        refunded = False
        if not self.per_node and feature not in self.bought:
            self.bought.add(feature)
            refunded = self.ledger.buy(feature)
            if refunded:
                self.coupled_owed = self.ledger.coupled_owed()
        if self.lazy:
            unpaid, sensors = self.unpaid[node], self.ledger.penalty.of(feature)
            owing = sensors[(unpaid[sensors] > 0) & (self.ledger.penalty.lazy[sensors] > 0)]
            if len(owing):
                mark_paid(self.ledger.paid, owing.astype(np.int64), rows)
                self.ledger.unpaid[owing] -= unpaid[owing]
                unpaid[owing] = 0
        return refunded

    def divide(
        self, parent: int, small: int, large: int, counts: tuple[int, int], small_rows: UInt32Array
    ) -> None:
        """U of both children from the parent's; ``counts``: of the parent and of the smaller child.

        A scan is needed only for sensors that some of the parent's rows have paid, and only for the
        smaller child.
        """
        unpaid = self.unpaid.pop(parent)
        unpaid_small = np.where(unpaid == counts[0], counts[1], 0)
        lazy = self.ledger.penalty.lazy > 0
        mixed = np.flatnonzero((unpaid > 0) & (unpaid < counts[0]) & lazy)
        if len(mixed):
            count_unpaid(self.ledger.paid, mixed, small_rows, self.copies, unpaid_small)
        self._open(small, unpaid_small)
        self._open(large, unpaid - unpaid_small)

    def _open(self, node: int, unpaid: Int64Array) -> None:
        self.unpaid[node] = unpaid
        self.lazy_owed = grown(self.lazy_owed, node + 1)
        self.lazy_owed[node] = self.ledger.lazy_owed(unpaid)
