"""Metrics of regression: scores and labels in the same unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bench_core.arrays import FloatArray
from bench_core.data import Task
from bench_core.metrics.labels import Labels, checked_scores
from bench_core.metrics.spelling import BuiltIn
from bench_core.protocols import MetricValues


@dataclass(frozen=True, slots=True)
class MeanSquaredError(BuiltIn):
    """Mean of (score - label)^2, in squared label units."""

    family: ClassVar[str] = "mse"
    higher_is_better: ClassVar[bool] = False
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.REGRESSION})

    def judge(self, scores: FloatArray, labels: Labels) -> MetricValues:
        """Squared error per row, weighted by multiplicity."""
        scores = checked_scores(scores, len(labels), self.name)
        return MetricValues((scores - labels.y) ** 2, labels.weights)
