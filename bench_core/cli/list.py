"""``bench list KIND``: what is there to choose from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.errors import InputError, unknown
from bench_core.terminal.tables import Table, deliver
from bench_core.terminal.wording import counted

if TYPE_CHECKING:
    from bench_core.datasets.data_folder import DataFolder
    from bench_core.plugins import Registry

PRESENT, ABSENT = "present", "absent"
KINDS = (
    "learners",
    "datasets",
    "suites",
    "metrics",
    "costs",
    "reports",
    "plugins",
    "runs",
    "fits",
    "cache",
)
WORDY = ("tasks", "what it is", "files", "title", "data sets", "state", "trials")
"""Columns that may be broken over several lines."""


class Kind(options.Choice):
    """A choice whose refusal names the nearest ones."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """The nearest kinds, or all."""
        return unknown("kind", str(value), KINDS)


@click.command(
    "list",
    short_help="List learners, datasets, suites, metrics, costs, reports, plugins, runs and sizes.",
    epilog="""\b
Examples:
  bench list learners
  bench list datasets | grep ranking     with what is there and what is not
  bench list plugins                     shows those that failed to load, and why
  bench list learners -p my_module       with a module of the current folder
  bench list runs                        what the store holds, the last first
  bench list fits                        how large fitted models are; 'bench remove' frees them""",
)
@click.argument("kind", type=Kind(KINDS), metavar="KIND")
@options.data_dir_option
@options.store_option
@options.output_option
@options.few_options
def command(
    kind: str,
    data_dir: Path | None,
    store: Path,
    output: Path | None,
    plugins: Sequence[str],
    quiet: bool,
) -> None:
    """List what plugins offer (KIND is learners, datasets, suites, metrics, costs or reports), the
    plugins themselves (plugins), runs (runs), the size of their fitted models (fits) or of prepared
    data (cache).

    'bench show NAME' shows more of what plugins offer, 'bench report RUN' of a run.
    """
    from bench_core.datasets.data_folder import data_folder

    if kind in ("runs", "fits", "cache"):
        deliver(
            _cache() if kind == "cache" else {"runs": _runs, "fits": _fits}[kind](store), output
        )
        return
    registry = options.registry(plugins, data_dir)
    table = _datasets(registry, data_dir) if kind == "datasets" else _TABLES[kind](registry)
    deliver(table, output)
    if kind == "datasets":
        where = f"absent: not in {data_folder(data_dir)}"
        options.note(f"{where}; 'bench show NAME' says where to get the files", quiet)
    broken = [p.name for p in registry.plugins if p.error]
    if broken and kind != "plugins":
        options.note(f"failed to load: {', '.join(broken)} (see 'bench list plugins')", quiet)


def _learners(registry: Registry) -> Table:
    rows = [
        (name, _tasks(learner), registry.origin["learner", name].name, summary(learner))
        for name, learner in sorted(registry.learners.items())
    ]
    return Table(("learner", "tasks", "plugin", "what it is"), rows, "learner", fold=WORDY)


def _tasks(plugin: Any) -> str:
    return ", ".join(sorted(plugin.tasks))


def _datasets(registry: Registry, data_dir: Path | None = None) -> Table:
    from bench_core.datasets.data_folder import DataFolder

    source = DataFolder(data_dir)
    rows = [
        (name, str(about.task), str(about.folds), _files(registry, name, source), about.title)
        for name in sorted(registry.datasets)
        for about in [registry.about_dataset(name)]
    ]
    styles = ["dim" if row[3] == ABSENT else "" for row in rows]
    titles = ("data set", "task", "folds", "files", "title")
    return Table(titles, rows, "data set", ("folds",), WORDY, row_styles=styles)


def _files(registry: Registry, name: str, source: DataFolder) -> str:
    """A word for whether its files are there."""
    from bench_core.datasets.publishers.fetch import is_there

    about = registry.about_dataset(name)
    if about.stand_in_for:
        return "generated"
    if not about.files:
        return "none needed"
    try:
        return PRESENT if is_there(registry.dataset(name)(), source) else ABSENT
    except InputError:
        return "twice there"
    except Exception:  # of another's plugin, which must not hide the rest
        return "cannot tell"


def _suites(registry: Registry) -> Table:
    from bench_core.planning.suites import find_suite

    rows = []
    for name in sorted(registry.suite_files):
        try:
            suite = find_suite(name, registry)
            datasets = dict.fromkeys(d.name for d in suite.datasets)  # one may have two settings
            rows.append((name, ", ".join(datasets), suite.title))
        except InputError as fault:
            rows.append((name, "", f"unusable: {fault}"))
    return Table(("suite", "data sets", "title"), rows, "suite", fold=WORDY)


def _metrics(registry: Registry) -> Table:
    rows = [
        (
            name,
            "higher" if metric.higher_is_better else "lower",
            _tasks(metric),
            registry.origin["metric", name].name,
        )
        for name, metric in sorted(registry.metrics.items())
    ]
    return Table(("metric", "better is", "tasks", "plugin"), rows, "metric", fold=WORDY)


def _cost_models(registry: Registry) -> Table:
    rows = [
        (name, registry.origin["cost model", name].name, summary(model))
        for name, model in sorted(registry.cost_models.items())
    ]
    return Table(("cost model", "plugin", "what it is"), rows, "cost model", fold=WORDY)


def _reports(registry: Registry) -> Table:
    rows = []
    for name, report in sorted(registry.reports.items()):
        files = " ".join(s or "(terminal)" for s in report.suffixes)
        rows.append((name, files, registry.origin["report", name].name))
    return Table(("report", "files", "plugin"), rows, "report", fold=WORDY)


def _plugins(registry: Registry) -> Table:
    from bench_core.cli.app import invalid_commands

    plugins = [*registry.plugins, *invalid_commands()]
    rows = []
    odd = registry.notes
    for p in sorted(plugins, key=lambda p: (not p.error, p not in odd, p.name)):
        loaded = "loaded" + (f", but {'; '.join(odd[p])}" if p in odd else "")
        state = f"failed: {p.error}" if p.error else loaded
        rows.append((p.name, p.origin, p.version or "-", p.module, state))
    styles = ["yellow" if row[-1] != "loaded" else "" for row in rows]
    titles = ("plugin", "comes from", "version", "module", "state")
    return Table(titles, rows, "plugin", fold=WORDY, row_styles=styles)


def _runs(store: Path) -> Table:
    from bench_core.results.store import Store

    rows = []
    for run in Store(store).runs():
        begun = f"{run.created_at[:16].replace('T', ' ')} UTC"
        trials = counted(run.counts) or "none"
        rows.append((str(run.number), run.run, begun, run.state, trials, str(run.planned)))
    titles = ("no.", "run", "begun", "state", "trials", "planned")
    return Table(titles, rows, "run", ("no.", "planned"), WORDY)


def _fits(store: Path) -> Table:
    """Of each run its fitted models, and those that go with it if it is removed."""
    from bench_core.cli.remove import size, total
    from bench_core.results.removal import plan_removal
    from bench_core.results.store import Store
    from bench_core.results.store_files import state_path, states_folder

    kept, rows = Store(store), []
    for run in kept.runs():
        keys = sorted({spec.fit for spec in kept.specs(run.run)})
        files = [p for k in keys if (p := state_path(states_folder(kept.path), k)).is_file()]
        alone = plan_removal(kept, [run.run]).size
        rows.append((str(run.number), run.run, str(len(files)), size(total(files)), size(alone)))
    titles = ("no.", "run", "models", "size", "freed by removal")
    return Table(titles, rows, "run", ("no.", "models", "size", "freed by removal"))


def _cache() -> Table:
    """The prepared data, the largest first."""
    from bench_core.cli.remove import size, total
    from bench_core.datasets.cache import cache_folder

    entries = [p for name in ("prepared", "kept") for p in (cache_folder() / name).glob("[!.]*")]
    sizes = {p: total(p.rglob("*")) if p.is_dir() else p.stat().st_size for p in entries}
    found = sorted(sizes.items(), key=lambda item: (-item[1], item[0].name))
    rows = [(path.name, size(number)) for path, number in found]
    return Table(("entry", "size"), rows, "entry", ("size",))


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
