"""The tables of a board: which columns and rows each has, for every format."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bench_core.errors import UsageError, require
from bench_core.leaderboard.columns import (
    BEST,
    FEATURES,
    QUALITY,
    Column,
    budget_columns,
    columns,
    filled,
    shown_rows,
)
from bench_core.leaderboard.pairs import pairs_within
from bench_core.option_fields import listed
from bench_core.results.budgets import Budget
from bench_core.statistics.comparison import Difference, holm
from bench_core.terminal.wording import count, p_value

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.leaderboard.board import Board, Row
    from bench_core.plugins import Registry
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

P = "p (best)"
"""Title of the p-values of each learner's best quality, which ``p`` names, too."""

FIT = 3
"""Budgets whose p-values fit beside the qualities in one column of a paper."""


class Panel(NamedTuple):
    """A table of a board. ``tested``: it has p-values."""

    title: str
    columns: Sequence[Column]
    rows: Sequence[Row]
    tested: bool = False

    def leaders(self, column: Column) -> tuple[set[str], set[str]]:
        """Return the learners with the best value of a column, and those that tie with it. Ties by
        another test could contradict the p-values next to them, so none are returned there."""
        best, tied = column.leaders(self.rows)
        return best, set() if self.tested else tied


class Panels:
    """The tables of a run's boards: the usual columns, and quality at budgets and caps that the run
    or the report names, or the columns ``names``; with p-values of the difference to the learner
    ``against``.

    In names "quality" is the board's metric, "+-" is "±" and "p" is ``P``. Raises UsageError for a
    column or a learner that the run does not have.
    """

    def __init__(
        self,
        info: RunInfo,
        frame: pd.DataFrame,
        store: Store | None,
        boards: Sequence[Board],
        names: Sequence[str] = (),
        against: str = "",
        registry: Registry | None = None,
    ) -> None:
        self.info, self.frame, self.store, self.boards = info, frame, store, boards
        self.against, self.registry = against, registry
        names = [P if name == "p" else name for text in names for name in listed(text)]
        if against:
            learners = dict.fromkeys(map(str, frame["learner"]))
            require(f"learner of run {info.number}", [against], learners)
        elif any(name == P or name.startswith("p <=") for name in names):
            line = "column p needs a learner to test the others against: --against LEARNER"
            raise UsageError(line)
        tested = any(name.startswith("p ") for name in names)
        self.names = [*names, *([P] if names and against and not tested else [])]
        within = {column.title for board in boards for column in budget_columns(board)}
        self._elsewhere = within | {f"p {title}" for title in within}  # columns of other boards
        for board in boards if names else ():
            self._named(board)  # before anything is written

    def of(self, board: Board, leave_out: Sequence[str] = ()) -> list[Panel]:
        """Return the tables of a board, without some of the usual columns."""
        rows = shown_rows(board)
        if self.names:
            return [Panel("", self._named(board), rows, bool(self.against))]
        usual = [column for column in columns(board, self.registry) if column.usual]
        main = filled([column for column in usual if column.title not in leave_out], rows)
        within = [column for column in budget_columns(board) if column.tier]
        p = self._p_columns(board)
        beside = [both for pair in zip(within, p, strict=False) for both in pair]
        paired = bool(p) and len(within) <= FIT
        over = f"{board.metric} within a cost per row of:"
        shown = beside if paired else within
        shown = [*shown, *(column for column in budget_columns(board) if column.usual)]
        named = within and (board.use.budgets or board.use.caps)
        last = [Panel(over, shown, board.rows, paired)] if named else []
        return [Panel("", [*main, *p[-1:]], rows, bool(p)), *last]

    def best(self, board: Board) -> Panel:
        """Return the table of best qualities at any cost, with p if ``against`` is named."""
        name = f"best {board.metric}"
        best = next(column for column in columns(board) if column.title == name)
        p = [self._p_column(board, P, None, board.rows)] if self.against else []
        return Panel(board.dataset, [best, *p], board.rows, bool(p))

    def _all(self, board: Board) -> list[Column]:
        return [*columns(board, self.registry), *budget_columns(board), *self._p_columns(board)]

    def _named(self, board: Board) -> list[Column]:
        by_title = {column.title: column for column in self._all(board)}
        nothing = {t: Column(t, lambda row: math.nan, lambda row: "-") for t in self._elsewhere}
        shown = []
        for name in self.names:
            word = name if name in by_title else name.replace("+-", "±")
            word = word if word in by_title else word.replace(QUALITY, board.metric)
            word = FEATURES if word == "cost" and board.totals else word
            if word not in by_title and word not in nothing and "<=" in word:
                amount = word.partition("<=")[2].strip()
                line = f"column {word!r}: {amount} is no budget of {board.dataset}: --budget "
                raise UsageError(line + amount)
            require("column", [word], {**nothing, **by_title})
            shown.append(by_title.get(word) or nothing[word])
        return shown

    def _p_columns(self, board: Board) -> list[Column]:
        """Return the columns of p-values, within each budget and at last at any cost."""
        if not self.against:
            return []
        titles = [column.title for column in budget_columns(board) if column.tier]
        limits = zip(titles, board.budgets, strict=True)
        within = [self._p_column(board, f"p {t}", limit, board.rows) for t, limit in limits]
        return [*within, self._p_column(board, P, None, shown_rows(board))]

    def _p_column(
        self, board: Board, title: str, limit: Budget | None, rows: Sequence[Row]
    ) -> Column:
        """Return a column of p-values for these rows: the reference's is in the row of its best."""
        learners = {row.learner.removesuffix(BEST): row.learner for row in rows}
        found = self.p_values(board, limit)
        tests = {learners[name]: test for name, test in found.items()}
        quality = board.metric if limit else f"best {board.metric}"
        place = " within that cost" if limit else " at any cost"
        about = (
            f"two-sided, of the difference in {quality} to {self.against}{place}, "
            f"adjusted by Holm over {count(len(tests), 'comparison')}"
        )
        if not tests:
            about = f"unknown, as no repeat has values of {self.against} and another learner"

        def value(row: Row) -> float:
            return tests[row.learner].adjusted if row.learner in tests else math.nan

        def text(row: Row) -> str:
            return p_value(value(row), row.learner in tests and tests[row.learner].bounded)

        return Column(title, value, text, about)

    def p_values(self, board: Board, budget: Budget | None) -> dict[str, Difference]:
        """Return the difference of ``against`` to each learner within a budget (None: at any cost),
        its p by Holm's method; empty if no learner is named."""
        tests: dict[str, Difference] = {}
        others = [row.learner for row in board.rows if row.learner != self.against]
        if self.store is None or not self.against:
            return tests
        rows = self.frame[self.frame["dataset"] == board.dataset]
        test = partial(pairs_within, self.info, self.store, rows, board.dataset, interest=0.0)
        limit = budget or Budget(math.inf)
        # together, which is faster, if this loses no repeat of a pair; else pair by pair
        for names in (others, *([name] for name in others)):
            if names and not tests.keys() >= {*names}:
                compared = [self.against, *names]
                with suppress(UsageError):  # two learners without a common repeat have no p
                    found, pairs, _ = test(compared, limit, against=self.against, costs=False)
                    if len(names) == 1 or len(found) == board.repeats:
                        tests |= {pair.b: pair.difference for pair in pairs}
        tests = {name: tests[name] for name in others if name in tests}
        adjusted = holm(np.array([difference.p for difference in tests.values()])).tolist()
        return {
            name: difference._replace(adjusted=p)
            for (name, difference), p in zip(tests.items(), adjusted, strict=True)
        }
