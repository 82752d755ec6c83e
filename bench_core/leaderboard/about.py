"""What a board says of its data set, and of trials that have no place on it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench_core.leaderboard.board import Failure
from bench_core.splits import SPLITS
from bench_core.terminal.wording import count, settings

if TYPE_CHECKING:
    import pandas as pd


_SETTING = ["learner", "params", "fold", "seed"]


def has_any(frame: pd.DataFrame, flag: str) -> bool:
    """Whether the flag stands in any row."""
    return flag in frame and bool(frame[flag].fillna(False).astype(bool).any())


def one_split_for_all(uses: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """A note where seeds repeat the training, but on the same rows."""
    seeds = {use["seed"] for use in uses}
    folds = {use["fold"] for use in uses}
    rows = {(use["fold"], use.get("fingerprint")) for use in uses}
    if len(seeds) < 2 or len(rows) > len(folds):
        return ()
    words = "they differ by the randomness of learners alone"
    return (f"all {len(seeds)} seeds have the same rows: {words}",)


def failures(trials: pd.DataFrame) -> tuple[Failure, ...]:
    """Trials without a place in the ranking, those that ended alike together."""
    refused = (trials["status"] == "ok") & (trials["audit"] == "failed")
    lost = trials[(trials["status"] != "ok") | refused].drop_duplicates(
        ["learner", "params", "fold", "seed"]
    )
    if lost.empty:
        return ()
    lost = lost.assign(
        status=lost["status"].astype(object).where(lost["status"] != "ok", "audit failed"),
        error=lost["error"].astype(object).fillna("").astype(str),
    )
    return tuple(
        Failure(
            learner=str(learner),
            status=str(status),
            error=str(error),
            params=_settings_of(part, varied_parameters(trials[trials["learner"] == learner])),
            trials=len(part),
        )
        for (learner, status, error), part in lost.groupby(
            ["learner", "status", "error"], observed=True
        )
    )


def _settings_of(rows: pd.DataFrame, varied: frozenset[str]) -> str:
    """What the first of these trials has other than the learner's others, and how many more."""
    params = rows["params"].astype(object).fillna("{}").astype(str)
    known = json.loads(params.iloc[0] or "{}")
    first = settings({k: v for k, v in known.items() if k in varied}) or "its only setting"
    others = params.nunique() - 1
    return f"{first} and {count(others, 'other setting')}" if others else first


def facts(use: Mapping[str, Any]) -> tuple[str, ...]:
    """The data set in a few words."""
    facts = [str(use.get("task", ""))]
    for key, noun in (("queries", "queries"), ("rows", "rows")):
        sizes = use.get(key) or {}
        if any(sizes.values()):
            facts.append(f"{'/'.join(str(sizes.get(split, 0)) for split in SPLITS)} {noun}")
    if use.get("features"):
        facts.append(f"{use['features']} features")
    if use.get("price_of_everything"):
        facts.append(f"all of them cost {use['price_of_everything']:.6g}")
    return tuple(fact for fact in facts if fact)


def values_of(frame: pd.DataFrame, column: str) -> str:
    """A column's values, of which there should be one."""
    return ", ".join(sorted({*map(str, frame[column].dropna().unique())} - {""}))


def varied_parameters(own: pd.DataFrame) -> frozenset[str]:
    """The parameters in which the trials of one learner differ."""
    import pandas as pd

    seen = [json.loads(params or "{}") for params in map(str, pd.unique(own["params"]))]
    names = {name for params in seen for name in params}
    return frozenset(n for n in names if len({json.dumps(p.get(n)) for p in seen}) > 1)
