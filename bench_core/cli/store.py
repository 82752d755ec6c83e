"""``bench export``, ``bundle``, ``log`` and ``remove``: the content of a store."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.errors import UsageError, no_formula, one_line
from bench_core.terminal.tables import write_bytes, write_text
from bench_core.terminal.wording import count, duration, run_line

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import Attempt, RunInfo
    from bench_core.results.store import Store


def csv_of(frame: pd.DataFrame) -> bytes:
    """Return a header and a line for each row; texts that look like formulas are quoted."""
    # texts are categories, so each is checked once
    for name in frame.select_dtypes("category"):
        texts = map(str, frame[name].cat.categories)  # labels may be numbers
        if any(no_formula(text) != text for text in texts):
            frame[name] = frame[name].astype(object).map(no_formula)
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text.encode()


def _json(frame: pd.DataFrame) -> bytes:
    """Return a list of objects; missing values are null, numbers keep all digits."""
    import json

    import numpy as np

    # JSON cannot encode numpy's numbers
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    lines = (json.dumps(row, default=np.generic.item, allow_nan=False) for row in rows)
    return "[\n{}\n]\n".format(",\n".join(lines)).encode()


def _parquet(frame: pd.DataFrame) -> bytes:
    texts = dict.fromkeys(frame.select_dtypes("category"), "str")
    try:
        content: bytes = frame.astype(texts).to_parquet(None, index=False)
    except ImportError as error:
        raise UsageError(
            "Parquet needs pyarrow: pip install 'budget-bench[parquet]', or export csv"
        ) from error
    return content


_Writer = Callable[["pd.DataFrame"], bytes]
WRITERS: dict[str, _Writer] = {"csv": csv_of, "json": _json, "parquet": _parquet}


@click.command("export")
@options.run_argument
@click.option(
    "-f",
    "--format",
    "kind",
    type=click.Choice([*WRITERS]),
    help="Default: by the suffix of --output, else csv.",
)
@click.option("--features", is_flag=True, help="Export purchases: share of rows by sensor.")
@options.output_option
@options.store_option
@options.quiet_option
@options.debug_option
def export_command(
    run: str, kind: str | None, features: bool, output: Path | None, store: Path
) -> int:
    """Write the results of RUN as CSV, JSON or Parquet.

    Examples:
      bench export > results.csv
      bench export -o results.parquet
      bench export 3 --format json | head
      bench export --features -o shares.csv

    There is one row for each trial, operating point and split; params and point are JSON. Column
    chosen is 'best' if validation chose the point, and notes a limit of the search; 'bench rerun'
    takes column trial. With --features there is one row for each trial, point that a budget may
    choose, and sensor: the share of test rows that buy it.
    """
    from bench_core.leaderboard.bought_sensors import shares
    from bench_core.results.store import Store

    chosen = kind or (output.suffix.lower().lstrip(".") if output else "csv")
    if chosen not in WRITERS:
        raise UsageError(f"{output}: end its name in .csv, .json or .parquet, or give --format")
    if chosen == "parquet" and output is None:
        raise UsageError("parquet is a binary format: name a file with -o results.parquet")
    opened = Store(store)
    info = opened.info(run)
    options.note(run_line(info))
    frame = shares(opened, info.run) if features else results_frame(opened, info)
    write_bytes(output or Path("-"), WRITERS[chosen](frame))
    if output is not None:
        options.note(f"wrote {output}")
    return 0


@click.command("bundle")
@options.run_argument
@click.option(
    *("-o", "--output"),
    type=options.FILE,
    metavar="FILE",
    required=True,
    help="The archive, such as run.zip.",
)
@click.option("--with-data", is_flag=True, help="Include your data files, too.")
@options.no_progress_option
@options.store_option
@options.common_options
def bundle_command(run: str, output: Path, with_data: bool, **arguments: Any) -> None:
    """Write RUN, with all that repeats it elsewhere, as one archive.

    Examples:
      bench bundle -o run.zip                  the last run
      bench bundle 3 -o run.zip --with-data    with your data files
      bench run run.zip                        elsewhere: repeat it and compare each number

    The archive holds the run's options, your files of costs, suites, settings and modules, the
    results, the page of the run, versions and commands. Published data are not included. Call it in
    the folder of the run: it checks that the same trials would be planned now.
    """
    from tempfile import TemporaryDirectory

    from bench_core.cli.run import doing_again
    from bench_core.execution.orchestration import registry_of, same_trials
    from bench_core.leaderboard.bought_sensors import shares
    from bench_core.leaderboard.reports import ReportRequest, write_report
    from bench_core.planning.bundle import PAGES, RESULTS, write_bundle
    from bench_core.results.store import Store

    if output.suffix != ".zip":
        raise UsageError(f"-o {output}: end its name in .zip")
    with doing_again("", run, **arguments) as (here, show), TemporaryDirectory() as folder:
        kept, registry = Store(here.store), registry_of(here)
        info = kept.info(run)
        same_trials(kept, info, here, registry, show)
        features, page = PAGES[0], Path(folder, PAGES[1])
        write_report(registry, ReportRequest(here.store, info.run, page), options.warn)
        results = {
            RESULTS: csv_of(results_frame(kept, info)),
            features: csv_of(shares(kept, info.run)),
            page.name: page.read_bytes(),
        }
        contents = write_bundle(output, info, results, with_data=with_data)
    options.note(f"wrote {output}: {', '.join([*results, *contents.files])}")
    if contents.data and not with_data:
        options.note(f"not included: {', '.join(contents.data)}; --with-data adds your data")


def results_frame(store: Store, info: RunInfo) -> pd.DataFrame:
    """Return the results of a run, one row for each trial, operating point and split."""
    from bench_core.results.operating_points import with_choices

    return with_choices(store.frame(info.run, compact=True), info)


@click.command("log")
@options.run_argument
@click.option("--failed", is_flag=True, help="Show only attempts that did not succeed.")
@options.output_option
@options.store_option
@options.debug_option
def log_command(run: str, failed: bool, output: Path | None, store: Path) -> int:
    """Show each attempt of RUN's fits, trials and audits: status, error, traceback and output.

    Examples:
      bench log                   the last run
      bench log --failed          only attempts that did not succeed
      bench log 3 -o log.txt

    A traceback shows the plugin's frames first. The full traceback, with bench_core and libraries,
    follows below a separating line. Only the end of a long output is kept.
    """
    from bench_core.results.store import Store

    opened = Store(store)
    info = opened.info(run)
    options.note(run_line(info))
    attempts = [a for a in opened.attempts(info.run) if not (failed and a.status == "ok")]
    none = "nothing failed" if failed else "no attempt is recorded"
    if output is not None:
        lines = [line for attempt in attempts for line in attempt_lines(attempt)]
        write_text(output, "\n".join(lines or [none]) + "\n")
        return 0
    for attempt in attempts:
        head, *details = attempt_lines(attempt)
        click.secho(head, bold=True, fg=None if attempt.status == "ok" else "red")
        click.echo("".join(f"{line}\n" for line in details), nl=False)
    if not attempts:
        click.echo(none)
    return 0


def attempt_lines(attempt: Attempt) -> list[str]:
    """Return lines on one attempt: status, error, traceback and output."""
    from bench_core.results.records import TRIAL_DIGITS
    from bench_core.terminal.progress import detail_lines

    again = f", attempt {attempt.attempt}" if attempt.attempt > 1 else ""
    when = attempt.created_at[:19].replace("T", " ")
    where = f", on {attempt.machine}" if attempt.status != "ok" else ""
    about = f"({duration(attempt.seconds)}{again}, {when} UTC{where})"
    named = "" if attempt.kind == "fit" else f", trial {attempt.key[:TRIAL_DIGITS]}"
    head = one_line(f"{attempt.status} {attempt.kind} {attempt.title} {about}{named}")
    why = [f"  {one_line(attempt.error)}"] if attempt.error else []
    return [head, *why, *detail_lines(attempt.trace, attempt.output)]


@click.command("remove")
@click.argument("runs", nargs=-1, metavar="[RUN...]")
@click.option("--fits", is_flag=True, help="Remove fitted models and keep results.")
@click.option("--cache", is_flag=True, help="Remove prepared data of all data sets.")
@click.option("-n", "--dry-run", is_flag=True, help="Only show what would be removed.")
@options.store_option
@options.quiet_option
@options.debug_option
def remove_command(
    runs: tuple[str, ...], fits: bool, cache: bool, dry_run: bool, store: Path
) -> None:
    """Remove runs, fitted models or prepared data.

    A RUN is 'last', a run's number or the start of its name.

    Examples:
      bench remove 3 4 --dry-run        show what would be removed, and its size
      bench remove 3 4                  runs with their trials and fitted models
      bench remove 3 --fits             only fitted models; results stay
      bench remove --cache              all prepared data; rebuilt when needed

    Trials and models that another run shares are kept. 'bench list runs' lists runs.
    """
    from rich.filesize import decimal

    from bench_core.datasets.cache import cache_folder
    from bench_core.results.store import Store
    from bench_core.results.writer import open_writer, plan_removal

    if not runs and not cache:
        raise UsageError("nothing to remove: name runs ('bench list runs'), or give --cache")
    verb = "would remove" if dry_run else "removed"
    if runs:
        kept = Store(store)
        what = plan_removal(kept, runs, fits_alone=fits)
        trials = "" if fits else f"{count(len(what.trials), 'trial')}, "
        # while the files exist
        models = f"{count(len(what.fits), 'fitted model')} ({decimal(what.size)})"
        if not dry_run:
            with open_writer(kept.path) as writer:
                writer.remove(what)
        options.note(f"{verb} {', '.join(what.runs)}: {trials}{models}")
    if cache:
        folders = prepared()
        size = sum(total(folder.rglob("*")) for folder in folders)
        for folder in () if dry_run else folders:
            shutil.rmtree(folder)
        options.note(f"{verb} prepared data in {cache_folder()} ({decimal(size)})")


def prepared() -> list[Path]:
    """Return the existing folders of prepared data."""
    from bench_core.datasets.cache import cache_folder

    return [path for name in ("prepared", "kept") if (path := cache_folder() / name).is_dir()]


def total(paths: Iterable[Path]) -> int:
    """Return the total size of the files among ``paths``, in bytes."""
    return sum(path.stat().st_size for path in paths if path.is_file())
