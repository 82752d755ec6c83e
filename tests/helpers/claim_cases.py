"""Rows and records of runs small enough to judge claims by eye."""

import pandas as pd
from bench_claims.claims import Claim
from bench_claims.verdicts import judge

from bench_core.results.operating_points import Criterion
from helpers import example

ACCURACY = Criterion("accuracy", True)
BASE = {"id": "a", "source": "s", "says": "x", "published": "1", "dataset": "letters"}


def rows(learner, points, **more):
    """Points given as (cost, validation quality, test quality)."""
    return [
        {
            "suite": "s", "profile": "paper", "dataset": "letters", "accounting": "path", "fold": 0,
            "seed": 0, "learner": learner, "params": "{}", "point": str(p), "split": split,
            "status": "ok", "audit": "sampled", "unit": "cost", "stand_in": False,
            "accuracy": quality, "cost": float(cost), "cost_max": float(cost),
            "fit_seconds": 4.0, **more,
        }
        for p, (cost, valid, test) in enumerate(points)
        for split, quality in (("valid", valid), ("test", test))
    ]  # fmt: skip


def frame(*parts):
    return pd.DataFrame([row for part in parts for row in part])


def claim(measure, **more):
    """A claim on the learners ``first`` and ``second``, or on others."""
    return Claim.of({**BASE, "learners": ["first", "second"], "measure": measure, **more})


def judged(measure, *parts, metric=ACCURACY, store=None, **more):
    """The verdict on a claim from these rows."""
    return judge(claim(measure, **more), frame(*parts), metric, store)


def info(*uses, **changes):
    own = {"run": "r", "suite": "s", "profile": "paper"}
    own |= {"metrics": ("accuracy", "log_loss"), "datasets": uses, "counts": {"ok": 1}}
    own |= {"higher_is_better": {"accuracy": True, "log_loss": False}}
    return example.info(**(own | {"extra": {}, "request": {}, "absent": ()} | changes))


def use(name, **changes):
    rows = {"train": 12, "valid": 4, "test": 5}
    own = {"metrics": ("accuracy",), "size": "paper", "features": 16, "rows": rows}
    return example.use(name, **(own | changes))
