"""``bench new``: a working plugin to begin with."""

import click

from bench_core.cli import options
from bench_core.scaffold import KINDS, files, tries, write


@click.command("new")
@click.argument("kind", type=click.Choice([*KINDS]), metavar="KIND")
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
    texts = files(kind, name, package, options.registry())
    write(texts)
    for place, text in texts.items():
        click.echo(f"wrote {place} ({len(text.splitlines())} lines)")
    module = name.replace("-", "_")
    first = [f"bench check -p {module}"]
    if package:
        first = [f"pip install --editable {name}", f"bench check {name}"]
    options.note("Now, each a command:")
    for line in [*first, *tries(kind, name, "" if package else module)]:
        options.note(f"  {line}")
