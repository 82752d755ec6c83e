"""``bench audit``: replay every query at every point to check the declared costs."""

from pathlib import Path
from typing import Any

import click

from bench_core.cli import options
from bench_core.cli.run import doing_again, failures
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
@options.stored_run_options
def command(run: str, output: Path | None, **given: Any) -> int:
    """Audit RUN in full: all its trials, every query, every operating point."""
    from bench_core.api.orchestration import audited

    check_output(output)
    with doing_again("", run, **given) as (asked, show):
        result = audited(run, asked, show)
    replayed, refused = result.counts.get("ok", 0), len(result.audit_failures)
    broken = sum(result.counts.values()) - replayed
    verdict = {"verified": replayed - refused, "failed the audit": refused}
    verdict["could not be audited"] = broken
    last = f"run {result.run}: {counted(verdict) or 'there is nothing to audit'}"
    write_text(output or Path("-"), "\n".join([*failures(result), last]) + "\n")
    return result.exit_status
