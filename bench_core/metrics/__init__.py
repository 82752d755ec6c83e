"""Metrics: values with one spelling, per-query or per-row, exact under ties and multiplicity.

    parse_metric("ndcg@5(ties=stable)")            # a Metric
    evaluate(metrics, scores, Labels(y, queries))  # many metrics, one sort

Importing this package loads neither numba nor scipy; names are loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "Labels": "labels",
    "default_metric": "catalogue",
    "evaluate": "evaluation",
    "families": "catalogue",
    "parse_metric": "catalogue",
}

__all__ = [
    "Labels",
    "default_metric",
    "evaluate",
    "families",
    "parse_metric",
]

if TYPE_CHECKING:
    from bench_core.metrics.catalogue import default_metric, families, parse_metric
    from bench_core.metrics.evaluation import evaluate
    from bench_core.metrics.labels import Labels


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'bench_core.metrics' has no attribute {name!r}")
    return getattr(import_module(f"bench_core.metrics.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
