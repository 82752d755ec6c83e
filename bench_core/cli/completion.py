"""Names for the completion of a shell: of what plugins offer, and of the runs of a store.

Only metadata, suite files' names and plugins' modules are read, which import nothing heavy. A shell
is offered nothing rather than a traceback.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from bench_core.plugins import Registry

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def names_of(kind: str) -> Complete:
    """Names of a registry's ``learners``, ``datasets``, ``metrics``, ``suite_files``...; of a list
    by comma the last one is completed."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
        with suppress(Exception):
            return _matching(getattr(_registry(ctx), kind), incomplete)
        return []

    return complete


def settings_named(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """``LEARNER.`` of every learner, and after the point ``LEARNER.FIELD=``."""
    from bench_core.parameters import parameters

    with suppress(Exception):
        learners, (name, point, _) = _registry(ctx).learners, incomplete.partition(".")
        fields = [p.name for p in parameters(learners[name])] if point else []
        known = [f"{name}.{field}=" for field in fields] or [f"{n}." for n in learners]
        return [each for each in sorted(known) if each.startswith(incomplete)]
    return []


def profiles_named(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """The profiles of the suite that is named, or of a run without one."""
    from bench_core.planning.suites import NO_SUITE, find_suite

    with suppress(Exception):
        name = ctx.params.get("suite")
        suite = find_suite(name, _registry(ctx)) if name else NO_SUITE
        return _matching(suite.profiles, incomplete)
    return []


def data_named(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Data sets, and files of the current folder."""
    before = Path(incomplete.rpartition(",")[2])
    files = [str(path) for path in before.parent.glob(f"{before.name}*")] if before.name else []
    return names_of("datasets")(ctx, param, incomplete) + sorted(files)


def runs_named(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """``last`` and the names of runs."""
    from bench_core.results.store_files import store_path

    known = ["last"]
    with suppress(sqlite3.Error, ValueError):
        # read-only, so that asking makes no store
        uri = f"{store_path(ctx.params.get('store') or '').resolve().as_uri()}?mode=ro"
        with closing(sqlite3.connect(uri, uri=True)) as db:
            known += [run for (run,) in db.execute("SELECT run FROM run ORDER BY number DESC")]
    return [name for name in known if name.startswith(incomplete)]


# other words than names of a registry
COMPLETIONS: dict[str, Complete] = {
    "data": data_named,
    "settings": settings_named,
    "profiles": profiles_named,
}


def _registry(ctx: click.Context) -> Registry:
    from bench_core.datasets.user_datasets import open_registry

    return open_registry(ctx.params.get("plugins") or (), ctx.params.get("data_dir") or "")


def _matching(known: Iterable[str], incomplete: str) -> list[str]:
    # "miser,ceg" -> "miser,cegb"
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in sorted(known) if name.startswith(last)]
