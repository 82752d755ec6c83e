"""Many metrics of one set of scores, with one sort for all."""

from __future__ import annotations

from collections.abc import Iterable

from bench_core.arrays import FloatArray
from bench_core.metrics.labels import Labels, checked_scores
from bench_core.metrics.ranked import Ranked
from bench_core.metrics.ranking import RankingMetric, rank
from bench_core.metrics.spelling import BuiltIn
from bench_core.protocols import Metric, MetricValues


def evaluate(
    metrics: Iterable[Metric], scores: FloatArray, labels: Labels
) -> dict[str, MetricValues]:
    """Values of each metric by its name, equal to what ``metric.values`` gives.

    ``scores`` (n,) or (n, K) belong to ``labels``, which is best made once per split and used
    for all operating points: it keeps ideal orders, class sizes and the like.
    """
    metrics = list(metrics)
    ranked = _rank_once(metrics, scores, labels)
    return {metric.name: _judge(metric, scores, labels, ranked) for metric in metrics}


def _rank_once(metrics: list[Metric], scores: FloatArray, labels: Labels) -> Ranked | None:
    ranking = [m for m in metrics if isinstance(m, RankingMetric)]
    if not ranking or labels.queries is None:
        return None
    scores = checked_scores(scores, len(labels), ranking[0].name)
    return rank(scores, labels, max(m.depth(labels) for m in ranking))


def _judge(
    metric: Metric, scores: FloatArray, labels: Labels, ranked: Ranked | None
) -> MetricValues:
    if isinstance(metric, RankingMetric):
        return metric.judge(scores, labels, ranked)
    if isinstance(metric, BuiltIn) and type(metric).values is BuiltIn.values:
        return metric.judge(scores, labels)
    return metric.values(scores, labels.y, labels.queries, labels.multiplicity)
