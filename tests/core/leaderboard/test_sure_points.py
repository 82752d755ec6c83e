"""How often a point that is called sure has the quality: simulated, where the truth is known, and
on real rows that are divided again.

    pytest -m slow -s tests/core/leaderboard/test_sure_points.py

BENCH_TEST_DATA names the folder of the real data sets.
"""

import os
import subprocess
from typing import NamedTuple

import numpy as np
import pytest
from helpers.commands import BENCH
from helpers.levels import of_units_alone
from scipy import stats

from bench_core.metrics.frontier import cheapest, errors_beyond
from bench_core.results.budgets import SHARE
from bench_core.results.store import Store
from bench_core.statistics.bootstrap import Units, errors, errors_needed

BOARDS = 1080


class Sure(NamedTuple):
    """The reference's best point and a learner's cheapest sure point, -1 without one."""

    best: int
    point: int


def sure_point(reference, learner, cost, weights, share=SHARE):
    """Apply the rule of boards to qualities by row (p, m), on the observed data alone."""
    best = int((reference @ weights).argmax())
    other, rows = reference[best], np.ones(len(weights))
    units = (Units(one, one, weights, rows) for one in (learner, other[None]))
    one, against = (of_units_alone(own, own, other) for own in units)
    gain = (learner - share * other) @ weights / weights.sum()
    error = errors(one, (against, 0), share, 0)[0]
    needed = errors_needed(one, (against, 0), share, gain, error)
    point = cheapest(cost[None], (errors_beyond(gain, error) >= needed)[None])
    return Sure(best, int(point[0]))


class World(NamedTuple):
    """A path of ``points`` and validation ``rows``. The last points of the reference are right on a
    share ``top`` of rows, those of the learner on ``plateau`` times as many."""

    points: int
    rows: int
    top: float
    plateau: float


def path(rng, common, quality, correlation):
    """Right or wrong (p, m) at points of true quality (p,), on rows that are hard for all points.
    Points that are next to each other err on much the same rows."""
    own = rng.normal(0, 1, len(common))
    noise = rng.normal(0, 1, len(common))
    right = np.empty((len(quality), len(common)))
    for k, level in enumerate(stats.norm.ppf(quality)):
        noise = correlation * noise + np.sqrt(1 - correlation**2) * rng.normal(0, 1, len(common))
        right[k] = np.sqrt(0.7) * common + np.sqrt(0.15) * (own + noise) < level
    return right


def simulated(rng, world):
    """For the reference and a learner: 1 for a sure point that has the quality in truth, 0 for one
    that lacks it, and NaN without a sure point."""
    rising = 1 - np.exp(-np.linspace(0, 8, world.points))  # from .6 of the last to the last
    shape = 0.6 + 0.4 * rising / rising[-1]
    # a path gets a little better or worse in truth from point to point
    truth = [
        np.clip(most * shape * (1 + rng.normal(0, 0.002, world.points)), 0.01, 0.999)
        for most in (world.top, min(world.top * world.plateau, 0.999))
    ]
    common = rng.normal(0, 1, world.rows)
    correlation = np.exp(-4 / world.points)  # a path of more points has smaller steps
    right = [path(rng, common, one, correlation) for one in truth]
    found, cost = [], np.arange(1.0, world.points + 1)
    for own, values in zip(truth, right, strict=True):
        sure = sure_point(right[0], values, cost, np.ones(world.rows))
        holds = own[sure.point] >= SHARE * truth[0][sure.best]
        found.append(float(holds) if sure.point >= 0 else np.nan)
    return found


TOPS = (0.75, 0.9, 0.97)
PLATEAUS = (0.97, 0.98, 0.985, 0.99, 0.995, 1.0, 1.005, 1.01, 1.02)


class Held(NamedTuple):
    """Shares of boards: with a sure point, and of these with the quality in truth."""

    sure: float
    right: float


def held(points, rows, boards):
    """The figures of the reference and of the learners over all worlds, printed too."""
    rng = np.random.default_rng([points, rows])
    worlds = [World(points, rows, top, plateau) for top in TOPS for plateau in PLATEAUS]
    each = -(-boards // len(worlds))
    found = np.array([[simulated(rng, world) for _ in range(each)] for world in worlds])
    made = [Held((~np.isnan(v)).mean(), np.nanmean(v)) for v in np.moveaxis(found, 2, 0)]
    print(f"{points:>4} points {rows:>5} rows, reference and learner: {made}", flush=True)
    return made


def test_a_sure_point_mostly_has_the_quality():
    for found in held(20, 300, 54):
        assert found.sure > 0.1
        assert found.right >= 0.8


@pytest.mark.slow
@pytest.mark.parametrize("rows", [300, 1000, 4000])
@pytest.mark.parametrize("points", [20, 60, 200])
def test_a_sure_point_has_the_quality_in_nine_boards_of_ten(points, rows):
    for found in held(points, rows, BOARDS):
        assert found.sure > 0.05
        assert found.right >= 0.9


DIVISIONS = 200


class Rows(NamedTuple):
    """The points of a learner on all validation and test rows."""

    quality: np.ndarray  # (p, m)
    cost: np.ndarray  # (p, m)


def stored_rows(store, dataset):
    """The rows of each learner of a run of one repeat, the weights and the size of validation."""
    found, weights, size = {}, None, 0
    halves = (store.values(split=split, dataset=dataset) for split in ("valid", "test"))
    for valid, test in zip(*halves, strict=True):
        assert (valid.trial, valid.points) == (test.trial, test.points)
        both = [
            np.hstack([getattr(one, name) for one in (valid, test)]) for name in ("metric", "cost")
        ]
        found.setdefault(valid.trial.learner, []).append(both)
        weights, size = np.hstack([valid.weights, test.weights]), len(valid.weights)
    pooled = {name: Rows(*map(np.vstack, zip(*own, strict=True))) for name, own in found.items()}
    return pooled, weights, size


def divided(store, dataset):
    """For each learner: its number of points, and the shares of divisions with a sure point, and
    with one that lacks the quality on the other rows. ``all others`` has the points of all learners
    but the reference."""
    learners, weights, size = stored_rows(store, dataset)
    reference, rng = learners["gbrt"].quality, np.random.default_rng(0)
    outcomes = {name: [] for name in (*learners, OTHERS)}
    for _ in range(DIVISIONS):
        order = rng.permutation(len(weights))
        on, off = order[:size], order[size:]
        found = []
        for name, own in learners.items():
            cost = own.cost[:, on].mean(axis=1)
            best, point = sure_point(reference[:, on], own.quality[:, on], cost, weights[on])
            if point >= 0:
                gain = own.quality[point, off] - SHARE * reference[best, off]
                outcomes[name].append(bool(gain @ weights[off] >= 0))
                found += [(cost[point], outcomes[name][-1])] if name != "gbrt" else []
        outcomes[OTHERS] += [min(found)[1]] if found else []
    points = {name: len(own.quality) for name, own in learners.items()}
    points[OTHERS] = sum(points.values()) - points["gbrt"]
    made = {}
    for name, right in outcomes.items():
        sure, wrong = len(right) / DIVISIONS, (len(right) - sum(right)) / DIVISIONS
        made[name] = (points[name], sure, wrong)
        print(
            f"{dataset:<9} {name:<16}{points[name]:>4} points: sure {sure:.3f} wrong {wrong:.3f}",
            flush=True,
        )
    return made


OTHERS = "all others"
LEARNERS = "gbrt,cegb,budget-boosting,miser,cost-tree"
FOLDERS = {"letters": "letter", "forest": "covertype", "spambase": "spambase"}


def made_table(folder):
    """A table of 6000 rows and 18 priced columns, eight of them of interest."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(6000, 18)).round(3)
    level = 1.6 * X[:, 0] * X[:, 1] + 1.2 * X[:, 2] + 0.9 * (X[:, 3] > 0) * X[:, 4] + 0.6 * X[:, 5]
    level += 0.3 * X[:, 7:12].sum(axis=1) - 0.5 * X[:, 6] * X[:, 2]
    y = 1.8 * level + rng.logistic(size=6000) > 0
    names = [f"f{j}" for j in range(18)]
    np.savetxt(
        folder / "made.csv",
        np.column_stack([X, y]),
        fmt="%g",
        delimiter=",",
        header=",".join([*names, "label"]),
        comments="",
    )
    prices = [1, 2, 5, 1, 3, 8, 2, 1, 4, 6, 2, 1, 10, 3, 2, 7, 1, 2]
    (folder / "made.costs").write_text(
        "".join(f"{n}:{p}\n" for n, p in zip(names, prices, strict=True))
    )
    return ["made.csv", "--label", "label", "--task", "binary", "--costs", "made.costs"]


def run_of(dataset, folder, real_data):
    """The store of a run of the learners."""
    for name, files in FOLDERS.items():
        (folder / name).symlink_to((real_data / files).resolve())
    data = made_table(folder) if dataset == "made.csv" else [dataset]
    run = [BENCH, "run", "--data", *data, "-l", LEARNERS, "--store", "results"]
    environment = {**os.environ, "BENCH_DATA": str(folder)}
    subprocess.run(run, cwd=folder, env=environment, check=True, capture_output=True)
    return Store(folder / "results")


FEW_ROWS = pytest.param(
    "breast-cancer",
    marks=pytest.mark.xfail(
        strict=True,
        reason="the cheapest learner fails on 21.5%: the choice among learners is not corrected",
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("dataset", ["digits", FEW_ROWS, "syn3", "cube"])
def test_on_four_smaller_sets_about_as_many_hold_as_of_single_points(dataset, real_data, tmp_path):
    found = divided(run_of(dataset, tmp_path, real_data), dataset)
    # 12%, for points on the bound; 115 validation rows have fewer errors than a normal bound needs;
    # the cheapest of all learners is one more choice
    for name, (_, _, wrong) in found.items():
        assert wrong <= (0.19 if name == OTHERS else 0.16 if dataset == "breast-cancer" else 0.13)


@pytest.mark.slow
@pytest.mark.parametrize("dataset", ["letters", "thyroid", "spambase", "forest", "made.csv"])
def test_a_sure_point_has_the_quality_on_other_rows_in_nine_divisions_of_ten(
    dataset, real_data, tmp_path
):
    found = divided(run_of(dataset, tmp_path, real_data), dataset)
    assert any(sure for name, (_, sure, _) in found.items() if name != "gbrt")
    assert all(wrong <= 0.1 for _, _, wrong in found.values())
