"""``bench features --budget 60``: features that the chosen setting buys, and shares of rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_core.cli import options
from bench_core.errors import UsageError, printable
from bench_core.terminal.tables import Table, check_output, console, deliver, show
from bench_core.terminal.wording import cost
from bench_reports.best import costs_in, limit_words, named_datasets, no_result

if TYPE_CHECKING:
    from bench_core.leaderboard.bought_sensors import Purchase
    from bench_core.results.budgets import Limit

NAMED = 30
"""Number of unused features named on the terminal."""

TITLES = ("features", "price", "bought for", "cost per row")


@click.command(
    "features",
    short_help="Show the features that a setting buys, and their shares of rows.",
    epilog="""\b
Examples:
  bench features --budget 60                         the best learner within the budget
  bench features --learner cegb --budget 60
  bench features --keep 99%                          the cheapest with 99% of the reference
  bench features --learner cegb -o features.csv      at its best; share 0: can be dropped
  bench features --order                             steps of purchases, for row-by-row policies
  bench features --order -o order.pdf                a figure (or .svg, .png, .csv)
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
    """Show the features that a learner of RUN buys within a budget, or at a quality."""
    from bench_core.leaderboard.bought_sensors import (
        chosen_within,
        kept_points,
        ordered,
        purchases,
        purchases_by_row,
    )
    from bench_core.leaderboard.reports import finished
    from bench_core.results.budgets import Budget
    from bench_core.results.store import Store
    from bench_reports.figure_files import SUFFIXES
    from bench_reports.purchase_order import draw_order, order_lines, order_table, rows_table

    if rows and (output or not order):
        raise UsageError(
            "--rows shows the order of purchases on the terminal: give --order, and no -o"
        )
    picture = order and output is not None and output.suffix.lower() in SUFFIXES
    check_output(output)
    within = limit or Budget(math.inf)
    info, frame = finished(store, run)
    kept, lines = Store(store), []
    panels: dict[str, list[Purchase]] = {}
    if rows:
        options.registry(plugins)  # makes their classes importable
    for name in named_datasets(frame, datasets):
        own = frame[frame["dataset"] == name]
        chosen = chosen_within(info, own, name, learner, within)
        if chosen.empty:  # other data sets may still have an answer
            why = no_result(info, own, name, within, store, learner or "")
            console(stderr=True).out(printable(f"{name}: {why}"))
            continue
        first = str(chosen["learner"].iloc[0])
        title = f"{name}: what {first} buys {limit_words(info, name, within)}{costs_in(own)}"
        bought = purchases(kept_points(kept, info.run, chosen))
        if order:
            if not (steps := ordered(bought)):
                why = f"{first} does not record the order of purchases, as policies do"
                console(stderr=True).out(printable(f"{name}: {why}"))
                continue
            panels[title if picture else name] = steps
            if output is None:
                show(order_table(title, steps), console())
            if rows:
                show(rows_table(purchases_by_row(kept, info.run, chosen, rows)), console())
            continue
        lines += [[name, one.features, f"{one.price:.6g}", f"{one.share:.6g}"] for one in bought]
        if output is None:
            show(_table(title, bought), console())
    if output is not None and picture and panels:
        draw_order(panels, output)
    elif output is not None and panels:
        deliver(order_lines(panels), output)
    elif output is not None and lines:
        deliver(Table(("data set", "features", "price", "share"), lines), output)
    return 0 if lines or panels else 1


def _table(title: str, bought: Sequence[Purchase]) -> Table:
    """Return a learner's purchases for a terminal; sensors that no row buys are named below."""
    from bench_core.leaderboard.bought_sensors import NEVER, sentences

    rows = [
        [one.features, cost(one.price), f"{one.share:.1%}", cost(one.price * one.share)]
        for one in bought
        if one.share > NEVER
    ]
    # unbought features need not be measured at all
    footer = [*sentences(bought)]
    if never := [one.features for one in bought if one.share == NEVER]:
        more = f", ... (all {len(never)}: -o features.csv)" if len(never) > NAMED else ""
        footer.append(f"can be dropped: {', '.join(never[:NAMED])}{more}")
    return Table(TITLES, rows, "features", TITLES[1:], ("features",), title=title, footer=footer)
