"""``bench compare miser cegb --budget 60``: differences between learners, and their certainty."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bench_core.cli import options
from bench_core.errors import UsageError, one_line, unknown
from bench_core.statistics import CONFIDENCE, LEVEL
from bench_core.terminal.tables import Table, deliver, write_text, written
from bench_core.terminal.wording import (
    cost,
    count,
    difference,
    in_brackets,
    interval,
    listed,
    notices,
    p_value,
    quality,
    run_line,
    saving,
)
from bench_reports.best import deliver_parts, named_datasets

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.leaderboard.pairs import Pair
    from bench_core.results.budgets import Limit
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

SUFFIXES = (".tex", ".md", ".csv", ".txt", "")
TITLES = ("a", "b", "a - b", f"{CONFIDENCE} interval", "p", "p adjusted", "alike")
_BOOTSTRAP = "intervals and p are from a paired bootstrap that repeats the choice on validation"
TESTS = (
    _BOOTSTRAP,
    f"{_BOOTSTRAP}, and from the spread of repeats on the same rows",
    "intervals and p are Student's, paired over repeats with rows of their own",
)
"""The test with one repeat, with repeats on the same rows, and with rows of their own."""
SHARED = "rows that several seeds share make intervals and p too small (Nadeau and Bengio, 2003)"
"""Caution if each seed draws its own test rows."""
DATA = ("{}", "{} and repeats", "repeats")
"""Units of a test, by the same cases."""

FIRST = 3
"""Learners that are compared if none is named."""


@click.command(
    "compare",
    short_help="Test whether differences between learners are significant.",
    epilog="""\b
Examples:
  bench compare                              the first three learners of the board
  bench compare miser cegb                   each at 99% of the reference's quality
  bench compare miser cegb --budget inf      each at its best, at any cost
  bench compare miser cegb --budget 60       each at its best within a mean cost
  bench compare miser cegb --keep 95%
  bench compare miser cegb --budget 20,40 --budget-kind cap
  bench compare --against mine --budget 10,20        your learner with each other one
  bench compare miser cegb cronus --run 3 --data letters
  bench compare miser cegb gbrt -o pairs.tex         a LaTeX table with p-values; also .md, .csv

\b
A row of 'bench compare budget-boosting cegb', on thyroid:
  a                       b              a - b        95% interval       p  p adjusted  alike
  budget-boosting 0.9930  cegb 0.9875  +0.0055  -0.0052 to +0.0128  0.2442      0.2442    87%
The interval contains 0: the accuracies do not differ significantly. That they differ by less than
1% is 87% likely.

\b
Points are chosen on validation and compared on test, in the primary metric, by query or by row.
A line below the table names the test: a paired bootstrap that repeats the choice of points, or
Student's over repeats with rows of their own. 'p adjusted' is Holm's over the pairs of a table,
'alike' the probability of a difference below --interest.""",
)
@click.argument("learners", nargs=-1, metavar="[LEARNER]...")
@click.option(
    "--against",
    default="",
    metavar="LEARNER",
    help="Compare this learner with each LEARNER only, and adjust p over these pairs; without "
    "LEARNERs with all others of the run.",
)
@click.option("--run", default="last", metavar="RUN", help="The run.  [default: last]")
@options.limit_options()
@options.names_option("-d", "--data", "datasets", help="Data sets of the run.  [default: all]")
@click.option(
    "--interest",
    type=click.FloatRange(0, 1),
    default=0.01,
    show_default=True,
    help="Smallest relevant difference, as a share of the better quality.",
)
@options.output_option
@options.store_option
@options.debug_option
def command(
    learners: tuple[str, ...],
    against: str,
    run: str,
    limits: Sequence[Limit],
    datasets: tuple[str, ...],
    interest: float,
    output: Path | None,
    store: Path,
) -> int:
    """Test the differences between LEARNERs of a run, pair by pair.

    Without LEARNERs the first three of the board are compared, baselines left out. By default each
    is judged at its cheapest point that is sure to keep 99% of the reference's quality; if one has
    none, all are at their best.

    A row of the table is a pair. 'a' and 'b' have their quality on test, 'a - b' is the difference
    with its 95% interval, and 'p' the probability of one at least as large between equal learners.
    """
    from bench_core.leaderboard.pairs import usual_limit
    from bench_core.leaderboard.reports import finished
    from bench_core.results.store import Store

    suffix = output.suffix.lower() if output is not None else ""
    if suffix not in SUFFIXES:
        raise UsageError(f"{output}: write the pairs as .tex, .md, .csv or .txt")
    info, frame = finished(store, run)
    in_run = list(dict.fromkeys(map(str, frame["learner"])))
    names = list(dict.fromkeys([*filter(None, [against]), *learners]))
    number = next(filter(str.isdigit, names), "")
    why = f"for run {number} give --run {number}" if number else ""
    for name in names:
        if name not in in_run:
            raise UsageError(unknown("learner of this run", name, in_run, why))
    names = [against, *(n for n in in_run if n != against)] if names == [against] else names
    kept = Store(store)
    if not names:
        names = first_learners(info, frame, kept, datasets)
        options.note(f"the first learners of the board: {listed(names)}")
    if len(names) < 2:
        raise UsageError("compare needs two learners: bench compare miser cegb")
    parts: list[Table | str] = [*notices(info)]
    records: list[dict[str, float | str]] = []
    for name in named_datasets(frame, datasets):
        place, within = (info, kept, frame[frame["dataset"] == name], name, names), limits
        if not limits:
            usual, why = usual_limit(*place)
            within, parts = [usual], [*parts, *([f"{name}: {why}"] if why else [])]
        for limit in within:
            try:
                parts += _answer(*place, limit, interest, against, records)
            except UsageError as error:
                parts.append(str(error))
    if output is not None and not records:
        raise UsageError("; ".join(str(part) for part in parts if part))
    options.note(run_line(info))
    if suffix == ".csv":
        cells = [[*map(_cell, record.values())] for record in records]
        deliver(Table([*records[0]], cells), output)
    elif suffix in (".tex", ".md") and output is not None:
        notes = notices(info)
        text = as_markdown(parts) if suffix == ".md" else as_latex(parts, interest, notes)
        write_text(output, text)
        written(output)
    else:
        deliver_parts(parts, output)
    return 0


def first_learners(
    info: RunInfo, frame: pd.DataFrame, store: Store, datasets: Sequence[str]
) -> list[str]:
    """Return the first ``FIRST`` learners of the board, or of the board of the first of several
    data sets, without baselines."""
    from bench_core.leaderboard.assembly import boards

    name, *_ = named_datasets(frame, datasets)
    shown = boards(info, frame[frame["dataset"] == name], store)
    names = (row.learner for board in shown for row in board.rows if not row.baseline)
    return list(islice(names, FIRST))


def as_latex(parts: Sequence[Table | str], interest: float, notes: Sequence[str] = ()) -> str:
    """Return a table for each data set and budget, with the sentences as comments below. Captions
    name the test and have the ``notes`` of the run and the line above the table."""
    from bench_reports.papers import latex_table

    lines = ["% needs \\usepackage{booktabs}"]
    for k, block in enumerate(parts):
        if isinstance(block, Table):
            below = [line for line in map(str, parts[k + 1 : k + 3]) if line in (*TESTS, SHARED)]
            words = [
                block.title,
                *(f"{line[:1].upper()}{line[1:]}" for line in below),
                f"p: two-sided; adjusted by Holm over {count(len(block.rows), 'comparison')}; "
                "alike: the probability of a difference below "
                f"{interest:.3g} of the better quality",
                *(line for line in map(str, parts[:k][-1:]) if line not in notes),
                *notes,
            ]
            caption = " ".join(f"{line}." for line in words if line)
            lines += ["", *latex_table(block, caption, f"pairs-{block.title.partition(',')[0]}")]
        elif block:
            lines.append(f"% {one_line(block)}")
    return "\n".join([*lines, ""])


def as_markdown(parts: Sequence[Table | str]) -> str:
    """Return a table for each data set and budget, under its title, with its sentences below."""
    from bench_reports.papers import markdown_table, md

    lines: list[str] = []
    for block in filter(None, parts):
        if isinstance(block, Table):
            rows = [[*map(md, row)] for row in block.rows]
            lines += ["", md(block.title), "", *markdown_table(block.titles, rows), ""]
        else:
            lines.append(f"- {md(str(block))}")
    return "\n".join([*lines, ""]).lstrip()


def _answer(
    info: RunInfo,
    store: Store,
    frame: pd.DataFrame,
    dataset: str,
    names: Sequence[str],
    limit: Limit,
    interest: float,
    against: str,
    records: list[dict[str, float | str]],
) -> Iterator[Table | str]:
    """Yield the pairs of a data set within a limit as a table, with sentences; ``records`` gets a
    row of a file for each."""
    from bench_core.leaderboard.draws import (
        drawn_by_seed,
        primary_metric,
        reference_of,
        uses_of,
    )
    from bench_core.leaderboard.pairs import lacking, pairs_within
    from bench_core.results.budgets import limit_words
    from bench_core.statistics.repeats import on_same_rows

    use, judge = uses_of(info, dataset)[0], primary_metric(info, dataset)
    repeats, pairs, others = pairs_within(
        info, store, frame, dataset, names, limit, interest=interest, against=against
    )
    words = limit_words(limit, judge.name, reference_of(info, dataset))
    at = re.sub("^within", "at a cost of", words)
    number, unit = use.units("test")
    what = at if limit.kind == "quality" else f"{judge.name} {at}"
    title = f"{dataset}: {what}, {count(len(repeats), 'repeat')} of {number} {unit}"
    yield Table(TITLES, [*map(_row, pairs)], "", TITLES[2:], title=title)
    kind = 0 if len(repeats) == 1 else 1 if len(on_same_rows(repeats)) == 1 else 2
    yield TESTS[kind]
    if kind == 2 and drawn_by_seed(uses_of(info, dataset)) == "rows":
        yield SHARED
    if others:
        yield f"{dataset}: {lacking(limit, others, words.removeprefix('at '))}"
    for pair in pairs:
        data = DATA[kind].format(unit)
        yield from _sentences(pair, judge.higher_is_better, data, len(repeats) * (kind == 2))
    about: dict[str, float | str] = {
        "dataset": dataset,
        "metric": judge.name,
        "unit": str(frame["unit"].iloc[0]),
        "limit": words,
        "repeats": len(repeats),
        "test": TESTS[kind],
        "comparisons": len(pairs),
    }
    records += [{**about, **pair.fields()} for pair in pairs]
    yield ""


def _row(pair: Pair) -> list[str]:
    """Return the cells of ``TITLES``."""
    of, shown = pair.difference, partial(difference, size=max(map(abs, pair.quality)))
    return [
        f"{pair.a} {quality(pair.quality[0])}",
        f"{pair.b} {quality(pair.quality[1])}",
        shown(of.value),
        interval(of.interval, shown),
        p_value(of.p, of.bounded),
        p_value(of.adjusted, of.bounded),
        f"{of.equivalent:.0%}",
    ]


def _cell(value: float | str) -> str:
    """Return a cell of a file; a figure that is unknown or infinite is empty."""
    if isinstance(value, str):
        return value
    return f"{value:.10g}" if math.isfinite(value) else ""


def _sentences(pair: Pair, higher: bool, data: str, repeats: int = 0) -> Iterator[str]:
    """Yield what a pair's difference and costs mean. ``data`` would separate it, or so many times
    the ``repeats``."""
    gap = pair.difference
    # a - b below 0 is better for errors
    better, other = (pair.a, pair.b) if (gap.value > 0) == higher else (pair.b, pair.a)
    if gap.adjusted <= 1 - LEVEL:
        yield f"{better} is better than {other}"
    elif gap.interval.low > 0 or gap.interval.high < 0:
        yield f"{better} is ahead of {other}, not significantly: adjusted p is {gap.adjusted:.2f}"
    elif math.isinf(gap.more_units):
        yield f"{pair.a} and {pair.b} show no difference on these rows"
    else:
        more = gap.more_units
        much = "more than 1000 times" if more > 1000 else f"{more:.{int(more < 10)}f}x"
        take = f"{much} the {data}"
        if repeats and more <= 1000:
            take = f"about {math.ceil(more * repeats)} repeats instead of {repeats}"
        no = f"{pair.a} and {pair.b} do not differ significantly"
        yield f"{no}; that would take {take}"
    # a difference in cost is easier to judge than one in quality
    (cost_a, cost_b), ratio = pair.cost, saving(pair.cost_ratio)
    if math.isnan(cost_b):
        yield f"  {pair.b} does not reach the quality of {pair.a} on validation"
    elif cost_a == 0:
        yield f"  {pair.a} costs nothing; {pair.b} needs {cost(cost_b)} for the same quality"
    else:
        needs = f"{pair.b} needs {ratio} {pair.a}'s cost for the same quality"
        yield f"  {needs}{in_brackets(pair.cost_interval, saving)}"
