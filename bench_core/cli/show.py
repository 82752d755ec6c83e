"""``bench show NAME``: a learner's parameters, a data set's files, and what else has a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import cleandoc
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

import click

from bench_core.cli import options
from bench_core.cli.list import summary
from bench_core.errors import InputError, UsageError, printable
from bench_core.terminal.tables import write_text

if TYPE_CHECKING:
    from bench_core.datasets.data_folder import DataFolder
    from bench_core.parameters import Parameter
    from bench_core.plugins import Registry
    from bench_core.protocols import Dataset


INDENT = " " * 6


@click.command(
    "show",
    short_help="Show what a learner, data set, suite, metric, cost model or report is.",
    epilog="""\b
Examples:
  bench show miser               parameters with types, defaults and meaning
  bench show yahoo               a data set's files and where to put them; the suite of that name
  bench show yahoo --kind suite
  bench show ndcg@5
  bench show per-query           what a cost model charges, and what a cost file says for it""",
)
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
def command(
    name: str, kind: str | None, data_dir: Path | None, output: Path | None, plugins: Sequence[str]
) -> None:
    """Show what NAME is: a learner, data set, suite, metric, cost model or report."""
    registry = options.registry(plugins, data_dir)
    text = printable("\n\n".join(_described(registry, name, kind, data_dir)))
    if output is None:
        click.echo(text)
    else:
        write_text(output, text + "\n")


def _described(registry: Registry, name: str, kind: str | None, data_dir: Path | None) -> list[str]:
    """One paragraph for each thing of that name, or UsageError with the nearest names."""
    name = registry.learner_name(name) if kind in (None, "learner") else name
    describe: dict[str, tuple[Sequence[str], Callable[[], str]]] = {
        "learner": (list(registry.learners), lambda: learner_text(registry, name)),
        "dataset": (list(registry.datasets), lambda: dataset_text(registry, name, data_dir)),
        "suite": (list(registry.suite_files), lambda: suite_text(registry, name)),
        "metric": (list(registry.metrics), lambda: metric_text(registry, name)),
        "cost-model": (list(registry.cost_models), lambda: cost_model_text(registry, name)),
        "report": (list(registry.reports), lambda: report_text(registry, name)),
    }
    asked = {kind: describe[kind]} if kind else describe
    found = [text() for names, text in asked.values() if name in names]
    if not found and kind in (None, "metric") and "@" in name:
        found = [metric_text(registry, name)]
    if not found:
        known = sorted({n for names, _ in asked.values() for n in names})
        what = registry.unknown(kind or "name", name, known)
        raise UsageError(f"{what}; see 'bench list KIND'")
    return found


def learner_text(registry: Registry, name: str) -> str:
    """A learner's documentation and its parameters."""
    learner = registry.learner(name)
    lines = [f"{name}: learner, {_from(registry, 'learner', name)}"]
    lines += [f"  tasks: {', '.join(sorted(learner.tasks))}", *_doc(learner)]
    return "\n".join([*lines, *_parameters("Parameters", learner, name, "; a list is a grid")])


def _parameters(title: str, cls: type, name: str, more: str = "") -> list[str]:
    """The parameters that ``--set`` changes, with defaults and meaning."""
    from bench_core.parameters import parameters

    known = parameters(cls)
    lines = ["", f"{title} (--set {name}.{known[0].name}=VALUE{more}):"] if known else []
    for p in known:
        default = "no default" if p.required else f"default {_default(p)}"
        about = (f"  {p.name}: {p.kind}", str(p.range), default, str(p.search or ""))
        lines.append(", ".join(filter(None, about)))
        if p.doc:
            lines += wrap(p.doc, 96, initial_indent=INDENT, subsequent_indent=INDENT)
    return lines


def _default(p: Parameter) -> str:
    """A default as it would be typed; a learner by its name."""
    from bench_core.contracts import name_of

    if p.holds_learner and p.default is not None:
        return name_of(p.default) or str(p.default)
    from bench_core.planning.invocation import toml_literal

    return toml_literal(p.default)


def dataset_text(registry: Registry, name: str, data_dir: Path | None) -> str:
    """A data set's files, and where to put them."""
    dataset, about = registry.dataset(name), registry.about_dataset(name)
    lines = [f"{name}: data set, {_from(registry, 'dataset', name)}", f"  {about.title}"]
    lines += [f"  task: {about.task}", f"  folds: {about.folds}"]
    if about.stand_in_for:
        lines.append(f"  stands in for {about.stand_in_for} where its files are absent")
    lines += [*_doc(dataset), *_parameters("Options", dataset, name)]
    if not about.files:
        return "\n".join([*lines, "", "Needs no files: bundled or generated."])
    from bench_core.datasets.data_folder import DataFolder

    source = DataFolder(data_dir)
    where = f"looked for in {source.folder} (--data-dir, BENCH_DATA), .gz too"
    lines += ["", f"Files, {'your own' if about.place else where}:"]
    lines += [f"  {_found(source, file)}  {file}" for file in about.files]
    return "\n".join([*lines, *_way_to(dataset(), source)])


def _way_to(dataset: Dataset, source: DataFolder) -> list[str]:
    """The way to get missing files that somebody publishes."""
    from bench_core.contracts import dataset_of
    from bench_core.datasets.publishers.fetch import is_there

    dataset = dataset_of(dataset)
    try:
        absent = not is_there(dataset, source)
    except InputError:  # twice there, as their lines say
        absent = False
    if not absent or not (dataset.downloads or dataset.homepage):
        return []
    where = f" from {dataset.homepage}" if dataset.homepage else ""
    fetch = f"'bench data fetch {dataset.name}', or " if dataset.downloads else ""
    by_hand = f"get them{where} and say 'bench data import {dataset.name} FOLDER'"
    return ["", f"What is missing: {fetch}{by_hand}"]


def _found(source: DataFolder, file: str) -> str:
    try:
        return "found  " if source.has(file) else "missing"
    except InputError:
        return "twice! "


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
    lines = [f"{name}: cost model, {_from(registry, 'cost model', name)}", *_doc(model)]
    more = _doc(model.from_options) if model.options else []
    lines += ["", f'In a cost file: model = "{name}"', *more[1:]]
    return "\n".join(lines)


def report_text(registry: Registry, name: str) -> str:
    """A report and the files that it writes."""
    report = registry.reports[name]
    files = ", ".join(suffix or "the terminal" for suffix in report.suffixes)
    lines = [f"{name}: report, {_from(registry, 'report', name)}", f"  written to: {files}"]
    return "\n".join([*lines, *_doc(report.write)])


def _from(registry: Registry, kind: str, name: str) -> str:
    return f"plugin {registry.origin['data set' if kind == 'dataset' else kind, name].name}"


def _doc(thing: object) -> list[str]:
    """The docstring, indented, unless it is the one dataclasses invent."""
    doc = cleandoc(thing.__doc__ or "") if summary(thing) else ""
    return [""] + [f"  {line}".rstrip() for line in doc.splitlines()] if doc else []
