"""Content keys: what a result depends on, and nothing else.

FitKey = learner (name, version, the source it runs), parameters, the fits it needs, training data
(fingerprint, task, fold, names of features), prices to train on, primary metric (a learner may stop
early by it), seed. ScoreKey = FitKey + metrics, cost model, accounting, audit, whether training
rows are scored, and the name that the data set goes by in results. Of metrics and cost models that
plugins bring the source enters too. Threads, workers and machine do not enter: they must not change
a result.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_core._io.digests import code_key, digest
from bench_core.contracts import learner_of
from bench_core.parameters import as_json, is_learner, parameters

if TYPE_CHECKING:
    from bench_core.protocols import Metric

SCORING = 4
"""Rises when scoring, metering or the audit would give other rows for the same model."""


def learner_key(learner: Any, version: str = "") -> dict[str, Any]:
    """Everything about a learner that decides what it computes, as JSON."""
    cls: Any = type(learner)
    values = [getattr(learner, p.name) for p in parameters(cls)]
    key = {
        "name": cls.name,
        "version": version,
        "code": code_key(cls),
        "params": as_json(learner),
        "inner": [learner_key(value) for value in values if is_learner(value)],
    }
    stamp = learner_of(learner).stamp()
    return {**key, "stamp": stamp} if stamp else key


def fit_key(
    learner: Mapping[str, Any],
    needs: Iterable[str],
    data: Mapping[str, Any],
    metric: Sequence[str],
    seed: int,
) -> str:
    """The FitKey. ``learner`` from ``learner_key``, ``needs`` FitKeys, ``data`` fingerprint,
    task, classes, fold, prices and names of features, ``metric`` from ``metric_key``."""
    return digest(["fit", learner, list(needs), data, metric, seed])


def metric_key(metric: Metric) -> tuple[str, ...]:
    """A metric's name, and for one that a plugin brings a digest of its source."""
    cls = type(metric)
    built_in = cls.__module__.startswith("bench_core.")
    return (metric.name,) if built_in else (metric.name, code_key(cls))


def score_key(
    fit: str,
    dataset: str,
    costs: str,
    metrics: Iterable[Sequence[str]],
    accounting: str,
    audit: str,
    splits: Iterable[str],
) -> str:
    """The ScoreKey: how a fitted model is judged. ``dataset`` is its name in results (equal rows
    may go by two names), ``costs`` from ``costs_key``, ``metrics`` from ``metric_key``."""
    how = [list(metrics), accounting, audit, list(splits)]
    return digest(["score", SCORING, fit, dataset, costs, *how])
