"""Comparison of each pair of learners by query or row: at their best, and within budgets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.leaderboard.assembly import uses_of
from bench_core.leaderboard.board import Board
from bench_core.statistics.bootstrap_data import Repeat, repeats
from bench_core.statistics.point_selection import at_budget
from bench_reports.curves import View

if TYPE_CHECKING:
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

MOST = 8
"""Learners that are compared by thirds and within budgets: the best ones and the reference."""

ALIKE = 1e-6


def pairwise(
    info: RunInfo,
    store: Store,
    board: Board,
    view: View,
    learners: Sequence[str],
    amounts: Sequence[float],
) -> dict[str, Any] | None:
    """The share of units, in percent, on which each learner of a pair is better, both at their best
    (``best``: for each learner a row with all behind it).

    Of the first ``MOST`` learners the same for each pair at each amount (``within``), and the mean
    difference in each third of the units with its 95% error (``thirds``, by pair and kind).
    None without stored values.
    """
    ranked = [curve.learner for curve, _ in view.ranking()]
    top = [*ranked[: MOST - 1], *([board.reference] if board.reference else ())]
    names, found = _comparable(info, store, board, list(dict.fromkeys([*top, *ranked])))
    if not found:
        return None
    higher = view.metric.higher_is_better
    best = {name: _units(found, name, [math.inf], higher) for name in names}
    quality = [best[name][0][0] for name in names]
    first = sum(name in top for name in names)
    within = [_units(found, name, amounts, higher)[0] for name in names[:first]]
    # thirds by size and by price: a method may win on large queries or on expensive ones alone
    payer = board.reference if board.reference in names else names[0]
    kinds = {
        "rows of a query": np.concatenate([one.candidates[names[0]].test.rows for one in found]),
        f"what {payer} pays": best[payer][1][0],
    }
    uses = uses_of(info, board.dataset)
    queries = bool(uses) and any((uses[0].get("queries") or {}).values())
    return {
        "units": "queries" if queries else "rows",
        "learners": [learners.index(name) for name in names],
        "best": [
            _shares((one - other for other in quality[k + 1 :]), higher)
            for k, one in enumerate(quality)
        ],
        "first": first,
        "within": [
            _shares((x - y for x, y in zip(a, b, strict=True)), higher)
            for a, b in combinations(within, 2)
        ],
        "kinds": [*kinds],
        "thirds": [
            [_thirds(a - b, by) for by in kinds.values()]
            for a, b in combinations(quality[:first], 2)
        ],
    }


def _comparable(
    info: RunInfo, store: Store, board: Board, names: Sequence[str]
) -> tuple[list[str], list[Repeat]]:
    """The learners with values in every repeat, and these repeats; none of fewer than two."""
    valid, test = (
        [
            one
            for name in names
            for one in store.values(info.run, split=split, dataset=board.dataset, learner=name)
        ]
        for split in ("valid", "test")
    )
    there: dict[str, set[tuple[int, int]]] = {}
    for one in valid:
        if len(one.points):
            there.setdefault(one.learner, set()).add((one.fold, one.seed))
    every = set().union(*there.values())
    kept = [name for name in names if there.get(name) == every]
    return kept, repeats(valid, test, kept) if len(kept) > 1 else []


def _shares(gains: Iterable[FloatArray], higher: bool) -> list[list[int]]:
    """On how many percent of the units the first of two is better and worse, by gain; 0 where that
    is not known."""
    sign = 1 if higher else -1
    parts = [((sign * gain > ALIKE).mean(), (sign * gain < -ALIKE).mean()) for gain in gains]
    return [[round(100 * float(better)), round(100 * float(worse))] for better, worse in parts]


def _units(
    found: Sequence[Repeat], name: str, budgets: Sequence[float], higher: bool
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Test quality and cost by unit of all repeats, by budget: of the learner's best point within
    it on validation; NaN where it has none."""
    quality: list[list[FloatArray]] = [[] for _ in budgets]
    cost: list[list[FloatArray]] = [[] for _ in budgets]
    for repeat in found:
        valid, test = repeat.candidates[name].valid, repeat.candidates[name].test
        paid = (valid.cost @ valid.rows / valid.rows.sum()).astype(np.float64)
        reached = (valid.quality @ valid.weights / valid.weights.sum()).astype(np.float64)
        order = np.argsort(paid, kind="stable")
        ordered = [reached[order][None]], [paid[order][None]]
        for k, budget in enumerate(budgets):
            at = int(at_budget(budget, higher)(*ordered)[0].point[0])
            for values, kept in ((test.quality, quality[k]), (test.cost, cost[k])):
                none = np.full(len(test.weights), np.nan)
                kept.append(values[order[at]].astype(np.float64) if at >= 0 else none)
    return [*map(np.concatenate, quality)], [*map(np.concatenate, cost)]


def _thirds(gain: FloatArray, by: FloatArray) -> list[list[float]]:
    """The mean gain and its 95% error where ``by`` is least, in the middle and most; nothing where
    units do not fall into three parts."""
    low, high = np.quantile(by, [1 / 3, 2 / 3])
    inside = (by <= low, (by > low) & (by <= high), by > high)
    if any(part.sum() < 2 for part in inside):
        return []
    parts = [gain[part] for part in inside]
    errors = [1.96 * part.std(ddof=1) / len(part) ** 0.5 for part in parts]
    means = [part.mean() for part in parts]
    return [[round(float(m), 4), round(float(e), 4)] for m, e in zip(means, errors, strict=True)]
