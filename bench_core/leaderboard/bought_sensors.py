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
from bench_core.errors import shortened
from bench_core.planning.request import shell_line
from bench_core.results.budgets import limit_options
from bench_core.terminal.wording import cost, count

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.budgets import Limit
    from bench_core.results.records import TrialValues
    from bench_core.results.store import Store

EVERY, NEVER = 0.9995, 0.0

NAMED = 30
"""Number of unused sensors named on the terminal."""


class Purchase(NamedTuple):
    """A sensor, named by its features: its price, the mean of purchases if it differs by row, and
    the share of rows that buy it. If bills have
    an order, also the mean ``step`` of these rows (1 for the first purchase, 0 for free sensors),
    and the share of all rows that buy it in each step. ``nothing``: purchases that gave no value,
    and all purchases, in rows of all repeats; (0, 0) if all gave some."""

    features: str
    price: float
    share: float
    step: float = math.nan
    steps: tuple[float, ...] = ()
    nothing: tuple[float, float] = (0.0, 0.0)

    @property
    def lost(self) -> float:
        """Share of purchases that gave no value."""
        return self.nothing[0] / (self.nothing[1] or 1.0)

    @property
    def short(self) -> str:
        """Features for a screen."""
        return first_names(self.features)


def first_names(features: str) -> str:
    """Return a sensor's first three features, and the number of others."""
    return shortened(features.split(", "), 3)


def values_at(store: Store, run: str, chosen: pd.DataFrame) -> list[tuple[TrialValues, int]]:
    """Return the stored values of each chosen point of a learner, one of each repeat, and its place
    in them; empty if a point is not stored."""
    dataset, learner = (str(chosen[name].iloc[0]) for name in ("dataset", "learner"))
    stored: dict[tuple[int, int, str, str], tuple[TrialValues, int]] = {}
    for values in store.values(run, dataset=dataset, learner=learner, capped=True):
        of = values.trial
        for k, setting in enumerate(values.settings):
            key = of.fold, of.seed, canonical(of.params), canonical(setting)
            stored.setdefault(key, (values, k))
    points = []
    for _, row in chosen.iterrows():
        texts = (canonical(json.loads(str(row[name]))) for name in ("params", "point"))
        if (key := (row["fold"], row["seed"], *texts)) not in stored:
            return []
        points.append(stored[key])
    return points


def purchases(store: Store, run: str, chosen: pd.DataFrame) -> list[Purchase]:
    """Return the mean over the chosen points of a learner, one of each repeat; sensors with the
    largest cost per row first. Empty if a point is not stored."""
    total: dict[tuple[str, float], list[float]] = {}
    lost: dict[tuple[str, float], tuple[float, float]] = {}
    paid: dict[tuple[str, float], float] = {}
    weight = 1 / len(chosen)
    for values, k in values_at(store, run, chosen):
        figures = [values.bought[k], *([] if values.steps is None else values.steps[k])]
        for name, price, *numbers in zip(*values.trial.sensors, *figures, strict=True):
            pairs = zip_longest(total.get((name, price), ()), numbers, fillvalue=0.0)
            total[name, price] = [before + weight * float(number) for before, number in pairs]
        means = () if values.paid is None else values.paid[k].tolist()
        for name, price, mean in zip(*values.trial.sensors, means, strict=False):
            paid[name, price] = paid.get((name, price), 0.0) + weight * mean
        if values.nothing is not None:
            shares, rows = (values.nothing[k], values.bought[k]), float(values.rows.sum())
            for name, price, *parts in zip(*values.trial.sensors, *shares, strict=True):
                without, asked = lost.get((name, price), (0.0, 0.0))
                lost[name, price] = without + rows * parts[0], asked + rows * parts[1]
    # the last step in which some rows buy something
    last = max(
        (
            k - 1
            for row_prices in total.values()
            for k in range(2, len(row_prices))
            if row_prices[k]
        ),
        default=0,
    )
    bought = []
    for (name, price), (share, *order) in total.items():
        steps = (*order[1:], *[0.0] * last)[:last] if order and share > NEVER else ()
        step = order[0] / share if order and share > NEVER else math.nan
        nothing, mean = lost.get((name, price), (0.0, 0.0)), price
        if share > NEVER and (name, price) in paid:
            mean = paid[name, price] / share
        bought.append(Purchase(name, mean, share, step, steps, nothing))
    return sorted(bought, key=lambda b: (-b.share * b.price, -b.share, natural(b.features)))


def ordered(bought: Iterable[Purchase]) -> list[Purchase]:
    """Return purchases that have a step, sorted by step."""
    known = [one for one in bought if not math.isnan(one.step)]
    return sorted(known, key=lambda one: (one.step, -one.share, natural(one.features)))


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
    columns = ["run", "dataset", "fold", "seed", "learner", "params", "trial", "point"]
    parts = [pd.DataFrame(columns=[*columns, "sensor", "price", "share"])]
    for name in dict.fromkeys(use.name for use in info.datasets):
        for values in store.values(info.run, dataset=name, capped=True):
            of = values.trial
            params = json.dumps(of.params, sort_keys=True)
            about = info.run, name, of.fold, of.seed, of.learner, params, of.short
            points = [(*about, canonical(setting)) for setting in values.settings]
            sensors = pd.DataFrame(zip(*of.sensors, strict=True), columns=["sensor", "price"])
            every = pd.DataFrame(points, columns=columns).merge(sensors, how="cross")
            parts.append(every.assign(share=values.bought.astype(np.float64).ravel().round(7)))
    rows = pd.concat(parts[1:] or parts, ignore_index=True)
    share = rows["share"].to_numpy(np.float64)
    words = ["never", "for every row"]
    rows["bought"] = np.select([share == NEVER, share >= EVERY], words, "for some rows")
    texts = ["run", "dataset", "learner", "params", "trial", "point", "sensor", "bought"]
    return rows.astype(dict.fromkeys(texts, "category"))


def sentences(
    bought: Sequence[Purchase], limit: Limit | None = None, learner: str = ""
) -> Iterator[str]:
    """Yield sentences on the sensors bought for every row, for some rows and never. The last are
    named: they need not be measured at all. ``limit`` (if not the run's share of quality) and
    ``learner`` (if not the best) chose the point."""
    if bought and all(one.share == NEVER for one in bought):
        yield "nothing is bought"
        return
    parts = {
        "for every row": [sensor for sensor in bought if sensor.share >= EVERY],
        "for some rows": [sensor for sensor in bought if NEVER < sensor.share < EVERY],
        "never": [sensor for sensor in bought if sensor.share == NEVER],
    }
    for when, some in parts.items():
        paid = sum(sensor.price * sensor.share for sensor in some)
        unpaid = sum(sensor.price * (1 - sensor.share) for sensor in some)
        noun = "measurement" if any(", " in sensor.features for sensor in bought) else "feature"
        sensors, saved = count(len(some), noun), f"{cost(unpaid)} saved"
        if some and when == "never":
            names = named(some, limit, learner)
            yield f"bought never: {sensors} ({saved}), can be dropped: {names}"
        elif some:
            money = f"{cost(paid)} per row" if paid else "free"
            yield f"bought {when}: {sensors} ({money}{f', {saved}' if unpaid else ''})"


def named(sensors: Sequence[Purchase], limit: Limit | None = None, learner: str = "") -> str:
    """Return the features of the first sensors, and how to see the others of this point."""
    own = [one.short for one in sensors[:NAMED]]
    names = ", ".join(f"({one})" if ", " in one else one for one in own)  # several of one sensor
    if len(sensors) <= NAMED:
        return names
    asked = [] if limit is None else limit_options(limit)
    asked += ["--learner", learner] if learner else []
    command = shell_line(["bench", "features", *asked, "-o", "features.csv"])
    return f"{names}, ... (all {len(sensors)}: {command})"
