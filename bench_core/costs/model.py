"""Cost is one idea: a row pays each SENSOR once, and a feature needs one or more sensors.

A plain feature is its own sensor. Features that share one measurement need the same sensor. In
a discounted group the first member costs the full price and later ones the discounted price:
each member has an own sensor at its discounted price, and all share one for the difference. A
derived feature needs the union of its parents' sensors, so it is free once they are bought.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench_core.arrays import FloatArray, Int32Array


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """What a row is charged.

    Feature ``j`` needs the sensors ``needed[start[j]:start[j + 1]]``: a sparse boolean (d, s)
    matrix in row-compressed form, ``start`` int32 (d + 1,), ``needed`` int32 (all needs,).
    ``sensor`` (s,) holds their prices, ``split`` the price of evaluating one split (CEGB's alpha),
    ``multiplier`` (d,) what a split on each feature multiplies it by (eps_m), ``tree`` the price of
    evaluating one tree. Prices are in ``unit``; all are finite and >= 0, else ValueError.
    """

    start: Int32Array
    needed: Int32Array
    sensor: FloatArray
    multiplier: FloatArray
    split: float = 0.0
    tree: float = 0.0
    unit: str = "cost"

    def __post_init__(self) -> None:
        if self.start[-1] != len(self.needed) or len(self.multiplier) != self.features:
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
        """The price of all features for one row."""
        return float(self.sensor.sum())

    def of(self, feature: int) -> Int32Array:
        """The sensors that one feature needs."""
        return self.needed[self.start[feature] : self.start[feature + 1]]

    def feature_price(self) -> FloatArray:
        """The price of each feature bought alone, shape (d,)."""
        return np.array([self.sensor[self.of(j)].sum() for j in range(self.features)])

    @classmethod
    def additive(
        cls, cost: FloatArray, *, split: float = 0.0, tree: float = 0.0, unit: str = "cost"
    ) -> Prices:
        """Every feature its own sensor, costs (d,)."""
        return price_list(cost, split=split, tree=tree, unit=unit)


@dataclass(frozen=True, slots=True)
class DiscountGroup:
    """Features bought together at a discount: the first pays in full, later ones ``later``.

    ``later`` is one discounted price per member; full price minus ``later`` must be equal for
    all members (it is what they share). Raises ValueError unless each member has one.
    """

    members: tuple[int, ...]
    later: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.members or len(self.members) != len(self.later):
            raise ValueError(
                f"a discounted group needs members and one later price for each, not "
                f"{list(self.members)} and {list(self.later)}"
            )


def price_list(
    cost: FloatArray,
    *,
    shared: Sequence[Sequence[int]] = (),
    discounted: Sequence[DiscountGroup] = (),
    derived: Mapping[int, Sequence[int]] | None = None,
    split: float = 0.0,
    tree: float = 0.0,
    multiplier: FloatArray | None = None,
    unit: str = "cost",
) -> Prices:
    """Turn full prices per feature (d,) and sharing rules into sensors.

    ``shared``: groups of features read from one sensor (equal costs required). ``discounted``:
    see ``DiscountGroup``. ``derived``: feature -> parents; its own cost is ignored. Raises
    ValueError where a rule contradicts the costs or a feature falls under two rules.
    """
    cost = np.asarray(cost, dtype=np.float64)
    d = len(cost)
    derived = dict(derived or {})
    _refuse_overlap(d, shared, discounted, derived)
    needs: list[list[int]] = [[] for _ in range(d)]
    sensor: list[float] = []

    def new(price: float, members: Sequence[int]) -> None:
        for j in members:
            needs[j].append(len(sensor))
        sensor.append(price)

    in_group = {j for group in shared for j in group}
    in_group |= {j for group in discounted for j in group.members}
    for j in range(d):
        if j not in in_group and j not in derived:
            new(float(cost[j]), [j])
    for group in shared:
        if not group:
            raise ValueError("a group of features that share one sensor is empty")
        if len({float(cost[j]) for j in group}) != 1:
            raise ValueError(f"features {list(group)} share one sensor but differ in cost")
        new(float(cost[group[0]]), group)
    for rule in discounted:
        gap = cost[list(rule.members)] - np.asarray(rule.later)
        if bool(np.any(gap < 0)) or not np.allclose(gap, gap[0], rtol=0, atol=1e-9):
            raise ValueError(
                f"features {list(rule.members)} form a discounted group, but full minus "
                f"discounted price differs or is negative: {gap.tolist()}"
            )
        new(float(gap[0]), rule.members)
        for j, later in zip(rule.members, rule.later, strict=True):
            new(float(later), [j])
    for j, parents in derived.items():
        needs[j] = sorted({s for parent in parents for s in needs[parent]})
    lengths = [len(n) for n in needs]
    return Prices(
        start=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32),
        needed=np.array([s for n in needs for s in sorted(n)], dtype=np.int32),
        sensor=np.array(sensor, dtype=np.float64),
        multiplier=np.ones(d) if multiplier is None else np.asarray(multiplier, float),
        split=split,
        tree=tree,
        unit=unit,
    )


def _refuse_overlap(
    d: int,
    shared: Sequence[Sequence[int]],
    discounted: Sequence[DiscountGroup],
    derived: Mapping[int, Sequence[int]],
) -> None:
    seen: set[int] = set()
    groups = [*shared, *(g.members for g in discounted), tuple(derived)]
    for members in groups:
        for j in members:
            if not 0 <= j < d:
                raise ValueError(f"feature {j} is outside 0..{d - 1}")
            if j in seen:
                raise ValueError(f"feature {j} falls under two sharing rules")
            seen.add(j)
    for j, parents in derived.items():
        if any(p in derived or not 0 <= p < d for p in parents):
            raise ValueError(f"derived feature {j} must have plain features as parents")


def prices_to_json(prices: Prices) -> dict[str, Any]:
    """Prices as a JSON document; numbers survive exactly."""
    return {
        "start": prices.start.tolist(),
        "needed": prices.needed.tolist(),
        "sensor": prices.sensor.tolist(),
        "multiplier": prices.multiplier.tolist(),
        "split": prices.split,
        "tree": prices.tree,
        "unit": prices.unit,
    }


def prices_from_json(document: Mapping[str, Any]) -> Prices:
    """The inverse of ``prices_to_json``."""
    return Prices(
        start=np.array(document["start"], dtype=np.int32),
        needed=np.array(document["needed"], dtype=np.int32),
        sensor=np.array(document["sensor"], dtype=np.float64),
        multiplier=np.array(document["multiplier"], dtype=np.float64),
        split=document["split"],
        tree=document["tree"],
        unit=document["unit"],
    )
