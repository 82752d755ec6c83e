"""Rows of runs and runs' records small enough to judge claims on by eye."""

from __future__ import annotations

from typing import Any

import pandas as pd

from bench_core.results.operating_points import Criterion
from bench_core.results.records import RunInfo

ACCURACY = Criterion("accuracy", True)
BASE = {"id": "a", "source": "s", "says": "x", "published": "1", "dataset": "letters"}


def rows(
    learner: str, points: list[tuple[float, float, float]], **more: Any
) -> list[dict[str, Any]]:
    """Points given as (cost, validation quality, test quality)."""
    return [
        {
            "suite": "s", "profile": "paper", "dataset": "letters", "accounting": "path", "fold": 0,
            "seed": 0, "learner": learner, "params": "{}", "point": str(p), "split": split,
            "status": "ok", "audit": "sampled", "unit": "cost", "stand_in": False,
            "accuracy": quality, "total_cost": float(cost), "fit_seconds": 4.0, **more,
        }
        for p, (cost, valid, test) in enumerate(points)
        for split, quality in (("valid", valid), ("test", test))
    ]  # fmt: skip


def frame(*parts: list[dict[str, Any]]) -> pd.DataFrame:
    return pd.DataFrame([row for part in parts for row in part])


def info(*uses: dict[str, Any], **changes: Any) -> RunInfo:
    fields: dict[str, Any] = {
        "run": "r", "number": 1, "created_at": "", "updated_at": "", "state": "finished",
        "suite": "s", "title": "", "paper": "", "profile": "paper", "reference": "full",
        "accounting": "path",
        "metrics": ("accuracy", "log_loss"),
        "higher_is_better": {"accuracy": True, "log_loss": False},
        "datasets": uses, "planned": 1, "counts": {"ok": 1}, "notes": (), "warnings": (),
        "extra": {}, "request": {},
    }  # fmt: skip
    return RunInfo(**(fields | changes))


def use(name: str, **changes: Any) -> dict[str, Any]:
    return {
        "name": name,
        "stand_in": False,
        "stand_in_for": "",
        "metrics": ("accuracy",),
        "notes": (),
        "size": "paper",
        "features": 16,
        "rows": {"train": 12, "valid": 4, "test": 5},
    } | changes
