"""Which learners cost more on test than the budget that their points were chosen for, by more than
chance.

Points are chosen by what they cost on validation. A learner is over its budget where two one-sided
tests at ``LEVEL`` say so:

- Its mean cost on test is above the budget by more than the draw of test rows explains (Student's).
- Test is dearer than validation by more than chance. A model that bills validation rows as it bills
  all others costs as much on both, but for the draw of the rows; so the rows (queries, where there
  are any) of both splits are shuffled ``DRAWS`` times, and few shuffles may make test that much
  dearer. This permutation test is exact for any distribution of costs of a point that is given;
  choosing among many points favours those that chance made cheap on validation, for which the
  strict level leaves room.

So what costs the same for all rows of a split is compared as it is. Repeats on the same rows (seeds
of one split) are shuffled together, others apart. A budget for 95% of rows is compared with the
share of test rows above it; queries keep no costs of single rows, so there it is left open. Caps
hold by construction.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

import numpy as np

from bench_core._io.digests import canonical
from bench_core.arrays import FloatArray
from bench_core.results.budgets import Budget

if TYPE_CHECKING:
    from bench_core.results.store import Store
    from bench_core.results.trial_values import TrialValues, ValuedTrial

LEVEL, DRAWS = 0.001, 1999
"""The chance that a fair learner at one budget is marked, at most; and how many shuffles tell."""

MOST_UNITS = 20_000
"""More rows or queries than this are shuffled in random groups of equal size."""

_TAIL = 0.05  # the share of rows that a budget for 95% of them leaves free
_AT_ONCE = 100
_ROUNDING = 1e-9
_KEPT_ROUNDING = 1e-6  # of costs of single rows, which are kept in 32 bits

Rows = tuple[int, str]
"""A fold and the fingerprint of its data: what repeats on the same rows have in common."""


class Taken(NamedTuple):
    """The point that a repeat takes within a budget: parameters and point as JSON, and its mean
    cost on test."""

    fold: int
    seed: int
    params: str
    point: str
    cost: float


class Units(NamedTuple):
    """Rows or queries of both splits, validation first: their costs (units,), how many ``rows``
    each is, how many of them are of validation, and whether each is a ``single`` row (or copies of
    one)."""

    cost: FloatArray
    rows: FloatArray
    valid: int
    single: bool = True

    @property
    def gap(self) -> float:
        """By how much test is dearer than validation."""
        ours = np.arange(len(self.rows)) >= self.valid
        return float(_dearer(self, ours[None].astype(np.float64))[0])

    @property
    def error(self) -> float:
        """The standard error of the mean cost on test, which is a ratio of sums."""
        cost, rows = self.cost[self.valid :], self.rows[self.valid :]
        if len(rows) < 2:
            return math.inf
        off = rows * (cost - np.average(cost, weights=rows))
        return float(off.std(ddof=1) / rows.mean() / math.sqrt(len(rows)))


class Excess(NamedTuple):
    """By how much the mean over repeats is above what it may be, and the units by what the repeats
    have in common, with how many repeats these are a mean of."""

    value: float
    units: Mapping[Rows, tuple[Units, int]]

    @property
    def gap(self) -> float:
        """By how much test is dearer than validation."""
        return sum(share * units.gap for units, share in self.shared)

    @property
    def error(self) -> float:
        """The standard error of the mean on test."""
        return math.sqrt(sum((share * units.error) ** 2 for units, share in self.shared))

    @property
    def shared(self) -> Iterator[tuple[Units, float]]:
        """Units with their share of the repeats."""
        repeats = sum(n for _, n in self.units.values())
        return ((units, n / repeats) for units, n in self.units.values())

    @property
    def clear(self) -> bool:
        """Whether the draw of test rows does not explain it."""
        from scipy.special import stdtrit

        fewest = min(len(units.cost) - units.valid for units, _ in self.shared)
        return self.value > float(stdtrit(max(fewest - 1, 1), 1 - LEVEL)) * self.error


Case = tuple[Budget, str]
"""A budget and a learner."""


def over_budget(
    store: Store | None, run: str, dataset: str, chosen: Mapping[Case, Sequence[Taken]]
) -> frozenset[Case]:
    """The cases in which what was chosen, one point for each repeat, costs more than chance
    allows."""
    above = {case: taken for case, taken in chosen.items() if _may_be_above(case[0], taken)}
    if store is None or not above:
        return frozenset()
    learners = {learner for _, learner in above}
    known = {
        (one.learner, one.fold, one.seed, one.spelt): one
        for one in store.valued(run, "valid", dataset)
        if one.learner in learners
    }
    costs = dict(_costs(store, known, above))
    found = {case: _excess(case, taken, costs) for case, taken in above.items()}
    return frozenset(beyond_chance({case: one for case, one in found.items() if one and one.clear}))


def _may_be_above(budget: Budget, taken: Sequence[Taken]) -> bool:
    if budget.kind == "mean":
        mean = sum(one.cost for one in taken) / len(taken)
        return mean > budget.amount * (1 + _ROUNDING)
    return budget.kind == "p95"


Trial = tuple[str, int, int, str]
Costs = dict[tuple[Trial, str], tuple[Rows, Units]]


def _trial(learner: str, one: Taken) -> Trial:
    return learner, one.fold, one.seed, canonical(json.loads(one.params or "{}"))


def _costs(
    store: Store, known: Mapping[Trial, ValuedTrial], above: Mapping[Case, Sequence[Taken]]
) -> Iterator[tuple[tuple[Trial, str], tuple[Rows, Units]]]:
    """The costs by unit of each trial and point; a trial is read once, and of a point that no
    values are kept of there are none."""
    points: dict[Trial, set[str]] = {}
    for (_, learner), taken in above.items():
        for one in taken:
            points.setdefault(_trial(learner, one), set()).add(one.point)
    trials = {known[name].trial: name for name in points if name in known}
    asked = [known[name] for name in trials.values()]
    for before, after in zip(
        store.values_of(asked, "valid"), store.values_of(asked, "test"), strict=True
    ):
        name = trials[before.trial]
        for point in points[name]:
            setting = json.loads(point)
            if setting in before.settings and setting in after.settings:
                rows = before.fold, before.fingerprint
                yield (name, point), (rows, _units(before, after, setting))


def _units(before: TrialValues, after: TrialValues, setting: Mapping[str, Any]) -> Units:
    both = [(one, one.settings.index(setting)) for one in (before, after)]
    cost = np.concatenate([one.cost[k] for one, k in both]).astype(np.float64)
    rows = np.concatenate([one.rows for one, _ in both]).astype(np.float64)
    same = all(np.array_equal(one.rows, one.weights) for one, _ in both)
    return Units(cost, rows, len(before.rows), same)


def _excess(case: Case, taken: Sequence[Taken], costs: Costs) -> Excess | None:
    """None where values are missing, or single rows are not known."""
    budget, learner = case
    found: dict[Rows, list[Units]] = {}
    for one in taken:
        if (at := costs.get((_trial(learner, one), one.point))) is None:
            return None
        rows, units = at
        if budget.kind == "p95":
            if not units.single:
                return None
            most = budget.amount * (1 + _KEPT_ROUNDING)
            units = units._replace(cost=(units.cost > most).astype(np.float64))
        found.setdefault(rows, []).append(units)
    means = {rows: (_mean(every), len(every)) for rows, every in found.items()}
    if budget.kind == "mean":
        return Excess(sum(one.cost for one in taken) / len(taken) - budget.amount, means)
    shares = [
        n * np.average(u.cost[u.valid :], weights=u.rows[u.valid :]) for u, n in means.values()
    ]
    return Excess(float(sum(shares)) / len(taken) - _TAIL, means)


def _mean(every: Sequence[Units]) -> Units:
    return every[0]._replace(cost=np.mean([one.cost for one in every], axis=0))


def beyond_chance(cases: Mapping[Case, Excess]) -> Iterator[Case]:
    """The cases in which test is dearer than validation by more than chance. All share their
    shuffles; one is done with as soon as it is seen to be chance."""
    allowed = int(LEVEL * (DRAWS + 1) + _ROUNDING) - 1  # besides the order as it is
    left, reached = dict(cases), dict.fromkeys(cases, 0)
    grouped = {
        case: {r: _grouped(u) for r, (u, _) in one.units.items()} for case, one in cases.items()
    }
    shuffles: dict[Rows, Iterator[FloatArray]] = {}
    for start in range(0, DRAWS, _AT_ONCE):
        drawn: dict[Rows, FloatArray] = {}
        for case, one in list(left.items()):
            dearer = np.zeros(min(_AT_ONCE, DRAWS - start))
            for (rows, units), (_, share) in zip(grouped[case].items(), one.shared, strict=True):
                if rows not in drawn:
                    drawn[rows] = next(shuffles.setdefault(rows, _shuffles(rows, units)))
                dearer += share * _dearer(units, drawn[rows][: len(dearer)])
            near = _ROUNDING * float(max(np.abs(units.cost).max() for units, _ in one.shared))
            reached[case] += int((dearer >= one.gap - near).sum())
            if reached[case] > allowed:
                del left[case]
        if not left:
            break
    yield from left


def _dearer(units: Units, test: FloatArray) -> FloatArray:
    """By how much test is dearer than validation where ``test`` (draws, units) says 1 of those that
    are of it."""
    spent = units.cost * units.rows
    paid, rows = test @ spent, test @ units.rows
    found: FloatArray = paid / rows - (spent.sum() - paid) / (units.rows.sum() - rows)
    return found


def _shuffles(rows: Rows, units: Units) -> Iterator[FloatArray]:
    """Which units are of test, some shuffles at a time; the same for all learners on these rows."""
    rng = np.random.default_rng([rows[0], crc32(rows[1].encode())])
    ours = (np.arange(len(units.rows)) >= units.valid).astype(np.int8)
    while True:
        yield rng.permuted(np.tile(ours, (_AT_ONCE, 1)), axis=1).astype(np.float64)


def _grouped(units: Units) -> Units:
    """Not more than about ``MOST_UNITS``, each of as many units of one split."""
    size = -(-len(units.rows) // MOST_UNITS)
    if size == 1:
        return units
    parts = [_in_groups(units.cost[s], units.rows[s], size) for s in _splits(units)]
    cost, rows = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Units(cost, rows, len(parts[0][0]))


def _splits(units: Units) -> Iterable[slice]:
    return slice(None, units.valid), slice(units.valid, None)


def _in_groups(cost: FloatArray, rows: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    order = np.random.default_rng(len(rows)).permutation(len(rows))
    starts = np.arange(0, len(rows), size)
    many = np.add.reduceat(rows[order], starts)
    return np.add.reduceat((cost * rows)[order], starts) / np.maximum(many, 1e-30), many
