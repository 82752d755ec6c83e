"""Operating points of one data set with their figures in every bootstrap draw, and the choice among
them. Draw 0 is what was observed; all choices of points in boards, comparisons and exports are
these.

A mean budget chooses a learner's point of best validation quality among those whose mean validation
cost fits. A target chooses the cheapest point that is *sure* to reach it: the difference of its
validation quality to the target is at least ``SURE_ERRORS`` standard errors, a one-sided bound of
95% for a single point, and as many as the joint test of the learner's points needs
(``errors_needed``); draws need as many as the observed data. For a share of the reference's best
quality the difference is paired, by query or row. Where no point is sure, the observed choice is
the likeliest point, and its probability is below .95.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from bench_core._io.digests import canonical
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray
from bench_core.data import Task
from bench_core.errors import UsageError, option, unknown
from bench_core.metrics.evaluation import USUAL, parse_metric
from bench_core.metrics.frontier import (
    Frontiers,
    best_within,
    cheapest,
    errors_beyond,
    frontier,
    share_of,
    taken,
)
from bench_core.planning.request import command
from bench_core.results import operating_points as table
from bench_core.results.budgets import CAP, KEEP, Budget, Limit, Target
from bench_core.statistics import SURE_ERRORS
from bench_core.statistics.bootstrap import (
    DRAWS,
    Candidates,
    Means,
    draw,
    effort,
    errors,
    errors_needed,
    lacking,
)
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

    from bench_core.results.records import DatasetUse, RunInfo
    from bench_core.results.store import Store

NO_VALUES = "this run stored no values per query or row: no intervals, tiers by quality alone"
NO_LIMIT = Budget(math.inf)

_TRIAL = ("learner", "params", "fold", "seed", "accounting")
_ENDED = ("status", "audit", "error", "unit", "stand_in", "surrogate", "fit_seconds")


def uses_of(info: RunInfo, dataset: str) -> list[DatasetUse]:
    """Return the run's uses of a data set, one for each fold and seed."""
    return [use for use in info.datasets if use.name == dataset]


def drawn_by_seed(uses: Sequence[DatasetUse]) -> str:
    """Return what each seed draws of a data set: its "rows", its "training" and validation rows,
    or "" for nothing."""
    by_fold: dict[object, set[str]] = {}
    for use in uses:
        by_fold.setdefault(use.fold, set()).add(use.fingerprint)
    drawn = [prints for prints in by_fold.values() if len(prints) > 1]
    # the last half of a fingerprint is that of the test rows
    redrawn = any(len({text[-32:] for text in prints}) > 1 for prints in drawn)
    return "rows" if redrawn else "training" if drawn else ""


def reference_of(info: RunInfo, dataset: str) -> str:
    """Return the learner that savings on a data set are measured against, "" for none."""
    return next((use.reference for use in uses_of(info, dataset)), "")


def undefined(
    info: RunInfo,
    frame: pd.DataFrame,
    dataset: str,
    metric: str,
    splits: Sequence[str] = ("valid", "test"),
) -> str:
    """Return where the metric is not defined for any learner of a data set's rows, why, and the
    remedy; "" if it is defined everywhere."""
    if not (places := table.undefined(frame, metric, splits)):
        return ""
    uses = uses_of(info, dataset)
    why = next((f": {use.undefined[metric]}" for use in uses if metric in use.undefined), "")
    usual = USUAL[Task(uses[0].task)][0] if uses and uses[0].task else metric
    other = f" or another metric: {option('metrics', usual)}" if usual != metric else ""
    return f"{metric} is not defined on {places}{why}; use more rows{other}"


def primary_metric(info: RunInfo, dataset: str, name: str = "") -> table.Criterion:
    """Return the metric by which a data set's learners are compared, or the named metric.

    Raises UsageError for a metric that the run does not have, with the command that adds it.
    """
    used = [metric for use in uses_of(info, dataset) for metric in use.metrics]
    metrics = list(dict.fromkeys(map(str, used or info.metrics)))
    if name and name not in metrics:
        raise UsageError(_lacking(info, dataset, metrics, name))
    return table.criterion(info, name or metrics[0])


def _lacking(info: RunInfo, dataset: str, metrics: Sequence[str], name: str) -> str:
    """Return the message on a metric that a run does not have: the command that adds it, or the
    nearest names if no built-in metric of the task is called so."""
    with suppress(UsageError):
        if any(Task(use.task) in parse_metric(name).tasks for use in uses_of(info, dataset)):
            again = _with_metrics(info, [*metrics, name])
            return f"the run has no {name}, only {', '.join(metrics)}; without training: {again}"
    return unknown("metric of this run", name, metrics)


def _with_metrics(info: RunInfo, metrics: Sequence[str]) -> str:
    """Return the command, or the words, of the same run with these metrics, the primary first."""
    asked = [metric for metric in metrics if metric not in info.in_money]  # which are never asked
    again = command({**info.request, "metrics": asked})
    return again or f"the same call with metrics={asked}"


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

    @classmethod
    def nothing(cls, shape: tuple[int, int, int], limit: Limit) -> Self:
        """Return arrays (r, l, draws) without any point."""
        row, sure = np.full(shape[:2], -1), np.zeros(shape[:2], dtype=bool)
        quality, cost, held = (np.full(shape, np.nan) for _ in range(3))
        if isinstance(limit, Budget) and math.isfinite(limit.amount):
            held = np.broadcast_to(np.nan, shape)
        return cls(row, sure, np.full(shape[:2], np.nan), quality, cost, held)

    def put(self, r: int, k: int, rows: IntArray, choice: _Choice, means: Means) -> None:
        """Set the choice of one learner in one repeat; ``rows`` are those of its points."""
        width = slice(len(means.valid_cost))  # one without draws
        self.sure[r, k], self.errors[r, k] = choice.by_draw[0] >= 0, choice.errors
        self.quality[r, k, width] = taken(means.test_quality, choice.by_draw)
        self.cost[r, k, width] = taken(means.test_cost, choice.by_draw)
        if choice.first >= 0:
            self.row[r, k] = rows[choice.first]
            if self.held.flags.writeable:
                self.held[r, k, width] = means.test_quality[:, choice.first]

    def clear(self, r: int) -> None:
        """Remove all points of a repeat."""
        self.row[r], self.sure[r] = -1, False
        for figures in (self.errors, self.quality, self.cost, self.held):
            figures[r] = np.nan

    def at_draws(self, kept: BoolArray) -> Self:
        """Return the same points with some of the draws."""
        return type(self)(*self[:3], *(figures[:, :, kept] for figures in self[3:]))


class _Choice(NamedTuple):
    """Places of points of one learner in one repeat."""

    by_draw: IntArray  # (draws,) -1 without a point
    first: int  # as observed, or the likeliest to reach a target; -1 without a point
    errors: float = math.nan  # of the first
    trivial: bool = False  # a constant is sure to reach the target


class _Aim(NamedTuple):
    """The validation quality to reach in a repeat."""

    quality: FloatArray  # (draws,), or (1,) if it is the same in all
    factor: float = 0.0  # on the reference's quality
    against: tuple[Candidates, int] | None = None  # the reference and the place of its best point


class Draws:
    """The operating points of a data set's learners in each repeat, with their draws, by the
    primary metric or another one, under a ``cap`` if given.

    ``names`` are the learners; ``note`` says why none can be compared. Without a store there are no
    draws, nor for another metric, which has no values of each query or row.
    """

    def __init__(
        self,
        info: RunInfo,
        store: Store | None,
        frame: pd.DataFrame,
        dataset: str,
        metric: str = "",
        *,
        cap: float | None = None,
        learners: Collection[str] = (),
        resamples: int = DRAWS,
    ) -> None:
        rows = frame["dataset"] == dataset
        self.info, self.store, self.dataset, self.cap = info, store, dataset, cap
        self.frame = frame if rows.all() else frame[rows]
        self.metric = primary_metric(info, dataset, metric)
        self.higher, self._draws = self.metric.higher_is_better, resamples
        self.sign = 1 if self.higher else -1
        points = table.of_dataset(frame, dataset, self.metric.name)
        self.undefined = undefined(info, points, dataset, self.metric.name)
        # without a validation quality no point can be chosen
        self.unchosen = undefined(info, points, dataset, self.metric.name, ["valid"])
        self._tabulate(points, learners)
        reference = reference_of(info, dataset)
        # a total cost has no share of quality to keep
        compared = reference in self.names and not self.metric.in_money
        self.reference = reference if compared else ""
        self._best = self._best_of_reference()
        self.found: list[Repeat] = []
        nowhere = f"{self.metric.name} is not defined on validation: no intervals"
        first = primary_metric(info, dataset)
        self.note = nowhere if self.unchosen else NO_VALUES
        if self.metric != first and not self.unchosen:
            again = _with_metrics(info, [self.metric.name, first.name])
            only = f"a run stores values per query or row of its first metric only, {first.name}"
            self.note = f"{only}; for those of {self.metric.name}: {again}"
        self.left_out, self._undefined = 0, False
        self.defined = np.ones(1, dtype=bool)  # draws of the last choice
        blocks, self.resamples = effort(self._settings_tried(), resamples)
        if store and self.names and self.metric == first:
            self._read(store, blocks)
        # learners with values in every repeat
        self._valued = [
            k
            for k, name in enumerate(self.names)
            if self.found and all(name in repeat.candidates for repeat in self.found)
        ]

    def under(self, limit: Limit) -> Draws:
        """Return the points that a limit chooses among; each cap has its own."""
        if limit.kind != CAP:
            return self
        of = self.info, self.store, self.frame, self.dataset, self.metric.name
        return Draws(*of, cap=limit.amount, resamples=self._draws)

    @cached_property
    def trials(self) -> pd.DataFrame:
        """One row for each trial, from the rows of its points."""
        rows = self.frame[[name for name in (*_TRIAL, *_ENDED) if name in self.frame]]
        return rows.drop_duplicates([name for name in _TRIAL if name in rows])

    @cached_property
    def varied(self) -> dict[str, frozenset[str]]:
        """The parameters that differ between the trials of each learner."""
        varied = {}
        for learner, rows in self.trials.groupby("learner", observed=True)["params"]:
            params = [json.loads(text or "{}") for text in map(str, rows.unique())]
            names = {name for of_trial in params for name in of_trial}
            values = {name: {json.dumps(one.get(name)) for one in params} for name in names}
            varied[str(learner)] = frozenset(name for name in names if len(values[name]) > 1)
        return varied

    def _tabulate(self, rows: pd.DataFrame, learners: Collection[str]) -> None:
        """Set the points, their figures, and the learners and repeats of the data set's rows."""
        if learners:
            rows = rows[rows["learner"].isin({*learners})]
        self.points = table.operating_points(rows, self.metric.name, cap=self.cap)
        self._figures = {
            name: self.points[name].to_numpy(dtype=np.float64) for name in Means._fields
        }
        self.constant = table.constants(self.points)
        self.settings = [[*map(str, self.points[name])] for name in ("params", "point")]
        self._rows = self._by_learner()
        self.names = list(dict.fromkeys(map(str, self.points["learner"])))
        finished = rows[(rows["status"] == "ok") & rows["learner"].isin(self.names)]
        trials = finished[["fold", "seed", "learner"]].drop_duplicates()
        ended = {((fold, seed), str(name)) for fold, seed, name in trials.to_numpy().tolist()}
        self.repeats = sorted({repeat for repeat, _ in ended})
        # repeats in which a learner has finished, also if it has no point under the cap
        pairs = np.array([[(r, n) in ended for n in self.names] for r in self.repeats])
        self.there: BoolArray = pairs.reshape(len(self.repeats), len(self.names))

    def _by_learner(self) -> dict[tuple[tuple[int, int], str], IntArray]:
        """Return the usable rows of each repeat and learner, by ascending validation cost."""
        cost, by_learner = self._figures["valid_cost"], {}
        usable = ~np.isnan(cost + self._figures["valid_quality"])
        keys = self.points[["fold", "seed", "learner"]].to_numpy()
        for rows in table.groups(self.points, ["fold", "seed", "learner"]):
            (fold, seed, name), rows = keys[rows[0]], rows[usable[rows]]
            order = np.argsort(cost[rows], kind="stable")
            by_learner[(int(fold), int(seed)), str(name)] = rows[order]
        return by_learner

    def _best_of_reference(self) -> dict[tuple[int, int], int]:
        """Return the row of the reference's best point in each repeat that has a sound fit."""
        diverged, best = table.marked(self.points).to_numpy(dtype=bool), {}
        for r, repeat in enumerate(self.repeats):
            rows = self.rows(r, self.reference)
            if len(rows := rows[~diverged[rows]]):
                cost, quality = self.valid(rows)
                place = best_within(cost, quality[None], higher_is_better=self.higher)
                best[repeat] = int(rows[place[0]])
        return best

    def _settings_tried(self) -> int:
        """Return the number of settings of all learners in the repeat with most."""
        tried = self.points.drop_duplicates(["learner", "params", *table.REPEAT])
        return int(tried.groupby([*table.REPEAT]).size().max()) if len(tried) else 0

    def key(self, row: int) -> Key:
        """Return the parameters and the point of a row as canonical JSON."""
        params, points = self.settings
        return _canonical(params[row]), _canonical(points[row])

    def _read(self, store: Store, blocks: int) -> None:
        """Read the values of each query or row, in the order of the points; none if a repeat lacks
        them. Points without values are no candidates."""
        # what all points are paired with: the reference at its best, of total costs the constant
        other, best = self.reference, self._best
        if self.metric.in_money:
            other, best = self.names[0], self._nothing_of(self.names[0])
        stored = stored_repeats(
            store,
            self.info.run,
            self.dataset,
            self.names if len(self.names) < 3 else (),
            cap=self.cap,
            blocks=blocks,
            reference=other,
            best={repeat: self.key(row) for repeat, row in best.items()},
        )
        by_key = {(repeat.fold, repeat.seed): repeat for repeat in stored}
        if not by_key.keys() >= {*self.repeats}:
            return
        self.found = [by_key[repeat] for repeat in self.repeats]
        for repeat in self.found:
            for name in [*repeat.candidates]:
                candidates = repeat.candidates.pop(name)  # one by one, to save memory
                key = (repeat.fold, repeat.seed), name
                if key in self._rows:
                    place = {point: k for k, point in enumerate(candidates.keys)}
                    rows = self._rows[key]
                    at = np.array([place.get(self.key(row), -1) for row in rows], dtype=np.int64)
                    self._rows[key] = rows[at >= 0]
                    repeat.candidates[name] = candidates.at(at[at >= 0])
            if self.metric.in_money:
                self._leave_unsure_out(repeat, other)

    def _nothing_of(self, name: str) -> dict[tuple[int, int], int]:
        """Return the row of a learner's best constant in each repeat."""
        rows = {repeat: self.rows(r, name) for r, repeat in enumerate(self.repeats)}
        return {repeat: int(of[self.constant[of]][0]) for repeat, of in rows.items() if len(of)}

    def _leave_unsure_out(self, repeat: Repeat, other: str) -> None:
        """Leave out points whose total cost on validation is not certainly below that of the best
        constant, which buys nothing: the least of many on few rows is often a lucky one."""
        key = (repeat.fold, repeat.seed)
        constants = np.flatnonzero(self.constant[self._rows[key, other]])
        if not len(constants):  # an older store may lack its values
            return
        place = int(constants[0])
        against = repeat.candidates[other], place
        quality = self._figures["valid_quality"]
        nothing = quality[self._rows[key, other][place]]
        for name, candidates in [*repeat.candidates.items()]:
            rows = self._rows[key, name]
            error = errors(candidates, against, 1.0, 0)[0]
            gain = self.sign * (quality[rows] - nothing)
            kept = self.constant[rows] | (errors_beyond(gain, error) >= SURE_ERRORS)
            self._rows[key, name] = rows[kept]
            repeat.candidates[name] = candidates.at(np.flatnonzero(kept))

    @property
    def places(self) -> list[int]:
        """Positions of the learners that can be compared: they have values in every repeat."""
        return [] if self._undefined else self._valued

    def candidates(self, r: int, name: str) -> Candidates | None:
        """Return the values of a learner's points by query or row, if known."""
        return self.found[r].candidates.get(name) if self.found else None

    def means(self, r: int, name: str, seed: int) -> Means:
        """Return the figures of a learner's points in every draw; draw 0 as in the store's rows."""
        rows = self.rows(r, name)
        exact = [self._figures[column][rows] for column in Means._fields]
        candidates = self.candidates(r, name)
        if candidates is None:
            return Means(*(figure[None] for figure in exact))
        drawn = draw(candidates, self.resamples, seed)
        return Means(*(np.vstack([a[None], b[1:]]) for a, b in zip(exact, drawn, strict=True)))

    def chosen(
        self, limits: Sequence[Limit], brief: Sequence[Budget] = ()
    ) -> tuple[dict[Limit, Chosen], dict[Budget, Float32Array]]:
        """Return the points that each limit chooses, and the test quality alone (r, l, draws) of
        the budgets ``brief``. Draws in which the metric is not defined are left out."""
        shape = len(self.repeats), len(self.names), 1 + (self.resamples if self.found else 0)
        chosen = {limit: Chosen.nothing(shape, limit) for limit in limits}
        most = np.nanmax(np.abs(self._figures["test_quality"]), initial=0)
        kind = np.float32 if most <= np.finfo(np.float32).max else np.float64
        curves = {budget: np.full(shape, np.nan, dtype=kind) for budget in brief}
        defined = np.ones(shape[2], dtype=bool)
        seeds = [seed for _, seed in with_seeds(self.found)] or [0] * shape[0]
        for r, seed in enumerate(seeds):
            targets = [limit for limit in limits if isinstance(limit, Target)]
            aims = {target: self._aim(r, target, seed) for target in targets}
            trivial: set[Limit] = set()
            for k, name in enumerate(self.names):
                rows = self.rows(r, name)
                if not len(rows):
                    continue
                means = self.means(r, name, seed)
                if self.resamples and k in self._valued:
                    defined &= means.defined
                frontiers = Frontiers(means.valid_cost[0], means.valid_quality, self.higher)
                for budget in brief:
                    quality = taken(means.test_quality, frontiers.within(budget.amount))
                    curves[budget][r, k, : len(quality)] = quality
                for limit in limits:
                    if isinstance(limit, Budget):
                        best = self.within(limit, means, frontiers)
                        choice = _Choice(best, int(best[0]))
                    else:
                        choice = self._reaching(r, name, aims[limit], means, seed)
                    chosen[limit].put(r, k, rows, choice, means)
                    trivial |= {limit} if choice.trivial and limit.kind == KEEP else set()
            for limit in trivial:  # nothing is measured if a constant keeps the quality
                chosen[limit].clear(r)
        # leave out draws without a defined metric; all but what is observed if too few remain
        self.left_out = int((~defined).sum())
        where = lacking(defined) if self.found and self.resamples else ""
        if where:
            self.note, self._undefined = (
                f"{self.metric.name} is not defined {where}: no intervals",
                True,
            )
            defined = np.arange(len(defined)) == 0
        self.defined = defined
        if defined.all():
            return chosen, curves
        curves = {budget: quality[:, :, defined] for budget, quality in curves.items()}
        return {limit: points.at_draws(defined) for limit, points in chosen.items()}, curves

    def within(self, budget: Budget, means: Means, frontiers: Frontiers | None = None) -> IntArray:
        """Return the best point (draws,) of a learner within a budget."""
        # points measured under a cap all satisfy it
        frontiers = frontiers or Frontiers(means.valid_cost[0], means.valid_quality, self.higher)
        return frontiers.within(budget.amount if budget.kind == "mean" else math.inf)

    def _aim(self, r: int, target: Target, seed: int) -> _Aim | None:
        """Return the quality to reach in each draw, None if the reference has no sound point."""
        if target.kind != KEEP:
            return _Aim(np.array([target.amount]))
        if self.repeats[r] not in self._best:
            return None
        row = self._best[self.repeats[r]]
        quality = self.means(r, self.reference, seed).valid_quality
        best = (np.fmax if self.higher else np.fmin).reduce(quality, axis=1)
        best[0] = self._figures["valid_quality"][row]
        aim = share_of(best, target.amount, self.higher)
        candidates = self.candidates(r, self.reference)
        place = np.flatnonzero(self.rows(r, self.reference) == row)
        against = (candidates, int(place[0])) if candidates is not None and len(place) else None
        return _Aim(aim, float(aim[0] / best[0]) if best[0] else 0.0, against)

    def _reaching(self, r: int, name: str, aim: _Aim | None, means: Means, seed: int) -> _Choice:
        """Return the cheapest point that is sure to reach a target. If none is as observed, the
        first is the likeliest, the cheapest of equals; -1 if errors are not known."""
        if aim is None:
            return _Choice(np.full(len(means.valid_quality), -1), -1)
        candidates, shape = self.candidates(r, name), means.valid_quality.shape
        # a learner without draws has the observed target
        gain = self.sign * (means.valid_quality - aim.quality[: shape[0], None])
        beyond = errors_beyond(gain, np.zeros(shape))
        if candidates is not None and (aim.against is not None or not aim.factor):
            paired = candidates, aim.against, aim.factor
            error = errors(*paired, self.resamples, seed)
            # as a single point would exceed the target
            excess = errors_needed(*paired, gain[0], error[0]) - SURE_ERRORS
            beyond = errors_beyond(gain, error) - excess
        sure = beyond >= SURE_ERRORS
        point = cheapest(means.valid_cost, sure)
        trivial = bool((self.constant[self.rows(r, name)] & sure[0]).any())
        if candidates is None:
            return _Choice(point, int(point[0]), trivial=trivial)
        first = int(point[0]) if point[0] >= 0 else int(np.nanargmax(beyond[0]))
        return _Choice(point, first, float(beyond[0, first]), trivial)

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
        cost = self._figures["valid_cost"]
        budgets = np.unique(cost[np.concatenate(paths)])
        budgets = budgets[budgets >= max(cost[rows[0]] for rows in paths)]
        held = np.stack([rows[np.searchsorted(cost[rows], budgets, "right") - 1] for rows in paths])
        known = ~np.isnan(self._figures["test_quality"][held]).any(axis=0)
        return budgets[known], held[:, known]

    def level(self, values: FloatArray | Float32Array, learners: Sequence[int]) -> Level:
        """Return the draws of the mean over repeats of values (r, l, draws)."""
        return over_repeats(self.found, [of[[*learners]] for of in values])

    def mean(self, values: FloatArray | Float32Array) -> FloatArray:
        """Return the observed means (l,) over repeats of values (r, l, draws), NaN for a learner
        without a result in one of its repeats."""
        first = np.where(self.there, values[:, :, 0], 0.0)
        observed: FloatArray = first.sum(axis=0) / np.maximum(self.there.sum(axis=0), 1)
        whole = self.there.all(axis=0)
        if self.found and whole.any():  # as ``level`` does
            means = [first[same][:, whole].mean(axis=0) for same in on_same_rows(self.found)]
            observed[whole] = np.mean(means, axis=0)
        return observed


@lru_cache(65536)
def _canonical(text: str) -> str:
    """Return JSON text in canonical form; many trials have the same points."""
    return canonical(json.loads(text or "{}"))
