"""``bench best --budget 60``: the best learner and setting within a budget."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.errors import printable
from bench_core.planning.invocation import (
    given_from_python,
    python_call,
    shell_line,
    toml_literal,
    words,
)
from bench_core.terminal.tables import (
    Table,
    check_text,
    console,
    plain_lines,
    show,
    write_text,
    written,
)
from bench_core.terminal.wording import cost, notices, quality
from bench_reports.board_tables import half, starred
from bench_reports.budgets import asked, costs_in, named_datasets, stored, unaffordable

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.leaderboard.assembly import Offer
    from bench_core.leaderboard.board import Standing
    from bench_core.plugins import Registry
    from bench_core.results.budgets import Budget
    from bench_core.results.operating_points import Criterion
    from bench_core.results.records import RunInfo

NOTHING_AFFORDABLE = 1
COMMANDS_SHOWN = 3


@click.command(
    "best",
    short_help="Show which learner and setting is best within a budget.",
    epilog="""\b
Examples:
  bench best --budget 60
  bench best --budget 10,20,40               the best at each
  bench best --budget 60 --budget-kind p95   95% of rows cost at most 60
  bench best --budget 60 --budget-kind cap   no row costs more: bench run --caps 60
  bench best --budget 1.5 --data thyroid --metric balanced_accuracy
  bench best 3 --budget 60 -o best.txt

\b
The budget is a cost per row in the unit of the data set's prices. What is affordable and what is
best is decided on validation; the test columns say what to expect. A cap holds for every row: it
was enforced at prediction, and is there if the run measured it. Exit status 1 if nothing is
affordable on any data set.""",
)
@options.run_argument
@options.budget_options(required=True)
@options.names_option("-d", "--data", "datasets", help="Data sets of the run to look at.")
@click.option("-m", "--metric", metavar="NAME", help="Judge by this metric of the run.")
@options.output_option
@options.store_option
@options.plugins_option
@options.debug_option
def command(
    run: str,
    budgets: Sequence[Budget],
    datasets: tuple[str, ...],
    metric: str | None,
    output: Path | None,
    store: Path,
    plugins: Sequence[str],
) -> int:
    """Show which learner and setting of RUN is best within a budget, and how to train it."""
    from bench_core.leaderboard.reports import finished

    check_text(output)
    info, frame = finished(store, run)
    answers = []
    for name in named_datasets(frame, datasets):
        own = frame[frame["dataset"] == name]
        if len(budgets) == 1:
            answers.append(answer(info, own, name, metric, budgets[0], plugins, store))
        else:
            answers.append(answer_each(info, own, name, metric, budgets, store))
    if output is not None:
        parts = [
            [*(plain_lines(table) if table else ()), *map(printable, advice)]
            for table, advice in answers
        ]
        write_text(output, "\n".join(chain.from_iterable(parts)) + "\n")
        written(output)
    else:
        screen = console()
        for table, advice in answers:
            if table:
                show(table, screen)
            screen.out("\n".join(map(printable, advice)), highlight=False)
    return 0 if any(table for table, _ in answers) else NOTHING_AFFORDABLE


def answer(
    info: RunInfo,
    frame: pd.DataFrame,
    name: str,
    metric: str | None,
    budget: Budget,
    plugins: Sequence[str],
    store: Path,
) -> tuple[Table | None, list[str]]:
    """For one data set: who can be afforded, and the winner with the command that trains it."""
    from bench_core.leaderboard.assembly import offers, primary_metric, uses_of
    from bench_core.leaderboard.bought_sensors import chosen_within, purchases, sentences
    from bench_core.results.store import Store

    judge = primary_metric(info, name, metric or "")
    found = offers(frame, judge, budget)
    after = notices(replace(info, datasets=tuple(uses_of(info, name))))
    (sure,) = certain(info, frame, name, judge, [budget], store)
    if not found:
        return None, [*after, f"{name}: {unaffordable(info, frame, budget, store)}", ""]
    top = found[0]
    after += [f"{top.learner}: best at {setting.short}" for setting in top.pick.settings]
    chosen = chosen_within(info, frame, name, top.learner, budget, judge)
    after += sentences(purchases(Store(store), info.run, chosen))
    registry = options.registry(plugins)
    cap = budget.amount if budget.kind == "cap" else 0.0
    commands = dict.fromkeys(  # of each choice that some repeat made, the most frequent first
        run_command(info.request, name, top.learner, setting.params, registry, store, cap)
        for setting in top.pick.settings
    )
    after += ["train it with:", *islice(commands, COMMANDS_SHOWN)]
    after = [*explained(sure, primary_metric(info, name).name), *after]
    return ranking(found, name, judge, budget, sure, costs_in(frame)), [*after, ""]


def answer_each(
    info: RunInfo,
    frame: pd.DataFrame,
    name: str,
    metric: str | None,
    budgets: Sequence[Budget],
    store: Path,
) -> tuple[Table | None, list[str]]:
    """For one data set the winner at each budget, and how to see more of it."""
    from bench_core.leaderboard.assembly import offers, primary_metric, uses_of

    judge = primary_metric(info, name, metric or "")
    rows, after = [], notices(replace(info, datasets=tuple(uses_of(info, name))))
    each = certain(info, frame, name, judge, budgets, store)
    for budget, sure in zip(budgets, each, strict=True):
        found = offers(frame, judge, budget)
        if found:
            top = found[0]
            one = sure.get(top.learner)
            numbers = starred(quality(top.pick.quality), one), half(one), cost(top.pick.cost)
            rows.append([str(budget), top.learner, *numbers, top.pick.settings[0].short])
        else:
            after.append(f"{name}: {unaffordable(info, frame, budget, store)}")
    if not rows:
        return None, [*after, ""]
    titles = ("budget", "learner", judge.name, "±", "cost", "at")
    title = f"{name}: best {judge.name} at each budget{costs_in(frame)}"
    table = Table(titles, rows, "learner", titles[2:5], ("at",), title=title)
    after = [*explained(each[0], primary_metric(info, name).name), *after]
    after.append(
        f"with the other learners, and how to train it: bench best --budget {rows[0][0]!r}"
    )
    return table, [*after, ""]


def certain(
    info: RunInfo,
    frame: pd.DataFrame,
    name: str,
    judge: Criterion,
    budgets: Sequence[Budget],
    store: Path,
) -> list[dict[str, Standing]]:
    """For each budget how sure the learners' qualities are, by the bootstrap of the board; nothing
    of a metric that no values per row are stored of."""
    from bench_core.leaderboard.assembly import primary_metric
    from bench_core.leaderboard.standings import standings
    from bench_core.results.store import Store

    if judge.name != primary_metric(info, name).name:
        return [{} for _ in budgets]
    found = standings(info, Store(store), name, frame, budgets)
    return [{one.learner: one for one in at.rows} for at in found]


def explained(sure: Mapping[str, Standing], primary: str) -> Iterator[str]:
    """The meaning of ± and *, and the rule by which points are taken."""
    if any(not math.isnan(one.interval.low) for one in sure.values()):
        yield "±: half the 95% interval; *: statistically tied for best"
        yield "each learner at its single best point within the budget, chosen on validation"
    else:
        yield f"±: not known, as values per row are kept of {primary} by finished trials alone"


def ranking(
    found: Sequence[Offer],
    name: str,
    metric: Criterion,
    budget: Budget,
    sure: Mapping[str, Standing],
    unit: str = "",
) -> Table:
    """The affordable learners, the best on validation first."""
    numbers = (metric.name, "±", "cost", f"validation {metric.name}", "validation cost")
    rows = [
        [
            offer.learner,
            starred(quality(offer.pick.quality), sure.get(offer.learner)),
            half(sure.get(offer.learner)),
            cost(offer.pick.cost),
            quality(offer.valid_quality),
            cost(offer.valid_cost),
            offer.audit,
            f"{offer.repeats} of {offer.of}",
        ]
        for offer in found
    ]
    title = f"{name}: best {metric.name} within {budget.words}{unit}"
    styles = ["bold green", *[""] * (len(rows) - 1)]
    titles = ("learner", *numbers, "audit", "repeats")
    return Table(titles, rows, "learner", numbers, title=title, row_styles=styles)


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
    given, defaults = _given(request, learner, registry), _defaults(learner, registry)
    swept = _swept(learner, registry)  # left out, they would be a grid
    kept = {
        name: value
        for name, value in params.items()
        if name in {*given, *swept} or name not in defaults or defaults[name] != value
    }
    if given_from_python(request):
        return python_call(request, {learner: kept})
    there = {*registry.datasets, *_joining(request, registry)} - {learner}
    settings = [s for s in request.get("settings", ()) if _first(s) in there]
    settings += [f"{learner}.{name}={toml_literal(value)}" for name, value in kept.items()]
    fields = {**asked(request, dataset), "learners": learner, "caps": cap, "settings": settings}
    return shell_line(words(fields) + stored(store))


def _first(setting: str) -> str:
    return setting.partition(".")[0].strip()


def _joining(request: Mapping[str, Any], registry: Registry) -> set[str]:
    """The learners that take part without being asked for: reference and baselines."""
    from bench_core.planning.suites import find_suite

    own = request.get("reference", "")
    if not request.get("suite"):
        return {own}
    suite = find_suite(request["suite"], registry)
    return {own or suite.reference, *suite.baselines}


def _given(request: Mapping[str, Any], learner: str, registry: Registry) -> set[str]:
    """The parameters that the suite sets, and which a command must therefore set again."""
    from bench_core.planning.suites import find_suite

    if not request.get("suite"):
        return set()
    suite = find_suite(request["suite"], registry)
    tables = [suite.learners, *(profile.learners for profile in suite.profiles.values())]
    return {name for table in tables for name in table.get(learner, {})}


def _swept(learner: str, registry: Registry) -> set[str]:
    """The parameters that have a grid where nobody sets them."""
    from bench_core.planning.resolve_learners import default_grid

    known = registry.learners.get(learner)
    return set(default_grid(known)) if known else set()


def _defaults(learner: str, registry: Registry) -> Mapping[str, Any]:
    """Parameters that may be left out; none of a learner that is not installed here."""
    from bench_core.parameters import as_json

    try:
        return as_json(registry.learners[learner]())
    except (KeyError, TypeError, ValueError):  # unknown, or something has no default
        return {}
