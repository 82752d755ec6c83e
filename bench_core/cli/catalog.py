"""``bench list`` and ``show``: what is there to choose from, and what a name stands for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import cleandoc
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.errors import InputError, UsageError, printable
from bench_core.terminal.tables import Table, deliver, write_text
from bench_core.terminal.wording import counted

if TYPE_CHECKING:
    from bench_core.datasets.data_folder import DataFolder
    from bench_core.parameters import Parameter
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
"""For each kind its word, its field of the registry, and the columns that follow the name; None is
the plugin that it is from."""

KINDS = (
    *("learners", "datasets", "suites", "metrics", "costs", "reports"),
    *("plugins", "runs", "fits", "cache"),
)


@click.command("list")
@click.argument("kind", type=click.Choice(KINDS), metavar="KIND")
@options.data_dir_option
@options.store_option
@options.output_option
@options.few_options
def list_command(
    kind: str, data_dir: str, store: Path, output: Path | None, plugins: Sequence[str]
) -> None:
    """List learners, datasets, suites, metrics, costs, reports, plugins, runs and sizes.

    KIND is what plugins offer (learners, datasets, suites, metrics, costs or reports), plugins,
    runs, the size of their fitted models (fits) or of prepared data (cache). 'bench show NAME'
    shows more of what plugins offer, 'bench report RUN' of a run.

    Examples:
      bench list learners
      bench list datasets | grep ranking     with what is there and what is not
      bench list plugins                     shows those that failed to load, and why
      bench list learners -p my_module       with a module of the current folder
      bench list runs                        what the store holds, the last first
      bench list fits                        how large fitted models are; 'bench remove' frees them
    """
    from bench_core.datasets.data_folder import DataFolder

    if kind == "cache":
        deliver(_cache(), output)
    elif kind in ("runs", "fits"):
        deliver((_runs if kind == "runs" else _fits)(store), output)
    else:
        registry, source = options.registry(plugins, data_dir), DataFolder(data_dir)
        deliver(offered(registry, kind, source), output)
        if kind == "datasets":
            where = f"absent: not in {source.folder}"
            options.note(f"{where}; 'bench show NAME' says where to get the files")
        broken = [p.name for p in registry.plugins if p.error]
        if broken and kind != "plugins":
            options.note(f"failed to load: {', '.join(broken)} (see 'bench list plugins')")


def offered(registry: Registry, listed: str, source: DataFolder) -> Table:
    """What plugins offer of a kind of ``bench list``, or the plugins themselves."""
    if listed == "datasets":
        return _datasets(registry, source)
    if listed not in OFFERED:
        return (_suites if listed == "suites" else _plugins)(registry)
    kind, field, columns = OFFERED[listed]
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


INDENT = " " * 6


@click.command("show")
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(["learner", "dataset", "suite", "metric", "cost-model", "report"]),
    help="Which one is meant where several share the name.",
)
@options.data_dir_option
@options.output_option
@options.plugins_option
@options.debug_option
def show_command(
    name: str, kind: str | None, data_dir: str, output: Path | None, plugins: Sequence[str]
) -> None:
    """Show what NAME is: a learner, data set, suite, metric, cost model or report.

    Examples:
      bench show miser               parameters with types, defaults and meaning
      bench show yahoo               a data set's files and where to put them; the suite
      bench show yahoo --kind suite
      bench show ndcg@5
      bench show per-query           what a cost model charges, and what a cost file says for it
    """
    registry = options.registry(plugins, data_dir)
    text = printable("\n\n".join(_described(registry, name, kind, data_dir)))
    if output is None:
        click.echo(text)
    else:
        write_text(output, text + "\n")


def _described(registry: Registry, name: str, kind: str | None, data_dir: str) -> list[str]:
    """One paragraph for each thing of that name, or UsageError with the nearest names."""
    name = registry.learner_name(name) if kind in (None, "learner") else name
    describe: dict[str, tuple[Iterable[str], Callable[[Registry, str], str]]] = {
        "learner": (registry.learners, learner_text),
        "dataset": (registry.datasets, lambda all_, name: dataset_text(all_, name, data_dir)),
        "suite": (registry.suite_files, suite_text),
        "metric": (registry.metrics, metric_text),
        "cost-model": (registry.cost_models, cost_model_text),
        "report": (registry.reports, report_text),
    }
    asked = {kind: describe[kind]} if kind else describe
    found = [
        text(registry, name)
        for what, (names, text) in asked.items()
        if name in names or (what == "metric" and "@" in name)
    ]
    if not found:
        known = {n for names, _ in asked.values() for n in names}
        fault = registry.unknown(kind or "name", name, known)
        raise UsageError(f"{fault}; see 'bench list KIND'")
    return found


def learner_text(registry: Registry, name: str) -> str:
    """A learner's documentation and its parameters."""
    learner = registry.learner(name)
    lines = [_title(registry, "learner", name), f"  tasks: {', '.join(sorted(learner.tasks))}"]
    lines += [*_doc(learner), *_parameters("Parameters", learner, name, "; a list is a grid")]
    return "\n".join(lines)


def _parameters(title: str, cls: type, name: str, more: str = "") -> list[str]:
    """The parameters that ``--set`` changes, with defaults and meaning."""
    from bench_core.parameters import parameters

    known = parameters(cls)
    lines = ["", f"{title} (--set {name}.{known[0].name}=VALUE{more}):"] if known else []
    for p in known:
        default = "no default" if p.required else f"default {_default(p)}"
        about = (f"  {p.name}: {p.kind}", str(p.range), default, str(p.search or ""))
        lines.append(", ".join(filter(None, about)))
        lines += wrap(p.doc, 96, initial_indent=INDENT, subsequent_indent=INDENT)
    return lines


def _default(p: Parameter) -> str:
    """A default as it would be typed; a learner by its name."""
    from bench_core.contracts import name_of
    from bench_core.planning.invocation import toml_literal

    if p.holds_learner and p.default is not None:
        return name_of(p.default) or str(p.default)
    return toml_literal(p.default)


def dataset_text(registry: Registry, name: str, data_dir: str) -> str:
    """A data set's files, where to put them, and how to get those that are missing."""
    from bench_core.datasets.data_folder import DataFolder
    from bench_core.datasets.publishers.fetch import is_there

    cls, about = registry.dataset(name), registry.about_dataset(name)
    lines = [_title(registry, "data set", name), f"  {about.title}"]
    lines += [f"  task: {about.task}", f"  folds: {about.folds}"]
    if about.stand_in_for:
        lines.append(f"  stands in for {about.stand_in_for} where its files are absent")
    lines += [*_doc(cls), *_parameters("Options", cls, name), ""]
    if not about.files:
        return "\n".join([*lines, "Needs no files: bundled or generated."])
    source, found = DataFolder(data_dir), {}
    for file in about.files:
        try:
            found[file] = "found  " if source.has(file) else "missing"
        except InputError:
            found[file] = "twice! "
    where = f"looked for in {source.folder} (--data-dir, BENCH_DATA), .gz too"
    lines.append(f"Files, {'your own' if about.place else where}:")
    lines += [f"  {state}  {file}" for file, state in found.items()]
    published = about.downloads or about.homepage
    if published and "twice! " not in found.values() and not is_there(cls(), source):
        fetch = f"'bench data fetch {name}', or " if about.downloads else ""
        place = f" from {about.homepage}" if about.homepage else ""
        by_hand = f"get them{place} and say 'bench data import {name} FOLDER'"
        lines += ["", f"What is missing: {fetch}{by_hand}"]
    return "\n".join(lines)


def suite_text(registry: Registry, name: str) -> str:
    """The suite's file as it is: TOML is its own documentation."""
    path = registry.suite_files[name]
    return f"{name}: suite, {path}\n\n{path.read_text(encoding='utf-8').strip()}"


def metric_text(registry: Registry, name: str) -> str:
    """A metric's tasks and direction."""
    from bench_core.metrics import parse_metric

    metric = parse_metric(name, registry.metrics)
    better = "higher" if metric.higher_is_better else "lower"
    lines = [f"{name}: metric, {better} is better", f"  tasks: {', '.join(sorted(metric.tasks))}"]
    return "\n".join([*lines, *_doc(type(metric))])


def cost_model_text(registry: Registry, name: str) -> str:
    """A cost model's charges, and the keys of a cost file that it reads."""
    model = registry.cost_models[name]
    lines = [_title(registry, "cost model", name), *_doc(model)]
    more = _doc(model.from_options) if model.options else []
    return "\n".join([*lines, "", f'In a cost file: model = "{name}"', *more[1:]])


def report_text(registry: Registry, name: str) -> str:
    """A report and the files that it writes."""
    report = registry.reports[name]
    files = ", ".join(suffix or "the terminal" for suffix in report.suffixes)
    lines = [_title(registry, "report", name), f"  written to: {files}"]
    return "\n".join([*lines, *_doc(report.write)])


def _title(registry: Registry, kind: str, name: str) -> str:
    return f"{name}: {kind}, plugin {registry.origin[kind, name].name}"


def _doc(thing: object) -> list[str]:
    """The docstring, indented, unless it is the one dataclasses invent."""
    doc = cleandoc(thing.__doc__ or "") if summary(thing) else ""
    return [""] + [f"  {line}".rstrip() for line in doc.splitlines()] if doc else []
