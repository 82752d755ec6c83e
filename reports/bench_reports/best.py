"""``bench best --keep 99%``: the best learner and setting, within a budget or at a quality."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.errors import one_line, printable, require
from bench_core.option_fields import chosen, options_of
from bench_core.planning.request import (
    RunRequest,
    given_from_python,
    shell_line,
    toml_literal,
    words,
)
from bench_core.statistics import CONFIDENCE
from bench_core.terminal.tables import (
    Table,
    check_text,
    console,
    plain_lines,
    show,
    wrapped,
    write_text,
    written,
)
from bench_core.terminal.wording import (
    CHEAPER,
    cost,
    half,
    notices,
    quality,
    run_line,
    saving,
    saving_ends,
)

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.leaderboard.selection import Answers, Choice, Selection
    from bench_core.plugins import Registry
    from bench_core.results.budgets import Limit
    from bench_core.results.records import RunInfo


NO_RESULT = 1  # exit status
COMMANDS_SHOWN = 3
LEAST_CHANCE = 0.05  # of a likely model that is listed


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
  bench best --budget 60 --budget-kind cap   no row costs more: bench run --caps 60
  bench best --budget 1.5 --data thyroid --metric balanced_accuracy
  bench best --learner cegb --budget 60      cegb's best setting
  bench best 3 --budget 60 -o best.txt

\b
Points are chosen on validation; test figures show what to expect. With --keep the model is the one
of the board's conclusion. A budget is a cost per row in the unit of the data set's prices. A cap
holds for every row: it is enforced at prediction, and must have been measured by the run. The exit
status is 1 if no data set has a result.""",
)
@options.run_argument
@options.limit_options()
@click.option(
    "--learner", default="", metavar="NAME", help="Only this learner of the run.  [default: all]"
)
@options.names_option("-d", "--data", "datasets", help="Data sets of the run.  [default: all]")
@click.option("-m", "--metric", metavar="NAME", help="Metric of the run to choose by.")
@options.output_option
@options.store_option
@options.plugins_option
@options.debug_option
def command(
    run: str,
    limits: Sequence[Limit],
    learner: str,
    datasets: tuple[str, ...],
    metric: str | None,
    output: Path | None,
    store: Path,
    plugins: Sequence[str],
) -> int:
    """Show the best learner and setting of RUN, and the command that trains it.

    With a budget it is the best within it; with a quality the cheapest that is sure to reach it.
    The default is the model of the board's conclusion: sure to keep 99% of the reference's quality,
    or the share that the run named.
    If no saving is measured, it is the best at any cost.
    """
    from bench_core.leaderboard.reports import finished
    from bench_core.leaderboard.selection import Choice
    from bench_core.results.budgets import Budget
    from bench_core.results.store import Store

    check_text(output)
    info, frame = finished(store, run)
    parts: list[Table | str] = []
    require("learner of this run", [learner] if learner else (), {*frame["learner"]})
    for name in named_datasets(frame, datasets):
        choice = Choice(info, Store(store), frame, name, metric or "")
        whole = not (metric or learner)
        conclusions = concluded(choice, limits[0] if limits else None) if whole else []
        parts += conclusions
        answers = [choice.at(limit) for limit in limits] or [choice.usual(learner)]
        if learner:
            answers = [
                one._replace(found=[row for row in one.found if row.learner == learner])
                for one in answers
            ]
        if answers[0].reason:
            parts.append(f"{name}: {answers[0].reason}")
        kind = within_budget if isinstance(answers[0].limit, Budget) else at_quality
        said = " ".join(" ".join(conclusions).split())
        for block in kind(choice, answers, plugins, store, learner):
            if isinstance(block, Table) or not block or block not in said:
                parts.append(block)
    options.note(run_line(info))
    deliver_parts(parts, output)
    return 0 if any(isinstance(part, Table) for part in parts) else NO_RESULT


def concluded(choice: Choice, limit: Limit | None) -> list[str]:
    """Return the conclusion of the board at a share to keep (None: the run's), as it is printed
    there; nothing at another limit."""
    from bench_core.leaderboard.assembly import boards
    from bench_core.leaderboard.conclusion import conclusion
    from bench_core.results.budgets import KEEP

    if limit is not None and limit.kind != KEEP:
        return []
    info = choice.info.keeping(limit.amount) if limit else choice.info
    shown = boards(info, choice.frame, choice.store)
    return [wrapped(" ".join(conclusion(board)), console().width) for board in shown if board.rows]


def within_budget(
    choice: Choice, answers: Sequence[Answers], plugins: Sequence[str], store: Path, learner: str
) -> Iterator[Table | str]:
    """Yield, for one data set, the learners within a budget, or the ``learner`` alone, and commands
    that train the winner; for several budgets the winner at each."""
    from bench_core.leaderboard.draws import uses_of
    from bench_core.results.budgets import Budget, limit_words
    from bench_reports.best import RUN, VALIDATION, selections

    info, frame, name = choice.info, choice.frame, choice.dataset
    judge, first = choice.metric.name, answers[0]
    if any(answer.found for answer in answers):
        best = "least" if choice.metric.in_money else "best"
        title = f"{best} {judge} {limit_words(first.limit, judge, choice.reference)}"
        shown, titles = first.found, ["learner", judge, "±", "cost", *VALIDATION, *RUN]
        if len(answers) > 1:
            title, titles = f"{best} {judge} at each budget", ["budget", *titles[:4], "at"]
            shown = [answer.found[0] for answer in answers if answer.found]
        yield selections(shown, titles, f"{name}: {title}{costs_in(frame)}")
        every = [selection for answer in answers for selection in answer.found]
        if any(not math.isnan(selection.standing.interval.low) for selection in every):
            yield f"±: half the {CONFIDENCE} interval; *: not significantly worse than the best"
            yield "sorted and chosen by validation"
        else:
            yield f"±: not known: {first.note}"
        if any(selection.standing.over for selection in every):
            yield f"!: above the budget on test by more than its {CONFIDENCE} interval"
    yield from notices(replace(info, datasets=tuple(uses_of(info, name))))
    for answer in answers:
        if not answer.found:
            yield f"{name}: {choice.why_not(answer.limit, learner)}"
    yield from unmeasured(info, frame, [answer.limit for answer in answers], store)
    if first.found and len(answers) == 1:
        free = [] if choice.metric.in_money else choice.at(Budget(math.inf)).found
        costs = {selection.learner: selection.pick.valid_cost for selection in free}
        within = {selection.learner: selection.pick.valid_cost for selection in first.found}
        if costs and costs == within:
            most = cost(max(costs.values()))
            yield f"this budget limits no learner: none costs more than {most} on validation"
        yield from model_of(choice, first.found[0], plugins, store, learner)
    elif any(answer.found for answer in answers):
        budget = next(str(answer.limit) for answer in answers if answer.found)
        named = f" --learner {learner}" if learner else ""
        others = "" if learner else "with the other learners, and "
        yield f"{others}how to train it: bench best --budget {budget!r}{named}"
    yield ""


def at_quality(
    choice: Choice, answers: Sequence[Answers], plugins: Sequence[str], store: Path, learner: str
) -> Iterator[Table | str]:
    """Yield, for one data set, the learners that reach a target, or the ``learner`` alone, the
    answer first, and commands that train it."""
    from bench_core.leaderboard.board import lost_below
    from bench_core.leaderboard.draws import uses_of
    from bench_core.results.budgets import KEEP, Target
    from bench_reports.best import RUN, SAVING, VALIDATION, chance, selections
    from bench_reports.terminal import lost_words

    info, (rows, target) = choice.info, (answers[0].found, answers[0].limit)
    assert isinstance(target, Target)
    words = target.words(choice.metric.name, choice.reference)
    yield from notices(replace(info, datasets=tuple(uses_of(info, choice.dataset))))
    if not any(row.sure for row in rows):
        yield f"{choice.dataset}: {choice.why_not(target, learner)}"
    rows = [row for row in rows if row.sure or chance(row) > LEAST_CHANCE]
    if not rows:
        return
    keeps = target.kind == KEEP
    saving = SAVING if keeps else ("sure",)
    titles = ["learner", "cost", *saving, choice.metric.name, *VALIDATION[::-1], *RUN]
    verb = "keep" if keeps else "reach"
    title = f"{choice.dataset}: least cost that is sure to {verb} {words}{costs_in(choice.frame)}"
    yield selections(rows, titles, title)
    if any(row.saved.tier == 1 for row in rows):
        yield "*: not significantly worse than the largest saving"
    if any(not row.sure for row in rows):
        yield f"% sure: the probability that the likeliest model will {verb} it"
    if any(row.saved.lost for row in rows):
        below = lost_words(lost_below(target.amount), choice.reference, choice.metric.name)
        yield f"!: {below}"
    if rows[0].sure:
        yield from model_of(choice, rows[0], plugins, store, learner)
    yield ""


def reached(answer: Selection) -> str:
    """Return a sentence on the chosen learner's results on validation and test."""
    valid, test, paid = quality(answer.valid_quality), quality(answer.quality), answer.cost
    capped = paid > 0 and any("cap" in setting.point for setting in answer.pick.settings)
    most, bound = ("at most ", "; the exported model may pay less") if capped else ("", "")
    figures = f"{answer.metric.name} {valid} on validation, {test} on test"
    return f"{answer.learner}: {figures}, at a cost of {most}{cost(paid)} per row{bound}"


def model_of(
    choice: Choice, answer: Selection, plugins: Sequence[str], store: Path, learner: str = ""
) -> Iterator[str]:
    """Yield the results, setting and purchases of the answer, and the commands that train it."""
    from bench_core.leaderboard.bought_sensors import purchases, sentences
    from bench_core.results.budgets import CONSTANT, Target
    from bench_core.results.store import Store

    info = choice.info
    yield reached(answer)
    yield from filter(None, [choice.rare_class(answer)])
    yield from (f"{answer.learner}: best at {setting.short}" for setting in answer.pick.settings)
    bought = purchases(Store(store), info.run, answer.points)
    yield from sentences(
        bought, None if answer.limit == Target(info.keep) else answer.limit, learner
    )
    registry = options.registry(plugins)
    # results under a cap need a run that measures it
    cap = answer.limit.amount if answer.limit.kind == "cap" else 0.0
    commands = (
        {}
        if given_from_python(info.request)
        else dict.fromkeys(  # most frequent first
            run_command(
                info.request, answer.dataset, answer.learner, setting.params, registry, store, cap
            )
            for setting in answer.pick.settings
            if CONSTANT not in setting.point  # which needs no training
        )
    )
    if commands:
        yield "run it alone with:"
    yield from islice(commands, COMMANDS_SHOWN)


def named_datasets(frame: pd.DataFrame, wanted: Sequence[str]) -> list[str]:
    """Return the requested data sets of a run, or all. Raises UsageError for an unknown one."""
    known = list(dict.fromkeys(map(str, frame["dataset"])))
    wanted = chosen("data set of this run", wanted, known)
    return [name for name in known if not wanted or name in wanted]


def costs_in(frame: pd.DataFrame) -> str:
    """Return ``, costs in ms``, or "" if the prices of a data set have no unit."""
    from bench_core.costs.model import unit_named  # not at the top: numpy comes with it

    units = {unit_named(str(unit)) for unit in frame["unit"].dropna()} - {""}
    return f", costs in {one_line(', '.join(sorted(units)))}" if units else ""


def deliver_parts(blocks: Iterable[Table | str], output: Path | None) -> None:
    """Write tables and lines to a text file if one is named, else to stdout."""
    if output is not None:
        lines = ([printable(p)] if isinstance(p, str) else plain_lines(p) for p in blocks)
        write_text(output, "".join(f"{line}\n" for own in lines for line in own))
        written(output)
        return
    screen = console()
    for block in blocks:
        if isinstance(block, Table):
            show(block, screen)
        else:
            screen.out(printable(block), highlight=False)


def unmeasured(
    info: RunInfo, frame: pd.DataFrame, budgets: Iterable[Limit], store: Path
) -> Iterator[str]:
    """Yield what takes part under caps that the run did not measure, and how to measure them."""
    from bench_core.results.operating_points import caps_of

    caps = caps_of(frame)
    lacking = [one.amount for one in budgets if one.kind == "cap" and one.amount not in caps]
    if lacking:
        every = sorted({*caps, *lacking})
        again = _command(info.request, store, caps=every) or f"the same call with caps={every}"
        yield (
            f"cap {', '.join(map(cost, lacking))}: not measured; only points at which no row costs "
            f"more take part. To measure it, without training: {again}"
        )


def _command(request: Mapping[str, Any], store: Path, **changed: Any) -> str:
    """Return the command that repeats a run with some fields changed, "" if data or costs came from
    Python."""
    if given_from_python(request):
        return ""
    values = {**request, **changed}
    known = options_of(RunRequest)
    # workers and limits do not matter, the place of data does
    kept = {n: v for n, v in values.items() if n == "data_dir" or (n in known and known[n].decides)}
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
    and measures it under a ``cap`` if given."""
    from bench_core.parameters import parameters, plain
    from bench_core.planning.resolve_learners import default_grid
    from bench_core.planning.suites import NO_SUITE, find_suite

    suite = find_suite(request["suite"], registry) if request.get("suite") else NO_SUITE
    cls = registry.learners.get(learner)
    tables = [suite.learners, *(profile.learners for profile in suite.profiles.values())]
    # omitted, these would take the suite's values or be a grid
    named = {name for table in tables for name in table.get(learner, {})}
    named |= {*default_grid(cls)} if cls else set()
    own = [p for p in parameters(cls) if not p.holds_learner] if cls else []
    # omit defaults
    defaults = {p.name: plain(p.default, p) for p in own if p.name not in named}
    kept = {
        name: value
        for name, value in params.items()
        if name not in defaults or defaults[name] != value
    }
    # the reference and baselines take part by default
    others = {request.get("reference") or suite.reference, *suite.baselines, *registry.datasets}
    others |= {"imported"} & {*request.get("learners", ())}
    settings = [s for s in request.get("settings", ()) if _owner(s) in others - {learner}]
    settings += [f"{learner}.{name}={toml_literal(value)}" for name, value in kept.items()]
    model = "imported"  # of today, if it is the reference
    trained = [model, learner] if learner != model and model in map(_owner, settings) else [learner]
    changed = {"learners": trained, "caps": cap, "settings": settings, "configs": None}
    bare = dataset.partition("(")[0]  # in results, options follow the name
    same = [text for text in request.get("data", ()) if bare in (text, Path(text).name)]
    if request.get("suite") or len(same) == 1:
        changed["data"] = same[0] if len(same) == 1 else bare
    return _command(request, store, **changed)


def _owner(setting: str) -> str:
    return setting.partition(".")[0].strip()


SAVING = (CHEAPER, f"{CONFIDENCE} interval")
VALIDATION, RUN = ("validation quality", "validation cost"), ("audit", "repeats")
"""Titles of columns; "quality" is the metric. Those of a run are shown where rows differ."""


def chance(selection: Selection) -> float:
    """Return the probability that a likeliest model reaches the target."""
    return selection.likely.probability if selection.likely else 0.0


def selections(shown: Sequence[Selection], titles: Sequence[str], title: str) -> Table:
    """Return a table of learners at a limit, with the first one highlighted on a terminal; of
    several budgets, none."""
    metric = shown[0].metric.name
    cells = {name.replace("quality", metric): cell for name, cell in CELLS.items()} | {
        metric: CELLS["quality"]
    }
    titles = [name.replace("quality", metric) if name in VALIDATION else name for name in titles]
    differs = {"audit": len({one.audit for one in shown}) > 1}
    differs["repeats"] = any(one.repeats < one.of for one in shown)
    titles = [name for name in titles if differs.get(name, True)]
    rows = [[cells[name](selection) for name in titles] for selection in shown]
    styles = ["" if k or "budget" in titles else "bold green" for k in range(len(rows))]
    right = [name for name in titles if name not in ("budget", "learner", "at", *RUN)]
    return Table(titles, rows, "learner", right, ("at",), row_styles=styles, title=title)


def _quality(selection: Selection) -> str:
    """Return the test quality, with * within a budget if it is tied for the best."""
    text, standing = quality(selection.pick.quality), selection.standing
    if math.isnan(standing.interval.low):
        return text
    return f"{text}{'*' if standing.tier == 1 else ' '}"


def _saving(selection: Selection) -> str:
    """Return the saving, with ! if it does not count and * if it is tied for the best."""
    if not selection.sure:
        return saving(selection.saving, chance(selection), selection.sure_in)
    mark = "!" if selection.saved.lost else "*" if selection.saved.tier == 1 else " "
    return saving(selection.saving) + mark


CELLS: dict[str, Callable[[Selection], str]] = {
    "budget": lambda one: str(one.limit),
    "learner": lambda one: one.learner,
    "cost": lambda one: cost(one.pick.cost) + "!" * one.standing.over,
    CHEAPER: _saving,
    f"{CONFIDENCE} interval": lambda one: saving_ends(one.saved.interval),
    "sure": lambda one: "yes" if one.sure else _saving(one),
    "quality": _quality,
    "±": lambda one: half(one.standing.interval, value=one.quality),
    "validation quality": lambda one: quality(one.pick.valid_quality),
    "validation cost": lambda one: cost(one.pick.valid_cost),
    "audit": lambda one: one.audit,
    "repeats": lambda one: f"{one.repeats} of {one.of}",
    "at": lambda one: one.pick.settings[0].short,
}
"""The columns of a learner at a limit by title; "!": above the budget by more than chance."""
