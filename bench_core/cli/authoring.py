"""``bench new`` and ``check``: write a first plugin, and check that one keeps its promises."""

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
    """Write a working plugin NAME: one file, or a package with tests.

    KIND is learner, policy (a learner that chooses the next purchase of each row), dataset, metric,
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
    # -p names a module; a package is installed
    first = [f"bench check -p {module}"]
    if package:
        first = [f"pip install --editable {name}", f"bench check {name}"]
    options.note("Next commands:")
    for line in [*first, *tries(kind, name, "" if package else module)]:
        options.note(f"  {line}")


@click.command("check")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--kind",
    type=click.Choice([*KINDS]),
    help="Kind of NAME, if several kinds share the name.",
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
    """Check a plugin; each fault comes with a remedy.

    NAME is a learner, data set, metric, cost model, report or plugin. Without NAME, everything is
    checked that the modules of -p register.

    Examples:
      bench check -p my_module                 everything in a module of the current folder
      bench check top-k --set top-k.trees=5    a learner, with parameters for a quick fit
      bench check my-plugin                    everything in an installed plugin

    A check fits one or two models on a few hundred rows; a learner takes seconds. The checks are
    functions of bench_core/conformance; docs/reference/plugins.md shows how to run them in
    your own tests.
    The exit status is 1 if a promise is broken.
    """
    if not names and not plugins:
        raise UsageError("nothing to check: give NAME, or a module of this folder by -p MODULE")
    from bench_core.conformance import chosen_cases

    registry = options.registry(plugins, data_dir)
    which = KINDS[kind] if kind else ""
    cases = chosen_cases(registry, names, plugins, settings, which, data_dir)
    # cases of one subject are adjacent
    broken = 0
    for subject, own in groupby(cases, key=lambda case: case.subject):
        broken += _check(subject, list(own))
    return 1 if broken else 0


def _check(subject: str, cases: list[Case]) -> int:
    """Run the cases of one subject, show the faults and return their number."""
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
    skipped = f", {len(cases) - ran} not run because of it" if ran < len(cases) else ""
    seconds = time.perf_counter() - begun
    click.echo(f"  {ran - len(broken)} of {ran} checks hold{skipped} ({seconds:.1f} s)")
    return len(broken)
