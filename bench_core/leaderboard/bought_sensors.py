"""Purchases of the chosen operating points: sensors, and the share of rows that buy each."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from bench_core._io.digests import canonical
from bench_core.errors import UsageError, unknown
from bench_core.leaderboard.assembly import offers, primary_metric
from bench_core.results import operating_points as selection
from bench_core.results.budgets import Budget, budget_of
from bench_core.results.operating_points import Criterion
from bench_core.terminal.wording import cost, count

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

EVERY, NEVER = 0.9995, 0.0


class Purchase(NamedTuple):
    """A sensor, by the features that need it: its price, and the share of rows that buy it."""

    features: str
    price: float
    share: float


def chosen_within(
    info: RunInfo,
    frame: pd.DataFrame,
    name: str,
    learner: str | None,
    budget: Budget | float,
    metric: Criterion | None = None,
) -> pd.DataFrame:
    """The choices, one for each repeat, that one learner (None: the best) has within the budget."""
    metric = metric or primary_metric(info, name)
    known = list(dict.fromkeys(map(str, frame["learner"])))
    if learner is not None and learner not in known:
        raise UsageError(unknown("learner of this run", learner, known))
    found = offers(frame, metric, budget) if learner is None else []
    best = learner or (found[0].learner if found else "")
    own, within = frame[frame["learner"] == best], budget_of(budget)
    return selection.points_within(own, metric.name, metric.higher_is_better, within)


def purchases(store: Store, run: str, chosen: pd.DataFrame) -> list[Purchase]:
    """Mean purchases of the chosen points and mixtures, the sensors that cost most per row first.

    Empty where a point is not kept: no budget chooses it in the primary metric.
    """
    first = chosen.iloc[0]
    of, learner = str(first["dataset"]), str(first["learner"])
    kept = [*store.values(run, dataset=of, learner=learner, capped=True)]
    total: dict[tuple[str, float], float] = {}
    for _, row in chosen.iterrows():
        for prefix, part in (("", 1 - row["part"]), ("cheaper_", row["part"])):
            params, point = (json.loads(str(row[prefix + key])) for key in ("params", "point"))
            trial = {"params": params, "fold": row["fold"], "seed": row["seed"]}
            same = (v for v in kept if all(getattr(v.trial, key) == trial[key] for key in trial))
            one = next(same, None)
            if one is None or point not in one.settings:
                return []
            what = zip(*one.trial.sensors, one.bought[one.settings.index(point)], strict=True)
            for name, price, share in what:
                bought = part * float(share) / len(chosen)
                total[name, price] = total.get((name, price), 0.0) + bought
    found = [Purchase(name, price, share) for (name, price), share in total.items()]
    return sorted(
        found, key=lambda one: (-one.share * one.price, -one.share, natural(one.features))
    )


def natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts numbers in names by their value: 4, 6, 10, 11."""
    parts = re.split(r"(\d+)", name)
    return [(int(part), "") if k % 2 else (-1, part) for k, part in enumerate(parts)]


def shares(store: Store, run: str) -> pd.DataFrame:
    """A row for each kept point of each trial and each sensor: its price, the share of test rows
    that buy it, and ``bought``: for every row, for some rows or never. ``trial`` and ``point`` are
    those of the export."""
    import numpy as np
    import pandas as pd

    info = store.info(run)
    columns = ["dataset", "fold", "seed", "learner", "params", "trial", "point"]
    parts = [pd.DataFrame(columns=[*columns, "sensor", "price", "share"])]
    for name in dict.fromkeys(str(use["name"]) for use in info.datasets):
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
    """Sentences on what is bought for every row, for some rows and never."""
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
            yield f"bought {when}: {count(len(some), 'sensor')} ({money})"
