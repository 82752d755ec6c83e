"""How often the intervals of a board hold the truth: simulated, where it is known.

    pytest -m slow -s tests/core/leaderboard/test_coverage.py

A reference and a learner with six points of rising cost, on units that are hard for both alike. The
truth of a quality is the mean over all boards (``own``), or the true quality of the point that this
board chose (``point``). The truth of a saving (``chosen``) is the ratio of true mean costs at the
points that this board chose, the models that a user takes. Only boards that have a saving show an
interval.
"""

import json
from typing import NamedTuple

import numpy as np
import pytest
from helpers.levels import of_units_alone
from helpers.valued_run import ValuedRun
from threadpoolctl import threadpool_limits

from bench_core.data import Queries
from bench_core.execution.trial import by_group
from bench_core.leaderboard.certainty import FREE, _ends, savings
from bench_core.leaderboard.draws import NO_LIMIT, Draws
from bench_core.metrics.frontier import best_within, cheapest, share_of, taken
from bench_core.results.budgets import SHARE, Target
from bench_core.statistics import LEVEL, WIDE_LEVEL
from bench_core.statistics.bootstrap import (
    FEW,
    FEW_DRAWS,
    Candidates,
    Units,
    draw,
    errors,
    errors_needed,
)
from bench_core.statistics.comparison import interval
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
    """By kind of figure its value and the two ends of its interval, of one board, the true quality
    of the learner's point within the budget, whether the board shows a saving and that of the true
    costs."""

    own: tuple[float, float, float]
    skill: float
    difference: tuple[float, float, float]
    saving: tuple[float, float, float]
    wide: tuple[float, float, float]
    shown: bool
    chosen: float


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
    skill = skills[1][int(within[0])]
    qualities, cost = map(np.stack, zip(*rows, strict=True))
    within = of_units(qualities, *units)
    ratio = np.nan_to_num(cost[0] / cost, nan=1.0)
    logs = of_units(np.log(np.clip(ratio, 1 / FREE, FREE)).round(6), *units)
    saving = float(np.exp(logs.observed[1]))
    return Found(
        (float(within.observed[1]), *interval(within, np.array([0.0, 1.0]))),
        float(skill),
        (float(GAP @ within.observed), *interval(within, GAP)),
        (saving, *_ends(logs, 1, saving, LEVEL)),
        (saving, *_ends(logs, 1, saving, WIDE_LEVEL)),
        points[1] >= 0,
        float(COST[points[0]] / COST[points[1]]),
    )


def held(found, kind, truth):
    """On which boards an interval lies below the truth (-1), holds it (0) or lies above."""
    value, low, high = np.array([getattr(one, kind) for one in found]).T
    truth = value.mean() if truth is None else truth
    # ends are rounded to six digits of the logarithm
    return (low > truth * (1 + 1e-6)).astype(float) - (high < truth * (1 - 1e-6))


def shares(world, m, blocks, boards, resamples, split=split):
    """How often the intervals of each kind hold the truth, printed too; of a saving, on boards that
    show one."""
    rng = np.random.default_rng(m)  # the same boards for any number of draws
    skills = np.array({**WORLDS, **EQUAL}[world])
    with threadpool_limits(1, "blas"):  # several wait for each other longer than they compute
        found = [board(rng, skills, m, blocks, resamples, split) for _ in range(boards)]
    there = [one for one in found if one.shown]
    chosen, skill = np.array([one.chosen for one in there]), np.array([one.skill for one in found])
    share = {"shown": len(there) / boards}
    kinds = [("own", found, "own", None), ("difference", found, "difference", None)]
    kinds += [("point", found, "own", skill)]
    kinds += [("chosen", there, "saving", chosen), ("wide", there, "wide", chosen)]
    for kind, of, figure, truth in kinds if there else kinds[:3]:
        side = held(of, figure, truth)
        share[kind] = float((side == 0).mean())
        print(
            f"{world:<11}{m:>5}{blocks:>5}{resamples:>5} {kind:<11}held {share[kind]:.4f} "
            f"below {(side < 0).mean():.4f} above {(side > 0).mean():.4f}",
            flush=True,
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
    for kind in ("point", "own", "difference"):
        assert share[kind] >= 0.94 - 2 * (0.94 * 0.06 / BOARDS) ** 0.5


SIZES = [(60, 512), (150, 512), (400, FEW)]
CASES = [
    *((world, *size) for world in WORLDS for size in SIZES),
    *(("saturating", *size) for size in ((300, 512), (1000, 512), (1000, FEW))),
    ("equal", 400, FEW),
]


@pytest.mark.slow
@pytest.mark.parametrize(("world", "units", "blocks"), CASES)
def test_intervals_hold_the_truth(world, units, blocks):
    share = shares(world, units, blocks, BOARDS, FEW_DRAWS if blocks == FEW else 1000)
    # three standard errors of so many boards
    assert share["own"] == pytest.approx(0.95, abs=0.021)
    assert share["difference"] == pytest.approx(0.95, abs=0.021)
    for kind, least in (("chosen", 0.94), ("wide", 0.98)):  # less two errors
        assert share[kind] >= least - 2 * (least * (1 - least) / (BOARDS * share["shown"])) ** 0.5
