"""``bench features --budget 60``: features that the chosen setting buys, and shares of rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_core.cli import options
from bench_core.errors import UsageError, printable, require
from bench_core.terminal.tables import Table, check_output, console, deliver, show
from bench_core.terminal.wording import cost, listed
from bench_reports.best import costs_in, named_datasets, no_result

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.leaderboard.bought_sensors import Purchase
    from bench_core.results.budgets import Limit
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

LOWER = (0.95, 0.9)
"""Shares of the reference's quality tried where nothing can be dropped."""

TITLES = ("features", "price", "bought for", "cost per row")


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
  bench features --order --rows 3                    and what the first three test rows buy

\b
The operating point is chosen on validation; shares are of test rows, averaged over repeats. Prices
are additive; under another cost model a bill can be below their sum.""",
)
@options.run_argument
@options.limit_options(several=False)
@click.option("--learner", metavar="NAME", help="Learner of the run.  [default: the best]")
@options.names_option("-d", "--data", "datasets", help="Data sets of the run.  [default: all]")
@click.option("--order", is_flag=True, help="Show the steps in which rows buy each.")
@click.option(
    *("--rows", "rows"),
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="Show the purchases of the first N test rows.",
)
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
    rows: int,
    output: Path | None,
    store: Path,
    plugins: tuple[str, ...],
) -> int:
    """Show the features that a learner of RUN buys within a budget, or at a quality.

    By default the point is the cheapest that keeps 99% of the reference's quality; if none does,
    the best at any cost.
    """
    from bench_core.leaderboard.assembly import primary_metric, usual_limit
    from bench_core.leaderboard.bought_sensors import (
        NEVER,
        chosen_within,
        kept_points,
        ordered,
        purchases,
        purchases_by_row,
        sentences,
    )
    from bench_core.leaderboard.certainty import best_learner
    from bench_core.leaderboard.reports import finished
    from bench_core.results.budgets import Target, limit_words
    from bench_core.results.store import Store
    from bench_reports.purchase_order import order_lines, order_table, rows_table

    if rows and (output or not order):
        raise UsageError(
            "--rows shows the order of purchases on the terminal: give --order, and no -o"
        )
    check_output(output)
    info, frame = finished(store, run)
    kept, lines = Store(store), []
    panels: dict[str, list[Purchase]] = {}
    if rows:
        options.registry(plugins)  # makes their classes importable
    for name in named_datasets(frame, datasets):
        own = frame[frame["dataset"] == name]
        within, judge = limit, primary_metric(info, name)
        require("learner of this run", [learner] if learner else (), {*own["learner"]})
        if within is None:
            within, why = usual_limit(own, judge, info.reference, [learner] if learner else [])
            if why:
                console(stderr=True).out(printable(f"{name}: {why}"))
        first = learner or best_learner(info, kept, name, own, within, judge)
        chosen = chosen_within(info, own, name, first, within)
        if chosen.empty:  # other data sets may still have an answer
            why = no_result(info, own, name, within, store, learner or "")
            console(stderr=True).out(printable(f"{name}: {why}"))
            continue
        at = limit_words(within, judge.name, info.reference)
        title = f"{name}: what {first} buys {at}{costs_in(own)}"
        bought = purchases(kept_points(kept, info.run, chosen))
        if order:
            if not (steps := ordered(bought)):
                why = f"{first} does not record the order of purchases, as policies do"
                console(stderr=True).out(printable(f"{name}: {why}"))
                continue
            panels[name] = steps
            if output is None:
                show(order_table(title, steps), console())
            if rows:
                show(rows_table(purchases_by_row(kept, info.run, chosen, rows)), console())
            continue
        lines += [[name, one.features, f"{one.price:.6g}", f"{one.share:.6g}"] for one in bought]
        if output is None:
            footer = [*sentences(bought)]
            every = bought and all(one.share > NEVER for one in bought)
            if every and isinstance(within, Target):
                lower = _lower(info, own, name, learner, first, within, kept)
                footer.append(f"none can be dropped {at}{lower}")
            show(_table(title, bought, footer), console())
    if output is not None and panels:
        deliver(order_lines(panels), output)
    elif output is not None and lines:
        deliver(Table(("data set", "features", "price", "share"), lines), output)
    return 0 if lines or panels else 1


def _lower(
    info: RunInfo,
    frame: pd.DataFrame,
    name: str,
    learner: str | None,
    shown: str,
    limit: Limit,
    store: Store,
) -> str:
    """Return what can be dropped at a lower share of the reference's quality, in words; by the best
    learner there, named if it is not ``shown``."""
    from bench_core.leaderboard.assembly import primary_metric
    from bench_core.leaderboard.bought_sensors import (
        NEVER,
        chosen_within,
        kept_points,
        named,
        purchases,
    )
    from bench_core.leaderboard.certainty import best_learner
    from bench_core.results.budgets import KEEP, Target

    below = [share for share in LOWER if limit.kind == KEEP and share < limit.amount]
    for share in below:
        of_run, at = (info, store, name, frame), Target(share)
        best = learner or best_learner(*of_run, at, primary_metric(info, name))
        chosen = chosen_within(info, frame, name, best, at)
        bought = [] if chosen.empty else purchases(kept_points(store, info.run, chosen))
        if never := [one for one in bought if one.share == NEVER]:
            return f"; at {share:.0%}{f' with {best}' if best != shown else ''}: {named(never)}"
    return f", nor at {listed([f'{share:.0%}' for share in below])}" if below else ""


def _table(title: str, bought: Sequence[Purchase], footer: Sequence[str]) -> Table:
    """Return a learner's purchases for a terminal; sensors that no row buys are named below."""
    from bench_core.leaderboard.bought_sensors import NEVER

    rows = [
        [one.short, cost(one.price), f"{one.share:.1%}", cost(one.price * one.share)]
        for one in bought
        if one.share > NEVER
    ]
    return Table(TITLES, rows, "features", TITLES[1:], ("features",), title=title, footer=footer)
