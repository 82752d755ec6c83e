"""``bench show NAME``: a learner's parameters, a data set's files, and what else has a name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
    from bench_core.parameters import Parameter
    from bench_core.plugins import Registry


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
    name: str, kind: str | None, data_dir: str, output: Path | None, plugins: Sequence[str]
) -> None:
    """Show what NAME is: a learner, data set, suite, metric, cost model or report."""
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
