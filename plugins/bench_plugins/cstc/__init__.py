"""CSTC."""

from __future__ import annotations

from collections.abc import Sequence

from bench_core import BudgetedLearner, hookimpl
from bench_plugins.boosted import bench_warm_up
from bench_plugins.cstc.learner import CSCC, CSTC, CSTCSingle

__all__ = ["CSCC", "CSTC", "CSTCSingle", "bench_learners", "bench_warm_up"]


@hookimpl
def bench_learners() -> Sequence[type[BudgetedLearner]]:
    """One classifier, the chain and the tree."""
    return [CSTCSingle, CSCC, CSTC]
