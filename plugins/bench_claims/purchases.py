"""What rows bought at the operating points of a run, and in which stage of a cascade.

A store keeps, of the points that a budget may choose, the share of test rows that buy each sensor
and the share that reach each stage of a cascade. Here a sensor is bought if any row buys it, and a
share is that of a price group's sensors, as in the figures of Greedy Miser and Cronus. A cascade's
stages are those that are left of it: the models served have no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench_claims.claims import Claim
from bench_core._io.digests import canonical

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.arrays import BoolArray, FloatArray, IntArray
    from bench_core.results.store import Store

BOUGHT = "bought"
"""The column that ``with_purchases`` adds."""

_ROUNDED = 1e-4  # shares that reach a stage are kept with four digits


class Purchases(NamedTuple):
    """What is bought at one operating point."""

    price: FloatArray  # (s,) of each sensor
    share: FloatArray  # (s,) of rows that buy it
    reached: Sequence[float] = (1.0,)  # (k,) share of rows that reach each stage
    sensors: Sequence[int] = ()  # (k,) number of sensors on the way to its end

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
        # a sensor is bought by as many rows as reach the stage that reads it first
        first = np.where(self.share > 0, (self.share[:, None] < reached).sum(axis=1), -1)
        counts = [int(((first >= 0) & (first <= k)).sum()) for k in range(len(reached))]
        return first if counts == list(self.sensors) else None


def with_purchases(frame: pd.DataFrame, store: Store, run: str, claim: Claim) -> pd.DataFrame:
    """The rows of a claim's learners and data, with what their kept points buy on test."""
    rows = frame[(frame["dataset"] == claim.dataset) & (frame["split"].isin(["valid", "test"]))]
    found: dict[tuple[str, str], Purchases] = {}
    for learner in dict.fromkeys(contender.learner for contender in claim.learners):
        for one in store.values(run, dataset=claim.dataset, learner=learner, capped=True):
            price, stages = np.array(one.trial.sensors.price), one.stages
            for k, setting in enumerate(one.settings):
                way = (stages.reached[k], stages.sensors) if stages and k in stages.reached else ()
                share = one.bought[k].astype(np.float64)
                found[one.trial.short, canonical(setting)] = Purchases(price, share, *way)
    keys = zip(rows["trial"].astype(str), rows["point"].astype(str), strict=True)
    return rows.assign(**{BOUGHT: [found.get(key) for key in keys]})
