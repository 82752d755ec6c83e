"""``bench audit``: replay every query at every point to check the billed costs."""

from pathlib import Path
from typing import Any

import click

from bench_core.cli import options
from bench_core.cli.run import doing_again, failures
from bench_core.terminal.tables import check_output, write_text
from bench_core.terminal.wording import counted


@click.command(
    "audit",
    short_help="Check a run's costs on every query and point.",
    epilog="""\b
Examples:
  bench audit                 the last run
  bench audit 3 --workers 2

\b
A trial is verified where each purchase is made from what was bought before it. The model is
asked again on demand, or cells that it did not buy are replaced; its answers must stay the
same. A learner that fails leaves the ranking, and the exit status is then 1.""",
)
@options.stored_run_options
def command(run: str, output: Path | None, **given: Any) -> int:
    """Audit RUN in full: all its trials, every query, every operating point."""
    from bench_core.api.orchestration import audited

    check_output(output)
    with doing_again("", run, **given) as (asked, show):
        result = audited(run, asked, show)
    replayed, refused = result.counts.get("ok", 0), len(result.audit_failures)
    declared = sum(status == "declared" for _, status, _ in result.failures)
    verdict = {"verified": replayed - refused - declared, "declared": declared}
    verdict |= {"failed the audit": refused}
    verdict["could not be audited"] = sum(result.counts.values()) - replayed
    last = f"run {result.run}: {counted(verdict) or 'there is nothing to audit'}"
    write_text(output or Path("-"), "\n".join([*failures(result), last]) + "\n")
    return result.exit_status
