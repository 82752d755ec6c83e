"""``bench export``: the results as a table for other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_core.cli import options
from bench_core.errors import UsageError
from bench_core.terminal.tables import write_bytes

if TYPE_CHECKING:
    import pandas as pd

FORMATS = ("csv", "json", "parquet")


@click.command(
    "export",
    short_help="Write a run's results as CSV, JSON or Parquet.",
    epilog="""\b
Examples:
  bench export > results.csv
  bench export -o results.parquet
  bench export 3 --format json | head

\b
One row for each trial, operating point and split; params and point are JSON. Column chosen says
best where validation chose the point, and what the search left open; column trial is what
'bench rerun' takes.""",
)
@options.run_argument
@click.option(
    "-f",
    "--format",
    "kind",
    type=click.Choice(FORMATS),
    help="Default: by the suffix of --output, else csv.",
)
@options.output_option
@options.store_option
@options.quiet_option
@options.debug_option
def command(run: str, kind: str | None, output: Path | None, store: Path, quiet: bool) -> int:
    """Write the results of RUN: one row for each trial, operating point and split."""
    from bench_core.results.marks import with_choices
    from bench_core.results.store import Store

    chosen = kind or _by_suffix(output)
    if chosen == "parquet" and output is None:
        raise UsageError("parquet is no text: name a file with -o results.parquet")
    opened = Store(store)
    content = _WRITERS[chosen](with_choices(opened.frame(run), opened.info(run)))
    if output is None:
        click.echo(content, nl=False)
    else:
        write_bytes(output, content)
        options.note(f"wrote {output}", quiet)
    return 0


def _by_suffix(output: Path | None) -> str:
    suffix = output.suffix.lower().lstrip(".") if output else "csv"
    if suffix not in FORMATS:
        raise UsageError(
            f"{output}: its suffix is no format: end it in .csv, .json or .parquet, "
            "or give --format"
        )
    return suffix


def _json(frame: pd.DataFrame) -> bytes:
    """A list of objects; what is missing is null, numbers keep all their digits."""
    import json

    import numpy as np

    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    lines = (json.dumps(row, default=np.generic.item, allow_nan=False) for row in rows)
    return ("[\n" + ",\n".join(lines) + "\n]\n").encode()


def _parquet(frame: pd.DataFrame) -> bytes:
    from io import BytesIO

    buffer = BytesIO()
    try:
        frame.to_parquet(buffer, index=False)
    except ImportError as error:
        raise UsageError(
            "Parquet needs pyarrow: pip install 'budget-bench[parquet]', or export csv"
        ) from error
    return buffer.getvalue()


_WRITERS: dict[str, Callable[[pd.DataFrame], bytes]] = {
    "csv": lambda frame: frame.to_csv(index=False, lineterminator="\n").encode(),
    "json": _json,
    "parquet": _parquet,
}
