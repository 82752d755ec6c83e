"""Parts shared by verbs with a budget: data sets, advice, and commands that go on from a run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core.cli import options
from bench_core.errors import UsageError, one_line, printable, unknown
from bench_core.planning.invocation import (
    given_from_python,
    python_call,
    shell_line,
    toml_literal,
    words,
)
from bench_core.planning.request import RunRequest, options_of
from bench_core.terminal.tables import Table, console, plain_lines, show, write_text, written
from bench_core.terminal.wording import cost

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.plugins import Registry
    from bench_core.results.budgets import Budget
    from bench_core.results.records import RunInfo


def named_datasets(frame: pd.DataFrame, wanted: Sequence[str]) -> list[str]:
    """The data sets of a run that are asked for, or all. Raises UsageError for an unknown one."""
    known = list(dict.fromkeys(map(str, frame["dataset"])))
    for name in wanted:
        if name not in known:
            raise UsageError(unknown("data set of this run", name, known))
    return [name for name in known if not wanted or name in wanted]


def costs_in(frame: pd.DataFrame) -> str:
    """``, costs in ms``, or nothing where the prices of a data set have no unit of their own."""
    from bench_core.costs.model import unit_named  # not at the top: numpy comes with it

    units = {unit_named(str(unit)) for unit in frame["unit"].dropna()} - {""}
    return f", costs in {one_line(', '.join(sorted(units)))}" if units else ""


def deliver_parts(parts: Iterable[Table | str], output: Path | None) -> None:
    """Tables and lines, to a text file if one is named, else to stdout."""
    if output is not None:
        lines = ([printable(p)] if isinstance(p, str) else plain_lines(p) for p in parts)
        write_text(output, "".join(f"{line}\n" for own in lines for line in own))
        written(output)
        return
    screen = console()
    for part in parts:
        if isinstance(part, Table):
            show(part, screen)
        else:
            screen.out(printable(part), highlight=False)


def unaffordable(info: RunInfo, frame: pd.DataFrame, budget: Budget, store: Path) -> str:
    """The reason why no learner has a point within a budget on one data set, and what to do."""
    from bench_core.leaderboard.assembly import least_cost, primary_metric
    from bench_core.results.operating_points import caps_of

    if budget.kind == "cap":
        # caps are enforced at prediction, so others cannot be read off
        caps = caps_of(frame)
        there = f"measured are {', '.join(map('{:.15g}'.format, caps))}" if caps else "none was"
        again = _command(info.request, store, caps=sorted({*caps, budget.amount}))
        return f"no cap of {budget.amount:.15g} was measured ({there}); without training: {again}"
    least = least_cost(frame, primary_metric(info, str(frame["dataset"].iloc[0])), budget.kind)
    if math.isnan(least):
        return "no learner has a result; 'bench log --failed' shows why"
    return f"nothing is affordable at {budget.words}; the cheapest point costs {cost(least)}"


def _command(request: Mapping[str, Any], store: Path, **changed: Any) -> str:
    """The command that repeats a run with some fields changed; the call of Python where data or
    costs came from there."""
    made = {**request, **changed}
    if given_from_python(request):
        return python_call(made, made.get("learners") or ())
    known = options_of(RunRequest)
    # how it was carried out (workers, limits) does not matter, where its data lie does
    kept = {n: v for n, v in made.items() if n == "data_dir" or known[n].decides}
    place = ["--store", str(store)] if store != options.STORE else []
    return shell_line(words(kept) + place)


def run_command(
    request: Mapping[str, Any],
    dataset: str,
    learner: str,
    params: Mapping[str, Any],
    registry: Registry,
    store: Path,
    cap: float = 0.0,
) -> str:
    """The command that trains one learner at one setting on one data set of an earlier run, and
    measures it under a ``cap`` if there is one; the call of Python where data or costs came from
    there."""
    from bench_core.parameters import parameters, plain
    from bench_core.planning.resolve_learners import default_grid
    from bench_core.planning.suites import NO_SUITE, find_suite

    suite = find_suite(request["suite"], registry) if request.get("suite") else NO_SUITE
    known = registry.learners.get(learner)
    tables = [suite.learners, *(profile.learners for profile in suite.profiles.values())]
    # left out, these would have the suite's values or be a grid
    named = {name for table in tables for name in table.get(learner, {})}
    named |= {*default_grid(known)} if known else set()
    own = [p for p in parameters(known) if not p.holds_learner] if known else []
    # what is as by default need not be written
    defaults = {p.name: plain(p.default, p) for p in own if p.name not in named}
    kept = {
        name: value
        for name, value in params.items()
        if name not in defaults or defaults[name] != value
    }
    if given_from_python(request):
        return python_call(request, {learner: kept})
    # the reference and baselines take part without being asked for
    others = {request.get("reference") or suite.reference, *suite.baselines, *registry.datasets}
    settings = [s for s in request.get("settings", ()) if _owner(s) in others - {learner}]
    settings += [f"{learner}.{name}={toml_literal(value)}" for name, value in kept.items()]
    changed = {"learners": learner, "caps": cap, "settings": settings, "configs": None}
    if request.get("suite"):
        changed["data"] = dataset.partition("(")[0]  # options stand behind the name in results
    return _command(request, store, **changed)


def _owner(setting: str) -> str:
    return setting.partition(".")[0].strip()
