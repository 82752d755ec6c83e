"""One trial as a pure function of a JSON specification.

``run_trial`` loads a fitted model, predicts the splits in blocks, meters, scores and audits, in a
worker process or in the caller's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bench_core._io.machine import peak_rss_mb, reset_peak_rss
from bench_core.contracts import model_of
from bench_core.execution.audit import replay
from bench_core.execution.caps import Caps
from bench_core.execution.contract import ContractError, plain_marks
from bench_core.execution.fitting import Progress, find_metric, open_splits, run_fit
from bench_core.execution.predict import PredictedPath, predict_split
from bench_core.execution.score import points_to_keep, score_split, stored_values
from bench_core.results.records import (
    FitSpec,
    Job,
    Result,
    Sensors,
    Stages,
    Trial,
    TrialSpec,
)
from bench_core.results.store_files import load_model, state_path
from bench_core.splits import Splits


def perform(job: Job, progress: Progress) -> Result:
    """Do a job in this process; raises whatever goes wrong."""
    if isinstance(job.spec, FitSpec):
        return run_fit(job.spec, progress)
    return run_trial(job.spec, progress)


def run_trial(spec: TrialSpec, progress: Progress = lambda done, total: None) -> Trial:
    """Predict, bill, score and audit one fitted model."""
    reset_peak_rss()
    splits = open_splits(spec)
    metrics = [find_metric(name, spec.plugins) for name in spec.metrics]
    model = load_model(state_path(spec.states, spec.fit))
    caps = None
    if spec.caps:
        caps = Caps.over(spec.caps, splits.train, splits.task, splits.classes)
    parts = {name: getattr(splits, name) for name in spec.splits}
    total, done = sum(map(len, parts.values())), 0
    paths, scores = {}, {}
    for name, part in parts.items():
        paths[name] = predict_split(
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
    verdict = replay(
        model,
        splits.test,
        splits.costs,
        splits.classes,
        spec.audit_mode,
        seed=spec.key,
        path=paths["test"],
        accounting=spec.accounting,
        fresh=lambda: load_model(state_path(spec.states, spec.fit)),
    )
    kept = points_to_keep(scores["valid"].rows, metrics[0])
    return Trial.of(
        spec,
        points=tuple(row for score in scores.values() for row in score.rows),
        values=tuple(
            stored_values(name, parts[name], paths[name], scores[name], kept)
            for name in ("valid", "test")
            if kept
        ),
        audit=verdict.word,
        error=verdict.reason,
        predict_seconds=paths["valid"].seconds + paths["test"].seconds,
        peak_rss_mb=peak_rss_mb(),
        marks=plain_marks(model_of(model).marks),
        sensors=sensors_of(splits),
        stages=stages_of(model, paths["test"], kept),
    )


def same_points(paths: Mapping[str, PredictedPath]) -> None:
    """Raise ContractError where two splits have different paths."""
    first, *others = paths.values()
    if any(path.points != first.points for path in others):
        raise ContractError(f"its path differs between the splits {', '.join(paths)}")


def stages_of(model: Any, path: PredictedPath, kept: tuple[int, ...]) -> dict[str, Any]:
    """The stages of a model, and who reached them at the points ``kept`` of its path."""
    tree = model_of(model).stage_tree
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
