"""Choose operating points on VALIDATION and read their TEST rows.

``operating_points`` turns the export frame (one row per trial x point x split) into one row per
point; all other functions choose among these rows. A *repeat* is one seed on one fold; each repeat
chooses by its own validation rows, and ``over_repeats`` then gives mean and standard deviation of
the test values. What was measured under caps takes part only where a cap is asked for. Rows of
different suites, profiles, data sets or accountings are never mixed.
Trials that are not ``ok`` or failed the replay audit take no part. ``higher`` says whether more of
the quality is better.
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

BOARD = ("suite", "profile", "dataset", "accounting")
"""Columns that keep apart what must not be compared."""

REPEAT = ("fold", "seed")
_POINT = (*BOARD, "learner", *REPEAT, "params", "point")
_WITHOUT_POINT = (*BOARD, "learner", *REPEAT, "unit", "audit", "stand_in")
_QUALITIES = ("test_quality", "test_cost", "valid_quality", "valid_cost", "valid_p95")
_COSTS = ("feature_cost", "evaluation_cost", "cost_p95", "cost_max", "features_used")
_AVERAGED = (*_QUALITIES, *_COSTS)
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


def best_points(points: pd.DataFrame, higher: bool) -> pd.DataFrame:
    """For each learner and repeat the point with the best validation quality (of equals the
    cheapest)."""
    return under_budget(points, higher, np.inf)


def caps_of(frame: pd.DataFrame) -> list[float]:
    """The caps that were measured, rising."""
    found = frame[CAP].dropna().unique() if CAP in frame.columns else ()
    return sorted(float(cap) for cap in found)


def points_within(
    frame: pd.DataFrame, metric: str, higher: bool, budget: Budget, cost: str = "total_cost"
) -> pd.DataFrame:
    """For each learner and repeat the best point within a budget, from the export frame."""
    cap = budget.amount if budget.kind == "cap" else None
    return under_budget(operating_points(frame, metric, cost, cap=cap), higher, budget)


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
    rows = _picked(points, lambda cost, quality: _one(best_under(cost, quality, limit, higher)))
    return points.iloc[rows].reset_index(drop=True)


def curve(points: pd.DataFrame, higher: bool, learner: str = "") -> pd.DataFrame:
    """The validation frontiers of all learners or of one, repeat by repeat, by ascending validation
    cost: chosen by ``valid_*``, to be drawn by ``test_*``."""
    own = points[points["learner"] == learner] if learner else points
    return own.iloc[frontier_rows(own, higher)].reset_index(drop=True)


def frontier_rows(points: pd.DataFrame, higher: bool) -> IntArray:
    """The rows that are on a frontier, in the order of ``curve``."""
    return _picked(points, lambda cost, quality: frontier(cost, quality, higher))


def choosable_rows(points: pd.DataFrame, higher: bool) -> IntArray:
    """The rows that some budget of mean cost, or of that of 95% of rows, chooses."""
    p95 = points["valid_p95"].to_numpy(dtype=np.float64)
    cost, quality = _valid(points)
    found = [np.zeros(0, dtype=np.int64)]
    for own in groups(points, [*BOARD, "learner", *REPEAT]):
        found.append(own[choosable(cost[own], p95[own], quality[own], higher)])
    return np.concatenate(found)


def mean_curve(chosen: pd.DataFrame) -> pd.DataFrame:
    """The mean over repeats of a ``curve``, by learner: at each ``budget`` every repeat takes its
    best affordable point; mean and standard deviation (``_std``) of ``test_quality`` and
    ``test_cost``.

    Budgets are the validation costs of all repeats' frontiers, from the first at which every
    repeat can afford something.
    """
    import pandas as pd

    board = [key for key in (*BOARD, "learner") if key in chosen.columns]
    tables = []
    for rows in groups(chosen, board):
        part = chosen.iloc[rows]
        mean, _ = mean_path(part)
        tables.append(pd.DataFrame({**{key: part[key].iloc[0] for key in board}, **mean}))
    return pd.concat(tables, ignore_index=True) if tables else chosen


def mean_path(chosen: pd.DataFrame) -> tuple[dict[str, Any], IntArray]:
    """The columns of the ``mean_curve`` of one learner, arrays (budgets,) and how many ``repeats``,
    and the rows (repeats, budgets) that they are means of. Rows of a repeat stand in order of
    cost."""
    runs = groups(chosen, REPEAT)
    cost = chosen["valid_cost"].to_numpy(dtype=np.float64)
    budgets = np.unique(cost)
    budgets = budgets[budgets >= max(cost[rows[0]] for rows in runs)]
    held = np.stack([rows[np.searchsorted(cost[rows], budgets, "right") - 1] for rows in runs])
    table: dict[str, Any] = {"budget": budgets, "repeats": len(runs)}
    for column in ("test_quality", "test_cost"):
        values = chosen[column].to_numpy(dtype=np.float64)[held]
        table[column] = values.mean(axis=0)
        table[f"{column}_std"] = _spread(values)
    return table, held


def savings(
    points: pd.DataFrame, higher: bool, reference: str, share: float = 0.99
) -> pd.DataFrame:
    """The saving of each learner against the reference learner, repeat by repeat.

    The target is ``share`` of the reference's best validation quality (for a metric that is
    better when lower: at most that quality / share). Each learner, the reference too, takes its
    cheapest point that reaches the target on validation. Added columns: ``target``, ``reached``,
    ``reference_quality`` and ``reference_cost`` (test, at the reference's best validation point)
    and ``saving``: what the reference pays on test for just the target over what the learner pays
    for it, each by the mixture of that point and the one before it on its frontier that has the
    target on validation. A repeat that does not reach the target, or has no reference, is a row
    with ``reached`` False and NaN. A diverged fit is no reference.
    """
    repeat = [key for key in (*BOARD, *REPEAT) if key in points.columns]
    cost, quality = _valid(points)
    sound = ((points["learner"] == reference) & ~diverged(points)).to_numpy(dtype=bool)
    test = points["test_cost"].to_numpy(dtype=np.float64)

    def reaching(rows: IntArray, aim: float) -> tuple[int, float]:
        found = mixture_reaching(cost[rows], quality[rows], aim, higher) if len(rows) else None
        if found is None:
            return -1, np.nan
        above, below = rows[found[0]], rows[found[1]]
        return int(above), float(test[above] + found[2] * (test[below] - test[above]))

    at, bests, targets, saved = [], [], [], []
    for part in groups(points, repeat):
        own = part[sound[part]]
        first = best_under(cost[own], quality[own], np.inf, higher)
        best = -1 if first is None else int(own[first])
        aim = np.nan if first is None else share_of(quality[best], share, higher)
        _, whole = reaching(own, aim)
        for inside in groups(points.iloc[part], ["learner"]):
            rows = part[inside]
            row, paid = reaching(rows, aim)
            at.append(row if row >= 0 else -1 - int(rows[0]))
            bests.append(best)
            targets.append(aim)
            saved.append(_over(whole, paid))
    found = _reached(points, np.array(at, dtype=np.int64))
    best_rows = np.array(bests, dtype=np.int64)
    for name in ("test_quality", "test_cost"):
        known = points[name].to_numpy(dtype=np.float64)
        found[name.replace("test", "reference")] = np.where(best_rows < 0, np.nan, known[best_rows])
    return found.assign(target=targets, saving=saved)


def _reached(points: pd.DataFrame, rows: IntArray) -> pd.DataFrame:
    """These rows of the points with ``reached``; of -1 - row only what does not hang on a point."""
    found = points.iloc[np.where(rows < 0, -1 - rows, rows)].reset_index(drop=True)
    for name in found.columns.difference(_WITHOUT_POINT, sort=False):
        if name in _AVERAGED:
            found[name] = found[name].astype("float64").where(rows >= 0)
        else:
            nothing = "" if name in ("params", "point") else np.nan
            found[name] = found[name].astype(object).where(rows >= 0, nothing)
    return found.assign(reached=rows >= 0)


def diverged(rows: pd.DataFrame) -> pd.Series[bool]:
    """True for rows of a model with this mark."""
    if "marks" not in rows.columns:
        return rows["learner"].isna()
    words = rows["marks"].dropna().unique()
    return rows["marks"].isin([cell for cell in words if DIVERGED in str(cell).split(", ")])


def over_repeats(points: pd.DataFrame) -> pd.DataFrame:
    """Mean and standard deviation over repeats, one row per board and learner.

    Takes the rows of ``best_points``, ``under_budget`` or ``savings``. For each numeric column
    ``x`` there is ``x`` (mean) and ``x_std`` (sample standard deviation, NaN for one repeat);
    ``repeats`` counts them, ``params`` and ``point`` are kept where all repeats chose alike, else
    empty. Of savings ``reached`` counts the repeats that reached the target; unless all did,
    every mean is NaN: it would be biased towards the repeats that did.
    """
    import pandas as pd

    keys = [key for key in (*BOARD, "learner") if key in points.columns]
    words = ("params", "point", "unit", "audit", "stand_in")
    texts = {c: points[c].tolist() for c in (*keys, *words) if c in points.columns}
    columns = [c for c in (*_AVERAGED, "saving") if c in points.columns]
    numbers = {c: points[c].to_numpy(dtype=np.float64) for c in columns}
    rows = []
    for part in groups(points, keys):
        row = {**{key: texts[key][part[0]] for key in keys}, "repeats": len(part)}
        if "reached" in points.columns:
            row["reached"] = int(points["reached"].to_numpy()[part].sum())
        for column in [c for c in words if c in texts]:
            cells = [texts[column][k] for k in part]
            known = {cell for cell in cells if not _absent(cell)}
            row[column] = cells[0] if len(known) == 1 else ""
        for column, values in numbers.items():
            row[column] = float(values[part].mean())
            row[f"{column}_std"] = float(_spread(values[part]))
        rows.append(row)
    return pd.DataFrame(rows)


def _absent(cell: object) -> bool:
    return cell is None or cell != cell


def _missing(column: str, frame: pd.DataFrame) -> str:
    known = []
    for name in frame.columns:
        with suppress(UsageError):
            known.append(parse_metric(str(name)).name)
    return f"these results have no column {column!r}; metrics: {', '.join(known) or 'none'}"


def _picked(points: pd.DataFrame, choose: Callable[[FloatArray, FloatArray], IntArray]) -> IntArray:
    """The chosen rows of every learner and repeat, in order of their keys."""
    keys = [key for key in (*BOARD, "learner", *REPEAT) if key in points.columns]
    cost, quality = _valid(points)
    rows = [np.zeros(0, dtype=np.int64)]
    for own in groups(points, keys):
        rows.append(own[choose(cost[own], quality[own])])
    return np.concatenate(rows)


def _valid(part: pd.DataFrame) -> tuple[FloatArray, FloatArray]:
    cost = part["valid_cost"].to_numpy(dtype=np.float64)
    return cost, part["valid_quality"].to_numpy(dtype=np.float64)


def _one(index: int | None) -> IntArray:
    return np.array([] if index is None else [index], dtype=np.int64)


def _over(reference: float, cost: float) -> float:
    if cost > 0 or np.isnan(cost):
        return reference / cost
    return float("inf") if reference > 0 else 1.0


def _spread(values: FloatArray) -> FloatArray:
    """Sample standard deviation over the first axis, NaN for a single value and infinite ones."""
    if len(values) < 2:
        return np.full(values.shape[1:], np.nan)
    with np.errstate(invalid="ignore"):
        return np.asarray(values.std(axis=0, ddof=1), dtype=np.float64)
