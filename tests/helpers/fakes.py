"""A fit context in memory, shared by the tests of learners."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench_core import BudgetedLearner, Task
from bench_core._io.large_arrays import inputs_digest
from bench_core.contracts import learner_of
from bench_core.metrics import default_metric


@dataclass
class FakeContext:
    """A ``FitContext`` that remembers shared arrays (read-only) and every report of progress."""

    task: Task
    classes: int = 0
    seed: int = 0
    threads: int = 1
    feature_names: tuple[str, ...] = ()
    splits: Any = None
    models: Mapping[BudgetedLearner, Any] = field(default_factory=dict)
    arrays: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    reports: list[tuple[int, int]] = field(default_factory=list)

    @property
    def metric(self):
        return default_metric(self.task)

    def fitted(self, learner):
        """The given model, or the model of a learner that needs no data."""
        return self.models[learner] if learner in self.models else learner.fit(0, 0, 0, self)

    def shared(self, inputs, build):
        digest = inputs_digest(inputs)
        if digest not in self.arrays:
            self.arrays[digest] = {key: _locked(value) for key, value in build().items()}
        return self.arrays[digest]

    def trained(self, inputs, build, size=1):
        return self.shared([inputs, size], build)

    def progress(self, done, total):
        self.reports.append((done, total))


def fit_after_needs(learner, train, valid, prices, context):
    """Fit a learner, and before it the learners it needs that have no model yet."""
    for need in learner_of(learner).needs():
        if need not in context.models:
            model = fit_after_needs(need, train, valid, prices, context)
            context.models = {**context.models, need: model}
    return learner.fit(train, valid, prices, context)


def _locked(array):
    copy = np.array(array)
    copy.flags.writeable = False
    return copy
