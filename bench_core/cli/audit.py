"""``bench audit``: replay every query at every point to check the declared costs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from bench_core.cli import options
from bench_core.cli.run import failures, following, needed_plugins
from bench_core.terminal.tables import check_output, write_text
from bench_core.terminal.wording import counted


@click.command(
    "audit",
    short_help="Check a run's declared costs on every query and point.",
    epilog="""\b
Examples:
  bench audit                 the last run
  bench audit 3 --workers 2

\b
Cells that a model did not declare as bought are replaced; its answer must stay the same, bit by
bit. A learner that fails leaves the ranking, and the exit status is then 1.""",
)
@options.run_argument
@options.workers_option
@options.executor_option
@options.no_progress_option
@options.output_option
@options.store_option
@options.common_options
def command(
    run: str,
    output: Path | None,
    store: Path,
    plugins: Sequence[str],
    no_progress: bool,
    quiet: bool,
    verbose: bool,
    **given: Any,
) -> int:
    """Audit RUN in full: all its trials, every query, every operating point."""
    from bench_core import api

    check_output(output)
    modules = needed_plugins(store, run, plugins)
    options.find_plugins_here(modules)
    with following("", no_progress, quiet, verbose) as show:
        result = api.audit(run, store=str(store), plugins=modules, on_event=show, **given)
    replayed, refused = result.counts.get("ok", 0), len(result.audit_failures)
    broken = sum(result.counts.values()) - replayed
    verdict = {"verified": replayed - refused, "failed the audit": refused}
    verdict["could not be audited"] = broken
    last = f"run {result.run}: {counted(verdict) or 'there is nothing to audit'}"
    write_text(output or Path("-"), "\n".join([*failures(result), last]) + "\n")
    return result.exit_status
