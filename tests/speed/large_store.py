"""A store with one run of many trials, written by the writer itself.

    python tests/speed/large_store.py results/large.db [--trials 10000]

Five data sets, eight learners, five seeds and 50 settings of each; a trial has 46 operating points
on validation and on test, their quality rising and levelling off with their cost, and values of
400 queries at 12 points.
"""

import argparse
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers.stores import ABOUT, FIT, TRIAL, ended_well, point_row, put_fit, put_trial

from bench_core.results.records import Sensors, StoredValues
from bench_core.results.writer import open_writer

POINTS, KEPT, QUERIES, FEATURES = 46, 12, 400, 60
DATASETS, LEARNERS, SEEDS = 5, 8, 5


def trial(number):
    dataset, learner = number % DATASETS, number // DATASETS % LEARNERS
    seed, setting = number // (DATASETS * LEARNERS) % SEEDS, number // (DATASETS * LEARNERS * SEEDS)
    return replace(
        TRIAL,
        key=f"{number:032x}",
        title=f"learner-{learner} setting={setting} on data-{dataset}, seed {seed}",
        fit=f"{number:031x}f",
        learner=f"learner-{learner}",
        params={"trees": 300, "depth": 4, "tradeoff": 0.01 * 1.1**setting, "rate": 0.1},
        dataset=f"data-{dataset}",
        seed=seed,
        fingerprint=f"{dataset:064x}",
        task="ranking",
        metrics=("ndcg@5", "precision@5"),
        unit="cost units",
    )


def outcome(spec, number):
    rng = np.random.default_rng(number)
    place = np.arange(1, POINTS + 1) / POINTS
    level = 0.7 + 0.02 * rng.random()
    paid = 100 * place + rng.random(POINTS)
    rows, values = [], []
    for split in ("valid", "test"):
        quality = level * (1 - np.exp(-5 * place)) + 0.002 * rng.normal(size=POINTS)
        dearer = rng.uniform(0.8, 1.2, QUERIES)
        cost = paid * dearer.mean()
        for k in range(POINTS):
            metrics = {"ndcg@5": float(quality[k]), "precision@5": float(quality[k] ** 2)}
            costs = cost[k] * np.array([0.9, 0.1, 1, 2])
            point, used = {"trees": int(300 * place[k])}, int(FEATURES * place[k])
            rows.append(point_row(k, point, split, metrics, costs, used))
        kept = np.unique(np.linspace(0, POINTS - 1, KEPT).astype(int))
        by_query = rng.normal(size=QUERIES)
        values.append(
            StoredValues(
                split=split,
                points=tuple(kept.tolist()),
                metric=(quality[kept, None] + 0.2 * by_query).astype(np.float32),
                cost=(paid[kept, None] * dearer).astype(np.float32),
                weights=np.ones(QUERIES, dtype=np.float32),
                rows=np.full(QUERIES, 20, dtype=np.float32),
                bought=rng.random((KEPT, FEATURES)).round(2).astype(np.float32),
            )
        )
    names = tuple(f"f{j}" for j in range(FEATURES))
    sensors = Sensors(names, tuple(1.0 + j for j in range(FEATURES)))
    return ended_well(spec, rows, values, sensors)


def write(path, trials):
    specs = [trial(number) for number in range(trials)]
    uses = [
        {
            "name": f"data-{d}",
            "task": "ranking",
            "reference": "learner-0",
            "fold": 0,
            "seed": seed,
            "fingerprint": f"{d:064x}",
            "metrics": ["ndcg@5", "precision@5"],
            "stand_in": False,
            "queries": {"train": 2000, "valid": QUERIES, "test": QUERIES},
            "rows": {"train": 40_000, "valid": 20 * QUERIES, "test": 20 * QUERIES},
            "features": FEATURES,
        }
        for d in range(DATASETS)
        for seed in range(SEEDS)
    ]
    about = {
        **ABOUT,
        "suite": "large",
        "title": "Many trials",
        "metrics": ["ndcg@5", "precision@5"],
        "higher_is_better": {"ndcg@5": True, "precision@5": True},
        "datasets": uses,
    }
    run = "large-quick-0"
    with open_writer(path) as writer:
        writer.db.execute("PRAGMA synchronous = OFF")
        writer.begin(run, about, [spec.key for spec in specs])
        for number, spec in enumerate(specs):
            put_fit(writer, run, replace(FIT, key=spec.fit, title=spec.title))
            put_trial(writer, run, outcome(spec, number))
        writer.end(run, "finished")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("path", type=Path)
    parser.add_argument("--trials", type=int, default=10_000)
    given = parser.parse_args()
    write(given.path, given.trials)
