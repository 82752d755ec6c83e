"""``bench list KIND``: what is there to choose from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.errors import InputError

if TYPE_CHECKING:
    from bench_core.datasets.search import DataFolder
    from bench_core.plugins import Registry
    from bench_core.terminal.tables import Table

PRESENT, ABSENT = "present", "absent"
KINDS = ("learners", "datasets", "suites", "metrics", "costs", "reports", "plugins", "runs")


if TYPE_CHECKING:
    Choice = click.Choice[str]
else:  # older releases cannot be subscripted
    Choice = click.Choice


class Kind(Choice):
    """A choice whose refusal names the nearest ones."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """The nearest kinds, or all."""
        from bench_core.errors import unknown

        return unknown("kind", str(value), KINDS)


@click.command(
    "list",
    short_help="List learners, datasets, suites, metrics, costs, reports, plugins or runs.",
    epilog="""\b
Examples:
  bench list learners
  bench list datasets | grep ranking     with what is there and what is not
  bench list plugins                     shows those that failed to load, and why
  bench list learners -p my_module       with a module of the current folder
  bench list runs                        what the store holds, the last first""",
)
@click.argument("kind", type=Kind(KINDS), metavar="KIND")
@options.data_dir_option
@options.store_option
@options.output_option
@options.plugins_option
@options.quiet_option
@options.debug_option
def command(
    kind: str,
    data_dir: Path | None,
    store: Path,
    output: Path | None,
    plugins: Sequence[str],
    quiet: bool,
) -> None:
    """List what plugins offer (KIND is learners, datasets, suites, metrics, costs or reports), the
    plugins themselves (plugins) or runs (runs).

    'bench show NAME' shows more of a learner, data set, suite or metric, 'bench report RUN' of a
    run.
    """
    from bench_core.datasets.search import data_folder
    from bench_core.terminal.tables import deliver

    if kind == "runs":
        deliver(_runs(store), output)
        return
    registry = options.registry(plugins, data_dir)
    table = _datasets(registry, data_dir) if kind == "datasets" else _TABLES[kind](registry)
    deliver(table, output)
    if kind == "datasets" and not quiet:
        where = f"absent: not in {data_folder(data_dir)}"
        options.note(f"{where}; 'bench show NAME' says where to get the files")
    broken = [p.name for p in registry.plugins if p.error]
    if broken and kind != "plugins" and not quiet:
        options.note(f"failed to load: {', '.join(broken)} (see 'bench list plugins')")


def _learners(registry: Registry) -> Table:
    from bench_core.terminal.tables import Column, Table

    rows = [
        (
            name,
            ", ".join(sorted(learner.tasks)),
            registry.origin["learner", name].name,
            summary(learner),
        )
        for name, learner in sorted(registry.learners.items())
    ]
    columns = (Column("learner", style="bold"), Column("tasks", fold=True), Column("plugin"))
    return Table("", (*columns, Column("what it is", fold=True)), rows)


def _datasets(registry: Registry, data_dir: Path | None) -> Table:
    from bench_core.datasets.search import DataFolder
    from bench_core.terminal.tables import Column, Table

    source = DataFolder(data_dir)
    rows = [
        (name, str(dataset.task), str(dataset.folds), _files(dataset, source), dataset.title)
        for name, dataset in sorted(registry.datasets.items())
    ]
    styles = ["dim" if row[3] == ABSENT else "" for row in rows]
    columns = (Column("data set", style="bold"), Column("task"), Column("folds", right=True))
    more = (Column("files", fold=True), Column("title", fold=True))
    return Table("", (*columns, *more), rows, styles)


def _files(dataset: Any, source: DataFolder) -> str:
    """Whether it could be run now."""
    from bench_core.datasets.publishers.fetch import is_there

    if dataset.stand_in_for:
        return "generated"
    if not dataset.files:
        return "none needed"
    try:
        return PRESENT if is_there(dataset(), source) else ABSENT
    except InputError:
        return "twice there"
    except Exception:  # of another's plugin, which must not hide the rest
        return "cannot tell"


def _suites(registry: Registry) -> Table:
    from bench_core.planning.suites import read_suite
    from bench_core.terminal.tables import Column, Table

    rows = []
    for name, path in sorted(registry.suite_files.items()):
        try:
            suite = read_suite(path, registry.suite_keys)
            datasets = dict.fromkeys(d.name for d in suite.datasets)  # one may have two settings
            rows.append((name, ", ".join(datasets), suite.title))
        except InputError as fault:
            rows.append((name, "", f"unusable: {fault}"))
    columns = (Column("suite", style="bold"), Column("data sets", fold=True))
    return Table("", (*columns, Column("title", fold=True)), rows)


def _metrics(registry: Registry) -> Table:
    from bench_core.terminal.tables import Column, Table

    rows = [
        (
            name,
            "higher" if metric.higher_is_better else "lower",
            ", ".join(sorted(metric.tasks)),
            registry.origin["metric", name].name,
        )
        for name, metric in sorted(registry.metrics.items())
    ]
    columns = (Column("metric", style="bold"), Column("better is"), Column("tasks", fold=True))
    return Table("", (*columns, Column("plugin")), rows)


def _cost_models(registry: Registry) -> Table:
    from bench_core.terminal.tables import Column, Table

    rows = [
        (name, registry.origin["cost model", name].name, summary(model))
        for name, model in sorted(registry.cost_models.items())
    ]
    columns = (Column("cost model", style="bold"), Column("plugin"))
    return Table("", (*columns, Column("what it is", fold=True)), rows)


def _reports(registry: Registry) -> Table:
    from bench_core.terminal.tables import Column, Table

    rows = [
        (
            name,
            " ".join(s or "(terminal)" for s in report.suffixes),
            registry.origin["report", name].name,
        )
        for name, report in sorted(registry.reports.items())
    ]
    columns = (Column("report", style="bold"), Column("files", fold=True), Column("plugin"))
    return Table("", columns, rows)


def _plugins(registry: Registry) -> Table:
    from bench_core.cli.app import invalid_commands
    from bench_core.terminal.tables import Column, Table

    plugins = [*registry.plugins, *invalid_commands()]
    rows = [
        (
            plugin.name,
            plugin.origin,
            plugin.version or "-",
            plugin.module,
            f"failed: {plugin.error}" if plugin.error else "loaded",
        )
        for plugin in sorted(plugins, key=lambda p: (not p.error, p.name))
    ]
    styles = ["yellow" if row[-1] != "loaded" else "" for row in rows]
    titles = ("plugin", "comes from", "version", "module")
    columns = [Column(title, style="bold" if title == "plugin" else "") for title in titles]
    return Table("", (*columns, Column("state", fold=True)), rows, styles)


def _runs(store: Path) -> Table:
    from bench_core.results.store import Store
    from bench_core.terminal.tables import Column, Table

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
    "suites": _suites,
    "metrics": _metrics,
    "costs": _cost_models,
    "reports": _reports,
    "plugins": _plugins,
}
