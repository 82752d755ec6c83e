"""The trade-off between cost and quality, as arrays in and indices out.

Everywhere ``cost`` (p,) and ``quality`` (p,) describe p operating points. Points with a NaN in
either are never chosen. Among equals the cheaper point wins, then the earlier one.
"""

from typing import TypeVar

import numpy as np

from bench_core.arrays import FloatArray, IntArray

Number = TypeVar("Number", float, FloatArray)


def frontier(cost: FloatArray, quality: FloatArray, higher_is_better: bool = True) -> IntArray:
    """The points that no other is at once as cheap and as good as, by ascending cost.

    Quality improves strictly along the result; of equal points the first is kept.
    """
    cost, good = np.asarray(cost, dtype=np.float64), np.asarray(quality, dtype=np.float64)
    good = good if higher_is_better else -good
    usable = np.flatnonzero(~np.isnan(cost) & ~np.isnan(good))
    order = usable[np.lexsort((-good[usable], cost[usable]))]  # equals stay in order
    if len(order) == 0:
        return np.zeros(0, dtype=np.int64)
    rising = good[order]  # quality by ascending cost
    improves = np.append(True, rising[1:] > np.maximum.accumulate(rising)[:-1])
    return np.asarray(order[improves], dtype=np.int64)


def choosable(
    cost: FloatArray, p95: FloatArray, quality: FloatArray, higher_is_better: bool = True
) -> IntArray:
    """The points that some budget chooses, by ascending cost: the frontiers by mean ``cost`` and by
    ``p95``, what 95% of rows cost at most. Of the latter's equals in quality the cheaper on average
    wins, wherever it keeps to the budget: it may be on neither frontier."""
    cost, good = np.asarray(cost, dtype=np.float64), np.asarray(quality, dtype=np.float64)
    good = good if higher_is_better else -good
    place = np.empty(len(cost))  # by quality, then the cheaper, then the earlier
    place[np.lexsort((-np.arange(len(cost)), -cost, good))] = np.arange(len(cost))
    place[np.isnan(cost) | np.isnan(good)] = np.nan
    found = np.union1d(frontier(cost, good), frontier(p95, place))
    return np.asarray(found[np.argsort(cost[found], kind="stable")], dtype=np.int64)


def best_under(
    cost: FloatArray, quality: FloatArray, budget: float, higher_is_better: bool = True
) -> int | None:
    """The best point that costs at most ``budget``; None if there is none."""
    cost, good = np.asarray(cost, dtype=np.float64), np.asarray(quality, dtype=np.float64)
    good = np.where(cost <= budget, good if higher_is_better else -good, np.nan)
    most = np.fmax.reduce(good, initial=-np.inf)
    equal = np.flatnonzero(good == most)
    return int(equal[cost[equal].argmin()]) if len(equal) else None


def mixture_reaching(
    cost: FloatArray, quality: FloatArray, target: float, higher_is_better: bool = True
) -> tuple[int, int, float] | None:
    """The cheapest point at least as good as ``target`` (of equals the best), the one before it on
    the frontier, and the share of rows that the latter may serve so that their mean quality is
    ``target``; None if there is none.

    Where no cheaper point is on the frontier, the point is given twice and the share is 0.
    """
    chosen = frontier(cost, quality, higher_is_better)
    reached = np.asarray(quality, dtype=np.float64)[chosen]
    reaches = reached >= target if higher_is_better else reached <= target
    if not reaches.any():
        return None
    if (at := int(reaches.argmax())) == 0:
        return int(chosen[0]), int(chosen[0]), 0.0
    # how far the target lies between the two, from the dearer one
    part = (reached[at] - target) / (reached[at] - reached[at - 1])
    return int(chosen[at]), int(chosen[at - 1]), float(part)


def share_of(best: Number, share: float, higher_is_better: bool = True) -> Number:
    """The quality that counts as reaching ``share`` (such as 0.99) of ``best``.

    Higher is better: ``share * best``. Lower is better: ``best / share``, an error at most
    1/share times the best one. A best value on the wrong side of zero (a negative gain) is
    loosened by the same distance: never a target harder than ``best`` itself.
    """
    if not 0 < share <= 1:
        raise ValueError(f"the share must be above 0 and at most 1, got {share:g}")
    if higher_is_better:
        return best - (1 - share) * abs(best)
    return best + (1 / share - 1) * abs(best)
