"""``bench list`` and ``show``: available names, and the meaning of a name."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from inspect import cleandoc
from itertools import takewhile
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.errors import InputError, UsageError, printable
from bench_core.terminal.tables import Table, console, deliver, write_text
from bench_core.terminal.wording import counted

if TYPE_CHECKING:
    from bench_core.datasets.data_folder import DataFolder
    from bench_core.parameters import Parameter
    from bench_core.plugins import Registry

PRESENT, ABSENT = "present", "absent"
LISTED = (
    *("learners", "datasets", "suites", "metrics", "costs", "reports", "exports"),
    *("plugins", "runs", "fits", "cache"),
)
SHOWN = ("learner", "dataset", "suite", "metric", "cost-model", "report", "export")
# columns that may wrap
WORDY = ("family", "tasks", "description", "files", "title", "data sets", "state", "trials")
INDENT = " " * 6
NARROW = 100  # columns of a terminal


@click.command("list")
@click.argument("kind", type=click.Choice(LISTED), metavar="KIND")
@options.data_dir_option
@options.store_option
@options.output_option
@options.few_options
def list_command(
    kind: str, data_dir: str, store: Path, output: Path | None, plugins: Sequence[str]
) -> None:
    """List learners, datasets, suites, metrics, costs, reports, exports, plugins, runs, fits or
    cache.

    Sizes on disk: 'fits' lists each run's fitted models, 'cache' lists prepared data. For details
    use 'bench show NAME', or 'bench report RUN' for a run.

    Examples:
      bench list learners
      bench list datasets | grep ranking     also shows whether the files are present
      bench list plugins                     includes failed plugins, with the reason
      bench list learners -p my_module       includes a module of the current folder
      bench list runs                        runs in the store, latest first
      bench list fits                        sizes of fitted models; 'bench remove' deletes them
    """
    if kind == "cache":
        deliver(_cache(), output)
    elif kind in ("runs", "fits"):
        deliver((_runs if kind == "runs" else _fits)(store), output)
    else:
        from bench_core.datasets.data_folder import DataFolder
        from bench_core.planning.resolve_learners import FIRST

        registry, source = options.registry(plugins, data_dir), DataFolder(data_dir)
        if kind == "learners":
            options.note(
                f"start with {', '.join(FIRST[:5])}: 'bench run --data FILE' runs these five and "
                f"the baseline {FIRST[5]}. Others follow by family, baselines last"
            )
        table = offered(registry, kind, source)
        if kind == "learners" and output is None and console().is_terminal:
            table = for_terminal(table, console().width)
        deliver(table, output)
        if kind == "datasets":
            where = f"absent: not in {source.folder}"
            options.note(f"{where}; 'bench show NAME' shows where to get the files")
        # a failed plugin may own a missing name
        broken = [p.name for p in registry.plugins if p.error]
        if broken and kind != "plugins":
            options.note(f"failed to load: {', '.join(broken)} (see 'bench list plugins')")


def offered(registry: Registry, listed: str, source: DataFolder) -> Table:
    """Return the table of ``bench list`` for one kind that plugins offer, or for plugins."""
    from bench_core.planning.suites import read_suite

    def owner(kind: str, name: str) -> str:
        return registry.origin[kind, name].name

    if listed == "plugins":
        return _plugins(registry)
    if listed == "learners":
        return _learners(registry)
    styles: list[str] = []
    rows: list[tuple[str, ...]] = []
    if listed == "datasets":
        titles: tuple[str, ...] = ("data set", "task", "folds", "files", "title")
        for name in sorted(registry.datasets):
            about, files = registry.about_dataset(name), _files(registry, name, source)
            rows.append((name, str(about.task), str(about.folds), files, about.title))
            styles.append("dim" if files == ABSENT else "")
    elif listed == "suites":
        titles = ("suite", "data sets", "title")
        for name, path in registry.suite_files.items():
            try:
                suite = read_suite(path, registry)
            except InputError as fault:
                rows.append((name, "", f"unusable: {fault}"))
                continue
            datasets = dict.fromkeys(d.name for d in suite.datasets)  # may occur with two settings
            rows.append((name, ", ".join(datasets), suite.title))
    elif listed == "metrics":
        titles = ("metric", "better is", "tasks", "plugin")
        for name, metric in registry.metrics.items():
            better = "higher" if metric.higher_is_better else "lower"
            rows.append((name, better, _tasks(metric), owner("metric", name)))
    elif listed == "reports":
        titles = ("report", "files", "plugin")
        for name, report in registry.reports.items():
            files = " ".join(suffix or "(terminal)" for suffix in report.suffixes)
            rows.append((name, files, owner("report", name)))
    else:
        known: dict[str, Any] = {**registry.cost_models} if listed == "costs" else registry.exports
        kind, title = ("cost model",) * 2 if listed == "costs" else ("export", "format")
        titles = (title, "plugin", "description")
        rows = [(name, owner(kind, name), summary(thing)) for name, thing in known.items()]
    return Table(titles, sorted(rows), titles[0], ("folds",), WORDY, row_styles=styles)


def _learners(registry: Registry) -> Table:
    """List the learners recommended first, then by family, baselines last."""
    from bench_core.planning.resolve_learners import FIRST

    rows = []
    for name, learner in registry.learners.items():
        family = getattr(learner, "family", "") or registry.origin["learner", name].name
        trivial = getattr(learner, "role", "") == "baseline"
        place = FIRST.index(name) if name in FIRST else len(FIRST)
        texts = name, family, _tasks(learner), summary(learner)
        rows.append((trivial, place, family, texts))
    rows.sort()
    titles = ("learner", "family", "tasks", "description")
    styles = ["dim" if trivial else "" for trivial, *_ in rows]
    return Table(titles, [row[-1] for row in rows], titles[0], (), WORDY, row_styles=styles)


def for_terminal(learners: Table, width: int) -> Table:
    """Return the table of learners with few lines: tasks behind the description unless they are
    all, no families on a narrow terminal."""
    from bench_core.data import Task

    every = ", ".join(sorted({*Task} - {Task.CHOICE}))
    rows = [
        (name, family, text if tasks == every else f"{text.removesuffix('.')} ({tasks}).")
        for name, family, tasks, text in learners.rows
    ]
    kept = slice(None, None, 2) if width < NARROW else slice(None)
    titles = ("learner", "family", "description")[kept]
    footer = (f"Tasks are in brackets; a learner without brackets takes all: {every}.",)
    return replace(learners, titles=titles, rows=[row[kept] for row in rows], footer=footer)


def _tasks(thing: Any) -> str:
    return ", ".join(sorted(thing.tasks))


def _files(registry: Registry, name: str, source: DataFolder) -> str:
    """Return the state of the data set's files in one or two words."""
    from bench_core.datasets.publishers import is_there

    about = registry.about_dataset(name)
    if about.stand_in_for:
        return "generated"
    if not about.files:
        return "none needed"
    try:
        return PRESENT if is_there(registry.dataset(name)(), source) else ABSENT
    except InputError:
        return "ambiguous"
    except Exception:  # a plugin's fault must not hide the other rows
        return "unknown"


def _plugins(registry: Registry) -> Table:
    from bench_core.cli.app import invalid_commands

    rows, odd = [], registry.notes
    plugins = [*registry.plugins, *invalid_commands()]
    # failed plugins first, then plugins with notes
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
    """List each run's fitted models and the size that removing the run frees."""
    from rich.filesize import decimal

    from bench_core.cli.store import total
    from bench_core.results.store import Store
    from bench_core.results.store_files import state_path, states_folder
    from bench_core.results.writer import plan_removal

    kept, rows = Store(store), []
    for run in kept.runs():
        # runs share fitted models, so sizes may sum to more than the folder's
        keys = sorted({spec.fit for spec in kept.specs(run.run)})
        files = [p for k in keys if (p := state_path(states_folder(kept.path), k)).is_file()]
        alone = plan_removal(kept, [run.run]).size
        rows.append(
            (str(run.number), run.run, str(len(files)), decimal(total(files)), decimal(alone))
        )
    titles = ("no.", "run", "models", "size", "freed by removal")
    return Table(titles, rows, "run", ("no.", "models", "size", "freed by removal"))


def _cache() -> Table:
    """List prepared data, largest first."""
    from rich.filesize import decimal

    from bench_core.cli.store import prepared, total

    entries = [path for folder in prepared() for path in folder.glob("[!.]*")]
    sizes = {p: total(p.rglob("*")) if p.is_dir() else p.stat().st_size for p in entries}
    found = sorted(sizes.items(), key=lambda item: (-item[1], item[0].name))
    rows = [(path.name, decimal(number)) for path, number in found]
    return Table(("entry", "size"), rows, "entry", ("size",))


@click.command("show")
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(SHOWN),
    help="Kind of NAME, if several kinds share the name.",
)
@options.data_dir_option
@options.output_option
@options.plugins_option
@options.debug_option
def show_command(
    name: str, kind: str | None, data_dir: str, output: Path | None, plugins: Sequence[str]
) -> None:
    """Describe NAME: a learner, data set, suite, metric, cost model, report or export.

    Examples:
      bench show miser               parameters with types, defaults and meaning; departures
      bench show yahoo               the data set's files and where to put them
      bench show yahoo --kind suite
      bench show ndcg@5
      bench show per-query           the cost model's charges, and its options in a cost file
    """
    registry = options.registry(plugins, data_dir)
    descriptions = ["\n".join(lines) for lines in _described(registry, name, kind, data_dir)]
    if not descriptions:
        known = {n for _, n in registry.origin} | {*registry.suite_files}
        fault = registry.unknown(kind or "name", name, known)
        raise UsageError(f"{fault}; see 'bench list KIND'")
    text = printable("\n\n".join(descriptions))
    if output is None:
        to = console()
        click.echo(fitted(text, to.width) if to.is_terminal else text)
    else:
        write_text(output, text + "\n")


def fitted(text: str, width: int) -> str:
    """Wrap long lines between words and keep their indentation."""
    lines = []
    for line in text.split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        lines += wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]
    return "\n".join(lines)


def _described(
    registry: Registry, name: str, kind: str | None, data_dir: str
) -> Iterator[list[str]]:
    """Yield the lines that describe each object of that name."""
    from bench_core.metrics import parse_metric

    def named(what: str, known: dict[str, Any]) -> bool:
        return kind in (None, what) and name in known

    def title(what: str) -> str:
        return f"{name}: {what}, plugin {registry.origin[what, name].name}"

    if named("learner", registry.learners):
        learner = registry.learners[name]
        about = [title("learner"), f"  tasks: {_tasks(learner)}", *_doc(learner)]
        yield [
            *about,
            *_parameters("Parameters", learner, name, "; a list is a grid"),
            *_departures(learner),
        ]
    if named("dataset", registry.datasets):
        yield [title("data set"), *_dataset_lines(registry, name, data_dir)]
    if named("suite", registry.suite_files):
        path = registry.suite_files[name]
        if kind is None and (name in registry.learners or name in registry.datasets):
            yield [f"{name}: suite, 'bench show {name} --kind suite'"]
        else:  # TOML is its own documentation
            yield [f"{name}: suite, {path}", "", path.read_text(encoding="utf-8").strip()]
    if named("metric", registry.metrics) or (kind in (None, "metric") and "@" in name):
        metric = parse_metric(name, registry.metrics)
        better = "higher" if metric.higher_is_better else "lower"
        about = [f"{name}: metric, {better} is better", f"  tasks: {_tasks(metric)}"]
        yield [*about, *_doc(type(metric))]
    if named("cost-model", registry.cost_models):
        model = registry.cost_models[name]
        # the docstring of from_options documents the keys; the class's own is for programmers
        keys = _doc(model.from_options)[1:] if model.options else []
        about = [title("cost model"), "", f"  {summary(model)}"]
        yield [*about, "", f'In a cost file: model = "{name}"', *keys]
    if named("report", registry.reports):
        report = registry.reports[name]
        files = ", ".join(suffix or "the terminal" for suffix in report.suffixes)
        yield [title("report"), f"  written to: {files}", *_doc(report.write)]
    if named("export", registry.exports):
        about = [f"{title('export')}, 'bench model export --format {name}'"]
        yield [*about, *_doc(registry.exports[name])]


def default_text(p: Parameter) -> str:
    """Return the default of a parameter as ``--set`` takes it, a learner as its name."""
    from bench_core.contracts import name_of
    from bench_core.planning.request import toml_literal

    named = p.holds_learner and p.default is not None
    return name_of(p.default) or str(p.default) if named else toml_literal(p.default)


def _parameters(title: str, cls: type, name: str, more: str = "") -> list[str]:
    """Return lines on the parameters that ``--set`` changes, with defaults and meaning."""
    from bench_core.parameters import parameters

    settable = parameters(cls)
    lines = ["", f"{title} (--set {name}.{settable[0].name}=VALUE{more}):"] if settable else []
    for p in settable:
        default = "no default" if p.required else f"default {default_text(p)}"
        about = (f"  {p.name}: {p.kind}", str(p.range), default, str(p.search or ""))
        lines.append(", ".join(filter(None, about)))
        lines += wrap(p.doc, 96, initial_indent=INDENT, subsequent_indent=INDENT)
    return lines


def _departures(cls: type) -> list[str]:
    """Return lines on the departures from the papers, as the docstring of the learner's module, or
    else of a package of it, lists them."""
    module = cls.__module__
    while module:
        if lines := section(getattr(sys.modules.get(module), "__doc__", None) or "", "Departures"):
            return ["", "Departures:", *(f"  {line.replace('``', '')}" for line in lines)]
        module = module.rpartition(".")[0]
    return []


def section(docstring: str, title: str) -> list[str]:
    """Return the lines under a title that stands alone on its line, up to a blank line."""
    lines = iter(cleandoc(docstring).splitlines())
    # consumes the lines up to the title
    return [*takewhile(str.strip, lines)] if title in lines else []


def _dataset_lines(registry: Registry, name: str, data_dir: str) -> list[str]:
    """Return lines on a data set's files, their places, and how to get missing files."""
    from bench_core.costs.cost_file import price_columns_of
    from bench_core.datasets.data_folder import DataFolder
    from bench_core.datasets.publishers import is_there

    cls, about = registry.dataset(name), registry.about_dataset(name)
    seeds = ", new splits for each seed" if "seed" in about.depends_on else ""
    lines = [f"  {about.title}", f"  task: {about.task}", f"  folds: {about.folds}{seeds}"]
    if about.licence:
        lines.append(f"  licence: {about.licence}")
    if about.stand_in_for:
        lines.append(f"  stand-in for {about.stand_in_for} if its files are absent")
    lines += [*_doc(cls), *_parameters("Options", cls, name), ""]
    if not about.files:
        return [*lines, "Needs no files: bundled or generated."]
    source, states = DataFolder(data_dir), {}
    for file in about.files:
        try:
            states[file] = "found  " if source.has(file) else "missing"
        except InputError:
            states[file] = "twice! "
    described: Any = cls
    missing = {*states.values()} != {"found  "}
    if about.place and (described.data.costs or described.data.groups):
        data = described.data
        unit = f", in {data.unit}" if data.unit else ""
        groups = f", groups {'; '.join(data.groups)}" if data.groups else ""
        prices = Path(data.costs).name if data.costs else "1 per column"
        by_row = []
        if data.costs and price_columns_of(data.costs, data.encoding) and not missing:
            by_row = described().prepare(source, "quick", 0, 0).prices_by_row
        more = "; by row, mean (median, 95% quantile):" if by_row else ""
        lines += [f"Prices: {prices}{unit}{groups}{more}", *(f"  {one}" for one in by_row), ""]
    where = f"looked for in {source.folder} (--data-dir, BENCH_DATA), .gz too"
    lines.append(f"Files, {'your own' if about.place else where}:")
    lines += [f"  {state}  {file}" for file, state in states.items()]
    published = about.downloads or about.homepage
    if published and "twice! " not in states.values() and not is_there(cls(), source):
        fetch = f"'bench data fetch {name}', or " if about.downloads else ""
        place = f" from {about.homepage}" if about.homepage else ""
        by_hand = f"get them{place} and put them into {source.folder / (about.home or name)}"
        lines += ["", f"Missing files: {fetch}{by_hand}"]
    return lines


def _doc(thing: object) -> list[str]:
    """Return the docstring, indented, without markup; nothing for a dataclass's generated one."""
    doc = cleandoc(thing.__doc__ or "").replace("``", "") if summary(thing) else ""
    return [""] + [f"  {line}".rstrip() for line in doc.splitlines()] if doc else []


def summary(thing: object) -> str:
    """Return the docstring's first line; "" for the generated docstring of a dataclass."""
    first = " ".join((thing.__doc__ or "").strip().split("\n\n")[0].split())
    return "" if first.startswith(f"{getattr(thing, '__name__', '')}(") else first
