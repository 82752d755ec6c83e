"""The cost-quality curves of a board, as data for the page's script."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from bench_reports.board import Board, Pick, Row
from bench_reports.words import cost, one_line, quality, settings

COLOURS = 8
_DASHES = ("solid", "dash", "dot", "dashdot")
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down")


def figure(board: Board, name: str) -> dict[str, Any]:
    """One figure: a trace per learner, axes in words, a watermark on stand-ins.

    Texts are escaped, because plotly reads some HTML in them.
    """
    better = "higher" if board.higher_is_better else "lower"
    return {
        "id": name,
        "x": escape(f"cost per row on test ({board.unit})"),
        "y": escape(f"{board.metric} on test ({better} is better)"),
        "watermark": "stand-in data" if board.stand_in else "",
        "traces": [_trace(board, row, index) for index, row in enumerate(board.rows)],
    }


def _trace(board: Board, row: Row, index: int) -> dict[str, Any]:
    spread = [0.0 if math.isnan(p.spread) else p.spread for p in row.curve]
    return {
        "name": escape(one_line(row.learner)),
        "x": [p.cost for p in row.curve],
        "y": [p.quality for p in row.curve],
        "spread": spread if any(spread) else None,
        "text": [_hover(board, row, p) for p in row.curve],
        "colour": index % COLOURS,
        "dash": dash(index),
        "symbol": symbol(index),
    }


def symbol(index: int) -> str:
    """A learner's marker, so that colour is never the only difference."""
    return _SYMBOLS[index % len(_SYMBOLS)]


def dash(index: int) -> str:
    """A learner's line: the first eight solid, the next eight dashed, and so on."""
    return _DASHES[index // COLOURS % len(_DASHES)]


def _hover(board: Board, row: Row, pick: Pick) -> str:
    lines = [
        f"<b>{escape(one_line(row.learner))}</b>",
        escape(f"{board.metric} {quality(pick.quality)} at cost {cost(pick.cost)} on test"),
        escape(f"{quality(pick.valid_quality)} at {cost(pick.valid_cost)} on validation"),
        escape(one_line(settings(pick.point))),
        *(escape(one_line(settings({name: value}))) for name, value in pick.params.items()),
    ]
    return "<br>".join(line for line in lines if line)
