"""Pairs of learners of a run, at matched cost within a budget or at a target of quality: their
difference in quality, its certainty, and the cost ratio."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from bench_core.arrays import BoolArray, FloatArray
from bench_core.errors import UsageError
from bench_core.leaderboard.assembly import primary_metric, uses_of
from bench_core.metrics.frontier import hull, mixed_reaching, mixed_within, share_of, taken
from bench_core.results.budgets import KEEP, Limit, Target
from bench_core.results.operating_points import Criterion, of_dataset, points_within, undefined
from bench_core.statistics import LEVEL, NORMAL_QUANTILE
from bench_core.statistics.bootstrap import draw, lacking
from bench_core.statistics.comparison import Difference, Interval, differences
from bench_core.statistics.repeats import (
    Repeat,
    over_repeats,
    stored_repeats,
    units_within,
    with_seeds,
)
from bench_core.terminal.wording import listed

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

THIRDS = ("least", "middle", "most")
_RESAMPLES = 10_000


@dataclass(frozen=True, slots=True)
class Pair:
    """Learner ``a`` against learner ``b``."""

    a: str
    b: str
    quality: tuple[float, float]
    difference: Difference  # a - b
    cost: tuple[float, float]  # of a, and of b at the quality of a; NaN if b never reaches it
    cost_ratio: float  # second over first
    cost_interval: Interval
    parts: Mapping[str, tuple[tuple[float, Interval], ...]]  # difference by kind of unit
    mixed: tuple[bool, bool] = (False, False)  # with the constant, in every repeat


def pairs_within(
    info: RunInfo,
    store: Store,
    frame: pd.DataFrame,
    dataset: str,
    names: Sequence[str],
    limit: Limit,
    *,
    interest: float,
    against: str = "",
) -> tuple[list[Repeat], list[Pair], list[str]]:
    """Return the repeats finished by all ``names`` with a result within the limit, every pair of
    them (or the pairs of the learner ``against``, one of them, with each other one), and the other
    names.

    At a target each learner takes, in each draw, its cheapest mixture that reaches the target, or
    else its best point. ``interest`` is the smallest relevant difference, as a share of the better
    quality. Raises UsageError if fewer than two learners have a result within the limit, or not
    ``against``, or if the metric is not defined.
    """
    metric = primary_metric(info, dataset)
    if places := undefined(of_dataset(frame, dataset, metric.name), metric.name):
        raise UsageError(f"{dataset}: {metric.name} is not defined on {places}: no comparison")
    higher, needed, words = metric.higher_is_better, list(names), ""
    if isinstance(limit, Target):
        words = limit.words(metric.name, info.reference)
        needed += [info.reference] if limit.kind == KEEP else []
        every = stored_repeats(store, info.run, dataset, [*dict.fromkeys(needed)])
        every = _having(every, [info.reference]) if limit.kind == KEEP else every
    else:
        words = limit.words
        every = stored_repeats(store, info.run, dataset, names, within=limit)
    there = [name for name in names if any(name in repeat.candidates for repeat in every)]
    found = _having(every, there)
    if there and not found:
        raise UsageError(
            f"{dataset}: no fold and seed at which all of {', '.join(there)} have finished"
        )
    if isinstance(limit, Target):
        own = frame[(frame["dataset"] == dataset) & frame["learner"].isin(needed)]
        reached = points_within(own, metric, limit, info.reference)["learner"].value_counts()
        there = [name for name in there if reached.get(name, 0) == len(found)]
    others = [name for name in names if name not in there]
    if len(there) < 2 or against in others:
        raise UsageError(f"{dataset}: no result of {listed(others)} at {words}")
    if isinstance(limit, Target):
        rule = _Rule(higher, target=limit, reference=info.reference)
    else:
        # for a cap or a cost of 95% of rows, only points within the limit remain
        rule = _Rule(higher, budget=limit.amount if limit.kind == "mean" else math.inf)
    pairs = list(combinations(range(len(there)), 2))
    if against:
        mine = there.index(against)
        pairs = [(mine, k) for k in range(len(there)) if k != mine]
    grouped = any((uses_of(info, dataset)[0].get("queries") or {}).values())
    return found, _compared(found, there, pairs, rule, metric, interest, grouped), others


@dataclass(frozen=True, slots=True)
class _Rule:
    """Rule of choice for each learner: at a mean cost (inf: at its best), or at a target."""

    higher: bool
    budget: float = math.inf
    target: Target | None = None
    reference: str = ""

    def aim(self, repeat: Repeat, seed: int) -> FloatArray:
        """Return the quality to reach in each draw."""
        assert self.target is not None
        if self.target.kind != KEEP:
            return np.full(_RESAMPLES + 1, self.target.amount)
        top = draw(repeat.candidates[self.reference], _RESAMPLES, seed).valid_quality
        best = (np.fmax if self.higher else np.fmin).reduce(top, axis=1)
        return share_of(best, self.target.amount, self.higher)


def _having(found: Sequence[Repeat], names: Sequence[str]) -> list[Repeat]:
    return [repeat for repeat in found if repeat.candidates.keys() >= {*names}]


def _compared(
    found: Sequence[Repeat],
    names: Sequence[str],
    pairs: list[tuple[int, int]],
    rule: _Rule,
    metric: Criterion,
    interest: float,
    grouped: bool,
) -> list[Pair]:
    """Compare pairs of the learners ``names``, each chosen by a rule. ``grouped``: in queries."""
    drawn = [_drawn(repeat, names, rule, seed) for repeat, seed in with_seeds(found)]
    kept = np.logical_and.reduce([defined for _, _, defined, _ in drawn])
    mixed = np.logical_and.reduce([own for *_, own in drawn])
    if where := lacking(kept):
        raise UsageError(f"{metric.name} is not defined {where}: no comparison")
    level = over_repeats(found, [quality[:, kept] for quality, *_ in drawn])
    width = [interest * float(np.abs(level.observed[[*pair]]).max()) for pair in pairs]
    units = [units_within(found, name, rule.budget, rule.higher) for name in names]
    result = []
    for (a, b), one in zip(pairs, differences(level, pairs, width), strict=True):
        cost = over_repeats(found, [cost[a][:, kept] for _, cost, *_ in drawn]).draws
        ratio = _ratio(cost[b], cost[a])
        edges = np.quantile(ratio[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="nearest")
        # sums in 32 bits
        quality = float(f"{level.observed[a]:.7g}"), float(f"{level.observed[b]:.7g}")
        kinds = {f"cost to {names[a]}": units[a][1]}
        kinds = {"rows of a query": units[a][2], **kinds} if grouped else kinds  # else copies
        kinds = kinds if rule.target is None else {}
        parts = {kind: thirds(units[a][0] - units[b][0], by) for kind, by in kinds.items()}
        parts = {kind: own for kind, own in parts.items() if own}
        paid = float(cost[a][0]), float(cost[b][0])
        price = paid, float(ratio[0]), Interval(*map(float, edges))
        free = bool(mixed[a]), bool(mixed[b])
        result.append(Pair(names[a], names[b], quality, one, *price, parts, free))
    return result


def _drawn(
    repeat: Repeat, names: Sequence[str], rule: _Rule, seed: int
) -> tuple[FloatArray, FloatArray, BoolArray, BoolArray]:
    """Return the test quality as chosen (learners, draws); the test cost at which each learner
    equals learner a on validation or reaches the target (a, learners, draws), NaN if never; True
    for draws in which the metric is defined; and True for learners whose choice mixes the constant,
    a free point. As on the board, a learner that does not keep the reference's quality in a draw
    pays the reference's cost."""
    every = [draw(repeat.candidates[name], _RESAMPLES, seed) for name in names]
    corners = [hull(means.valid_cost, means.valid_quality, rule.higher) for means in every]
    matched = [mixed_within(own, rule.budget) for own in corners]
    target = None if rule.target is None else rule.aim(repeat, seed)
    if target is not None:
        reaching = [mixed_reaching(own, target, rule.higher) for own in corners]
        matched = [one.or_else(best) for one, best in zip(reaching, matched, strict=True)]
        paid = np.array([taken(m.test_cost, c) for m, c in zip(every, reaching, strict=True)])
        if rule.target is not None and rule.target.kind == KEEP:
            needed = draw(repeat.candidates[rule.reference], _RESAMPLES, seed)
            edge = hull(needed.valid_cost, needed.valid_quality, rule.higher)
            whole = taken(needed.test_cost, mixed_reaching(edge, target, rule.higher))
            paid = np.where(np.isnan(paid), whole, paid)
    cost = np.empty((len(names), len(names), _RESAMPLES + 1))
    for a, choice in enumerate(matched):
        if target is not None:
            cost[a] = paid
            continue
        aim = taken(every[a].valid_quality, choice)
        for b, means in enumerate(every):
            own = choice if a == b else mixed_reaching(corners[b], aim, rule.higher)
            cost[a, b] = taken(means.test_cost, own)
    quality = [taken(m.test_quality, c) for m, c in zip(every, matched, strict=True)]
    free = [
        m.valid_cost[0, c.cheaper[0]] == 0 < m.valid_cost[0, c.point[0]]
        for m, c in zip(every, matched, strict=True)
    ]
    return np.stack(quality), cost, every[0].defined, np.array(free)


def _ratio(cost: FloatArray, other: FloatArray) -> FloatArray:
    """Return the ratio of two costs; a cost is NaN where a learner never reaches the quality."""
    free = np.where(cost > 0, np.inf, 1.0)
    found = np.divide(cost, other, out=free, where=other > 0)
    found = np.where(np.isnan(cost), np.inf, np.where(np.isnan(other), 0.0, found))
    return np.where(np.isnan(cost) & np.isnan(other), 1.0, found)


def thirds(gain: FloatArray, by: FloatArray) -> tuple[tuple[float, Interval], ...]:
    """Return the mean gain of (m,) in the lower, middle and upper third of ``by``; () if units do
    not fall into three parts."""
    low, high = np.quantile(by, [1 / 3, 2 / 3])
    inside = (by <= low, (by > low) & (by <= high), by > high)
    if any(part.sum() < 2 for part in inside):
        return ()
    return tuple(_mean(gain[part]) for part in inside)


def _mean(values: FloatArray) -> tuple[float, Interval]:
    # normal approximation: thirds of a test set are large
    mean = float(values.mean())
    error = NORMAL_QUANTILE * float(values.std(ddof=1)) / len(values) ** 0.5
    return mean, Interval(mean - error, mean + error)
