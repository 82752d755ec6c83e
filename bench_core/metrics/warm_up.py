"""Compile the meter and the ranking kernels before any worker starts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from bench_core.costs.bill import Acquired
from bench_core.data import Queries
from bench_core.metrics.evaluation import evaluate
from bench_core.metrics.labels import Labels
from bench_core.metrics.ranked import bounds
from bench_core.metrics.ranking import RankingMetric
from bench_core.protocols import Metric


def warm_up(metrics: Iterable[Metric], say: Callable[[str], None]) -> None:
    """Judge three rows by the ranking metrics, so that their kernels are in numba's cache."""
    _price_a_row()
    ranking = [m for m in metrics if isinstance(m, RankingMetric)]
    if not ranking:
        return
    from bench_core.metrics import ranking_kernels

    labels = Labels(np.array([0.0, 1.0, 2.0]), Queries(np.array([0, 3])))
    ranking_kernels.survey(bounds(labels), labels.y, labels.copies)  # the quickest to compile
    if ranking_kernels.survey.stats.cache_misses:
        say("compiling the ranking metrics, once per machine, a few seconds")
    evaluate(ranking, np.array([0.0, 0.0, 1.0]), labels)


def _price_a_row() -> None:
    from bench_core.costs.meter import Meter

    for price in (1.0, 0.1):  # sums that are exact, and sums that are not
        Meter(np.array([price, 2.0]), 1).cost(Acquired.nothing(2))
