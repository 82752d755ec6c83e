"""How often the intervals of a board hold the truth: simulated, where it is known.

    pytest -m slow -s tests/core/leaderboard/test_coverage.py

BENCH_COVERAGE_DRAWS=399,1000 makes the boards of 128 blocks with each number of draws in turn.

A reference and a learner with six points of rising cost, on units that are hard for both alike. The
truth of a quality is the mean over all boards. A saving has two truths, both ratios of true mean
costs: ``chosen`` at the points that this board chose, the models that a user takes, and ``rule`` at
those that the rule chooses from the true qualities, with the standard errors of so many units.
Intervals are of the first; where several points are nearly sure, a board's own choice is seldom the
second. Only boards that have a saving show an interval.
"""

import json
import os
from typing import NamedTuple

import numpy as np
import pytest
from helpers.levels import of_units_alone
from helpers.valued_run import ValuedRun
from threadpoolctl import threadpool_limits

from bench_core.data import Queries
from bench_core.execution.trial import by_group
from bench_core.leaderboard.board import SHARE
from bench_core.leaderboard.certainty import _FREE, _ends, savings
from bench_core.leaderboard.draws import NO_LIMIT, Draws
from bench_core.metrics.frontier import best_within, cheapest, share_of, taken
from bench_core.results.budgets import Target
from bench_core.statistics import LEVEL, SURE_ERRORS, WIDE_LEVEL
from bench_core.statistics.bootstrap import (
    FEW,
    FEW_DRAWS,
    Candidates,
    Units,
    draw,
    errors,
    errors_needed,
)
from bench_core.statistics.comparison import better_than, differences, interval
from bench_core.statistics.repeats import of_units

BOARDS, BUDGET = 1000, 4.0
COST = np.exp(np.linspace(0, 3, 6))
GAP = np.array([1.0, -1.0])
HARD, LEARNER, POINT = 0.25, 0.1, 0.05  # noise of units: of all, of a learner, and of a point
LINE = [0.5, 0.55, 0.6, 0.64, 0.67, 0.7]
WORLDS = {
    # the target is .693
    "clear": (LINE, [0.5, 0.6, 0.8, 0.8, 0.8, 0.8]),
    "steps": (LINE, [0.5, 0.6, 0.72, 0.74, 0.76, 0.78]),
    "steep": (LINE, [0.45, 0.53, 0.6, 0.67, 0.74, 0.8]),
    # the last points of both differ by less than their noise
    "saturating": (0.7 - 0.12 * np.exp(-0.9 * np.arange(6)), 0.76 - 0.12 * np.exp(-np.arange(6))),
    "flat": ([0.6, 0.68, 0.7, 0.7, 0.7, 0.7], [0.66, 0.72, 0.73, 0.73, 0.73, 0.73]),
    # the last point has the target, but is seldom sure
    "barely": (LINE, [0.6, 0.65, 0.68, 0.685, 0.69, 0.7]),
    "costlier": ([0.55, 0.65, 0.69, 0.698, 0.6995, 0.7], [0.5, 0.6, 0.67, 0.69, 0.7, 0.74]),
}
EQUAL = {"equal": (LINE, LINE)}


class Found(NamedTuple):
    """By kind of figure its value and the two ends of its interval, of one board, whether it shows
    a saving and that of the true costs, the p-value of the difference, and whether the qualities
    are in two tiers."""

    own: tuple[float, float, float]
    difference: tuple[float, float, float]
    saving: tuple[float, float, float]
    wide: tuple[float, float, float]
    shown: bool
    chosen: float
    p: float
    apart: bool


def split(rng, skills, m):
    hard, ones = rng.normal(0, HARD, m), np.ones(m)
    made = []
    for skill in skills:
        noise = rng.normal(0, LEARNER, m) + rng.normal(0, POINT, (len(COST), m))
        cost = COST[:, None] * rng.lognormal(-0.125, 0.5, (len(COST), m))
        made.append(Units(skill[:, None] + hard + noise, cost, ones, ones))
    return made


def split_of_patients(rng, skills, patients):
    """Like ``split``, where units are patients with 4 to 28 visits: what makes a row hard, a
    learner's errors and half of the costs' spread are the patient's."""
    groups = Queries.from_sizes(rng.integers(4, 29, patients))
    of_row, rows = groups.index(), groups.rows
    hard, dear = rng.normal(0, HARD, patients), rng.normal(0, 0.35, patients)
    made = []
    for skill in skills:
        own = hard + rng.normal(0, LEARNER, patients)
        noise = rng.normal(0, 2 * POINT, (len(COST), rows)) + rng.normal(0, 2 * HARD, rows)
        quality = skill[:, None] + own[of_row] + noise
        spread = np.exp(dear[of_row] + rng.normal(-0.1225, 0.35, (len(COST), rows)))
        both = np.concatenate([quality, COST[:, None] * spread])
        means, weights = zip(*(by_group(one, np.ones(rows), groups) for one in both), strict=True)
        means = np.array(means)
        made.append(Units(means[: len(COST)], means[len(COST) :], weights[0], weights[0]))
    return made


def board(rng, skills, m, blocks, resamples, split=split):
    valids, tests = split(rng, skills, m), split(rng, skills, m)
    best = int((valids[0].quality @ valids[0].weights).argmax())
    other = valids[0].quality[best]
    pair = []
    for valid, test in zip(valids, tests, strict=True):
        keys = of_units_alone(valid, test).keys
        pair.append(Candidates.of(valid, test, keys, other, blocks))
    seed, units = int(rng.integers(1 << 30)), pair[0].tested
    drawn = [draw(one, resamples, seed) for one in pair]
    aim = share_of(drawn[0].valid_quality.max(axis=1), SHARE)[:, None]
    rows, points = [], []
    for one, means in zip(pair, drawn, strict=True):
        paired, gain = (one, (pair[0], best), SHARE), means.valid_quality - aim
        error = errors(*paired, resamples, seed)
        needed = errors_needed(*paired, gain[0], error[0])
        sure = cheapest(means.valid_cost, gain >= needed * error)
        within = best_within(means.valid_cost[0], means.valid_quality, BUDGET)
        rows.append((taken(means.test_quality, within), taken(means.test_cost, sure)))
        points.append(int(sure[0]))
    qualities, cost = map(np.stack, zip(*rows, strict=True))
    within = of_units(qualities, *units)
    ratio = np.nan_to_num(cost[0] / cost, nan=1.0)
    logs = of_units(np.log(np.clip(ratio, 1 / _FREE, _FREE)).round(6), *units)
    saving = float(np.exp(logs.observed[1]))
    return Found(
        (float(within.observed[1]), *interval(within, np.array([0.0, 1.0]))),
        (float(GAP @ within.observed), *interval(within, GAP)),
        (saving, *_ends(logs, 1, saving, LEVEL)),
        (saving, *_ends(logs, 1, saving, WIDE_LEVEL)),
        points[1] >= 0,
        float(COST[points[0]] / COST[points[1]]),
        differences(within, [(1, 0)], [0.0])[0].p,
        bool(better_than(within, higher=True).any()),
    )


def true_saving(skills, m):
    """The ratio of true costs where the rule knows the true qualities; 1 where it has no point."""
    best = int(skills[0].argmax())
    paid = []
    for k, skill in enumerate(skills):
        # of a unit's quality less 99% of the reference's
        common = (1 - SHARE) ** 2 * (HARD**2 + (LEARNER**2 if k == 0 else 0))
        apart = POINT**2 + (LEARNER**2 if k else 0)
        variance = np.full(len(COST), common + apart * (1 + SHARE**2))
        if k == 0:
            variance[best] = (1 - SHARE) ** 2 * (HARD**2 + LEARNER**2 + POINT**2)
        sure = skill - SHARE * skills[0][best] >= SURE_ERRORS * np.sqrt(variance / m)
        paid.append(COST[sure].min() if sure.any() else np.nan)
    return float(np.nan_to_num(paid[0] / paid[1], nan=1.0))


def held(found, kind, truth):
    """On which boards an interval lies below the truth (-1), holds it (0) or lies above; the truth;
    and the standard deviation of the intervals' widths over their mean."""
    value, low, high = np.array([getattr(one, kind) for one in found]).T
    truth = value.mean() if truth is None else truth
    width = high - low
    varies = float(width.std() / max(width.mean(), 1e-300))
    # ends are rounded to six digits of the logarithm
    side = (low > truth * (1 + 1e-6)).astype(float) - (high < truth * (1 - 1e-6))
    return side, float(np.mean(truth)), varies


def shares(world, m, blocks, boards, resamples, split=split):
    """How often the intervals of each kind hold the truth, printed too. ``rule`` and ``chosen`` are
    the two truths of a saving, on boards that show one."""
    rng = np.random.default_rng(m)  # the same boards for any number of draws
    skills = np.array({**WORLDS, **EQUAL}[world])
    with threadpool_limits(1, "blas"):  # several wait for each other longer than they compute
        found = [board(rng, skills, m, blocks, resamples, split) for _ in range(boards)]
    there = [one for one in found if one.shown]
    saved, chosen = true_saving(skills, m), np.array([one.chosen for one in there])
    share = {"shown": len(there) / boards}
    kinds = [("own", found, "own", None), ("difference", found, "difference", None)]
    kinds += [("rule", there, "saving", saved), ("chosen", there, "saving", chosen)]
    kinds += [("wide", there, "wide", chosen)]
    for kind, of, figure, known in kinds if there else kinds[:2]:
        side, truth, varies = held(of, figure, known)
        share[kind] = float((side == 0).mean())
        print(
            f"{world:<11}{m:>5}{blocks:>5}{resamples:>5} {kind:<11}truth {truth:.4f} "
            f"held {share[kind]:.4f} below {(side < 0).mean():.4f} above {(side > 0).mean():.4f} "
            f"shown {share['shown']:.2f} width varies {varies:.3f}",
            flush=True,
        )
    print(
        f"{world:<11}{m:>5}{blocks:>5}{resamples:>5} p at most .05 "
        f"{np.mean([one.p <= 0.05 for one in found]):.4f} "
        f"two tiers {np.mean([one.apart for one in found]):.4f}"
    )
    return share


def test_intervals_of_a_few_boards_hold_the_truth():
    share = shares("steep", 150, 512, 200, 200)
    assert share["shown"] > 0.9
    assert share["chosen"] >= 0.92


def over_splits(rng, skills, splits):
    """The saving of a board over several splits with rows of their own, the ends of its 95% and 99%
    intervals, and the ratio of the true mean costs of the chosen points; None without a saving."""
    run = ValuedRun()
    for seed in range(splits):
        valid, test = split(rng, skills, 150), split(rng, skills, 200)
        for name, of_valid, of_test in zip(("gbrt", "mine"), valid, test, strict=True):
            quality, cost = zip(
                *((one.quality, one.cost) for one in (of_valid, of_test)), strict=True
            )
            run.add(name, quality, cost, seed=seed, fingerprint=f"{seed:064}")
    draws = Draws(run.info, run, run.frame, "d", resamples=150)
    keep = Target(SHARE)
    chosen, _ = draws.chosen([keep, NO_LIMIT])
    mine, whole = draws.names.index("mine"), draws.names.index("gbrt")
    saving, saved = savings(draws, chosen[keep], chosen[NO_LIMIT], SHARE)[mine]
    if np.isnan(saving):
        return None
    points = [
        [json.loads(draws.key(row)[1])["trees"] - 1 for row in chosen[keep].row[:, k].tolist()]
        for k in (whole, mine)
    ]
    true = COST[points[0]].mean() / COST[points[1]].mean()
    return saving, *saved.interval, *saved.wide, true


@pytest.mark.slow
@pytest.mark.parametrize("splits", [2, 3, 5, 10])
@pytest.mark.parametrize("world", ["clear", "steps", "saturating"])
def test_savings_over_splits_hold_the_truth(world, splits):
    rng, skills, boards = np.random.default_rng(splits), np.array(WORLDS[world]), 200
    with threadpool_limits(1, "blas"):
        found = [over_splits(rng, skills, splits) for _ in range(boards)]
    shown = np.array([one for one in found if one is not None])
    saving, low, high, lowest, highest, true = shown.T
    held = float(np.mean((low <= true) & (true <= high)))
    wide = float(np.mean((lowest <= true) & (true <= highest)))
    print(
        f"{world:<11}{splits:>3} splits: shown {len(shown) / boards:.2f} "
        f"saving {saving.mean():.3f} truth {true.mean():.3f} held {held:.3f} wide {wide:.3f}",
        flush=True,
    )
    assert saving.mean() == pytest.approx(true.mean(), rel=0.02)
    for share, least in ((held, 0.94), (wide, 0.98)):  # less two errors
        assert share >= least - 2 * (least * (1 - least) / len(shown)) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("patients", [20, 60, 150])
@pytest.mark.parametrize("world", ["clear", "steps", "saturating"])
def test_savings_over_groups_hold_the_truth(world, patients):
    share = shares(world, patients, 512, BOARDS, 1000, split_of_patients)
    for kind, least in (("chosen", 0.94), ("wide", 0.98)):  # less two errors
        assert share[kind] >= least - 2 * (least * (1 - least) / (BOARDS * share["shown"])) ** 0.5


SIZES = [(60, 512), (150, 512), (400, FEW)]
CASES = [
    *((world, *size) for world in WORLDS for size in SIZES),
    *(("saturating", *size) for size in ((300, 512), (1000, 512), (1000, FEW))),
    ("equal", 400, FEW),
]
OF_FEW = [*map(int, os.environ.get("BENCH_COVERAGE_DRAWS", str(FEW_DRAWS)).split(","))]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "units", "blocks", "draws"),
    [(*case, draws) for case in CASES for draws in (OF_FEW if case[2] == FEW else [1000])],
)
def test_intervals_hold_the_truth(world, units, blocks, draws):
    share = shares(world, units, blocks, BOARDS, draws)
    # three standard errors of so many boards
    assert share["own"] == pytest.approx(0.95, abs=0.021)
    assert share["difference"] == pytest.approx(0.95, abs=0.021)
    for kind, least in (("chosen", 0.94), ("wide", 0.98)):  # less two errors
        assert share[kind] >= least - 2 * (least * (1 - least) / (BOARDS * share["shown"])) ** 0.5
