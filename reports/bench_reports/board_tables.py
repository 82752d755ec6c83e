"""The tables of a board: narrow on a terminal, with its curves in letters; everything on one line
elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from bench_core.errors import one_line
from bench_core.leaderboard.board import SHARE, Board, Row, Standing
from bench_core.terminal.tables import GAP, Table
from bench_core.terminal.wording import TINY, cost, quality, times

if TYPE_CHECKING:
    from bench_core.leaderboard.ranks import Ranked

PERCENT = f"{SHARE:.0%}"
LEAST_NAME = 8
_TITLE = 8  # a metric of a longer name is headed "quality"

LEAST_HALF = 0.00005
"""Below this four decimals would show half an interval as 0."""

LINES = 9
"""Rows of the plot of curves, and so the most learners that are drawn."""

LABEL = 14
LEAST_WIDTH = 60

Columns = Mapping[str, Callable[[Row], str]]
"""By title the cell of a row."""


def main_table(board: Board, width: int) -> tuple[Table, dict[str, str]]:
    """The rows without columns that say nothing, and the names that had to be shortened."""
    columns: Columns = {
        "rank": lambda row: _ranks(row.standing),
        board.metric if len(board.metric) <= _TITLE else "quality": lambda row: starred(
            quality(row.best.quality), row.standing
        ),
        "±": lambda row: half(row.standing),
        "cost": lambda row: cost(row.best.cost),
        f"{PERCENT} cost": lambda row: cost(row.cheap.cost) if row.cheap else "-",
        "kept": lambda row: _kept(board, row),
        "saving": _saving,
        "95%": _interval,
    }
    said = {
        title: cell
        for title, cell in columns.items()
        if any(cell(row).strip() != "-" for row in board.rows)
    }
    return _narrow(board, said, width)


def budget_table(board: Board, width: int) -> Table | None:
    """Quality within each budget; with half the width of its interval where there is room."""
    if not board.budgets:
        return None
    known = [_standings(board, k) for k in range(len(board.budgets))]
    # intervals where they fit, figures alone where they do not
    for with_half in (True, False):
        columns = {
            _within(board, k): partial(_cell, k, known[k], with_half)
            for k in range(len(board.budgets))
        }
        made, _ = _narrow(board, columns, width)
        if sum(_widths(made.titles, made.rows)) + GAP * len(columns) <= width:
            break
    sign = -1 if board.higher_is_better else 1
    bold = set()
    for k, at in enumerate(known):
        there = [one for one in at.values() if one.tier]
        best = min(there, key=lambda one: sign * one.quality, default=None)
        bold |= {
            (i, k + 1) for i, row in enumerate(board.rows) if best and at.get(row.learner) == best
        }
    return replace(made, title=_about_budgets(board), bold_cells=frozenset(bold))


def plain_tables(board: Board) -> Iterator[Table]:
    """Every figure of a board, one row a line, with the data set in front."""
    names: Columns = {
        "data set": lambda row: board.dataset,
        "learner": lambda row: one_line(row.learner),
    }
    gaps: Columns = {
        "to optimum": lambda row: _measure(row, "gap"),
        "± to optimum": lambda row: _measure(row, "gap", half=True),
    }
    columns: Columns = {
        **names,
        "tier": lambda row: _tier(row.standing),
        "rank": lambda row: _ranks(row.standing),
        board.metric: lambda row: quality(row.best.quality),
        "95% from": lambda row: quality(row.standing.interval.low) if row.standing else "-",
        "to": lambda row: quality(row.standing.interval.high) if row.standing else "-",
        "cost": lambda row: cost(row.best.cost),
        f"{PERCENT} {board.metric}": lambda row: quality(row.cheap.quality) if row.cheap else "-",
        f"{PERCENT} cost": lambda row: cost(row.cheap.cost) if row.cheap else "-",
        "saving": lambda row: times(row.saving),
        "saving 95%": _interval,
        "saving 99%": lambda row: _interval(row, wide=True),
        "saving tier": lambda row: str(row.saved.tier) if row.saved else "-",
        "area": lambda row: _measure(row, "area"),
        "± area": lambda row: _measure(row, "area", half=True),
        "regret": lambda row: _measure(row, "regret"),
        "± regret": lambda row: _measure(row, "regret", half=True),
        **(gaps if board.optimum else {}),
        "audit": lambda row: row.audit,
        "marks": lambda row: ", ".join(board.marks_of(row)) or "-",
    }
    yield _table(columns, board.rows)
    if board.budgets:
        within: dict[str, Callable[[Row], str]] = {**names}
        for k in range(len(board.budgets)):
            at, name = _standings(board, k), _within(board, k)
            within[name] = partial(_reached, k)
            within[f"± {name}"] = partial(_of_standing, half, at)
            within[f"tier {name}"] = partial(_of_standing, _tier, at)
        yield replace(_table(within, board.rows), title=_about_budgets(board))


def rank_table(ranked: Sequence[Ranked], names: Sequence[str], width: int) -> Table:
    """Ranks over several data sets, which are numbered where their names do not fit."""
    heads = list(names)
    if sum(GAP + max(len(name), 4) for name in heads) > width - 32:
        heads = [str(k + 1) for k in range(len(names))]
    titles = ["learner", "mean", "rank", *heads]
    rows = [
        [
            one_line(one.learner),
            f"{one.mean:.2f}{'*' if one.tier == 1 else ' '}",
            _span(one.ranks),
            *(f"{rank:g}" for rank in one.by_dataset),
        ]
        for one in ranked
    ]
    return _shortened(Table(titles, rows, "learner", titles[1:]), width)[0]


def shortened(names: Sequence[str], room: int) -> dict[str, str]:
    """Each name in at most ``room`` characters, the middle of a long one left out."""
    found: dict[str, str] = {}
    for name in names:
        short = name
        if len(name) > room:
            tail = (room - 1) // 2
            short = f"{name[: room - 1 - tail]}~{name[len(name) - tail :]}"
            if short in found.values():  # two long names that differ in the middle
                number = str(len(found) + 1)
                short = f"{name[: room - 1 - len(number)]}~{number}"
        found[name] = short
    return found


def _shortened(table: Table, width: int) -> tuple[Table, dict[str, str]]:
    """The table with names in the room that other columns leave, and what was shortened."""
    room = max(LEAST_NAME, width - sum(GAP + w for w in _widths(table.titles, table.rows)[1:]))
    short = shortened([row[0] for row in table.rows], room)
    rows = [[short[row[0]], *row[1:]] for row in table.rows]
    return replace(table, rows=rows), {s: name for name, s in short.items() if s != name}


def _widths(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    columns = zip(titles, zip(*rows, strict=True), strict=True)
    return [max(map(len, [*title.split(), *cells])) for title, cells in columns]


def _table(columns: Columns, rows: Sequence[Row]) -> Table:
    words = {"data set", "learner", "audit", "marks"}
    cells = [[cell(row) for cell in columns.values()] for row in rows]
    return Table([*columns], cells, "learner", [title for title in columns if title not in words])


def _narrow(board: Board, columns: Columns, width: int) -> tuple[Table, dict[str, str]]:
    made = _table({"learner": lambda row: one_line(row.learner), **columns}, board.rows)
    methods = sum(not row.baseline for row in board.rows)
    rule = methods if 0 < methods < len(board.rows) else None
    styles = ["dim" if row.baseline else "" for row in board.rows]
    return _shortened(replace(made, row_styles=styles, rule=rule), width)


def _standings(board: Board, k: int) -> dict[str, Standing]:
    """The learners' standings at a budget, where they are known."""
    return {one.learner: one for one in board.standings[k].rows} if board.standings else {}


def _within(board: Board, k: int) -> str:
    budget = board.budgets[k]
    return f"<= {budget}" if budget.kind == "mean" else str(budget)


def _about_budgets(board: Board) -> str:
    return f"{board.metric} within a cost per row of:"


def _reached(k: int, row: Row) -> str:
    pick = row.within[k] if row.within else None
    return quality(pick.quality) if pick else "-"


def _of_standing(
    text: Callable[[Standing | None], str], known: Mapping[str, Standing], row: Row
) -> str:
    return text(known.get(row.learner))


def _cell(k: int, known: Mapping[str, Standing], with_half: bool, row: Row) -> str:
    """The quality within a budget, with half its interval if asked for and known."""
    standing = known.get(row.learner)
    half = _half_width(standing)
    if standing is None or not with_half or math.isnan(half):
        reached = _reached(k, row)
        return reached if reached == "-" else starred(reached, standing)
    value = standing.quality
    if abs(value) < TINY:
        return starred(f"{quality(value)}±{_small(half)}", standing)
    # one digit less than elsewhere, as ± takes room: .799±.012
    digits = 3 if abs(value) >= 0.1 else 4
    edge = f"{half:.{digits}f}".removeprefix("0") if half < 1 else f"{half:.2g}"
    shown = f"{value:.{digits}f}" if abs(value) < 10 else f"{value:.4g}"
    return starred(f"{shown}±{edge}", standing)


def starred(text: str, standing: Standing | None) -> str:
    """A figure with * where its learner is in tier 1."""
    if standing is None or math.isnan(standing.interval.low):
        return text
    return f"{text}{'*' if standing.tier == 1 else ' '}"


def half(standing: Standing | None) -> str:
    """Half the 95% interval."""
    return _small(_half_width(standing))


def _half_width(standing: Standing | None) -> float:
    return (standing.interval.high - standing.interval.low) / 2 if standing else math.nan


def _small(half: float) -> str:
    if math.isnan(half):
        return "-"
    if 0 < half < LEAST_HALF:
        return f"{half:.0e}"
    return f"{half:.4f}".removeprefix("0") if half < 1 else f"{half:.3g}"


def _ranks(one: Standing | None) -> str:
    return "-" if one is None or math.isnan(one.interval.low) else _span(one.ranks)


def _span(ranks: tuple[int, int]) -> str:
    return str(ranks[0]) if ranks[0] == ranks[1] else f"{ranks[0]}-{ranks[1]}"


def _tier(standing: Standing | None) -> str:
    return str(standing.tier) if standing and standing.tier else "-"


def _kept(board: Board, row: Row) -> str:
    """The quality of the point that saves, as a share of the reference's best, both on test."""
    best = [one.best.quality for one in board.rows if one.reference]
    if row.cheap is None or not best or best[0] <= 0 or row.cheap.quality <= 0:
        return "-"
    share = row.cheap.quality / best[0]
    # errors the other way round, so that 99% always means a little worse
    share = share if board.higher_is_better else 1 / share
    return f"{share:.1%}" if share < 10 else "> 10x"


def _saving(row: Row) -> str:
    lost, lead = (row.saved.lost, row.saved.tier == 1) if row.saved else (False, False)
    return times(row.saving) + ("!" if lost else "*" if lead else " ")


def _interval(row: Row, *, wide: bool = False) -> str:
    if row.saved is None:
        return "-"
    ends = row.saved.wide if wide else row.saved.interval
    return "-".join("free" if x > 1e5 else f"{x:.0f}" if x >= 9.95 else f"{x:.1f}" for x in ends)


def _measure(row: Row, name: str, *, half: bool = False) -> str:
    found = getattr(row, name)
    if found is None:
        return "-"
    low, high = found.interval
    return _small((high - low) / 2) if half else quality(found.value)


def curve_lines(board: Board, width: int) -> list[str]:
    """The board's first learners within each cost on a logarithmic scale, where the first in order
    covers others; none where nothing is to be seen or a terminal is narrow.

    Each line ends in a learner's letter, name and area.
    """
    import numpy as np  # not at the top: the help of `bench best` would load it

    rows = [row for row in board.rows if row.curve][:LINES]
    if board.costs is None or not rows or width < LEAST_WIDTH:
        return []
    areas = max(len(_measure(row, "area")) for row in rows)
    columns = width - 9 - 4 - LABEL - 1 - areas
    # quality of each learner (rows, columns) at the costs of the columns, NaN where it has none
    values = np.full((len(rows), columns), np.nan)
    for k, row in enumerate(rows):
        budgets = [point.budget for point in row.curve]
        costs = np.geomspace(*board.costs, columns) * (1 + 1e-9)
        at = np.searchsorted(budgets, costs, "right") - 1
        reached = np.array([point.pick.quality for point in row.curve])
        values[k] = np.where(at < 0, np.nan, reached[at])
    there = ~np.isnan(values)
    if not there.any() or np.ptp(values[there]) == 0:
        return []
    top, bottom = values[there].max(), values[there].min()
    if not board.higher_is_better:
        top, bottom = bottom, top
    # 0.96 |      aaab   a miser  0.76
    # 0.63 |aaabbb       b gbrt   0.71
    cells = np.full((LINES, columns), " ")
    short, labels = shortened([row.learner for row in rows], LABEL), [""] * LINES
    for k in reversed(range(len(rows))):  # the first in order is drawn last, on top
        height = np.round((top - values[k, there[k]]) / (top - bottom) * (LINES - 1))
        letter = chr(ord("a") + k)
        cells[height.astype(int), there[k]] = letter
        name, area = short[rows[k].learner], _measure(rows[k], "area")
        labels[k] = f"{letter} {name:<{LABEL}} {area:>{areas}}"
    edges = [quality(top), *[""] * (LINES - 2), quality(bottom)]
    left, right = (cost(value) for value in board.costs)
    return [
        f"{board.metric} within a mean cost; the area is its mean over these costs",
        *(
            f"{edge:>7} |{''.join(line)}  {label}".rstrip()
            for edge, line, label in zip(edges, cells, labels, strict=True)
        ),
        f"{'':8}{left}{right:>{columns - len(left) + 1}}",
    ]
