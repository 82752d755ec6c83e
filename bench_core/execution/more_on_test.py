"""Whether rows cost a model more on test than on validation, by more than chance.

Points are chosen by what they cost on validation. A model that bills validation rows as it bills
all others costs as much on both splits, but for the draw of the rows. So their rows (queries, where
there are any) are shuffled ``DRAWS`` times, and at most one shuffle in ``1 / LEVEL`` may make test
cost that much more. Two things are compared at each point: the mean cost of a row, and the share of
rows that cost more than 95% of validation rows do. Each is measured in standard errors, and it is
the greatest over all points that a shuffle has to reach, so that one of many points tells no more
often than a single one would (Westfall and Young, 1993, max-T).

Where test costs more, a point costs on validation what it costs on test (``as_on_test``), wherever
that is more: then a budget is one for test rows too, and none is kept by buying less for rows that
a model knows from its training. Labels take no part in this.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from bench_core.arrays import BoolArray, FloatArray
from bench_core.data import Examples
from bench_core.execution.predict import Path
from bench_core.execution.score import SplitScore
from bench_core.results.records import OperatingPoint
from bench_core.splits import Splits

LEVEL, DRAWS = 0.001, 1999
"""The chance that a fair model is marked, at most; and how many shuffles tell."""

MOST_UNITS = 4000
"""More rows or queries than this, of both splits, are shuffled in groups of neighbours."""

_SOME = 3.0  # standard errors below which no shuffle is made: chance gives as much often
_AT_ONCE = 100
_ROUNDING = 1e-9


def costs_more_on_test(
    paths: Mapping[str, Path], splits: Splits, scores: Mapping[str, SplitScore]
) -> bool:
    """Whether any point of the path is, from the costs of rows on both splits."""
    tails = [row.cost_p95 * (1 + _ROUNDING) for row in scores["valid"].rows]
    size = -(-sum(map(len, (splits.valid, splits.test))) // MOST_UNITS)
    sides = [
        _summed(paths[name], part, tails, size)
        for name, part in (("valid", splits.valid), ("test", splits.test))
    ]
    values, rows = (np.concatenate(both) for both in zip(*sides, strict=True))
    valid = len(sides[0][1])
    of_test = np.arange(len(rows)) >= valid
    apart = values - np.outer(rows, values.sum(axis=0) / rows.sum())  # from the mean of a row
    most = np.abs(values).max(axis=0) * max(len(rows), 1)
    gap = of_test @ apart
    apart, gap = apart[:, gap > _ROUNDING * most], gap[gap > _ROUNDING * most]
    n, m = len(rows), len(rows) - valid
    error = np.sqrt((apart**2).sum(axis=0) * m * valid / (n * max(n - 1, 1)))
    if not len(gap) or (reach := float((gap / error).max())) < _SOME:
        return False
    return _seldom(apart / error, of_test, reach * (1 - _ROUNDING))


def _summed(
    path: Path, part: Examples, tails: list[float], size: int
) -> tuple[FloatArray, FloatArray]:
    """By unit (m, 2p) what its rows cost at each point and how many of them cost more than the
    ``tails``, and how many rows (m,) it has; units are ``size`` rows or queries that follow each
    other."""
    copies, queries = part.weights, part.groups
    starts = np.arange(len(copies)) if queries is None else queries.boundaries[:-1]
    starts = starts[::size]
    values = np.empty((len(starts), 2 * len(path.points)))
    for p, of in enumerate(path.cost):
        values[:, 2 * p] = np.add.reduceat(of * copies, starts)
        values[:, 2 * p + 1] = np.add.reduceat((of > tails[p]) * copies, starts)
        path.forget()
    return values, np.add.reduceat(copies, starts)


def _seldom(apart: FloatArray, test: BoolArray, reach: float) -> bool:
    """Whether few shuffles of which units are of ``test`` reach as much at any of the columns; done
    as soon as it is seen to be chance."""
    allowed = int(LEVEL * (DRAWS + 1) + _ROUNDING) - 1  # besides the order as it is
    reached, rng = 0, np.random.default_rng(0)
    for start in range(0, DRAWS, _AT_ONCE):
        draws = rng.permuted(np.tile(test, (min(_AT_ONCE, DRAWS - start), 1)), axis=1)
        reached += int(((draws @ apart).max(axis=1) >= reach).sum())
        if reached > allowed:
            return False
    return True


def as_on_test(scores: Mapping[str, SplitScore]) -> SplitScore:
    """The scores on validation, where a point costs no less than on test."""
    valid, test = scores["valid"], scores["test"]
    raised = [
        max(0.0, shown.total_cost - own.total_cost)
        for own, shown in zip(valid.rows, test.rows, strict=True)
    ]
    return replace(valid, rows=tuple(_raised(valid, test)), raised=np.array(raised))


def _raised(valid: SplitScore, test: SplitScore) -> Iterator[OperatingPoint]:
    for own, shown in zip(valid.rows, test.rows, strict=True):
        more = shown if shown.total_cost > own.total_cost else own
        yield replace(
            own,
            feature_cost=more.feature_cost,
            evaluation_cost=more.evaluation_cost,
            total_cost=more.total_cost,
            cost_p95=max(own.cost_p95, shown.cost_p95),
            cost_max=max(own.cost_max, shown.cost_max),
        )
