"""Metrics of regression: scores and labels in the same unit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bench_core.data import FloatArray, Queries, Task
from bench_core.metrics.base import Spelled
from bench_core.metrics.labels import Labels, checked_scores
from bench_core.protocols import MetricValues


@dataclass(frozen=True, slots=True)
class MeanSquaredError(Spelled):
    """Mean of (score - label)^2, in squared label units."""

    family: ClassVar[str] = "mse"
    higher_is_better: ClassVar[bool] = False
    tasks: ClassVar[frozenset[Task]] = frozenset({Task.REGRESSION})

    def values(
        self,
        scores: FloatArray,
        y: FloatArray,
        queries: Queries | None = None,
        multiplicity: NDArray[np.int64] | None = None,
    ) -> MetricValues:
        """Squared error per row, weighted by multiplicity."""
        return self.judge(scores, Labels(y, queries, multiplicity))

    def judge(self, scores: FloatArray, labels: Labels) -> MetricValues:
        """As ``values``, with labels prepared once."""
        scores = checked_scores(scores, len(labels), self.name)
        return MetricValues((scores - labels.y) ** 2, labels.weights)
