"""Fit a learner in this process, with nothing on disk: for estimators and conformance checks."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bench_core._io.digests import canonical
from bench_core.arrays import Array
from bench_core.class_names import encode
from bench_core.execution.trial import Context
from bench_core.protocols import Metric
from bench_core.results.records import FitSpec
from bench_core.splits import Splits

Kept = dict[str, Any]
"""Fitted models and shared arrays, by what they are made of."""


class InProcess(Context):
    """The harness's context; what is needed is fitted on the spot and ``kept``."""

    def __init__(self, spec: FitSpec, splits: Splits, metric: Metric, kept: Kept) -> None:
        super().__init__(spec, splits, metric, lambda done, total: None)
        self.kept = kept

    def fitted(self, learner: Any) -> Any:
        """The model of a learner that another stands on."""
        key = f"fit {canonical(encode(learner))}"
        if key not in self.kept:
            how = self.splits, self.metric, self.seed, self.threads, self.kept
            self.kept[key] = fit_in_process(learner, *how)
        return self.kept[key]

    def shared(self, name: str, build: Callable[[], Mapping[str, Array]]) -> Mapping[str, Array]:
        """The arrays of that name, read-only as the harness's memory maps are."""
        key = f"shared {build.__module__} {name}"
        if key not in self.kept:
            self.kept[key] = {of: _sealed(array) for of, array in build().items()}
        arrays: Mapping[str, Array] = self.kept[key]
        return arrays


def fit_in_process(
    learner: Any, splits: Splits, metric: Metric, seed: int, threads: int, kept: Kept | None = None
) -> Any:
    """The model of a learner (its inner learners resolved) trained on ``splits``.

    ``kept``, given to several calls on the same data, shares what they have in common.
    """
    spec = FitSpec("", "", {}, learner.name, "", "", metric.name, seed, "", threads)
    context = InProcess(spec, splits, metric, {} if kept is None else kept)
    return learner.fit(splits.train, splits.valid, splits.prices, context)


def _sealed(array: Array) -> Array:
    own = np.array(array)
    own.setflags(write=False)
    return own
