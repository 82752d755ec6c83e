"""Boards for papers: Markdown, and LaTeX tables with ``booktabs``. The same run gives the same
bytes.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_core.errors import one_line
from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.board import notice
from bench_core.leaderboard.columns import Column, explained, row_names, target
from bench_core.leaderboard.conclusion import (
    conclusion,
    over_datasets,
    overall_conclusion,
    ranked_by,
)
from bench_core.leaderboard.reports import paragraph
from bench_core.statistics import CONFIDENCE
from bench_core.terminal.tables import Table, write_text
from bench_core.terminal.wording import chance, cost
from bench_reports.panels import Panel, Panels
from bench_reports.terminal import RANKS, legend, mark_lines, marked, rank_table

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.leaderboard.board import Board, Row
    from bench_core.plugins import Registry
    from bench_core.protocols import Section
    from bench_core.results.records import RunInfo

# +0.0123, -3 or +1e-05 as an entire cell or between blanks, or after < or >
_SIGNED = re.compile(r"(?<![^\s}])[+-]\d+(\.\d+)?(e[+-]\d+)?(?!\S)")

TIED = "not significantly worse (all pairs of learners tested jointly)"


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
    shown = boards(run, frame, store)
    panels = Panels(run, frame, store, shown, columns, against, registry)
    lines = [f"# {md(run.title or run.run)}", ""]
    if overall := overall_conclusion(shown):
        lines += [md(" ".join(overall)), ""]
    for board in shown:
        facts = f"{board.dataset}{marked(board)} ({', '.join(board.facts)})"
        lines += [f"## {md(facts)}", ""]
        if board.rows:
            lines += [md(" ".join(conclusion(board))), ""]
        tables = panels.of(board)
        for panel in tables if board.rows else ():
            lines += [md(panel.title), ""] if panel.title else []
            names = [
                md(name) + " (baseline)" * row.baseline
                for name, row in zip(row_names(panel.rows), panel.rows, strict=True)
            ]
            titles = ["learner", *(column.title for column in panel.columns)]
            lines += [*markdown_table(titles, _marked(panel, names, md, "**{}**", "~ {}")), ""]
        lines.append(md(" ".join([_marks(tables, "~"), *legend(board, tables)])))
        lines += [*(f"- {md(line)}" for line in [*mark_lines(board), *board.remarks()]), ""]
    if _several(shown) and not columns:
        tables = [panels.best(board) for board in shown if board.rows]
        titles, cells = _by_datasets(shown, tables, md, "**{}**", "~ {}")
        lines += ["## Best quality", "", md(f"{_best_words(shown, against)}."), ""]
        lines += [*markdown_table(titles, ([md(name), *row] for name, row in cells.items())), ""]
        lines += [md(_marks(tables, "~")), ""]
    if ranks := rank_table(shown, sys.maxsize):
        rows = [[*map(md, row)] for row in ranks.rows]
        lines += [f"## {md(ranks.title)}", "", *markdown_table(ranks.titles, rows)]
        lines += ["", md(RANKS), ""]
    for section in sections:
        lines += [md(f"{section.name}: {section.summary}"), ""]
    methods = paragraph(run, frame, against, made_by, md, md_code, registry)
    lines += ["## Methods", "", methods, ""]
    write_text(output or Path("-"), "\n".join(lines))


def _marked(
    panel: Panel, names: Sequence[str], escape: Callable[[str], str], best: str, tied: str
) -> list[list[str]]:
    """Return the rows of a table, each with its name, with the best figures and those that tie with
    them marked."""
    rows = [[name] for name in names]
    for column in panel.columns:
        first, ties = panel.leaders(column)
        for cells, row in zip(rows, panel.rows, strict=True):
            form = best if row.learner in first else tied if row.learner in ties else "{}"
            cells.append(form.format(escape(column.text(row))))
    return rows


def _marks(panels: Sequence[Panel], sign: str) -> str:
    """Return the meaning of bold figures and of the sign of ties, if there are some."""
    ties = any(panel.leaders(column)[1] for panel in panels for column in panel.columns)
    return f"Bold: the best{f'; {sign}: {TIED}' * ties}."


def markdown_table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table whose columns are numbers but for the first."""
    for line in ([*map(md, titles)], ["---", *("---:" for _ in titles[1:])], *rows):
        yield f"| {' | '.join(line)} |"


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
    """Write LaTeX: one table that fits a column, or two of learners by data sets, costs and best
    qualities; a table of quality at budgets for each data set if some are named; a note on the
    tables and a paragraph on methods."""
    lines = [f"% {one_line(run.title or run.run)}", "% needs \\usepackage{booktabs}", ""]
    shown = boards(run, frame, store)
    panels = Panels(run, frame, store, shown, columns, against, registry)
    tables: list[Panel] = []
    if several := _several(shown) and not columns:
        tables = [panels.best(board) for board in shown if board.rows]
        by_quality = ranked_by(shown) == "best quality"
        words = _best_words(shown, against)
        lines += [*_latex_costs(shown, ranked=not by_quality), ""]
        lines += [*_latex_datasets(words, "qualities", shown, tables, by_quality), ""]
    for board in shown:
        for panel in panels.of(board, leave_out=["wrong"]) if board.rows else ():
            if panel.title or not several:
                label = f"{board.dataset}{'-budgets' if panel.title else ''}"
                lines += [*_latex_panel(board, panel, label), ""]
                tables.append(panel)
        prefix = f"{board.dataset}: " * several
        lines += [f"% {one_line(prefix + x)}" for x in [*mark_lines(board), *board.remarks()]]
    note = _note(shown, tables, several)
    methods = paragraph(run, frame, against, made_by, tex, tex_code, registry)
    lines += ["\\paragraph{Tables.}", tex(note), "", "\\paragraph{Methods.}", methods, ""]
    write_text(output or Path("-"), "\n".join(lines))


def _several(boards: Sequence[Board]) -> bool:
    """Return True if learners are shown by data sets."""
    return sum(bool(board.rows) for board in boards) > 1


def _latex_costs(boards: Sequence[Board], ranked: bool) -> list[str]:
    """Return the table of the cost of each learner's model where it is sure to keep the quality, or
    of its likeliest model."""
    boards = [board for board in boards if board.rows]
    kept = "; ".join(dict.fromkeys(target(board) for board in boards if board.saves))
    units = ", ".join(dict.fromkeys(board.unit for board in boards if board.unit))
    costs = Column("", lambda row: row.model.cost, _sure_cost if kept else _best_cost)
    rule = f"cheapest model that is sure to have {kept}" if kept else "best model"
    words = f"Cost per row of the {rule}{units and f', in {units}'}"
    tables = [Panel(board.dataset, [costs], board.rows) for board in boards]
    return _latex_datasets(words, "costs", boards, tables, ranked)


def _sure_cost(row: Row) -> str:
    """Return the cost of the sure model; of the likeliest one with its probability."""
    if row.likely:
        share = chance(row.probability, row.sure_in).removesuffix(" sure")
        return f"{cost(row.model.cost)} ({share})"
    return cost(row.cheap.cost)


def _best_cost(row: Row) -> str:
    return cost(row.best.cost)


def _best_words(boards: Sequence[Board], against: str) -> str:
    """Return the caption of a table of best qualities, with p if there is a learner ``against``."""
    metrics = dict.fromkeys(
        f"{board.metric} ({'higher' if board.higher_is_better else 'lower'} is better)"
        for board in boards
        if board.rows
    )
    p = f"; p: two-sided, of the difference to {against}, adjusted by Holm" * bool(against)
    return f"Best {', '.join(metrics)} on test, at any cost{p}"


def _latex_datasets(
    words: str, label: str, boards: Sequence[Board], tables: Sequence[Panel], ranked: bool
) -> list[str]:
    """Return a table of learners by data sets, with mean ranks if they are ``ranked`` by it."""
    titles, rows = _by_datasets(boards, tables, tex, "\\textbf{{{}}}", "\\underline{{{}}}")
    ranks = over_datasets(boards)[1] if ranked else ()
    if ranks:
        titles.append("mean rank")
        means = {one.learner: f"{one.mean:.2f}{'*' * (one.tier == 1)}" for one in ranks}
        rows = {name: [*row, means.get(name, "-")] for name, row in rows.items()}
    body = [[*map(_stacked, titles)], *([tex(name), *row] for name, row in rows.items())]
    methods = len(rows.keys() - {row.learner for b in boards for row in b.rows if row.baseline})
    shape = f"@{{}}l*{{{len(titles) - 1}}}{{r}}@{{}}"
    caption = f"{words}{'; mean rank' * bool(ranks)}."
    return _booktabs(caption, label, shape, [], body, NARROW, methods)


def _by_datasets(
    boards: Sequence[Board],
    tables: Sequence[Panel],
    escape: Callable[[str], str],
    best: str,
    tied: str,
) -> tuple[list[str], dict[str, list[str]]]:
    """Return the titles of a table of learners by data sets, and by learner its marked cells: those
    of the table of each data set. The order is by mean rank, baselines are last."""
    means = {one.learner: one.mean for one in over_datasets(boards)[1]}
    baselines = {row.learner: row.baseline for board in boards for row in board.rows}
    names = sorted(baselines, key=lambda name: (baselines[name], means.get(name, math.inf)))
    titles: list[str] = ["learner"]
    rows: dict[str, list[str]] = {name: [] for name in names}
    for table in tables:
        titles += [table.title, *("p" for _ in table.columns[1:])]
        learners = [row.learner for row in table.rows]
        cells = {name: row for name, *row in _marked(table, learners, escape, best, tied)}
        for name, row in rows.items():
            row += cells.get(name, ["-"] * len(table.columns))
    return titles, rows


def _note(boards: Sequence[Board], panels: Sequence[Panel], several: bool) -> str:
    """Return the note on all tables: marks, likeliest models and ranks in those of ``several`` data
    sets, baselines, generated data."""
    baselines = any(row.baseline for board in boards for row in board.rows)
    likely = any(row.likely for board in boards for row in board.rows)
    ranks = bool(over_datasets(boards)[0])
    texts = {
        _marks(panels, "underlined"): any(panels),
        f"Ranks are by {ranked_by(boards)}; *: not significantly worse than the best mean rank "
        "(Nemenyi test).": several and ranks,
        "In brackets: the probability that the likeliest model has that quality, as none is "
        f"{CONFIDENCE} sure to; -: none is likely to.": several and likely,
        "Below the rule: trivial baselines.": baselines,
        **{f"{board.dataset}: {notice(board)}.": board.stand_in for board in boards},
    }
    return one_line(" ".join(text for text, needed in texts.items() if needed))


def _latex_panel(board: Board, panel: Panel, label: str) -> list[str]:
    width, names = len(panel.columns), [*map(tex, row_names(panel.rows))]
    titles = ["learner", *(_stacked(column.title) for column in panel.columns)]
    over = f"     & \\multicolumn{{{width}}}{{c@{{}}}}{{{tex(panel.title.rstrip(':'))}}} \\\\"
    head = [over, f"    \\cmidrule(l){{2-{width + 1}}}"] if panel.title else []
    cells = _marked(
        panel, names, lambda text: _typeset(tex(text)), "\\textbf{{{}}}", "\\underline{{{}}}"
    )
    # a column of names, then figures, without a margin at the ends
    shape = f"@{{}}l*{{{width}}}{{r}}@{{}}"
    methods = sum(not row.baseline for row in panel.rows)
    of = caption(board, panel), label, shape
    return _booktabs(*of, head, [titles, *cells], NARROW, methods)


def _stacked(title: str) -> str:
    """Return a title with a word a line, so that a column is as narrow as its figures."""
    words = re.split("(?<!<=) ", title)
    lines = "\\\\".join(map(tex, words))
    return f"\\shortstack[r]{{{lines}}}" if len(words) > 1 else lines


def _typeset(text: str) -> str:
    """Return the text with a dash between numbers and a sign for times."""
    return re.sub(r"(?<=\d)x\b", r"$\\times$", re.sub(r"(?<=[\d.x])-(?=\d)", "--", text))


def latex_table(table: Table, caption: str, label: str) -> list[str]:
    """Return the lines of a ``booktabs`` table of text and signed numbers."""
    shape = "".join("lr"[title in table.right] for title in table.titles)
    rows = [[_SIGNED.sub(r"$\g<0>$", tex(cell)) for cell in row] for row in table.rows]
    return _booktabs(caption, label, shape, [], [[*map(tex, table.titles)], *rows])


NARROW = "\\footnotesize\\setlength{\\tabcolsep}{3pt}"


def _booktabs(
    caption: str,
    label: str,
    shape: str,
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    size: str = "\\small",
    rule: int = 0,
) -> list[str]:
    """Return a table with lines above its titles, the first of ``rows``, and a rule below the first
    ``rule`` others."""
    titles, *body = [f"    {' & '.join(cells)} \\\\" for cells in rows]
    if 0 < rule < len(body):
        body.insert(rule, "    \\midrule")
    return [
        "\\begin{table}",
        f"  \\centering{size}",
        f"  \\caption{{{tex(caption)}}}",
        f"  \\label{{tab:{re.sub('[^a-zA-Z0-9]+', '-', label).strip('-')}}}",
        f"  \\begin{{tabular}}{{{shape}}}",
        *("    \\toprule", *head, titles, "    \\midrule", *body, "    \\bottomrule"),
        *("  \\end{tabular}", "\\end{table}"),
    ]


def caption(board: Board, panel: Panel) -> str:
    """Return a caption of about 40 words: data set, metric, unit of costs, and marks; the rule of
    choice is in the paragraph on methods."""
    better = "higher" if board.higher_is_better else "lower"
    unit = f"; costs in {board.unit}" if board.unit else ""
    parts = [
        f"{board.dataset}{marked(board)}: {board.metric} on test ({better} is better){unit}.",
        explained(column for column in panel.columns if re.match("p( |$)", column.title)),
    ]
    return one_line(" ".join(parts))


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
