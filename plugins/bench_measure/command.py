"""``bench cost``: measure what features cost, as a file for ``--costs``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_core.cli import options
from bench_core.terminal.tables import Table, check_output, deliver, write_text
from bench_core.terminal.wording import count

if TYPE_CHECKING:
    from bench_core.costs.timing import Measured, Timing

COARSE = 1e-3
"""Seconds; a clock that moves by more is slow to measure with."""


@click.group(
    "cost",
    short_help="Measure what one's own features cost.",
    epilog="""\b
Examples:
  bench cost measure my_features:extractors --input photos/ -o costs.json
  bench run --data photos.csv --costs costs.json""",
)
def command() -> None:
    """Measure what features cost to extract, on this machine.

    The result is a cost file, as 'bench run --costs' reads it.
    """


@command.command(
    "measure",
    short_help="Time extractors and write a cost file.",
    epilog="""\b
The extractors, in my_features.py:
  def colour(path): ...                  returns a number, a vector or a mapping of names
  def shape(path): ...
  extractors = {"colour": colour, "shape": shape}
A value may be a pair (extract, {"cat": f, "dog": g}): f and g take what extract returned. The first
of "cat" and "dog" that a model buys then pays for extract too, the second for itself alone.
Instead of a mapping: one function, or one without parameters that returns a mapping.

\b
Examples:
  bench cost measure my_features:extractors --input photos/ -o costs.json
  bench cost measure my_features:colour --input a.jpg --input b.jpg
  bench cost measure my_features:extractors --load my_features:open_photo --input photos/
  bench cost measure my_features:extractors --input calls/ --clock wall --repeats 20""",
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
    help="What to extract features from; may be given several times.",
)
@click.option(
    "--load",
    default="",
    metavar="MODULE:NAME",
    help="A function that turns a path into what the extractors take; its time is not counted. "
    "Without it they take the path.",
)
@click.option(
    "--repeats",
    type=click.IntRange(1),
    default=5,
    show_default=True,
    help="How often each extractor is timed on each item.",
)
@click.option(
    "--items",
    type=click.IntRange(1),
    default=20,
    show_default=True,
    help="At most so many of the files, evenly spaced.",
)
@click.option(
    "--clock",
    type=click.Choice(["cpu", "wall"]),
    default="cpu",
    show_default=True,
    help="CPU time of this process, or wall-clock time (for what waits or runs elsewhere).",
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
    quiet: bool,
) -> None:
    """Time each extractor of MODULE:NAME on the input and show median and spread per item.

    A module of the current folder is found. Close other programs first: what they take from the
    processor's caches and clock is in the spread.
    """
    import json

    from bench_core.costs.timing import cost_document, measure
    from bench_core.terminal.progress import counting
    from bench_measure.extractors import find_items, load_extractors, load_object

    check_output(output)
    options.find_plugins_here([target])
    extractors = load_extractors(target)
    loader = load_object(load) if load else lambda path: path
    found = find_items(inputs, items)
    with counting(quiet, "timings") as progress:
        measured = measure(
            extractors,
            found,
            load=loader,
            repeats=repeats,
            clock="cpu" if clock == "cpu" else "wall",
            progress=progress,
        )
    if str(output) != "-":
        deliver(_table(measured), None)
    if output is None:
        remedy = "give -o costs.json to keep this as a cost file for 'bench run --costs'"
        options.note(remedy, quiet)
        return
    document = cost_document(measured, numbered=numbered)
    write_text(output, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    if str(output) != "-":
        options.note(f"{len(document['costs'])} costs written to {output}", quiet)


def _table(measured: Measured) -> Table:
    from bench_core._io.machine import machine
    from bench_core.costs.timing import STEPS, UNITS

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
    if measured.step >= COARSE:
        coarse = f"the clock moves by {1e3 * measured.step:.3g} ms, so prices are right to "
        footer.append(f"{coarse}{1 / STEPS:.0%}; --clock wall is finer")
    titles = ("extractor", "features", f"median {UNITS[measured.clock]}", "quartiles")
    return Table(titles, rows, "extractor", right=titles[1:], footer=footer)


def _figures(timing: Timing) -> tuple[str, str]:
    return f"{timing.median:.4g}", f"{timing.low:.4g} .. {timing.high:.4g}"
