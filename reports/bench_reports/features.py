"""``bench features --budget 60``: what the best setting within a budget buys, and for how many."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from bench_core.cli import options
from bench_core.cli.report import finished
from bench_core.errors import UsageError, unknown
from bench_core.terminal.tables import Table, check_output, console, deliver, show
from bench_core.terminal.wording import cost, count

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.budgets import Budget
    from bench_core.results.operating_points import Criterion
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

EVERY, NEVER = 0.9995, 0.0
TITLES = ("features", "price", "bought for", "cost per row")


class Purchase(NamedTuple):
    """A sensor, by the features that need it: its price, and the share of rows that buy it."""

    features: str
    price: float
    share: float


@click.command(
    "features",
    short_help="Show which features a setting buys, and for how many rows.",
    epilog="""\b
Examples:
  bench features --budget 60                         of the best learner within the budget
  bench features --learner cegb --budget 60
  bench features --learner cegb -o features.csv      at its best

\b
The point is chosen on validation, shares are of test rows, averaged over repeats. Prices are those
that add up; under another cost model a bill can be below their sum.""",
)
@options.run_argument
@options.budget_options()
@click.option("--learner", metavar="NAME", help="A learner of the run.  [default: the best]")
@options.names_option("-d", "--data", "datasets", help="Data sets of the run to look at.")
@options.output_option
@options.store_option
@options.debug_option
def command(
    run: str,
    budget: str | None,
    budget_kind: str,
    learner: str | None,
    datasets: tuple[str, ...],
    output: Path | None,
    store: Path,
) -> int:
    """Show which features a learner of RUN buys within a budget."""
    from bench_core.results.budgets import Budget
    from bench_core.results.store import Store
    from bench_reports.budgets import one_budget, unaffordable

    check_output(output)
    within = Budget(math.inf) if budget is None else one_budget(budget, budget_kind)
    info, frame = finished(store, run)
    there = list(dict.fromkeys(map(str, frame["dataset"])))
    for name in datasets:
        if name not in there:
            raise UsageError(unknown("data set of this run", name, there))
    kept, rows = Store(store), []
    for name in datasets or there:
        own = frame[frame["dataset"] == name]
        chosen = chosen_within(info, own, name, learner, within)
        if chosen.empty:
            console(stderr=True).out(f"{name}: {unaffordable(info, own, within, store)}")
            continue
        bought = purchases(kept, info.run, chosen, within)
        rows += [[name, one.features, f"{one.price:.6g}", f"{one.share:.6g}"] for one in bought]
        if output is None:
            _show(name, str(chosen["learner"].iloc[0]), within, bought)
    if output is not None:
        deliver(Table(("data set", *Purchase._fields), rows), output)
    return 0 if rows else 1


def chosen_within(
    info: RunInfo,
    frame: pd.DataFrame,
    name: str,
    learner: str | None,
    budget: Budget | float,
    metric: Criterion | None = None,
) -> pd.DataFrame:
    """The points, one for each repeat, that one learner (None: the best) has within the budget."""
    from bench_core.leaderboard.assembly import offers, primary_metric
    from bench_core.results import operating_points as selection
    from bench_core.results.budgets import budget_of

    metric = metric or primary_metric(info, name)
    known = list(dict.fromkeys(map(str, frame["learner"])))
    if learner is not None and learner not in known:
        raise UsageError(unknown("learner of this run", learner, known))
    found = offers(frame, metric, budget) if learner is None else []
    best = learner or (found[0].learner if found else "")
    own, within = frame[frame["learner"] == best], budget_of(budget)
    return selection.points_within(own, metric.name, metric.higher_is_better, within)


def purchases(
    store: Store, run: str, chosen: pd.DataFrame, within: Budget | None = None
) -> list[Purchase]:
    """What the chosen points buy, a mean over them, the sensors that cost most per row first.

    Empty where a point is not kept: it is none of the frontier in the primary metric.
    """
    first = chosen.iloc[0]
    of, learner = str(first["dataset"]), str(first["learner"])
    values = store.values(run, dataset=of, learner=learner, within=within)
    sensors = store.sensors(run)
    total: dict[tuple[str, float], float] = {}
    for _, row in chosen.iterrows():
        params, point = (json.loads(str(row[key])) for key in ("params", "point"))
        trial = {"params": params, "fold": row["fold"], "seed": row["seed"]}
        same = (v for v in values if all(getattr(v, key) == trial[key] for key in trial))
        one = next(same, None)
        if one is None or point not in one.settings:
            return []
        what = zip(*sensors[one.trial], one.bought[one.settings.index(point)], strict=True)
        for name, price, share in what:
            total[name, price] = total.get((name, price), 0.0) + float(share) / len(chosen)
    found = [Purchase(name, price, share) for (name, price), share in total.items()]
    return sorted(found, key=lambda one: (-one.share * one.price, -one.share, one.features))


def sentences(bought: Sequence[Purchase]) -> Iterator[str]:
    """What is bought for every row, for some, and what never buying the others saves."""
    parts = {
        "for every row": [one for one in bought if one.share >= EVERY],
        "for some rows": [one for one in bought if NEVER < one.share < EVERY],
        "never": [one for one in bought if one.share == NEVER],
    }
    for when, some in parts.items():
        if some:
            paid = sum(one.price * one.share for one in some)
            unpaid = sum(one.price * (1 - one.share) for one in some)
            money = f"{cost(paid)} per row" if paid else "free"
            saved = f", {cost(unpaid)} saved" if unpaid else ""
            money = f"{cost(unpaid)} saved" if when == "never" else money + saved
            yield f"bought {when}: {count(len(some), 'sensor')} ({money})"


def _show(name: str, learner: str, budget: Budget, bought: Sequence[Purchase]) -> None:
    within = "at its best" if math.isinf(budget.amount) else f"within {budget.words}"
    rows = [
        [one.features, cost(one.price), f"{one.share:.1%}", cost(one.price * one.share)]
        for one in bought
        if one.share > NEVER
    ]
    title = f"{name}: what {learner} buys {within}"
    footer = tuple(sentences(bought))
    table = Table(TITLES, rows, "features", TITLES[1:], ("features",), title=title, footer=footer)
    show(table, console())
