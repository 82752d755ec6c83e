"""The same seed gives the same bits, whoever works and on however many threads."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers.every_learner_cases import LEARNERS, quick

import bench_core
from bench_core import Features, Task
from bench_core.conformance import task_splits
from bench_core.conformance.cases import fit

MEASURED = ["fit_seconds", "predict_seconds", "peak_rss_mb", "created_at"]
HOW = ["threads", "workers"]  # what the runs differ in
ROWS = 1000


@pytest.fixture
def small_pieces(monkeypatch, few_purchases):
    """Threads share the work on few rows too; learners of many sets of purchases have few."""
    for engine in ("binning._ROWS", "losses.PIECE", "losses.FEW_ROWS"):
        monkeypatch.setattr(f"bench_trees.{engine}", 64)
    for models in ("_ROWS", "_CELLS"):
        monkeypatch.setattr(f"bench_models.dictionary.{models}", 64)
    monkeypatch.setattr("bench_trees.grower.WORTH", 2000)
    monkeypatch.setattr("bench_trees.grower.WORTH_TREES", 0)


def rows_of(store, data, executor, threads, **options):
    result = bench_core.run(
        data=data, executor=executor, threads=threads, workers=2, store=store, **options
    )
    assert result.failures == ()
    return result.frame().drop(columns=[*MEASURED, *HOW])


def same_everywhere(data, **options):
    one = rows_of("one.db", data, "inline", 1, **options)
    two = rows_of("two.db", data, "inline", 2, **options)
    away = rows_of("away.db", data, "local", 2, **options)
    assert len(one) > 10
    pd.testing.assert_frame_equal(one, two, check_exact=True)
    pd.testing.assert_frame_equal(one, away, check_exact=True)


def test_rankings_come_out_alike_on_threads_and_in_workers(elsewhere):
    learners = ["gbrt", "miser", "cegb", "cronus"]
    settings = [f"{name}.trees=6" for name in learners[:3]]
    settings += ["gbrt.loss=lambdarank", "miser.tradeoff=0.3", "cegb.tradeoff=0.3"]
    settings += ["cronus.base={learner='gbrt', trees=10}", "cronus.stages=3", "cronus.cycles=2"]
    settings += ["cronus.relevant_grade=2", "cronus.tradeoff=0.2"]
    write_ranking(elsewhere / "rank.svm")
    same_everywhere("rank.svm", learners=learners, settings=settings)


large = cache(lambda task: task_splits(task, ROWS))


def bits(learner, splits, threads):
    """Scores and bills of every point on some test rows."""
    found, test = [], splits.test.features
    part = test if test.queries else Features(test.X[:500])
    for p in fit(learner, splits, threads=threads).predict_path(part):
        n, bill = len(part), p.bills["path"]
        costs = bill.feature_cost(splits.prices, n), bill.evaluation_cost(splits.prices, n)
        found += [p.scores.tobytes(), *(np.asarray(cost).tobytes() for cost in costs)]
    return found


@pytest.mark.parametrize("name", sorted(LEARNERS))
def test_every_learner_comes_out_alike_on_threads(name, tmp_path, small_pieces):
    usual = (Task.BINARY, Task.RANKING, Task.CHOICE)
    task = next(task for task in usual if task in LEARNERS[name].tasks)
    splits = large(task)
    learner = quick(name, task, splits.train, tmp_path)
    assert bits(learner, splits, 1) == bits(learner, splits, 2)


def write_ranking(path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 40)).round(3)
    grade = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + 0.3 * rng.normal(size=ROWS), [-0.5, 0.5, 1.5])
    with path.open("w") as out:
        for i, (x, y) in enumerate(zip(X, grade, strict=True)):
            cells = " ".join(f"{j + 1}:{v:g}" for j, v in enumerate(x) if v)
            out.write(f"{y} qid:{i // 20} {cells}\n")
