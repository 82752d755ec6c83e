"""Columns of a board that ``bench report --columns`` and ``--against`` ask for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bench_core.errors import UsageError, require
from bench_core.leaderboard.pairs import Pair, pairs_within
from bench_core.results.budgets import Budget
from bench_core.statistics.comparison import holm
from bench_core.terminal.wording import count, p_value
from bench_reports.columns import Asked, Columns, columns_of, within_words

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.leaderboard.board import Board, Row
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

FIT = 3
"""Budgets whose p-values fit beside the qualities in one column of a paper."""


def asked_columns(
    info: RunInfo,
    frame: pd.DataFrame,
    store: Store | None,
    boards: Sequence[Board],
    names: Sequence[str],
    against: str,
    usual: Callable[[Board], list[str]],
) -> Asked:
    """Return the columns ``names`` of each board, with p-values ``against`` a learner.

    Without names these are the ``usual`` ones; p-values at up to ``FIT`` budgets stand in the table
    of budgets. "quality" is the board's metric, "+-" is "±".
    """
    if not names and not against:
        return Asked()
    if against:
        require(
            f"learner of run {info.number}", [against], dict.fromkeys(map(str, frame["learner"]))
        )
    elif any(name == "p" or name.startswith("p <=") for name in names):
        raise UsageError("column p needs a learner to test the others against: --against LEARNER")
    budgets = [within_words(board, k) for board in boards for k in range(len(board.budgets))]
    elsewhere = {f"{of}{one}" for one in budgets for of in ("", "± ", "tier ", "p ")}
    found: dict[str, Columns] = {}
    within: dict[str, Columns] = {}
    tests: dict[str, dict[str, str]] = {}
    for board in boards:
        known, at = columns_of(board), [within_words(board, k) for k in range(len(board.budgets))]
        asked = [*(names or usual(board))]
        if against and not any(name == "p" or name.startswith("p ") for name in names):
            asked.append("p")
        plain = [name.replace("+-", "±").replace("quality", board.metric) for name in asked]
        beside = [f"p {one}" for one in at] if not names and against and len(at) <= FIT else []
        limits = {"p": Budget(math.inf)}
        limits |= {f"p {one}": budget for one, budget in zip(at, board.budgets, strict=True)}
        limits = {title: limits[title] for title in limits if title in (*plain, *beside)}
        tests[board.dataset] = own = {}
        for title, limit in limits.items() if against else ():
            adjusted = p_values(info, frame, store, board, against, limit)
            known[title] = partial(_p_cell, adjusted)
            if not adjusted:
                own[title] = f"unknown, as no repeat has values of {against} and another learner"
                continue
            place = " within that cost" if math.isfinite(limit.amount) else " at any cost"
            pairs = count(len(adjusted), "comparison")
            own[title] = f"two-sided, of the difference in {board.metric} to {against}{place}, "
            own[title] += f"adjusted by Holm over {pairs}"
        # a budget of another board
        known |= {title: _no_cell for title in plain if title in elsewhere and title not in known}
        titles = [name if name in known else word for name, word in zip(asked, plain, strict=True)]
        _require_columns(titles, known, board.dataset)
        found[board.dataset] = {title: known[title] for title in titles}
        if beside:
            order = [title for one in at for title in (one, f"p {one}")]
            within[board.dataset] = {title: known[title] for title in order}
    return Asked(found, within, tests, bool(names))


def _no_cell(row: Row) -> str:
    return "-"


def _require_columns(titles: Sequence[str], known: Mapping[str, object], dataset: str) -> None:
    for title in titles:
        if title not in known and "<=" in title:
            amount = title.partition("<=")[2].strip()
            line = f"column {title!r}: {amount} is no budget of {dataset}: --budget {amount}"
            raise UsageError(line)
    require("column", titles, known)


def _p_cell(known: Mapping[str, Pair], row: Row) -> str:
    one = known[row.learner].difference if row.learner in known else None
    return "-" if one is None else p_value(one.adjusted, one.bounded)


def p_values(
    info: RunInfo,
    frame: pd.DataFrame,
    store: Store | None,
    board: Board,
    against: str,
    limit: Budget,
) -> dict[str, Pair]:
    """Return the pair of ``against`` with each learner within a budget, its p by Holm's method."""
    found: dict[str, Pair] = {}
    given = frame[frame["dataset"] == board.dataset], board.dataset
    others = [row.learner for row in board.rows if row.learner != against]
    # together, which is faster, if this loses no repeat of a pair; else pair by pair
    for names in (others, *([name] for name in others)):
        # two learners without a common repeat have no p
        with suppress(UsageError):
            if store is not None and names and not found.keys() >= {*names}:
                asked = info, store, *given, [against, *names], limit
                repeats, pairs, _ = pairs_within(*asked, interest=0.0, against=against, costs=False)
                if len(names) == 1 or len(repeats) == board.repeats:
                    found |= {pair.b: pair for pair in pairs}
    found = {name: found[name] for name in others if name in found}
    adjusted = holm(np.array([pair.difference.p for pair in found.values()]))
    return {
        name: replace(pair, difference=pair.difference._replace(adjusted=float(p)))
        for (name, pair), p in zip(found.items(), adjusted, strict=True)
    }
