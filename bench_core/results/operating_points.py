"""Operating points of a run, one row each, from the export frame (one row per trial x point x
split). They are chosen on VALIDATION and reported on TEST.

A *repeat* is one seed on one fold. Each repeat chooses by its own validation rows
(``bench_core.leaderboard.draws``). Results under caps are used only if a cap is requested. Trials
that are not ``ok`` or failed the replay audit are excluded. ``higher``: True if higher quality is
better. Marks of the chosen points tell whether a longer or wider search could help.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench_core.arrays import BoolArray, IntArray
from bench_core.errors import UsageError, shortened
from bench_core.metrics import parse_metric
from bench_core.metrics.frontier import best_within
from bench_core.protocols import DIVERGED
from bench_core.results.budgets import CAP, CONSTANT
from bench_core.results.tables import json_value
from bench_core.sequential import ROUNDING

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo


REPEAT = ("fold", "seed")
_LEARNER = ("dataset", "accounting", "learner")
_POINT = (*_LEARNER, *REPEAT, "params", "point")
_COSTS = ("feature_cost", "evaluation_cost", "cost_max", "features_used")
OVER = ("over_cap", "excess")
_KEPT = (*_POINT, "unit", "audit", "stand_in", "marks", "cost", *_COSTS, CAP, *OVER)
_BILLED = ("cost", "cost_max", CAP, *OVER)
_CHOSEN_BY = (*_POINT, "split", "status", "audit", "marks", *_BILLED, "features_used")


class Criterion(NamedTuple):
    """Metric by which points are chosen: its column and direction, and if it is a cost."""

    name: str
    higher_is_better: bool
    in_money: bool = False


def criterion(info: RunInfo, name: str) -> Criterion:
    """Metric of a run. The run stores what it is: reports need no plugins."""
    return Criterion(name, bool(info.higher_is_better.get(name, True)), name in info.in_money)


def of_dataset(frame: pd.DataFrame, dataset: str, metric: str) -> pd.DataFrame:
    """Rows of one data set with only the columns needed to choose points, to save memory."""
    names = dict.fromkeys((*_CHOSEN_BY, metric))
    return frame.loc[frame["dataset"] == dataset, [name for name in names if name in frame.columns]]


def groups(table: pd.DataFrame, keys: Sequence[str]) -> list[IntArray]:
    """Positions of the rows with equal keys, in order of the keys."""
    if table.empty:
        return []
    grouped = table.groupby(list(keys), sort=True, observed=True, dropna=False)
    number = grouped.ngroup().to_numpy()
    order = np.argsort(number, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(number[order])) + 1)


def operating_points(
    frame: pd.DataFrame, metric: str, cost: str = "cost", *, cap: float | None = None
) -> pd.DataFrame:
    """Return one row per operating point, with its settings and test costs.

    Added columns: ``valid_quality``, ``valid_cost``, ``test_quality`` and ``test_cost`` from the
    columns ``metric`` and ``cost``. With a ``cap`` the rows are results under it, if it was
    measured, and the points of the paths at which no row of any split costs more; otherwise the
    points of the paths. Raises UsageError if the frame lacks a column.
    """
    for column in (metric, cost):
        if column not in frame.columns:
            raise UsageError(_missing(column, frame))
    # combine the rows of a point on all splits
    keys = [key for key in _POINT if key in frame.columns]
    usable = frame["status"] == "ok"
    if "audit" in frame.columns:
        usable &= frame["audit"] != "failed"
    if CAP in frame.columns:
        own = frame[CAP].isna()
        usable &= own if cap is None else own | (frame[CAP] == cap)
    if cap is not None:  # a metered purchase may exceed the measured cap
        within = frame["cost_max"] <= cap * (1 + ROUNDING)
        usable &= within | (frame[CAP] == cap if CAP in frame.columns else False)
    test, valid = (frame[usable & (frame["split"] == split)] for split in ("test", "valid"))
    measured = valid[keys].assign(valid_quality=valid[metric], valid_cost=valid[cost])
    shown = test[[name for name in _KEPT if name in frame.columns]]
    shown = shown.assign(test_quality=test[metric], test_cost=test[cost])
    return shown.merge(measured, on=keys, how="inner", validate="one_to_one")


_NAMES = {"valid": "validation", "test": "test"}


def undefined(frame: pd.DataFrame, metric: str, splits: Sequence[str] = ("valid", "test")) -> str:
    """Splits on which a metric is undefined for all learners: ``"test (fold 2, seed 0)"``; of a
    single repeat just ``"test"``."""
    judged = frame[(frame["status"] == "ok") & frame["split"].isin(splits)]
    known = judged[metric].notna().groupby([judged[k] for k in ("split", *REPEAT)], observed=True)
    defined = known.any()
    several = len(defined.index.droplevel("split").unique()) > 1
    places = [
        _NAMES[split] + (f" (fold {fold}, seed {seed})" if several else "")
        for split, fold, seed in defined[~defined].index
    ]
    return shortened(places, 3)


def best_points(points: pd.DataFrame, higher: bool, budget: float = np.inf) -> pd.DataFrame:
    """Return the point of best validation quality (ties: cheapest) by learner and repeat, among
    those whose validation cost is within a budget."""
    figures = points[["valid_cost", "valid_quality"]].to_numpy(dtype=np.float64)
    chosen = []
    for rows in groups(points, [key for key in (*_LEARNER, *REPEAT) if key in points]):
        cost, quality = figures[rows].T
        at = best_within(cost, quality[None], budget, higher)[0]
        chosen += [rows[at]] if at >= 0 else []
    return points.iloc[chosen].reset_index(drop=True)


def caps_of(frame: pd.DataFrame) -> list[float]:
    """Return the measured caps, in ascending order."""
    found = frame[CAP].dropna().unique() if CAP in frame.columns else ()
    return sorted(float(cap) for cap in found)


def constants(points: pd.DataFrame) -> BoolArray:
    """True for rows of the best constant."""
    texts = points["point"].astype(str)
    found: BoolArray = texts.str.contains(f'"{CONSTANT}"').to_numpy(dtype=bool)
    return found


def marked(rows: pd.DataFrame, mark: str = DIVERGED) -> pd.Series[bool]:
    """True for rows of a model with this mark."""
    if "marks" not in rows.columns:
        return rows["learner"].isna()
    words = rows["marks"].dropna().unique()
    return rows["marks"].isin([cell for cell in words if mark in str(cell).split(", ")])


def _missing(column: str, frame: pd.DataFrame) -> str:
    metrics = []
    for name in frame.columns:
        with suppress(UsageError):
            metrics.append(parse_metric(str(name)).name)
    return f"these results have no column {column!r}; metrics: {', '.join(metrics) or 'none'}"


NOT_CONVERGED = "not converged"
AT_EDGE = "at edge"

LAST_TREES, NEGLIGIBLE = 0.1, 0.001
"""Boosting has converged if the last tenth of its trees raised its best validation quality by less
than a thousandth."""

_TRIAL = ["learner", "fold", "seed", "params"]

Ends = Mapping[str, tuple[float | None, float | None]]


def _paths_of(points: pd.DataFrame) -> dict[tuple[Any, ...], IntArray]:
    """Rows of each trial among operating points, by ``_TRIAL``."""
    found = groups(points, _TRIAL)
    first = points[_TRIAL].iloc[[rows[0] for rows in found]]
    return dict(zip(first.itertuples(index=False, name=None), found, strict=True))


def search_marks(
    chosen: pd.DataFrame, points: pd.DataFrame, ends: Mapping[str, Ends], higher: bool
) -> dict[str, tuple[str, ...]]:
    """Return the distinct marks of each learner's ``chosen`` points (one row per repeat).

    ``points`` are all points (``operating_points``), ``chosen`` the best of them; ``ends`` are by
    learner; ``higher``: True if higher quality is better.
    """
    paths, marks = _paths_of(points), {}
    for learner, rows in chosen.groupby("learner", observed=True):
        trials = rows[_TRIAL].itertuples(index=False, name=None)
        still = [growing(points.iloc[paths[trial]], higher) for trial in trials]
        values = [json_value(str(text) or "{}") for text in rows["params"]]
        edges = [
            name
            for name, bounds in ends.get(str(learner), {}).items()
            # of trees ``growing`` decides where it is known
            if (name != "trees" or None in still)
            and any(_beyond(value.get(name), *bounds) for value in values)
        ]
        edge = [f"{AT_EDGE}: {', '.join(edges)}"] if edges else []
        marks[str(learner)] = (*([NOT_CONVERGED] if any(still) else []), *edge)
    return marks


def with_choices(frame: pd.DataFrame, info: RunInfo) -> pd.DataFrame:
    """Add a last column ``chosen`` to the export frame: ``best`` and marks at each learner's point
    of best validation quality in the primary metric (by repeat), else empty."""
    frame, keys = frame.assign(chosen=""), [*_TRIAL, "point"]
    for use in {use.name: use for use in info.datasets}.values():
        rows = frame.loc[frame["dataset"] == use.name]
        metric = criterion(info, use.metrics[0])
        points, higher = operating_points(rows, metric.name), metric.higher_is_better
        for _, best in best_points(points, higher).groupby(["fold", "seed"]):
            marks = search_marks(best, points, use.ends, higher)
            words = ["; ".join(("best", *marks[name])) for name in best["learner"].astype(str)]
            there = rows[keys].merge(best[keys].assign(chosen=words), on=keys, how="left")["chosen"]
            frame.loc[rows.index[there.notna()], "chosen"] = there.dropna().to_numpy()
    return frame


def growing(path: pd.DataFrame, higher: bool) -> bool | None:
    """True if the last tenth of the trees of a fit's path raised its best validation quality by
    more than a thousandth; None unless all its points give their trees.

    Boosting that stopped before its maximum number of trees has converged, and so has a single
    point.
    """
    path = path[~constants(path)]
    counts = [json_value(str(point) or "{}").get("trees") for point in path["point"]]
    if None in counts:
        return None
    trees = np.array(counts)
    most = json_value(str(path["params"].iloc[0]) or "{}").get("trees") or 0
    if len(counts) < 2 or trees.max() < most:
        return False
    worth = path["valid_quality"].to_numpy(dtype=np.float64) * (1.0 if higher else -1.0)
    before = np.fmax.reduce(worth[trees <= (1.0 - LAST_TREES) * trees.max()], initial=np.nan)
    best = np.fmax.reduce(worth)
    return not best - before <= NEGLIGIBLE * abs(best)


def _beyond(value: Any, low: float | None, high: float | None) -> bool:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    return (low is not None and value <= low) or (high is not None and value >= high)
