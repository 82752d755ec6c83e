"""``bench new``: a working plugin to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from bench_core.cli import options

KINDS = ("learner", "dataset", "metric", "cost-model", "report")


@click.command("new")
@click.argument("kind", type=options.Choice(KINDS), metavar="KIND")
@click.argument("name")
@click.option("--package", is_flag=True, help="Write an installable package into a new folder.")
@options.quiet_option
@options.debug_option
def new_command(kind: str, name: str, package: bool) -> None:
    """Write a new plugin NAME that works: one file, or a package with tests.

    KIND is learner, dataset, metric, cost-model or report.

    Examples:
      bench new learner top-k                a file top_k.py, for -p top_k
      bench new learner top-k --package      a folder top-k with tests, CI and an entry point
      bench new cost-model my-bills
    """
    from bench_core.scaffold import files, tries, write

    texts = files(kind, name, package, options.registry())
    write(texts)
    module = name.replace("-", "_")
    for place, text in texts.items():
        click.echo(f"wrote {place} ({len(text.splitlines())} lines)")
    if package:
        first = [f"pip install --editable {Path(name)}", f"bench check {name}"]
    else:
        first = [f"bench check -p {module}"]
    lines = [*first, *tries(kind, name, "" if package else module)]
    options.note("Now, each a command:")
    for line in lines:
        options.note(f"  {line}")
