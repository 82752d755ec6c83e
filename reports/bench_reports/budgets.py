"""Parts shared by verbs with a budget: advice where nothing is affordable, and commands."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core.cli import options
from bench_core.errors import UsageError, one_line, unknown
from bench_core.planning.invocation import given_from_python, python_call, shell_line, words
from bench_core.terminal.wording import cost

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.budgets import Budget
    from bench_core.results.records import RunInfo

_FIELDS = (
    *("suite", "data", "valid", "test", "label", "query", "split", "task", "metrics", "costs"),
    *("drop", "cv", "share", "unit", "reference"),
    *("profile", "data_dir", "plugins", "index_base", "seeds", "folds", "groups"),
)


def named_datasets(frame: pd.DataFrame, wanted: Sequence[str]) -> list[str]:
    """The data sets of a run that are asked for, or all. Raises UsageError for an unknown one."""
    known = list(dict.fromkeys(map(str, frame["dataset"])))
    for name in wanted:
        if name not in known:
            raise UsageError(unknown("data set of this run", name, known))
    return [name for name in known if not wanted or name in wanted]


def unaffordable(info: RunInfo, frame: pd.DataFrame, budget: Budget, store: Path) -> str:
    """The reason why no learner has a point within a budget on one data set, and what to do."""
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
    if given_from_python(request):
        return python_call({**request, "caps": sorted(caps)}, request.get("learners") or ())
    fields = (*asked(request, ""), "learners", "configs", "settings")
    given = {**request, **asked(request, "")}
    made = words({name: given.get(name) for name in fields} | {"caps": sorted(caps)})
    return shell_line(made + stored(store))


def stored(store: Path) -> list[str]:
    """The option that names a store, if it is not the usual one."""
    return ["--store", str(store)] if store != options.STORE else []


def asked(request: Mapping[str, Any], dataset: str) -> dict[str, Any]:
    """The fields of a request that say on what a run was, or on which of its data sets."""
    found = {name: request[name] for name in _FIELDS if request.get(name)}
    if found.get("suite") and dataset:
        found["data"] = dataset.partition("(")[0]  # options stand behind the name in results
    return found


def costs_in(frame: pd.DataFrame) -> str:
    """``, costs in ms``, or nothing where the prices of a data set have no unit of their own."""
    units = {*map(str, frame["unit"].dropna())} - {"", "cost", "cost units"}
    return f", costs in {one_line(', '.join(sorted(units)))}" if units else ""
