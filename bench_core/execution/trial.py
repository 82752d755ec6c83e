"""One fit and one trial as pure functions of a JSON specification.

``run_fit`` learns and saves the model's state; ``run_trial`` loads it, predicts the splits in
blocks, meters, scores and audits. Both run in a worker process or in the caller's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bench_core._io.digests import canonical
from bench_core.class_names import decode
from bench_core.data import Examples
from bench_core.execution.fit_context import Context, Progress
from bench_core.protocols import Metric
from bench_core.results.model_files import costs_path, load_model, save_model, state_path
from bench_core.results.records import FitResult, FitSpec, StoredValues, TrialResult, TrialSpec
from bench_core.splits import Splits

if TYPE_CHECKING:
    from bench_core.execution.audit import Verdict
    from bench_core.execution.predict import Path as ScoredPath
    from bench_core.execution.score import SplitScore


def _silent(done: int, total: int) -> None:
    pass


def run_fit(spec: FitSpec, progress: Progress = _silent) -> FitResult:
    """Fit one learner and save its state; what is raised on the way is the caller's to report."""
    from bench_core._io.machine import peak_rss_mb, reset_peak_rss

    reset_peak_rss()
    learner = decode(spec.learner)
    splits = open_splits(spec)
    context = Context(spec, splits, find_metric(spec.metric, spec.plugins), progress)
    started = time.perf_counter()
    model = learner.fit(splits.train, splits.valid, splits.prices, context)
    seconds = time.perf_counter() - started
    save_model(state_path(spec.states, spec.key), model)
    return FitResult(seconds, peak_rss_mb())


def run_trial(spec: TrialSpec, progress: Progress = _silent) -> TrialResult:
    """Predict, meter, score and audit one fitted model."""
    from bench_core._io.machine import peak_rss_mb, reset_peak_rss
    from bench_core.execution.audit import replay
    from bench_core.execution.predict import predict_split
    from bench_core.execution.score import score_split

    reset_peak_rss()
    splits = open_splits(spec)
    costs = splits.costs
    model = load_model(state_path(spec.states, spec.fit))
    metrics = [find_metric(name, spec.plugins) for name in spec.metrics]
    parts = {name: getattr(splits, name) for name in spec.splits}
    total, done = sum(len(part) for part in parts.values()), 0
    paths: dict[str, ScoredPath] = {}
    scores: dict[str, SplitScore] = {}
    for name, part in parts.items():
        paths[name] = predict_split(
            model,
            part,
            costs,
            splits.classes,
            spec.accounting,
            lambda rows, before=done: progress(before + rows, total),  # type: ignore[misc]
            spec.threads,
        )
        done += len(part)
        scores[name] = score_split(paths[name], part, costs, metrics, name, spec.threads)
    same_points(paths)
    verdict = replay(
        model,
        splits.test,
        costs,
        splits.classes,
        spec.audit,
        seed=spec.key,
        path=paths["test"],
        accounting=spec.accounting,
        blind=load_model(state_path(spec.states, spec.fit)),
    )
    return TrialResult(
        rows=tuple(row for score in scores.values() for row in score.rows),
        values=_values(parts, paths, scores, metrics[0]),
        audit=verdict.word,
        audit_error=verdict.reason,
        predict_seconds=paths["valid"].seconds + paths["test"].seconds,
        peak_rss_mb=peak_rss_mb(),
    )


def run_audit(spec: TrialSpec, progress: Progress = _silent) -> Verdict:
    """Replay every query and every point of one fitted model."""
    from bench_core.execution.audit import replay

    splits = open_splits(spec)
    model = load_model(state_path(spec.states, spec.fit))
    return replay(
        model,
        splits.test,
        splits.costs,
        splits.classes,
        "full",
        seed=spec.key,
        blind=load_model(state_path(spec.states, spec.fit)),
        progress=progress,
    )


def same_points(paths: Mapping[str, ScoredPath]) -> None:
    """Raise ContractError where two splits have different paths."""
    from bench_core.execution.predict import ContractError

    if len({canonical([dict(p) for p in path.points]) for path in paths.values()}) > 1:
        raise ContractError(f"its path differs between the splits {', '.join(paths)}")


def _values(
    parts: Mapping[str, Examples],
    paths: Mapping[str, ScoredPath],
    scores: Mapping[str, SplitScore],
    primary: Metric,
) -> tuple[StoredValues, ...]:
    from bench_core.execution.score import condense, unit_costs
    from bench_core.metrics.frontier import frontier

    valid = scores["valid"].rows
    quality = np.array([row.metrics[primary.name] for row in valid])
    points = frontier(
        np.array([row.total_cost for row in valid]), quality, primary.higher_is_better
    )
    if len(points) == 0:
        return ()
    stored = []
    for name in ("valid", "test"):
        part, path, score = parts[name], paths[name], scores[name]
        cost, rows = [], np.zeros(0)
        for p in points:
            means, rows = unit_costs(path.cost[p], part.groups, part.weights, score.units)
            means, rows = condense(means, rows)
            cost.append(means.astype(np.float32))
            path.forget()
        metric = np.stack([score.primary[p] for p in points]).astype(np.float32)
        weights, counts = score.weights.astype(np.float32), rows.astype(np.float32)
        kept = tuple(int(p) for p in points)
        stored.append(StoredValues(name, kept, metric, np.stack(cost), weights, counts))
    return tuple(stored)


def open_splits(spec: FitSpec | TrialSpec) -> Splits:
    """Prepared data as memory maps, under the cost model that the specification names."""
    from bench_core.datasets.cache import open_prepared

    splits = open_prepared(Path(spec.data))
    if not spec.costs:
        return splits
    return splits.under(load_model(costs_path(spec.states, spec.costs)))


def find_metric(name: str, plugins: tuple[str, ...]) -> Metric:
    """A metric by its spelling; plugins are asked only where it is not built in."""
    from bench_core.errors import UsageError
    from bench_core.metrics import parse_metric

    try:
        return parse_metric(name)
    except UsageError:
        from bench_core.plugins import load_registry

        return parse_metric(name, load_registry(plugins).metrics)
