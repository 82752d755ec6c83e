"""Purchases of rows along the trade-off, and the stages that they go through, for the page.

For each learner the steps of its curve that some place of the slider pays for: the share of test
rows that buy each group of sensors, the names of some, and where its model has stages, who reaches
them in the first repeat.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core._io.digests import canonical
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.errors import one_line
from bench_core.leaderboard.bought_sensors import EVERY, NEVER
from bench_core.terminal.wording import cost, count
from bench_reports.curves import Curve, Pick, View, exact, thinned

if TYPE_CHECKING:
    from bench_core.results.records import Bought
    from bench_core.results.store import Store

GROUPS = 5
MOST_STAGES = 40
BEST = 6
NAMED = 6
"""So many sensors are named of those bought for every row, for some and never."""

Trials = Mapping[tuple[str, int, int, str], "Bought"]


def purchases(
    store: Store,
    run: str,
    dataset: str,
    view: View,
    learners: Sequence[str],
    amounts: Sequence[float],
    whole: Collection[str],
) -> dict[str, Any] | None:
    """The purchases on one data set, None where the store has none.

    Of learners that are not in ``whole`` only the last step is shown.
    """
    kept = store.bought(run, dataset=dataset)
    if not kept or not len(kept[0].sensors.price):
        return None
    sensors = kept[0].sensors
    price = np.array(sensors.price, dtype=np.float64)
    of, titles = groups(price)
    trials = {
        (one.learner, one.fold, one.seed, canonical(one.params)): one
        for one in kept
        if one.sensors == sensors
    }
    found = {}
    for curve in view.curves:
        if steps := list(_steps(thinned(curve, amounts, 1), trials, price, of)):
            own = steps if curve.learner in whole else steps[-1:]
            found[learners.index(curve.learner)] = own
    names = [one_line(str(name))[:60] for name in sensors.names]
    return {"groups": titles, "names": names, "of": found} if found else None


def groups(price: FloatArray) -> tuple[IntArray, list[str]]:
    """The group (s,) of each sensor and the groups' titles: one for each price, or five of about as
    many sensors."""
    edges = np.unique(price)
    if len(edges) > GROUPS:
        parts = np.linspace(0, 1, GROUPS + 1)[1:]
        edges = np.unique(np.quantile(price, parts, method="inverted_cdf"))
    of = np.searchsorted(edges, price)
    titles = []
    for k in range(len(edges)):
        least, most = (cost(float(edge)) for edge in (price[of == k].min(), price[of == k].max()))
        prices = least if least == most else f"{least} to {most}"
        titles.append(f"cost {prices} ({count(int((of == k).sum()), 'sensor')})")
    return of, titles


def followed(view: View, reference: str, amounts: Sequence[float]) -> set[str]:
    """The learners whose purchases are shown at all budgets, if there are many: the six best, the
    reference, and the learners that are ahead at some place of the slider."""
    sign = 1 if view.metric.higher_is_better else -1
    found = {reference, *(curve.learner for curve, _ in view.ranking()[:BEST])}
    for amount in amounts:
        held = [(curve, curve.held(amount)) for curve in view.curves]
        there = [(sign * curve.quality[at], curve.learner) for curve, at in held if at >= 0]
        found |= {max(there)[1]} if there else set()
    return found


def _steps(
    curve: Curve, trials: Trials, price: FloatArray, of: IntArray
) -> Iterator[dict[str, Any]]:
    """The steps of a curve whose purchases are kept for every repeat."""
    for budget, picked in zip(curve.budget, curve.picked, strict=False):
        points = [_kept(curve.learner, pick, trials) for pick in picked]
        there = [point for point in points if point]
        if len(there) == len(points):
            share = np.mean([one.share[k] for one, k in there], axis=0)
            yield {"x": float(budget), **bought(share, price, of), **_stages(*there[0])}


def bought(share: FloatArray, price: FloatArray, of: IntArray) -> dict[str, Any]:
    """The purchases at one step, for example::

        {"g": [100, 40],                    percentage of rows that buy, by group of sensors
         "every": [1, [0]],                 bought for every row: how many, and the first of them
         "some": [2, [2, 1], [40, 99]],     bought for some rows, with percentages
         "never": [0, []], "saved": 0}      never bought, and what these would cost

    The sensors that cost most per row come first.
    """
    order = np.lexsort((-price, -share, -share * price))

    def listed(inside: BoolArray) -> list[Any]:
        own = order[inside[order]]
        return [len(own), own[:NAMED].tolist()]

    every, never = share >= EVERY, share == NEVER
    some = listed(~every & ~never)
    percent = np.clip(np.rint(100 * share[some[1]]), 1, 99).astype(int)
    return {
        "g": [round(100 * float(share[of == k].mean())) for k in range(of.max() + 1)],
        "every": listed(every),
        "some": [*some, percent.tolist()],
        "never": listed(never),
        "saved": exact(float(price[never].sum())),
    }


def _kept(learner: str, pick: Pick, trials: Trials) -> tuple[Bought, int] | None:
    params, point = (json.loads(text or "{}") for text in (pick.params, pick.point))
    one = trials.get((learner, pick.fold, pick.seed, canonical(params)))
    return (one, one.settings.index(point)) if one and point in one.settings else None


def _stages(one: Bought, place: int) -> dict[str, Any]:
    """The tree of stages: of each its parent, the sensors that the way there may buy and what they
    cost, and the percentage of rows that reach it."""
    stages = one.stages
    if stages is None or place not in stages.reached or not 1 < len(stages.parent) <= MOST_STAGES:
        return {}
    price = [exact(value) for value in stages.price]
    reached = [round(100 * share) for share in stages.reached[place]]
    return {"stages": [*map(list, zip(stages.parent, stages.sensors, price, reached, strict=True))]}
