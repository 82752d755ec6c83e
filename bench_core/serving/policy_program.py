"""Sequential policies as programs: trees that value purchases, trees that answer, and a rule.

A row has d cells, NaN if not bought, followed by a 1 for each ``marked`` purchase that was made,
else 0. The trees see these d + g cells. With v_j the value of purchase j and c_j its marginal
price, the row makes the purchase of the largest

    rate    max(v_j, 0) / c_j      infinity where c_j is 0
    class   v_j

among purchases not made yet (with ``skip``: and affordable), if it is at least ``least``, or for
``class`` at least v_k, the value of stopping. Ties go to the first. Then it requests
all columns that the purchase shows. Free purchases are made first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np
from bench_trees.ensemble import Ensemble

from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.costs.model import SensorPrices
from bench_core.sequential import Evaluated, Purchases, StoredPolicy
from bench_core.serving.program import END, Program, Step

RULES = ("rate", "class")
_NOTHING = Evaluated()


@dataclass(frozen=True, slots=True, eq=False)
class PolicyProgram:
    """A policy at one of its stops. Raises ValueError for invalid parts.

    The steps of ``scores`` are sums of trees over d + g features. The last one answers with
    ``outputs`` scores; the others value purchases, and the largest of their values counts.
    ``prices`` are the prices that the policy compares. ``each_act`` and ``each_answer`` are its
    evaluations per call (``bench_core.sequential``).
    """

    reads_prices: ClassVar[bool] = False  # those of rows

    scores: Program
    outputs: int  # K
    prices: SensorPrices
    marked: IntArray  # (g,), numbers of purchases
    rule: str
    least: float = 0.0
    skip: bool = False
    each_act: Evaluated = _NOTHING
    each_answer: Evaluated = _NOTHING
    purchases: Purchases = field(init=False)

    @classmethod
    def of(
        cls,
        values: Sequence[Ensemble],
        answer: Ensemble,
        prices: SensorPrices,
        marked: IntArray,
        rule: str,
        **more: Any,
    ) -> Self:
        """Make a program from the trees that value purchases and the trees that answer."""
        every, steps, parts, before = [*values, answer], list[Step](), list[Ensemble](), 0
        width, features = max(len(e.base) for e in every), prices.features + len(marked)
        for k, trees in enumerate(every, start=1):
            rows = None if trees.vectors is None else _padded(trees.vectors, width)
            parts.append(replace(trees, base=np.zeros(width), features=features, vectors=rows))
            count, then = trees.trees, k if k < len(every) else END
            those, base = np.arange(before, before + count), _padded(trees.base[None], width)[0]
            steps.append(Step(those, np.ones(count), np.zeros(count, bool), base, then=then))
            before += count
        scores = Program(width, steps, Ensemble.concat(parts), np.zeros(features))
        return cls(scores, len(answer.base), prices, np.asarray(marked, np.int64), rule, **more)

    def __post_init__(self) -> None:
        object.__setattr__(self, "purchases", Purchases.of(self.prices))
        k, scores = len(self.purchases), self.scores
        if self.rule not in RULES or len(scores.steps) < 2 or not np.isfinite(self.least):
            raise ValueError(f"a policy has a rule ({', '.join(RULES)}) and values to go by")
        if len(scores.multiplier) != self.prices.features + len(self.marked):
            raise ValueError("trees and prices differ in their features")
        few = scores.outputs < max(k + (self.rule != "rate"), self.outputs)
        if few or not np.isin(self.marked, range(k)).all():
            raise ValueError(f"the trees do not fit {k} purchases and {self.outputs} scores")

    @property
    def features(self) -> IntArray:
        """Features that it may request: all features shown by its purchases."""
        return np.arange(self.prices.features)

    @property
    def multiplier(self) -> FloatArray:
        """Evaluations counted for a split on each feature (d,)."""
        return self.prices.multiplier

    @property
    def unpriced(self) -> SensorPrices:
        """Prices for the trees alone: d + g features that need no sensor."""
        start = np.zeros(len(self.scores.multiplier) + 1, np.int32)
        return SensorPrices(start, start[:0], np.zeros(0), self.scores.multiplier)

    def chosen(self, values: Sequence[FloatArray], bought: BoolArray, left: FloatArray) -> IntArray:
        """Return the rows' next purchase (n,) or STOP, from the sums (n, w) of all steps but the
        last."""
        k, purchases, best = len(self.purchases), self.purchases, reduce(np.maximum, values)
        worth, least = best[:, :k], self.least if self.rule == "rate" else best[:, k]
        if self.rule == "rate":
            price = purchases.price[None] if purchases.apart else purchases.marginal(bought)
            with np.errstate(divide="ignore", invalid="ignore"):
                worth = np.where(price > 0, np.maximum(worth, 0.0) / price, np.inf)
        return purchases.best(worth, bought, left, least, self.skip)


ServedProgram = Program | PolicyProgram | StoredPolicy
"""A model at one operating point, as it is served."""


def _padded(rows: FloatArray, width: int) -> FloatArray:
    return np.pad(rows.astype(np.float64), ((0, 0), (0, width - rows.shape[1])))
