"""Certainty of a board: standings at budgets, intervals, tie tiers, savings, the order of rows, and
one number for each curve. Everything is computed from the chosen points of
``bench_core.leaderboard.draws``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from bench_core.arrays import Float32Array, FloatArray
from bench_core.leaderboard.board import UNKNOWN, Board, Measure, Row, Saved, Standing, Standings
from bench_core.leaderboard.draws import Chosen, Draws
from bench_core.metrics.frontier import share_of
from bench_core.results.budgets import Budget
from bench_core.statistics import LEVEL, WIDE_LEVEL
from bench_core.statistics.comparison import (
    Interval,
    better_than,
    interval,
    rank_intervals,
    spread_of,
    tiers,
)
from bench_core.statistics.repeats import Level
from bench_core.terminal.wording import cost


def standings(draws: Draws, budget: Budget | None, chosen: Chosen) -> Standings:
    """Return all learners at a budget, best tier first."""
    quality, paid = draws.mean(chosen.quality), draws.mean(chosen.cost)
    there = [k for k in range(len(draws.names)) if not math.isnan(quality[k])]
    compared = [k for k in draws.places if k in there]
    tier: dict[int, int] = {}
    ranks: dict[int, tuple[int, int]] = {}
    ends: dict[int, Interval] = {}
    over: set[int] = set()
    if compared:
        level = draws.level(chosen.quality, compared)
        better = better_than(level, draws.higher)
        tier = dict(zip(compared, map(int, tiers(better)), strict=True))
        ranks = dict(zip(compared, rank_intervals(better, len(there)), strict=True))
        limit = budget.amount if budget is not None and budget.kind == "mean" else math.inf
        costs = draws.level(chosen.cost, compared)
        for k, line in zip(compared, np.eye(len(compared)), strict=True):
            ends[k] = clipped(draws, interval(level, line))
            over |= {k} if limit * (1 + 1e-6) < interval(costs, line).low else set()
    sign = -1 if draws.higher else 1
    order = sorted(there, key=lambda k: (sign * quality[k], paid[k], draws.names[k]))
    _place_others(order, quality, tier)
    rows = [
        Standing(
            draws.names[k],
            float(quality[k]),
            ends.get(k, UNKNOWN),
            float(paid[k]),
            tier[k],
            ranks.get(k, (1, len(there))),
            k in over,
        )
        for k in sorted(order, key=tier.__getitem__)
    ]
    last = len(there) + 1, len(draws.names)
    lacking = sorted({*draws.names} - {draws.names[k] for k in there})
    return Standings(
        budget, (*rows, *(Standing(name, ranks=last) for name in lacking)), missing(draws)
    )


def missing(draws: Draws) -> str:
    """Return why a data set has no intervals, or ""."""
    return "" if draws.places else draws.note


def clipped(draws: Draws, ends: Interval) -> Interval:
    """Clip the ends of an interval of quality to the range of units, as a mean lies in it."""
    lows, highs = zip(*(repeat.bounds for repeat in draws.found), strict=True)
    return Interval(*(float(np.clip(end, min(lows), max(highs))) for end in ends))


def _place_others(order: Sequence[int], quality: FloatArray, tier: dict[int, int]) -> None:
    """Place learners that cannot be compared (a repeat failed, or there are no values) in the tier
    of the next better learner. If none can be compared, equal learners share a tier."""
    alone = not tier
    current, value = 0, math.nan
    for k in order:
        if alone and quality[k] != value:
            current, value = current + 1, quality[k]
        current = tier.setdefault(k, max(current, 1))


def ratios(draws: Draws, chosen: Chosen) -> FloatArray:
    """Return the saving of each repeat and learner in every draw (r, l, draws): the reference's
    cost over the learner's; NaN without a sure point."""
    own = draws.names.index(draws.reference)
    whole = np.where(chosen.sure[:, own, None], chosen.cost[:, own], np.nan)[:, None]
    free = np.where(whole > 0, np.inf, 1.0) + 0 * chosen.cost
    return np.divide(whole + 0 * chosen.cost, chosen.cost, out=free, where=~(chosen.cost <= 0))


_FREE = 1e6  # saving of a learner that pays nothing


def savings(
    draws: Draws, chosen: Chosen, best: Chosen, ratio: FloatArray, lost: float
) -> dict[str, Saved]:
    """Return the certainty of the savings of learners that are sure in every repeat. ``lost``: the
    share of the reference's quality below which a saving does not count."""
    keeps = [k for k in range(len(draws.names)) if kept(draws, chosen, k)]
    found = {draws.names[k]: Saved(dominated=dominated(draws, chosen, k)) for k in keeps}
    keeps = [k for k in keeps if k in draws.places]
    own = draws.names.index(draws.reference)
    if own not in draws.places:
        return found
    # the reference is needed in draws in which a learner is not sure
    logs = np.log(np.clip(np.nan_to_num(ratio, nan=1.0, posinf=_FREE), 1 / _FREE, _FREE))
    level = draws.level(logs.round(6), keeps)
    target = share_of(best.held[:, own], lost, draws.higher)[:, None]
    short = draws.level((chosen.held - target) * (1 if draws.higher else -1), keeps)
    quality = draws.level(chosen.held, keeps)
    lines = np.eye(len(keeps))
    below = [interval(short, line).high < 0 for line in lines]
    still = [k for k in range(len(keeps)) if not below[k]]
    better = better_than(level.only(still), higher=True)
    tier = dict(zip(still, map(int, tiers(better)), strict=True))
    ranks = dict(zip(still, rank_intervals(better), strict=True))
    for k, (place, line) in enumerate(zip(keeps, lines, strict=True)):
        name = draws.names[place]
        value = float(draws.mean(ratio)[place])
        found[name] = Saved(
            interval=_ends(level, k, value, LEVEL),
            wide=_ends(level, k, value, WIDE_LEVEL),
            tier=tier.get(k, 0),
            ranks=ranks.get(k, (len(still) + 1, len(keeps))),
            lost=below[k],
            dominated=found[name].dominated,
            quality=clipped(draws, interval(quality, line)),
        )
    return found


def kept(draws: Draws, chosen: Chosen, k: int) -> bool:
    """True if a learner is sure in each of its repeats."""
    return bool(chosen.sure[draws.there[:, k], k].all())


def dominated(draws: Draws, chosen: Chosen, k: int) -> bool:
    """True if some other learner has, in every repeat, a point that is on validation at least as
    good and as cheap as a learner's chosen one, and better in one of both."""
    sign = 1 if draws.higher else -1
    others = {name for name in draws.names if name != draws.names[k]}
    for r in np.flatnonzero(draws.there[:, k]).tolist():
        cost, quality = draws.valid(chosen.row[r, k])
        for name in sorted(others):
            costs, qualities = draws.valid(draws.rows(r, name))
            better, worse = sign * (qualities - quality), costs - cost
            if not ((better >= 0) & (worse <= 0) & ((better > 0) | (worse < 0))).any():
                others.discard(name)
    return bool(others)


def lost_below(share: float) -> float:
    """Return the share of the reference's quality below which, on test, a saving does not count."""
    return max(2 * share - 1, 0.01)


def _ends(logs: Level, learner: int, saving: float, share: float) -> Interval:
    low, high = np.exp(spread_of(logs, learner, share))
    return Interval(float(min(low, saving)), float(max(high, saving)))


def saving_order(saved: Saved, saving: float, paid: float) -> tuple[object, ...]:
    """Return the sort key of a learner that keeps the quality: the tier of its saving; within a
    tier first significant savings; then the cost, as displayed."""
    more = saving > 1
    sure = more and saved.significant and not saved.dominated
    return saved.tier or math.inf, not sure, float(cost(paid)), more, paid


def areas(
    rows: Sequence[Row], board: Board, draws: Draws, curves: Mapping[Budget, Float32Array]
) -> list[Row]:
    """Return rows with ``area`` and ``regret``: the mean quality within the budgets of
    ``curves`` (test quality by repeat, learner and draw), and its distance to the best learner at
    each.

    A learner without a point within the lowest budget has none.
    """
    sign = 1 if board.higher_is_better else -1
    if not curves:
        return list(rows)
    mean = np.stack([draws.mean(quality) for quality in curves.values()])  # (b, l)
    known = [k for k in range(len(draws.names)) if not np.isnan(mean[:, k]).any()]
    compared = [k for k in known if k in draws.places] or known
    if not compared:
        return list(rows)
    first = np.array(compared)[(sign * mean[:, compared]).argmax(axis=1)].tolist()
    # (r, l + 1, draws): a column for each learner, and one for the best
    area = sum(
        np.concatenate([quality, quality[:, [k]]], axis=1) / len(curves)
        for quality, k in zip(curves.values(), first, strict=True)
    )
    # the best learner at each budget
    most = float(mean[np.arange(len(first)), first].mean())
    level = draws.level(np.asarray(area), [*compared, len(draws.names)]) if draws.places else None
    found = []
    for row in rows:
        k = draws.names.index(row.learner)
        if k in known:
            value, sure, below = float(mean[:, k].mean()), UNKNOWN, UNKNOWN
            if level is not None and k in compared:
                own = np.eye(len(compared) + 1)[compared.index(k)]
                sure = interval(level, own)
                below = interval(level, sign * (np.eye(len(own))[-1] - own))
            row = replace(
                row,
                area=Measure(value, sure),
                regret=Measure(sign * (most - value), below),
            )
        found.append(row)
    return found
