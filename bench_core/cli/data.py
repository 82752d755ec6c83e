"""``bench data``: fetch, import and verify the files of data sets."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from bench_core.cli import options
from bench_core.cli.app import ALL_WELL, UNUSABLE_INPUT
from bench_core.datasets.data_folder import DataFolder
from bench_core.errors import BenchError
from bench_core.plugins import Registry
from bench_core.terminal.tables import Table, complain, deliver


@click.group("data")
def data_command() -> None:
    """Fetch, import or verify the files of data sets.

    The data folder is --data-dir, else BENCH_DATA, else the user's data folder. Files go to
    FOLDER/NAME, never in part. 'bench show NAME' lists a data set's files.

    Examples:
      bench data fetch letters forest        from the publisher into the data folder
      bench data import mslr-web10k ~/Downloads/MSLR-WEB10K.zip
      bench data verify all                  read all present files and compare checksums
    """


@data_command.command("fetch", short_help="Download files from their publishers.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--again", is_flag=True, help="Download files again that are present.")
@options.data_dir_option
@options.few_options
def fetch_command(
    names: tuple[str, ...], again: bool, data_dir: str, plugins: Sequence[str]
) -> int:
    """Download, unpack and verify the files of data sets (NAME..., or all).

    After an interrupted download, repeat the command. If a data set fails, the others are still
    fetched; the exit status is then 2.
    """
    from bench_core.datasets.publishers import fetch_dataset, is_there
    from bench_core.terminal.progress import counting

    def fetch(dataset: Any) -> None:
        folder = DataFolder(data_dir)  # sees files fetched before
        if dataset.files and is_there(dataset, folder) and not again:
            checks = f"('bench data verify {dataset.name}' checks it)"
            options.note(f"{dataset.name}: already present {checks}")
            return
        with counting(options.flag("quiet"), "bytes") as progress:
            fetch_dataset(dataset, folder, options.note, progress)
        options.note(f"{dataset.name}: fetched and verified, in {_home(folder, dataset)}")

    registry = options.registry(plugins, data_dir)
    return _each(_chosen(registry, names, "downloads"), fetch)


@data_command.command("import", short_help="Copy files that you have.")
@click.argument("name")
@click.argument("path", type=options.FILE)
@options.data_dir_option
@options.few_options
def import_command(name: str, path: Path, data_dir: str, plugins: Sequence[str]) -> None:
    """Copy the files of data set NAME from PATH (folder, file or archive) and verify them."""
    from bench_core.datasets.publishers import import_dataset

    folder = DataFolder(data_dir)
    [dataset] = _chosen(options.registry(plugins, data_dir), (name,))
    import_dataset(dataset, path, folder, options.note)
    options.note(f"{name}: imported and verified, in {_home(folder, dataset)}")


@data_command.command("verify", short_help="Compare files with the publisher's checksums.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@options.data_dir_option
@options.output_option
@options.few_options
def verify_command(
    names: tuple[str, ...], data_dir: str, output: Path | None, plugins: Sequence[str]
) -> int:
    """Check the files of data sets (NAME..., or all that are present), and data prepared from them.

    Each file must be readable and have the right numbers of rows, labels and values. Its sha256
    must match if the publisher's is known. Prepared data must match the sha256 recorded when they
    were made, or they are removed. Each fault is an error in one line; the exit status is then 2.
    """
    from bench_core.datasets.cache import check_prepared, prepared_entries
    from bench_core.datasets.publishers import is_there, verify_dataset
    from bench_core.datasets.user_datasets import FILE

    # "all" skips data sets without files; a named data set is always checked
    folder, every = DataFolder(data_dir), names == ("all",)
    rows: list[tuple[str, ...]] = []

    # data without files may still have prepared data, verified below
    def verify(dataset: Any) -> None:
        prepared = not dataset.files and prepared_entries((dataset.name,))
        if not prepared and (not every or is_there(dataset, folder)):
            found = verify_dataset(dataset, folder, options.note)
            rows.extend((dataset.name, *facts, "as expected") for facts in found)

    def verify_prepared(entry: Path) -> None:
        check_prepared(entry)
        size = sum(file.stat().st_size for file in entry.glob("*.npy"))
        name = entry.name.rpartition("-")[0]  # letters-3f9a...: data set and digest
        rows.append((name, entry.name, str(size), "as prepared", "as expected"))

    registry = options.registry(plugins, data_dir)
    status = _each(_chosen(registry, names), verify)
    for plugin in registry.plugins:
        if every and plugin.name == FILE and plugin.error:
            complain(f"error: {plugin.error}")
            status = UNUSABLE_INPUT
    status = _each(prepared_entries(() if every else names), verify_prepared) or status
    if not rows and not status:
        options.note(f"nothing to verify in {folder.folder}: run 'bench data fetch NAME' first")
    if rows:
        titles = ("data set", "file", "bytes", "sha256", "content")
        deliver(Table(titles, rows, "data set", ("bytes",), ("file",)), output)
    return status


def _home(folder: DataFolder, dataset: Any) -> Path:
    return folder.folder / str(dataset.home or dataset.name)


def _chosen(registry: Registry, names: tuple[str, ...], what: str = "files") -> list[Any]:
    """Return the named data sets; ``all`` means every one with ``files`` or ``downloads``."""
    from bench_core.contracts import dataset_of

    if names == ("all",):
        known = sorted(registry.datasets)
        names = tuple(n for n in known if getattr(registry.about_dataset(n), what))
    return [dataset_of(registry.dataset(name)()) for name in names]


def _each(things: Iterable[Any], work: Callable[[Any], None]) -> int:
    """Call ``work`` on each, continuing after failures; return the exit status."""
    status = ALL_WELL
    for thing in things:
        try:
            work(thing)
        except BenchError as error:
            if options.flag("debug"):
                raise
            complain(f"error: {error}")
            status = UNUSABLE_INPUT
    return status
