"""Pairs of learners at matched cost: difference in quality, its certainty, and the cost ratio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.statistics.bootstrap import chosen_units
from bench_core.statistics.bootstrap_data import Repeat, levels
from bench_core.statistics.comparison import LEVEL, Difference, differences
from bench_core.statistics.intervals import Interval
from bench_core.statistics.point_selection import at_matched_cost, equalling

THIRDS = ("least", "middle", "most")


@dataclass(frozen=True, slots=True)
class Pair:
    """Learner ``a`` against learner ``b``: qualities, their difference (a - b), what ``b`` pays for
    the quality of ``a`` over what ``a`` pays, and the difference by kind of unit."""

    a: str
    b: str
    quality: tuple[float, float]
    difference: Difference
    cost_ratio: float
    cost_interval: Interval
    parts: Mapping[str, tuple[tuple[float, Interval], ...]]


def compare(
    found: Sequence[Repeat],
    budget: float,
    higher: bool,
    *,
    interest: float,
    resamples: int = 10_000,
) -> list[Pair]:
    """All pairs of the repeats' learners, each at mean cost ``budget`` (inf: at its best).

    ``interest`` is the least difference that matters, as a share of the better quality.
    """
    names = [*found[0].candidates]
    pairs = list(combinations(range(len(names)), 2))
    choices = [partial(equalling, a, budget, higher) for a in range(len(names) - 1)]
    matched = partial(at_matched_cost, budget, higher)
    (level, _), *equal = levels(found, [matched, *choices], resamples)
    width = interest * float(np.nanmax(np.abs(level.observed)))
    result = []
    for (a, b), one in zip(pairs, differences(level, pairs, width), strict=True):
        cost = equal[a][1].draws
        ratio = _ratio(cost[b], cost[a])
        edges = np.quantile(ratio[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2], method="nearest")
        quality = float(level.observed[a]), float(level.observed[b])
        parts = dict(_parts(found, names[a], names[b], budget, higher))
        price = float(ratio[0]), Interval(*map(float, edges))
        result.append(Pair(names[a], names[b], quality, one, *price, parts))
    return result


def _ratio(cost: FloatArray, other: FloatArray) -> FloatArray:
    """Ratio of two costs; infinite where the other learner never reaches the quality."""
    free = np.where(cost > 0, np.inf, 1.0)
    found = np.divide(cost, other, out=free, where=other > 0)
    return np.where(np.isnan(cost), np.inf, found)


def _parts(
    found: Sequence[Repeat], a: str, b: str, budget: float, higher: bool
) -> Iterator[tuple[str, tuple[tuple[float, Interval], ...]]]:
    """The difference in each third of the units, by rows of a query and by what ``a`` paid; nothing
    where units do not fall into three parts."""
    values = [_unit_values(repeat, (a, b), budget, higher) for repeat in found]
    gain, rows, paid = (np.concatenate(part) for part in zip(*values, strict=True))
    for kind, by in (("rows of a query", rows), (f"cost to {a}", paid)):
        low, high = np.quantile(by, [1 / 3, 2 / 3])
        inside = (by <= low, (by > low) & (by <= high), by > high)
        if all(part.sum() > 1 for part in inside):
            yield kind, tuple(_mean(gain[part]) for part in inside)


def _unit_values(
    repeat: Repeat, names: tuple[str, str], budget: float, higher: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """By test unit: the gain of a over b at the observed choices, its rows, and a's cost."""
    a, b = (chosen_units(repeat.candidates[n], at_matched_cost(budget, higher)) for n in names)
    rows = repeat.candidates[names[0]].test.rows
    return a[0] - b[0], np.asarray(rows, dtype=np.float64), a[1]


def _mean(values: FloatArray) -> tuple[float, Interval]:
    mean, error = float(values.mean()), 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5
    return mean, Interval(mean - error, mean + error)
