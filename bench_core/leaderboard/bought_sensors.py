"""Purchases of the chosen operating points: sensors, and the share of rows that buy each."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench_core._io.digests import canonical
from bench_core.terminal.wording import cost, count

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import TrialValues
    from bench_core.results.store import Store

EVERY, NEVER = 0.9995, 0.0

NAMED = 30
"""Number of unused sensors named on the terminal."""


class Purchase(NamedTuple):
    """A sensor, named by its features: its price, and the share of rows that buy it. If bills have
    an order, also the mean ``step`` of these rows (1 for the first purchase, 0 for free sensors),
    and the share of all rows that buy it in each step."""

    features: str
    price: float
    share: float
    step: float = math.nan
    steps: tuple[float, ...] = ()

    @property
    def short(self) -> str:
        """Features for a screen."""
        return first_names(self.features)


def first_names(features: str) -> str:
    """Return a sensor's first three features, and the number of others."""
    names = features.split(", ")
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + more


def purchases(points: Iterable[tuple[TrialValues, int, float]]) -> list[Purchase]:
    """Return the mean over ``kept_points``, sensors with the largest cost per row first."""
    total: dict[tuple[str, float], list[float]] = {}
    for one, k, part in points:
        steps = [] if one.steps is None else [*one.steps[k]]
        for name, price, *numbers in zip(*one.trial.sensors, one.bought[k], *steps, strict=True):
            pairs = zip_longest(total.get((name, price), ()), numbers, fillvalue=0.0)
            total[name, price] = [before + part * float(number) for before, number in pairs]
    # the last step in which some rows buy something
    last = max((k - 1 for own in total.values() for k in range(2, len(own)) if own[k]), default=0)
    found = []
    for (name, price), (share, *order) in total.items():
        own = Purchase(name, price, share)
        if order and share > NEVER:
            shares = (*order[1:], *[0.0] * last)[:last]
            own = own._replace(step=order[0] / share, steps=shares)
        found.append(own)
    return sorted(
        found, key=lambda own: (-own.share * own.price, -own.share, natural(own.features))
    )


def ordered(bought: Iterable[Purchase]) -> list[Purchase]:
    """Return purchases that have a step, sorted by step."""
    known = [one for one in bought if not math.isnan(one.step)]
    return sorted(known, key=lambda one: (one.step, -one.share, natural(one.features)))


def kept_points(
    store: Store, run: str, chosen: pd.DataFrame
) -> list[tuple[TrialValues, int, float]]:
    """Return the stored values of the chosen points, each point's position in them and its weight;
    empty if one is not stored."""
    first, found = chosen.iloc[0], []
    of, learner = str(first["dataset"]), str(first["learner"])
    kept = [*store.values(run, dataset=of, learner=learner, capped=True)]
    for _, row in chosen.iterrows():
        params, point = (json.loads(str(row[key])) for key in ("params", "point"))
        trial = {"params": params, "fold": row["fold"], "seed": row["seed"]}
        same = (v for v in kept if all(getattr(v.trial, key) == trial[key] for key in trial))
        one = next(same, None)
        if one is None or point not in one.settings:
            return []
        found.append((one, one.settings.index(point), 1 / len(chosen)))
    return found


def natural(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts numbers in names by value: 4, 6, 10, 11."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if k % 2 else (-1, part) for k, part in enumerate(parts)]


def shares(store: Store, run: str) -> pd.DataFrame:
    """Return a row for each stored point of each trial and each sensor: its price, the share of
    test rows that buy it, and ``bought``: for every row, for some rows or never. ``trial`` and
    ``point`` match the export."""
    import pandas as pd

    info = store.info(run)
    columns = ["dataset", "fold", "seed", "learner", "params", "trial", "point"]
    parts = [pd.DataFrame(columns=[*columns, "sensor", "price", "share"])]
    for name in dict.fromkeys(use.name for use in info.datasets):
        for one in store.values(info.run, dataset=name, capped=True):
            of = one.trial
            params = json.dumps(of.params, sort_keys=True)
            about = name, of.fold, of.seed, of.learner, params, of.short
            points = [(*about, canonical(setting)) for setting in one.settings]
            sensors = zip(*of.sensors, strict=True)
            every = pd.DataFrame(points, columns=columns).merge(
                pd.DataFrame(sensors, columns=["sensor", "price"]), how="cross"
            )
            parts.append(every.assign(share=one.bought.astype(np.float64).ravel().round(7)))
    made = pd.concat(parts[1:] or parts, ignore_index=True)
    share = made["share"].to_numpy(np.float64)
    words = ["never", "for every row"]
    bought = np.select([share == NEVER, share >= EVERY], words, "for some rows")
    made = made.assign(run=info.run, bought=bought)
    texts = ["run", "dataset", "learner", "params", "trial", "point", "sensor", "bought"]
    ordered = ["run", *columns, "sensor", "price", "share", "bought"]
    return made.astype(dict.fromkeys(texts, "category"))[ordered]


def sentences(bought: Sequence[Purchase]) -> Iterator[str]:
    """Yield sentences on the sensors bought for every row, for some rows and never. The last are
    named: they need not be measured at all."""
    if bought and all(one.share == NEVER for one in bought):
        yield "nothing is bought"
        return
    parts = {
        "for every row": [one for one in bought if one.share >= EVERY],
        "for some rows": [one for one in bought if NEVER < one.share < EVERY],
        "never": [one for one in bought if one.share == NEVER],
    }
    for when, some in parts.items():
        if some:
            paid = sum(one.price * one.share for one in some)
            unpaid = sum(one.price * (1 - one.share) for one in some)
            money = f"{cost(paid)} per row" if paid else "free"
            saved = f", {cost(unpaid)} saved" if unpaid else ""
            money = f"{cost(unpaid)} saved" if when == "never" else money + saved
            more = f", can be dropped: {named(some)}" if when == "never" else ""
            yield f"bought {when}: {count(len(some), 'sensor')} ({money}){more}"


def named(sensors: Sequence[Purchase]) -> str:
    """Return the features of the first sensors, and how to see the others."""
    own = [one.short for one in sensors[:NAMED]]
    names = ", ".join(f"({one})" if ", " in one else one for one in own)  # several of one sensor
    more = f", ... (all {len(sensors)}: bench features -o features.csv)"
    return names + (more if len(sensors) > NAMED else "")
