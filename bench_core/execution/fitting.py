"""One fit: a function of a JSON specification, or in this process without files.

``run_fit`` fits and saves the model's state, in a worker or in the caller's process.
``fit_in_process`` serves estimators and conformance checks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bench_core._io.digests import canonical, digest, import_key
from bench_core._io.files import locked
from bench_core._io.large_arrays import inputs_digest, shared_arrays
from bench_core._io.machine import one_blas_thread, peak_rss_mb, reset_peak_rss
from bench_core.arrays import Array
from bench_core.contracts import learner_of
from bench_core.costs.by_row import with_known_prices
from bench_core.data import Examples, Task
from bench_core.datasets.cache import SHARED, open_prepared
from bench_core.errors import UsageError
from bench_core.metrics import parse_metric
from bench_core.parameters import decode, encode
from bench_core.protocols import Metric
from bench_core.results.records import FitResult, FitSpec, TrialSpec
from bench_core.results.store_files import (
    load_costs,
    load_model,
    save_model,
    state_path,
    trained_folder,
)
from bench_core.splits import SPLITS, Splits

Build = Callable[[], Mapping[str, Array]]
Progress = Callable[[int, int], None]
"""Function of the work done and the total work."""

PROGRESS_SECONDS = 0.1
"""Minimum interval of progress reports; earlier ones are dropped."""

_SECONDS = "_seconds"  # name of the seconds that arrays took to build, among them


@dataclass(slots=True, eq=False)
class Context:
    """The ``FitContext`` of one fit."""

    splits: Splits
    task: Task
    classes: int
    feature_names: tuple[str, ...]
    metric: Metric
    seed: int
    threads: int
    fitted: Callable[[Any], Any]  # fitted model of a needed learner
    shared: Callable[[Any, Build], Mapping[str, Array]]  # arrays by their inputs, built once
    trained: Callable[..., Mapping[str, Array]]  # the same, of one run
    report: Progress = lambda done, total: None
    _last: float = field(default=0.0, init=False)  # time of the last report

    def progress(self, done: int, total: int) -> None:
        """Report the progress of the fit."""
        now = time.perf_counter()
        if now - self._last >= PROGRESS_SECONDS:
            self._last = now
            self.report(int(done), int(total))


def run_fit(spec: FitSpec, progress: Progress = lambda done, total: None) -> FitResult:
    """Fit one learner and save its state; exceptions are left to the caller.

    The seconds exclude compilation and loading of numba kernels, which would count only for the
    first learner of a process. They include those of arrays that another fit has built.
    """
    from numba.core.event import install_timer

    reset_peak_rss()
    learner = decode(spec.learner)
    splits = open_splits(spec, ("train", "valid"))
    clock = Clock()
    context = fit_context(spec, splits, progress, clock)
    with install_timer("numba:compiler_lock", clock.leave_out):
        started = clock.now()
        learner_of(learner).needs()  # computing needs is part of training
        rows = (replace(part, price_columns=None) for part in (splits.train, splits.valid))
        model = learner.fit(*rows, splits.prices, context)
        seconds = clock.now() - started
    save_model(state_path(spec.states, spec.key), model)
    return FitResult(max(0.0, seconds), peak_rss_mb())


class Clock:
    """Seconds of training. Arrays of several fits count in each of them with the seconds that it
    took to build them, once."""

    def __init__(self) -> None:
        self._added = 0.0
        self._counted: set[Path] = set()

    def now(self) -> float:
        """Seconds since a fixed time."""
        return time.perf_counter() + self._added

    def leave_out(self, seconds: float) -> None:
        """Subtract seconds that are not training."""
        self._added -= seconds

    def built(self, build: Build) -> Mapping[str, Array]:
        """Build arrays and add the seconds that it took."""
        started = self.now()
        arrays = build()
        return {**arrays, _SECONDS: np.array(self.now() - started)}

    def count(
        self, path: Path, find: Callable[[], Mapping[str, Array]], share: float = 1.0
    ) -> Mapping[str, Array]:
        """Find arrays that ``built`` made, now or earlier; ``share`` of their seconds counts."""
        started = self.now()
        arrays = dict(find())
        seconds = share * float(arrays.pop(_SECONDS, 0.0))
        self._added += started - self.now() + (0.0 if path in self._counted else seconds)
        self._counted.add(path)
        return arrays


def fit_context(
    spec: FitSpec, splits: Splits, progress: Progress, clock: Clock | None = None
) -> Context:
    """Context of a fit for its learner."""
    clock = clock or Clock()

    def fitted(learner: Any) -> Any:
        key = spec.needs.get(canonical(encode(learner)))
        if key is None:
            raise KeyError(f"{learner} is not among needs() of {spec.learner_name}")
        return load_model(state_path(spec.states, key))

    names = _array_names(splits)

    def shared(inputs: Any, build: Build) -> Mapping[str, Array]:
        """Cached with the data until the code that builds them changes; not in read-only data of
        another user."""
        code = import_key(getattr(build, "__module__", ""))
        folder = Path(spec.data) / SHARED
        path = folder / f"{inputs_digest(inputs, names)}-{code[:16]}"
        place = folder if folder.is_dir() else folder.parent
        if not code or (not path.is_dir() and not os.access(place, os.W_OK)):
            return build()
        return clock.count(path, lambda: shared_arrays(path, lambda: clock.built(build)))

    def trained(inputs: Any, build: Build, size: int = 1) -> Mapping[str, Array]:
        of_run = [spec.data, spec.costs, spec.metric, spec.seed, build.__module__]
        folder = trained_folder(spec.states) / digest([*of_run, inputs_digest(inputs, names)])
        return _of_this_run(folder, build, size, clock)

    metric = find_metric(spec.metric, spec.plugins)
    facts = splits, splits.task, splits.classes, splits.feature_names
    return Context(
        *facts, metric, spec.seed, spec.threads, fitted, shared, trained, report=progress
    )


def _array_names(splits: Splits) -> dict[int, str]:
    """Names of the training and validation arrays by id: their content need not be hashed."""
    return {
        id(array): f"{part}.{name}"
        for part in ("train", "valid")
        for name in ("X", "y", "multiplicity")
        if (array := getattr(getattr(splits, part), name)) is not None
    }


def _of_this_run(folder: Path, build: Build, size: int, clock: Clock) -> Mapping[str, Array]:
    """Arrays of at least ``size`` parts. A second fit that needs them waits for the first."""

    def find() -> Mapping[str, Array]:
        if not path.is_file():
            new = path.with_suffix(".new.npz")  # a killed process may leave a part
            arrays: dict[str, Any] = dict(clock.built(build))
            np.savez(new, **arrays)
            new.replace(path)
        with np.load(path, allow_pickle=False) as file:
            return dict(file)

    folder.mkdir(parents=True, exist_ok=True)
    waiting = clock.now()
    with locked(folder / "lock"):
        clock.leave_out(clock.now() - waiting)
        sizes = (int(file.stem) for file in folder.glob("*.npz") if file.stem.isdecimal())
        length = min((held for held in sizes if held >= size), default=size)
        path = folder / f"{length}.npz"
        return clock.count(path, find, size / length if length else 1.0)


def open_splits(spec: FitSpec | TrialSpec, rows: Sequence[str] = SPLITS) -> Splits:
    """Open prepared data as memory maps (``open_prepared``), with the given cost model."""
    splits = open_prepared(Path(spec.data), rows)
    splits = splits.under(load_costs(spec.states, spec.costs)) if spec.costs else splits
    rows_of = (splits.train, splits.valid, splits.test)
    train, valid, test = (with_known_prices(part, splits.costs) for part in rows_of)
    return replace(splits, train=train, valid=valid, test=test)


def find_metric(name: str, plugins: Sequence[str]) -> Metric:
    """Return a metric by its spelling; plugins are imported unless it is built in."""
    try:
        return parse_metric(name)
    except UsageError:
        return parse_metric(name, metrics_of(tuple(plugins)))


@lru_cache(1)  # a worker runs many trials of one run
def metrics_of(plugins: tuple[str, ...]) -> Mapping[str, Metric]:
    """Return the plugins' metrics by name."""
    from bench_core.plugins import load_registry

    return load_registry(plugins).metrics


ByInputs = dict[str, Any]
"""Fitted models and shared arrays, by their inputs."""


def fit_in_process(
    learner: Any,
    splits: Splits,
    metric: Metric,
    seed: int,
    threads: int,
    kept: ByInputs | None = None,
) -> Any:
    """Fit a learner (its inner learners resolved) on ``splits`` and return the model.

    Calls on the same data share needed models and arrays through ``kept``.
    """
    models: ByInputs = {} if kept is None else kept
    splits = replace(splits, test=Examples(splits.test.X[:0].copy(), np.empty(0)))

    def fitted(learner: Any) -> Any:
        key = f"fit {canonical(encode(learner))}"
        if key not in models:
            models[key] = fit_in_process(learner, splits, metric, seed, threads, models)
        return models[key]

    names = _array_names(splits)

    def shared(inputs: Any, build: Build) -> Mapping[str, Array]:
        key = f"shared {build.__module__} {inputs_digest(inputs, names)}"
        if key not in models:
            models[key] = {of: np.array(array) for of, array in build().items()}
            for array in models[key].values():
                array.setflags(write=False)
        arrays: Mapping[str, Array] = models[key]
        return arrays

    def trained(inputs: Any, build: Build, size: int = 1) -> Mapping[str, Array]:
        return shared([inputs, size], build)

    facts = splits, splits.task, splits.classes, splits.feature_names
    context = Context(*facts, metric, seed, threads, fitted, shared, trained)
    rows = (replace(part, price_columns=None) for part in (splits.train, splits.valid))
    with one_blas_thread():
        return learner.fit(*rows, splits.prices, context)
