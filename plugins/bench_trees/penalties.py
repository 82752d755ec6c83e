"""What splits are charged while a tree grows: prices over sensors, and what was bought.

A feature needs one or more sensors (``start``, ``needed``: sparse rows, as in a price list). All
prices are in loss units, that is, already multiplied by the trade-off. With D and C the purchases
so far, a split of a leaf on feature m is charged (Peter et al., NIPS 2017, eq. 13)

    sum over m's sensors k of  coupled_k (1 - D_k) + lazy_k U_k(leaf)   +   split_m W(leaf)

U_k(leaf) is the multiplicity of the leaf's rows that have not paid k, W(leaf) that of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
Int32Array = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Penalty:
    """Prices of acquiring and evaluating, in loss units; zeros = free.

    ``start`` int32 (d+1,), ``needed`` int32: feature j needs sensors needed[start[j]:start[j+1]].
    ``coupled`` (s,): paid once for all rows. ``lazy`` (s,): paid by each row (times its
    multiplicity) the first time. ``split`` (d,): paid by each row of the leaf, at every split.
    Raises ValueError on negative or non-finite prices and on shapes that do not fit.
    """

    start: Int32Array
    needed: Int32Array
    coupled: FloatArray
    lazy: FloatArray
    split: FloatArray

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
        coupled: FloatArray | None = None,
        lazy: FloatArray | None = None,
        split: FloatArray | None = None,
    ) -> Self:
        """Prices over given sensors; what is left out is free."""
        d = len(start) - 1
        return cls(
            start=np.asarray(start, np.int32),
            needed=np.asarray(needed, np.int32),
            coupled=np.zeros(sensors) if coupled is None else np.asarray(coupled, np.float64),
            lazy=np.zeros(sensors) if lazy is None else np.asarray(lazy, np.float64),
            split=np.zeros(d) if split is None else np.asarray(split, np.float64),
        )

    @classmethod
    def plain(
        cls,
        features: int,
        *,
        coupled: FloatArray | None = None,
        lazy: FloatArray | None = None,
        split: FloatArray | None = None,
    ) -> Self:
        """Every feature its own sensor; what is left out is free."""
        start = np.arange(features + 1, dtype=np.int32)
        return cls.over(start, start[:-1], features, coupled=coupled, lazy=lazy, split=split)


class Ledger:
    """What has been bought so far, over all trees that share it.

    ``bought`` bool (s,): coupled sensors that some split has paid. ``unpaid`` int64 (s,): the
    multiplicity of rows that have not paid a sensor yet. ``paid`` uint64 (s, words): bit i % 64
    of word i // 64 says that row i has; no words at all where nothing is lazy.
    """

    def __init__(
        self, penalty: Penalty, rows: int, multiplicity: NDArray[np.int64] | None = None
    ) -> None:
        self.penalty = penalty
        self.rows = rows
        self.bought = np.zeros(penalty.sensors, dtype=np.bool_)
        total = rows if multiplicity is None else int(multiplicity.sum())
        self.unpaid = np.full(penalty.sensors, total, dtype=np.int64)
        words = -(-rows // 64) if penalty.lazy.any() else 0
        self.paid = np.zeros((penalty.sensors, words), dtype=np.uint64)
        self._feature = np.repeat(np.arange(penalty.features), np.diff(penalty.start))

    def check(self, penalty: Penalty, rows: int) -> None:
        """Raise ValueError unless the ledger was made for this penalty and number of rows."""
        if self.penalty is not penalty or self.rows != rows:
            raise ValueError("the ledger was made for another penalty or other rows")

    def coupled_owed(self) -> FloatArray:
        """What each feature still owes for all rows together, (d,)."""
        return self._per_feature(np.where(self.bought, 0.0, self.penalty.coupled))

    def lazy_owed(self, unpaid: NDArray[np.int64]) -> FloatArray:
        """What each feature owes in a leaf whose sensors have ``unpaid`` (s,), shape (d,)."""
        return self._per_feature(self.penalty.lazy * unpaid)

    def buy(self, feature: int) -> bool:
        """Pay the feature's coupled sensors; whether that changes what is owed."""
        sensors = self.penalty.of(feature)
        new = sensors[~self.bought[sensors]]
        self.bought[new] = True
        return bool(np.any(self.penalty.coupled[new] > 0))

    def _per_feature(self, sensor: FloatArray) -> FloatArray:
        weights = sensor[self.penalty.needed]
        d = self.penalty.features
        return np.bincount(self._feature, weights, minlength=d).astype(np.float64, copy=False)
