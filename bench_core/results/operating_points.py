"""Choose operating points on VALIDATION and report their TEST results.

``operating_points`` turns the export frame (one row per trial x point x split) into one row per
point; all other functions choose among these rows. A *repeat* is one seed on one fold. Each repeat
chooses by its own validation rows; ``over_repeats`` then computes mean and standard deviation of
the test values. Results under caps are used only if a cap is requested. Trials that are not ``ok``
or failed the replay audit are excluded. ``higher``: True if higher quality is better.

A choice may mix two points (``Choice``). Its row is the more expensive point's, with
``cheaper_params`` and ``cheaper_point`` of the other and ``part``, the fraction of rows served by
the other. Qualities and mean costs are the mixture's. ``cost_p95``, ``cost_max`` and
``features_used`` are the larger of both values, as they are not means.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench_core.arrays import FloatArray, IntArray
from bench_core.errors import UsageError, option
from bench_core.metrics import parse_metric
from bench_core.metrics.frontier import (
    Choice,
    choosable,
    frontier,
    hull,
    mixed_reaching,
    mixed_within,
    share_of,
)
from bench_core.protocols import DIVERGED, GIVEN
from bench_core.results.budgets import (
    CAP,
    CONSTANT,
    KEEP,
    Budget,
    Limit,
    Target,
    budget_of,
    choice_within,
)
from bench_core.results.records import AUDITS
from bench_core.sequential import ROUNDING

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo

REPEAT = ("fold", "seed")
_LEARNER = ("dataset", "accounting", "learner")
_POINT = (*_LEARNER, *REPEAT, "params", "point")
_WITHOUT_POINT = (*_LEARNER, *REPEAT, "unit", "audit", "stand_in")
_SETTING = ("params", "point")
_FIGURES = ("test_quality", "test_cost", "valid_quality", "valid_cost", "saving")
_COSTS = ("feature_cost", "evaluation_cost", "cost_p95", "cost_max", "features_used")
_LARGER = ("cost_p95", "cost_max", "features_used", "valid_p95")
_KEPT = (*_POINT, "unit", "audit", "stand_in", "marks", "total_cost", *_COSTS, CAP)
_BILLED = ("total_cost", "cost_p95", "cost_max", CAP)
_CHOSEN_BY = (*_POINT, "split", "status", "audit", "marks", *_BILLED)


class Criterion(NamedTuple):
    """Metric by which points are chosen: its column and direction."""

    name: str
    higher_is_better: bool


def criterion(info: RunInfo, name: str) -> Criterion:
    """Metric of a run. The run stores its direction: reports need no plugins."""
    return Criterion(name, bool(info.higher_is_better.get(name, True)))


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
    frame: pd.DataFrame, metric: str, cost: str = "total_cost", *, cap: float | None = None
) -> pd.DataFrame:
    """Return one row per operating point, with its settings and test costs.

    Added columns: ``valid_quality``, ``valid_cost``, ``test_quality`` and ``test_cost`` from the
    columns ``metric`` and ``cost``, and ``valid_p95``, the 95th percentile of validation row costs.
    With a ``cap`` the rows are results under it, if it was measured, and the points of the paths
    at which no row of any split costs more; otherwise the points of the paths.
    Raises UsageError if the frame lacks a column.
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
    if cap is not None:
        usable &= frame["cost_max"] <= cap * (1 + ROUNDING)
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
    """Splits on which a metric is undefined for all learners: ``"test (fold 2, seed 0)"``."""
    judged = frame[(frame["status"] == "ok") & frame["split"].isin(("valid", "test"))]
    known = judged[metric].notna().groupby([judged[k] for k in ("split", *REPEAT)], observed=True)
    found = known.any()
    places = [f"{split} (fold {fold}, seed {seed})" for split, fold, seed in found[~found].index]
    return ", ".join(places[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")


def best_points(points: pd.DataFrame, higher: bool) -> pd.DataFrame:
    """Return the point of best validation quality (ties: cheapest) by learner and repeat."""
    return under_budget(points, higher, np.inf)


def caps_of(frame: pd.DataFrame) -> list[float]:
    """Return the measured caps, in ascending order."""
    found = frame[CAP].dropna().unique() if CAP in frame.columns else ()
    return sorted(float(cap) for cap in found)


def points_within(
    frame: pd.DataFrame, metric: Criterion, limit: Limit, reference: str = "", mixes: bool = True
) -> pd.DataFrame:
    """Return, from the export frame, each learner's and repeat's best mixture (without ``mixes``
    its best point) within a budget, or the cheapest that reaches a target. Learners and repeats
    without a point are omitted."""
    cap = limit.amount if limit.kind == CAP else None
    points = operating_points(frame, metric.name, cap=cap)
    if isinstance(limit, Target):
        return reaching(points, metric.higher_is_better, limit, reference, mixes)
    return under_budget(points, metric.higher_is_better, limit, mixes)


def under_budget(
    points: pd.DataFrame, higher: bool, budget: Budget | float, mixes: bool = True
) -> pd.DataFrame:
    """Return each learner's and repeat's best mixture (without ``mixes`` its best point) within
    ``budget`` on validation, by ``choice_within``; learners and repeats without a point are
    omitted."""
    return mixture(points, choices_within(points, higher, budget, mixes))


def choices_within(
    points: pd.DataFrame, higher: bool, budget: Budget | float, mixes: bool = True
) -> Choice:
    """Choices that give the rows of ``under_budget``."""
    within = budget_of(budget)
    return _chosen(
        points,
        lambda cost, own, p95: choice_within(within, cost, own, p95, higher, mixes=mixes),
    )


def reaching(
    points: pd.DataFrame, higher: bool, target: Target, reference: str = "", mixes: bool = True
) -> pd.DataFrame:
    """Return each learner's and repeat's cheapest mixture (without ``mixes`` its cheapest point)
    that reaches a target on validation. Fractions to keep refer to the ``reference`` among the
    points (``savings``)."""
    if target.kind == KEEP:
        found = savings(points, higher, reference, target.amount, mixes)
        return found[found["reached"]].reset_index(drop=True)
    chosen = _chosen(
        points, lambda cost, own, _: _cheapest(cost, own, target.amount, higher, mixes)
    )
    return mixture(points, chosen)


def _cheapest(
    cost: FloatArray, quality: FloatArray, aim: float, higher: bool, mixes: bool
) -> Choice:
    """Cheapest mixture, or point, of quality ``aim`` among points (1, p)."""
    if not mixes:
        quality = np.where(quality >= aim if higher else quality <= aim, quality, np.nan)
    return mixed_reaching(hull(cost, quality, higher), np.array([aim]), higher)


def why_not_reached(
    points: pd.DataFrame, metric: Criterion, target: Target, reference: str, learner: str = ""
) -> str:
    """Reason why no point of a learner ("": of any) reaches a target, and the remedy."""
    words = target.words(metric.name, reference)
    if target.kind == KEEP and reference not in set(points["learner"]):
        remedy = (
            f"choose by a budget or a quality, or run it with {option('reference', like='NAME')}"
        )
        return f"the run has no reference with a result: {remedy}"
    if target.kind == KEEP and not len(
        reaching(points, metric.higher_is_better, target, reference)
    ):
        return f"the best constant already reaches {words} on validation, at no cost"
    own = points[points["learner"] == learner] if learner else points
    by_repeat = own.groupby(["fold", "seed"])["valid_quality"]
    best = by_repeat.max() if metric.higher_is_better else by_repeat.min()
    several, who = len(best) > 1, learner or "any learner"
    where = "on validation in every repeat" if several else "on validation"
    what = "the mean of the best" if several else "the best"
    return f"no point of {who} reaches {words} {where} ({best.mean():.4g} is {what})"


def _chosen(
    points: pd.DataFrame, choose: Callable[[FloatArray, FloatArray, FloatArray], Choice]
) -> Choice:
    """Choose rows by ``choose`` from each repeat's cost and quality (1, p) and p95 cost (p,)."""
    found = []
    for own, (cost, quality, p95) in _by_repeat(points):
        choice = choose(cost[None], quality[None], p95)
        if choice.point[0] >= 0:
            found.append((own[choice.point[0]], own[choice.cheaper[0]], choice.part[0]))
    point, cheaper, part = np.array(found).reshape(-1, 3).T
    return Choice(point.astype(np.int64), cheaper.astype(np.int64), part)


def mixture(points: pd.DataFrame, chosen: Choice) -> pd.DataFrame:
    """Return the rows (n,) of a choice among these points."""
    found = points.iloc[chosen.point].reset_index(drop=True)
    others = {f"cheaper_{name}": points[name].to_numpy()[chosen.cheaper] for name in _SETTING}
    for name in found.columns.intersection([*_FIGURES, *_COSTS, "total_cost", "valid_p95"]):
        found[name] = mixed_values(points, chosen, name)
    if "audit" in points:  # the weaker verdict
        strength = points["audit"].astype(object).fillna("").map(AUDITS.index).to_numpy()
        weaker = (chosen.part > 0) & (strength[chosen.cheaper] < strength[chosen.point])
        audit = points["audit"].iloc[np.where(weaker, chosen.cheaper, chosen.point)]
        found["audit"] = audit.reset_index(drop=True)
    if "marks" in points:  # marks of both models
        every = points["marks"].astype(object).fillna("").to_numpy()
        other = np.where(chosen.part > 0, every[chosen.cheaper], "")
        both = every[chosen.point] + ", " + other
        found["marks"] = [", ".join(dict.fromkeys(filter(None, b.split(", ")))) for b in both]
    return found.assign(part=chosen.part, **others)


def curve(points: pd.DataFrame, higher: bool, mixes: bool = True) -> pd.DataFrame:
    """Return, by learner and repeat, the points of optimal mixtures by validation cost (without
    ``mixes`` the frontier). They are chosen by ``valid_*`` and drawn by ``test_*``."""
    rows = [np.zeros(0, dtype=np.int64)]
    for own, (cost, quality, _) in _by_repeat(points):
        found = frontier(cost, quality, higher)
        if mixes and len(found):
            found = found[hull(cost[None, found], quality[None, found], higher).point[0]]
        rows.append(own[found])
    return points.iloc[np.concatenate(rows)].reset_index(drop=True)


def choosable_points(points: pd.DataFrame, higher: bool) -> pd.DataFrame:
    """Return the points that some budget of mean or p95 cost chooses."""
    rows = [np.zeros(0, dtype=np.int64)]
    for own, (cost, quality, p95) in _by_repeat(points):
        rows.append(own[choosable(cost, p95, quality, higher)])
    return points.iloc[np.concatenate(rows)]


def mean_path(chosen: pd.DataFrame, mixes: bool = True) -> tuple[pd.DataFrame, Choice]:
    """Return the mean over repeats of one learner's ``curve``, and the underlying choices (repeats,
    budgets). At each ``budget`` it has mean and standard deviation (``_std``) of ``test_quality``
    and ``test_cost``.

    Budgets are the validation costs of all repeats' points, from the first that allows a point in
    every repeat; none if a repeat's test quality is undefined. Between two budgets the curve is
    linear (without ``mixes`` a step).
    """
    import pandas as pd

    if chosen.empty:
        none = np.zeros((0, 0), dtype=np.int64)
        return pd.DataFrame(columns=["budget", "test_quality"]), Choice(
            none, none, np.zeros((0, 0))
        )
    repeats = groups(chosen, REPEAT)
    cost = chosen["valid_cost"].to_numpy(dtype=np.float64)
    budgets = np.unique(cost)
    budgets = budgets[budgets >= max(cost[rows[0]] for rows in repeats)]
    after = [np.searchsorted(cost[rows], budgets, "right") for rows in repeats]
    low = np.stack([rows[k - 1] for rows, k in zip(repeats, after, strict=True)])
    high = np.stack(
        [rows[np.minimum(k, len(rows) - 1)] for rows, k in zip(repeats, after, strict=True)]
    )
    inside = (budgets > cost[low]) & (budgets < cost[high]) & mixes
    gap = np.where(inside, cost[high] - cost[low], np.inf)
    part = np.asarray((cost[high] - budgets) / gap, dtype=np.float64)
    held = Choice(np.where(inside, high, low), low, part)
    known = ~np.isnan(mixed_values(chosen, held, "test_quality")).any(axis=0)
    budgets, held = budgets[known], held.at((slice(None), known))
    table: dict[str, Any] = {"budget": budgets, "repeats": len(repeats)}
    for column in ("test_quality", "test_cost"):
        values = mixed_values(chosen, held, column)
        table[column] = values.mean(axis=0)
        spread = values.std(axis=0, ddof=1) if len(repeats) > 1 else np.nan
        table[f"{column}_std"] = spread
    return pd.DataFrame(table), held


def mixed_values(points: pd.DataFrame, chosen: Choice, column: str) -> FloatArray:
    """Values of a column for choices, in their shape."""
    values = points[column].to_numpy(dtype=np.float64)
    own, its = values[chosen.point], values[chosen.cheaper]
    mixed = np.maximum(own, its) if column in _LARGER else own + chosen.part * (its - own)
    found: FloatArray = np.where(chosen.part > 0, mixed, own)
    return found


def mixed_figures(points: pd.DataFrame, chosen: Choice) -> pd.DataFrame:
    """Test quality and cost of choices among these points."""
    import pandas as pd

    names = ("test_quality", "test_cost")
    return pd.DataFrame({name: mixed_values(points, chosen, name) for name in names})


def savings(
    points: pd.DataFrame, higher: bool, reference: str, share: float, mixes: bool = True
) -> pd.DataFrame:
    """Return the saving of each learner relative to the reference learner, per repeat.

    The target is ``share`` of the reference's best validation quality (for a metric that is better
    when lower: at most that quality / share). Each learner, including the reference, uses its
    cheapest mixture that reaches the target on validation (without ``mixes`` its cheapest point).
    Added columns: ``target``, ``reached``, ``reference_quality`` and ``reference_cost`` (test, at
    the reference's best validation point) and ``saving``, the reference's test cost for the target
    (of a model trained elsewhere that of all its trees, today's bill) over the learner's. If a
    repeat does not reach the target or has no reference, ``reached`` is False and the others are
    NaN. A diverged fit is not a reference, nor is a fit whose target is reached by the best
    constant, which is free.
    """
    sign = 1 if higher else -1
    constant = points["point"].astype(str).str.contains(f'"{CONSTANT}"').to_numpy(dtype=bool)
    sound = ((points["learner"] == reference) & ~marked(points)).to_numpy(dtype=bool)
    given = marked(points, GIVEN).to_numpy(dtype=bool)
    cost, quality, test = (
        points[name].to_numpy(dtype=np.float64)
        for name in ("valid_cost", "valid_quality", "test_cost")
    )

    def reaching(rows: IntArray, aim: float) -> tuple[int, int, float, float]:
        """Rows of the cheapest mixture that reaches the aim, its part, and its test cost."""
        found = _cheapest(cost[None, rows], quality[None, rows], aim, higher, mixes)
        if found.point[0] < 0:
            return -1, -1, 0.0, np.nan
        above, below, part = rows[found.point[0]], rows[found.cheaper[0]], float(found.part[0])
        return int(above), int(below), part, float(test[above] + part * (test[below] - test[above]))

    rows, added = [], []
    for part in groups(points, ["dataset", "accounting", *REPEAT]):
        own, best, aim, whole = part[sound[part]], -1, np.nan, np.nan
        if len(own):
            top = mixed_within(hull(cost[None, own], quality[None, own], higher), np.inf)
            best = int(own[top.point[0]]) if top.point[0] >= 0 else -1
        if best >= 0:
            aim = share_of(quality[best], share, higher)
            trivial = sign * quality[part[constant[part]]]
            if np.fmax.reduce(trivial, initial=-np.inf) >= sign * aim:
                aim = np.nan
            *_, whole = reaching(own, aim)
            whole = test[best] if given[best] and not np.isnan(whole) else whole
        for inside in groups(points.iloc[part], ["learner"]):
            above, below, mixed, paid = reaching(part[inside], aim)
            first = int(part[inside][0])  # values that do not depend on the point
            rows.append((above, below, mixed) if above >= 0 else (first, first, 0.0))
            added.append((above, best, aim, _over(whole, paid)))
    point, cheaper, parts = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    found = mixture(points, Choice(point.astype(np.int64), cheaper.astype(np.int64), parts))
    known, bests, targets, saved = np.array(added, dtype=np.float64).reshape(-1, 4).T
    for name in found.columns.difference(_WITHOUT_POINT, sort=False):
        found[name] = found[name].astype(object).where(known >= 0)
    figures = [n for n in (*_FIGURES, "valid_p95", "total_cost", *_COSTS, "part") if n in found]
    found = found.astype(dict.fromkeys(figures, "float64")).assign(reached=known >= 0)
    for name in ("test_quality", "test_cost"):
        values = points[name].to_numpy(dtype=np.float64)
        of_best = np.where(bests < 0, np.nan, values[bests.astype(np.int64)])
        found[name.replace("test", "reference")] = of_best
    return found.assign(target=targets, saving=saved)


def marked(rows: pd.DataFrame, mark: str = DIVERGED) -> pd.Series[bool]:
    """True for rows of a model with this mark."""
    if "marks" not in rows.columns:
        return rows["learner"].isna()
    words = rows["marks"].dropna().unique()
    return rows["marks"].isin([cell for cell in words if mark in str(cell).split(", ")])


def over_repeats(points: pd.DataFrame) -> pd.DataFrame:
    """Compute mean and standard deviation over repeats, one row per learner and data set.

    The input is the result of ``best_points``, ``under_budget`` or ``savings``. Each quantity ``x``
    has columns ``x`` (mean) and ``x_std`` (sample standard deviation, NaN for one repeat);
    ``repeats`` is their number. For savings, ``reached`` counts the repeats that reached the
    target. Unless all did, every mean is NaN, as it would be biased towards the repeats that did.
    """
    import pandas as pd

    keys = [key for key in _LEARNER if key in points]
    names = [name for name in _FIGURES if name in points]
    by = points.groupby(keys, observed=True)
    found = pd.DataFrame({"repeats": by.size()})
    if "reached" in points:
        found["reached"] = by["reached"].sum()
    with np.errstate(invalid="ignore"):  # infinite savings have no deviation
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


def _by_repeat(points: pd.DataFrame) -> Iterator[tuple[IntArray, FloatArray]]:
    """Yield, for every learner and repeat in order of their keys, its rows, and their validation
    costs, qualities and p95 costs (3, rows)."""
    keys = [key for key in (*_LEARNER, *REPEAT) if key in points]
    figures = points[["valid_cost", "valid_quality", "valid_p95"]].to_numpy(dtype=np.float64).T
    for own in groups(points, keys):
        yield own, figures[:, own]


def _over(reference: float, cost: float) -> float:
    if cost > 0 or np.isnan(cost):
        return reference / cost
    return float("inf") if reference > 0 else 1.0
