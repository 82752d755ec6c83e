"""A finished run by hand: two data sets, four learners, three seeds, failures, hostile names.

Every number is chosen so that a reader can work out the board without a computer.
"""

import json

import pandas as pd

from bench_core.results.records import DatasetUse, RunInfo
from bench_core.splits import SAMPLE, Note

HOSTILE = "<img src=x onerror=alert(1)>"
HOSTILE_ERROR = "Traceback: </script><script>alert('boo')</script>\nsecond line \x1b[31mred"


MEASURED = (*("ndcg@5", "accuracy", "mse", "feature_cost", "cost"), *("cost_max", "features_used"))


def claim(name, dataset, says, published, holds, **more):
    about = {"source": "Somebody, 2012, figure 1", "measure": "quality", "learners": ["miser"]}
    about |= {"id": name, "says": says, "published": published, "dataset": dataset, "holds": holds}
    return about | more


CLAIMS = (
    claim(
        *("cheap-forest", "forest", "miser keeps the accuracy at a sixth of the cost on Forest"),
        *("5/6 saved", ">= 0.8"),
        measure="saving",
        learners=["miser", "gbrt"],
    ),
    claim(
        *("good-forest", "forest", "miser has an accuracy of .95 on Forest", ".95", ">= 0.95"),
        source=HOSTILE,
    ),
    claim("licensed", "yahoo", "miser is best on Yahoo", "1", ">= 0"),
    claim("absent", "miniboone", "miser is best on MiniBooNE", "1", ">= 0"),
)


def use(name, **changes):
    fields = {
        "title": f"the {name} data",
        "task": "ranking",
        "size": "quick",
        "fingerprint": "f" * 64,
        "features": 519,
        "rows": {"train": 1000, "valid": 500, "test": 500},
        "queries": {"train": 50, "valid": 25, "test": 25},
        "price_of_everything": 16948.0,
        "unit": "units",
        "metrics": ("ndcg@5",),
        "reference": "gbrt",
    }
    return DatasetUse(name, **fields | changes)


def info(**changes):
    fields = {
        "run": "20260102-1",
        "number": 3,
        "created_at": "2026-01-02T03:04:05Z",
        "state": "finished",
        "suite": "yahoo",
        "title": "Ranking under a budget",
        "paper": "",
        "profile": "quick",
        "accounting": "path",
        "metrics": ("ndcg@5", "accuracy", "mse"),
        "higher_is_better": {"ndcg@5": True, "accuracy": True, "mse": False},
        "datasets": (
            use("yahoo-sim", stand_in=True, stand_in_for="yahoo", notes=(Note("", "generated"),)),
            use(
                "forest",
                task="binary",
                metrics=("accuracy",),
                features=54,
                price_of_everything=54.0,
                notes=(Note(SAMPLE, "sample of 100000 rows"),),
            ),
        ),
        "planned": 20,
        "counts": {"ok": 17, "failed": 2, "timeout": 1},
        "notes": (),
        "warnings": (),
        "extra": {"claims": CLAIMS},
        "absent": ("miniboone",),
        "request": {"suite": "yahoo", "learners": ["miser", "cegb"], "workers": 0},
    } | changes
    return RunInfo(**fields)


def rows(
    dataset,
    learner,
    params,
    points,
    *,
    metric="ndcg@5",
    seed=0,
    shift=0.0,
    audit="sampled",
    stand_in=False,
):
    """Rows of one trial: quality and cost per point, on test ``shift`` better or worse."""
    return [
        trial(dataset, learner, params, seed=seed, audit=audit, stand_in=stand_in)
        | {
            "point": json.dumps(point),
            "split": split,
            metric: quality + (shift if split == "test" else 0.0),
            "cost": cost,
            "feature_cost": cost,
        }
        for point, quality, cost in points
        for split in ("valid", "test")
    ]


def trial(dataset, learner, params, *, seed=0, status="ok", error="", audit="", stand_in=False):
    return {
        "run": "20260102-1",
        "suite": "yahoo",
        "profile": "quick",
        "dataset": dataset,
        "fold": 0,
        "fingerprint": "f" * 64,
        "stand_in": stand_in,
        "learner": learner,
        "learner_version": "1",
        "code": "c0de",
        "versions": "python 3.11.7, numpy 2.4.6, scipy 1.17.1, BLAS SkylakeX",
        "params": json.dumps(params),
        "seed": seed,
        "point": None,
        "split": None,
        "status": status,
        "error": error,
        **dict.fromkeys(MEASURED),
        "evaluation_cost": 0.0,
        "accounting": "path",
        "unit": "units",
        "audit": audit,
        "fit_seconds": 2.0,
        "predict_seconds": 1.0,
        "peak_rss_mb": 100.0,
        "machine": "two cores",
        "created_at": "2026-01-02T03:04:05Z",
    }


def frame():
    """gbrt: best 0.80 at 9000, 99% (0.792) from 6000 on. miser: 0.795 at 3000 and 0.799 at 5000.

    cegb never reaches 0.792. The hostile learner fails, the peeking one fails its audit.
    """
    made = []
    for seed, shift in ((0, -0.01), (1, 0.0), (2, 0.01)):
        same = {"seed": seed, "shift": shift, "stand_in": True}
        sim = "yahoo-sim"
        own = {"trees": 300}
        best = _path((10, 0.7, 2000.0), (100, 0.793, 6000.0), (300, 0.8, 9000.0))
        made += rows(sim, "gbrt", own, best, **same)
        own = {"trees": 300, "tradeoff": 0.1}
        made += rows(sim, "miser", own, _path((50, 0.75, 1000.0), (300, 0.799, 5000.0)), **same)
        own = {"trees": 300, "tradeoff": 1.0}
        made += rows(sim, "miser", own, _path((50, 0.7, 1500.0), (300, 0.795, 3000.0)), **same)
        made += rows(sim, "cegb", {"tradeoff": 3.0}, _path((9, 0.78, 500.0)), **same)
        made += rows(sim, "peek", {}, _path((9, 0.99, 1.0)), **(same | {"audit": "failed"}))
    made.append(trial("yahoo-sim", HOSTILE, {"a": 1}, status="failed", error=HOSTILE_ERROR))
    made.append(trial("yahoo-sim", "slow", {"a": 1}, status="timeout", error="over 600 s"))
    made.append(trial("yahoo-sim", "slow", {"a": 2}, status="timeout", error="over 600 s"))
    for learner, quality, cost in (("gbrt", 0.9, 54.0), ("miser", 0.895, 9.0)):
        path = _path((1, 0.7, 2.5), (270, quality, cost))
        more = {"metric": "accuracy", "audit": "verified"}
        made += rows("forest", learner, {"trees": 300}, path, **more)
    return pd.DataFrame(made)


def _path(*points):
    return [({"trees": trees}, quality, cost) for trees, quality, cost in points]
