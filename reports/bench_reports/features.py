"""``bench features --budget 60``: features that the chosen setting buys, and shares of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_core.cli import options
from bench_core.errors import UsageError, one_line, printable, require
from bench_core.terminal.tables import Table, console, deliver, show
from bench_core.terminal.wording import cost, listed, run_line
from bench_reports.best import concluded, costs_in, named_datasets

if TYPE_CHECKING:
    from bench_core.leaderboard.bought_sensors import Purchase
    from bench_core.leaderboard.selection import Choice, Selection
    from bench_core.results.budgets import Limit

LOWER = (0.95, 0.9)
"""Shares of the reference's quality tried where nothing can be dropped."""

TITLES = ("features", "price", "bought for", "cost per row")

SHADES = "·░▒▓█"
"""Shades of a step: no row buys; some rows buy; at least 25%, 50%, 75% of all rows."""


FOR_ALL_ROWS = "forward-selection"
"""A learner that buys the same features for all rows."""


@click.command(
    "features",
    short_help="Show the features that a setting buys, and their shares of rows.",
    epilog="""\b
Examples:
  bench features                                     the cheapest with 99% of the reference
  bench features --keep 90%                          what can be dropped at this quality
  bench features --budget 60                         the best learner within the budget
  bench features --learner cegb --budget inf         at any cost
  bench features --learner cegb -o features.csv      share 0: can be dropped
  bench features --order                             steps of purchases, for row-by-row policies
  bench features --order -o order.csv                the shares of rows in each step

\b
The operating point is chosen on validation; shares are of test rows, averaged over repeats. Prices
are additive; under another cost model a bill can be below their sum.""",
)
@options.run_argument
@options.limit_options(several=False)
@click.option("--learner", metavar="NAME", help="Learner of the run.  [default: the best]")
@options.names_option("-d", "--data", "datasets", help="Data sets of the run.  [default: all]")
@click.option("--order", is_flag=True, help="Show the steps in which rows buy each.")
@options.output_option
@options.store_option
@options.plugins_option
@options.debug_option
def command(
    run: str,
    limit: Limit | None,
    learner: str | None,
    datasets: tuple[str, ...],
    order: bool,
    output: Path | None,
    store: Path,
    plugins: tuple[str, ...],
) -> int:
    """Show the features that a learner of RUN buys within a budget, or at a quality.

    By default the model is that of the board's conclusion; if no saving is measured, the best at
    any cost.
    """
    from bench_core.leaderboard.bought_sensors import (
        NEVER,
        ordered,
        purchases,
        sentences,
    )
    from bench_core.leaderboard.reports import finished
    from bench_core.leaderboard.selection import Choice
    from bench_core.results.budgets import Target
    from bench_core.results.store import Store

    info, frame = finished(store, run)
    kept, lines = Store(store), []
    panels: dict[str, list[Purchase]] = {}
    require("learner of this run", [learner] if learner else (), {*frame["learner"]})
    for name in named_datasets(frame, datasets):
        choice = Choice(info, kept, frame, name)
        try:
            answers, chosen = choice.answer(limit, learner or "")
        except UsageError as error:  # other data sets may still have an answer
            note(str(error))
            continue
        if answers.reason:
            note(f"{name}: {answers.reason}")
        conclusions = concluded(choice, limit) if not learner and output is None else []
        if conclusions:
            console().out("\n".join(conclusions), highlight=False)
        title = f"{name}: what {chosen.learner} buys {chosen.words}{costs_in(choice.frame)}"
        title += f", means of {chosen.repeats} models" * (chosen.repeats > 1)
        bought = purchases(kept, info.run, chosen.points)
        if order:
            if not (steps := ordered(bought)):
                note(f"{name}: {chosen.learner} does not record the order of purchases")
                continue
            panels[name] = steps
            if output is None:
                show(order_table(title, steps), console())
            continue
        lines += [
            [
                name,
                buy.features,
                *(f"{x:.6g}" for x in (buy.price, buy.share, buy.lost)),
            ]
            for buy in bought
        ]
        if output is None:
            footer = [*sentences(bought, limit, learner or "")]
            rare = choice.rare_class(chosen)
            if rare not in " ".join(" ".join(conclusions).split()):  # nor is an empty one added
                footer.append(rare)
            every = bought and all(buy.share > NEVER for buy in bought)
            if every and isinstance(answers.limit, Target):
                lower = _lower(choice, learner, chosen)
                footer.append(f"none can be dropped {chosen.words}{lower}")
                if FOR_ALL_ROWS not in set(choice.frame["learner"]):
                    footer.append(
                        f"sets of features that suffice for all rows: --learners {FOR_ALL_ROWS}"
                    )
            show(_table(title, bought, footer), console())
    if lines or panels:
        options.note(run_line(info))
    if output is not None and panels:
        deliver(order_lines(panels), output)
    elif output is not None and lines:
        lost = any(line[-1] != "0" for line in lines)
        titles = ("data set", "features", "price", "share", *(["nothing came"] if lost else []))
        deliver(Table(titles, [line[: len(titles)] for line in lines]), output)
    return 0 if lines or panels else 1


def note(line: str) -> None:
    """Write a line to stderr."""
    console(stderr=True).out(printable(line))


def _lower(choice: Choice, learner: str | None, shown: Selection) -> str:
    """Return what can be dropped at a lower share of the reference's quality, in words; by the best
    learner there, named if it is not the one ``shown``."""
    from bench_core.costs.model import unit_named
    from bench_core.leaderboard.bought_sensors import NEVER, named, purchases
    from bench_core.results.budgets import KEEP, Target

    limit = shown.limit
    below = [share for share in LOWER if limit.kind == KEEP and share < limit.amount]
    for share in below:
        best = choice.at(Target(share)).of(learner)
        if best is None or choice.store is None:
            continue
        bought = purchases(choice.store, choice.info.run, best.points)
        if never := [one for one in bought if one.share == NEVER]:
            other = f" with {best.learner}" if best.learner != shown.learner else ""
            unit = unit_named(str(choice.frame["unit"].iloc[0]))
            paid = " ".join(filter(None, [cost(best.cost), one_line(unit)]))
            costs = f"{paid} instead of {cost(shown.cost)}"
            return f"; at {share:.0%}{other} ({costs}): {named(never, best.limit, learner or '')}"
    return f", nor at {listed([f'{share:.0%}' for share in below])}" if below else ""


def _table(title: str, bought: Sequence[Purchase], footer: Sequence[str]) -> Table:
    """Return a learner's purchases for a terminal, with their total; sensors that no row buys are
    named below."""
    from bench_core.leaderboard.bought_sensors import NEVER

    everything = sum(buy.price for buy in bought)
    bought = [buy for buy in bought if buy.share > NEVER]
    rows = [
        [
            buy.short,
            cost(buy.price),
            f"{buy.share:.1%}",
            cost(buy.price * buy.share),
        ]
        for buy in bought
    ]
    if len(rows) > 1:
        paid = sum(buy.price * buy.share for buy in bought)
        rows.append(["total", cost(everything), "", cost(paid)])
    titles: tuple[str, ...] = TITLES
    if any(buy.nothing[0] for buy in bought):  # paid all the same
        titles = (*TITLES, "nothing came")
        rows = [[*row, text] for row, text in zip(rows, [*map(_lost, bought), ""], strict=False)]
    rule = len(bought) if len(rows) > len(bought) else None
    columns = "features", titles[1:], ("features",), title
    return Table(titles, rows, *columns, footer=footer, rule=rule)


def _lost(one: Purchase) -> str:
    lost, asked = one.nothing
    return f"{lost:.0f} of {asked:.0f} ({one.lost:.0%})" if lost else "-"


def order_table(title: str, bought: Sequence[Purchase]) -> Table:
    """Return a line for each sensor that some rows buy, with steps from left to right."""
    titles = "features", "price", "bought for", "mean step", f"steps 1 to {len(bought[0].steps)}"
    rows = [
        [one.short, cost(one.price), f"{one.share:.1%}", f"{one.step:.1f}", shaded(one.steps)]
        for one in bought
    ]
    legend = f"{SHADES[4]} 75% of rows or more buy in that step, {SHADES[3]} 50%, {SHADES[2]} 25%, "
    legend += f"{SHADES[1]} fewer, {SHADES[0]} none; step 0: free, for all"
    return Table(titles, rows, "features", titles[1:4], ("features",), title=title, footer=[legend])


def shaded(steps: Sequence[float]) -> str:
    """Return a character for each step, darker if more rows buy in it."""
    return "".join(SHADES[min(1 + int(4 * share), 4) if share > 0 else 0] for share in steps)


def order_lines(bought: Mapping[str, Sequence[Purchase]]) -> Table:
    """Return all numbers by data set, for a file."""
    width = max(len(p.steps) for sensors in bought.values() for p in sensors)
    figures = ("features", "price", "share", "step")
    titles = ("data set", *figures, *(f"step {k + 1}" for k in range(width)))
    rows = []
    for name, sensors in bought.items():
        for p in sensors:
            numbers = p.price, p.share, p.step, *p.steps, *[0] * (width - len(p.steps))
            rows.append([name, p.features, *(f"{number:.6g}" for number in numbers)])
    return Table(titles, rows)
