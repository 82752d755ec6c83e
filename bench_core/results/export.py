"""The export frame: one row per trial, operating point and split."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlite3 import Row

    import pandas as pd

    from bench_core.results.records import RunInfo

_BEFORE = (
    "run",
    "suite",
    "profile",
    "dataset",
    "fold",
    "fingerprint",
    "stand_in",
    "learner",
    "learner_version",
    "params",
    "seed",
    "point",
    "split",
    "status",
    "error",
)
_COSTS = ("feature_cost", "evaluation_cost", "total_cost", "cost_p95", "cost_max")
_AFTER = (
    *_COSTS,
    "features_used",
    "accounting",
    "unit",
    "cost_model",
    "surrogate",
    "audit",
    "fit_seconds",
    "predict_seconds",
    "peak_rss_mb",
    "machine",
    "created_at",
)
_SECONDS = ("fit_seconds", "predict_seconds", "peak_rss_mb")


def export_frame(info: RunInfo, trials: Iterable[tuple[Row, list[Row]]]) -> pd.DataFrame:
    """The export columns in order, from a run's rows of ``trial``, each with its rows of ``point``.

    A trial without points is one row whose point and split are empty.
    """
    import pandas as pd

    rows = [row for trial, points in trials for row in _rows(trial, points, info)]
    frame = pd.DataFrame(rows, columns=[*_BEFORE, *info.metrics, *_AFTER])
    numbers = (*info.metrics, *_COSTS, *_SECONDS)
    kinds = dict.fromkeys(numbers, "float64") | dict.fromkeys(("fold", "seed"), "int64")
    flags = {"stand_in": "bool", "surrogate": "bool"}
    return frame.astype({**kinds, **flags, "features_used": "Int64"})


def _rows(trial: Row, points: list[Row], info: RunInfo) -> Iterator[dict[str, Any]]:
    spec = json.loads(trial["spec"])
    same = {
        "run": info.run,
        "suite": info.suite,
        "profile": info.profile,
        "params": json.dumps(spec["params"], sort_keys=True),
        "status": trial["status"],
        "error": trial["error"] or trial["audit_error"],
        **{k: spec[k] for k in _BEFORE if k in spec and k != "params"},
        **{k: spec[k] for k in ("accounting", "unit", "cost_model", "surrogate")},
        **{k: trial[k] for k in ("audit", "machine", "created_at", *_SECONDS)},
    }
    if not points:
        yield {**same, "point": "", "split": ""}
    for point in points:
        yield {
            **same,
            **json.loads(point["metrics"]),
            **{k: point[k] for k in ("point", "split", *_COSTS, "features_used")},
        }
