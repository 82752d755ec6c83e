"""Operating points of one data set with their figures in every bootstrap draw, and the choice among
them. Draw 0 is what was observed; all choices of points in boards, comparisons and exports are
these.

A mean budget chooses a learner's point of best validation quality among those whose mean validation
cost fits. A target chooses the cheapest point that is *sure* to reach it: the difference of its
validation quality to the target is at least ``SURE_ERRORS`` standard errors, a one-sided bound of
95%. For a share of the reference's best quality the difference is paired, by query or row. Where no
point is sure, the observed choice is the likeliest point, and its probability is below .95.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Collection, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench_core._io.digests import canonical
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.metrics.frontier import (
    Frontiers,
    best_within,
    cheapest,
    frontier,
    share_of,
    taken,
)
from bench_core.results import operating_points as table
from bench_core.results.budgets import KEEP, Budget, Limit, Target
from bench_core.statistics import SURE_ERRORS
from bench_core.statistics.bootstrap import DRAWS, Candidates, Means, draw, effort, errors, lacking
from bench_core.statistics.repeats import (
    Key,
    Level,
    Repeat,
    on_same_rows,
    over_repeats,
    stored_repeats,
    with_seeds,
)

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.operating_points import Criterion
    from bench_core.results.store import Store

NO_VALUES = "this run stored no values per query or row: no intervals, tiers by quality alone"
NO_LIMIT = Budget(math.inf)


class Chosen(NamedTuple):
    """The points that a limit chooses, by repeat and learner; draws in which a learner has no point
    are NaN."""

    row: IntArray  # (r, l) in ``Draws.points`` as observed, -1 without a point
    sure: BoolArray  # (r, l) False for a likeliest point
    errors: FloatArray  # (r, l) standard errors by which the target is exceeded, NaN if unknown
    quality: FloatArray  # (r, l, draws) on test
    cost: FloatArray  # (r, l, draws) on test
    # (r, l, draws) test quality of the observed choice; NaN for budgets with a limit
    held: FloatArray


class Draws:
    """The operating points of a data set's learners in each repeat, with their draws.

    ``names`` are the learners, ``places`` (k,) those that have values of each query or row in every
    repeat, which can be compared; ``note`` says why there are none. Only a run's primary metric has
    values.
    """

    def __init__(
        self,
        store: Store | None,
        run: str,
        frame: pd.DataFrame,
        dataset: str,
        metric: Criterion,
        reference: str = "",
        *,
        primary: bool = True,
        cap: Budget | None = None,
        learners: Collection[str] = (),
        resamples: int = DRAWS,
        condensed: bool = True,
    ) -> None:
        self.metric, self.higher, self.cap = metric.name, metric.higher_is_better, cap
        self._tabulate(table.of_dataset(frame, dataset, metric.name), learners)
        self.reference = reference if reference in self.names else ""
        self._best = dict(self._best_of_reference())
        self._read(store if primary else None, run, dataset, resamples, condensed)

    def _tabulate(self, own: pd.DataFrame, learners: Collection[str]) -> None:
        """Set the points, their figures, and the learners and repeats of the data set's rows."""
        if learners:
            own = own[own["learner"].isin({*learners})]
        self.points = table.operating_points(own, self.metric, cap=self.cap and self.cap.amount)
        self._figures = {
            name: self.points[name].to_numpy(dtype=np.float64) for name in Means._fields
        }
        self.constant = table.constants(self.points)
        self.settings = [_texts(self.points[name]) for name in ("params", "point")]
        self._rows = self._by_learner()
        self.names = list(dict.fromkeys(map(str, self.points["learner"])))
        finished = own[(own["status"] == "ok") & own["learner"].isin(self.names)]
        trials = finished[["fold", "seed", "learner"]].drop_duplicates()
        ended = {((fold, seed), str(name)) for fold, seed, name in trials.to_numpy().tolist()}
        self.repeats = sorted({repeat for repeat, _ in ended})
        # repeats in which a learner has finished, also if it has no point under the cap
        pairs = np.array([[(r, n) in ended for n in self.names] for r in self.repeats])
        self.there: BoolArray = pairs.reshape(len(self.repeats), len(self.names))

    def _by_learner(self) -> dict[tuple[tuple[int, int], str], IntArray]:
        """Return the usable rows of each repeat and learner, by ascending validation cost."""
        cost, found = self._figures["valid_cost"], {}
        usable = ~np.isnan(cost + self._figures["valid_quality"])
        keys = [self.points[name].tolist() for name in ("fold", "seed", "learner")]
        for rows in table.groups(self.points, ["fold", "seed", "learner"]):
            fold, seed, name = (key[rows[0]] for key in keys)
            rows = rows[usable[rows]]
            order = np.argsort(cost[rows], kind="stable")
            found[(int(fold), int(seed)), str(name)] = rows[order]
        return found

    def _best_of_reference(self) -> Iterator[tuple[tuple[int, int], int]]:
        """Yield the row of the reference's best point in each repeat that has a sound fit."""
        diverged = table.marked(self.points).to_numpy(dtype=bool)
        for repeat in self.repeats if self.reference else ():
            rows = self._rows.get((repeat, self.reference), np.zeros(0, dtype=np.int64))
            rows = rows[~diverged[rows]]
            if len(rows):
                cost, quality = self.valid(rows)
                best = best_within(cost, quality[None], higher_is_better=self.higher)
                yield repeat, int(rows[best[0]])

    def key(self, row: int) -> Key:
        """Return the parameters and the point of a row as canonical JSON."""
        return _canonical(self.settings[0][row]), _canonical(self.settings[1][row])

    def _read(
        self, store: Store | None, run: str, dataset: str, resamples: int, condensed: bool
    ) -> None:
        tried = self.points.drop_duplicates(["learner", "params", *table.REPEAT])
        settings = tried.groupby([*table.REPEAT]).size().max() if len(tried) else 0
        blocks, self.resamples = effort(int(settings), resamples)
        blocks = blocks if condensed else sys.maxsize
        self.found: list[Repeat] = []
        self.candidates: list[dict[str, Candidates]] = [{} for _ in self.repeats]
        self.left_out, self.note = 0, NO_VALUES
        self.defined = np.ones(1, dtype=bool)  # draws of the last choice
        if store is None or not self.names:
            return
        best = {repeat: self.key(row) for repeat, row in self._best.items()}
        named = self.names if len(self.names) < 3 else ()
        found = stored_repeats(
            store, run, dataset, named, within=self.cap, blocks=blocks,
            reference=self.reference, best=best,
        )  # fmt: skip
        known = {(one.fold, one.seed): one for one in found}
        self.found = [known[r] for r in self.repeats if r in known]
        if len(self.found) < len(self.repeats):
            self.found = []
            return
        for r, one in enumerate(self.found):
            for name in self.names:
                if name in one.candidates and (self.repeats[r], name) in self._rows:
                    self.candidates[r][name] = self._aligned(r, name, one.candidates[name])

    def _aligned(self, r: int, name: str, one: Candidates) -> Candidates:
        """Return candidates in the order of the rows, and keep only rows that have values."""
        place = {key: k for k, key in enumerate(one.keys)}
        rows = self._rows[self.repeats[r], name]
        at = np.array([place.get(self.key(row), -1) for row in rows], dtype=np.int64)
        self._rows[self.repeats[r], name] = rows[at >= 0]
        return one.at(at[at >= 0])

    @property
    def places(self) -> list[int]:
        """Positions of the learners that have values in every repeat."""
        return [
            k
            for k, name in enumerate(self.names)
            if self.found and all(name in own for own in self.candidates)
        ]

    def means(self, r: int, name: str, seed: int) -> Means:
        """Return the figures of a learner's points in every draw; draw 0 as in the store's rows."""
        rows = self._rows[self.repeats[r], name]
        exact = [self._figures[column][rows] for column in Means._fields]
        if name not in self.candidates[r]:
            return Means(*(one[None] for one in exact))
        drawn = draw(self.candidates[r][name], self.resamples, seed)
        return Means(*(np.vstack([a[None], b[1:]]) for a, b in zip(exact, drawn, strict=True)))

    def chosen(
        self, limits: Sequence[Limit], brief: Sequence[Budget] = ()
    ) -> tuple[dict[Limit, Chosen], dict[Budget, Float32Array]]:
        """Return the points that each limit chooses, and the test quality alone (r, l, draws) of
        the budgets ``brief``. Draws in which the metric is not defined are left out."""
        shape = len(self.repeats), len(self.names)
        deep = (*shape, 1 + (self.resamples if self.found else 0))
        made = {limit: _nothing(shape, deep, _is_held(limit)) for limit in limits}
        curves = {budget: np.full(deep, np.nan, dtype=np.float32) for budget in brief}
        trivial = {limit: np.zeros(shape[0], dtype=bool) for limit in limits}
        defined = np.ones(deep[2], dtype=bool)
        seeds = [seed for _, seed in with_seeds(self.found)] or [0] * shape[0]
        for r, seed in enumerate(seeds):
            aims = {one: self._aim(r, one, seed) for one in limits if isinstance(one, Target)}
            for k, name in enumerate(self.names):
                rows = self.rows(r, name)
                if not len(rows):
                    continue
                means, width = self.means(r, name, seed), slice(None)
                if len(means.valid_cost) == 1:
                    width = slice(0, 1)  # no draws
                elif k in self.places:
                    defined &= means.defined
                frontiers = Frontiers(means.valid_cost[0], means.valid_quality, self.higher)
                for budget in brief:
                    at = self.within(budget, means, frontiers)
                    curves[budget][r, k, width] = taken(means.test_quality, at)
                for limit in limits:
                    own = made[limit]
                    if isinstance(limit, Target):
                        beyond = self._beyond(r, name, limit, aims[limit], means, seed)
                        if beyond is None:
                            continue
                        at = cheapest(means.valid_cost, beyond >= SURE_ERRORS)
                        own.sure[r, k] = at[0] >= 0
                        likeliest = self._likeliest(r, name, beyond[0])
                        first = int(at[0]) if at[0] >= 0 else likeliest
                        if first >= 0 and name in self.candidates[r]:
                            own.errors[r, k] = beyond[0, first]
                        free = self.constant[rows] & (beyond[0] >= SURE_ERRORS)
                        trivial[limit][r] |= bool(free.any())
                    else:
                        at = self.within(limit, means, frontiers)
                        first, own.sure[r, k] = int(at[0]), bool(at[0] >= 0)
                    if first >= 0:
                        own.row[r, k] = rows[first]
                        if _is_held(limit):
                            own.held[r, k, width] = means.test_quality[:, first]
                    own.quality[r, k, width] = taken(means.test_quality, at)
                    own.cost[r, k, width] = taken(means.test_cost, at)
        for limit, own in made.items():
            for r in np.flatnonzero(trivial[limit]).tolist() if limit.kind == KEEP else ():
                for part, none in zip(own, _nothing(shape, deep, True), strict=True):
                    part[r] = none[r]
        self.left_out = int((~defined).sum())
        if self.found and self.resamples and (where := lacking(defined)):
            self.note, self.found = f"{self.metric} is not defined {where}: no intervals", []
            defined = np.arange(deep[2]) == 0
        self.defined = defined
        if not defined.all():
            curves = {budget: one[:, :, defined] for budget, one in curves.items()}
            for limit, own in made.items():
                parts = {name: getattr(own, name)[:, :, defined] for name in _DEEP}
                made[limit] = own._replace(**parts)
        return made, curves

    def within(self, budget: Budget, means: Means, frontiers: Frontiers | None = None) -> IntArray:
        """Return the best point (draws,) of a learner within a budget."""
        # points measured under a cap all satisfy it
        frontiers = frontiers or Frontiers(means.valid_cost[0], means.valid_quality, self.higher)
        return frontiers.within(budget.amount if budget.kind == "mean" else math.inf)

    def _aim(self, r: int, target: Target, seed: int) -> tuple[FloatArray, float] | None:
        """Return the quality to reach in each draw, and its factor on the reference's quality."""
        if target.kind != KEEP:
            return np.array([target.amount]), 0.0
        if self.repeats[r] not in self._best:
            return None
        quality = self.means(r, self.reference, seed).valid_quality
        best = (np.fmax if self.higher else np.fmin).reduce(quality, axis=1)
        best[0] = self._figures["valid_quality"][self._best[self.repeats[r]]]
        aim = share_of(best, target.amount, self.higher)
        return aim, float(aim[0] / best[0]) if best[0] else 0.0

    def _beyond(
        self,
        r: int,
        name: str,
        target: Target,
        aim: tuple[FloatArray, float] | None,
        means: Means,
        seed: int,
    ) -> FloatArray | None:
        """Return by how many standard errors each point exceeds a target in each draw; infinite if
        its error is zero or unknown."""
        if aim is None:
            return None
        quality, factor = aim
        if len(quality) > len(means.valid_quality):
            quality = quality[:1]  # a learner without draws
        gain = (means.valid_quality - quality[:, None]) * (1 if self.higher else -1)
        error = np.zeros(means.valid_quality.shape)
        if name in self.candidates[r]:
            against = self._against(r) if target.kind == KEEP else None
            if target.kind != KEEP or against is not None:
                one = self.candidates[r][name]
                error = errors(one, against, factor, self.resamples, seed)
        with np.errstate(divide="ignore", invalid="ignore"):
            certain = np.where(gain >= 0, np.inf, -np.inf)
            found: FloatArray = np.where(error > 0, gain / error, certain)
        return found

    def _against(self, r: int) -> tuple[Candidates, int] | None:
        """Return the reference's candidates and the position of its best point."""
        one = self.candidates[r].get(self.reference)
        rows = self._rows[self.repeats[r], self.reference]
        at = np.flatnonzero(rows == self._best[self.repeats[r]])
        return (one, int(at[0])) if one is not None and len(at) else None

    def _likeliest(self, r: int, name: str, beyond: FloatArray) -> int:
        """Return the point most likely to reach a target, the cheapest of equals; -1 if errors are
        not known."""
        return int(np.nanargmax(beyond)) if name in self.candidates[r] else -1

    def rows(self, r: int, name: str) -> IntArray:
        """Return the rows of a learner's points in a repeat, by ascending validation cost."""
        return self._rows.get((self.repeats[r], name), np.zeros(0, dtype=np.int64))

    def valid(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return validation cost and quality of rows."""
        return self._figures["valid_cost"][rows], self._figures["valid_quality"][rows]

    def test(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return test quality and cost of rows."""
        return self._figures["test_quality"][rows], self._figures["test_cost"][rows]

    def curve(self, name: str) -> tuple[FloatArray, IntArray]:
        """Return the budgets (b,) at which the mean over repeats of a learner's frontier rises, and
        the rows (r, b) chosen in each repeat; between two budgets it is flat.

        Budgets are the validation costs of all repeats' points, from the first that allows a point
        in every repeat; those at which a repeat's test quality is undefined are left out.
        """
        paths = []
        for r in range(len(self.repeats)):
            rows = self.rows(r, name)
            if len(rows):
                paths.append(rows[frontier(*self.valid(rows), self.higher)])
        if not paths or not all(map(len, paths)):
            return np.zeros(0), np.zeros((len(paths), 0), dtype=np.int64)
        costs = [self._figures["valid_cost"][rows] for rows in paths]
        budgets = np.unique(np.concatenate(costs))
        budgets = budgets[budgets >= max(own[0] for own in costs)]
        held = np.stack(
            [
                rows[np.searchsorted(own, budgets, "right") - 1]
                for rows, own in zip(paths, costs, strict=True)
            ]
        )
        known = ~np.isnan(self._figures["test_quality"][held]).any(axis=0)
        return budgets[known], held[:, known]

    def level(self, values: FloatArray | Float32Array, learners: Sequence[int]) -> Level:
        """Return the draws of the mean over repeats of values (r, l, draws)."""
        return over_repeats(self.found, [of[[*learners]] for of in values])

    def mean(self, values: FloatArray | Float32Array) -> FloatArray:
        """Return the observed means (l,) over repeats of values (r, l, draws), NaN for a learner
        without a result in one of its repeats."""
        first = np.where(self.there, values[:, :, 0], 0.0)
        found: FloatArray = first.sum(axis=0) / np.maximum(self.there.sum(axis=0), 1)
        whole = self.there.all(axis=0)
        if self.found and whole.any():  # as ``level`` does
            means = [first[same][:, whole].mean(axis=0) for same in on_same_rows(self.found)]
            found[whole] = np.mean(means, axis=0)
        return found

    def units(self, r: int, k: int, row: int) -> FloatArray | None:
        """Return the test quality of each query or row at a row of the points, None if unknown."""
        name = self.names[k]
        at = np.flatnonzero(self._rows[self.repeats[r], name] == row)
        if name not in self.candidates[r] or not len(at):
            return None
        test = self.candidates[r][name].test
        found: FloatArray = test.quality[at[0]][test.weights > 0].astype(np.float64)
        return found


_DEEP = ("quality", "cost", "held")


def _is_held(limit: Limit) -> bool:
    """True for limits whose observed choice is of interest in all draws."""
    return isinstance(limit, Target) or math.isinf(limit.amount)


def _nothing(shape: tuple[int, int], deep: tuple[int, int, int], held: bool) -> Chosen:
    return Chosen(
        np.full(shape, -1),
        np.zeros(shape, dtype=bool),
        np.full(shape, np.nan),
        np.full(deep, np.nan),
        np.full(deep, np.nan),
        np.full(deep, np.nan) if held else np.broadcast_to(np.nan, deep),
    )


def _texts(column: pd.Series[str]) -> list[str]:
    """Return the texts of a column; equal ones share memory."""
    known = column.astype("category").cat
    names = [*map(str, known.categories)]
    return [names[code] for code in known.codes]


@lru_cache(65536)
def _canonical(text: str) -> str:
    """Return JSON text in canonical form; many trials have the same points."""
    return canonical(json.loads(text or "{}"))
