"""``bench run``: the main job, from data to leaderboard; its options are those of ``plan`` too."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.cli.complete import data_named, names_of, profiles_named, settings_named
from bench_core.cli.options import names_option, numbers_option
from bench_core.cli.report import report_for, write_report
from bench_core.errors import UsageError, one_line
from bench_core.terminal.wording import counted, duration, notices

if TYPE_CHECKING:
    from bench_core.api import RunResult
    from bench_core.execution.events import OnEvent
    from bench_core.planning.request import RunRequest
    from bench_core.plugins import Registry

AUDITS = ("sample", "full", "off")
GO_ON = "; the same command goes on from there"

_text = partial(click.option, default="")


def _shares(_: click.Context, __: click.Parameter, value: str) -> tuple[float, ...]:
    try:
        return tuple(float(part) for part in value.split(",") if value)
    except ValueError:
        raise click.BadParameter(f"{value!r} is no list of shares: write 0.2,0.2") from None


request_options = options.together(
    _text(
        "-s",
        "--suite",
        metavar="NAME",
        shell_complete=names_of("suite_files"),
        help="The suite to run: 'bench list suites'.",
    ),
    names_option(
        "-d",
        "--data",
        shell_complete=data_named,
        help="Data sets by name, or files (SVMlight, CSV, Parquet; write ./letters for a file that "
        "has a data set's name). With --suite, those of its data sets to use.",
    ),
    _text("--valid", metavar="FILE", help="Validation file; without one a part of --data."),
    _text("--test", metavar="FILE", help="Test file; without one a part of --data."),
    _text("--label", metavar="COLUMN", help="Column of the label, for CSV and Parquet."),
    _text("--query", metavar="COLUMN", help="Column of the query, for CSV and Parquet."),
    _text("--split", metavar="COLUMN", help="Column with the values train, valid and test."),
    _text("--task", metavar="TASK", help="ranking, regression, binary or multiclass."),
    names_option("--drop", metavar="COLUMNS", help="Columns of the file to leave out."),
    options.texts_option(
        "--group",
        "groups",
        metavar="COLUMNS:COST",
        help="Columns that one sensor measures, and its cost: a,b,c:5 or 'hist_*:5'.",
    ),
    options.count_option(
        "--cv",
        least=3,
        most=100,
        metavar="K",
        help="K-fold cross-validation of one file, queries kept whole.",
    ),
    _text(
        "--share",
        metavar="VALID,TEST",
        callback=_shares,
        help="Parts of one file for validation and test; default: 0.2,0.2.",
    ),
    _text("--unit", metavar="WORD", help="What the costs of a file count, such as ms."),
    names_option(
        *("-m", "--metric", "metrics"),
        shell_complete=names_of("metrics"),
        help="Metrics, the primary one first: 'bench list metrics'.",
    ),
    _text(
        "--costs",
        metavar="FILE",
        help="Feature costs as CSV, JSON, TOML, 'name:cost' lines or one value a line; default: "
        "the data set's own, for files 1 each.",
    ),
    options.caps_option(
        "Costs that no row may exceed, enforced row by row: learners are also measured under each."
    ),
    click.option(
        "--index-base",
        type=click.IntRange(0, 1),
        default=1,
        show_default=True,
        help="Number of the first feature in SVMlight files.",
    ),
    names_option(
        "-l",
        "--learners",
        shell_complete=names_of("learners"),
        help="Learners by name, or 'all': 'bench list learners'. Default: the suite's; without a "
        "suite five for a first board. What a suite leaves out on a data set runs there if --data "
        "names that too.",
    ),
    _text(
        "--reference",
        metavar="NAME",
        shell_complete=names_of("learners"),
        help="The learner that savings are measured against, put on every board. Default: the "
        "suite's; without a suite an imported model or gbrt, if it takes part, else none.",
    ),
    _text(
        "--profile",
        metavar="NAME",
        shell_complete=profiles_named,
        help="quick (the default), standard or paper.",
    ),
    options.texts_option(
        "--set",
        "settings",
        metavar="LEARNER.FIELD=VALUE",
        shell_complete=settings_named,
        help="A learner's parameter as a TOML value; a list is a grid (miser.trees=[100,300]).",
    ),
    options.count_option(
        "--configs",
        most=1000,
        help="Try N settings of each learner instead of grids: its default and N-1 from the ranges "
        "that it declares. Validation chooses.",
    ),
    numbers_option("--seeds", help="Seeds, as 0,1,2 or 0-2."),
    numbers_option("--folds", help="Folds of the data sets, as 0,1,2 or 0-2."),
    options.workers_option,
    options.count_option("-t", "--threads", help="Threads of each job."),
    options.executor_option(default="", show_default="the suite's, else local"),
    click.option(
        "--timeout",
        type=options.DURATION,
        metavar="TIME",
        help="Limit of each job, start of its process left out: 90s, 10m, 2h; "
        "seconds without a unit. Default: 24h.",
    ),
    click.option(
        "--memory",
        type=options.MEMORY,
        metavar="SIZE",
        help="Limit of each job: 500MiB, 4GiB. Counted are heap and shared memory of its process "
        "and of all that it starts (elsewhere than on Linux its process alone), not mapped files. "
        "Default: 80% of the machine's memory, shared by the workers.",
    ),
    click.option(
        "--retries",
        type=click.IntRange(0, 100),
        default=0,
        metavar="N",
        help="Try a job that does not end well up to N times more; 'bench log' has every attempt.",
    ),
    click.option(
        "--audit",
        type=click.Choice(AUDITS),
        default=AUDITS[0],
        show_default=True,
        help="Replay a sample of the queries, all of them, or none, to check the declared costs.",
    ),
    click.option("--fresh", is_flag=True, help="Do all work anew instead of reusing results."),
    click.option(
        "--strict-data", is_flag=True, help="Fail instead of falling back to generated data."
    ),
    options.data_dir_option,
    options.store_option,
    options.no_progress_option,
)
"""All options of a run."""


def request(
    *,
    plugins: Sequence[str],
    store: Path,
    data_dir: Path | None,
    seeds: tuple[int, ...],
    folds: tuple[int, ...],
    timeout: float | None,
    memory: float | None,
    **given: Any,
) -> RunRequest:
    """The request that the options of ``request_options`` and ``-p`` make."""
    from bench_core.planning.request import DAY, RunRequest

    options.find_plugins_here(plugins)
    return RunRequest(
        plugins=tuple(plugins),
        store=str(store),
        data_dir=str(data_dir or ""),
        seeds=seeds or None,
        folds=folds or None,
        timeout=timeout or DAY,
        memory=int(memory or 0),
        **given,
    )


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
@request_options
@options.output_option
@options.common_options
def command(
    no_progress: bool, output: Path | None, quiet: bool, verbose: bool, **given: Any
) -> int:
    """Run learners on data and show the leaderboard.

    What to run is a suite, or data sets or files of your own. Results are kept in the store;
    what it already holds is not done again.
    """
    from bench_core import api

    asked = request(**given)
    registry = options.registry(asked.plugins)
    report_for(registry, output)  # refused before hours are spent
    with following(GO_ON, no_progress, quiet, verbose) as show:
        result = api.run(request=asked, on_event=show)
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
    *,
    run: str = "",
    store: Path,
    plugins: Sequence[str],
    no_progress: bool,
    quiet: bool,
    verbose: bool,
    **given: Any,
) -> Iterator[dict[str, Any]]:
    """What a verb that does stored work again hands to Python; its events are displayed."""
    modules = needed_plugins(store, run, plugins) if run else tuple(plugins)
    options.find_plugins_here(modules)
    with following(advice, no_progress, quiet, verbose) as show:
        yield {**given, "store": str(store), "plugins": modules, "on_event": show}


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
