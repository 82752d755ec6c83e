"""The tables of a board: narrow on a terminal, with its curves in letters; everything on one line
elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bench_core.errors import one_line
from bench_core.leaderboard.board import SHARE, Board, Row, Standing
from bench_core.terminal.tables import GAP, Table
from bench_core.terminal.wording import TINY, cost, quality, times

if TYPE_CHECKING:
    import numpy as np

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

Column = tuple[str, list[str]]


def main_table(board: Board, width: int) -> tuple[Table, dict[str, str]]:
    """The rows without columns that say nothing, and the names that had to be shortened."""
    columns = [
        ("rank", [_ranks(row) for row in board.rows]),
        (heading_of(board), [starred(quality(r.best.quality), r.standing) for r in board.rows]),
        ("±", [half(row.standing) for row in board.rows]),
        ("cost", [cost(row.best.cost) for row in board.rows]),
        (f"{PERCENT} cost", [cost(row.cheap.cost) if row.cheap else "-" for row in board.rows]),
        ("kept", [_kept(board, row) for row in board.rows]),
        ("saving", [_saving(row) for row in board.rows]),
        ("95%", [_interval(row) for row in board.rows]),
    ]
    return _narrow(board, [c for c in columns if any(cell.strip() != "-" for cell in c[1])], width)


def budget_table(board: Board, width: int) -> Table | None:
    """Quality within each budget; with half the width of its interval where there is room."""
    if not board.budgets:
        return None
    for with_half in (True, False):
        columns = [
            (_within(k, board), [_cell(board, k, row, with_half) for row in board.rows])
            for k in range(len(board.budgets))
        ]
        made, _ = _narrow(board, columns, width)
        names = max(len(row[0]) for row in made.rows)
        if names + sum(GAP + _width(column) for column in columns) <= width:
            break
    best = frozenset(
        (i, k + 1)
        for k in range(len(board.budgets))
        for i, row in enumerate(board.rows)
        if (standing := _at(board, k, row)) and standing == _top(board, k)
    )
    return replace(made, title=about_budgets(board), bold_cells=best)


def about_budgets(board: Board) -> str:
    """The title of the table of budgets."""
    return f"{board.metric} within a cost per row of:"


def plain_tables(board: Board) -> Iterator[Table]:
    """Every figure of a board, one row a line, with the data set in front."""
    rows = board.rows
    columns: list[Column] = [
        ("data set", [board.dataset] * len(rows)),
        ("learner", [one_line(row.learner) for row in rows]),
        ("tier", [_tier(row.standing) for row in rows]),
        ("rank", [_ranks(row) for row in rows]),
        (board.metric, [quality(row.best.quality) for row in rows]),
        ("95% from", [quality(_edges(row.standing)[0]) for row in rows]),
        ("to", [quality(_edges(row.standing)[1]) for row in rows]),
        ("cost", [cost(row.best.cost) for row in rows]),
        (f"{PERCENT} {board.metric}", [_cheap(row, lambda c: quality(c.quality)) for row in rows]),
        (f"{PERCENT} cost", [_cheap(row, lambda c: cost(c.cost)) for row in rows]),
        ("saving", [times(row.saving) for row in rows]),
        ("saving 95%", [_interval(row) for row in rows]),
        ("saving 99%", [_interval(row, wide=True) for row in rows]),
        ("saving tier", [str(row.saved.tier) if row.saved else "-" for row in rows]),
        ("area", [_measure(row, "area") for row in rows]),
        ("± area", [_measure(row, "area", half=True) for row in rows]),
        ("regret", [_measure(row, "regret") for row in rows]),
        ("± regret", [_measure(row, "regret", half=True) for row in rows]),
        *(_gaps(rows) if board.optimum else ()),
        ("audit", [row.audit for row in rows]),
        ("marks", [", ".join(board.marks_of(row)) or "-" for row in rows]),
    ]
    yield _plain(columns, "")
    if board.budgets:
        columns = columns[:2]
        for k in range(len(board.budgets)):
            at = [_at(board, k, row) for row in rows]
            name = _within(k, board)
            picks = [row.within[k] for row in rows]
            columns += [
                (name, [quality(pick.quality) if pick else "-" for pick in picks]),
                (f"± {name}", [half(one) for one in at]),
                (f"tier {name}", [_tier(one) for one in at]),
            ]
        yield _plain(columns, about_budgets(board))


def _gaps(rows: Sequence[Row]) -> Iterator[Column]:
    yield "to optimum", [_measure(row, "gap") for row in rows]
    yield "± to optimum", [_measure(row, "gap", half=True) for row in rows]


def _plain(columns: Sequence[Column], title: str) -> Table:
    titles = [name for name, _ in columns]
    words = {"data set", "learner", "audit", "marks"}
    rows = list(zip(*(cells for _, cells in columns), strict=True))
    return Table(titles, rows, "learner", [t for t in titles if t not in words], title=title)


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
    short = shortened([row[0] for row in rows], _room(titles[1:], rows, width))
    return Table(titles, [[short[r[0]], *r[1:]] for r in rows], "learner", titles[1:])


def shortened(names: Sequence[str], room: int) -> dict[str, str]:
    """Each name in at most ``room`` characters, the middle of a long one left out."""
    found: dict[str, str] = {}
    for name in names:
        short = name
        if len(name) > room:
            tail = (room - 1) // 2
            short = f"{name[: room - 1 - tail]}~{name[len(name) - tail :]}"
            if short in found.values():
                number = str(len(found) + 1)
                short = f"{name[: room - 1 - len(number)]}~{number}"
        found[name] = short
    return found


def heading_of(board: Board) -> str:
    """The metric's name, or "quality" for a long one."""
    return board.metric if len(board.metric) <= _TITLE else "quality"


def _narrow(board: Board, columns: Sequence[Column], width: int) -> tuple[Table, dict[str, str]]:
    titles = ["learner", *(title for title, _ in columns)]
    cells = list(zip(*(cells for _, cells in columns), strict=True))
    names = [one_line(row.learner) for row in board.rows]
    short = shortened(names, _room(titles[1:], [["", *row] for row in cells], width))
    rows = [[short[name], *row] for name, row in zip(names, cells, strict=True)]
    methods = sum(not row.baseline for row in board.rows)
    rule = methods if 0 < methods < len(rows) else None
    styles = ["dim" if row.baseline else "" for row in board.rows]
    made = Table(titles, rows, "learner", titles[1:], row_styles=styles, rule=rule)
    return made, {s: name for name, s in short.items() if s != name}


def _room(titles: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> int:
    """The width that other columns leave for names."""
    columns = zip(titles, zip(*(row[1:] for row in rows), strict=True), strict=True)
    return max(LEAST_NAME, width - sum(GAP + _width((t, list(c))) for t, c in columns))


def _width(column: Column) -> int:
    title, cells = column
    return max(map(len, [*title.split(), *cells]))


def _at(board: Board, k: int, row: Row) -> Standing | None:
    """The row's standing at a budget."""
    found = board.standings[k].rows if board.standings else ()
    return next((one for one in found if one.learner == row.learner), None)


def _top(board: Board, k: int) -> Standing | None:
    there = [one for one in board.standings[k].rows if one.tier] if board.standings else []
    sign = -1 if board.higher_is_better else 1
    return min(there, key=lambda one: sign * one.quality, default=None)


def _within(k: int, board: Board) -> str:
    budget = board.budgets[k]
    return f"<= {budget}" if budget.kind == "mean" else str(budget)


def _cell(board: Board, k: int, row: Row, with_half: bool) -> str:
    """The quality within a budget, with half its interval if asked for and known."""
    standing = _at(board, k, row)
    half = _half_width(standing)
    if standing is None or not with_half or math.isnan(half):
        pick = row.within[k] if row.within else None
        return starred(quality(pick.quality), standing) if pick else "-"
    value = standing.quality
    if abs(value) < TINY:
        return starred(f"{quality(value)}±{_small(half)}", standing)
    digits = 3 if abs(value) >= 0.1 else 4
    edge = f"{half:.{digits}f}".removeprefix("0") if half < 1 else f"{half:.2g}"
    shown = f"{value:.{digits}f}" if abs(value) < 10 else f"{value:.4g}"
    return starred(f"{shown}±{edge}", standing)


def starred(text: str, standing: Standing | None) -> str:
    """A figure with * where its learner is in tier 1."""
    if standing is None or math.isnan(standing.interval.low):
        return text
    return f"{text}{'*' if standing.tier == 1 else ' '}"


def _ranks(row: Row) -> str:
    one = row.standing
    return "-" if one is None or math.isnan(one.interval.low) else _span(one.ranks)


def _span(ranks: tuple[int, int]) -> str:
    return str(ranks[0]) if ranks[0] == ranks[1] else f"{ranks[0]}-{ranks[1]}"


def _tier(standing: Standing | None) -> str:
    return str(standing.tier) if standing and standing.tier else "-"


def _edges(standing: Standing | None) -> tuple[float, float]:
    return standing.interval if standing else (math.nan, math.nan)


def _half_width(standing: Standing | None) -> float:
    low, high = _edges(standing)
    return (high - low) / 2


def half(standing: Standing | None) -> str:
    """Half the 95% interval."""
    return _small(_half_width(standing))


def _small(half: float) -> str:
    if math.isnan(half):
        return "-"
    if 0 < half < LEAST_HALF:
        return f"{half:.0e}"
    return f"{half:.4f}".removeprefix("0") if half < 1 else f"{half:.3g}"


def _kept(board: Board, row: Row) -> str:
    """The quality of the point that saves, as a share of the reference's best, both on test."""
    best = [one.best.quality for one in board.rows if one.reference]
    if row.cheap is None or not best or best[0] <= 0 or row.cheap.quality <= 0:
        return "-"
    share = row.cheap.quality / best[0]
    share = share if board.higher_is_better else 1 / share
    return f"{share:.1%}" if share < 10 else "> 10x"


def _saving(row: Row) -> str:
    lead = row.saved is not None and row.saved.tier == 1
    lost = row.saved is not None and row.saved.lost
    return times(row.saving) + ("!" if lost else "*" if lead else " ")


def _interval(row: Row, *, wide: bool = False) -> str:
    if row.saved is None:
        return "-"
    return "-".join(map(_factor, row.saved.wide if wide else row.saved.interval))


def _factor(value: float) -> str:
    if value > 1e5:
        return "free"
    return f"{value:.0f}" if value >= 9.95 else f"{value:.1f}"


def _cheap(row: Row, word: Callable[..., str]) -> str:
    return word(row.cheap) if row.cheap else "-"


def _measure(row: Row, name: str, *, half: bool = False) -> str:
    found = getattr(row, name)
    if found is None:
        return "-"
    low, high = found.interval
    return _small((high - low) / 2) if half else quality(found.value)


def name_lines(short: Mapping[str, str]) -> list[str]:
    """The legend of shortened names."""
    pairs = ", ".join(f"{cut} is {name}" for cut, name in short.items())
    return [f"names: {pairs}"] if pairs else []


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
    values = np.stack([_read(row, np.geomspace(*board.costs, columns)) for row in rows])
    there = ~np.isnan(values)
    if not there.any() or np.ptp(values[there]) == 0:
        return []
    top, bottom = values[there].max(), values[there].min()
    if not board.higher_is_better:
        top, bottom = bottom, top
    cells = np.full((LINES, columns), " ")
    for k in reversed(range(len(rows))):
        height = np.round((top - values[k, there[k]]) / (top - bottom) * (LINES - 1))
        cells[height.astype(int), there[k]] = chr(ord("a") + k)
    labels = _labels(rows, areas)
    lines = [f"{board.metric} within a mean cost; the area is its mean over these costs"]
    for i in range(LINES):
        edge = quality(top) if i == 0 else quality(bottom) if i == LINES - 1 else ""
        label = labels[i] if i < len(labels) else ""
        lines.append(f"{edge:>7} |{''.join(cells[i])}  {label}".rstrip())
    left, right = (cost(value) for value in board.costs)
    lines.append(f"{'':8}{left}{right:>{columns - len(left) + 1}}")
    return lines


def _labels(rows: Sequence[Row], width: int) -> list[str]:
    short = shortened([row.learner for row in rows], LABEL)
    return [
        f"{chr(ord('a') + k)} {short[row.learner]:<{LABEL}} {_measure(row, 'area'):>{width}}"
        for k, row in enumerate(rows)
    ]


def _read(row: Row, costs: np.ndarray) -> np.ndarray:
    import numpy as np

    at = np.searchsorted([point.budget for point in row.curve], costs * (1 + 1e-9), "right") - 1
    reached = np.array([point.pick.quality for point in row.curve])
    return np.where(at < 0, math.nan, reached[at])
