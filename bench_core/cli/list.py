"""``bench list KIND``: what is there to choose from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
WORDY = ("tasks", "what it is", "files", "title", "data sets", "state", "trials")
"""Columns that may be broken over several lines."""


def summary(thing: object) -> str:
    """The first line of a docstring, unless it is the one dataclasses invent."""
    first = " ".join((thing.__doc__ or "").strip().split("\n\n")[0].split())
    return "" if first.startswith(f"{getattr(thing, '__name__', '')}(") else first


Columns = Mapping[str, Callable[[Any], str] | None]
_TASKS: Columns = {"tasks": lambda plugin: ", ".join(sorted(plugin.tasks))}
_FROM: Columns = {"plugin": None}
_WHAT: Columns = {"what it is": summary}
OFFERED: dict[str, tuple[str, str, Columns]] = {
    "learners": ("learner", "learners", {**_TASKS, **_FROM, **_WHAT}),
    "metrics": (
        *("metric", "metrics"),
        {"better is": lambda m: "higher" if m.higher_is_better else "lower", **_TASKS, **_FROM},
    ),
    "costs": ("cost model", "cost_models", {**_FROM, **_WHAT}),
    "reports": (
        *("report", "reports"),
        {"files": lambda report: " ".join(s or "(terminal)" for s in report.suffixes), **_FROM},
    ),
}
"""For each kind its word, its field of the registry, and the columns that follow the name."""

KINDS = (
    *("learners", "datasets", "suites", "metrics", "costs", "reports"),
    *("plugins", "runs", "fits", "cache"),
)


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
    kind: str, data_dir: str, store: Path, output: Path | None, plugins: Sequence[str]
) -> None:
    """List what plugins offer (KIND is learners, datasets, suites, metrics, costs or reports), the
    plugins themselves (plugins), runs (runs), the size of their fitted models (fits) or of prepared
    data (cache).

    'bench show NAME' shows more of what plugins offer, 'bench report RUN' of a run.
    """
    from bench_core.datasets.data_folder import DataFolder

    if kind == "cache":
        deliver(_cache(), output)
    elif kind in ("runs", "fits"):
        deliver((_runs if kind == "runs" else _fits)(store), output)
    else:
        registry, source = options.registry(plugins, data_dir), DataFolder(data_dir)
        if kind in OFFERED:
            table = _offered(registry, *OFFERED[kind])
        elif kind == "datasets":
            table = _datasets(registry, source)
        else:
            table = (_suites if kind == "suites" else _plugins)(registry)
        deliver(table, output)
        if kind == "datasets":
            where = f"absent: not in {source.folder}"
            options.note(f"{where}; 'bench show NAME' says where to get the files")
        broken = [p.name for p in registry.plugins if p.error]
        if broken and kind != "plugins":
            options.note(f"failed to load: {', '.join(broken)} (see 'bench list plugins')")


def _offered(registry: Registry, kind: str, field: str, columns: Columns) -> Table:
    """Everything of a kind; the column without a function is the plugin that it is from."""
    rows = [
        (name, *(of(thing) if of else registry.origin[kind, name].name for of in columns.values()))
        for name, thing in sorted(getattr(registry, field).items())
    ]
    return Table((kind, *columns), rows, kind, fold=WORDY)


def _datasets(registry: Registry, source: DataFolder) -> Table:
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


def _plugins(registry: Registry) -> Table:
    from bench_core.cli.app import invalid_commands

    rows, odd = [], registry.notes
    plugins = [*registry.plugins, *invalid_commands()]
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
    from bench_core.cli.remove import prepared, size, total

    entries = [path for folder in prepared() for path in folder.glob("[!.]*")]
    sizes = {p: total(p.rglob("*")) if p.is_dir() else p.stat().st_size for p in entries}
    found = sorted(sizes.items(), key=lambda item: (-item[1], item[0].name))
    rows = [(path.name, size(number)) for path, number in found]
    return Table(("entry", "size"), rows, "entry", ("size",))
