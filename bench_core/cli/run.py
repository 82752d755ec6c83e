"""``bench run`` and ``report``, and the verbs that repeat work of a stored run: ``audit``,
``reprice`` and ``rerun``."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core._io.files import at_home
from bench_core._io.machine import installed
from bench_core.cli import options
from bench_core.cli.outputs import guarded
from bench_core.errors import UsageError, one_line
from bench_core.option_fields import options_of
from bench_core.planning.request import RunRequest
from bench_core.results.budgets import Budget, as_share, limits_of
from bench_core.terminal.tables import complain, on_terminal, write_text
from bench_core.terminal.wording import counted, duration

if TYPE_CHECKING:
    from bench_core.execution.runner import RunResult
    from bench_core.planning.plan import Event, OnEvent
    from bench_core.plugins import Registry

CURVES = "curves"  # the report that --plot writes
DIFFERS = 1
_SHOWN = 5  # differing numbers
FIRST = "quickstart"  # the suite of a run without data
FIRST_TAKES = (
    "real data, about 10 s on two cores; the first run compiles code and takes half a minute"
)
GO_ON = "; repeat the command to continue"

# all options of a run except the common options of verbs
run_options = options.together(
    options.request_options(RunRequest, "plugins"), options.no_progress_option
)


def asked_for(**arguments: Any) -> RunRequest:
    """Return the request of a run. Without data or suite it uses the data set of ``datasets.toml``
    in the current folder, else the suite ``FIRST``; a note says so."""
    from bench_core.datasets.user_datasets import FILE, open_registry, project_names
    from bench_core.planning.resolve_datasets import file_options

    run_request = request(**arguments)
    project = () if run_request.suite or run_request.data else project_names()
    if len(project) > 1:
        raise UsageError(f"{FILE} has {', '.join(project)}: choose with --data")
    if project:
        registered = open_registry(run_request.plugins, run_request.data_dir).datasets
        if not getattr(registered.get(project[0]), "place", ""):
            raise UsageError(f"{FILE}: [{project[0]}] has the name of another data set; rename it")
        options.note(f"data set {project[0]} of {FILE}")
        return replace(run_request, data=tuple(project))
    if run_request.suite or run_request.data or file_options(run_request):
        return run_request
    options.note(f"no data given; running suite {FIRST}: {FIRST_TAKES}")
    return replace(run_request, suite=FIRST)


def request(*, store: Path, **arguments: Any) -> RunRequest:
    """Return the request made by a verb's options."""
    return RunRequest(store=str(store), **arguments)


@click.command("run")
@click.argument("bundle", type=options.FILE, required=False)
@run_options
@options.output_option
@options.common_options
def run_command(bundle: Path | None, output: Path | None, **arguments: Any) -> int:
    """Run learners on data and show the leaderboard.

    Give a suite, or data sets or files of your own. The default is the data set of 'bench init' in
    this folder, or else five learners on real data (suite quickstart). Results are kept in the
    store; finished work is not repeated.

    Examples:
      bench run
      bench run --suite yahoo --learners miser,cronus,cegb --data-dir ~/data
      bench run --data train.svm --test test.svm --costs mine.csv --learners all
      bench run --data visits.csv --label ill --task binary --metric auc
      bench run -s letters --set miser.trees=300 --set miser.tradeoff=[0.1,1,10] --seeds 0-2
      bench run -d breast-cancer -p my_module -l mine   a learner of the current folder
      bench run run.zip           repeat a run of 'bench bundle' and compare each number

    Units: --timeout 90s, 10m or 2h; --memory 500MiB or 4GiB; costs are in the unit of the cost
    file. You may interrupt at any time: finished work is kept; repeat the command to continue.
    """
    if bundle is not None:
        return repeated(bundle, output, **arguments)
    registry, result = measured(asked_for(**arguments), output)
    return show_result(registry, result, output)


def measured(run_request: RunRequest, output: Path | None) -> tuple[Registry, RunResult]:
    """Carry out a request; ``output`` is the report to be written then."""
    from bench_core.execution.orchestration import carried_out, registry_of
    from bench_core.leaderboard.reports import report_for

    registry = registry_of(run_request)
    report_for(registry, output)  # fail before hours of work
    with following(GO_ON) as show:
        return registry, carried_out(run_request, registry, show)


def repeated(
    bundle: Path,
    output: Path | None,
    *,
    store: Path,
    data_dir: str,
    plugins: Sequence[str],
    **more: Any,
) -> int:
    """Repeat the run of a bundle in a folder of its name, show the board, and compare all results.

    The store is in that folder unless ``--store`` names another. Raises UsageError for options that
    the bundle decides, and for its modules unless ``-p`` names them.
    """
    from bench_core.planning.bundle import unpack
    from bench_core.results.operating_points import with_choices
    from bench_core.results.store import Store

    source = click.get_current_context().get_parameter_source
    for option in options_of(RunRequest).values():
        given = source(option.name) is click.core.ParameterSource.COMMANDLINE
        if given and option.decides and option.name != "plugins":
            raise UsageError(f"{option.flags[-1]}: {bundle} decides it; leave it out")
    if bundle.suffix != ".zip":
        raise UsageError(f"{bundle} is not a bundle (.zip): give data by --data, suites by --suite")
    again = unpack(bundle, Path(bundle.stem))
    check_modules(f"its modules are in {again.folder}/", again.request.plugins, plugins)
    home = again.folder.absolute()
    chosen = source("store") is not click.core.ParameterSource.DEFAULT
    places: dict[str, Any] = {
        "store": str(Path.cwd() / store if chosen else home / options.STORE),
        "data_dir": str(at_home(data_dir).absolute()) if data_dir else "",
        "plugins": plugins,
    }
    how = (option.name for option in options_of(RunRequest).values() if not option.decides)
    places |= {name: more[name] for name in how if name in more}
    with chdir(home):
        options.find_plugins_here()
        registry, result = measured(replace(again.request, **places), output)
    if not chosen:
        result = replace(result, store=again.folder / options.STORE)
    status = show_result(registry, result, output)
    kept = Store(result.store)
    rows, lines = again.differences(with_choices(kept.frame(result.run), kept.info(result.run)))
    for line in lines[:_SHOWN]:
        options.note(f"  {line}")
    same = f"all {rows} rows of the results have the same digits"
    options.note(f"{len(lines)} of {rows} rows of the results differ" if lines else same)
    if lines and (then := again.about["versions"]) != installed():
        options.note(f"versions: {then} then, {installed()} now")
    return max(status, DIFFERS) if lines else status


@contextmanager
def following(advice: str = "") -> Iterator[OnEvent]:
    """Display the work on a run. If the user interrupts the work, the command ends."""
    from bench_core.execution.runner import Interrupted
    from bench_core.terminal.progress import progress

    quiet, bars = options.flag("quiet"), not options.flag("no_progress")
    display = progress(quiet=quiet, bars=bars, verbose=options.flag("verbose"))
    try:
        with interruptible() as stopping, display as show:

            def shown(event: Event) -> None:
                show(event)
                if stopping:  # the exception was lost
                    raise KeyboardInterrupt

            yield shown
    except Interrupted as stop:
        complain(f"interrupted: {summary(stop.result)}{advice}")
        raise click.exceptions.Exit(stop.result.exit_status) from None


@contextmanager
def interruptible() -> Iterator[list[int]]:
    """Treat SIGTERM and SIGHUP as Ctrl-C unless they are ignored. Yields the signals received,
    since an exception raised in a callback from compiled code is lost."""
    stopping: list[int] = []

    def stop(number: int, frame: object) -> None:
        stopping.append(number)
        raise KeyboardInterrupt

    names = ("SIGINT", "SIGTERM", "SIGHUP")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
        numbers = []  # only the main thread may handle signals
    # nohup ignores SIGHUP: keep it ignored
    usual = (signal.SIG_DFL, signal.default_int_handler)
    before = {n: was for n in numbers if (was := signal.getsignal(n)) in usual}
    try:
        for number in before:
            signal.signal(number, stop)
        yield stopping
    finally:
        for number, was in before.items():
            signal.signal(number, was)


def check_modules(what: str, modules: Iterable[str], allowed: Sequence[str]) -> None:
    """Raise UsageError for modules that the user did not name: a file of somebody else must not
    decide which code is imported."""
    if lacking := [module for module in modules if module not in allowed]:
        flags = " ".join(f"-p {module}" for module in lacking)
        raise UsageError(f"the run was made with {flags}; {what}: add {flags} if you trust it")


@contextmanager
def doing_again(
    advice: str, run: str, *, store: Path, plugins: Sequence[str], **arguments: Any
) -> Iterator[tuple[RunRequest, OnEvent]]:
    """Yield the request of a verb that repeats work of a stored run, and a display of events.

    Raises UsageError if the run had more plugins.
    """
    from bench_core.results.store import Store

    made_with = Store(store).info(run).request.get("plugins", ())
    check_modules("for safety a store imports no code", made_with, plugins)
    with following(advice) as show:
        yield request(plugins=plugins, store=store, **arguments), show


def show_result(registry: Registry, result: RunResult, output: Path | None) -> int:
    """Write the report of a run and the next commands; return the exit status."""
    from bench_core.leaderboard.reports import ReportRequest, write_report
    from bench_core.results.store import Store

    here = output is None and on_terminal(sys.stdout) and on_terminal(sys.stderr)
    noted = here and not options.flag("quiet")  # by the progress, just above the board
    shown = ReportRequest(result.store, result.run, output, noted=noted)
    write_report(registry, shown, options.warn)
    store = options.store_words(result.store)
    # below the board, on stderr
    lines = ["", summary(result)]
    if any(status != "skipped" for _, status, _ in result.failures):
        lines.append(f"why trials failed: bench log{store} --failed")
    uses = Store(result.store).info(result.run).datasets
    caps = [str(Budget(cap, "cap")) for use in uses for cap in use.caps]
    first = f"best --budget '{caps[0]}'" if caps else "best"
    verbs = ["report -o board.html"]
    if result.counts.get("ok") and any(
        use.metrics and use.metrics[0] not in use.undefined for use in uses
    ):
        verbs += [first, "features", "model export -o model/"]
    lines.append(f"next: {'; '.join(f'bench {verb}{store}' for verb in verbs)}")
    for line in lines:
        options.note(line)
    return result.exit_status


def summary(result: RunResult) -> str:
    """Return counts by status, reused trials, duration and the store."""
    counts = {**result.counts, "refused by the audit": len(result.audit_failures)}
    reused = f" ({result.reused} reused)" if result.reused else ""
    spent = f"in {duration(result.seconds)}, kept in {result.store}"
    return f"run {result.run}: {counted(counts) or 'no trials'}{reused} {spent}"


def failures(result: RunResult) -> list[str]:
    """Return one line for each failed trial and each trial refused by the audit."""
    lines = [f"{status}: {title}: {one_line(error)}" for title, status, error in result.failures]
    # a refused trial may already be among the failures
    named = {title for title, _, _ in result.failures}
    return lines + [f"audit failed: {t}" for t in result.audit_failures if t not in named]


@click.command("report")
@options.run_argument
@options.names_option("-d", "--data", help="Data sets of the run.  [default: all]")
@options.names_option("-l", "--learners", help="Learners of the run.  [default: all]")
@options.budget_options
@options.keep_option("Share of the reference's best quality that answers are sure to keep.")
@options.output_option
@click.option(
    "--plot", type=options.FILE, metavar="FILE", help="Draw the curves in this file: .svg .pdf .png"
)
@guarded("plot")
@options.names_option("--columns", help="Columns of tables, such as 'quality,±,cheaper,<= 20'.")
@click.option(
    "--against",
    default="",
    metavar="LEARNER",
    help="Add p of each difference to this learner, which -l need not name.",
)
@click.option("--methods", is_flag=True, help="Show a paragraph on the run's methods.")
@options.store_option
@options.few_options
def report_command(
    run: str,
    data: tuple[str, ...],
    learners: tuple[str, ...],
    budget: str | None,
    budget_kind: str,
    keep: str | None,
    output: Path | None,
    plot: Path | None,
    columns: tuple[str, ...],
    against: str,
    methods: bool,
    store: Path,
    plugins: Sequence[str],
) -> int:
    """Show the leaderboard of RUN, or write it as a page, tables for papers, or a figure.

    RUN is 'last', a run's number or the start of its name.

    Examples:
      bench report                      the last run, on the terminal
      bench report -o board.html        one self-contained page with the cost-quality curves
      bench report 3 -o board.tex       or .md, .csv, .json, .txt: tables for papers and programs
      bench report --budget 10,20,40    quality of learners at these costs
      bench report --keep 95%           answers that keep 95% of the reference's quality
      bench report --against mine --budget 10,20 -o mine.tex       p of differences to 'mine'
      bench report --plot curve.pdf     or .svg, .png: the curves as a figure
      bench report -l cegb,gbrt         these learners, ranked and tested among each other
      bench report --methods            a paragraph on the run's methods
      bench report --columns cost,kept,tier,area       other columns

    Operating points are chosen on validation; figures are from test. Costs are means per row, in
    the unit of the data set's prices. docs/reference/reading-the-board.md lists the --columns;
    'quality' is the metric. p is two-sided, of each learner's best quality, tested as in 'bench
    compare --budget inf', adjusted by Holm over the other learners; 'p <= 20' is a column, too.
    FILE's suffix sets the format; plugins may add formats.
    """
    from bench_core.leaderboard.reports import (
        ReportRequest,
        finished,
        paragraph,
        report_for,
        write_report,
    )
    from bench_core.plugins import load_registry

    limits = limits_of(budget, budget_kind, unlimited=False)
    budgets = [limit for limit in limits if isinstance(limit, Budget)]
    registry = load_registry(plugins)
    figures = registry.reports[CURVES].suffixes if CURVES in registry.reports else ()
    if plot is not None and plot.suffix.lower() not in figures:
        raise UsageError(f"--plot {plot}: a figure's name ends in {', '.join(figures)}")
    if plot is not None and find_spec("matplotlib") is None:
        raise UsageError("--plot: drawing needs matplotlib; pip install 'budget-bench[plot]'")
    files: list[Path | None] = [one for one in (output, plot) if one is not None]
    for file in files:  # check all before writing one
        report_for(registry, file)
    if methods:
        click.echo(paragraph(*finished(store, run, data, learners), against, registry=registry))
    for file in files or ([] if methods else [None]):
        request = ReportRequest(
            store,
            run,
            file,
            data=data,
            learners=learners,
            budgets=budgets,
            columns=() if plot and file == plot else columns,  # a figure has none
            against=against,
            keep=0 if keep is None else as_share(keep),
        )
        write_report(registry, request, options.warn)
        if file is not None and str(file) != "-":
            options.note(f"wrote {file}")
    return 0


@click.command("audit")
@options.stored_run_options
def audit_command(run: str, output: Path | None, **arguments: Any) -> int:
    """Check RUN's costs: every trial, query and operating point.

    Examples:
      bench audit                 the last run
      bench audit 3 --workers 2

    The audit runs each model on demand, or replaces the cells that it did not buy. Its answers must
    stay the same. A trial is verified if each purchase depends only on earlier purchases. A learner
    that fails is not ranked, and the exit status is then 1.
    """
    from bench_core.execution.orchestration import audited

    with doing_again("", run, **arguments) as (asked, show):
        result = audited(run, asked, show)
    replayed, refused = result.counts.get("ok", 0), len(result.audit_failures)
    # a declared trial is listed with the failures, with its reason
    declared = sum(status == "declared" for _, status, _ in result.failures)
    verdict = {"verified": replayed - refused - declared, "declared": declared}
    verdict |= {"failed the audit": refused}
    verdict["could not be audited"] = sum(result.counts.values()) - replayed
    last = f"run {result.run}: {counted(verdict) or 'there is nothing to audit'}"
    write_text(output or Path("-"), "\n".join([*failures(result), last]) + "\n")
    return result.exit_status


@click.command("reprice")
@options.request_option(
    "costs", type=str, help="A cost file, or the name of a cost model; default: the run's costs."
)
@options.request_option("error_costs")
@options.names_option("-d", "--data", help="Data sets of the run to bill; default: all.")
@options.request_option(
    "caps", help="Caps: costs that no row may exceed, in the unit of the new costs."
)
@options.request_option(
    "encoding", help="Encoding of a cost file that is not UTF-8; default: as in the run."
)
@options.stored_run_options
def reprice_command(run: str, data: tuple[str, ...], output: Path | None, **arguments: Any) -> int:
    """Bill RUN under other costs, without training, and show the leaderboard.

    Examples:
      bench reprice --costs mine.csv                the last run
      bench reprice 3 --costs per-query.json -o board.html
      bench reprice --error-costs 500               other costs of errors

    The stored models predict again and are audited; other metrics stay the same. Learners were
    trained on the old costs: use 'bench run --costs' to train on the new costs.
    """
    from bench_core.execution.orchestration import registry_of, repriced
    from bench_core.leaderboard.reports import report_for

    with doing_again(GO_ON, run, **arguments) as (asked, show):
        registry = registry_of(asked)
        report_for(registry, output)  # fail before any work
        result = repriced(run, data, asked, registry, show)
    return show_result(registry, result, output)


@click.command("rerun")
@click.argument("trial")
@options.data_dir_option
@options.no_progress_option
@options.store_option
@options.common_options
def rerun_command(trial: str, **arguments: Any) -> int:
    """Repeat TRIAL and compare its numbers bit by bit.

    Examples:
      bench rerun 3f9a1c            the trial whose key starts with 3f9a1c
      bench rerun 3f9a1c -p mine    a trial of a learner in the current folder

    TRIAL is a trial's key, as shown by 'bench export' and 'bench log', or its start. The trial and
    its fits are repeated from scratch in a separate store. Changed code, data and libraries are
    listed. The exit status is 1 if a number differs.
    """
    from bench_core.execution.orchestration import rerun

    places = request(**arguments)
    with following() as show:
        comparison = rerun(trial, places, show)
    word = "same bits" if comparison.same else f"{len(comparison.changed)} of its numbers differ"
    click.echo(f"{comparison.title}: {word} ({comparison.rows} rows)")
    for line in comparison.changed[:_SHOWN]:
        click.echo(f"  {line}")
    if comparison.ingredients:
        click.echo("changed since:" if comparison.same else "possible causes, changed since:")
    for line in comparison.ingredients:
        click.echo(f"  {line}")
    if not (comparison.same or comparison.ingredients):
        click.echo("no recorded ingredient differs: the learner is not deterministic")
    return 0 if comparison.same else DIFFERS
