"""Boards for papers and other programs: Markdown, LaTeX tables with ``booktabs``, CSV with a row
for each learner and budget, and JSON. The same run gives the same bytes.
"""

from __future__ import annotations

import csv
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bench_core.errors import no_formula, one_line
from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.board import NOTHING
from bench_core.leaderboard.conclusion import conclusion, overall_conclusion
from bench_core.leaderboard.ranks import over_datasets
from bench_core.leaderboard.reports import paragraph
from bench_core.planning.invocation import command
from bench_core.results.budgets import Budget
from bench_core.terminal.tables import Table, write_text
from bench_core.terminal.wording import count, either
from bench_reports.asked_columns import asked_columns, p_values
from bench_reports.columns import (
    CHEAPER,
    Asked,
    Columns,
    certainty_columns,
    columns_of,
    explained,
    missing_words,
    on_screen,
    order_words,
    saving_columns,
    shown_rows,
    within_words,
)
from bench_reports.terminal import (
    RANKS,
    explained_marks,
    mark_lines,
    marked,
    optimum_table,
    paid_words,
    rank_table,
)

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.leaderboard.board import Board, Row
    from bench_core.leaderboard.pairs import Pair
    from bench_core.plugins import Registry
    from bench_core.protocols import Section
    from bench_core.results.records import RunInfo

READ = ("task: ", "classes: ", "column ", "label: ")
"""Beginnings of notes on how the data were read, which no figure needs to be understood."""

# +0.0123, -3 or +1e-05 as an entire cell or between blanks
_SIGNED = re.compile(r"(?<!\S)[+-]\d+(\.\d+)?(e[+-]\d+)?(?!\S)")


def source_of(board: Board) -> str:
    """Return the source of points and figures."""
    means = f", means over {count(board.repeats, 'repeat')}" if board.repeats > 1 else ""
    return f"Points are chosen on validation; figures are from test{means}."


def markdown(
    run: RunInfo,
    frame: pd.DataFrame,
    output: Path | None,
    *,
    sections: Sequence[Section] = (),
    store: Any = None,
    columns: Sequence[str] = (),
    against: str = "",
    made_by: str = "",
    registry: Registry | None = None,
) -> None:
    """Write Markdown with tables; ``made_by`` is the command that does so."""
    lines = [f"# {md(run.title or run.run)}", ""]
    made = boards(run, frame, store)
    if overall := overall_conclusion(made):
        lines += [md(" ".join(overall)), ""]
    asked = asked_columns(run, frame, store, made, columns, against, on_screen)
    for board in made:
        lines += [*_markdown_board(board, asked), ""]
    if ranks := rank_table(made, sys.maxsize):
        rows = [[*map(md, row)] for row in ranks.rows]
        lines += [f"## {md(ranks.title)}", "", *markdown_table(ranks.titles, rows)]
        lines += ["", md(RANKS), ""]
    for section in sections:
        lines += [md(f"{section.name}: {section.summary}"), ""]
    methods = paragraph(run, frame, against, made_by, md, md_code, registry)
    lines += ["## Methods", "", methods, ""]
    write_text(output or Path("-"), "\n".join(lines))


def _markdown_board(board: Board, asked: Asked) -> Iterator[str]:
    yield f"## {md(title(board))}"
    yield ""
    if board.rows:
        yield from (md(str(conclusion(board))), "")
    several = [*tables(board, asked, on_screen(board))]
    for made in several:
        marks = {BEST: "**{}**", TIED: "~ {}", "": "{}"}
        rows = [
            [md(row.learner) + " (baseline)" * row.baseline]
            + [marks[mark].format(md(text)) for text, mark in cells]
            for row, cells in made.rows
        ]
        yield from (md(made.over), "") if made.over else ()
        yield from markdown_table(("learner", *made.titles), rows)
        yield ""
    tied = f"; ~: {TIED_WORDS}" * any(map(has_ties, several))
    yield md(f"Bold: the best{tied}. {' '.join(explanations(board, asked))}")
    yield from (f"- {md(note)}" for note in board.remarks())
    if lacking := optimum_table(board, sys.maxsize):
        yield from ("", md(lacking.title), "")
        yield from markdown_table(lacking.titles, lacking.rows)


def markdown_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table whose columns are numbers but for the first."""
    for line in ([*map(md, titles)], ["---", *("---:" for _ in titles[1:])], *rows):
        yield f"| {' | '.join(line)} |"


BEST, TIED = "best", "tied"
TIED_WORDS = "not significantly worse (all pairs of learners tested jointly)"


class Made(NamedTuple):
    """A table for a paper: what its columns have in common, their titles, and for each row its
    cells with the mark of the best figure and of those that tie with it."""

    over: str
    titles: list[str]
    rows: list[tuple[Row, list[tuple[str, str]]]]


def has_ties(made: Made) -> bool:
    """True if a cell is marked as tied for the best."""
    return any(mark == TIED for _, cells in made.rows for _, mark in cells)


def tables(board: Board, asked: Asked, usual: Sequence[str]) -> Iterator[Made]:
    """Yield the table asked for, or one of the usual columns and one of quality at budgets."""
    known = columns_of(board)
    chosen = asked.columns.get(board.dataset)
    leads = _leads(board)
    within = [within_words(board, k) for k in range(len(board.budgets))]
    over = f"{board.metric} within a cost per row of:"
    parts: list[tuple[str, Columns]] = [("", chosen or {t: known[t] for t in usual})]
    if within and not asked.named:
        parts.append((over, asked.within.get(board.dataset) or {t: known[t] for t in within}))
    for words, columns in parts if board.rows else ():
        tested = not columns.keys().isdisjoint(asked.tests.get(board.dataset, {}))
        # ties by a test other than that of the p-values next to them could contradict these
        yield Made(
            words,
            [*columns],
            [
                (
                    row,
                    [
                        (cell(row), "" if tested and mark == TIED else mark)
                        for t, cell in columns.items()
                        for mark in [leads.get(t, {}).get(row.learner, "")]
                    ],
                )
                for row in (board.rows if words else shown_rows(board))
            ],
        )


def _leads(board: Board) -> dict[str, dict[str, str]]:
    """Return by column the learners that are best or tied for it, at budgets and in savings."""
    titles = [within_words(board, k) for k in range(len(board.budgets))]
    titles.append(f"best {board.metric}")
    found = {
        name: {
            one.learner: BEST if one.quality == best else TIED for one in at.rows if one.tier == 1
        }
        for name, at, best in zip(titles, board.at, board.best(), strict=True)
    }
    first = {row.learner: row.saving for row in board.rows if row.saved.tier == 1}
    most = max(first.values(), default=math.nan)
    found[CHEAPER] = {name: BEST if saving == most else TIED for name, saving in first.items()}
    return found


def explanations(board: Board, asked: Asked, usual: Sequence[str] = ()) -> list[str]:
    """Return sentences on the source of figures, the columns, the order of rows and their marks."""
    titles = asked.columns.get(board.dataset) or usual or on_screen(board)
    certain = explained(certainty_columns(board, asked.tests.get(board.dataset, {})), titles)
    savings = explained(saving_columns(board), titles) if board.saves else ""
    missing = missing_words(board) if savings else ""
    unit = f" in {board.unit}" if board.unit else ""
    in_unit = f"Costs are means per row{unit}{paid_words(board)}."
    known = [*filter(None, [source_of(board), in_unit, certain, savings, missing])]
    known += [order_words(board)] if {CHEAPER, "cost"} & {*titles} else []
    marks = [line for line in explained_marks(board) if not line.startswith("baseline")]
    return [*known, *(f"{line}." for line in mark_lines(board)), *marks]


def md(text: str) -> str:
    """Return text in one line, escaped for Markdown."""
    return re.sub(r"([\\`*_\[\]|<>#~])", r"\\\1", one_line(text))


def md_code(text: str) -> str:
    """Return a command for Markdown."""
    return f"`` {one_line(text)} ``" if "`" in text else f"`{one_line(text)}`"


def latex(
    run: RunInfo,
    frame: pd.DataFrame,
    output: Path | None,
    *,
    store: Any = None,
    columns: Sequence[str] = (),
    against: str = "",
    made_by: str = "",
    registry: Registry | None = None,
) -> None:
    """Write LaTeX: tables for each data set that fit a column, then a paragraph on methods."""
    lines = [f"% {one_line(run.title or run.run)}", "% needs \\usepackage{booktabs}", ""]
    made = boards(run, frame, store)
    asked = asked_columns(run, frame, store, made, columns, against, narrow_columns)
    for board in made:
        for k, one in enumerate(tables(board, asked, narrow_columns(board))):
            lines += [*_latex_table(board, one, asked, "-budgets" * (k > 0)), ""]
        if lacking := optimum_table(board, sys.maxsize):
            lines += [*latex_table(lacking, lacking.title, f"{board.dataset}-optimum"), ""]
    if ranks := rank_table(made, sys.maxsize):
        lines += [*latex_table(ranks, f"{ranks.title}. {RANKS}", "mean-ranks"), ""]
    methods = paragraph(run, frame, against, made_by, tex, tex_code, registry)
    lines += ["\\paragraph{Methods.}", methods, ""]
    write_text(output or Path("-"), "\n".join(lines))


def narrow_columns(board: Board) -> list[str]:
    """Return the columns that fit a column of a paper."""
    return [title for title in on_screen(board) if title != "wrong"]


def _latex_table(board: Board, made: Made, asked: Asked, label: str) -> Iterator[str]:
    head: list[str] = []
    body: list[str] = []
    if made.over:
        over = f"\\multicolumn{{{len(made.titles)}}}{{c@{{}}}}{{{tex(made.over.rstrip(':'))}}}"
        head += [_tex_row(["", over]), f"    \\cmidrule(l){{2-{len(made.titles) + 1}}}"]
    head.append(_tex_row(["learner", *map(_stacked, made.titles)]))
    methods = True  # until the first baseline, above which there is a rule
    marks = {BEST: "\\textbf{{{}}}", TIED: "\\underline{{{}}}", "": "{}"}
    for row, cells in made.rows:
        if row.baseline and methods and body:
            body.append("    \\midrule")
        methods = not row.baseline
        figures = (marks[mark].format(_typeset(tex(text))) for text, mark in cells)
        body.append(_tex_row([tex(row.learner), *figures]))
    # a column of names, then figures, without a margin at the ends
    shape = f"@{{}}l*{{{len(made.titles)}}}{{r}}@{{}}"
    about = caption(board, made, asked)
    yield from _booktabs(about, f"{board.dataset}{label}", shape, head, body, "3pt")


def _stacked(title: str) -> str:
    """Return a title with a word a line, so that a column is as narrow as its figures."""
    words = re.split("(?<!<=) ", title)
    lines = "\\\\".join(map(tex, words))
    return f"\\shortstack[r]{{{lines}}}" if len(words) > 1 else lines


def _typeset(text: str) -> str:
    """Return the text with a dash between numbers and a sign for times."""
    return re.sub(r"(?<=\d)x\b", r"$\\times$", re.sub(r"(?<=[\d.x])-(?=\d)", "--", text))


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
    size = f"\\footnotesize\\setlength{{\\tabcolsep}}{{{narrow}}}" if narrow else "\\small"
    yield f"  \\centering{size}"
    yield f"  \\caption{{{tex(caption)}}}"
    yield f"  \\label{{tab:{re.sub('[^a-zA-Z0-9]+', '-', label).strip('-')}}}"
    yield f"  \\begin{{tabular}}{{{shape}}}"
    yield from ("    \\toprule", *head, "    \\midrule", *body, "    \\bottomrule")
    yield from ("  \\end{tabular}", "\\end{table}")


def _tex_row(cells: Iterable[str]) -> str:
    return f"    {' & '.join(cells)} \\\\"


def caption(board: Board, made: Made, asked: Asked) -> str:
    """Return the data set, metric and budgets in words, with the meaning of the figures."""
    better = "higher" if board.higher_is_better else "lower"
    in_unit = f" ({board.unit})" if board.unit else ""
    within = ""
    if made.over:
        # budgets of one kind are named once
        means = all(budget.kind == "mean" for budget in board.budgets)
        named = either([str(one) if means else one.words for one in board.budgets])
        within = f" within {'a mean cost' if means else 'a cost'} per row of {named}{in_unit}"
    # a caption must be self-contained
    parts = [
        f"{title(board)}: {board.metric} on test ({better} is better){within}.",
        f"Bold: the best{f'; underlined: {TIED_WORDS}' * has_ties(made)}.",
    ]
    tests = explained(asked.tests.get(board.dataset, {}), made.titles)
    none = "-: no result, or the learner itself." if tests else "-: no result."
    own = [none, source_of(board), tests] if made.over else explanations(board, asked, made.titles)
    parts += filter(None, own)
    if any(row.baseline for row in board.rows):
        parts.append("Below the rule: trivial baselines.")
    notes = (note for note in board.remarks() if not note.startswith(READ))
    return " ".join([*parts, *(f"Note: {note}." for note in notes)])


def title(board: Board) -> str:
    """Return the data set, its marks and its facts."""
    return one_line(f"{board.dataset}{marked(board)} ({', '.join(board.facts)})")


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
    escaped = "".join(_TEX.get(c, c) for c in one_line(text))
    return escaped.replace("\\textless{}=", "$\\le$")


def tex_code(text: str) -> str:
    """Return a command for LaTeX, with hyphens and quotes that can be copied."""
    straight = _TEX | {"'": "\\textquotesingle{}", "`": "\\textasciigrave{}"}
    escaped = "".join(straight.get(c, c) for c in one_line(text))
    return f"\\texttt{{{escaped.replace('--', '-{}-')}}}"


TITLES = (
    *("dataset", "metric", "unit", "learner", "role", "budget_kind", "budget"),
    *("quality", "low", "high", "cost", "tier", "best_rank", "worst_rank", "marks"),
    *("saving", "saving_low", "saving_high", "saving_low_99", "saving_high_99"),
    *("model_cost", "model_quality", "probability"),
    *("area", "area_low", "area_high", "regret", "regret_low", "regret_high", "to_optimum"),
)


def write_csv(
    run: RunInfo,
    frame: pd.DataFrame,
    output: Path | None,
    *,
    store: Any = None,
    against: str = "",
) -> None:
    """Write one row for each data set, learner and budget; no limit is an empty budget. With a
    learner ``against`` there is a column of adjusted p-values."""
    text = StringIO()
    made = csv.writer(text, lineterminator="\n")
    made.writerow([*TITLES, *(["p"] if against else [])])
    for board in boards(run, frame, store):
        budgets = [at.budget or Budget(math.inf) for at in board.at if against]
        tests = [p_values(run, frame, store, board, against, budget) for budget in budgets]
        made.writerows(_rows(board, tests))
    write_text(output or Path("-"), text.getvalue())


def _rows(board: Board, tests: Sequence[Mapping[str, Pair]]) -> Iterator[list[str]]:
    for row, found in board.lines():
        p = [of[row.learner].difference.adjusted if row.learner in of else math.nan for of in tests]
        role = "reference" if row.reference else "baseline" if row.baseline else ""
        for k, (at, one) in enumerate(zip(board.at, found, strict=True)):
            # no limit is an empty cell
            budget, kind = at.budget or Budget(math.nan, "")
            texts = board.dataset, board.metric, board.unit, row.learner, role, kind
            yield [
                *(no_formula(one_line(text)) for text in texts),
                *map(_number, (budget, one.quality, *one.interval, one.cost)),
                *map(str, (one.tier, *one.ranks)),
                no_formula(one_line(", ".join(board.marks_of(row)))),
                *map(_number, _of_no_budget(row) if at.budget is None else [math.nan] * 14),
                *map(_number, (board.lacks(one.quality, at.budget), *p[k : k + 1])),
            ]


def _of_no_budget(row: Row) -> Iterator[float]:
    """Yield the saving, the model that keeps the quality or likely does, area and regret."""
    yield from (row.saving, *row.saved.interval, *row.saved.wide)
    probability = 1.0 if row.cheap else row.likely.probability if row.likely else math.nan
    model = row.model if row.cheap or row.likely else NOTHING
    yield from (model.cost, model.quality, probability)
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
    registry: Registry | None = None,
) -> None:
    """Write boards with curves, standings and failures as one JSON document."""
    made = boards(run, frame, store)
    names, ranked = over_datasets(made)
    document = {
        "run": run.run,
        "title": run.title,
        "state": run.state,
        "command": command(run.request),
        "methods": paragraph(run, frame, registry=registry),
        "conclusion": overall_conclusion(made),
        "ranks": [
            {**_fields(one, *RANKED), "by_dataset": dict(zip(names, one.by_dataset, strict=True))}
            for one in ranked
        ],
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
                "model": _answer(board, row),
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


def _answer(board: Board, row: Row) -> dict[str, Any] | None:
    """Return the model that keeps the reference's quality: cost, quality and its certainty."""
    if not row.cheap:
        return None
    setting = row.cheap.settings[0]
    wrong = board.wrong(row.cheap.quality) if board.tested else None
    figures = _fields(row.cheap, "cost", "quality", "valid_cost", "valid_quality")
    return {**figures, "interval": row.saved.quality, "wrong": wrong, "setting": setting.full}


def _known(figure: float, what: Any) -> Any:
    return None if math.isnan(figure) else what


RANKED = ("learner", "mean", "interval", "tier", "ranks")
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
