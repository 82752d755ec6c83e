"""Where one learner beats another: by query or row, and by thirds of them, both at their best."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.leaderboard.assembly import primary_metric, uses_of
from bench_core.leaderboard.board import Board
from bench_core.statistics.bootstrap import chosen_units
from bench_core.statistics.choices import best
from bench_core.statistics.pools import Repeat, repeats

if TYPE_CHECKING:
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store
    from bench_core.results.trial_values import TrialValues

MOST = 8
"""Learners that are compared by thirds: the best ones and the reference."""

ALIKE = 1e-6


def differences(
    info: RunInfo, store: Store, board: Board, ranked: Sequence[str], learners: Sequence[str]
) -> dict[str, Any] | None:
    """For each pair of ``ranked`` the share of units in percent on which the first and the second
    is better (``shares``, pair after pair), and of the first ``MOST`` the mean difference with its
    95% error in each third. None without stored values."""
    top = dict.fromkeys([*ranked[: MOST - 1], *([board.reference] * bool(board.reference))])
    names = list(dict.fromkeys([*top, *ranked]))
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
    names = [name for name in names if name in whole]
    found = repeats(valid, test, names) if len(names) > 1 else []
    if not found:
        return None
    higher = primary_metric(info, board.dataset).higher_is_better
    values = {name: _units(found, name, higher) for name in names}
    by_rows = np.concatenate([repeat.candidates[names[0]].test.rows for repeat in found])
    uses = uses_of(info, board.dataset)
    queries = bool(uses) and any((uses[0].get("queries") or {}).values())
    payer = board.reference if board.reference in names else names[0]
    kinds = {"rows of a query": by_rows, f"what {payer} pays": values[payer][1]}
    pairs, shares = {}, []
    for (i, a), (j, b) in combinations(enumerate(names), 2):
        gain = values[a][0] - values[b][0]
        better = [np.mean((sign if higher else -sign) * gain > ALIKE) for sign in (1, -1)]
        shares += [round(100 * float(v)) for v in better]
        if a in top and b in top:
            parts = {kind: thirds for kind, by in kinds.items() if (thirds := _thirds(gain, by))}
            pairs[f"{i}-{j}"] = parts
    indices = [learners.index(name) for name in names]
    units = "queries" if queries else "rows"
    return {"units": units, "learners": indices, "shares": shares, "thirds": pairs}


def _complete(values: Sequence[TrialValues]) -> list[str]:
    """The learners that have values in every repeat, in the order of the values."""
    there: dict[str, set[tuple[int, int]]] = {}
    for one in values:
        if len(one.points):
            there.setdefault(one.learner, set()).add((one.fold, one.seed))
    every = set().union(*there.values())
    return [name for name, found in there.items() if found == every]


def _units(found: Sequence[Repeat], name: str, higher: bool) -> tuple[FloatArray, FloatArray]:
    """Quality and cost by unit of all repeats at the learner's best point."""
    parts = [chosen_units(repeat.candidates[name], best(higher)) for repeat in found]
    quality, cost = (np.concatenate(part) for part in zip(*parts, strict=True))
    return quality, cost


def _thirds(gain: FloatArray, by: FloatArray) -> list[list[float]]:
    """The mean gain and its 95% error where ``by`` is least, in the middle and most; nothing where
    units do not fall into three parts."""
    low, high = np.quantile(by, [1 / 3, 2 / 3])
    inside = (by <= low, (by > low) & (by <= high), by > high)
    if any(part.sum() < 2 for part in inside):
        return []
    return [_mean(gain[part]) for part in inside]


def _mean(values: FloatArray) -> list[float]:
    error = 1.96 * float(values.std(ddof=1)) / len(values) ** 0.5
    return [round(float(values.mean()), 5), round(error, 5)]
