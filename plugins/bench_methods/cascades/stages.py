"""Which trees a stage may use, and what a stage costs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bench_core import Prices, UsageError
from bench_core.arrays import FloatArray, IntArray

if TYPE_CHECKING:
    from bench_trees import Ensemble


def stage_trees(
    ensemble: Ensemble, prices: Prices, limits: Sequence[float] | None, stages: int
) -> list[IntArray]:
    """The trees of each stage, rising, every stage with more than the one before.

    With ``limits``: those whose features all cost at most the stage's limit. Without: the first
    1/K, 2/K, ... of the trees, ordered by costliest feature. Raises UsageError where no tree fits.
    """
    highest = _highest_price(ensemble, prices)
    if limits is None:
        order = np.argsort(highest, kind="stable")
        ends = -(-np.arange(1, stages + 1) * len(order) // stages)
        found = [np.sort(order[:end]) for end in ends]
    else:
        found = [np.flatnonzero(highest <= limit) for limit in limits]
        if len(highest) and len(found[-1]) == 0:
            raise UsageError(
                f"no tree has only features of price <= {limits[-1]:g} (the least that covers a "
                f"tree is {highest.min():g}); raise limits or use a base of small trees"
            )
    more = [len(t) > (len(found[k - 1]) if k else 0) for k, t in enumerate(found)]
    return [t for t, keep in zip(found, more, strict=True) if keep] or [found[-1]]


def _highest_price(ensemble: Ensemble, prices: Prices) -> FloatArray:
    """The price of each tree's costliest feature, bought alone, (T,); 0 without features."""
    price = prices.feature_price()
    used = (price[ensemble.used_features(t)] for t in range(ensemble.trees))
    return np.array([p.max(initial=0.0) for p in used])


def stage_costs(
    stages: Sequence[IntArray], tree_cost: FloatArray, needs: FloatArray, sensor: FloatArray
) -> FloatArray:
    """What each stage adds to the cost of a row, (K,): new sensors and new trees.

    ``tree_cost`` (T,), ``needs`` (s, T) 1.0 where a tree needs a sensor, prices ``sensor`` (s,).
    """
    totals = [
        float(tree_cost[trees].sum() + sensor @ needs[:, trees].any(axis=1)) for trees in stages
    ]
    return np.diff(totals, prepend=0.0)
