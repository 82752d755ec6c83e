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

    What another run needs is kept: trials that it has too, models that it was scored with, and
    models that these refer to. 'bench list runs' shows runs.
    """
    if not runs and not cache:
        raise UsageError("nothing to remove: name runs, or give --cache; 'bench list runs'")
    verb = "would remove" if dry_run else "removed"
    if runs:
        options.note(f"{verb} {_runs(store, runs, fits, dry_run)}")
    if cache:
        options.note(f"{verb} {_cache(dry_run)}")


def _runs(store: Path, runs: tuple[str, ...], fits: bool, dry_run: bool) -> str:
    from bench_core.results.removal import plan_removal, remove
    from bench_core.results.store import Store

    kept = Store(store)
    what = plan_removal(kept, runs, fits_alone=fits)
    models = f"{count(len(what.fits), 'fitted model')} ({size(what.size)})"
    if not dry_run:
        remove(kept, what, fits_alone=fits)
    names = ", ".join(what.runs)
    return (
        f"{models} of {names}" if fits else f"{names}: {count(len(what.trials), 'trial')}, {models}"
    )


def _cache(dry_run: bool) -> str:
    from bench_core.datasets.cache import cache_folder

    folders = prepared()
    bytes_ = sum(total(folder.rglob("*")) for folder in folders)
    if not dry_run:
        for folder in folders:
            shutil.rmtree(folder)
    return f"prepared data in {cache_folder()} ({size(bytes_)})"


def prepared() -> list[Path]:
    """The folders of prepared data that are there."""
    from bench_core.datasets.cache import cache_folder

    return [path for name in ("prepared", "kept") if (path := cache_folder() / name).is_dir()]


def total(paths: Iterable[Path]) -> int:
    """The bytes of those that are files."""
    return sum(path.stat().st_size for path in paths if path.is_file())


def size(number: int) -> str:
    """``12 kB``, ``3.4 MB``."""
    for unit, power in (("GB", 9), ("MB", 6), ("kB", 3)):
        if number >= 10**power:
            return f"{number / 10**power:.3g} {unit}"
    return f"{number} B"
