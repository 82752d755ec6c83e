"""The columns of a board: their titles, cells and explanations, the same in every format."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from bench_core.errors import one_line
from bench_core.leaderboard.board import (
    NOTHING,
    RANK,
    SHARE,
    Board,
    Measure,
    Row,
    Saved,
    Standing,
)
from bench_core.statistics import CONFIDENCE, WIDE_LEVEL
from bench_core.statistics.bootstrap import FEW_DRAWS
from bench_core.statistics.comparison import Interval
from bench_core.terminal.wording import cost, quality, times

PERCENT = f"{SHARE:.0%}"
CHEAPER = "cheaper"
SURE = f"{CHEAPER} {CONFIDENCE}"
WIDE = f"{CHEAPER} {WIDE_LEVEL:.0%}"

LEAST_HALF = 0.00005
"""Below this four decimals would show half an interval as 0."""

Columns = Mapping[str, Callable[[Row], str]]
"""The cells of a row, by title."""


class Asked(NamedTuple):
    """Columns asked for by data set, those of the table of budgets, explanations of p-values, and
    True if the columns were named: then no other table is shown."""

    columns: Mapping[str, Columns] = {}
    within: Mapping[str, Columns] = {}
    tests: Mapping[str, Mapping[str, str]] = {}
    named: bool = False


USUAL = Asked()


def on_screen(board: Board) -> list[str]:
    """Return the titles of a terminal's columns, without columns of dashes."""
    titles = ("cost", CHEAPER, SURE, "wrong", board.metric, "±")
    columns = columns_of(board)
    return [t for t in titles if any(columns[t](row).strip() != "-" for row in board.rows)]


def columns_of(board: Board) -> dict[str, Callable[[Row], str]]:
    """Return every column of a board by title."""
    return {**main_columns(board), **budget_columns(board)}


def main_columns(board: Board) -> dict[str, Callable[[Row], str]]:
    """Return the columns of a board that belong to no budget, by title."""
    return {
        "cost": lambda row: cost(row.model.cost),
        CHEAPER: cheaper_of,
        SURE: lambda row: ends_of(row.saved.interval),
        WIDE: lambda row: ends_of(row.saved.wide),
        "wrong": lambda row: str(board.wrong(row.model.quality)) if board.tested else "-",
        board.metric: lambda row: quality(row.model.quality),
        "±": lambda row: small(half_of(row.model_interval)),
        "kept": partial(kept_of, board),
        f"best {board.metric}": lambda row: quality(row.best.quality),
        "best ±": lambda row: half(row.standing),
        "best low": lambda row: quality(row.standing.interval.low),
        "best high": lambda row: quality(row.standing.interval.high),
        "best cost": lambda row: cost(row.best.cost),
        RANK: lambda row: row.standing.rank or "-",
        "tier": lambda row: tier_of(row.standing),
        f"{CHEAPER} tier": lambda row: str(row.saved.tier or "-"),
        **_measures("area", "area"),
        **_measures("regret", "regret"),
        **(_measures("to optimum", "gap") if board.optimum.mean else {}),
        "audit": lambda row: row.audit,
        "marks": lambda row: ", ".join(board.marks_of(row)) or "-",
    }


def shown_rows(board: Board) -> list[Row]:
    """Return the rows of a table: the reference has a second one at its best."""
    rows = []
    for row in board.rows:
        rows.append(row)
        if row.reference and row.cheap and cost(row.cheap.cost) != cost(row.best.cost):
            best = replace(row, cheap=NOTHING, saved=Saved(), saving=math.nan, marks=())
            rows.append(replace(best, learner=f"{row.learner}, best", reference=False))
    return rows


def cheaper_of(row: Row) -> str:
    """Return the saving, or the probability that the likeliest model keeps the quality."""
    return f"{row.likely.probability:.0%} sure" if row.likely else times(row.saving)


def budget_columns(board: Board) -> Columns:
    """Return the columns of quality within each budget, by title."""
    within: dict[str, Callable[[Row], str]] = {}
    for k in range(len(board.budgets)):
        at, name = standings_at(board, k), within_words(board, k)
        within[name] = partial(lambda at, row: quality(at[row.learner].quality), at)
        within[f"± {name}"] = partial(lambda at, row: half(at[row.learner]), at)
        within[f"tier {name}"] = partial(lambda at, row: tier_of(at[row.learner]), at)
    return within


def within_words(board: Board, k: int) -> str:
    """Return the title of a board's budget number ``k``."""
    budget = board.budgets[k]
    return f"<= {budget}" if budget.kind == "mean" else str(budget)


def standings_at(board: Board, k: int) -> dict[str, Standing]:
    """Return the learners' standings at a budget."""
    known = board.standings[k].rows if board.standings else ()
    return defaultdict(Standing, ((one.learner, one) for one in known))


def _measures(title: str, name: str) -> Columns:
    """Return columns for a measure of rows, and half its interval."""

    return {
        title: lambda row: quality(getattr(row, name).value),
        f"± {title}": lambda row: small(half_width(getattr(row, name))),
    }


def half(standing: Standing) -> str:
    """Return half the 95% interval."""
    return small(half_width(standing))


def half_width(of: Standing | Measure) -> float:
    """Return half the width of the interval."""
    return half_of(of.interval)


def half_of(ends: Interval) -> float:
    """Return half the width of an interval."""
    return (ends.high - ends.low) / 2


def small(half: float) -> str:
    """Return half the width of an interval as text."""
    if math.isnan(half):
        return "-"
    if 0 < half < LEAST_HALF:
        return f"{half:.0e}"
    return f"{half:.4f}".removeprefix("0") if half < 1 else f"{half:.3g}"


def tier_of(standing: Standing) -> str:
    """Return the tier, "-" for none."""
    return str(standing.tier or "-")


def kept_of(board: Board, row: Row) -> str:
    """Return the share of the reference's quality that is kept on test."""
    share = board.kept(row)
    return "-" if math.isnan(share) else f"{share:.1%}" if share < 10 else "> 10x"


def ends_of(ends: Interval) -> str:
    """Return the ends of an interval of savings."""
    return "-" if math.isnan(ends.low) else "-".join(map(_end, ends))


def _end(x: float) -> str:
    if 0.995 <= x < 1:
        return "<1"  # 1.00 would hide that the interval has 1 in it
    return "free" if x > 1e5 else f"{x:.0f}" if x >= 9.95 else times(x).removesuffix("x")


def explained(known: Mapping[str, str], titles: Collection[str]) -> str:
    """Return the explanations of columns that are shown, in one sentence."""
    shown: dict[str, list[str]] = {}
    for title, about in known.items():
        if title in titles:
            shown.setdefault(about, []).append(title)
    words = "; ".join(f"{', '.join(of)}: {about}" for about, of in shown.items())
    return words and f"{words}."


def saving_columns(board: Board) -> dict[str, str]:
    """Return explanations of columns of savings by title."""
    name = one_line(board.reference)
    share = f"its test {board.metric} as a share of {name}'s best"
    if not board.higher_is_better:
        share = f"{name}'s best test {board.metric} as a share of its"
    return {"cost": rule_words(board), CHEAPER: saving_words(board), "kept": share}


def rule_words(board: Board) -> str:
    """Return the rule by which the model of a row is chosen."""
    if board.draws:
        return (
            f"of the cheapest model that is sure to have {target(board)} ({CONFIDENCE}, validation)"
        )
    return f"of the cheapest model that has {target(board)} on validation"


def certainty_columns(board: Board, tests: Mapping[str, str] = {}) -> dict[str, str]:
    """Return explanations of columns of uncertainty by title, with those of p-values."""
    few = of_few_draws(board)
    budgets = [within_words(board, k) for k in range(len(board.budgets))]
    known = {
        "±": f"half the {CONFIDENCE} interval{few}",
        "best ±": f"half the {CONFIDENCE} interval{few}",
        "best low": f"ends of the {CONFIDENCE} interval{few}",
        "best high": f"ends of the {CONFIDENCE} interval{few}",
        f"best {board.metric}": "of its best model at any cost",
        "best cost": "of its best model at any cost",
        "tier": "1 is not significantly worse than the best (all pairs tested jointly)",
        RANK: rank_words(board),
        "area": f"mean {board.metric} over all budgets",
        "regret": "mean distance to the best learner at each budget",
    }
    known |= {f"± {within}": known["±"] for within in budgets}
    known |= {f"tier {within}": known["tier"] for within in budgets}
    for within, budget in zip(budgets, board.budgets, strict=True):
        limit = "that mean cost" if budget.kind == "mean" else f"a cost of {budget.words}"
        known[within] = f"{board.metric} within {limit} per row"
    known |= tests
    if board.saves:
        known |= {SURE: "its interval", WIDE: "its interval", f"{CHEAPER} tier": known["tier"]}
    return known


def target(board: Board) -> str:
    """Return the quality at which savings are measured, in words."""
    best = f"{one_line(board.reference)}'s best {board.metric}"
    return (
        f"at least {PERCENT} of {best}" if board.higher_is_better else f"at most {best} / {SHARE}"
    )


def saving_words(board: Board) -> str:
    """Return the explanation of the column of savings."""
    mean = ", the mean of repeats" if board.repeats > 1 else ""
    who = one_line(board.reference)
    return f"the cost of {who}, chosen by the same rule, divided by this cost{mean}"


def missing_words(board: Board) -> str:
    """Return the explanation of rows without a sure model, if there are some."""
    others = [row for row in board.rows if not row.cheap]
    if not board.saves or not others:
        return ""
    likely = f"% sure: the probability that the likeliest model has {PERCENT}."
    none = (
        f"-: no model {'is likely to have' if board.draws else 'has'} {PERCENT}; its best is shown."
    )
    lines = {
        likely: any(row.likely for row in others),
        none: not all(row.likely for row in others),
    }
    return " ".join(line for line, there in lines.items() if there)


def rank_words(board: Board) -> str:
    """Return the explanation of the column of ranks."""
    return f"{CONFIDENCE} range of its rank in {board.metric}"


def order_words(board: Board) -> str:
    """Return the order of a board's rows in words."""
    by = board.metric
    if board.saves:
        known = any(row.saved.tier for row in board.rows)
        by = "tier of saving, then significant savings first, then cost" if known else "cost"
    words = [f"Sorted by {by}."]
    if any(row.baseline for row in board.rows):
        words.append("Baselines are last.")
    return " ".join(words)


def of_few_draws(board: Board) -> str:
    """Return the number of draws behind intervals, if it is lower than usual."""
    return f" of {board.draws} draws" if 0 < board.draws <= FEW_DRAWS else ""
