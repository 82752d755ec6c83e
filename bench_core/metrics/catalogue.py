"""Metric families by name, and the metrics of a task where none is named."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from bench_core.data import Task
from bench_core.metrics import ranking, rows
from bench_core.metrics.built_in import build
from bench_core.protocols import Metric

USUAL = {
    Task.RANKING: ("ndcg@5", "precision@5"),
    Task.REGRESSION: ("mse",),
    Task.BINARY: ("accuracy", "auc"),
    Task.MULTICLASS: ("accuracy",),
}
"""Measured where neither a request nor a suite names metrics; the first is the primary one."""


def families() -> dict[str, type[Any]]:
    """Metric classes by family name (``"ndcg"``)."""
    return {c.family: c for c in (*ranking.METRICS, *rows.METRICS)}


def parse_metric(name: str, registered: Mapping[str, Metric] = MappingProxyType({})) -> Metric:
    """The metric of that spelling: one of ``registered``, or a built-in one at any cut-off.

    ``parse_metric(m.name) == m`` for every built-in metric. Raises UsageError (one line) for an
    unknown family or option, a cut-off that is missing, superfluous or not a whole number > 0.
    """
    if name in registered:
        return registered[name]
    metric: Metric = build(name, families())
    return metric


def default_metric(task: Task) -> Metric:
    """The primary metric where none is named: ndcg@5, mse or accuracy."""
    return parse_metric(USUAL[Task(task)][0])
