"""Rows of runs and runs' records small enough to judge claims on by eye."""

from typing import Any

import pandas as pd

from bench_core.results.operating_points import Criterion
from bench_core.results.records import RunInfo
from helpers import example

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
    own: dict[str, Any] = {"run": "r", "suite": "s", "profile": "paper", "reference": "full"}
    own |= {"metrics": ("accuracy", "log_loss"), "datasets": uses, "counts": {"ok": 1}}
    own |= {"higher_is_better": {"accuracy": True, "log_loss": False}}
    return example.info(**(own | {"extra": {}, "request": {}, "absent": ()} | changes))


def use(name: str, **changes: Any) -> dict[str, Any]:
    rows = {"train": 12, "valid": 4, "test": 5}
    own = {"metrics": ("accuracy",), "size": "paper", "features": 16, "rows": rows}
    return example.use(name, **(own | changes))
