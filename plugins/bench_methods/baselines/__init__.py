"""Baselines: trivial methods that every other method should beat.

Own constructions, of no paper: ``constant`` (no cost at all), and three orders in which features
are bought one after the other, with boosted trees on the first k of them: ``random-order``,
``cheapest-first`` and ``greedy-order``. Leaderboards mark them (by their ``role``); they are on the
board of every suite that lists them under ``baselines``.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench_models.boosting import bench_warm_up

from bench_core import BudgetedLearner, hookimpl
from bench_methods.baselines.constant import Constant
from bench_methods.baselines.orders import CheapestFirst, GreedyOrder, RandomOrder

bench_warm_up = hookimpl(bench_warm_up)


@hookimpl
def bench_learners() -> Sequence[type[BudgetedLearner]]:
    """The baselines, the lowest first."""
    return [Constant, RandomOrder, CheapestFirst, GreedyOrder]
