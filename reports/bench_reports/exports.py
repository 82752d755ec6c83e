"""Boards for papers and other programs: Markdown, LaTeX tables with ``booktabs``, CSV with a row
for each learner and budget, and JSON. The same run gives the same bytes.
"""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core.errors import no_formula, one_line
from bench_core.leaderboard.board import SHARE
from bench_core.leaderboard.certainty import all_certified
from bench_core.leaderboard.conclusion import conclusion, overall_conclusion
from bench_core.leaderboard.reports import paragraph
from bench_core.planning.invocation import command
from bench_core.results.budgets import Budget
from bench_core.statistics import CONFIDENCE
from bench_core.terminal.tables import Table, write_text
from bench_core.terminal.wording import MIXED, cost, quality, times
from bench_reports.terminal import (
    marked,
    missing_words,
    optimum_table,
    order_words,
    saving_words,
    target,
)

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.leaderboard.board import Board, Row, Standing
    from bench_core.protocols import Section
    from bench_core.results.records import RunInfo

# +0.0123, -3 or +1e-05 as an entire cell or between blanks
_SIGNED = re.compile(r"(?<!\S)[+-]\d+(\.\d+)?(e[+-]\d+)?(?!\S)")
CHOSEN = f"Points are chosen on validation, {MIXED}; figures are from test."


def markdown(
    run: RunInfo,
    frame: pd.DataFrame,
    output: Path | None,
    *,
    sections: Sequence[Section] = (),
    store: Any = None,
) -> None:
    """Write Markdown with tables."""
    lines = [f"# {md(run.title or run.run)}", ""]
    made = all_certified(run, store, frame)
    if overall := overall_conclusion(made):
        lines += [md(" ".join(overall)), ""]
    for board in made:
        lines += [*_markdown_table(board), ""]
    for section in sections:
        lines += [md(f"{section.name}: {section.summary}"), ""]
    lines += ["## Methods", "", md(paragraph(run, frame)), ""]
    write_text(output or Path("-"), "\n".join(lines))


def _markdown_table(board: Board) -> Iterator[str]:
    best = board.best()
    yield f"## {md(title(board))}"
    yield ""
    if board.rows:
        yield from (md(str(conclusion(board))), "")
    # | miser | **0.7990** [0.78, 0.81] | ... | 3000 | 2.1x [1.5x, 2.6x] |
    rows = [
        [
            f"{md(row.learner)} (baseline)" if row.baseline else md(row.learner),
            *(_md_cell(one, top) for one, top in zip(found, best, strict=True)),
            cost(found[-1].cost),
            *_saving(board, row),
        ]
        for row, found in board.lines()
    ]
    if rows:
        titles = columns(board)
        for cells in (titles, ["---", *("---:" for _ in titles[1:])], *rows):
            yield f"| {' | '.join(cells)} |"
    yield ""
    in_unit = f" ({board.unit})" if board.unit else ""
    about = f"{board.metric} on test within budgets: costs per row{in_unit}. "
    how = (
        f"Bold: the best; ~: not significantly worse; brackets: {CONFIDENCE} interval; "
        "-: no result. "
    )
    yield md(" ".join([about + how + CHOSEN, *_about_saving(board)]))
    yield from (f"- {md(note)}" for note in board.remarks())
    if lacking := optimum_table(board, sys.maxsize):
        yield from ("", md(lacking.title), "")
        rule = ["---", *("---:" for _ in lacking.titles[1:])]
        for line in ([md(one) for one in lacking.titles], rule, *lacking.rows):
            yield f"| {' | '.join(line)} |"


def _saving(board: Board, row: Row) -> list[str]:
    """Return a cell with the saving and its 95% interval, if some learner has one."""
    low, high = map(times, row.saved.interval)
    sure = "" if math.isnan(row.saved.interval.low) else f" [{low}, {high}]"
    return [times(row.saving) + sure] if board.saves else []


def _about_saving(board: Board) -> list[str]:
    if not board.saves:
        return []
    return [
        f"The {SHARE:.0%} cost is the least with {target(board)} on validation; "
        f"{saving_words(board)}, with its {CONFIDENCE} interval.",
        *filter(None, [missing_words(board)]),
        order_words(board),
    ]


def _md_cell(one: Standing, best: float) -> str:
    text = quality(one.quality)
    if one.tier == 1:
        text = f"**{text}**" if one.quality == best else f"~ {text}"
    low, high = one.interval
    return text if math.isnan(low) else f"{text} [{quality(low)}, {quality(high)}]"


def md(text: str) -> str:
    """Return text in one line, escaped for Markdown."""
    return re.sub(r"([\\`*_\[\]|<>#~])", r"\\\1", one_line(text))


def latex(run: RunInfo, frame: pd.DataFrame, output: Path | None, *, store: Any = None) -> None:
    """Write LaTeX: a table for each data set, then a paragraph on methods."""
    lines = [f"% {one_line(run.title or run.run)}", "% needs \\usepackage{booktabs}", ""]
    for board in all_certified(run, store, frame):
        lines += [*_latex_table(board), ""]
        if lacking := optimum_table(board, sys.maxsize):
            lines += [*latex_table(lacking, lacking.title, f"{board.dataset}-optimum"), ""]
    lines += ["\\paragraph{Methods.}", tex(paragraph(run, frame)), ""]
    write_text(output or Path("-"), "\n".join(lines))


def _latex_table(board: Board) -> Iterator[str]:
    titles, best = columns(board), board.best()
    head: list[str] = []
    body: list[str] = []
    numbers = len(board.at)
    if numbers > 1:  # budgets share a title; the last column has no limit
        over = tex(f"{board.metric} within a cost per row of")
        rest = " &" * (len(titles) - numbers)
        head.append(f"    & \\multicolumn{{{numbers - 1}}}{{c}}{{{over}}}{rest} \\\\")
        head.append(f"    \\cmidrule(lr){{2-{numbers}}}")
    head.append(_tex_row(map(tex, titles)))
    methods = True  # until the first baseline, above which there is a rule
    for row, found in board.lines():
        if row.baseline and methods and body:
            body.append("    \\midrule")
        methods = not row.baseline
        cells = (_tex_cell(one, top) for one, top in zip(found, best, strict=True))
        saved = map(tex, _saving(board, row))
        body.append(_tex_row([tex(row.learner), *cells, cost(found[-1].cost), *saved]))
    # a column of names, then figures
    shape = f"l*{{{len(titles) - 1}}}{{r}}"
    yield from _booktabs(caption(board), board.dataset, shape, head, body, "4pt")


def latex_table(table: Table, caption: str, label: str) -> Iterator[str]:
    """Yield the lines of a ``booktabs`` table of text and signed numbers."""
    shape = "".join("lr"[title in table.right] for title in table.titles)
    head = [_tex_row(map(tex, table.titles))]
    body = [_tex_row(_SIGNED.sub(r"$\g<0>$", tex(cell)) for cell in row) for row in table.rows]
    yield from _booktabs(caption, label, shape, head, body)


def _booktabs(
    caption: str,
    label: str,
    shape: str,
    head: Sequence[str],
    body: Sequence[str],
    narrow: str = "",
) -> Iterator[str]:
    yield "\\begin{table}"
    yield "  \\centering\\small" + (f"\\setlength{{\\tabcolsep}}{{{narrow}}}" if narrow else "")
    yield f"  \\caption{{{tex(caption)}}}"
    yield f"  \\label{{tab:{re.sub('[^a-zA-Z0-9]+', '-', label).strip('-')}}}"
    yield f"  \\begin{{tabular}}{{{shape}}}"
    yield from ("    \\toprule", *head, "    \\midrule", *body, "    \\bottomrule")
    yield from ("  \\end{tabular}", "\\end{table}")


def _tex_row(cells: Iterable[str]) -> str:
    return f"    {' & '.join(cells)} \\\\"


def _tex_cell(one: Standing, best: float) -> str:
    text = quality(one.quality)
    if one.tier == 1:  # the best is bold, what ties with it underlined
        text = f"\\{'textbf' if one.quality == best else 'underline'}{{{text}}}"
    low, high = one.interval
    if math.isnan(low):
        return text
    return f"{text}$^{{+{quality(high - one.quality)}}}_{{-{quality(one.quality - low)}}}$"


def caption(board: Board) -> str:
    """Return the data set, metric and budgets in words, with the meaning of the figures."""
    better = "higher" if board.higher_is_better else "lower"
    budgets = [at.budget for at in board.at if at.budget is not None]
    # budgets of one kind are named once
    means = all(budget.kind == "mean" for budget in budgets)
    known = ", ".join(str(budget) if means else budget.words for budget in budgets)
    a = "a mean cost" if means else "a cost"
    in_unit = f" ({board.unit})" if board.unit else ""
    within = f" within {a} per row of {known}{in_unit}" if known else ""
    # a caption must be self-contained
    parts = [
        f"{title(board)}: {board.metric} on test ({better} is better){within}. Bold: the best; "
        f"underlined: not significantly worse; small: to the ends of the {CONFIDENCE} interval; "
        f"-: no result. {CHOSEN}",
        *_about_saving(board),
    ]
    if any(row.baseline for row in board.rows):
        parts.append("Below the rule: trivial baselines.")
    return " ".join([*parts, *(f"{note}." for note in board.remarks())])


def title(board: Board) -> str:
    """Return the data set, its marks and its facts."""
    return one_line(f"{board.dataset}{marked(board)} ({', '.join(board.facts)})")


def columns(board: Board) -> list[str]:
    """Return the titles of a table: learner, budgets, cost, and the saving if there is one."""
    budgets = [str(at.budget) if at.budget is not None else "any" for at in board.at]
    return ["learner", *budgets, "cost", *(["saving"] if board.saves else [])]


_TEX = {c: f"\\{c}" for c in "{}$&#_%"} | {
    "\\": "\\textbackslash{}",
    "^": "\\textasciicircum{}",
    "~": "\\textasciitilde{}",
    "<": "\\textless{}",
    ">": "\\textgreater{}",
    "|": "\\textbar{}",
    "±": "$\\pm$",
    "…": "\\dots{}",
}


def tex(text: str) -> str:
    """Return text in one line, escaped for LaTeX."""
    return "".join(_TEX.get(c, c) for c in one_line(text))


TITLES = (
    *("dataset", "metric", "unit", "learner", "role", "kind", "budget"),
    *("quality", "low", "high", "cost", "tier", "best_rank", "worst_rank", "marks"),
    *("saving", "saving_low", "saving_high", "saving_low_99", "saving_high_99"),
    *("area", "area_low", "area_high", "regret", "regret_low", "regret_high", "to_optimum"),
)


def write_csv(run: RunInfo, frame: pd.DataFrame, output: Path | None, *, store: Any = None) -> None:
    """Write one row for each data set, learner and budget; no limit is an empty budget."""
    text = StringIO()
    made = csv.writer(text, lineterminator="\n")
    made.writerow(TITLES)
    for board in all_certified(run, store, frame):
        made.writerows(_rows(board))
    write_text(output or Path("-"), text.getvalue())


def _rows(board: Board) -> Iterator[list[str]]:
    for row, found in board.lines():
        role = "reference" if row.reference else "baseline" if row.baseline else ""
        for at, one in zip(board.at, found, strict=True):
            # no limit is an empty cell
            budget, kind = at.budget or Budget(math.nan, "")
            texts = board.dataset, board.metric, board.unit, row.learner, role, kind
            yield [
                *(no_formula(one_line(text)) for text in texts),
                *map(_number, (budget, one.quality, *one.interval, one.cost)),
                *map(str, (one.tier, *one.ranks)),
                no_formula(one_line(", ".join(board.marks_of(row)))),
                *map(_number, _of_the_curve(row) if at.budget is None else [math.nan] * 11),
                _number(board.lacks(one.quality, at.budget)),
            ]


def _of_the_curve(row: Row) -> Iterator[float]:
    """Yield saving, area and regret with their intervals, which belong to no single budget."""
    yield from (row.saving, *row.saved.interval, *row.saved.wide)
    for one in (row.area, row.regret):
        yield from (one.value, *one.interval)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.10g}"


def write_json(
    run: RunInfo,
    frame: pd.DataFrame,
    output: Path | None,
    *,
    sections: Sequence[Section] = (),
    store: Any = None,
) -> None:
    """Write boards with curves, standings and failures as one JSON document."""
    made = all_certified(run, store, frame)
    document = {
        "run": run.run,
        "title": run.title,
        "state": run.state,
        "command": command(run.request),
        "methods": paragraph(run, frame),
        "conclusion": overall_conclusion(made),
        "datasets": [_board(board) for board in made],
        "sections": [{"name": s.name, "summary": s.summary} for s in sections],
    }
    # NaN is not JSON
    text = json.dumps(_plain(document), indent=1, ensure_ascii=False, allow_nan=False)
    write_text(output or Path("-"), f"{text}\n")


def _board(board: Board) -> dict[str, Any]:
    same = ("dataset", "metric", "higher_is_better", "unit", "accounting", "reference", "stand_in")
    return {
        **_fields(board, *same),
        "facts": board.facts,
        "conclusion": conclusion(board).sentences,
        "notes": [*board.remarks()],
        "budgets": [at.budget for at in board.at],
        "optimum": [board.optimum.within(at.budget) for at in board.at],
        "learners": [
            {
                **_fields(row, "learner", "baseline"),
                "marks": board.marks_of(row),
                **_fields(row, "audit", "saving"),
                "saving_interval": _known(row.saved.interval.low, row.saved.interval),
                "saving_interval_99": _known(row.saved.wide.low, row.saved.wide),
                "area": _known(row.area.value, _fields(row.area, "value", "interval")),
                "regret": _known(row.regret.value, _fields(row.regret, "value", "interval")),
                "settings": [setting.full for setting in row.best.settings],
                "standings": [_fields(one, *STANDING) for one in found],
                "curve": [
                    {"budget": point.budget, **_fields(point.pick, "quality", "spread", "cost")}
                    for point in row.curve
                ],
            }
            for row, found in board.lines()
        ],
        "failures": [asdict(lost) for lost in board.failures],
    }


def _known(figure: float, what: Any) -> Any:
    return None if math.isnan(figure) else what


STANDING = ("quality", "interval", "cost", "tier", "ranks")


def _fields(one: object, *names: str) -> dict[str, Any]:
    return {name: getattr(one, name) for name in names}


def _plain(value: Any) -> Any:
    """Return JSON values: budgets by their fields, null for infinite and NaN."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):  # budgets and intervals
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return float(f"{value:.10g}") if math.isfinite(value) else None
    return value
