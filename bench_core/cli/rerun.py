"""``bench rerun``: do one trial again from nothing, and compare every bit."""

from __future__ import annotations

from typing import Any

import click

from bench_core.cli import options
from bench_core.cli.run import following, request

DIFFERS = 1
_SHOWN = 5


@click.command(
    "rerun",
    short_help="Do one trial again, and compare every bit.",
    epilog="""\b
Examples:
  bench rerun 3f9a1c            the trial whose name begins so
  bench rerun 3f9a1c -p mine    one of a learner of the current folder

\b
TRIAL is what 'bench export' and 'bench log' show as trial, or its beginning. The trial and the
fits under it are done from nothing in a store of their own. Exit status 1 where a number
differs.""",
)
@click.argument("trial")
@options.data_dir_option
@options.no_progress_option
@options.store_option
@options.common_options
def command(trial: str, **given: Any) -> int:
    """Train and score TRIAL again: the same bits, or what differs and which ingredient changed."""
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
