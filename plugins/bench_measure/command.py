"""``bench cost``: measure the costs of features, as a file for ``--costs``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import click

from bench_core.cli import options
from bench_core.cli.outputs import check_outputs
from bench_core.errors import InputError, UsageError, unknown
from bench_core.terminal.tables import Table, deliver, write_text
from bench_core.terminal.wording import count

if TYPE_CHECKING:
    from bench_measure.timing import Extractor, Measured, Timing


@click.group(
    "cost",
    short_help="Measure the costs of your own features.",
    epilog="""\b
Examples:
  bench cost measure my_features:extractors --input photos/ -o costs.json
  bench run --data photos.csv --costs costs.json""",
)
def command() -> None:
    """Measure the costs of extracting features on this machine.

    The result is a cost file for 'bench run --costs'.
    """


@command.command(
    "measure",
    short_help="Time extractors and write a cost file.",
    epilog="""\b
The extractors, in my_features.py:
  def colour(path): ...                  returns a number, a vector or a mapping of names
  def shape(path): ...
  extractors = {"colour": colour, "shape": shape}
A value may be a pair (extract, {"cat": f, "dog": g}): f and g take the result of extract. The first
of "cat" and "dog" that a model buys also pays for extract, the second only for itself.
Instead of a mapping: one function, or one without parameters that returns a mapping.
Or a ColumnTransformer of scikit-learn, or a Pipeline with one: each of its transformers is timed on
single rows of the tables in --input.

\b
Examples:
  bench cost measure my_features:extractors --input photos/ -o costs.json
  bench cost measure my_features:colour --input a.jpg --input b.jpg
  bench cost measure my_features:extractors --load my_features:open_photo --input photos/
  bench cost measure my_features:extractors --input calls/ --clock wall --repeats 20
  bench cost measure my_model:pipeline --input rows.csv -o costs.json""",
)
@click.argument("target", metavar="MODULE:NAME")
@click.option(
    "-i",
    "--input",
    "inputs",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE_OR_FOLDER",
    help="Items to extract features from; may be given several times.",
)
@click.option(
    "--load",
    default="",
    metavar="MODULE:NAME",
    help="A function from a path to the extractors' input, by default the path; its time is not "
    "counted.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="Timings of each extractor on each item.",
)
@click.option(
    "--items",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="Most files used, evenly spaced.",
)
@click.option(
    "--clock",
    type=click.Choice(["cpu", "wall"]),
    default="cpu",
    show_default=True,
    help="CPU time of this process, or wall-clock time (if extractors wait or run elsewhere).",
)
@click.option(
    "--numbered", is_flag=True, help="Call features 1, 2, ... in order, as SVMlight files do."
)
@click.option(
    "-o",
    "--output",
    type=options.FILE,
    metavar="FILE",
    help="Write the cost file here ('-': to stdout, without the table).",
)
@options.quiet_option
@options.debug_option
def measure_command(
    target: str,
    inputs: tuple[Path, ...],
    load: str,
    repeats: int,
    items: int,
    clock: str,
    numbered: bool,
    output: Path | None,
) -> None:
    """Time each extractor of MODULE:NAME on the input and show median and spread per item.

    Modules in the current folder are found. Close other programs first: they use the processor's
    caches and clock, which widens the spread.
    """
    import json

    from bench_core.terminal.progress import counting
    from bench_measure.pipelines import is_pipeline, pipeline_extractors
    from bench_measure.timing import cost_document, measure

    options.find_plugins_here()
    check_outputs("output", modules=[name.partition(":")[0] for name in (target, load)])
    loader = load_object(load) if load else lambda path: path
    examples: Sequence[Any]
    if is_pipeline(pipeline := load_object(target)):
        extractors, examples = pipeline_extractors(target, pipeline, inputs, items)
    else:
        extractors, examples = load_extractors(target), find_items(inputs, items)
    with counting(options.flag("quiet"), "timings") as progress:
        measured = measure(
            extractors,
            examples,
            load=loader,
            repeats=repeats,
            clock="cpu" if clock == "cpu" else "wall",
            progress=progress,
        )
    if str(output) != "-":
        deliver(_table(measured), None)
    if output is None:
        remedy = "give -o costs.json to keep this as a cost file for 'bench run --costs'"
        options.note(remedy)
        return
    document = cost_document(measured, numbered=numbered)
    write_text(output, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    if str(output) != "-":
        options.note(f"{len(document['costs'])} costs written to {output}")


def _table(measured: Measured) -> Table:
    from bench_core._io.machine import machine
    from bench_measure.timing import UNITS

    rows = []
    for name, features in measured.features.items():
        rows.append((name, str(len(features)), *_figures(measured.extract[name])))
        rows += [
            (f"{name}: {feature}", "", *_figures(measured.outputs[feature]))
            for feature in features
            if feature in measured.outputs
        ]
    taken = f"{count(measured.items, 'item')} x {count(measured.repeats, 'repeat')}"
    footer = [f"per item, {taken}, on {machine()}"]
    titles = ("extractor", "features", f"median {UNITS[measured.clock]}", "quartiles")
    return Table(titles, rows, "extractor", right=titles[1:], footer=footer)


def _figures(timing: Timing) -> tuple[str, str]:
    return f"{timing.median:.4g}", f"{timing.low:.4g} .. {timing.high:.4g}"


def load_extractors(target: str) -> tuple[Extractor, ...]:
    """Load the extractors at ``module:name``: a function of one item, ``def length(path)``; a
    mapping of names to such functions; or a function without arguments that returns such a mapping
    (it may load models first).

    In a mapping a value may also be a pair ``(extract, outputs)``. ``extract(item)`` returns any
    object, and ``outputs`` maps feature names to functions from that object to a number. Raises
    UsageError, in one line, if the import fails or an entry is not an extractor.
    """
    from bench_measure.timing import Extractor

    definition = load_object(target)
    if callable(definition) and _takes_nothing(definition):
        try:
            definition = definition()
        except (Exception, SystemExit) as error:
            what = f"{type(error).__name__}: {error}"
            raise UsageError(f"{target}: calling it failed ({what}); correct it") from error
    elif callable(definition):
        return (Extractor(target.partition(":")[2], definition),)
    if not isinstance(definition, Mapping) or not definition:
        kind = "an empty mapping" if isinstance(definition, Mapping) else type(definition).__name__
        raise UsageError(
            f"{target}: {kind} is neither a function of one item nor a mapping of names to such "
            "functions, nor does it return one"
        )
    extractors = []
    for name, value in definition.items():
        pair = isinstance(value, tuple) and len(value) == 2
        extract, outputs = value if pair else (value, {})
        calls = [extract, *outputs.values()] if isinstance(outputs, Mapping) else [None]
        if not all(map(callable, calls)) or (pair and len(calls) == 1):
            raise UsageError(
                f"{target}: entry {name!r} is neither a function nor a pair (extract, "
                "{feature: function of the result of extract})"
            )
        extractors.append(Extractor(str(name), extract, {str(n): f for n, f in outputs.items()}))
    return tuple(extractors)


def _takes_nothing(function: Callable[..., Any]) -> bool:
    try:
        return not inspect.signature(function).parameters
    except (TypeError, ValueError):  # built-in functions have no signature
        return False


def load_object(target: str) -> Any:
    """The object at ``module:name``; ``name`` may go through objects (``module:kit.colour``)."""
    module, _, path = target.partition(":")
    if not module or not path or module.endswith(".py") or "/" in module:
        raise UsageError(
            f"{target!r}: write module:name, as in {Path(module).stem or 'my_features'}:"
            f"{path or 'extractors'}, in the folder of the module's file"
        )
    try:
        return resolve_name(target)
    except AttributeError as error:
        public = [name for name in dir(error.obj) if not name.startswith("_")]
        raise UsageError(f"{target}: {unknown(f'name in {module}', error.name, public)}") from error
    except (Exception, SystemExit) as error:
        lost = isinstance(error, ModuleNotFoundError) and error.name == module
        remedy = "run the command in its folder, or install it"
        raise UsageError(
            f"{target}: cannot import {module} ({type(error).__name__}: {error}); "
            f"{remedy if lost else 'correct it'}"
        ) from error


def find_items(paths: Sequence[Path], most: int) -> tuple[Path, ...]:
    """At most ``most`` of the given files and files in folders, evenly spaced by path.

    Hidden files are left out. Raises InputError if there is no file.
    """
    files: dict[Path, None] = {}
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: no such file or folder; check the name")
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            hidden = any(part.startswith(".") for part in file.relative_to(path).parts)
            if file.is_file() and not hidden:
                files[file] = None
    if not files:
        raise InputError(f"{', '.join(map(str, paths))}: no file in it; name files or their folder")
    items = tuple(files)
    step = max(1.0, len(items) / most)  # evenly spaced
    return tuple(items[int(k * step)] for k in range(min(most, len(items))))
