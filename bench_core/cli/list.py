"""``bench list KIND``: what is there to choose from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.errors import InputError

if TYPE_CHECKING:
    from bench_core.cli.tables import Table
    from bench_core.registry import Registry

KINDS = ("learners", "datasets", "suites", "metrics", "plugins", "runs")


if TYPE_CHECKING:
    Choice = click.Choice[str]
else:  # older releases cannot be subscripted
    Choice = click.Choice


class Kind(Choice):
    """A choice whose refusal names the nearest ones."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """The nearest kinds, or all."""
        from bench_core.registry import unknown

        return unknown("kind", str(value), KINDS)


@click.command(
    "list",
    short_help="List learners, datasets, suites, metrics, plugins or runs.",
    epilog="""\b
Examples:
  bench list learners
  bench list datasets | grep ranking
  bench list plugins                     shows those that failed to load, and why
  bench list learners -p my_module       with a module of the current folder
  bench list runs                        what the store holds, the last first""",
)
@click.argument("kind", type=Kind(KINDS), metavar="KIND")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    envvar="BENCH_DATA",
    show_envvar=True,
    metavar="FOLDER",
    help="Where datasets.toml lies, the list of one's own data sets.",
)
@options.store_option
@options.output_option
@options.common_options
def command(
    kind: str,
    data_dir: Path | None,
    store: Path,
    output: Path | None,
    plugins: Sequence[str],
    quiet: bool,
    verbose: bool,
    debug: bool,
) -> None:
    """List what plugins offer (KIND is learners, datasets, suites, metrics or plugins), or runs.

    'bench show NAME' tells more about one of them, 'bench report RUN' about a run.
    """
    from bench_core.cli.tables import deliver

    if kind == "runs":
        deliver(_runs(store), output)
        return
    registry = options.registry(plugins, data_dir)
    deliver(_TABLES[kind](registry), output)
    broken = [p.name for p in registry.plugins if p.error]
    if broken and kind != "plugins" and not quiet:
        options.note(f"failed to load: {', '.join(broken)} (see 'bench list plugins')")


def _learners(registry: Registry) -> Table:
    from bench_core.cli.tables import Column, Table

    rows = [
        (name, ", ".join(sorted(learner.tasks)), registry.origin["learner", name], summary(learner))
        for name, learner in sorted(registry.learners.items())
    ]
    columns = (Column("learner", style="bold"), Column("tasks", fold=True), Column("plugin"))
    return Table("", (*columns, Column("what it is", fold=True)), rows)


def _datasets(registry: Registry) -> Table:
    from bench_core.cli.tables import Column, Table

    rows = [
        (
            name,
            str(dataset.task),
            str(dataset.folds),
            f"generator for {dataset.stand_in_for}" if dataset.stand_in_for else _origin(dataset),
            dataset.title,
        )
        for name, dataset in sorted(registry.datasets.items())
    ]
    columns = (Column("data set", style="bold"), Column("task"), Column("folds", right=True))
    more = (Column("comes from", fold=True), Column("title", fold=True))
    return Table("", (*columns, *more), rows)


def _origin(dataset: Any) -> str:
    return "your files" if dataset.files else "bundled or generated"


def _suites(registry: Registry) -> Table:
    from bench_core.cli.tables import Column, Table
    from bench_core.suites import read_suite

    rows = []
    for name, path in sorted(registry.suites().items()):
        try:
            suite = read_suite(path)
            datasets = dict.fromkeys(d.name for d in suite.datasets)  # one may have two settings
            rows.append((name, ", ".join(datasets), suite.title))
        except InputError as fault:
            rows.append((name, "", f"unusable: {fault}"))
    columns = (Column("suite", style="bold"), Column("data sets", fold=True))
    return Table("", (*columns, Column("title", fold=True)), rows)


def _metrics(registry: Registry) -> Table:
    from bench_core.cli.tables import Column, Table

    rows = [
        (
            name,
            "higher" if metric.higher_is_better else "lower",
            ", ".join(sorted(metric.tasks)),
            registry.origin["metric", name],
        )
        for name, metric in sorted(registry.metrics.items())
    ]
    columns = (Column("metric", style="bold"), Column("better is"), Column("tasks", fold=True))
    return Table("", (*columns, Column("plugin")), rows)


def _plugins(registry: Registry) -> Table:
    from bench_core.cli.tables import Column, Table

    rows = [
        (
            plugin.name,
            plugin.origin,
            plugin.version or "-",
            plugin.module,
            f"failed: {plugin.error}" if plugin.error else "loaded",
        )
        for plugin in sorted(registry.plugins, key=lambda p: (not p.error, p.name))
    ]
    styles = ["yellow" if row[-1] != "loaded" else "" for row in rows]
    titles = ("plugin", "comes from", "version", "module")
    columns = [Column(title, style="bold" if title == "plugin" else "") for title in titles]
    return Table("", (*columns, Column("state", fold=True)), rows, styles)


def _runs(store: Path) -> Table:
    from bench_core.cli.tables import Column, Table
    from bench_core.store import Store

    rows = [
        (
            str(run.number),
            run.run,
            f"{run.created_at[:16].replace('T', ' ')} UTC",
            run.state,
            ", ".join(f"{n} {status}" for status, n in run.counts.items()) or "none",
            str(run.planned),
        )
        for run in Store(store).runs()
    ]
    columns = (Column("no.", right=True), Column("run", style="bold"), Column("begun"))
    more = (Column("state"), Column("trials", fold=True), Column("planned", right=True))
    return Table("", (*columns, *more), rows)


def summary(thing: object) -> str:
    """The first line of a docstring, unless it is the one dataclasses invent."""
    doc = (getattr(thing, "__doc__", None) or "").strip()
    first = doc.split("\n\n")[0].replace("\n", " ")
    invented = first.startswith(f"{getattr(thing, '__name__', '')}(")
    return "" if invented else " ".join(first.split())


_TABLES: dict[str, Callable[[Registry], Table]] = {
    "learners": _learners,
    "datasets": _datasets,
    "suites": _suites,
    "metrics": _metrics,
    "plugins": _plugins,
}
