"""``bench features --budget 60``: what the best setting within a budget buys, and for how many."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_core.cli import options
from bench_core.errors import printable
from bench_core.terminal.tables import Table, check_output, console, deliver, show
from bench_core.terminal.wording import cost
from bench_reports.best import costs_in, named_datasets, no_result

if TYPE_CHECKING:
    from bench_core.leaderboard.bought_sensors import Purchase
    from bench_core.results.budgets import Budget

NAMED = 30
"""So many features that can be dropped are named on the terminal."""

TITLES = ("features", "price", "bought for", "cost per row")


@click.command(
    "features",
    short_help="Show which features a setting buys, and for how many rows.",
    epilog="""\b
Examples:
  bench features --budget 60                         of the best learner within the budget
  bench features --learner cegb --budget 60
  bench features --learner cegb -o features.csv      at its best; share 0: can be dropped

\b
The point is chosen on validation, shares are of test rows, averaged over repeats. Prices are those
that add up; under another cost model a bill can be below their sum.""",
)
@options.run_argument
@options.budget_options(several=False)
@click.option("--learner", metavar="NAME", help="A learner of the run.  [default: the best]")
@options.names_option("-d", "--data", "datasets", help="Data sets of the run to look at.")
@options.output_option
@options.store_option
@options.debug_option
def command(
    run: str,
    budget: Budget | None,
    learner: str | None,
    datasets: tuple[str, ...],
    output: Path | None,
    store: Path,
) -> int:
    """Show which features a learner of RUN buys within a budget."""
    from bench_core.leaderboard.bought_sensors import Purchase, chosen_within, purchases
    from bench_core.leaderboard.reports import finished
    from bench_core.results.budgets import Budget
    from bench_core.results.store import Store

    check_output(output)
    within = budget or Budget(math.inf)
    info, frame = finished(store, run)
    kept, rows = Store(store), []
    for name in named_datasets(frame, datasets):
        own = frame[frame["dataset"] == name]
        chosen = chosen_within(info, own, name, learner, within)
        if chosen.empty:  # other data sets may still have an answer
            why = no_result(info, own, within, store)
            console(stderr=True).out(printable(f"{name}: {why}"))
            continue
        bought = purchases(kept, info.run, chosen)
        rows += [[name, one.features, f"{one.price:.6g}", f"{one.share:.6g}"] for one in bought]
        if output is None:
            first = str(chosen["learner"].iloc[0])
            show(_table(name, first, within, bought, costs_in(own)), console())
    if output is not None and rows:
        deliver(Table(("data set", *Purchase._fields), rows), output)
    return 0 if rows else 1


def _table(name: str, learner: str, within: Budget, bought: Sequence[Purchase], unit: str) -> Table:
    """The purchases of a learner for a terminal; what nobody buys is named below."""
    from bench_core.leaderboard.bought_sensors import NEVER, sentences

    at = "at its best" if math.isinf(within.amount) else f"within {within.words}"
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
    title = f"{name}: what {learner} buys {at}{unit}"
    return Table(TITLES, rows, "features", TITLES[1:], ("features",), title=title, footer=footer)
