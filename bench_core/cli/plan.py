"""``bench plan``: what a run would do, without doing it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.cli.request import request, request_options

if TYPE_CHECKING:
    from bench_core.planning.plan import Plan
    from bench_core.terminal.tables import Table


@click.command(
    "plan",
    short_help="Show what a run would do and how long it may take.",
    epilog="""\b
Examples:
  bench plan --suite yahoo --learners miser,cegb
  bench plan --suite letters --profile standard --seeds 0-4

\b
Takes the options of 'bench run'. Data is prepared, nothing is trained. The time is estimated from
earlier fits in the store.""",
)
@request_options
@options.output_option
@options.common_options
def command(
    no_progress: bool,
    output: Path | None,
    quiet: bool,
    verbose: bool,
    **given: Any,
) -> int:
    """Show what 'bench run' with the same options would do, and how long it may take."""
    from bench_core import api
    from bench_core.terminal.progress import progress
    from bench_core.terminal.tables import check_output, deliver

    asked = request(**given)
    check_output(output)
    with progress(quiet=quiet, bars=not no_progress, verbose=verbose) as show:
        made = api.plan(request=asked, on_event=show)
    deliver(table(made), output)
    return 0


def table(plan: Plan) -> Table:
    """One row for each data set and learner: trials to do and finished."""
    from bench_core.terminal.tables import Column, Table

    skipped = {key for key, _ in plan.skipped}
    planned: Counter[tuple[str, str]] = Counter()
    finished: Counter[tuple[str, str]] = Counter()
    left_out: Counter[tuple[str, str]] = Counter()
    for trial in plan.trials:
        place = (trial.dataset, trial.learner)
        planned[place] += 1
        finished[place] += trial.key in plan.finished
        left_out[place] += trial.key in skipped
    rows = [
        (*place, *map(str, (n - finished[place] - left_out[place], finished[place])))
        for place, n in planned.items()
    ]
    columns = (Column("data set"), Column("learner", style="bold"))
    more = (Column("trials to do", right=True), Column("finished", right=True))
    return Table("", (*columns, *more), rows, footer=_footer(plan))


def _footer(plan: Plan) -> list[str]:
    from bench_core.terminal.wording import duration

    trials = sum(t.key not in plan.finished for t in plan.trials) - len(plan.skipped)
    fits = sum(f.key not in plan.finished_fits for f in plan.fits)
    time = "no estimate: nothing like it was timed yet"
    if plan.seconds is not None:
        time = f"about {duration(plan.seconds)}"
    lines = [f"{fits} fits and {trials} trials to do, {time}"]
    for reason, n in Counter(reason for _, reason in plan.skipped).items():
        lines.append(f"skipped ({n}): {reason}")
    return lines
