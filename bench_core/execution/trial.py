"""One fit and one trial as pure functions of a JSON specification.

``run_fit`` learns and saves the model's state; ``run_trial`` loads it, predicts the splits in
blocks, meters, scores and audits. Both run in a worker process or in the caller's.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from bench_core._io.digests import canonical, import_key
from bench_core._io.large_arrays import shared_arrays
from bench_core._io.machine import peak_rss_mb, reset_peak_rss
from bench_core.arrays import Array
from bench_core.class_names import admit_code, decode, encode, is_shipped_name, trust
from bench_core.data import Examples
from bench_core.datasets.cache import SHARED, open_prepared
from bench_core.errors import UsageError
from bench_core.execution import predict
from bench_core.execution.audit import replay
from bench_core.execution.caps import Caps
from bench_core.execution.context import Build, Context, Progress, context
from bench_core.execution.contract import ContractError, plain_marks
from bench_core.execution.hosted import POSSIBLE, Hosted
from bench_core.execution.loading import loading
from bench_core.execution.more_on_test import as_on_test, costs_more_on_test
from bench_core.execution.score import SplitScore, condense, score_split, unit_costs
from bench_core.metrics import parse_metric
from bench_core.metrics.frontier import choosable
from bench_core.protocols import Marked, Metric, Staged
from bench_core.results.budgets import CAP
from bench_core.results.records import (
    MORE_ON_TEST,
    NOT_PRIVATE,
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
from bench_core.results.store_files import (
    costs_path,
    load_model,
    model_class,
    save_model,
    state_path,
)
from bench_core.splits import SPLITS, Splits

LARGEST_VALUE = 1e30
"""Of a metric, per unit: what intervals are made of must have sums in float32."""

OWN_COUNT = "evaluations as declared"
"""The mark of a stranger's model whose evaluations cost something."""


def perform(job: Job, progress: Progress, apart: bool = True) -> Result:
    """Do a job in this process; raises whatever goes wrong. ``apart``: models of strangers live in
    processes of their own, where the system can do that; while ``bench audit`` they always do."""
    if isinstance(job.spec, FitSpec):
        return run_fit(job.spec, progress)
    return run_trial(job.spec, progress, apart or job.kind == "audit")


def run_fit(spec: FitSpec, progress: Progress = lambda done, total: None) -> FitResult:
    """Fit one learner and save its state; what is raised on the way is the caller's to report."""
    reset_peak_rss()
    trust([*spec.plugins, *spec.modules])
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
        return _kept_beside(Path(spec.data), spec.origin, name, module, build)

    metric = find_metric(spec.metric, spec.plugins, spec.judges)
    return context(splits, metric, spec.seed, spec.threads, fitted, shared, progress)


def _kept_beside(
    data: Path, origin: str, name: str, module: str, build: Build
) -> Mapping[str, Array]:
    """Arrays of the training data, kept beside it until the code of ``module`` changes.

    A stranger, who may name any module as its own, gets those of its ``origin`` alone. Where
    somebody else's prepared data may be read and not written they are not kept.
    """
    code = import_key(module)
    safe = "".join(c if c.isalnum() or c in "-_." else "_" for c in name)
    if origin:
        safe = f"{origin.replace('/', '_')}+{safe}"
    folder = data / SHARED
    path = folder / f"{safe}-{code[:16]}"
    place = folder if folder.is_dir() else folder.parent
    if not code or (not path.is_dir() and not os.access(place, os.W_OK)):
        return build()
    return shared_arrays(path, build)


def run_trial(
    spec: TrialSpec,
    progress: Progress = lambda done, total: None,
    apart: bool = False,
) -> Trial:
    """Predict, meter, score and audit one fitted model.

    The model of a stranger, if ``apart``, lives in a process of its own, and so do the instances
    of it that are shown replaced cells: labels, metrics and this judgement are out of its reach.
    What was judged beside such a model is only declared.
    """
    reset_peak_rss()
    splits = open_splits(spec)
    metrics = [find_metric(name, spec.plugins, spec.judges) for name in spec.metrics]
    with ExitStack() as stack:
        model = stack.enter_context(_loaded(spec, apart))
        paths, scores = _scored(spec, splits, model, metrics, progress)
        if more := costs_more_on_test(paths, splits, scores):
            scores["valid"] = as_on_test(scores)
        verdict = _audited(spec, splits, model, paths["test"], apart)
        hosted = isinstance(model, Hosted)
        if spec.origin and not hosted and verdict.word != "failed":
            verdict = Verdict("declared")
        values = _values(splits, paths, scores, metrics[0])
        return Trial.of(
            spec,
            points=tuple(row for score in scores.values() for row in score.rows),
            values=values,
            audit=verdict.word,
            error=verdict.reason,
            predict_seconds=paths["valid"].seconds + paths["test"].seconds,
            peak_rss_mb=max(peak_rss_mb(), model.peak_rss_mb if hosted else 0.0),
            marks=(*_marks(spec, splits, model), *([MORE_ON_TEST] if more else ())),
            sensors=sensors_of(splits),
            stages=_stages(model, paths["test"], values[0].points if values else ()),
        )


def _marks(spec: TrialSpec, splits: Splits, model: Any) -> tuple[str, ...]:
    """The model's own; that its word alone says how many splits and trees it evaluates, where that
    is paid for; and that its processes could leave notes for each other."""
    own = plain_marks(model.marks) if isinstance(model, Marked) else ()
    one = np.ones(1)
    paid = float(splits.costs.evaluation_cost(one, one, 1).sum()) > 0
    counted = (OWN_COUNT,) if spec.origin and paid else ()
    shared = (NOT_PRIVATE,) if isinstance(model, Hosted) and not model.private else ()
    return (*own, *counted, *shared)


def _loaded(spec: TrialSpec, apart: bool) -> AbstractContextManager[Any]:
    """A fresh instance of the fitted model, here or in a process of its own."""
    path = state_path(spec.states, spec.fit)
    ours = not spec.origin and is_shipped_name(model_class(path))
    named = [] if ours else [*spec.plugins, *spec.modules]
    if apart and POSSIBLE and not ours:
        runs = [*filter(None, spec.origin.split("+"))]
        prepared = [str(Path(spec.data).parent)]
        return Hosted(path, spec.threads, named, runs, spec.private, prepared)
    trust(named)
    return nullcontext(load_model(path))


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
        judged = paths[name], part, splits.costs, metrics, name, spec.threads
        scores[name] = score_split(*judged, level=bool(spec.origin))
    same_points(paths)
    return paths, scores


def _audited(
    spec: TrialSpec, splits: Splits, model: Any, path: predict.Path, apart: bool
) -> Verdict:
    """What a stranger's audit looks at is drawn by a secret that no fit could know; of a model that
    comes with bench by the key, so that its verdict is always the same."""
    if spec.audit_mode == "off":
        return Verdict("declared")
    second = None if isinstance(model, Hosted) else _loaded(spec, apart)
    return replay(
        model,
        splits.test,
        splits.costs,
        splits.classes,
        spec.audit_mode,
        seed=secrets.token_hex(16) if spec.origin else spec.key,
        aim=bool(spec.origin),
        path=path,
        accounting=spec.accounting,
        fresh=lambda: second or _loaded(spec, apart),
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
        cost = of.cost[k] + score.raised[p] if len(score.raised) else of.cost[k]
        means, rows = unit_costs(cost, part.groups, part.weights, score.units)
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
    costs = costs_path(spec.states, spec.costs)
    if not is_shipped_name(model_class(costs)):
        trust([*spec.plugins, *spec.modules])
        admit_code(model_class(costs))
    return splits.under(load_model(costs))


def find_metric(name: str, plugins: Sequence[str], judges: Sequence[str]) -> Metric:
    """A metric by its spelling; where it is not built in, one of the modules ``judges`` brings it,
    and no other plugin is imported."""
    try:
        return parse_metric(name)
    except UsageError:
        from bench_core.plugins import load_registry

        admit_code(*judges)
        found = load_registry(plugins, lambda plugin, _: plugin.module not in judges)
        return parse_metric(name, found.metrics)
