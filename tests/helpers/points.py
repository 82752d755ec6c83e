"""Export rows of operating points that a test names one by one."""

import pandas as pd


def rows(learner, points, *, seed=0, fold=0, dataset="yahoo", metric="ndcg@5", **more):
    """Points given as (trees, cost, validation quality, test quality); test cost is 10 more."""
    out = []
    for trees, cost, valid, test in points:
        for split, quality, charged in (("valid", valid, cost), ("test", test, cost + 10)):
            row = {
                "suite": "s", "profile": "quick", "dataset": dataset, "accounting": "path",
                "fold": fold, "learner": learner, "params": '{"depth": 4}', "seed": seed,
                "point": f'{{"trees": {trees}}}', "split": split, "status": "ok",
                metric: quality, "feature_cost": charged - 1.0, "cost": float(charged),
                "cost_max": float(charged), "features_used": trees,
                "audit": "verified", "unit": "cost",
            }  # fmt: skip
            out.append(row | more)
    return out


def frame(*parts):
    return pd.DataFrame([row for part in parts for row in part])
