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
from bench_core.cli.report import write_report
from bench_core.errors import UsageError, one_line
from bench_core.planning.request import RunRequest
from bench_core.terminal.wording import counted, duration, notices

if TYPE_CHECKING:
    from bench_core.api import RunResult
    from bench_core.execution.events import Event, OnEvent
    from bench_core.plugins import Registry

GO_ON = "; the same command goes on from there"

# all options of a run but those of every verb
run_options = options.together(
    options.request_options(RunRequest, "plugins"), options.no_progress_option
)


def request(*, store: Path, **given: Any) -> RunRequest:
    """The request that the options of a verb make."""
    return RunRequest(store=str(store), **given)


@click.command("run")
@run_options
@options.output_option
@options.common_options
def run_command(output: Path | None, **given: Any) -> int:
    """Run learners on data and show the leaderboard.

    What to run is a suite, or data sets or files of your own. Results are kept in the store;
    what it already holds is not done again.

    Examples:
      bench run --suite quickstart
      bench run --suite yahoo --learners miser,cronus,cegb --data-dir ~/data
      bench run --data train.svm --test test.svm --costs mine.csv --learners all
      bench run --data visits.csv --label ill --task binary --metric auc
      bench run -s letters --set miser.trees=300 --set miser.tradeoff=[0.1,1,10] --seeds 0-2
      bench run -s quickstart -p my_module -l mine      a learner of the current folder

    Units: --timeout 90s, 10m or 2h; --memory 500MiB or 4GiB; costs are in the unit of the cost
    file. Interrupt at any time: finished work is kept, and the same command does the rest.
    """
    from bench_core.api.orchestration import carried_out, registry_of
    from bench_core.leaderboard.reports import report_for

    asked = request(**given)
    registry = registry_of(asked)
    report_for(registry, output)  # refused before hours are spent
    with following(GO_ON) as show:
        result = carried_out(asked, registry, show)
    return show_result(registry, result, output)


@contextmanager
def following(advice: str = "") -> Iterator[OnEvent]:
    """The display of work on a run; where the user interrupts the work, the command ends."""
    from bench_core.api import Interrupted
    from bench_core.terminal.progress import progress

    quiet, bars = options.flag("quiet"), not options.flag("no_progress")
    display = progress(quiet=quiet, bars=bars, verbose=options.flag("verbose"))
    try:
        with interruptible() as stopping, display as show:

            def shown(event: Event) -> None:
                show(event)
                if stopping:  # and the exception was lost
                    raise KeyboardInterrupt

            yield shown
    except Interrupted as stop:
        options.complain(f"interrupted: {summary(stop.result)}{advice}")
        raise click.exceptions.Exit(stop.result.exit_status) from None


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """Take SIGTERM and SIGHUP for Ctrl-C, unless they are ignored. Yields the signals so far: an
    exception that is raised in a callback from compiled code is lost."""
    stopping: list[int] = []

    def stop(number: int, frame: object) -> None:
        stopping.append(number)
        raise KeyboardInterrupt

    names = ("SIGINT", "SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread may handle signals
    # nohup ignores SIGHUP: that stays so
    usual = (signal.SIG_DFL, signal.default_int_handler)
    before = {n: was for n in numbers if (was := signal.getsignal(n)) in usual}
    try:
        for number in before:
            signal.signal(number, stop)
        yield stopping
    finally:
        for number, was in before.items():
            signal.signal(number, was)


@contextmanager
def doing_again(
    advice: str, run: str, *, store: Path, plugins: Sequence[str], **given: Any
) -> Iterator[tuple[RunRequest, OnEvent]]:
    """The request of a verb that does the work of a stored run again, and a display of events.

    UsageError where the run was made with more plugins: no store, which may be somebody else's,
    says what is imported.
    """
    from bench_core.results.store import Store

    lacking = [x for x in Store(store).info(run).request.get("plugins", ()) if x not in plugins]
    if lacking:
        flags = " ".join(f"-p {module}" for module in lacking)
        raise UsageError(
            f"the run was made with {flags}, and a store by itself imports nothing: add {flags} "
            "if the code is yours"
        )
    with following(advice) as show:
        yield request(plugins=plugins, store=store, **given), show


def show_result(registry: Registry, result: RunResult, output: Path | None) -> int:
    """Write the report on a run that was carried out, and what to do next; the exit status."""
    info = write_report(registry, result.store, result.run, output)
    store = options.store_words(result.store)
    # below the board, on stderr
    lines = ["", *notices(info), summary(result)]
    if any(status != "skipped" for _, status, _ in result.failures):
        lines.append(f"why trials failed: bench log{store} --failed")
    lines.append(f"next: bench report{store} -o board.html; bench best{store} --budget COST")
    for line in lines:
        options.note(line)
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
    # a refused trial may be among the failures already
    named = {title for title, _, _ in result.failures}
    return lines + [f"audit failed: {t}" for t in result.audit_failures if t not in named]
