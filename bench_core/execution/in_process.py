"""Fit a learner in this process, with nothing on disk: for estimators and conformance checks."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bench_core._io.digests import canonical
from bench_core._io.machine import one_blas_thread
from bench_core.arrays import Array
from bench_core.class_names import encode
from bench_core.data import Examples
from bench_core.execution.context import Build, Context
from bench_core.protocols import Metric
from bench_core.splits import Splits

Kept = dict[str, Any]
"""Fitted models and shared arrays, by what they are made of."""


def fit_in_process(
    learner: Any, splits: Splits, metric: Metric, seed: int, threads: int, kept: Kept | None = None
) -> Any:
    """The model of a learner (its inner learners resolved) trained on ``splits``.

    ``kept``, given to several calls on the same data, shares what they have in common.
    """
    models: Kept = {} if kept is None else kept
    splits = replace(splits, test=_no_rows(splits.test))

    def fitted(learner: Any) -> Any:
        key = f"fit {canonical(encode(learner))}"
        if key not in models:
            models[key] = fit_in_process(learner, splits, metric, seed, threads, models)
        return models[key]

    def shared(name: str, build: Build) -> Mapping[str, Array]:
        key = f"shared {build.__module__} {name}"
        if key not in models:
            models[key] = {of: _sealed(array) for of, array in build().items()}
        arrays: Mapping[str, Array] = models[key]
        return arrays

    def progress(done: int, total: int) -> None: ...

    context = Context.of(splits, metric, seed, threads, fitted, shared, progress)
    with one_blas_thread():
        return learner.fit(splits.train, splits.valid, splits.prices, context)


def _no_rows(part: Examples) -> Examples:
    """No learner sees those of the test split."""
    return Examples(part.X[:0].copy(), np.empty(0))


def _sealed(array: Array) -> Array:
    own = np.array(array)
    own.setflags(write=False)
    return own
