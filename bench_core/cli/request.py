"""The options of ``run`` and ``plan``, and the request they make."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.cli.options import Command

if TYPE_CHECKING:
    from bench_core.planning.request import RunRequest

EXECUTORS = ("local", "inline")
AUDITS = ("sample", "full", "off")


def _text(*spellings: str, **settings: Any) -> Any:
    return click.option(*spellings, **({"default": ""} | settings))


_OPTIONS = (
    _text("-s", "--suite", metavar="NAME", help="The suite to run: 'bench list suites'."),
    options.names_option(
        "-d",
        "--data",
        help="Data sets by name, or files (SVMlight, CSV, Parquet; write ./letters for a file that "
        "has a data set's name). With --suite, those of its data sets to use.",
    ),
    _text("--valid", metavar="FILE", help="Validation file; without one a part of --data."),
    _text("--test", metavar="FILE", help="Test file; without one a part of --data."),
    _text("--label", metavar="COLUMN", help="Column of the label, for CSV and Parquet."),
    _text("--query", metavar="COLUMN", help="Column of the query, for CSV and Parquet."),
    _text("--split", metavar="COLUMN", help="Column with the values train, valid and test."),
    _text("--task", metavar="TASK", help="ranking, regression, binary or multiclass."),
    options.names_option(
        "-m", "--metric", "metrics", help="Metrics, the primary one first: 'bench list metrics'."
    ),
    _text(
        "--costs",
        metavar="FILE",
        help="Feature costs as CSV, JSON, TOML, 'name:cost' lines or one value a line; default: "
        "the data set's own, for files 1 each.",
    ),
    click.option(
        "--index-base",
        type=click.IntRange(0, 1),
        default=1,
        show_default=True,
        help="Number of the first feature in SVMlight files.",
    ),
    options.names_option(
        "-l", "--learners", help="Learners by name, or 'all': 'bench list learners'."
    ),
    _text("--profile", metavar="NAME", help="quick (the default), standard or paper."),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="LEARNER.FIELD=VALUE",
        help="A learner's parameter as a TOML value; a list is a grid (miser.trees=[100,300]).",
    ),
    options.numbers_option("--seeds", help="Seeds, as 0,1,2 or 0-2."),
    options.numbers_option("--folds", help="Folds of the data sets, as 0,1,2 or 0-2."),
    click.option(
        "-w", "--workers", type=click.IntRange(1), metavar="N", help="Jobs at the same time."
    ),
    click.option(
        "-t", "--threads", type=click.IntRange(1), metavar="N", help="Threads of each job."
    ),
    click.option(
        "--executor",
        type=click.Choice(EXECUTORS),
        default=EXECUTORS[0],
        show_default=True,
        help="Run jobs in processes that can be killed, or inline in this one.",
    ),
    click.option(
        "--timeout", type=options.DURATION, metavar="TIME", help="Limit of each job: 90s, 10m, 2h."
    ),
    click.option(
        "--memory", type=options.MEMORY, metavar="SIZE", help="Limit of each job: 500MiB, 4GiB."
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
    click.option("--no-progress", is_flag=True, help="Show no progress bars or lines."),
)


def request_options(command: Command) -> Command:
    """All options of a run."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def request(
    *,
    plugins: Sequence[str],
    store: Path,
    data_dir: Path | None,
    seeds: tuple[int, ...],
    folds: tuple[int, ...],
    workers: int | None,
    threads: int | None,
    timeout: float | None,
    memory: float | None,
    **given: Any,
) -> RunRequest:
    """The request that the options of ``request_options`` and ``-p`` make."""
    from bench_core.planning.request import RunRequest

    options.find_plugins_here(plugins)
    return RunRequest(
        plugins=tuple(plugins),
        store=str(store),
        data_dir=str(data_dir or ""),
        seeds=seeds or None,
        folds=folds or None,
        workers=workers or 0,
        threads=threads or 0,
        timeout=timeout or 0.0,
        memory=int(memory or 0),
        **given,
    )
