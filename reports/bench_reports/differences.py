"""Where one learner beats another, by query or row: both at their best, and within budgets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.leaderboard.assembly import primary_metric, uses_of
from bench_core.leaderboard.board import Board
from bench_core.statistics.bootstrap import Candidates
from bench_core.statistics.choices import at_budget
from bench_core.statistics.pools import Repeat, repeats
from bench_reports.payload import packed_rows, scale_of
from bench_reports.views import View

if TYPE_CHECKING:
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store
    from bench_core.results.values import TrialValues

MOST = 8
"""Learners that are compared by thirds and within budgets: the best ones and the reference."""

ALIKE = 1e-6


def differences(
    info: RunInfo,
    store: Store,
    board: Board,
    view: View,
    learners: Sequence[str],
    grid: Sequence[float],
) -> dict[str, Any] | None:
    """Of each pair on how many percent of the units the first is better (``won``) and the second
    (``lost``): a row of each learner with all behind it, both at their best. Of the first ``MOST``
    also a row of each pair over the slider's places (``wonAt``, ``lostAt``), and one of each pair
    and kind with the mean difference in each third and its 95% error (``thirds``).

    None without stored values.
    """
    ranked = [curve.learner for curve, _ in view.ranking()]
    top = [*dict.fromkeys([*ranked[: MOST - 1], *([board.reference] * bool(board.reference))])]
    names, found = _comparable(info, store, board, list(dict.fromkeys([*top, *ranked])))
    if not found:
        return None
    higher = primary_metric(info, board.dataset).higher_is_better
    at_best = [_units(found, name, [math.inf], higher) for name in names]
    quality = [own[0] for own, _ in at_best]
    rows = [_shares((one - b for b in quality[k + 1 :]), higher) for k, one in enumerate(quality)]
    first = sum(name in top for name in names)
    amounts = [share * view.whole for share in grid]
    within = [_units(found, name, amounts, higher)[0] for name in names[:first]]
    places = [
        _shares((x - y for x, y in zip(a, b, strict=True)), higher)
        for a, b in combinations(within, 2)
    ]
    by_rows = np.concatenate([repeat.candidates[names[0]].test.rows for repeat in found])
    payer = board.reference if board.reference in names else names[0]
    kinds = {
        "rows of a query": by_rows,
        f"what {payer} pays": at_best[names.index(payer)][1][0],
    }
    uses = uses_of(info, board.dataset)
    queries = bool(uses) and any((uses[0].get("queries") or {}).values())
    return {
        "units": "queries" if queries else "rows",
        "learners": [learners.index(name) for name in names],
        "won": packed_rows(won for won, _ in rows),
        "lost": packed_rows(lost for _, lost in rows),
        "first": first,
        "wonAt": packed_rows(won for won, _ in places),
        "lostAt": packed_rows(lost for _, lost in places),
        "kinds": [*kinds],
        "thirds": packed_rows(
            _thirds(a - b, by, scale_of(view))
            for a, b in combinations(quality[:first], 2)
            for by in kinds.values()
        ),
    }


def _comparable(
    info: RunInfo, store: Store, board: Board, names: Sequence[str]
) -> tuple[list[str], list[Repeat]]:
    """The learners with values in every repeat, and these repeats; none of fewer than two."""
    valid, test = (
        [
            one
            for name in names
            for one in store.values(
                info.run, split=split, dataset=board.dataset, learner=name, within=None
            )
        ]
        for split in ("valid", "test")
    )
    whole = _complete(valid)
    kept = [name for name in names if name in whole]
    return kept, repeats(valid, test, kept) if len(kept) > 1 else []


def _shares(gains: Iterable[FloatArray], higher: bool) -> tuple[list[int], list[int]]:
    """On how many percent of the units the first of two is better and worse, by gain; 0 where that
    is not known."""
    sign = 1 if higher else -1
    pairs = [(np.mean(sign * gain > ALIKE), np.mean(sign * gain < -ALIKE)) for gain in gains]
    return [round(100 * float(won)) for won, _ in pairs], [round(100 * float(w)) for _, w in pairs]


def _complete(values: Sequence[TrialValues]) -> list[str]:
    """The learners that have values in every repeat, in the order of the values."""
    there: dict[str, set[tuple[int, int]]] = {}
    for one in values:
        if len(one.points):
            there.setdefault(one.learner, set()).add((one.fold, one.seed))
    every = set().union(*there.values())
    return [name for name, found in there.items() if found == every]


def _units(
    found: Sequence[Repeat], name: str, budgets: Sequence[float], higher: bool
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Test quality and cost by unit of all repeats, by budget: of the learner's best point within
    it on validation; NaN where it has none."""
    parts = [_chosen(repeat.candidates[name], budgets, higher) for repeat in found]
    quality, cost = (
        [np.concatenate(own) for own in zip(*part, strict=True)]
        for part in zip(*parts, strict=True)
    )
    return quality, cost


def _chosen(
    one: Candidates, budgets: Sequence[float], higher: bool
) -> tuple[list[FloatArray], list[FloatArray]]:
    """Test quality and cost by unit of one repeat at the point within each budget."""
    valid, test = one.valid, one.test
    cost = (valid.cost @ valid.rows / valid.rows.sum()).astype(np.float64)
    quality = (valid.quality @ valid.weights / valid.weights.sum()).astype(np.float64)
    order = np.argsort(cost, kind="stable")
    ordered = [quality[order][None]], [cost[order][None]]
    places = [int(at_budget(budget, higher)(*ordered)[0].point[0]) for budget in budgets]
    none = np.full(len(test.weights), np.nan)
    return tuple(  # type: ignore[return-value]
        [values[order[k]].astype(np.float64) if k >= 0 else none for k in places]
        for values in (test.quality, test.cost)
    )


def _thirds(gain: FloatArray, by: FloatArray, scale: float) -> list[int]:
    """The mean gain and its 95% error, times ``scale``, where ``by`` is least, in the middle and
    most; nothing where units do not fall into three parts."""
    low, high = np.quantile(by, [1 / 3, 2 / 3])
    inside = (by <= low, (by > low) & (by <= high), by > high)
    if any(part.sum() < 2 for part in inside):
        return []
    parts = [gain[part] for part in inside]
    both = [(v.mean(), 1.96 * v.std(ddof=1) / len(v) ** 0.5) for v in parts]
    return [round(scale * float(value)) for pair in both for value in pair]
