"""Measures of claims on what is bought: by price, early on, along the trade-off, stage by stage.

A store keeps, of the points that a budget may choose, the share of test rows that buy each sensor
and the share that reach each stage of a cascade. Here a sensor is bought if any row buys it, and a
share is that of a price group's sensors, as in the figures of Greedy Miser and Cronus. A cascade's
stages are those that are left of it: the models served have no others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench_claims.claims import Claim
from bench_core._io.digests import canonical
from bench_core.results import operating_points as selection
from bench_core.results.operating_points import REPEAT, Criterion

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.arrays import BoolArray, FloatArray, IntArray
    from bench_core.results.records import Bought
    from bench_core.results.store import Store

BOUGHT = "bought"
"""The column that ``with_purchases`` adds."""

_ROUNDED = 1e-4  # shares that reach a stage are kept with four digits


class Purchases(NamedTuple):
    """At one point of each sensor its ``price`` (s,) and the ``share`` (s,) of rows that buy it; of
    each stage the share that ``reached`` it (k,) and the ``sensors`` (k,) of the way to its end."""

    price: FloatArray
    share: FloatArray
    reached: Sequence[float] = (1.0,)
    sensors: Sequence[int] = ()

    def of(self, prices: Sequence[float]) -> BoolArray:
        """The sensors (s,) of a group of prices [from, to]."""
        found: BoolArray = (self.price >= prices[0]) & (self.price <= prices[1])
        return found

    def stage(self) -> IntArray | None:
        """The stage (s,) in which each sensor is first read, -1 for one that never is; None where
        shares do not tell, as some stage that reads sensors turns no row away."""
        if len(self.sensors) < 2:
            return None
        reached = np.array(self.reached) - _ROUNDED
        first = np.where(self.share > 0, (self.share[:, None] < reached).sum(axis=1), -1)
        counts = [int(((first >= 0) & (first <= k)).sum()) for k in range(len(reached))]
        return first if counts == list(self.sensors) else None


def with_purchases(frame: pd.DataFrame, store: Store, run: str, claim: Claim) -> pd.DataFrame:
    """The rows of a claim's learners and data, with what their kept points buy on test."""
    rows = frame[(frame["dataset"] == claim.dataset) & (frame["split"].isin(["valid", "test"]))]
    found: dict[tuple[str, str], Purchases] = {}
    for learner in dict.fromkeys(contender.learner for contender in claim.learners):
        for one in store.bought(run, dataset=claim.dataset, learner=learner):
            found |= {(one.trial, point): what for point, what in _kept(one)}
    keys = zip(rows["trial"].astype(str), rows["point"].astype(str), strict=True)
    return rows.assign(**{BOUGHT: [found.get(key) for key in keys]})


def _kept(one: Bought) -> Iterator[tuple[str, Purchases]]:
    """The points of a trial and what is bought there."""
    price = np.array(one.sensors.price)
    for k, setting in enumerate(one.settings):
        stages = one.stages
        walked = (stages.reached[k], stages.sensors) if stages and k in stages.reached else ()
        yield canonical(setting), Purchases(price, one.share[k], *walked)


def bought_early(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> float:
    """The share of the price group bought in the first ``early`` of the trees: at the last point
    kept of these, and of all settings and repeats where it is least."""
    own = frame[(frame["learner"] == claim.labels[0]) & (frame["split"] == "test")]
    least = []
    for (text, *_), points in own.groupby(["params", *REPEAT], observed=True):
        trees = float(json.loads(str(text)).get("trees", "nan"))
        kept = [
            (json.loads(str(point)).get("trees", np.inf), what)
            for point, what in zip(points["point"], points[BOUGHT], strict=True)
            if what is not None
        ]
        early = [(at, what) for at, what in kept if at <= claim.early * trees]
        what = max(early, key=lambda found: found[0])[1] if early else None
        least.append(_share(claim, what))
    return float(np.min(least))


def bought_trend(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> float:
    """Spearman's correlation, over settings, of the trade-off with the share of the price group
    that is bought at the setting's best point on validation. NaN where no share differs from
    another, and for fewer than three trade-offs."""
    from scipy.stats import rankdata

    found = []
    for points in _repeats(claim, frame, metric):
        tradeoff = [params["tradeoff"] for params, _ in points if "tradeoff" in params]
        share = [_share(claim, what) for params, what in points if "tradeoff" in params]
        if len({*tradeoff}) < 3 or len({*share}) < 2:
            return float("nan")
        found.append(np.corrcoef(rankdata(tradeoff), rankdata(share))[0, 1])
    return round(float(np.mean(found)), 12)


def bought_first(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> float:
    """The share of the price group that the first of several stages reads."""
    return _by_stage(claim, frame, metric, lambda stage, _: np.mean(stage == 0))


def bought_last(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> float:
    """Of what is bought of the price group the share first read in the last half of the stages."""

    def late(stage: IntArray, stages: int) -> float:
        used = stage[stage >= 0]
        return float(np.mean(2 * used >= stages)) if len(used) else float("nan")

    return _by_stage(claim, frame, metric, late)


def stages(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> float:
    """How many stages are left."""
    best = _best(claim, frame, metric)
    return float(np.mean([np.nan if what is None else len(what.reached) for _, what in best]))


def passed(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> float:
    """The share of rows that the first stage lets pass, less that of the second learner at the same
    trade-off."""
    found = []
    for (params, what), points in zip(
        _best(claim, frame, metric), _repeats(claim, frame, metric, 1), strict=True
    ):
        same = [b for a, b in points if a.get("tradeoff") == params.get("tradeoff")]
        found.append(_passing(what) - _passing(same[0] if len(same) == 1 else None))
    return float(np.mean(found))


def _passing(what: Purchases | None) -> float:
    return float("nan") if what is None else float([*what.reached, 1.0][1])


def _share(claim: Claim, what: Purchases | None) -> float:
    """The share of the price group that is bought; NaN where that is not kept."""
    return float("nan") if what is None else float(np.mean(what.share[what.of(claim.prices)] > 0))


def _by_stage(
    claim: Claim,
    frame: pd.DataFrame,
    metric: Criterion,
    figure: Callable[[IntArray, int], Any],
) -> float:
    """The mean over repeats of a figure of the stages in which the price group is first read, at
    the best point on validation."""
    found = []
    for _, what in _best(claim, frame, metric):
        stage = None if what is None else what.stage()
        if what is None or stage is None:
            return float("nan")
        found.append(float(figure(stage[what.of(claim.prices)], len(what.reached))))
    return float(np.mean(found))


Kept = tuple[Mapping[str, Any], Purchases | None]
"""A setting and what is bought at its point; None where that is not kept."""


def _best(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> list[Kept]:
    """By repeat the first learner's best point on validation."""
    higher = metric.higher_is_better
    own = selection.operating_points(frame, metric.name, claim.cost)
    best = selection.best_points(own[own["learner"] == claim.labels[0]], higher)
    return [kept for _, one in best.groupby([*REPEAT]) for kept in _bought(frame, one)]


def _repeats(
    claim: Claim, frame: pd.DataFrame, metric: Criterion, place: int = 0
) -> Iterator[list[Kept]]:
    """By repeat the best point on validation of each setting of a learner in the list."""
    higher = metric.higher_is_better
    own = selection.operating_points(frame, metric.name, claim.cost)
    own = own[own["learner"] == claim.labels[place]]
    for _, repeat in own.groupby([*REPEAT]):
        best = (
            selection.best_points(part, higher)
            for _, part in repeat.groupby("params", observed=True)
        )
        yield [kept for one in best for kept in _bought(frame, one)]


def _bought(frame: pd.DataFrame, points: pd.DataFrame) -> Iterator[Kept]:
    """What is bought at points of a frame."""
    keys = ["learner", *REPEAT, "params", "point"]
    test = frame[frame["split"] == "test"]
    for row in points[keys].merge(test[[*keys, BOUGHT]], on=keys, how="left").itertuples():
        yield json.loads(str(row.params)), getattr(row, BOUGHT)
