"""``bench init``: describe a data file once for all verbs in its folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bench_core.cli import options
from bench_core.datasets.table_options import TableOptions
from bench_core.errors import UsageError
from bench_core.option_fields import options_of
from bench_core.terminal.tables import console, write_text
from bench_core.terminal.wording import count

_OPTIONS = ("valid", "test", *options_of(TableOptions), "costs")


@click.command("init", short_help="Describe a data file once, for all commands in this folder.")
@click.argument("file", type=options.FILE)
@click.option("--name", default="", help="Name of the data set.  [default: the file's name]")
@options.together(*map(options.request_option, _OPTIONS))
@options.few_options
def init_command(file: Path, name: str, plugins: tuple[str, ...], **arguments: Any) -> None:
    """Describe FILE in this folder's datasets.toml: label, task, columns, prices, unit.

    The columns are inspected: dates and decimal commas are recognized, unusable columns are
    dropped. Check datasets.toml and correct it. Then 'bench run' in this folder uses its data set
    by default, and all verbs accept its name.

    Examples:
      bench init loans.csv --label repaid --positive no --costs prices.csv --unit EUR
      bench run
      bench show loans
    """
    from bench_core._io.text import read_text
    from bench_core.costs.model import NO_UNIT
    from bench_core.datasets.project import as_toml, described, name_for
    from bench_core.datasets.user_datasets import FILE, check_name, project_names
    from bench_core.datasets.user_files import FileData

    name, path = name or name_for(str(file)), Path(FILE)
    check_name(name)
    there = project_names()
    if name in there:
        raise UsageError(f"{path}: [{name}] exists already: edit it, or give --name")
    if name in options.registry(plugins).datasets:
        raise UsageError(f"{name!r} is the name of another data set: give --name")
    table, splits = described(FileData(train=str(file), **arguments), Path.cwd())
    before = f"{read_text(path).rstrip()}\n\n" if there else ""
    text = as_toml(name, table)
    write_text(path, before + text)
    rows = sum(map(len, (splits.train, splits.valid, splits.test)))
    summary = f"{count(rows, 'row')}, {count(len({*splits.columns}), 'column')}, {splits.task}"
    if not splits.costs_assumed:
        unit = "" if splits.costs.unit == NO_UNIT else f" {splits.costs.unit}"
        summary += f", all columns cost {splits.costs.everything:.6g}{unit}"
    console().out(f"wrote {path}: {summary}\n\n{text}", highlight=False)
    for note in splits.notes:
        options.note(f"note: {note}")
    several = f" --data {name}" if there else ""
    options.note(f"next: bench run{several}")
