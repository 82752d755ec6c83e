"""The display of a run's result: a few lines in a shell, tables in a notebook."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING

from bench_core.leaderboard.board import Board
from bench_core.terminal.wording import cost, counted, duration, quality, times

if TYPE_CHECKING:
    from bench_core.execution.runner import RunResult
    from bench_core.leaderboard.standings import Standing

TITLES = ("95% interval", "rank", "cost", "cost at 99%", "saving", "95%", "marks")


def lines(result: RunResult, boards: Iterable[Board]) -> Iterator[str]:
    """Counts of a run, its first failure, and the leader on each data set."""
    state = "interrupted, " if result.interrupted else ""
    took = f" in {duration(result.seconds)}" if result.seconds else ""
    counts = {**result.counts, "refused by the audit": len(result.audit_failures)}
    yield f"run {result.run}: {state}{counted(counts) or 'no trials'}{took}, in {result.store}"
    for title, status, error in result.failures[:1]:
        yield f"{status}: {title}: {error}"
    for board in boards:
        pick = max if board.higher_is_better else min
        top = pick(board.rows, key=lambda row: row.best.quality, default=None)
        if top is not None:
            reached = f"{board.metric} {quality(top.best.quality)}"
            yield f"{board.dataset}: {top.learner} reaches {reached} at {cost(top.best.cost)}"


def html_table(board: Board, standing: Mapping[str, Standing]) -> str:
    """A board as an HTML table, those that are not told apart from the best in bold."""
    titles = ("learner", board.metric, *TITLES)
    head = "".join(f"<th>{escape(title)}</th>" for title in titles)
    rows = []
    for row in board.rows:
        stands = standing[row.learner]
        low, high = stands.interval
        cells = [
            row.learner,
            quality(row.best.quality),
            "-" if math.isnan(low) else f"{quality(low)} to {quality(high)}",
            "-" if math.isnan(low) else "–".join(map(str, dict.fromkeys(stands.ranks))),
            cost(row.best.cost),
            cost(row.cheap.cost) if row.cheap else "-",
            times(row.saving),
            " to ".join(map(times, row.saved.interval)) if row.saved else "-",
            ", ".join(board.marks_of(row)),
        ]
        tag = "th" if stands.tier == 1 else "td"
        marked = [f"<{tag}>{escape(cell)}</{tag}>" for cell in cells[:2]]
        rows.append("".join([*marked, *(f"<td>{escape(cell)}</td>" for cell in cells[2:])]))
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    legend = (
        f"{board.dataset}: bold is not told apart from the best; points are chosen on validation, "
        "figures are from test, intervals 95%; costs are per row"
    )
    legend += f" in {board.unit}" if board.unit not in ("", "cost", "cost units") else ""
    caption = f"<caption>{escape(legend)}</caption>"
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
