"""Learners of a run pair by pair, at a budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bench_core.errors import UsageError
from bench_core.leaderboard.assembly import primary_metric
from bench_core.results.budgets import Budget
from bench_core.statistics.pairs import Pair, compare
from bench_core.statistics.repeats import Repeat, stored_repeats
from bench_core.terminal.wording import cost

if TYPE_CHECKING:
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store


def pairs_within(
    info: RunInfo,
    store: Store,
    dataset: str,
    names: Sequence[str],
    budget: Budget,
    *,
    interest: float,
) -> tuple[list[Repeat], list[Pair], list[str]]:
    """The repeats that all ``names`` within the budget have finished, every pair of them, and a few
    words on each of the others.

    ``interest`` is the least difference that matters, as a share of the better quality. Raises
    UsageError where fewer than two can be had at the budget.
    """
    every = stored_repeats(store, info.run, dataset, names, within=budget)
    there = [name for name in names if any(name in repeat.candidates for repeat in every)]
    found = _having(every, there)
    if there and not found:
        raise UsageError(
            f"{dataset}: no fold and seed at which all of {', '.join(there)} have finished"
        )
    # what keeps to a cap, or to a cost for 95% of rows, is all that there is to choose from
    limit = budget.amount if budget.kind == "mean" else math.inf
    cheapest = {name: _least_cost(found, name) for name in there}
    affordable = [name for name in there if cheapest[name] <= limit]
    others = [f"{name} cannot" for name in names if name not in there]
    others += [f"{n} from {cost(cheapest[n])}" for n in there if n not in affordable]
    if len(affordable) < 2:
        raise UsageError(f"{dataset}: not all can be had at {budget.words}: {', '.join(others)}")
    found = _having(every, affordable)
    higher = primary_metric(info, dataset).higher_is_better
    return found, compare(found, affordable, limit, higher, interest=interest), others


def _having(found: Sequence[Repeat], names: Sequence[str]) -> list[Repeat]:
    return [repeat for repeat in found if repeat.candidates.keys() >= {*names}]


def _least_cost(found: Sequence[Repeat], name: str) -> float:
    valid = [repeat.candidates[name].valid for repeat in found]
    return max(float((one.cost @ one.rows).min() / one.rows.sum()) for one in valid)
