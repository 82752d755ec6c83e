"""``bench best --keep 99%``: the best learner and setting, within a budget or at a quality."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.errors import one_line, printable, require
from bench_core.planning.invocation import (
    given_from_python,
    python_call,
    shell_line,
    toml_literal,
    words,
)
from bench_core.planning.request import RunRequest, options_of
from bench_core.statistics import CONFIDENCE
from bench_core.terminal.tables import (
    Table,
    check_text,
    console,
    plain_lines,
    show,
    write_text,
    written,
)
from bench_core.terminal.wording import MIXED, cost, notices, quality, times

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.leaderboard.assembly import Offer
    from bench_core.leaderboard.board import Standing
    from bench_core.plugins import Registry
    from bench_core.results.budgets import Budget, Limit, Target
    from bench_core.results.operating_points import Criterion
    from bench_core.results.records import RunInfo

NO_RESULT = 1  # exit status
COMMANDS_SHOWN = 3
SINGLE = "each learner is at a single point, where a board may mix two"


@click.command(
    "best",
    short_help="Show the best learner and setting.",
    epilog="""\b
Examples:
  bench best                                 the cheapest with 99% of the reference's quality
  bench best --keep 95%
  bench best --quality 0.85                  the cheapest with this quality
  bench best --budget 60
  bench best --budget inf                    the best at any cost
  bench best --budget 10,20,40               the best at each
  bench best --budget 60 --budget-kind p95   95% of rows cost at most 60
  bench best --budget 60 --budget-kind cap   no row costs more: bench run --caps 60
  bench best --budget 1.5 --data thyroid --metric balanced_accuracy
  bench best 3 --budget 60 -o best.txt

\b
Points are chosen on validation; test figures show what to expect. With --keep the learner is chosen
as on the board: significant savings come first. A budget is a cost per row in the unit of the data
set's prices. A cap holds for every row: it is enforced at prediction, and must have been measured
by the run. The exit status is 1 if no data set has a result.""",
)
@options.run_argument
@options.limit_options()
@options.names_option("-d", "--data", "datasets", help="Data sets of the run.  [default: all]")
@click.option("-m", "--metric", metavar="NAME", help="Metric of the run to choose by.")
@options.output_option
@options.store_option
@options.plugins_option
@options.debug_option
def command(
    run: str,
    limits: Sequence[Limit],
    datasets: tuple[str, ...],
    metric: str | None,
    output: Path | None,
    store: Path,
    plugins: Sequence[str],
) -> int:
    """Show the best learner and setting of RUN, and the command that trains it.

    With a budget it is the best within it; with a quality the cheapest that reaches it. The default
    is the learner of the board's conclusion, at the least cost that keeps 99% of the reference's
    quality; if none does, the best at any cost.
    """
    from bench_core.leaderboard.assembly import primary_metric, usual_limit
    from bench_core.leaderboard.reports import finished
    from bench_core.results.budgets import Budget, Target

    check_text(output)
    info, frame = finished(store, run)
    parts: list[Table | str] = []
    for name in named_datasets(frame, datasets):
        own = frame[frame["dataset"] == name]
        within = [*limits]
        if not within:
            judge = primary_metric(info, name, metric or "")
            usual, why = usual_limit(own, judge, info.reference)
            within, parts = [usual], [*parts, *([f"{name}: {why}"] if why else [])]
        of_run = info, own, name, metric or ""
        if isinstance(within[0], Target):
            parts += cheapest(*of_run, within[0], plugins, store)
        else:
            budgets = [one for one in within if isinstance(one, Budget)]
            parts += answer(*of_run, budgets, plugins, store)
    deliver_parts(parts, output)
    return 0 if any(isinstance(part, Table) for part in parts) else NO_RESULT


def answer(
    info: RunInfo,
    frame: pd.DataFrame,
    name: str,
    metric: str,
    budgets: Sequence[Budget],
    plugins: Sequence[str],
    store: Path,
) -> Iterator[Table | str]:
    """Yield, for one data set, the learners within a budget, and commands that train the winner;
    for several budgets the winner at each."""
    from bench_core.leaderboard.assembly import offers, primary_metric, uses_of
    from bench_core.leaderboard.board import Standing
    from bench_core.leaderboard.certainty import standings
    from bench_core.results.budgets import limit_words
    from bench_core.results.store import Store

    judge, primary = primary_metric(info, name, metric), primary_metric(info, name).name
    # by budget and learner
    each: list[dict[str, Standing]] = [defaultdict(Standing) for _ in budgets]
    why = f"values per row are stored only for {primary}, by finished trials"
    if judge.name == primary:  # values per row are stored of no other metric
        found = standings(info, Store(store), name, frame, budgets, mixes=False)
        for known, at in zip(each, found, strict=True):
            known |= {one.learner: one for one in at.rows}
        why = found[0].note or why
    # by budget, the best on validation first, at points that can be served
    offered = {budget: offers(frame, judge, budget, mixes=False) for budget in budgets}
    if any(offered.values()):
        title = f"best {judge.name} {limit_words(budgets[0], judge.name, info.reference)}"
        table = ranking(offered[budgets[0]], judge, each[0])
        if len(budgets) > 1:
            title, table = f"best {judge.name} at each budget", winners(offered, judge, each)
        yield replace(table, title=f"{name}: {title}{costs_in(frame)}")
        yield from explained(each[0], why, budgets[0])
        if any(one.over for found in each for one in found.values()):
            yield f"!: above the budget on test by more than its {CONFIDENCE} interval"
    yield from notices(replace(info, datasets=tuple(uses_of(info, name))))
    for budget, own in offered.items():
        if not own:
            yield f"{name}: {no_result(info, frame, name, budget, store)}"
    yield from unmeasured(info, frame, budgets, store)
    if offered[budgets[0]] and len(budgets) == 1:
        top = offered[budgets[0]][0]
        free = [(one.learner, one.valid_cost) for one in offers(frame, judge, math.inf)]
        if free == [(one.learner, one.valid_cost) for one in offered[budgets[0]]]:
            most = cost(max(paid for _, paid in free))
            yield f"this budget limits no learner: none costs more than {most} on validation"
        yield from model_of(info, frame, name, top, judge, budgets[0], plugins, store)
    elif any(offered.values()):
        first = next(str(budget) for budget, own in offered.items() if own)
        yield f"with the other learners, and how to train it: bench best --budget {first!r}"
    yield ""


def cheapest(
    info: RunInfo,
    frame: pd.DataFrame,
    name: str,
    metric: str,
    target: Target,
    plugins: Sequence[str],
    store: Path,
) -> Iterator[Table | str]:
    """Yield, for one data set, the learners that reach a target, best first, and commands that
    train the best."""
    from bench_core.leaderboard.assembly import primary_metric, uses_of
    from bench_core.leaderboard.board import Saved
    from bench_core.leaderboard.certainty import answers, lost_below
    from bench_core.protocols import GIVEN
    from bench_core.results.budgets import KEEP
    from bench_core.results.operating_points import marked
    from bench_core.results.store import Store
    from bench_reports.terminal import lost_words, saving_cells

    judge = primary_metric(info, name, metric)
    found, sure = answers(info, Store(store), name, frame, target, judge)
    words = target.words(judge.name, info.reference)
    yield from notices(replace(info, datasets=tuple(uses_of(info, name))))
    if not found:
        yield f"{name}: {no_result(info, frame, name, target, store, metric=judge)}"
        return
    numbers = ["cost", judge.name, "validation cost", f"validation {judge.name}"]
    rows = [
        [
            *(one.learner, cost(one.pick.cost), quality(one.pick.quality)),
            *(cost(one.valid_cost), quality(one.valid_quality)),
            *(one.audit, f"{one.repeats} of {one.of}"),
        ]
        for one in found
    ]
    if target.kind == KEEP:
        numbers[1:1] = "saving", f"{CONFIDENCE} interval"
        for row, one in zip(rows, found, strict=True):
            row[2:2] = saving_cells(one.saving, sure.get(one.learner, Saved()))
    styles = ["bold green", *[""] * (len(rows) - 1)]
    titles = ("learner", *numbers, "audit", "repeats")
    title = f"{name}: least cost with {words}{costs_in(frame)}"
    yield Table(titles, rows, "learner", tuple(numbers), row_styles=styles, title=title)
    if target.kind == KEEP:
        today = marked(frame[frame["learner"] == info.reference], GIVEN).any()
        both = f"with all its trees divided by this learner's at {words}"
        both = both if today else f"divided by this learner's, both at {words}"
        yield f"saving: {info.reference}'s cost {both}"
    if any(one.tier for one in sure.values()):
        yield "*: not significantly worse than the largest saving"
    if any(one.lost for one in sure.values()):
        yield f"!: {lost_words(lost_below(target.amount), info.reference, judge.name)}"
    rule = "significant savings first" if sure else "cheapest first"
    how = MIXED if target.kind == KEEP else SINGLE
    yield f"{rule}; points are chosen on validation: {how}"
    top = sure.get(found[0].learner, Saved())
    if top.interval.low <= 1 < found[0].saving:
        yield f"this saving {'does not count' if top.lost else 'is not significant'}"
    yield from model_of(info, frame, name, found[0], judge, target, plugins, store)
    yield ""


def reached(top: Offer, metric: Criterion) -> str:
    """Return a sentence on the chosen learner's results on validation and test."""
    valid, test = quality(top.valid_quality), quality(top.pick.quality)
    figures = f"{metric.name} {valid} on validation, {test} on test"
    paid = top.pick.cost
    capped = paid > 0 and any("cap" in setting.point for setting in top.pick.settings)
    most, bound = ("at most ", "; the exported model may pay less") if capped else ("", "")
    return f"{top.learner}: {figures}, at a cost of {most}{cost(paid)} per row{bound}"


def explained(sure: Mapping[str, Standing], why: str, budget: Budget) -> Iterator[str]:
    """Yield the meaning of ± and *, or ``why`` they are unknown, and the rule that chooses
    points."""
    rule = f"sorted and chosen by validation{f': {SINGLE}' if budget.kind == 'mean' else ''}"
    if any(not math.isnan(one.interval.low) for one in sure.values()):
        yield f"±: half the {CONFIDENCE} interval; *: not significantly worse than the best"
        yield rule
    else:
        yield f"±: not known: {why}"


def model_of(
    info: RunInfo,
    frame: pd.DataFrame,
    name: str,
    top: Offer,
    metric: Criterion,
    limit: Limit,
    plugins: Sequence[str],
    store: Path,
) -> Iterator[str]:
    """Yield the single point of the winner that is served: its results, setting and purchases, and
    the commands that train it."""
    from bench_core.leaderboard.assembly import served
    from bench_core.leaderboard.bought_sensors import (
        chosen_within,
        kept_points,
        purchases,
        sentences,
    )
    from bench_core.protocols import FEWER, GIVEN
    from bench_core.results.budgets import CONSTANT
    from bench_core.results.operating_points import marked
    from bench_core.results.store import Store
    from bench_reports.terminal import FEWER_TREES

    one = served(frame, metric, limit, info.reference, top.learner) or top
    yield reached(one, metric)
    if top.pick.part:  # of the least cost that keeps a quality
        at = f"{metric.name} {quality(top.pick.quality)} at {cost(top.pick.cost)}"
        saved = f", {times(one.saving)} cheaper than {info.reference}'s" * (one.saving > 1)
        yield f"it is a single point{saved}; the table mixes two points at random: {at} on test"
    chosen = chosen_within(info, frame, name, top.learner, limit, metric)
    bought = purchases(kept_points(Store(store), info.run, chosen))
    yield from (f"{top.learner}: best at {setting.short}" for setting in one.pick.settings)
    yield from sentences(bought)
    own = frame[(frame["dataset"] == name) & (frame["learner"] == top.learner)]
    if marked(own, FEWER).any():
        yield f"{top.learner}: {FEWER_TREES}"
    registry = options.registry(plugins)
    # results under a cap need a run that measures it
    cap = limit.amount if limit.kind == "cap" else 0.0
    commands = dict.fromkeys(  # of the choices of all repeats, most frequent first
        run_command(info.request, name, top.learner, setting.params, registry, store, cap)
        for setting in one.pick.settings
        if CONSTANT not in setting.point  # which needs no training
    )
    if commands:
        yield "judge it again with:" if marked(own, GIVEN).any() else "train it with:"
    yield from islice(commands, COMMANDS_SHOWN)


def ranking(found: Sequence[Offer], metric: Criterion, sure: Mapping[str, Standing]) -> Table:
    """Return the learners within a budget, best on validation first."""
    from bench_reports.columns import half
    from bench_reports.terminal import starred

    numbers = (metric.name, "±", "cost", f"validation {metric.name}", "validation cost")
    rows = [
        [
            offer.learner,
            starred(quality(offer.pick.quality), sure[offer.learner]),
            half(sure[offer.learner]),
            _paid(offer, sure),
            quality(offer.valid_quality),
            cost(offer.valid_cost),
            offer.audit,
            f"{offer.repeats} of {offer.of}",
        ]
        for offer in found
    ]
    # highlight the winner on a terminal
    styles = ["bold green", *[""] * (len(rows) - 1)]
    titles = ("learner", *numbers, "audit", "repeats")
    return Table(titles, rows, "learner", numbers, row_styles=styles)


def _paid(offer: Offer, sure: Mapping[str, Standing]) -> str:
    """Return the test cost, with ! if it exceeds the budget by more than chance."""
    return cost(offer.pick.cost) + ("!" if sure[offer.learner].over else "")


def winners(
    offered: Mapping[Budget, Sequence[Offer]],
    metric: Criterion,
    each: Sequence[Mapping[str, Standing]],
) -> Table:
    """Return the best learner at each budget that has one."""
    from bench_reports.columns import half
    from bench_reports.terminal import starred

    rows = []
    for (budget, found), sure in zip(offered.items(), each, strict=True):
        if found:
            top, one = found[0], sure[found[0].learner]
            numbers = starred(quality(top.pick.quality), one), half(one), _paid(top, sure)
            rows.append([str(budget), top.learner, *numbers, top.pick.settings[0].short])
    titles = ("budget", "learner", metric.name, "±", "cost", "at")
    return Table(titles, rows, "learner", titles[2:5], ("at",))


def named_datasets(frame: pd.DataFrame, wanted: Sequence[str]) -> list[str]:
    """Return the requested data sets of a run, or all. Raises UsageError for an unknown one."""
    known = list(dict.fromkeys(map(str, frame["dataset"])))
    require("data set of this run", wanted, known)
    return [name for name in known if not wanted or name in wanted]


def costs_in(frame: pd.DataFrame) -> str:
    """Return ``, costs in ms``, or "" if the prices of a data set have no unit."""
    from bench_core.costs.model import unit_named  # not at the top: numpy comes with it

    units = {unit_named(str(unit)) for unit in frame["unit"].dropna()} - {""}
    return f", costs in {one_line(', '.join(sorted(units)))}" if units else ""


def deliver_parts(parts: Iterable[Table | str], output: Path | None) -> None:
    """Write tables and lines to a text file if one is named, else to stdout."""
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


def no_result(
    info: RunInfo,
    frame: pd.DataFrame,
    dataset: str,
    limit: Limit,
    store: Path,
    learner: str = "",
    metric: Criterion | None = None,
) -> str:
    """Return the reason why no learner has a point within a limit on one data set, and a remedy."""
    from bench_core.leaderboard.assembly import primary_metric
    from bench_core.results.budgets import Target
    from bench_core.results.operating_points import operating_points, why_not_reached

    if isinstance(limit, Target):
        judge = metric or primary_metric(info, dataset)
        points = operating_points(frame, judge.name)
        if len(points):
            return why_not_reached(points, judge, limit, info.reference, learner)
    # every path begins with the constant, which is free
    return "no learner has a result; 'bench log --failed' shows why"


def unmeasured(
    info: RunInfo, frame: pd.DataFrame, budgets: Iterable[Budget], store: Path
) -> Iterator[str]:
    """Yield what takes part under caps that the run did not measure, and how to measure them."""
    from bench_core.results.operating_points import caps_of

    caps = caps_of(frame)
    lacking = [one.amount for one in budgets if one.kind == "cap" and one.amount not in caps]
    if lacking:
        again = _command(info.request, store, caps=sorted({*caps, *lacking}))
        yield (
            f"cap {', '.join(map(cost, lacking))}: not measured; only points at which no row costs "
            f"more take part. To measure it, without training: {again}"
        )


def _command(request: Mapping[str, Any], store: Path, **changed: Any) -> str:
    """Return the command that repeats a run with some fields changed; a Python call if data or
    costs came from Python."""
    made = {**request, **changed}
    if given_from_python(request):
        return python_call(made, made.get("learners") or ())
    known = options_of(RunRequest)
    # workers and limits do not matter, the place of data does
    kept = {n: v for n, v in made.items() if n == "data_dir" or (n in known and known[n].decides)}
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
    """Return the command that trains one learner at one setting on one data set of an earlier run,
    and measures it under a ``cap`` if given; a Python call if data or costs came from Python."""
    from bench_core.parameters import parameters, plain
    from bench_core.planning.resolve_learners import default_grid
    from bench_core.planning.suites import NO_SUITE, find_suite

    suite = find_suite(request["suite"], registry) if request.get("suite") else NO_SUITE
    known = registry.learners.get(learner)
    tables = [suite.learners, *(profile.learners for profile in suite.profiles.values())]
    # omitted, these would take the suite's values or be a grid
    named = {name for table in tables for name in table.get(learner, {})}
    named |= {*default_grid(known)} if known else set()
    own = [p for p in parameters(known) if not p.holds_learner] if known else []
    # omit defaults
    defaults = {p.name: plain(p.default, p) for p in own if p.name not in named}
    kept = {
        name: value
        for name, value in params.items()
        if name not in defaults or defaults[name] != value
    }
    if given_from_python(request):
        return python_call(request, {learner: kept})
    # the reference and baselines take part by default
    others = {request.get("reference") or suite.reference, *suite.baselines, *registry.datasets}
    settings = [s for s in request.get("settings", ()) if _owner(s) in others - {learner}]
    settings += [f"{learner}.{name}={toml_literal(value)}" for name, value in kept.items()]
    changed = {"learners": learner, "caps": cap, "settings": settings, "configs": None}
    if request.get("suite"):
        changed["data"] = dataset.partition("(")[0]  # in results, options follow the name
    return _command(request, store, **changed)


def _owner(setting: str) -> str:
    return setting.partition(".")[0].strip()
