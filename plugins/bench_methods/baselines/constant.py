"""The best constant prediction: what costs nothing.

The mean of the targets or grades, the log-odds of the positive rows, the logarithms of the
classes' shares. Ranking by a constant leaves all documents of a query tied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from bench_models.boosting import TASKS, LossName, loss_of
from bench_models.staged import Point, Stage, StagedModel

from bench_core import Examples, FitContext, Prices, Task, param


@dataclass(frozen=True)
class Constant:
    """The best constant: reads no feature and costs nothing."""

    name: ClassVar[str] = "constant"
    tasks: ClassVar[frozenset[Task]] = TASKS
    role: ClassVar[str] = "baseline"
    adds_up: ClassVar[bool] = False

    loss: LossName = param(
        "auto", "loss it is the best constant for; auto: squared, for classes logistic or softmax"
    )

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> StagedModel:
        """Look at the labels of ``train`` only."""
        from bench_trees.losses import Labels

        name, loss = loss_of(context.task, self.loss, context.classes)
        queries = None if train.queries is None else train.queries.boundaries
        base = loss.base(Labels(train.y, train.multiplicity, None, queries))
        stage = Stage(np.zeros(0, dtype=np.int64), np.zeros(0), base)
        return StagedModel([stage], [Point(0, {"features": 0})], prices, facts={"loss": name})
