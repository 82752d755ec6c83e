"""The columns of a board, the same in every format and in Python.

A column has a title, the value of each row, the text of a cell, and an explanation. Formats loop
over ``columns``: a new column is one entry there. Plugins add columns by the hook
``bench_columns``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from bench_core.errors import one_line
from bench_core.leaderboard.board import (
    NOTHING,
    RANK,
    Board,
    Row,
    Saved,
    Standing,
    Standings,
)
from bench_core.statistics import CONFIDENCE, LEVEL, WIDE_LEVEL
from bench_core.statistics.bootstrap import FEW_DRAWS
from bench_core.statistics.comparison import Interval
from bench_core.terminal.wording import (
    CHEAPER,
    chance,
    cost,
    duration,
    half,
    percent,
    quality,
    saving,
    saving_ends,
)

if TYPE_CHECKING:
    from bench_core.plugins import Registry

Value = float | str | Interval

BEST = ", best"  # ends the name of the reference's second row
FEATURES = "features"
"""Title of the column ``cost`` next to total costs, which also count errors."""
QUALITY = "quality"
"""Name of the column of the primary metric in files, and in ``--columns``."""


@dataclass(frozen=True, slots=True)
class Column:
    """A figure of each row. ``name`` is the title in files of several data sets, of an interval the
    beginning of the titles of its ends. ``usual``: shown if no columns are named."""

    title: str
    value: Callable[[Row], Value]  # NaN or "" if unknown
    text: Callable[[Row], str]  # "-" if unknown
    about: str = ""
    name: str | None = None
    usual: bool = False
    tier: Callable[[Row], int] | None = None  # 1: not significantly worse than the best
    higher_is_better: bool = False
    interval: Callable[[Row], Interval] | None = None  # of the value, beside it if there is room

    def fields(self, row: Row, title: str = "") -> dict[str, float | str]:
        """Return the value by name, or by another title; an interval as two numbers."""
        name = self.title if self.name is None else self.name
        value = self.value(row)
        if isinstance(value, Interval):
            return {f"{name} {end}".strip(): at for end, at in value._asdict().items()}
        return {title or name: value}

    def leaders(self, rows: Sequence[Row]) -> tuple[set[str], set[str]]:
        """Return the learners with the best value, and those that tie with it."""
        if self.tier is None:
            return set(), set()
        values = {row.learner: self.value(row) for row in rows if self.tier(row) == 1}
        best = (max if self.higher_is_better else min)(values.values(), default="")
        lead = {name for name, value in values.items() if value == best}
        return lead, values.keys() - lead


def columns(board: Board, registry: Registry | None = None) -> list[Column]:
    """Return the columns of a board that belong to no budget, in the order of tables, with those of
    plugins."""
    about, higher, metric = _explanations(board), board.higher_is_better, board.metric
    at_best = {standing.learner: standing.tier for standing in board.unlimited.rows}

    def wrong(row: Row) -> float:
        return board.wrong(row.model.quality) if board.tested else math.nan

    def errors(row: Row) -> float:
        return row.model.quality - row.model.cost if board.totals else math.nan

    def setting(row: Row) -> str:
        return one_line(", ".join(at.short for at in row.model.settings))

    def rows(number: float) -> str:
        return f"{number:.1f}" if board.repeats > 1 and not math.isnan(number) else whole(number)

    paid = FEATURES if board.totals else "cost"
    cheaper_95, cheaper_99 = (f"{CHEAPER} {share:.0%}" for share in (LEVEL, WIDE_LEVEL))
    entries = [
        _column(paid, lambda row: row.model.cost, cost, name="cost", usual=True),
        _column(
            CHEAPER,
            lambda row: row.saving,
            saving,
            usual=True,
            tier=lambda row: row.saved.tier,
            higher_is_better=True,
        ),
        _column(cheaper_95, lambda row: row.saved.interval, saving_ends, name=CHEAPER, usual=True),
        _column(cheaper_99, lambda row: row.saved.wide, saving_ends),
        _column("errors", errors, cost, usual=True),
        _column("wrong", wrong, rows, usual=True),
        _column(metric, lambda row: row.model.quality, quality, name=QUALITY, usual=True),
        _spread("±", lambda row: row.model_interval, lambda row: row.model.quality, "", usual=True),
        _column("sure", lambda row: row.probability, lambda p: whole(100 * p, "%")),
        _column("kept", board.kept, kept),
        _column(
            f"best {metric}",
            lambda row: row.best.quality,
            quality,
            name=f"best {QUALITY}",
            tier=lambda row: at_best.get(row.learner, 0),
            higher_is_better=higher,
        ),
        _spread("best ±", lambda row: row.standing.interval, lambda row: row.best.quality, "best"),
        _column("best cost", lambda row: row.best.cost, cost),
        _column(RANK, lambda row: row.standing.rank, str),
        _column("tier", lambda row: row.standing.tier, positive),
        _column(f"{CHEAPER} tier", lambda row: row.saved.tier, positive),
        _column("area", lambda row: row.area.value, quality),
        _spread("± area", lambda row: row.area.interval, lambda row: row.area.value, "area"),
        _column("regret", lambda row: row.regret.value, quality),
        _spread(
            "± regret", lambda row: row.regret.interval, lambda row: row.regret.value, "regret"
        ),
        _column("setting", setting, str),
        _column("settings", lambda row: row.fits, positive),
        _column("seconds", lambda row: row.seconds, lambda s: duration(s) if s else "-"),
        _column("audit", lambda row: row.audit, str),
        _column("marks", lambda row: ", ".join(board.marks_of(row)), str),
    ]
    entries = [replace(column, about=about.get(column.title, "")) for column in entries]
    plugins = registry.columns.values() if registry else ()
    return [*entries, *(column for columns_of in plugins for column in columns_of(board))]


V = TypeVar("V", float, int, str, Interval)


def _column(title: str, value: Callable[[Row], V], show: Callable[[V], str], **more: Any) -> Column:
    """Return a column whose cells are shown values, "-" for "". The likeliest model of a row shows
    the probability that it keeps the quality in place of a saving."""

    def text(row: Row) -> str:
        if title == CHEAPER and row.likely:
            return saving(row.saving, row.probability, row.sure_in)
        if title == "sure" and row.likely:
            return chance(row.probability, row.sure_in).removesuffix(" sure")
        return show(value(row)) or "-"

    return Column(title, value, text, **more)


def _spread(
    title: str,
    ends: Callable[[Row], Interval],
    value: Callable[[Row], float],
    name: str,
    usual: bool = False,
) -> Column:
    """Return a column of intervals about a value, shown as half their width."""

    def text(row: Row) -> str:
        return half(ends(row), value=value(row))

    return Column(title, ends, text, name=name, usual=usual)


def budget_columns(board: Board) -> list[Column]:
    """Return the columns of quality within each budget: its value, interval and tier."""
    return [column for at in board.standings for column in _within(board, at)]


def _within(board: Board, at: Standings) -> Iterator[Column]:
    budget = at.budget
    assert budget is not None
    title = f"<= {budget}" if budget.kind == "mean" else str(budget)
    limit = "that mean cost" if budget.kind == "mean" else f"a cost of {budget.words}"
    standings = {standing.learner: standing for standing in at.rows}

    def of(row: Row) -> Standing:
        return standings.get(row.learner, Standing())

    yield Column(
        title,
        lambda row: of(row).quality,
        lambda row: quality(of(row).quality),
        f"{board.metric} within {limit} per row",
        tier=lambda row: of(row).tier,
        higher_is_better=board.higher_is_better,
        interval=lambda row: of(row).interval,
    )
    yield _spread(f"± {title}", lambda row: of(row).interval, lambda row: of(row).quality, title)
    yield _column(f"tier {title}", lambda row: of(row).tier, positive)
    if any(standing.beyond[0] for standing in at.rows):
        about = f"rows beyond {title} by a purchase at a metered price, and their mean excess"
        yield Column(
            f"over {title}",
            lambda row: of(row).beyond[0],
            lambda row: over_cap(*of(row).beyond),
            about,
            usual=True,
        )


def standing_fields(standing: Standing, metric: str = QUALITY) -> dict[str, float]:
    """Return the figures of a learner at a budget by name, for files and Python."""
    beyond = standing.beyond
    return {
        metric: standing.quality,
        **standing.interval._asdict(),
        "tier": standing.tier,
        "cost": standing.cost,
        "best rank": standing.ranks[0],
        "worst rank": standing.ranks[1],
        **(dict(zip(("over cap", "excess"), beyond, strict=True)) if beyond[0] else {}),
    }


def shown_rows(board: Board) -> list[Row]:
    """Return the rows of a table: the reference has a second one at its best, and a choice has one
    for each source alone and for the oracle."""
    rows = []
    for row in board.rows:
        rows.append(row)
        if row.reference and row.cheap and cost(row.cheap.cost) != cost(row.best.cost):
            best = replace(row, cheap=NOTHING, saved=Saved(), saving=math.nan, marks=())
            rows.append(replace(best, learner=f"{row.learner}{BEST}", reference=False))
    return [*rows, *board.sources]


def row_names(rows: Sequence[Row]) -> list[str]:
    """Return the names of a table's rows: the reference is cut to the quality if it has a second
    row at its best."""
    names = [row.learner for row in rows]
    return [f"{name}, cut" if f"{name}{BEST}" in names else name for name in names]


def over_cap(share: float, excess: float) -> str:
    """Return the share of rows beyond a cap, and by how much they exceed it on average."""
    return f"{share:.1%} by {cost(excess)}" if share else "-"


def whole(value: float, unit: str = "") -> str:
    """Return a whole number."""
    return "-" if math.isnan(value) else f"{value:.0f}{unit}"


def positive(value: int) -> str:
    """Return a whole number, "-" for 0, which is no tier."""
    return str(value or "-")


def kept(share: float) -> str:
    """Return the share of the reference's quality that is kept on test."""
    return "-" if math.isnan(share) else f"{share:.1%}" if share < 10 else "> 10x"


TIER_WORDS = "1 is not significantly worse than the best (all pairs tested jointly)"


def _explanations(board: Board) -> dict[str, str]:
    """Return the explanations of a board's columns by title."""
    half_width = f"half the {CONFIDENCE} interval{of_few_draws(board)}"
    at_best = "of its best model at any cost"
    likely = any(row.likely and not row.cheap for row in board.rows)
    texts = {
        "±": half_width + ", of a sure model" * likely,
        "errors": "mean cost of errors",
        f"best {board.metric}": at_best,
        "best ±": half_width,
        "best cost": at_best,
        RANK: f"{CONFIDENCE} range of its rank in {board.metric}",
        "tier": TIER_WORDS,
        "area": f"mean {board.metric} over all budgets",
        "regret": "mean distance to the best learner at each budget",
        "setting": "parameters that vary, and the point of the path",
        "settings": "number of settings tried",
        "seconds": "time of training",
    }
    if not board.saves:
        return texts
    name, metric = one_line(board.reference), board.metric
    best = f"{name}'s best test {metric}"
    share = f"its test {metric} as a share of {best}"
    repeats = ", the mean of repeats" if board.repeats > 1 else ""
    ratio = f"the cost of {name} by the same rule divided by this one{repeats}"
    return texts | {
        CHEAPER: "; ".join([ratio, *_missing_words(board)]),
        f"{CHEAPER} {WIDE_LEVEL:.0%}": "its interval",
        f"{CHEAPER} tier": TIER_WORDS,
        "kept": share if board.higher_is_better else f"{best} as a share of its",
    }


def rule_words(board: Board) -> str:
    """Return the rule by which the model of a row is chosen."""
    sure = f"is {CONFIDENCE} sure to have" if board.draws else "has"
    rule = f"the cheapest that {sure} {target(board)} on validation"
    return f"{rule}, else the likeliest" if any(row.likely for row in board.rows) else rule


def target(board: Board) -> str:
    """Return the quality at which savings are measured, in words."""
    best = f"{one_line(board.reference)}'s best {board.metric}"
    return (
        f"at least {percent(board.keep)} of {best}"
        if board.higher_is_better
        else f"at most {best} / {board.keep:.6g}"
    )


def _missing_words(board: Board) -> Iterator[str]:
    """Yield explanations of rows without a sure model, if there are some."""
    others, kept = [row for row in board.rows if not row.cheap], percent(board.keep)
    if any(row.likely for row in others):
        yield f"% sure: the probability that the likeliest model has {kept}"
    if not all(row.likely for row in others):
        likely = "is likely to have" if board.draws else "has"
        yield f"-: no model {likely} {kept}, its best is shown"


def order_words(board: Board) -> str:
    """Return the order of a board's rows in words."""
    by = board.metric
    if board.saves:
        tiers = any(row.saved.tier for row in board.rows)
        by = "tier of saving, then cost" if tiers else "cost"
    last = "; baselines are last" if any(row.baseline for row in shown_rows(board)) else ""
    return f"Sorted by {by}{last}."


def of_few_draws(board: Board) -> str:
    """Return the number of draws behind intervals, if it is lower than usual."""
    return f" of {board.draws} draws" if 0 < board.draws <= FEW_DRAWS else ""


def explained(shown: Iterable[Column]) -> str:
    """Return the explanations of columns in one sentence; equal ones are given once."""
    titles: dict[str, list[str]] = {}
    for column in shown:
        if column.about:
            titles.setdefault(column.about, []).append(column.title)
    words = "; ".join(f"{', '.join(of)}: {about}" for about, of in titles.items())
    return words and f"{words}."


def filled(shown: Collection[Column], rows: Collection[Row]) -> list[Column]:
    """Return the columns that are not empty."""
    return [column for column in shown if any(column.text(row) != "-" for row in rows)]
