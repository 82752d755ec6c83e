"""``bench merge``: results of shards, or of other people's stores, into one store."""

from __future__ import annotations

from pathlib import Path

import click

from bench_core.cli import options
from bench_core.errors import UsageError
from bench_core.terminal.wording import count


@click.command(
    "merge",
    short_help="Bring shards or other stores into one store.",
    epilog="""\b
Examples:
  bench merge jobs/*.db                     the shards of 'bench work'
  bench merge alice.db bob.db --store both.db

\b
The order does not matter, and what is merged again changes nothing. Where two stores hold different
results under one key, that store is refused with the row's name, and nothing of it is taken.""",
)
@click.argument("stores", nargs=-1, type=options.FILE, metavar="STORE...")
@options.store_option
@options.quiet_option
@options.debug_option
def command(stores: tuple[Path, ...], store: Path) -> None:
    """Bring the runs, trials, logs and fitted models of STOREs into --store."""
    from bench_core.results.merge import merge
    from bench_core.results.store import Store

    if not stores:
        raise UsageError("nothing to merge: name shards or stores, as in bench merge jobs/*.db")
    brought = merge(store, stores)
    new = f"{count(brought.trials, 'finished trial')} and {count(brought.fits, 'fit')}"
    options.note(f"merged {count(len(stores), 'store')} into {store}: {new} that it had not")
    kept = Store(store)
    for name in brought.runs:
        info = kept.info(name)
        options.note(f"run {name}: {sum(info.counts.values())} of {info.planned} trials")
