"""Choose operating points on VALIDATION and read their TEST rows.

``operating_points`` turns the export frame (one row per trial x point x split) into one row per
point; all other functions choose among these rows. A *repeat* is one seed on one fold; each repeat
chooses by its own validation rows, and ``over_repeats`` then gives mean and standard deviation of
the test values. What was measured under caps takes part only where a cap is asked for. Trials that
are not ``ok`` or failed the replay audit take no part. ``higher`` says whether more of the quality
is better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench_core.arrays import FloatArray, IntArray
from bench_core.errors import UsageError
from bench_core.metrics import parse_metric
from bench_core.metrics.frontier import best_under, choosable, frontier, mixture_reaching, share_of
from bench_core.protocols import DIVERGED
from bench_core.results.budgets import CAP, Budget, budget_of

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo

REPEAT = ("fold", "seed")
_LEARNER = ("dataset", "accounting", "learner")
_POINT = (*_LEARNER, *REPEAT, "params", "point")
_WITHOUT_POINT = (*_LEARNER, *REPEAT, "unit", "audit", "stand_in")
_FIGURES = ("test_quality", "test_cost", "valid_quality", "valid_cost", "saving")
_COSTS = ("feature_cost", "evaluation_cost", "cost_p95", "cost_max", "features_used")
_KEPT = (*_POINT, "unit", "audit", "stand_in", "marks", "total_cost", *_COSTS, CAP)
_CHOSEN_BY = (*_POINT, "split", "status", "audit", "marks", "total_cost", "cost_p95", CAP)


class Criterion(NamedTuple):
    """The metric that points are chosen by: its column and its direction."""

    name: str
    higher_is_better: bool


def criterion(info: RunInfo, name: str) -> Criterion:
    """A metric of a run. The run holds its direction: a report needs no plugin of the run."""
    return Criterion(name, bool(info.higher_is_better.get(name, True)))


def of_dataset(frame: pd.DataFrame, dataset: str, metric: str) -> pd.DataFrame:
    """The rows of one data set, with the columns alone by which points are chosen: those of a large
    run take little room."""
    names = dict.fromkeys((*_CHOSEN_BY, metric))
    return frame.loc[frame["dataset"] == dataset, [name for name in names if name in frame.columns]]


def groups(table: pd.DataFrame, keys: Sequence[str]) -> list[IntArray]:
    """The positions of the rows that have the same keys, in order of the keys."""
    if table.empty:
        return []
    grouped = table.groupby(list(keys), sort=True, observed=True, dropna=False)
    number = grouped.ngroup().to_numpy()
    order = np.argsort(number, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(number[order])) + 1)


def operating_points(
    frame: pd.DataFrame, metric: str, cost: str = "total_cost", *, cap: float | None = None
) -> pd.DataFrame:
    """One row per operating point: what it is and costs on test, with ``valid_quality``,
    ``valid_cost``, ``test_quality`` and ``test_cost`` added, of the columns ``metric`` and
    ``cost``, and ``valid_p95``, what 95% of rows cost at most on validation.

    With a ``cap`` they are what was measured under it, one for each trial; otherwise the points of
    the paths. Raises UsageError if the frame has no such column.
    """
    for column in (metric, cost):
        if column not in frame.columns:
            raise UsageError(_missing(column, frame))
    # a point of one trial is one row on each split
    keys = [key for key in _POINT if key in frame.columns]
    usable = frame["status"] == "ok"
    if "audit" in frame.columns:
        usable &= frame["audit"] != "failed"
    if CAP in frame.columns:
        usable &= frame[CAP].isna() if cap is None else frame[CAP] == cap
    elif cap is not None:
        usable &= False
    test, valid = (frame[usable & (frame["split"] == split)] for split in ("test", "valid"))
    measured = valid[keys].assign(
        valid_quality=valid[metric],
        valid_cost=valid[cost],
        valid_p95=valid["cost_p95"] if "cost_p95" in frame.columns else np.nan,
    )
    shown = test[[name for name in _KEPT if name in frame.columns]]
    shown = shown.assign(test_quality=test[metric], test_cost=test[cost])
    return shown.merge(measured, on=keys, how="inner", validate="one_to_one")


def undefined(frame: pd.DataFrame, metric: str) -> str:
    """Where a metric has no value, whatever the learner: ``"test (fold 2, seed 0)"`` and so on."""
    judged = frame[(frame["status"] == "ok") & frame["split"].isin(("valid", "test"))]
    known = judged[metric].notna().groupby([judged[k] for k in ("split", *REPEAT)], observed=True)
    found = known.any()
    places = [f"{split} (fold {fold}, seed {seed})" for split, fold, seed in found[~found].index]
    return ", ".join(places[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")


def best_points(points: pd.DataFrame, higher: bool) -> pd.DataFrame:
    """For each learner and repeat the point with the best validation quality (of equals the
    cheapest)."""
    return under_budget(points, higher, np.inf)


def caps_of(frame: pd.DataFrame) -> list[float]:
    """The caps that were measured, rising."""
    found = frame[CAP].dropna().unique() if CAP in frame.columns else ()
    return sorted(float(cap) for cap in found)


def points_within(frame: pd.DataFrame, metric: str, higher: bool, budget: Budget) -> pd.DataFrame:
    """For each learner and repeat the best point within a budget, from the export frame."""
    cap = budget.amount if budget.kind == CAP else None
    return under_budget(operating_points(frame, metric, cap=cap), higher, budget)


def under_budget(points: pd.DataFrame, higher: bool, budget: Budget | float) -> pd.DataFrame:
    """For each learner and repeat the best point that keeps to ``budget`` on validation: by its
    mean cost (also where the budget is a number) or by that of 95% of its rows; learners and
    repeats without one are left out.

    A cap is no matter of choice: of points that were measured under it any is within it.
    """
    of = budget_of(budget)
    if of.kind == "p95":
        points = points[points["valid_p95"] <= of.amount]
    limit = of.amount if of.kind == "mean" else np.inf

    def best(cost: FloatArray, quality: FloatArray, _: FloatArray) -> IntArray:
        found = best_under(cost, quality, limit, higher)
        return np.array([] if found is None else [found], dtype=np.int64)

    return points.iloc[_picked(points, best)].reset_index(drop=True)


def curve(points: pd.DataFrame, higher: bool) -> pd.DataFrame:
    """The validation frontiers, learner by learner and repeat by repeat, by ascending validation
    cost: chosen by ``valid_*``, to be drawn by ``test_*``."""
    rows = _picked(points, lambda cost, quality, _: frontier(cost, quality, higher))
    return points.iloc[rows].reset_index(drop=True)


def choosable_points(points: pd.DataFrame, higher: bool) -> pd.DataFrame:
    """The points that some budget of mean cost, or of that of 95% of rows, chooses."""
    rows = _picked(points, lambda cost, quality, p95: choosable(cost, p95, quality, higher))
    return points.iloc[rows]


def mean_path(chosen: pd.DataFrame) -> tuple[pd.DataFrame, IntArray]:
    """The mean over repeats of the ``curve`` of one learner, and the rows (repeats, budgets) that
    it is the mean of: at each ``budget`` every repeat takes its best affordable point; mean and
    standard deviation (``_std``) of ``test_quality`` and ``test_cost``.

    Budgets are the validation costs of all repeats' frontiers, from the first at which every
    repeat can afford something; none where the quality of a repeat is not defined on test.
    """
    import pandas as pd

    if chosen.empty:
        return pd.DataFrame(columns=["budget", "test_quality"]), np.zeros((0, 0), dtype=np.int64)
    repeats = groups(chosen, REPEAT)
    cost = chosen["valid_cost"].to_numpy(dtype=np.float64)
    budgets = np.unique(cost)
    budgets = budgets[budgets >= max(cost[rows[0]] for rows in repeats)]
    held = np.stack([rows[np.searchsorted(cost[rows], budgets, "right") - 1] for rows in repeats])
    known = ~np.isnan(chosen["test_quality"].to_numpy(dtype=np.float64)[held]).any(axis=0)
    budgets, held = budgets[known], held[:, known]
    table: dict[str, Any] = {"budget": budgets, "repeats": len(repeats)}
    for column in ("test_quality", "test_cost"):
        values = chosen[column].to_numpy(dtype=np.float64)[held]
        table[column] = values.mean(axis=0)
        spread = values.std(axis=0, ddof=1) if len(repeats) > 1 else np.nan
        table[f"{column}_std"] = spread
    return pd.DataFrame(table), held


def savings(points: pd.DataFrame, higher: bool, reference: str, share: float) -> pd.DataFrame:
    """The saving of each learner against the reference learner, repeat by repeat.

    The target is ``share`` of the reference's best validation quality (for a metric that is
    better when lower: at most that quality / share). Each learner, the reference too, takes its
    cheapest point that reaches the target on validation. Added columns: ``target``, ``reached``,
    ``reference_quality`` and ``reference_cost`` (test, at the reference's best validation point)
    and ``saving``: what the reference pays on test for just the target over what the learner pays
    for it, each by the mixture of that point and the one before it on its frontier that has the
    target on validation. A repeat that does not reach the target, or has no reference, is a row
    with ``reached`` False and NaN. A diverged fit is no reference, nor is one
    whose target the best constant reaches, which costs nothing.
    """
    sign = 1 if higher else -1
    constant = (points["learner"] == "constant").to_numpy(dtype=bool)
    sound = ((points["learner"] == reference) & ~diverged(points)).to_numpy(dtype=bool)
    cost, quality, test = (
        points[name].to_numpy(dtype=np.float64)
        for name in ("valid_cost", "valid_quality", "test_cost")
    )

    def reaching(rows: IntArray, aim: float) -> tuple[int, float]:
        """The cheapest of the rows that reaches the aim, and the test cost of just the aim."""
        found = mixture_reaching(cost[rows], quality[rows], aim, higher)
        if found is None:
            return -1, np.nan
        above, below = rows[found[0]], rows[found[1]]
        return int(above), float(test[above] + found[2] * (test[below] - test[above]))

    rows, added = [], []
    for part in groups(points, ["dataset", "accounting", *REPEAT]):
        own = part[sound[part]]
        first = best_under(cost[own], quality[own], np.inf, higher)
        best = -1 if first is None else int(own[first])
        aim = np.nan if first is None else share_of(quality[best], share, higher)
        trivial = sign * quality[part[constant[part]]]
        if np.fmax.reduce(trivial, initial=-np.inf) >= sign * aim:
            aim = np.nan
        _, whole = reaching(own, aim)
        for inside in groups(points.iloc[part], ["learner"]):
            row, paid = reaching(part[inside], aim)
            # -1 - row of a learner that never reaches the target: what does not hang on a point
            rows.append(row if row >= 0 else -1 - int(part[inside][0]))
            added.append((best, aim, _over(whole, paid)))
    found = _reached(points, np.array(rows, dtype=np.int64))
    bests, targets, saved = np.array(added, dtype=np.float64).reshape(-1, 3).T
    for name in ("test_quality", "test_cost"):
        known = points[name].to_numpy(dtype=np.float64)
        of_best = np.where(bests < 0, np.nan, known[bests.astype(np.int64)])
        found[name.replace("test", "reference")] = of_best
    return found.assign(target=targets, saving=saved)


def _reached(points: pd.DataFrame, rows: IntArray) -> pd.DataFrame:
    """These rows of the points with ``reached``; of -1 - row only what does not hang on a point."""
    reached = rows >= 0
    found = points.iloc[np.where(reached, rows, -1 - rows)].reset_index(drop=True)
    for name in found.columns.difference(_WITHOUT_POINT, sort=False):
        found[name] = found[name].astype(object).where(reached)
    figures = [name for name in (*_FIGURES, "valid_p95", "total_cost", *_COSTS) if name in found]
    return found.astype(dict.fromkeys(figures, "float64")).assign(reached=reached)


def diverged(rows: pd.DataFrame) -> pd.Series[bool]:
    """True for rows of a model with this mark."""
    if "marks" not in rows.columns:
        return rows["learner"].isna()
    words = rows["marks"].dropna().unique()
    return rows["marks"].isin([cell for cell in words if DIVERGED in str(cell).split(", ")])


def over_repeats(points: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over repeats, one row per learner and data set.

    Takes the rows of ``best_points``, ``under_budget`` or ``savings``. For each figure ``x`` there
    is ``x`` (mean) and ``x_std`` (sample standard deviation, NaN for one repeat); ``repeats``
    counts them. Of savings ``reached`` counts the repeats that reached the target; unless all did,
    every mean is NaN: it would be biased towards the repeats that did.
    """
    import pandas as pd

    keys = [key for key in _LEARNER if key in points]
    names = [name for name in _FIGURES if name in points]
    by = points.groupby(keys, observed=True)
    found = pd.DataFrame({"repeats": by.size()})
    if "reached" in points:
        found["reached"] = by["reached"].sum()
    with np.errstate(invalid="ignore"):  # an infinite saving has no deviation
        for name in names:
            values = by[name]
            found[name] = values.mean().where(values.count() == found["repeats"])
            found[f"{name}_std"] = values.std().where(np.isfinite(found[name]))
    return found.reset_index()


def _missing(column: str, frame: pd.DataFrame) -> str:
    known = []
    for name in frame.columns:
        with suppress(UsageError):
            known.append(parse_metric(str(name)).name)
    return f"these results have no column {column!r}; metrics: {', '.join(known) or 'none'}"


Choose = Callable[[FloatArray, FloatArray, FloatArray], IntArray]
"""From validation cost, quality and cost of 95% of rows of some points to the chosen ones."""


def _picked(points: pd.DataFrame, choose: Choose) -> IntArray:
    """The chosen rows of every learner and repeat, in order of their keys."""
    keys = [key for key in (*_LEARNER, *REPEAT) if key in points]
    figures = points[["valid_cost", "valid_quality", "valid_p95"]].to_numpy(dtype=np.float64).T
    rows = [np.zeros(0, dtype=np.int64)]
    for own in groups(points, keys):
        rows.append(own[choose(*figures[:, own])])
    return np.concatenate(rows)


def _over(reference: float, cost: float) -> float:
    if cost > 0 or np.isnan(cost):
        return reference / cost
    return float("inf") if reference > 0 else 1.0
