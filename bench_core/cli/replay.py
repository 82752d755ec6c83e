"""``bench audit``, ``reprice`` and ``rerun``: verbs that do the work of a stored run again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bench_core.cli import options
from bench_core.cli.run import GO_ON, doing_again, failures, following, request, show_result
from bench_core.terminal.tables import check_output, write_text
from bench_core.terminal.wording import counted

DIFFERS = 1
_SHOWN = 5  # of the numbers that differ


@click.command("audit")
@options.stored_run_options
def audit_command(run: str, output: Path | None, **given: Any) -> int:
    """Check RUN's costs: all its trials, every query, every operating point.

    Examples:
      bench audit                 the last run
      bench audit 3 --workers 2

    A trial is verified where each purchase is made from what was bought before it. The model is
    asked again on demand, or cells that it did not buy are replaced; its answers must stay the
    same. A learner that fails leaves the ranking, and the exit status is then 1.
    """
    from bench_core.api.orchestration import audited

    check_output(output)
    with doing_again("", run, **given) as (asked, show):
        result = audited(run, asked, show)
    replayed, refused = result.counts.get("ok", 0), len(result.audit_failures)
    # a declared trial is listed among the failures, with the reason
    declared = sum(status == "declared" for _, status, _ in result.failures)
    verdict = {"verified": replayed - refused - declared, "declared": declared}
    verdict |= {"failed the audit": refused}
    verdict["could not be audited"] = sum(result.counts.values()) - replayed
    last = f"run {result.run}: {counted(verdict) or 'there is nothing to audit'}"
    write_text(output or Path("-"), "\n".join([*failures(result), last]) + "\n")
    return result.exit_status


@click.command("reprice")
@options.request_option(
    "costs", required=True, type=str, help="A cost file, or the name of a cost model."
)
@options.names_option("-d", "--data", help="The run's data sets to bill; default: all of them.")
@options.request_option("caps", help="Costs that no row may exceed, in the unit of the new costs.")
@options.stored_run_options
def reprice_command(run: str, data: tuple[str, ...], output: Path | None, **given: Any) -> int:
    """Bill RUN again under other costs, without training, and show the leaderboard.

    Examples:
      bench reprice --costs mine.csv                the last run
      bench reprice 3 --costs per-query.json -o board.html

    The stored models answer again and are audited; metrics stay as they are, costs are new.
    Learners trained on the old costs: run again with --costs to see what they do with the new ones.
    """
    from bench_core.api.orchestration import registry_of, repriced
    from bench_core.leaderboard.reports import report_for

    with doing_again(GO_ON, run, **given) as (asked, show):
        registry = registry_of(asked)
        report_for(registry, output)  # refused before any work
        result = repriced(run, data, asked, registry, show)
    return show_result(registry, result, output)


@click.command("rerun")
@click.argument("trial")
@options.data_dir_option
@options.no_progress_option
@options.store_option
@options.common_options
def rerun_command(trial: str, **given: Any) -> int:
    """Do TRIAL again: the same bits, or what differs and which ingredient changed.

    Examples:
      bench rerun 3f9a1c            the trial whose name begins so
      bench rerun 3f9a1c -p mine    one of a learner of the current folder

    TRIAL is what 'bench export' and 'bench log' show as trial, or its beginning. The trial and the
    fits under it are done from nothing in a store of their own. Exit status 1 where a number
    differs.
    """
    from bench_core.api.rerun import rerun

    asked = request(**given)
    with following() as show:
        found = rerun(trial, asked, show)
    word = "same bits" if found.same else f"{len(found.changed)} of its numbers differ"
    click.echo(f"{found.title}: {word} ({found.rows} rows)")
    for line in found.changed[:_SHOWN]:
        click.echo(f"  {line}")
    if found.ingredients:
        click.echo("not as they were:" if found.same else "what made it, not as it was:")
    for line in found.ingredients:
        click.echo(f"  {line}")
    if not (found.same or found.ingredients):
        click.echo("nothing that is recorded differs: the learner itself is not repeatable")
    return 0 if found.same else DIFFERS
