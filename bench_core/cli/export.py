"""``bench export``: the results as a table for other programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_core.cli import options
from bench_core.errors import UsageError, no_formula
from bench_core.terminal.tables import write_bytes

if TYPE_CHECKING:
    import pandas as pd


def _csv(frame: pd.DataFrame) -> bytes:
    """A header and a line for each row; texts that would be formulas are quoted."""
    # texts are categories, so each is looked at once
    for name in frame.select_dtypes("category"):
        if any(no_formula(text) != text for text in frame[name].cat.categories):
            frame[name] = frame[name].astype(object).map(no_formula)
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text.encode()


def _json(frame: pd.DataFrame) -> bytes:
    """A list of objects; what is missing is null, numbers keep all their digits."""
    import json

    import numpy as np

    # numpy's numbers are none of JSON's
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
WRITERS: dict[str, _Writer] = {"csv": _csv, "json": _json, "parquet": _parquet}


@click.command("export")
@options.run_argument
@click.option(
    "-f",
    "--format",
    "kind",
    type=click.Choice([*WRITERS]),
    help="Default: by the suffix of --output, else csv.",
)
@click.option("--features", is_flag=True, help="What is bought: shares of rows by sensor.")
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

    One row for each trial, operating point and split; params and point are JSON. Column chosen says
    best where validation chose the point, and what the search left open; column trial is what
    'bench rerun' takes. With --features one row for each trial, point that a
    budget may choose, and sensor: the share of test rows that buy it.
    """
    from bench_core.leaderboard.bought_sensors import shares
    from bench_core.results.marks import with_choices
    from bench_core.results.store import Store

    chosen = kind or (output.suffix.lower().lstrip(".") if output else "csv")
    if chosen not in WRITERS:
        raise UsageError(f"{output}: end its name in .csv, .json or .parquet, or give --format")
    if chosen == "parquet" and output is None:
        raise UsageError("parquet is no text: name a file with -o results.parquet")
    opened = Store(store)
    if features:
        frame = shares(opened, run)
    else:
        frame = with_choices(opened.frame(run, compact=True), opened.info(run))
    write_bytes(output or Path("-"), WRITERS[chosen](frame))
    if output is not None:
        options.note(f"wrote {output}")
    return 0
