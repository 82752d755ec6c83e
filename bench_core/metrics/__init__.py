"""Metrics: values with one spelling, per-query or per-row, exact under ties and multiplicity.

    parse_metric("ndcg@5(ties=stable)")            # a Metric
    evaluate(metrics, scores, Labels(y, queries))  # many metrics, one sort

Importing this package loads neither numba nor scipy.
"""

from bench_core.metrics.built_in import Labels
from bench_core.metrics.evaluation import default_metric, evaluate, families, parse_metric

__all__ = ["Labels", "default_metric", "evaluate", "families", "parse_metric"]
