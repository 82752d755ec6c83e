"""Columns of a board that ``bench report --columns`` and ``--against`` ask for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bench_core.errors import UsageError, require
from bench_core.leaderboard.pairs import pairs_within
from bench_core.results.budgets import Budget
from bench_core.statistics.comparison import holm
from bench_reports.columns import Asked, columns_of

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.leaderboard.board import Board, Row
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store


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

    Without names these are the ``usual`` ones. "quality" is the board's metric, "+-" is "±".
    """
    if not names and not against:
        return Asked()
    if against:
        require("learner of this run", [against], dict.fromkeys(map(str, frame["learner"])))
    elif "p" in names:
        raise UsageError("column p needs a learner to test the others against: --against LEARNER")
    found = {}
    for board in boards:
        known: dict[str, Callable[[Row], str]] = columns_of(board)
        if against:
            known["p"] = partial(_p_cell, p_values(info, frame, store, board, against))
        asked = [*names, *(["p"] if against and "p" not in names else [])]
        asked = asked if names else [*usual(board), *asked]
        plain = [name.replace("+-", "±").replace("quality", board.metric) for name in asked]
        titles = [name if name in known else word for name, word in zip(asked, plain, strict=True)]
        require("column", titles, known)
        found[board.dataset] = {title: known[title] for title in titles}
    return Asked(found, against, bool(names))


def _p_cell(known: Mapping[str, float], row: Row) -> str:
    return f"{known[row.learner]:.4f}" if row.learner in known else "-"


def p_values(
    info: RunInfo, frame: pd.DataFrame, store: Store | None, board: Board, against: str
) -> dict[str, float]:
    """Return p of each learner's difference to ``against``, by Holm's method."""
    found: dict[str, float] = {}
    given = frame[frame["dataset"] == board.dataset], board.dataset
    if store is None:
        return found
    for row in board.rows:
        names, limit = (row.learner, against), Budget(math.inf)
        # two learners without a common repeat have no p
        with suppress(UsageError):
            if row.learner != against:
                _, (pair,), _ = pairs_within(info, store, *given, names, limit, interest=0.0)
                found[row.learner] = pair.difference.p
    return dict(zip(found, holm(np.array([*found.values()])).tolist(), strict=True))
