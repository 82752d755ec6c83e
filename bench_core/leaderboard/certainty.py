"""Certainty of a board: standings at budgets, intervals, tie tiers, savings, the order of rows, and
one number for each curve. Everything is computed from the chosen points of
``bench_core.leaderboard.draws``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

import numpy as np

from bench_core.arrays import Float32Array, FloatArray, IntArray
from bench_core.errors import UsageError
from bench_core.leaderboard.board import (
    UNKNOWN,
    Measure,
    Saved,
    Standing,
    Standings,
    lost_below,
)
from bench_core.leaderboard.draws import Chosen, Draws
from bench_core.metrics import parse_metric
from bench_core.metrics.frontier import share_of
from bench_core.results.budgets import CAP, Budget
from bench_core.results.operating_points import OVER
from bench_core.statistics import LEVEL, WIDE_LEVEL
from bench_core.statistics.comparison import (
    Interval,
    better_than,
    bounded_interval,
    difference_of_shares,
    differences,
    interval,
    spread_of,
    tiers_and_ranks,
)
from bench_core.statistics.repeats import Level, on_same_rows
from bench_core.terminal.wording import cost

FEW_REPEATS = 4
"""With up to so many repeats, a conclusion states how many would separate two learners."""


def standings(draws: Draws, budget: Budget | None, chosen: Chosen) -> Standings:
    """Return all learners at a budget, best tier first."""
    quality, paid = draws.mean(chosen.quality), draws.mean(chosen.cost)
    there = [k for k in range(len(draws.names)) if not math.isnan(quality[k])]
    by_learner: dict[int, Standing] = {}
    if compared := [k for k in draws.places if k in there]:
        level, costs = (draws.level(of, compared) for of in (chosen.quality, chosen.cost))
        ranked = tiers_and_ranks(better_than(level, draws.higher), len(there))
        limit = budget.amount if budget is not None and budget.kind == "mean" else math.inf
        for k, (tier, ranks), line in zip(compared, ranked, np.eye(len(compared)), strict=True):
            by_learner[k] = Standing(
                interval=quality_interval(draws.metric.name, level, line),
                tier=tier,
                ranks=ranks,
                over=limit * (1 + 1e-6) < interval(costs, line).low,
            )
    order = sorted(there, key=lambda k: (-draws.sign * quality[k], paid[k], draws.names[k]))
    tier_of = _tiers_of_all(order, quality, {k: one.tier for k, one in by_learner.items()})
    capped = budget is not None and budget.kind == CAP
    rows = [
        replace(
            by_learner.get(k, Standing(ranks=(1, len(there)))),
            beyond=_beyond(draws, chosen.row[:, k]) if capped else (0.0, 0.0),
            learner=draws.names[k],
            quality=float(quality[k]),
            cost=float(paid[k]),
            tier=tier_of[k],
            valid=_on_validation(draws, chosen.row[draws.there[:, k], k]),
        )
        for k in sorted(order, key=tier_of.__getitem__)
    ]
    last = len(there) + 1, len(draws.names)
    lacking = sorted({*draws.names} - {row.learner for row in rows})
    rows += [Standing(name, ranks=last) for name in lacking]
    return Standings(budget, tuple(rows), missing(draws))


def _on_validation(draws: Draws, rows: IntArray) -> tuple[float, float]:
    """Return the mean quality and cost on validation of these points, one of each repeat."""
    cost, quality = draws.valid(rows)
    return float(quality.mean()), float(cost.mean())


def _beyond(draws: Draws, rows: IntArray) -> tuple[float, float]:
    """Return the share of rows beyond the cap at these points, one of each repeat, and by how much
    they exceed it on average."""
    if not {*OVER} <= {*draws.points.columns}:
        return 0.0, 0.0
    share, excess = draws.points.iloc[rows][[*OVER]].to_numpy(dtype=np.float64).T
    return float(share.mean()), float((share * excess).sum() / (share.sum() or 1.0))


def missing(draws: Draws) -> str:
    """Return why a data set has no intervals, or ""."""
    return "" if draws.places else draws.note


def quality_interval(metric: str, level: Level, line: FloatArray) -> Interval:
    """Return the interval of a quality, within the bounds of its metric."""
    bounds: tuple[float, float] | None = None
    with suppress(UsageError):  # a run does not store the bounds of plugins' metrics
        bounds = getattr(parse_metric(metric), "bounds", None)
    least, most = bounds or (-math.inf, math.inf)
    if math.isfinite(most - least):
        return bounded_interval(level, line, (least, most))
    low, high = interval(level, line)
    return Interval(max(low, least), min(high, most))


def difference_interval(metric: str, level: Level, line: FloatArray) -> Interval:
    """Return the interval of a difference of two qualities."""
    return (difference_of_shares if metric == "accuracy" else interval)(level, line)


def _tiers_of_all(
    order: Sequence[int], quality: FloatArray, tier: Mapping[int, int]
) -> dict[int, int]:
    """Return the tiers of learners in ``order``. Those that cannot be compared (a repeat failed, or
    there are no values) are in the tier of the next better learner. If none can be compared, equal
    learners share a tier."""
    tiers: dict[int, int] = {}
    current, value = 0, math.nan
    for k in order:
        if not tier and quality[k] != value:
            current, value = current + 1, quality[k]
        current = tiers[k] = tier.get(k, max(current, 1))
    return tiers


def cost_ratio(cost: FloatArray, other: FloatArray) -> FloatArray:
    """Return a cost over another one; over a free one infinity, or 1 if both are free."""
    cost, other = np.broadcast_arrays(cost, other)
    free = np.where(cost > 0, np.inf, 1.0)
    return np.divide(cost, other, out=free, where=~(other <= 0))


def replaced_costs(draws: Draws, chosen: Chosen) -> FloatArray:
    """Return the reference's cost by repeat, learner and draw (r, l, draws), alike for all
    learners; NaN without a sure point."""
    reference = draws.names.index(draws.reference)
    replaced = np.where(chosen.sure[:, reference, None], chosen.cost[:, reference], np.nan)
    return np.broadcast_to(replaced[:, None], chosen.cost.shape)


def mean_savings(draws: Draws, chosen: Chosen) -> FloatArray:
    """Return the saving of each learner (l,): the reference's mean cost over the repeats, divided
    by the learner's. A mean of the repeats' savings would be too large."""
    whole = replaced_costs(draws, chosen)
    return cost_ratio(draws.mean(whole), draws.mean(chosen.cost))


def log_savings(draws: Draws, chosen: Chosen) -> FloatArray:
    """Return values (r, l, draws) whose mean over repeats is the logarithm of ``mean_savings`` in
    every draw, and which vary over repeats as it does (delta method). A learner or reference that
    is not sure in a draw saves nothing there."""
    whole, paid = replaced_costs(draws, chosen), chosen.cost
    whole, paid = (np.where(np.isnan(a), b, a) for a, b in ((whole, paid), (paid, whole)))
    whole, paid = np.nan_to_num(whole, nan=1.0), np.nan_to_num(paid, nan=1.0)
    weight = np.zeros(len(paid))
    groups = on_same_rows(draws.found)
    for same in groups:
        weight[same] = 1 / (len(same) * len(groups))  # as ``over_repeats`` does
    means = [np.tensordot(weight, cost, 1) for cost in (whole, paid)]
    apart = [
        np.divide(cost, mean, out=np.ones_like(cost), where=mean > 0)
        for cost, mean in zip((whole, paid), means, strict=True)
    ]
    logs = np.log(np.clip(cost_ratio(*means), 1 / FREE, FREE)) + (apart[0] - apart[1])
    return np.asarray(logs.round(6))


FREE = 1e6  # saving of a learner that pays nothing, in logarithms


def savings(draws: Draws, chosen: Chosen, best: Chosen, share: float) -> list[tuple[float, Saved]]:
    """Return each learner's saving with its certainty, where the points ``chosen`` keep a share of
    the reference's quality; NaN unless it is sure in every repeat and the metric is defined."""
    learners = range(len(draws.names))
    measured = draws.reference and not draws.undefined
    keeps = [k for k in learners if kept(draws, chosen, k)] if measured else []
    if not keeps:
        return [(math.nan, Saved())] * len(learners)
    reference = draws.names.index(draws.reference)
    saving = mean_savings(draws, chosen).tolist()
    saved = {k: Saved(beaten_by=beaten_by(draws, chosen, k)) for k in keeps}
    compared = [k for k in keeps if k in draws.places] if reference in draws.places else []
    if compared:
        logs = log_savings(draws, chosen)
        level = draws.level(logs, compared)
        least = share_of(best.held[:, reference], lost_below(share), draws.higher)[:, None]
        excess = draws.level((chosen.held - least) * draws.sign, compared)
        quality = draws.level(chosen.held, compared)
        gaps = draws.level(chosen.held - best.held[:, reference][:, None], compared)
        lines = np.eye(len(compared))
        differ = partial(difference_interval, draws.metric.name)
        still = [j for j, line in enumerate(lines) if differ(excess, line).high >= 0]
        better = better_than(draws.level(logs, [compared[j] for j in still]), True)
        ranked = dict(zip(still, tiers_and_ranks(better), strict=True))
        few = 1 < len(draws.repeats) <= FEW_REPEATS
        for j, k in enumerate(compared):
            tier, ranks = ranked.get(j, (0, (len(still) + 1, len(compared))))
            saved[k] = Saved(
                interval=_ends(level, j, saving[k], LEVEL),
                wide=_ends(level, j, saving[k], WIDE_LEVEL),
                tier=tier,
                ranks=ranks,
                lost=j not in ranked,
                beaten_by=saved[k].beaten_by,
                quality=quality_interval(draws.metric.name, quality, lines[j]),
                gap=differ(gaps, lines[j]),
                more=_more_repeats(draws, level, compared, j) if few else {},
            )
    return [(saving[k], saved[k]) if k in saved else (math.nan, Saved()) for k in learners]


def _more_repeats(draws: Draws, level: Level, learners: Sequence[int], j: int) -> dict[str, float]:
    """Return the factor on the repeats that would separate the j-th learner from each other one,
    as ``compare`` does, by name."""
    pairs = [(j, other) for other in range(len(learners)) if other != j]
    found = differences(level, pairs, [0.0] * len(pairs))
    return {
        draws.names[learners[other]]: one.more_units
        for (_, other), one in zip(pairs, found, strict=True)
    }


def kept(draws: Draws, chosen: Chosen, k: int) -> bool:
    """True if a learner is sure in each of its repeats."""
    return bool(chosen.sure[draws.there[:, k], k].all())


def beaten_by(draws: Draws, chosen: Chosen, k: int) -> str:
    """Return another learner that has, in every repeat, a point that is on validation at least as
    good and as cheap as a learner's chosen one, and better in one of both; "" if there is none."""
    others = {name for name in draws.names if name != draws.names[k]}
    for r in np.flatnonzero(draws.there[:, k]).tolist():
        cost, quality = draws.valid(chosen.row[r, k])
        for name in sorted(others):
            costs, qualities = draws.valid(draws.rows(r, name))
            better, worse = draws.sign * (qualities - quality), costs - cost
            if not ((better >= 0) & (worse <= 0) & ((better > 0) | (worse < 0))).any():
                others.discard(name)
    return min(others, default="")


def _ends(logs: Level, learner: int, saving: float, share: float) -> Interval:
    # of repeats with rows of their own, draws have no more than the spread
    alone = logs.groups > 1 and not logs.shared.any()
    ends = interval(logs, np.eye(len(logs.draws))[learner], share) if alone else None
    with np.errstate(over="ignore"):  # two repeats may leave all savings possible
        ratios = np.exp(ends or spread_of(logs, learner, share))
    low, high = np.where(ratios > FREE / 10, np.inf, ratios).tolist()
    return Interval(min(low, saving), max(high, saving))


def saving_order(saved: Saved, saving: float, paid: float) -> tuple[object, ...]:
    """Return the sort key of a learner that keeps the quality: the tier of its saving; within a
    tier first significant savings; then the cost, as displayed."""
    more = saving > 1
    sure = more and saved.significant and not saved.beaten_by
    return saved.tier or math.inf, not sure, float(cost(paid)), more, paid


def areas(
    draws: Draws, curves: Mapping[Budget, Float32Array]
) -> dict[str, tuple[Measure, Measure]]:
    """Return area and regret by learner: the mean quality within the budgets of ``curves`` (test
    quality by repeat, learner and draw), and its distance to the best learner at each.

    A learner without a point within the lowest budget has none.
    """
    mean = np.array([draws.mean(quality) for quality in curves.values()])  # (b, l)
    complete = [k for k in range(len(draws.names)) if curves and not np.isnan(mean[:, k]).any()]
    compared = [k for k in complete if k in draws.places] or complete
    if not compared:
        return {}
    first = np.array(compared)[(draws.sign * mean[:, compared]).argmax(axis=1)].tolist()
    # (r, l + 1, draws): a column for each learner, and one for the best
    area = sum(
        np.concatenate([quality, quality[:, [k]]], axis=1) / len(curves)
        for quality, k in zip(curves.values(), first, strict=True)
    )
    # the best learner at each budget
    most = float(mean[np.arange(len(first)), first].mean())
    level = draws.level(np.asarray(area), [*compared, len(draws.names)]) if draws.places else None
    by_learner = {}
    for k in complete:
        value, sure, below = float(mean[:, k].mean()), UNKNOWN, UNKNOWN
        if level is not None and k in compared:
            line, *_, last = np.eye(len(compared) + 1)[[compared.index(k), -1]]
            sure = quality_interval(draws.metric.name, level, line)
            below = interval(level, draws.sign * (last - line))
        by_learner[draws.names[k]] = (
            Measure(value, sure),
            Measure(draws.sign * (most - value), below),
        )
    return by_learner
