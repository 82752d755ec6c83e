"""One fit and one trial as pure functions of a JSON specification.

``run_fit`` learns and saves the model's state; ``run_trial`` loads it, predicts the splits in
blocks, meters, scores and audits. Both run in a worker process or in the caller's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench_core._io.digests import canonical, import_key
from bench_core._io.large_arrays import shared_arrays
from bench_core._io.machine import peak_rss_mb, reset_peak_rss
from bench_core.arrays import Array
from bench_core.class_names import decode, encode, trust
from bench_core.data import Examples
from bench_core.datasets.cache import open_prepared
from bench_core.errors import UsageError
from bench_core.execution import predict
from bench_core.execution.audit import replay
from bench_core.execution.caps import Caps
from bench_core.execution.score import SplitScore, condense, score_split, unit_costs
from bench_core.metrics import parse_metric
from bench_core.metrics.frontier import frontier
from bench_core.protocols import Marked, Metric
from bench_core.results.budgets import CAP
from bench_core.results.records import (
    FitResult,
    FitSpec,
    Job,
    Result,
    Sensors,
    StoredValues,
    TrialResult,
    TrialSpec,
    Verdict,
)
from bench_core.results.store_files import costs_path, load_model, save_model, state_path
from bench_core.splits import Splits

Progress = Callable[[int, int], None]
"""Takes how much is done, and of how much."""


def perform(job: Job, progress: Progress) -> Result:
    """Do a job in this process; raises whatever goes wrong."""
    trust([*job.spec.plugins, *job.spec.modules])
    if isinstance(job.spec, FitSpec):
        return run_fit(job.spec, progress)
    if job.kind == "audit":
        return run_audit(job.spec, progress)
    return run_trial(job.spec, progress)


class Context:
    """The ``FitContext`` of one fit."""

    def __init__(self, spec: FitSpec, splits: Splits, metric: Metric, progress: Progress) -> None:
        self.spec, self.splits, self.metric, self.progress = spec, splits, metric, progress
        self.task, self.classes = splits.task, splits.classes
        self.feature_names = splits.feature_names
        self.seed, self.threads = spec.seed, spec.threads

    def fitted(self, learner: Any) -> Any:
        """The model of one of the learner's ``needs()``."""
        key = self.spec.needs.get(canonical(encode(learner)))
        if key is None:
            raise KeyError(f"{learner} is not among needs() of {self.spec.learner_name}")
        return load_model(state_path(self.spec.states, key))

    def shared(self, name: str, build: Callable[[], Mapping[str, Array]]) -> Mapping[str, Array]:
        """Arrays of the training data, kept beside it until the code around ``build`` changes.

        Where somebody else's prepared data may be read and not written they are not kept.
        """
        code = import_key(getattr(build, "__module__", ""))
        safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
        folder = Path(self.spec.data) / "shared"
        path = folder / f"{safe}-{code[:16]}"
        place = folder if folder.is_dir() else folder.parent
        if not code or (not path.is_dir() and not os.access(place, os.W_OK)):
            return build()
        return shared_arrays(path, build)


def run_fit(spec: FitSpec, progress: Progress = lambda done, total: None) -> FitResult:
    """Fit one learner and save its state; what is raised on the way is the caller's to report."""
    reset_peak_rss()
    learner = decode(spec.learner)
    splits = open_splits(spec)
    context = Context(spec, splits, find_metric(spec.metric, spec.plugins), progress)
    started = time.perf_counter()
    model = learner.fit(splits.train, splits.valid, splits.prices, context)
    seconds = time.perf_counter() - started
    save_model(state_path(spec.states, spec.key), model, spec.needs.values())
    return FitResult(seconds, peak_rss_mb())


def run_trial(spec: TrialSpec, progress: Progress = lambda done, total: None) -> TrialResult:
    """Predict, meter, score and audit one fitted model."""
    reset_peak_rss()
    splits = open_splits(spec)
    model = load_model(state_path(spec.states, spec.fit))
    metrics = [find_metric(name, spec.plugins) for name in spec.metrics]
    parts = {name: getattr(splits, name) for name in spec.splits}
    total, done = sum(len(part) for part in parts.values()), 0
    caps = _caps(spec, splits)
    paths: dict[str, predict.Path] = {}
    scores: dict[str, SplitScore] = {}
    for name, part in parts.items():
        paths[name] = predict.predict_split(
            model,
            part,
            splits.costs,
            splits.classes,
            spec.accounting,
            lambda rows, before=done: progress(before + rows, total),  # type: ignore[misc]
            spec.threads,
            caps,
        )
        done += len(part)
        scores[name] = score_split(paths[name], part, splits.costs, metrics, name, spec.threads)
    same_points(paths)
    verdict = _audited(spec, splits, model, spec.audit, path=paths["test"])
    return TrialResult(
        rows=tuple(row for score in scores.values() for row in score.rows),
        values=_values(parts, paths, scores, metrics[0]),
        audit=verdict.word,
        audit_error=verdict.reason,
        predict_seconds=paths["valid"].seconds + paths["test"].seconds,
        peak_rss_mb=peak_rss_mb(),
        marks=model.marks if isinstance(model, Marked) else (),
        sensors=_sensors(splits),
    )


def run_audit(spec: TrialSpec, progress: Progress) -> Verdict:
    """Replay every query and every point of one fitted model."""
    model = load_model(state_path(spec.states, spec.fit))
    return _audited(spec, open_splits(spec), model, "full", progress=progress)


def _audited(spec: TrialSpec, splits: Splits, model: Any, mode: str, **more: Any) -> Verdict:
    how = {"seed": spec.key, "accounting": spec.accounting, "caps": _caps(spec, splits), **more}
    blind = load_model(state_path(spec.states, spec.fit))
    return replay(model, splits.test, splits.costs, splits.classes, mode, blind=blind, **how)


def _caps(spec: TrialSpec, splits: Splits) -> Caps | None:
    if not spec.caps:
        return None
    return Caps.over(spec.caps, splits.train, splits.task, splits.classes)


def same_points(paths: Mapping[str, predict.Path]) -> None:
    """Raise ContractError where two splits have different paths."""
    if len({canonical([dict(p) for p in path.points]) for path in paths.values()}) > 1:
        raise predict.ContractError(f"its path differs between the splits {', '.join(paths)}")


def _values(
    parts: Mapping[str, Examples],
    paths: Mapping[str, predict.Path],
    scores: Mapping[str, SplitScore],
    primary: Metric,
) -> tuple[StoredValues, ...]:
    valid = [row for row in scores["valid"].rows if CAP not in row.point]
    quality = np.array([row.metrics[primary.name] for row in valid])
    cost = np.array([row.total_cost for row in valid])
    points = frontier(cost, quality, primary.higher_is_better)
    if len(points) == 0:
        return ()
    caps = (row.index for row in scores["valid"].rows[len(valid) :])
    kept = (*map(int, points), *caps)
    return tuple(
        _stored(name, parts[name], paths[name], scores[name], kept) for name in ("valid", "test")
    )


def _stored(
    split: str, part: Examples, path: predict.Path, score: SplitScore, kept: tuple[int, ...]
) -> StoredValues:
    """The values of a split at the points ``kept``; those of caps follow those of the path."""
    costs, bought, rows = [], [], np.zeros(0)
    for p in kept:
        of, k = path.at(p)
        means, rows = unit_costs(of.cost[k], part.groups, part.weights, score.units)
        means, rows = condense(means, rows)
        costs.append(means.astype(np.float32))
        bought.append(of.bought[k].astype(np.float32))
        path.forget()
    metric = np.stack([score.primary[p] for p in kept]).astype(np.float32)
    weights, counts = score.weights.astype(np.float32), rows.astype(np.float32)
    arrays = metric, np.stack(costs), weights, counts, np.stack(bought)
    return StoredValues(split, kept, *arrays)


def _sensors(splits: Splits) -> Sensors:
    """Each sensor by the features that need it, the first three by name."""
    users: list[list[str]] = [[] for _ in range(splits.costs.sensors)]
    for j, name in enumerate(splits.names):
        for sensor in splits.costs.sensors_of(j):
            users[sensor].append(name)
    return Sensors(tuple(map(_short_list, users)), tuple(splits.prices.sensor.tolist()))


def _short_list(names: Sequence[str]) -> str:
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def open_splits(spec: FitSpec | TrialSpec) -> Splits:
    """Prepared data as memory maps, under the cost model that the specification names."""
    splits = open_prepared(Path(spec.data))
    if not spec.costs:
        return splits
    return splits.under(load_model(costs_path(spec.states, spec.costs)))


def find_metric(name: str, plugins: tuple[str, ...]) -> Metric:
    """A metric by its spelling; plugins are asked only where it is not built in."""
    try:
        return parse_metric(name)
    except UsageError:
        from bench_core.plugins import load_registry

        return parse_metric(name, load_registry(plugins).metrics)
