"""What rows buy along the trade-off by groups of price, and the stages that they go through.

For each learner a few steps of its curve: the share of test rows that buy the sensors of each
group, a mean over repeats, and where its model has stages, who reaches them in the first repeat.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench_core._io.digests import canonical
from bench_core.arrays import FloatArray, IntArray
from bench_core.errors import one_line
from bench_core.leaderboard.purchases import EVERY, NEVER
from bench_core.terminal.wording import cost, count
from bench_reports.payload import shown_cost
from bench_reports.views import Curve, View, exact

if TYPE_CHECKING:
    from bench_core.results.records import Stages
    from bench_core.results.store import Bought, Store

STEPS, GROUPS, MOST_STAGES = 8, 5, 40
NAMED = 6
"""So many sensors of a kind are named: bought for every row, for some, never."""


class Groups(NamedTuple):
    """Groups of sensors by price: ``edges`` (g,) are the highest price of each."""

    edges: FloatArray
    titles: tuple[str, ...]

    @classmethod
    def of(cls, price: FloatArray) -> Groups:
        """One for each price, or five of about as many sensors."""
        edges = np.unique(price)
        if len(edges) > GROUPS:
            shares = np.linspace(0, 1, GROUPS + 1)[1:]
            edges = np.unique(np.quantile(price, shares, method="inverted_cdf"))
        titles, low = [], -np.inf
        for high in edges:
            own = price[(price > low) & (price <= high)]
            least, most = cost(float(own.min())), cost(float(own.max()))
            range_of = f"cost {least}" if least == most else f"cost {least} to {most}"
            titles.append(f"{range_of} ({count(len(own), 'sensor')})")
            low = high
        return cls(edges, tuple(titles))

    def shares(self, one: Bought, point: int) -> FloatArray:
        """The mean share of rows that buy a sensor of each group, NaN where there is none."""
        place = np.searchsorted(self.edges, one.sensors.price)
        sums, sizes = (
            np.bincount(place, weights, len(self.edges) + 1)[:-1]
            for weights in (one.share[point], None)
        )
        none = np.full(len(sums), np.nan)
        return np.asarray(np.divide(sums, sizes, out=none, where=sizes > 0))


def pictures(
    store: Store, run: str, dataset: str, view: View, learners: Sequence[str]
) -> dict[str, Any] | None:
    """The pictures of one data set as the page's script reads them; None where nothing is kept."""
    kept = store.bought(run, dataset=dataset)
    if not kept or not len(kept[0].sensors.price):
        return None
    trials = {(one.learner, one.fold, one.seed, canonical(one.params)): one for one in kept}
    groups = Groups.of(np.array(kept[0].sensors.price))
    trees: dict[tuple[Any, ...], int] = {}
    names: dict[str, int] = {}
    of = {}
    for curve in view.curves:
        if found := _of_learner(curve, trials, groups, trees, names):
            of[str(learners.index(curve.learner))] = found
    shown = [dict(zip("pnc", tree, strict=True)) for tree in trees]
    return {"groups": groups.titles, "of": of, "trees": shown, "names": list(names)} if of else None


Trials = Mapping[tuple[str, int, int, str], "Bought"]


def _of_learner(
    curve: Curve,
    trials: Trials,
    groups: Groups,
    trees: dict[tuple[Any, ...], int],
    names: dict[str, int],
) -> dict[str, Any] | None:
    """Budgets ``x``, percentages ``s`` by step and group, the sensors ``b`` (``_bought``), and
    where there are stages which of ``trees`` (``t``) and the percentages ``r`` that reach them."""
    steps: dict[str, list[Any]] = {"x": [], "s": [], "b": [], "t": [], "r": []}
    for step in _spread(len(curve.picked)):
        points = [_kept(curve.learner, pick, trials) for pick in curve.picked[step]]
        there = [point for point in points if point]
        if len(there) < len(points):
            continue
        share = np.mean([groups.shares(one, place) for one, place in there], axis=0)
        tree, reached = _stages(*there[0], trees)
        steps["x"].append(exact(curve.budget[step]))
        steps["s"].append([None if np.isnan(v) else round(100 * float(v)) for v in share])
        steps["b"].append(_bought(there, names))
        steps["t"].append(tree)
        steps["r"].append(reached)
    if not any(steps["r"]):
        del steps["t"], steps["r"]
    return steps if steps["x"] else None


def _bought(points: Sequence[tuple[Bought, int]], names: dict[str, int]) -> list[Any]:
    """Of the sensors bought for every row, for some and never: how many, and which (``NAMED`` at
    most, as places in ``names``), of some the percentages; last what the unused would cost."""
    sensors = points[0][0].sensors
    price = np.array(sensors.price)
    share = np.mean([one.share[place] for one, place in points], axis=0)
    order = np.lexsort((-price, -share, -share * price))
    every, never = share >= EVERY, share == NEVER
    found: list[Any] = []
    for part in (every, ~every & ~never, never):
        own = order[part[order]]
        first = own[:NAMED].tolist()
        titles = (one_line(str(sensors.names[k]))[:60] for k in first)
        found += [len(own), [names.setdefault(title, len(names)) for title in titles]]
        if part is not every and part is not never:
            found.append([round(100 * float(share[k]), 1) for k in first])
    return [*found, shown_cost(float(price[never].sum()))]


def _spread(steps: int) -> IntArray:
    """A few of so many steps, the first and the last among them."""
    return (
        np.unique(np.linspace(0, steps - 1, STEPS).round().astype(int)) if steps else np.arange(0)
    )


def _kept(
    learner: str, pick: tuple[int, int, str, str], trials: Trials
) -> tuple[Bought, int] | None:
    fold, seed, params, point = pick
    one = trials.get((learner, fold, seed, canonical(json.loads(params or "{}"))))
    setting = json.loads(point or "{}")
    return (one, one.settings.index(setting)) if one and setting in one.settings else None


def _stages(
    one: Bought, place: int, trees: dict[tuple[Any, ...], int]
) -> tuple[int, list[int] | None]:
    """Which tree of stages it is, and the share of rows that reach each in percent."""
    stages: Stages | None = one.stages
    if stages is None or place not in stages.reached or not 1 < len(stages.parent) <= MOST_STAGES:
        return -1, None
    prices = tuple(exact(price) for price in stages.price)
    tree = trees.setdefault((stages.parent, stages.sensors, prices), len(trees))
    return tree, [round(100 * share) for share in stages.reached[place]]
