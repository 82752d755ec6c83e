"""``bench run``: the main job, from data to leaderboard; its options are those of ``plan`` too."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.cli.report import report_for, write_report
from bench_core.errors import UsageError, one_line
from bench_core.planning.request import RunRequest
from bench_core.terminal.wording import counted, duration, notices

if TYPE_CHECKING:
    from bench_core.api import RunResult
    from bench_core.execution.events import OnEvent
    from bench_core.plugins import Registry

GO_ON = "; the same command goes on from there"

run_options = options.together(
    options.request_options(RunRequest, "plugins"), options.no_progress_option
)
"""All options of a run but those of every verb."""


def request(
    *, plugins: tuple[str, ...], store: Path, data_dir: Path | None = None, **given: Any
) -> RunRequest:
    """The request that the options of a verb make."""
    options.find_plugins_here(plugins)
    return RunRequest(plugins=plugins, store=str(store), data_dir=str(data_dir or ""), **given)


@click.command(
    "run",
    short_help="Run learners on data and show the leaderboard.",
    epilog="""\b
Examples:
  bench run --suite quickstart
  bench run --suite yahoo --learners miser,cronus,cegb --data-dir ~/data
  bench run --data train.svm --test test.svm --costs mine.csv --learners all
  bench run --data visits.csv --label ill --task binary --metric auc
  bench run -s letters --set miser.trees=300 --set miser.tradeoff=[0.1,1,10] --seeds 0-2
  bench run -s quickstart -p my_module -l mine      a learner of the current folder

\b
Units: --timeout 90s, 10m or 2h; --memory 500MiB or 4GiB; costs are in the unit of the cost file.
Interrupt at any time: finished work is kept, and the same command does the rest.""",
)
@run_options
@options.output_option
@options.common_options
def command(
    no_progress: bool, output: Path | None, quiet: bool, verbose: bool, **given: Any
) -> int:
    """Run learners on data and show the leaderboard.

    What to run is a suite, or data sets or files of your own. Results are kept in the store;
    what it already holds is not done again.
    """
    from bench_core.api.orchestration import carried_out, registry_of

    asked = request(**given)
    registry = registry_of(asked)
    report_for(registry, output)  # refused before hours are spent
    with following(GO_ON, no_progress, quiet, verbose) as show:
        result = carried_out(asked, registry, show)
    return show_result(registry, result, output, quiet, verbose)


@contextmanager
def following(advice: str, no_progress: bool, quiet: bool, verbose: bool) -> Iterator[OnEvent]:
    """The display of work on a run; where the user interrupts the work, the command ends."""
    from bench_core.api import Interrupted
    from bench_core.terminal.progress import progress

    try:
        with (
            interruptible(),
            progress(quiet=quiet, bars=not no_progress, verbose=verbose) as show,
        ):
            yield show
    except Interrupted as stop:
        options.note(f"interrupted: {summary(stop.result)}{advice}")
        raise click.exceptions.Exit(stop.result.exit_status) from None


@contextmanager
def interruptible() -> Iterator[None]:
    """Take SIGTERM and SIGHUP for Ctrl-C, unless they are ignored."""
    names = ("SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) is signal.SIG_DFL}
    if threading.current_thread() is not threading.main_thread():
        before = {}  # only the main thread may handle signals
    try:
        for number in before:
            signal.signal(number, signal.default_int_handler)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def needed_plugins(store: Path, run: str, named: Sequence[str]) -> tuple[str, ...]:
    """The modules named now; UsageError where the run was made with others too: no store, which
    may be somebody else's, says what is imported."""
    from bench_core.results.store import Store

    lacking = [x for x in Store(store).info(run).request.get("plugins", ()) if x not in named]
    if lacking:
        flags = " ".join(f"-p {module}" for module in lacking)
        raise UsageError(
            f"the run was made with {flags}, and a store by itself imports nothing: add {flags} "
            "if the code is yours"
        )
    return tuple(named)


@contextmanager
def doing_again(
    advice: str,
    run: str,
    *,
    store: Path,
    plugins: Sequence[str],
    no_progress: bool,
    quiet: bool,
    verbose: bool,
    **given: Any,
) -> Iterator[tuple[RunRequest, OnEvent]]:
    """The request of a verb that does the work of a stored run again, and a display of events."""
    modules = needed_plugins(store, run, plugins)
    with following(advice, no_progress, quiet, verbose) as show:
        yield request(plugins=modules, store=store, **given), show


def show_result(
    registry: Registry, result: RunResult, output: Path | None, quiet: bool, verbose: bool
) -> int:
    """Write the report on a run that was carried out, and what to do next; the exit status."""
    info = write_report(registry, result.store, result.run, output, verbose=verbose)
    store = options.store_words(result.store)
    lines = ["", *notices(info), summary(result)]
    if any(status != "skipped" for _, status, _ in result.failures):
        lines.append(f"why trials failed: bench log{store} --failed")
    lines.append(f"next: bench report{store} -o board.html; bench best{store} --budget COST")
    for line in lines:
        options.note(line, quiet)
    return result.exit_status


def summary(result: RunResult) -> str:
    """Counts by status, reused trials, duration, and the store."""
    counts = {**result.counts, "refused by the audit": len(result.audit_failures)}
    reused = f" ({result.reused} of them from before)" if result.reused else ""
    spent = f"in {duration(result.seconds)}, kept in {result.store}"
    return f"run {result.run}: {counted(counts) or 'no trials'}{reused} {spent}"


def failures(result: RunResult) -> list[str]:
    """One line for each trial that failed, and for each that the audit refused."""
    lines = [f"{status}: {title}: {one_line(error)}" for title, status, error in result.failures]
    named = {title for title, _, _ in result.failures}
    return lines + [f"audit failed: {t}" for t in result.audit_failures if t not in named]
