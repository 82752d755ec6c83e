"""``bench remove RUN...``: runs, fitted models and prepared data that are no longer wanted."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import click

from bench_core.cli import options
from bench_core.cli.completion import runs_named
from bench_core.errors import UsageError
from bench_core.terminal.wording import count


@click.command("remove")
@click.argument("runs", nargs=-1, metavar="[RUN...]", shell_complete=runs_named)
@click.option("--fits", is_flag=True, help="Remove fitted models and keep results.")
@click.option("--cache", is_flag=True, help="Remove prepared data of all data sets.")
@click.option("-n", "--dry-run", is_flag=True, help="Remove nothing, and show what would go.")
@options.store_option
@options.quiet_option
@options.debug_option
def remove_command(
    runs: tuple[str, ...], fits: bool, cache: bool, dry_run: bool, store: Path
) -> None:
    """Remove runs, fitted models or prepared data.

    RUNs are 'last', numbers, names or the beginnings of names.

    Examples:
      bench remove 3 4 --dry-run        what would go, and how large it is
      bench remove 3 4                  runs with their trials and fitted models
      bench remove 3 --fits             its fitted models alone; results stay
      bench remove --cache              all prepared data; they are made again when needed

    What another run needs is kept: trials that it has too, and models that it was scored with.
    'bench list runs' shows runs.
    """
    from rich.filesize import decimal

    from bench_core.datasets.cache import cache_folder
    from bench_core.results.removal import plan_removal, remove
    from bench_core.results.store import Store

    if not runs and not cache:
        raise UsageError("nothing to remove: name runs, or give --cache; 'bench list runs'")
    verb = "would remove" if dry_run else "removed"
    if runs:
        kept = Store(store)
        what = plan_removal(kept, runs, fits_alone=fits)
        trials = "" if fits else f"{count(len(what.trials), 'trial')}, "
        # while the files are there
        models = f"{count(len(what.fits), 'fitted model')} ({decimal(what.size)})"
        if not dry_run:
            remove(kept, what, fits_alone=fits)
        options.note(f"{verb} {', '.join(what.runs)}: {trials}{models}")
    if cache:
        folders = prepared()
        size = sum(total(folder.rglob("*")) for folder in folders)
        for folder in () if dry_run else folders:
            shutil.rmtree(folder)
        options.note(f"{verb} prepared data in {cache_folder()} ({decimal(size)})")


def prepared() -> list[Path]:
    """The folders of prepared data that are there."""
    from bench_core.datasets.cache import cache_folder

    return [path for name in ("prepared", "kept") if (path := cache_folder() / name).is_dir()]


def total(paths: Iterable[Path]) -> int:
    """The bytes of those that are files."""
    return sum(path.stat().st_size for path in paths if path.is_file())
