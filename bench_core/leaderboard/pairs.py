"""Differences between pairs of learners at a limit, with their certainty.

Both learners of a pair are scored on the same queries or rows, so shared noise cancels in their
difference. Draws repeat the choice of points (``bench_core.leaderboard.draws``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.errors import UsageError
from bench_core.leaderboard.certainty import FREE, cost_ratio
from bench_core.leaderboard.draws import (
    NO_LIMIT,
    Chosen,
    Draws,
    primary_metric,
    reference_of,
    undefined,
)
from bench_core.leaderboard.selection import Choice
from bench_core.metrics.frontier import cheapest, taken
from bench_core.results.budgets import CAP, KEEP, Budget, Limit, Target
from bench_core.results.operating_points import REPEAT, of_dataset
from bench_core.statistics.comparison import Difference, Interval, differences, percentiles
from bench_core.statistics.repeats import Repeat, over_repeats, with_seeds
from bench_core.terminal.wording import listed

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

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

    def fields(self) -> dict[str, float | str]:
        """Return the figures by name, for files and Python."""
        return {
            "a": self.a,
            "b": self.b,
            "quality a": self.quality[0],
            "quality b": self.quality[1],
            "difference": self.difference.value,
            **self.difference.interval._asdict(),
            "p": self.difference.p,
            "p adjusted": self.difference.adjusted,
            "alike": self.difference.equivalent,
            "cost a": self.cost[0],
            "cost b": self.cost[1],  # at the quality of a
            "cost ratio": self.cost_ratio,
            "cost ratio low": self.cost_interval.low,
            "cost ratio high": self.cost_interval.high,
            "more data": self.difference.more_units,
        }


def usual_limit(
    info: RunInfo, store: Store, frame: pd.DataFrame, dataset: str, names: Sequence[str]
) -> tuple[Limit, str]:
    """Return the default limit: a share of the reference's quality that all learners are sure to
    keep, else any cost, with the reason."""
    choice = Choice(info, store, frame, dataset)
    # ``pairs_within`` refuses an undefined metric with the reason
    if choice.undefined or choice.metric.in_money:
        return NO_LIMIT, ""
    share = Target(info.keep)
    sure = {one.learner for one in choice.at(share).found if one.sure}
    if others := [name for name in names if name not in sure]:
        why = choice.why_not(share, others[0])
        return NO_LIMIT, f"{why}; shown is the best at any cost"
    return share, ""


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
    costs: bool = True,
) -> tuple[list[Repeat], list[Pair], list[str]]:
    """Return the repeats finished by all ``names`` with a result within the limit, every pair of
    them (or the pairs of the learner ``against``, one of them, with each other one), and the other
    names.

    At a target each learner takes the point that is sure to reach it; in a draw without one, its
    observed point. ``interest`` is the smallest relevant difference, as a share of the better
    quality. Without ``costs`` only qualities are compared. Raises UsageError if fewer than two
    learners have a result within the limit, or not ``against``, or if the metric is not defined.
    """
    metric = primary_metric(info, dataset)
    rows = of_dataset(frame, dataset, metric.name)
    if why := undefined(info, rows, dataset, metric.name):
        raise UsageError(f"{dataset}: no comparison: {why}")
    reference = reference_of(info, dataset)
    words = limit.words if isinstance(limit, Budget) else limit.words(metric.name, reference)
    needed = [reference] if limit.kind == KEEP else []
    finished = rows[(rows["status"] == "ok") & (rows["audit"] != "failed")]
    there = [name for name in names if name in {*finished["learner"]}]
    done = finished.groupby([*REPEAT])["learner"].agg(set)
    compared = {*there, *needed}
    common = done.index[[learners >= compared for learners in done]]
    if there and common.empty:
        raise UsageError(
            f"{dataset}: no fold and seed at which all of {', '.join(there)} have finished"
        )
    rows = rows[rows.set_index([*REPEAT]).index.isin(common)]
    cap = limit.amount if limit.kind == CAP else None
    draws = Draws(info, store, rows, dataset, cap=cap, learners=compared, resamples=_RESAMPLES)
    chosen = draws.chosen([limit])[0][limit]
    if draws.places == [] and draws.left_out:
        raise UsageError(f"{draws.note}: no comparison")
    place = {draws.names[k]: k for k in draws.places}
    # a target needs a sure point in each repeat, a budget any point
    held = chosen.sure if isinstance(limit, Target) else chosen.row >= 0
    there = [name for name in there if name in place and held[:, place[name]].all()]
    others = [name for name in names if name not in there]
    if len(there) < 2 or against in others:
        raise UsageError(f"{dataset}: {lacking(limit, others, words)}")
    pairs = list(combinations(range(len(there)), 2))
    if against:
        mine = there.index(against)
        pairs = [(mine, k) for k in range(len(there)) if k != mine]
    learners = [place[name] for name in there]
    paid = _costs(draws, chosen, learners, limit, sorted({a for a, _ in pairs}), costs)
    return draws.found, [*_compared(draws, chosen, learners, pairs, paid, interest)], others


def lacking(limit: Limit, learners: Sequence[str], words: str) -> str:
    """Return that learners have no point at a limit, in words."""
    if isinstance(limit, Budget):
        return f"no result of {listed(learners)} at {words}"
    are = "is" if len(learners) == 1 else "are"
    return f"{listed(learners)} {are} not sure to reach {words}"


def _compared(
    draws: Draws,
    chosen: Chosen,
    learners: Sequence[int],
    pairs: list[tuple[int, int]],
    paid: dict[int, FloatArray],
    interest: float,
) -> Iterator[Pair]:
    """Yield the comparison of each pair of ``learners``."""
    quality = np.where(np.isnan(chosen.quality), chosen.held, chosen.quality)
    level = draws.level(quality, learners)
    width = [interest * float(np.abs(level.observed[[*pair]]).max()) for pair in pairs]
    for (a, b), difference in zip(pairs, differences(level, pairs, width), strict=True):
        costs = paid[a]
        cost = over_repeats(draws.found, [*costs[:, [a, b]]]).draws[:, 0]
        ratio = float(_ratio(cost[1:], cost[:1])[0])
        # as of savings: the noise of several repeats may exceed the smaller cost
        logs = np.log(np.clip(_ratio(costs[:, b], costs[:, a]), 1 / FREE, FREE))
        ratios = np.exp(over_repeats(draws.found, [*logs[:, None]]).draws[0, 1:])
        ratios[ratios > FREE / 10], ratios[ratios < 10 / FREE] = np.inf, 0.0
        low, high = percentiles(ratios, method="nearest")
        yield Pair(
            draws.names[learners[a]],
            draws.names[learners[b]],
            (float(level.observed[a]), float(level.observed[b])),
            difference,
            (float(cost[0]), float(cost[1])),
            ratio,
            Interval(min(low, ratio), max(high, ratio)),
        )


def _costs(
    draws: Draws,
    chosen: Chosen,
    learners: Sequence[int],
    limit: Limit,
    first: Sequence[int],
    wanted: bool,
) -> dict[int, FloatArray]:
    """Return, for each place a (of ``first``) among ``learners``, test costs (r, l, draws) of all
    at a's validation quality, or at the target; NaN if one never reaches it. As on the board, a
    learner without a sure point in a draw pays the reference's cost."""
    if not wanted:
        return dict.fromkeys(first, np.full_like(chosen.cost[:, learners], np.nan))
    if isinstance(limit, Target):
        paid = chosen.cost
        if limit.kind == KEEP:
            whole = chosen.cost[:, [draws.names.index(draws.reference)]]
            paid = np.where(np.isnan(paid), whole, paid)
        return dict.fromkeys(first, paid[:, learners])
    costs: dict[int, list[list[FloatArray]]] = {a: [] for a in first}
    for r, (_, seed) in enumerate(with_seeds(draws.found)):
        means = [draws.means(r, draws.names[k], seed) for k in learners]
        for a in first:
            point = draws.within(limit, means[a])
            aim = draws.sign * taken(means[a].valid_quality, point)[:, None]
            reach = [(draws.sign * of.valid_quality >= aim) for of in means]
            at = [
                cheapest(of.valid_cost, reaches) for of, reaches in zip(means, reach, strict=True)
            ]
            at[a] = point
            paid_at = zip(means, at, strict=True)
            costs[a].append([taken(of.test_cost, place)[draws.defined] for of, place in paid_at])
    return {a: np.array(by_repeat) for a, by_repeat in costs.items()}


def _ratio(cost: FloatArray, other: FloatArray) -> FloatArray:
    """Return the ratio of two costs; a cost is NaN where a learner never reaches the quality."""
    ratio = cost_ratio(cost, other)
    ratio = np.where(np.isnan(cost), np.inf, np.where(np.isnan(other), 0.0, ratio))
    return np.where(np.isnan(cost) & np.isnan(other), 1.0, ratio)
