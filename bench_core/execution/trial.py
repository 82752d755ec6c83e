"""One fit and one trial as pure functions of a JSON specification.

``run_fit`` learns and saves the model's state; ``run_trial`` loads it, predicts the splits in
blocks, meters, scores and audits. Both run in a worker process or in the caller's.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from bench_core._io.digests import canonical, import_key
from bench_core._io.large_arrays import shared_arrays
from bench_core._io.machine import peak_rss_mb, reset_peak_rss
from bench_core.arrays import Array
from bench_core.class_names import decode, encode, trust
from bench_core.data import Examples
from bench_core.datasets.cache import SHARED, open_prepared
from bench_core.errors import UsageError
from bench_core.execution import predict
from bench_core.execution.audit import replay
from bench_core.execution.caps import Caps
from bench_core.execution.context import Build, Context, Progress, context
from bench_core.execution.contract import ContractError, plain_marks
from bench_core.execution.loading import loading
from bench_core.execution.score import SplitScore, condense, score_split, unit_costs
from bench_core.metrics import parse_metric
from bench_core.metrics.frontier import choosable
from bench_core.protocols import Marked, Metric, Staged
from bench_core.results.budgets import CAP
from bench_core.results.records import (
    FitResult,
    FitSpec,
    Job,
    Result,
    Sensors,
    Stages,
    StoredValues,
    Trial,
    TrialSpec,
    Verdict,
)
from bench_core.results.store_files import costs_path, load_model, save_model, state_path
from bench_core.splits import SPLITS, Splits

LARGEST_VALUE = 1e30
"""Of a metric, per unit: what intervals are made of must have sums in float32."""


def perform(job: Job, progress: Progress) -> Result:
    """Do a job in this process; raises whatever goes wrong."""
    trust([*job.spec.plugins, *job.spec.modules])
    if isinstance(job.spec, FitSpec):
        return run_fit(job.spec, progress)
    return run_trial(job.spec, progress)


def run_fit(spec: FitSpec, progress: Progress = lambda done, total: None) -> FitResult:
    """Fit one learner and save its state; what is raised on the way is the caller's to report."""
    reset_peak_rss()
    learner = decode(spec.learner)
    splits = open_splits(spec, ("train", "valid"))
    with fit_context(spec, splits, progress) as offered, loading() as spent:
        started = time.perf_counter()
        model = learner.fit(splits.train, splits.valid, splits.prices, offered)
        seconds = time.perf_counter() - started
    save_model(state_path(spec.states, spec.key), model, spec.needs.values())
    return FitResult(max(0.0, seconds - spent.seconds), peak_rss_mb())


def fit_context(
    spec: FitSpec, splits: Splits, progress: Progress
) -> AbstractContextManager[Context]:
    """What the learner of a fit gets to ask."""

    def fitted(learner: Any) -> Any:
        key = spec.needs.get(canonical(encode(learner)))
        if key is None:
            raise KeyError(f"{learner} is not among needs() of {spec.learner_name}")
        return load_model(state_path(spec.states, key))

    def shared(name: str, module: str, build: Build) -> Mapping[str, Array]:
        return _kept_beside(Path(spec.data), name, module, build)

    metric = find_metric(spec.metric, spec.plugins)
    return context(splits, metric, spec.seed, spec.threads, fitted, shared, progress)


def _kept_beside(data: Path, name: str, module: str, build: Build) -> Mapping[str, Array]:
    """Arrays of the training data, kept beside it until the code of ``module`` changes.

    Where somebody else's prepared data may be read and not written they are not kept.
    """
    code = import_key(module)
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
    folder = data / SHARED
    path = folder / f"{safe}-{code[:16]}"
    place = folder if folder.is_dir() else folder.parent
    if not code or (not path.is_dir() and not os.access(place, os.W_OK)):
        return build()
    return shared_arrays(path, build)


def run_trial(
    spec: TrialSpec,
    progress: Progress = lambda done, total: None,
) -> Trial:
    """Predict, meter, score and audit one fitted model."""
    reset_peak_rss()
    splits = open_splits(spec)
    metrics = [find_metric(name, spec.plugins) for name in spec.metrics]
    model = _loaded(spec)
    paths, scores = _scored(spec, splits, model, metrics, progress)
    verdict = _audited(spec, splits, model, paths["test"])
    values = _values(splits, paths, scores, metrics[0])
    return Trial.of(
        spec,
        points=tuple(row for score in scores.values() for row in score.rows),
        values=values,
        audit=verdict.word,
        error=verdict.reason,
        predict_seconds=paths["valid"].seconds + paths["test"].seconds,
        peak_rss_mb=peak_rss_mb(),
        marks=plain_marks(model.marks) if isinstance(model, Marked) else (),
        sensors=sensors_of(splits),
        stages=_stages(model, paths["test"], values[0].points if values else ()),
    )


def _loaded(spec: TrialSpec) -> Any:
    """A fresh instance of the fitted model."""
    return load_model(state_path(spec.states, spec.fit))


def _scored(
    spec: TrialSpec, splits: Splits, model: Any, metrics: Sequence[Metric], progress: Progress
) -> tuple[dict[str, predict.Path], dict[str, SplitScore]]:
    """The paths of a model on the splits of a trial, and what they are worth."""
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
    return paths, scores


def _audited(spec: TrialSpec, splits: Splits, model: Any, path: predict.Path) -> Verdict:
    """The verdict of the replay audit, whose sample is drawn by the trial's key."""
    if spec.audit_mode == "off":
        return Verdict("declared")
    second = _loaded(spec)
    return replay(
        model,
        splits.test,
        splits.costs,
        splits.classes,
        spec.audit_mode,
        seed=spec.key,
        path=path,
        accounting=spec.accounting,
        fresh=lambda: nullcontext(second),
        caps=_caps(spec, splits),
    )


def _caps(spec: TrialSpec, splits: Splits) -> Caps | None:
    if not spec.caps:
        return None
    return Caps.over(spec.caps, splits.train, splits.task, splits.classes)


def same_points(paths: Mapping[str, predict.Path]) -> None:
    """Raise ContractError where two splits have different paths."""
    if len({canonical([dict(p) for p in path.points]) for path in paths.values()}) > 1:
        raise ContractError(f"its path differs between the splits {', '.join(paths)}")


def _values(
    splits: Splits,
    paths: Mapping[str, predict.Path],
    scores: Mapping[str, SplitScore],
    primary: Metric,
) -> tuple[StoredValues, ...]:
    valid = [row for row in scores["valid"].rows if CAP not in row.point]
    quality = np.array([row.metrics[primary.name] for row in valid])
    cost, p95 = (np.array([getattr(row, of) for row in valid]) for of in ("total_cost", "cost_p95"))
    points = choosable(cost, p95, quality, primary.higher_is_better)
    if len(points) == 0:
        return ()
    caps = (row.number for row in scores["valid"].rows[len(valid) :])
    kept = (*map(int, points), *caps)
    return tuple(
        _stored(name, getattr(splits, name), paths[name], scores[name], kept)
        for name in ("valid", "test")
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
    values = np.stack([score.primary[p] for p in kept])
    metric = np.clip(values, -LARGEST_VALUE, LARGEST_VALUE).astype(np.float32)
    weights, counts = score.weights.astype(np.float32), rows.astype(np.float32)
    arrays = metric, np.stack(costs), weights, counts, np.stack(bought)
    return StoredValues(split, kept, *arrays)


def _stages(model: Any, path: predict.Path, kept: tuple[int, ...]) -> dict[str, Any]:
    """The stages of a model, and who reached them at the points ``kept`` of its path."""
    tree = model.stage_tree if isinstance(model, Staged) else None
    if tree is None:
        return {}
    reached = {}
    for p in kept:
        if p < len(path.points):
            shares = path.ended[p].copy()
            for stage in range(len(shares) - 1, 0, -1):
                shares[tree.parent[stage]] += shares[stage]
            reached[p] = [round(float(share), 4) for share in shares]
    return Stages(*tree, reached)._asdict()


def sensors_of(splits: Splits) -> Sensors:
    """Each sensor by the columns that need it, the first three by name: the features made of a text
    column differ from fold to fold."""
    users: list[dict[str, None]] = [{} for _ in range(splits.costs.sensors)]
    for j, name in enumerate(splits.columns):
        for sensor in splits.costs.sensors_of(j):
            users[sensor][name] = None
    return Sensors(tuple(map(_short_list, users)), tuple(splits.prices.sensor.tolist()))


def _short_list(names: Iterable[str]) -> str:
    first, more = [*names][:3], len([*names]) - 3
    return ", ".join(first) + (f" and {more} more" if more > 0 else "")


def open_splits(
    spec: FitSpec | TrialSpec,
    rows: Sequence[str] = SPLITS,
    labels: Sequence[str] = SPLITS,
) -> Splits:
    """Prepared data as memory maps (``open_prepared``), under the cost model that the specification
    names."""
    splits = open_prepared(Path(spec.data), rows, labels)
    if not spec.costs:
        return splits
    return splits.under(load_model(costs_path(spec.states, spec.costs)))


def find_metric(name: str, plugins: tuple[str, ...]) -> Metric:
    """A metric by its spelling; plugins are imported for one that is not built in."""
    try:
        return parse_metric(name)
    except UsageError:
        from bench_core.plugins import load_registry

        return parse_metric(name, load_registry(plugins).metrics)
