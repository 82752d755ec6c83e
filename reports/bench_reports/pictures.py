"""What rows buy along the trade-off, and the stages that they go through.

For each learner the steps of its curve that some place of the slider pays for: the share of test
rows that buy each sensor, a mean over repeats, and where its model has stages, who reaches them in
the first repeat.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench_core._io.digests import canonical
from bench_core.arrays import FloatArray, IntArray
from bench_core.errors import one_line
from bench_core.leaderboard.purchases import EVERY, NEVER
from bench_core.terminal.wording import cost, count
from bench_reports.payload import held_somewhere, packed_rows, places_of
from bench_reports.views import Curve, View, exact

if TYPE_CHECKING:
    from bench_core.results.records import Bought, Stages
    from bench_core.results.store import Store

GROUPS, MOST_STAGES, BEST = 5, 40, 6


class Groups(NamedTuple):
    """Groups of sensors by price: the group ``of`` (s,) each sensor."""

    of: IntArray
    titles: tuple[str, ...]

    @classmethod
    def by(cls, price: FloatArray) -> Groups:
        """One for each price, or five of about as many sensors."""
        edges = np.unique(price)
        if len(edges) > GROUPS:
            shares = np.linspace(0, 1, GROUPS + 1)[1:]
            edges = np.unique(np.quantile(price, shares, method="inverted_cdf"))
        of = np.searchsorted(edges, price)
        titles = []
        for k in range(len(edges)):
            own = price[of == k]
            least, most = cost(float(own.min())), cost(float(own.max()))
            range_of = f"cost {least}" if least == most else f"cost {least} to {most}"
            titles.append(f"{range_of} ({count(len(own), 'sensor')})")
        return cls(of, tuple(titles))


def pictures(
    store: Store,
    run: str,
    dataset: str,
    view: View,
    learners: Sequence[str],
    grid: Sequence[float],
    whole: Collection[str],
) -> dict[str, Any] | None:
    """The pictures of one data set as the page's script reads them, of learners that are not in
    ``whole`` at their last step alone; None where nothing is kept."""
    kept = store.bought(run, dataset=dataset)
    if not kept or not len(kept[0].sensors.price):
        return None
    sensors = kept[0].sensors
    kept = [one for one in kept if one.sensors == sensors]
    trials = {(one.learner, one.fold, one.seed, canonical(one.params)): one for one in kept}
    trees: dict[tuple[Any, ...], int] = {}
    of = {}
    for curve in view.curves:
        steps = _steps(curve, view, grid, trials)
        if steps := steps if curve.learner in whole else steps[-1:]:
            of[str(learners.index(curve.learner))] = purchases_value(steps, trees)
    return pictures_value(np.array(sensors.price), sensors.names, of, trees) if of else None


def pictures_value(
    price: FloatArray, names: Sequence[object], of: Mapping[str, Any], trees: Iterable[Any]
) -> dict[str, Any]:
    """The sensors of one data set, their groups, and what each learner buys."""
    groups = Groups.by(price)
    return {
        "groups": groups.titles,
        "group": packed_rows([groups.of.tolist()]),
        "price": [exact(one) for one in price],
        "names": [one_line(str(name))[:60] for name in names],
        "of": {place: of[place] for place in sorted(of, key=int)},
        "trees": [dict(zip("pnc", tree, strict=True)) for tree in trees],
    }


class Step(NamedTuple):
    """A step of a curve: its ``place`` on the slider, the ``share`` (s,) of rows that buy each
    sensor, and the tree of ``stages`` with the percentage that reaches each, if it has some."""

    place: int
    share: FloatArray
    stages: tuple[tuple[Any, ...], list[int]] | None = None


def purchases_value(steps: Sequence[Step], trees: dict[tuple[Any, ...], int]) -> dict[str, Any]:
    """Places ``k``; by sensor the percentages ``b`` over the steps, where 0 is never and 100 for
    every row; of stages which of ``trees`` it is (``t``, -1: none), and who reaches them (``r``).
    """
    share = np.array([step.share for step in steps])
    percent = np.clip(np.rint(100 * share), 1, 99)
    percent[share >= EVERY] = 100
    percent[share == NEVER] = 0
    found = {
        "k": packed_rows([[step.place for step in steps]]),
        "b": packed_rows(percent.astype(int).T.tolist()),
    }
    if any(step.stages for step in steps):
        places = [trees.setdefault(s.stages[0], len(trees)) if s.stages else -1 for s in steps]
        reached = [step.stages[1] if step.stages else [] for step in steps]
        found |= {"t": packed_rows([places]), "r": packed_rows(reached)}
    return found


def followed(view: View, reference: str, grid: Sequence[float]) -> set[str]:
    """Of many learners those whose purchases are shown at all budgets: the six best, the
    reference, and who is ahead at some place of the slider."""
    sign = 1 if view.metric.higher_is_better else -1
    found = {reference, *(curve.learner for curve, _ in view.ranking()[:BEST])}
    for share in grid:
        held = [(c, c.held(share * view.whole)) for c in view.curves]
        there = [(sign * c.quality[at], c.learner) for c, at in held if at >= 0]
        found |= {max(there)[1]} if there else set()
    return found


Trials = Mapping[tuple[str, int, int, str], "Bought"]


def _steps(curve: Curve, view: View, grid: Sequence[float], trials: Trials) -> list[Step]:
    """The steps of a curve whose purchases are kept for every repeat."""
    steps = held_somewhere(curve, view, grid) if curve.picked else []
    found = []
    for step, place in zip(steps, places_of(curve, view, grid, steps), strict=True):
        points = [_kept(curve.learner, pick, trials) for pick in curve.picked[step]]
        there = [point for point in points if point]
        if len(there) == len(points):
            share = np.mean([one.share[k] for one, k in there], axis=0)
            found.append(Step(place, share, _stages(*there[0])))
    return found


def _kept(
    learner: str, pick: tuple[int, int, str, str], trials: Trials
) -> tuple[Bought, int] | None:
    fold, seed, params, point = pick
    one = trials.get((learner, fold, seed, canonical(json.loads(params or "{}"))))
    setting = json.loads(point or "{}")
    return (one, one.settings.index(setting)) if one and setting in one.settings else None


def _stages(one: Bought, place: int) -> tuple[tuple[Any, ...], list[int]] | None:
    """The tree of stages, and the share of rows that reach each in percent."""
    stages: Stages | None = one.stages
    if stages is None or place not in stages.reached or not 1 < len(stages.parent) <= MOST_STAGES:
        return None
    prices = tuple(exact(price) for price in stages.price)
    tree = (tuple(stages.parent), tuple(stages.sensors), prices)
    return tree, [round(100 * share) for share in stages.reached[place]]
