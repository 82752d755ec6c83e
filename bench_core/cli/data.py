"""``bench data``: fetch the files of data sets."""

from collections.abc import Sequence

import click

from bench_core.cli import options
from bench_core.cli.app import ALL_WELL, UNUSABLE_INPUT
from bench_core.datasets.data_folder import DataFolder
from bench_core.errors import BenchError
from bench_core.terminal.tables import complain


@click.group("data")
def data_command() -> None:
    """Fetch the files of data sets.

    The data folder is --data-dir, else BENCH_DATA, else the user's data folder. Files go to
    FOLDER/NAME, never in part. 'bench show NAME' lists a data set's files.

    Examples:
      bench data fetch letters forest        from the publisher into the data folder
    """


@data_command.command("fetch", short_help="Download files from their publishers.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
@click.option("--again", is_flag=True, help="Download files again that are present.")
@options.data_dir_option
@options.few_options
def fetch_command(
    names: tuple[str, ...], again: bool, data_dir: str, plugins: Sequence[str]
) -> int:
    """Download and unpack the files of data sets (NAME..., or all), and check known checksums.

    After an interrupted download, repeat the command. If a data set fails, the others are still
    fetched; the exit status is then 2.
    """
    from bench_core.contracts import dataset_of
    from bench_core.datasets.publishers import fetch_dataset, home_of, is_there
    from bench_core.terminal.progress import counting

    registry, status = options.registry(plugins, data_dir), ALL_WELL
    if names == ("all",):
        known = sorted(registry.datasets)
        names = tuple(name for name in known if registry.about_dataset(name).downloads)
    for dataset in [dataset_of(registry.dataset(name)()) for name in names]:
        folder = DataFolder(data_dir)  # sees files fetched before
        try:
            if dataset.files and is_there(dataset, folder) and not again:
                options.note(f"{dataset.name}: already present (--again downloads it again)")
                continue
            with counting(options.flag("quiet"), "bytes") as progress:
                fetch_dataset(dataset, folder, options.note, progress)
            options.note(f"{dataset.name}: fetched, in {folder.folder / home_of(dataset)}")
        except BenchError as error:
            if options.flag("debug"):
                raise
            complain(f"error: {error}")
            status = UNUSABLE_INPUT
    return status
