"""``bench new`` and ``check``: a plugin to begin with, and whether one keeps its promises."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import groupby
from textwrap import indent
from typing import TYPE_CHECKING

import click

from bench_core.cli import options
from bench_core.errors import UsageError
from bench_core.scaffold import KINDS, files, tries, write
from bench_core.terminal.tables import console

if TYPE_CHECKING:
    from bench_core.conformance import Case


@click.command("new")
@click.argument("kind", type=click.Choice([*KINDS]), metavar="KIND")
@click.argument("name")
@click.option("--package", is_flag=True, help="Write an installable package into a new folder.")
@options.quiet_option
@options.debug_option
def new_command(kind: str, name: str, package: bool) -> None:
    """Write a new plugin NAME that works: one file, or a package with tests.

    KIND is learner, policy (a learner that decides row by row what to buy next), dataset, metric,
    cost-model or report.

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
    # a module is named by -p, a package is installed
    first = [f"bench check -p {module}"]
    if package:
        first = [f"pip install --editable {name}", f"bench check {name}"]
    options.note("Now, each a command:")
    for line in [*first, *tries(kind, name, "" if package else module)]:
        options.note(f"  {line}")


@click.command("check")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--kind",
    type=click.Choice([*KINDS]),
    help="Which one is meant where several share the name.",
)
@options.request_option(
    "settings",
    metavar="NAME.FIELD=VALUE",
    help="A parameter of a learner or data set, or an option of a cost model, as a TOML value.",
)
@options.data_dir_option
@options.few_options
def check_command(
    names: Sequence[str],
    kind: str | None,
    settings: Sequence[str],
    data_dir: str,
    plugins: Sequence[str],
) -> int:
    """Check that a plugin keeps its promises; each fault says how to fix it.

    NAME is a learner, data set, metric, cost model, report or plugin; without one, all that the
    modules of -p register are checked.

    Examples:
      bench check -p my_module                 all that a module of the current folder registers
      bench check top-k --set top-k.trees=5    a learner, at parameters that make a fit quick
      bench check my-plugin                    all that an installed plugin registers

    A fit or two per check on a few hundred rows: a learner takes seconds. The checks are the
    functions of bench_core/conformance; docs/plugins.md says how a test of yours runs them. The
    exit status is 1 where a promise is broken.
    """
    if not names and not plugins:
        raise UsageError("name what to check, or a module of the current folder by -p MODULE")
    from bench_core.conformance import chosen_cases

    registry = options.registry(plugins, data_dir)
    which = KINDS[kind] if kind else ""
    cases = chosen_cases(registry, names, plugins, settings, which, data_dir)
    # cases of one thing stand together
    broken = 0
    for subject, own in groupby(cases, key=lambda case: case.subject):
        broken += _check(subject, list(own))
    return 1 if broken else 0


def _check(subject: str, cases: list[Case]) -> int:
    """Run the cases of one thing and show the faults; how many there are."""
    from bench_core.conformance import examine

    begun, ran, broken = time.perf_counter(), 0, []
    screen = console(stderr=True)
    screen.quiet = options.flag("quiet")
    with screen.status(subject) as status:
        for case, fault in examine(cases):
            ran += 1
            # the case that has just ended
            status.update(f"{subject}: {ran}/{len(cases)} {case.name}")
            broken += [fault] if fault else []
    click.echo(subject)
    for fault in broken:
        click.echo(indent(f"broken {fault}", "  "))
    skipped = f", {len(cases) - ran} not run for that" if ran < len(cases) else ""
    seconds = time.perf_counter() - begun
    click.echo(f"  {ran - len(broken)} of {ran} checks hold{skipped} ({seconds:.1f} s)")
    return len(broken)
