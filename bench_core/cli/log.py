"""``bench log``: how every attempt of a run's fits and trials ended, with tracebacks and output."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_core.cli import options
from bench_core.errors import one_line
from bench_core.terminal.tables import write_text
from bench_core.terminal.wording import duration

if TYPE_CHECKING:
    from bench_core.results.records import Attempt


@click.command("log")
@options.run_argument
@click.option("--failed", is_flag=True, help="Leave out attempts that ended well.")
@options.output_option
@options.store_option
@options.debug_option
def log_command(run: str, failed: bool, output: Path | None, store: Path) -> int:
    """Show each attempt of RUN's fits, trials and audits: status, error, traceback and output.

    Examples:
      bench log                   the last run
      bench log --failed          only what did not end well
      bench log 3 -o log.txt

    A traceback begins with the frames of the plugin; the whole one, with bench_core and libraries,
    follows below a line that marks the cut. Of an output the end is kept.
    """
    from bench_core.results.store import Store

    attempts = [a for a in Store(store).attempts(run) if not (failed and a.status == "ok")]
    none = "nothing failed" if failed else "no attempt is recorded"
    if output is not None:
        lines = [line for attempt in attempts for line in attempt_lines(attempt)]
        write_text(output, "\n".join(lines or [none]) + "\n")
        return 0
    for attempt in attempts:
        head, *details = attempt_lines(attempt)
        click.secho(head, bold=True, fg=None if attempt.status == "ok" else "red")
        click.echo("".join(f"{line}\n" for line in details), nl=False)
    if not attempts:
        click.echo(none)
    return 0


def attempt_lines(attempt: Attempt) -> list[str]:
    """How one attempt ended, then its error, traceback and output."""
    from bench_core.results.records import TRIAL_DIGITS
    from bench_core.terminal.progress import detail_lines

    again = f", attempt {attempt.attempt}" if attempt.attempt > 1 else ""
    when = attempt.created_at[:19].replace("T", " ")
    where = f", on {attempt.machine}" if attempt.status != "ok" else ""
    about = f"({duration(attempt.seconds)}{again}, {when} UTC{where})"
    named = "" if attempt.kind == "fit" else f", trial {attempt.key[:TRIAL_DIGITS]}"
    head = one_line(f"{attempt.status} {attempt.kind} {attempt.title} {about}{named}")
    error = [f"  {one_line(attempt.error)}"] if attempt.error else []
    return [head, *error, *detail_lines(attempt.trace, attempt.output)]
