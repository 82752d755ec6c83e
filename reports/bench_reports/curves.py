"""The cost-quality curves of a board, as data for the page's script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from textwrap import wrap
from typing import Any

from bench_core.errors import one_line
from bench_core.terminal.wording import cost, quality
from bench_reports.board import Board, CurvePoint, Row
from bench_reports.console import in_unit

COLOURS = 8
SPREADS_SHOWN = 12
MANY = 25
SETTINGS_SHOWN = 3
HOVER_WIDTH = 70
_DASHES = ("solid", "dash", "dot", "dashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down")


def figure(board: Board, name: str, learners: Sequence[str]) -> dict[str, Any]:
    """One figure: a trace per learner, axes in words, a watermark on stand-ins.

    The place of a learner in ``learners`` decides its colour, the same in all figures.
    Texts are escaped, because plotly reads some HTML in them.
    """
    better = "higher" if board.higher_is_better else "lower"
    return {
        "id": name,
        "x": escape(f"cost per row on test{in_unit(board)}"),
        "y": escape(f"{board.metric} on test ({better} is better)"),
        "watermark": "stand-in data" if board.stand_in else "",
        "traces": [_trace(board, row, learners.index(row.learner)) for row in board.rows],
    }


def _trace(board: Board, row: Row, index: int) -> dict[str, Any]:
    picks = [point.pick for point in row.curve]
    step = math.ceil(len(picks) / SPREADS_SHOWN)
    spread = [
        p.spread if p.spread > 0 and (len(picks) - 1 - i) % step == 0 else None
        for i, p in enumerate(picks)
    ]
    return {
        "name": escape(one_line(row.learner)),
        "x": [p.cost for p in picks],
        "y": [p.quality for p in picks],
        "spread": spread if any(spread) else None,
        "text": [_hover(board, row, point) for point in row.curve],
        "size": 7 if len(picks) <= MANY else 5,
        "colour": index % COLOURS,
        "dash": _DASHES[index // COLOURS % len(_DASHES)],
        "baseline": row.baseline,  # drawn thin and grey
        # colour is never the only difference, and the ninth is not the first in a legend
        "symbol": _SYMBOLS[(index + index // COLOURS) % len(_SYMBOLS)],
    }


def _hover(board: Board, row: Row, point: CurvePoint) -> str:
    pick = point.pick
    spread = "" if math.isnan(pick.spread) else f" ± {quality(pick.spread)}"
    lines = [
        one_line(row.learner),
        f"{board.metric} {quality(pick.quality)}{spread} at cost {cost(pick.cost)}",
        f"within a budget of {cost(point.budget)} on validation",
        *(one_line(f"at {setting.full}") for setting in pick.settings[:SETTINGS_SHOWN]),
    ]
    more = len(pick.settings) - SETTINGS_SHOWN
    lines += [f"and {more} more"] if more > 0 else []
    first, *others = (part for line in lines for part in wrap(line, HOVER_WIDTH))
    return "<br>".join([f"<b>{escape(first)}</b>", *map(escape, others)])
