"""``bench data``: fetch a data set's files, take over one's own copy, verify what is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options

if TYPE_CHECKING:
    from bench_core.formats.download import Progress
    from bench_core.formats.source import DataFolder


@click.group(
    "data",
    short_help="Fetch, import or verify the files of data sets.",
    epilog="""\b
Examples:
  bench data fetch letters forest        from the publisher into the data folder
  bench data import mslr-web10k ~/Downloads/MSLR-WEB10K.zip
  bench data verify all                  read everything that is there and compare""",
)
def command() -> None:
    """Put the files of data sets in their place, and check them.

    The data folder is --data-dir, else BENCH_DATA, else the user's data folder. Files land in
    FOLDER/NAME, whole or not at all. 'bench show NAME' lists a data set's files.
    """


data_dir_option = click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="BENCH_DATA",
    show_envvar=True,
    metavar="FOLDER",
    help="Where the files of data sets are kept.",
)


@command.command("fetch", short_help="Download files from their publishers.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--again", is_flag=True, help="Also what is there already.")
@data_dir_option
@options.common_options
def fetch_command(
    names: tuple[str, ...],
    again: bool,
    data_dir: Path | None,
    plugins: Sequence[str],
    quiet: bool,
    verbose: bool,
    debug: bool,
) -> None:
    """Download, unpack and verify the files of data sets (NAME..., or all).

    A transfer that is cut goes on where it stopped when the same command is given again.
    """
    from bench_core.formats.publisher import fetch_dataset, is_there

    folder, say = _folder(data_dir), _say(quiet)
    for dataset in _chosen(plugins, data_dir, names, fetchable=True):
        if dataset.files and is_there(dataset, folder) and not again:
            say(f"{dataset.name}: already there ('bench data verify {dataset.name}' checks it)")
            continue
        with _bar(quiet) as progress:
            fetch_dataset(dataset, folder, say, progress)
        say(f"{dataset.name}: fetched and verified, in {_home(folder, dataset)}")


@command.command("import", short_help="Take over files that you have.")
@click.argument("name")
@click.argument("path", type=click.Path(path_type=Path))
@data_dir_option
@options.common_options
def import_command(
    name: str,
    path: Path,
    data_dir: Path | None,
    plugins: Sequence[str],
    quiet: bool,
    verbose: bool,
    debug: bool,
) -> None:
    """Copy the files of data set NAME from PATH (folder, file or archive) and verify them."""
    from bench_core.formats.publisher import import_dataset

    folder, say = _folder(data_dir), _say(quiet)
    [dataset] = _chosen(plugins, data_dir, (name,))
    import_dataset(dataset, path, folder, say)
    say(f"{name}: imported and verified, in {_home(folder, dataset)}")


@command.command("verify", short_help="Compare files with what their publisher gave.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@data_dir_option
@options.output_option
@options.common_options
def verify_command(
    names: tuple[str, ...],
    data_dir: Path | None,
    output: Path | None,
    plugins: Sequence[str],
    quiet: bool,
    verbose: bool,
    debug: bool,
) -> None:
    """Check the files of data sets (NAME..., or all that are there).

    The sha256 is compared where the publisher's is known, and always that the files can be read and
    have the right numbers of rows, labels and values.
    """
    from bench_core.cli.tables import Column, Table, deliver
    from bench_core.formats.publisher import is_there, verify_dataset

    folder, say = _folder(data_dir), _say(quiet)
    rows: list[tuple[str, ...]] = []
    for dataset in _chosen(plugins, data_dir, names):
        if names != ("all",) or is_there(dataset, folder):
            found = verify_dataset(dataset, folder, say)
            rows += [(dataset.name, *facts, "as expected") for facts in found]
    columns = (
        Column("data set", style="bold"),
        Column("file", fold=True),
        Column("bytes", right=True),
        Column("sha256"),
        Column("content"),
    )
    deliver(Table("", columns, rows), output)


def _folder(data_dir: Path | None) -> DataFolder:
    from bench_core.formats.source import DataFolder

    return DataFolder(data_dir)


def _home(folder: DataFolder, dataset: Any) -> Path:
    home: str = getattr(dataset, "home", dataset.name)
    return folder.folder / home


def _say(quiet: bool) -> Callable[[str], None]:
    return (lambda message: None) if quiet else options.note


def _chosen(
    plugins: Sequence[str], data_dir: Path | None, names: tuple[str, ...], fetchable: bool = False
) -> list[Any]:
    """Instances of the named data sets; ``all`` means those with files (to download)."""
    registry = options.registry(plugins, data_dir)
    if names == ("all",):
        what = "downloads" if fetchable else "files"
        names = tuple(n for n, d in sorted(registry.datasets.items()) if getattr(d, what, ()))
    return [registry.dataset(name)() for name in names]


@contextmanager
def _bar(quiet: bool) -> Iterator[Progress]:
    """Bytes with time left on a terminal; nothing elsewhere, where the notes must do."""
    from bench_core.cli import tables

    console = tables.console(stderr=True)
    if quiet or not console.is_terminal:
        yield lambda done, total: None
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn

    columns = (BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bars:
        bar = bars.add_task("", total=None)
        yield lambda done, total: bars.update(bar, completed=done, total=total or None)
