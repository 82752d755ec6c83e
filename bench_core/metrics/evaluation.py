"""Many metrics of one set of scores, with one sort for all."""

from collections.abc import Callable, Iterable

import numpy as np

from bench_core.arrays import FloatArray
from bench_core.costs.acquired import Acquired
from bench_core.data import Queries
from bench_core.errors import UsageError, charging
from bench_core.metrics.built_in import BuiltIn, Labels, Ranked, checked_scores
from bench_core.metrics.ranking import RankingMetric, rank
from bench_core.protocols import Metric, MetricValues


def evaluate(
    metrics: Iterable[Metric], scores: FloatArray, labels: Labels
) -> dict[str, MetricValues]:
    """Values of each metric by its name, equal to what ``metric.values`` gives.

    ``scores`` (n,) or (n, K) belong to ``labels``, which is best made once per split and used
    for all operating points: it keeps ideal orders, class sizes and the like.
    """
    metrics = list(metrics)
    ranking = [m for m in metrics if isinstance(m, RankingMetric)]
    ranked = None
    if ranking and labels.queries is not None:
        checked = checked_scores(scores, len(labels), ranking[0].name)
        ranked = rank(checked, labels, max(m.depth(labels) for m in ranking))
    return {metric.name: _judge(metric, scores, labels, ranked) for metric in metrics}


def _judge(
    metric: Metric, scores: FloatArray, labels: Labels, ranked: Ranked | None
) -> MetricValues:
    if isinstance(metric, RankingMetric):
        return metric.judge(scores, labels, ranked)
    if isinstance(metric, BuiltIn) and type(metric).values is BuiltIn.values:
        return metric.judge(scores, labels)
    with charging(f"metric {metric.name}"):
        found = metric.values(scores, labels.y, labels.queries, labels.multiplicity)
        shapes = np.shape(found.values), np.shape(found.weights)
    if len(shapes[0]) != 1 or shapes[0] != shapes[1]:
        fault = f"values of shape {shapes[0]} and weights of shape {shapes[1]}"
        raise UsageError(f"metric {metric.name}: {fault}; give one of each for every row or query")
    return found


def warm_up(metrics: Iterable[Metric], say: Callable[[str], None]) -> None:
    """Compile the meter and the kernels of ranking metrics, by judging three rows, before any
    worker starts: they are in numba's cache then."""
    from bench_core.costs.meter import Meter

    Meter(np.ones(2), np.ones(1)).cost(Acquired.nothing(2))
    ranking = [m for m in metrics if isinstance(m, RankingMetric)]
    if not ranking:
        return
    from bench_core.metrics import kernels

    labels = Labels(np.array([0.0, 1.0, 2.0]), Queries(np.array([0, 3])))
    rank(labels.y, labels, 1)
    if kernels.rank.stats.cache_misses:
        say("compiling the ranking metrics, once per machine, a few seconds")
    evaluate(ranking, np.array([0.0, 0.0, 1.0]), labels)
