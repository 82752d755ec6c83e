"""Measures of claims: functions from a run's export frame to one figure; and what keeps a figure
from settling its claim.

Each measure takes the claim and the rows of its contenders on its data set, in which ``learner``
holds the contenders' labels. Points are chosen on validation, figures are those of the test
split, means over repeats.

Offering more operating points never loses a claim, as long as validation orders them as test does:
a learner's curve begins at the constant predictor, which is free, holds its best affordable point
up to the next better one, and is read at budgets that the claim names.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_claims import purchases
from bench_claims.claims import CURVES, FLOORED, PURCHASES, TIMES, Claim, compared
from bench_core.metrics.frontier import share_of
from bench_core.results import operating_points as selection
from bench_core.results.budgets import Budget
from bench_core.results.marks import growing
from bench_core.results.operating_points import Criterion

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.arrays import FloatArray

CONSTANT = "constant"
"""The baseline where every curve begins."""


def saving(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> float:
    """1 - the cost at which the first learner keeps a share of the second's best quality, over
    the second's cost at its best.

    A learner that never keeps it saves nothing, where the claim is that it saves no more than
    something; else there is no figure.
    """
    own = keeping(claim, frame, metric)
    spent = (own["test_cost"] / own["reference_cost"]).where(own["reached"])
    return 1.0 - float(spent.fillna(1.0).mean() if claim.at_most else spent.mean(skipna=False))


def quality(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> float:
    """The first learner's quality within the budget; NaN unless every repeat affords something, as
    a mean would be biased towards those that do."""
    own = frame[frame["learner"] == claim.labels[0]]
    within = Budget(claim.budget, claim.kind)
    chosen = selection.points_within(own, metric.name, metric.higher_is_better, within, claim.cost)
    every = own.groupby(["fold", "seed"]).ngroups
    return float(chosen["test_quality"].mean()) if len(chosen) == every else float("nan")


def cost(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> float:
    """The first learner's cost at its cheapest point that keeps a share of the best quality: the
    second learner's, or its own where there is no second."""
    return float(keeping(claim, frame, metric)["test_cost"].mean(skipna=False))


def keeping(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> pd.DataFrame:
    """For each repeat the first learner's cheapest point that keeps a share of the best quality of
    the second, or of its own: a row of ``selection.savings``."""
    higher = metric.higher_is_better
    reference = claim.labels[min(1, len(claim.labels) - 1)]
    found = selection.savings(_points(claim, frame, metric), higher, reference, claim.keeps)
    return found[found["learner"] == claim.labels[0]]


def margin(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> float:
    """The least, over neighbours in the list, of the first's mean quality minus the second's, over
    the claim's budgets."""
    means = [float(gap @ width / width.sum()) for gap, width in _gaps(claim, frame, metric)]
    return round(min(means), 12)


def least_margin(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> float:
    """As ``margin``, at the budget where it is least: for "always above". NaN where one is above
    the other nowhere."""
    gaps = [gap for gap, _ in _gaps(claim, frame, metric)]
    equal = any(gap.min() == 0.0 == gap.max() for gap in gaps)
    return float("nan") if equal else float(min(gap.min() for gap in gaps))


def quality_kept(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> float:
    """The first learner's quality within the budget over the second's best."""
    best = selection.best_points(_points(claim, frame, metric), metric.higher_is_better)
    other = selection.over_repeats(best[best["learner"] == claim.labels[1]])
    return quality(claim, frame, metric) / float(other["test_quality"].iloc[0])


def time_ratio(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> float:
    """Median seconds of the first learner's fits over those of the second's."""
    return _seconds(frame, claim.labels[0]) / _seconds(frame, claim.labels[1])


def minutes(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> float:
    """Median minutes of the first learner's fits, of what it stands on not counted."""
    return _seconds(frame, claim.labels[0]) / 60.0


def _points(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> pd.DataFrame:
    return selection.operating_points(frame, metric.name, claim.cost)


def caps_read(claim: Claim, frame: pd.DataFrame) -> list[float]:
    """The caps at which a claim about caps is read: of those measured its budget, or all from the
    first to the last of its budgets."""
    low, high = claim.budgets if claim.measure in CURVES else (claim.budget, claim.budget)
    return [cap for cap in selection.caps_of(frame) if low <= cap <= high]


def _capped_gaps(
    claim: Claim, frame: pd.DataFrame, metric: Criterion
) -> list[tuple[FloatArray, FloatArray]]:
    """As ``_gaps``, at the caps of ``caps_read``, each of which counts as much as another."""
    sign = 1.0 if metric.higher_is_better else -1.0
    caps = caps_read(claim, frame)
    reached = {label: np.full(len(caps), np.nan) for label in claim.labels}
    for k, cap in enumerate(caps):
        found = selection.points_within(
            frame, metric.name, metric.higher_is_better, Budget(cap, "cap")
        )
        for label, own in found.groupby("learner", observed=True):
            reached[str(label)][k] = own["test_quality"].mean()
    curves = (reached[label] for label in claim.labels)
    return [(sign * (a - b), np.ones(len(a))) for a, b in pairwise(curves)]


def _gaps(
    claim: Claim, frame: pd.DataFrame, metric: Criterion
) -> list[tuple[FloatArray, FloatArray]]:
    """For each pair of neighbours how much better the first is on each of the stretches (s,) of
    budgets on which both curves are flat, the last budget too, and their widths (s,)."""
    if claim.kind == "cap":
        return _capped_gaps(claim, frame, metric)
    sign = 1.0 if metric.higher_is_better else -1.0
    low, high = claim.budgets
    cost = "cost_p95" if claim.kind == "p95" else claim.cost
    points = selection.operating_points(frame, metric.name, cost)
    curves = [_curve(points, metric, label) for label in claim.labels]
    gaps = []
    for pair in pairwise(curves):
        steps = np.unique(np.concatenate([[low, high], *(curve["budget"] for curve in pair)]))
        steps = steps[(steps >= low) & (steps <= high)]
        better, worse = (
            c["test_quality"].to_numpy()[np.searchsorted(c["budget"], steps, "right") - 1]
            for c in pair
        )
        gaps.append((sign * (better - worse), np.diff(steps, append=high)))
    return gaps


def _curve(points: pd.DataFrame, metric: Criterion, label: str) -> pd.DataFrame:
    """The mean curve of one learner's points and the constant's."""
    own = points[points["learner"].isin([label, CONSTANT])].assign(learner=label)
    return selection.mean_curve(selection.curve(own, metric.higher_is_better, label))


def _seconds(frame: pd.DataFrame, label: str) -> float:
    fits = frame.drop_duplicates(["learner", "fold", "seed", "params"])
    return float(fits.loc[fits["learner"] == label, "fit_seconds"].median())


def shortfall(claim: Claim, frame: pd.DataFrame, metric: Criterion, measured: float) -> str:
    """How the points at which a saving, a cost, a quality or purchases were read fall short of the
    quality wanted, on test; "" where they do not. What is not kept on test too was not saved."""
    if claim.measure in PURCHASES:
        return _behind(claim, frame, metric)
    if claim.measure not in FLOORED:
        return ""
    higher, have, least = metric.higher_is_better, measured, float("nan")
    if claim.measure != "quality":
        found = keeping(claim, frame, metric)
        have, best = (found[x].mean(skipna=False) for x in ("test_quality", "reference_quality"))
        least = share_of(float(best), claim.keeps, higher)
    if claim.floor and not compared(claim.floor, have):
        return f"the quality there is {have:.4g}, not {claim.floor}"
    if (
        claim.measure == "saving"
        and not claim.at_most
        and (have < least if higher else have > least)
    ):
        return f"on test the quality there is {have:.4g}, and the other's best {best:.4g}"
    return ""


def _behind(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> str:
    """Where the first learner's best does not keep the share of the second's on test: what a model
    without quality buys shows nothing."""
    best = selection.best_points(_points(claim, frame, metric), metric.higher_is_better)
    mean = best.groupby("learner", observed=True)["test_quality"].mean()
    own, other = (float(mean[label]) for label in claim.labels[:2])
    least = share_of(other, claim.keeps, metric.higher_is_better)
    if own >= least if metric.higher_is_better else own <= least:
        return ""
    return f"on test its best quality is {own:.4g}, and the other's {other:.4g}"


def too_few_trees(claim: Claim, frame: pd.DataFrame) -> str:
    """The contender that was trained with fewer trees than the claim asks for; "" if none was."""
    for label in claim.labels:
        params = frame.loc[frame["learner"] == label, "params"].astype(str).unique()
        most = max((_trees(json.loads(text or "{}")) for text in params), default=0)
        if 0 < most < claim.trees:
            return f"{label} has {most} trees, the paper {claim.trees:g}"
    return ""


def convergence(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> tuple[str, str]:
    """Which contenders had not converged, and of which that cannot be known. The one whose merit
    the claim states may gain from more trees and is left out."""
    if claim.measure in TIMES:
        return "", ""
    judged = claim.labels if claim.adverse(metric.higher_is_better) else claim.labels[1:]
    points = selection.operating_points(frame, metric.name, claim.cost)
    points = points.dropna(subset="valid_quality")
    states = {
        label: _states(points[points["learner"] == label], metric.higher_is_better)
        for label in judged
    }
    helped = ", ".join(label for label in judged if "growing" in states[label])
    return helped, ", ".join(label for label in judged if "unknown" in states[label])


def _states(own: pd.DataFrame, higher: bool) -> set[str]:
    """``growing`` if in some repeat the last trees of the learner's best setting raised its best
    quality, ``unknown`` if there are trees of which the points do not tell."""
    found = set()
    for _, repeat in own.groupby(["fold", "seed"]):
        best = repeat.loc[repeat["valid_quality"].agg("idxmax" if higher else "idxmin")]
        if _trees(json.loads(best["params"] or "{}")):
            fit = repeat[repeat["params"] == best["params"]]
            state = growing(fit, higher)
            found.add("unknown" if state is None else "growing" if state or len(fit) < 2 else "")
    return found


def _trees(params: Mapping[str, Any]) -> int:
    """The trees of a setting, or of what it stands on; 0 where it has none."""
    base = params.get("base")
    return int(params.get("trees") or (_trees(base) if isinstance(base, Mapping) else 0))


FIGURES: Mapping[str, Callable[[Claim, pd.DataFrame, Criterion], float]] = {
    "saving": saving,
    "quality": quality,
    "quality-kept": quality_kept,
    "cost": cost,
    "margin": margin,
    "least-margin": least_margin,
    "time-ratio": time_ratio,
    "minutes": minutes,
    "bought-early": purchases.bought_early,
    "bought-trend": purchases.bought_trend,
    "bought-first": purchases.bought_first,
    "bought-last": purchases.bought_last,
    "stages": purchases.stages,
    "passed": purchases.passed,
}
