"""``bench check``: does a plugin keep the promises that the benchmark relies on?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from bench_core.cli import options
from bench_core.errors import UsageError
from bench_core.terminal.tables import console

if TYPE_CHECKING:
    from rich.status import Status

    from bench_core.conformance import Case


@click.command("check")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option(
    "--kind",
    type=click.Choice(["learner", "dataset", "metric", "cost-model", "report"]),
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
    which = {"dataset": "data set", "cost-model": "cost model"}.get(kind or "", kind or "")
    cases = chosen_cases(registry, names, plugins, settings, which, data_dir)
    broken = 0
    for subject, own in groupby(cases, key=lambda case: case.subject):
        broken += _check(subject, list(own))
    return 1 if broken else 0


def _check(subject: str, cases: list[Case]) -> int:
    """Run the cases of one thing and show the faults; how many there are."""
    from bench_core.conformance import examine

    begun = time.perf_counter()
    screen = console(stderr=True)
    screen.quiet = options.flag("quiet")
    with screen.status(subject) as status:
        found = [fault for _, fault in examine(_shown(cases, status))]
    faults = [fault for fault in found if fault]
    click.echo(subject)
    for fault in faults:
        click.echo(f"  broken {fault.replace(chr(10), chr(10) + '  ')}")
    ran = len(found)
    skipped = f", {len(cases) - ran} not run for that" if ran < len(cases) else ""
    seconds = time.perf_counter() - begun
    click.echo(f"  {ran - len(faults)} of {ran} checks hold{skipped} ({seconds:.1f} s)")
    return len(faults)


def _shown(cases: Sequence[Case], status: Status) -> Iterator[Case]:
    """The cases; a terminal shows which one is running."""
    for number, case in enumerate(cases, start=1):
        status.update(f"{case.subject}: {number}/{len(cases)} {case.name}")
        yield case
