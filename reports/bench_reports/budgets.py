"""What verbs with budgets share: reading one, and what to do where nothing is within it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core.cli import options
from bench_core.errors import UsageError
from bench_core.terminal.wording import cost

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.budgets import Budget
    from bench_core.results.records import RunInfo

_FIELDS = (
    *("suite", "data", "valid", "test", "label", "query", "split", "task", "metrics", "costs"),
    *("profile", "data_dir", "plugins", "index_base", "seeds", "folds"),
)
_FLAGS = {"metrics": "metric", "plugins": "plugin"}


def one_budget(text: str, kind: str) -> Budget:
    """The budget of these options, where several make no sense."""
    found = options.budgets(text, kind)
    if len(found) > 1:
        raise UsageError(f"--budget {text}: write one budget here, as {found[0]}")
    return found[0]


def unaffordable(info: RunInfo, frame: pd.DataFrame, budget: Budget, store: Path) -> str:
    """Why no learner on one data set has a point within a budget, and what to do."""
    from bench_core.leaderboard.assembly import least_cost, primary_metric
    from bench_core.results.operating_points import caps_of

    if budget.kind == "cap":
        caps = caps_of(frame)
        there = f"measured are {', '.join(map('{:.15g}'.format, caps))}" if caps else "none was"
        command = measuring(info.request, {*caps, budget.amount}, store)
        return f"no cap of {budget.amount:.15g} was measured ({there}); without training: {command}"
    least = least_cost(frame, primary_metric(info, str(frame["dataset"].iloc[0])), budget.kind)
    if math.isnan(least):
        return "no learner has a result; 'bench log --failed' shows why"
    return f"nothing is affordable at {budget.words}; the cheapest point costs {cost(least)}"


def measuring(request: Mapping[str, Any], caps: Iterable[float], store: Path) -> str:
    """The command that repeats a run and measures under these caps too."""
    words = asked_words(request, "")
    for field in ("learners", "configs"):
        if value := request.get(field):
            words += [f"--{field}", ",".join(value) if isinstance(value, list) else str(value)]
    for setting in request.get("settings", ()):
        words += ["--set", setting]
    words += ["--caps", ",".join(f"{cap:.15g}" for cap in sorted(caps))]
    return shlex.join(words + (["--store", str(store)] if store != options.STORE else []))


def asked_words(request: Mapping[str, Any], dataset: str) -> list[str]:
    """The words of ``bench run`` that say on what a run was, or on which of its data sets."""
    words = ["bench", "run"]
    base = str(request.get("index_base", 1))
    asked = {**request, "index_base": "" if base == "1" else base}
    if asked.get("suite") and dataset:
        asked["data"] = dataset.partition("(")[0]  # options stand behind the name in results
    for field in _FIELDS:
        if value := asked.get(field):
            text = value if isinstance(value, str) else ",".join(map(str, value))
            words += [f"--{_FLAGS.get(field, field).replace('_', '-')}", text]
    return words
