"""What the page knows, as one compact value for JSON; ``expanded`` in chart.js reads it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.errors import one_line
from bench_core.leaderboard.board import Board
from bench_core.leaderboard.ranks import least_difference
from bench_core.terminal.wording import cost as cost_text
from bench_reports.views import FINE, Curve, View, exact

if TYPE_CHECKING:
    from bench_core.results.records import RunInfo


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """The views of each data set, the slider's places, where learners differ and what they buy."""

    views: Mapping[str, Sequence[View]]
    shares: Sequence[float]
    pairs: Mapping[str, Any]
    pictures: Mapping[str, Any]

    def first(self, board: Board) -> View | None:
        """The view that counts in ranks over data sets; none where another board of the same data
        does."""
        return None if board.same_as else next(iter(self.views[board.dataset]), None)

    @property
    def fine(self) -> bool:
        """Whether curves are few enough to have all of their steps."""
        return sum(len(views[0].curves) for views in self.views.values() if views) <= FINE


def payload(info: RunInfo, boards: Sequence[Board], found: Content) -> dict[str, Any]:
    """The value that the page's script reads."""
    learners = learner_order(found.views)
    fine = found.fine
    return {
        "run": info.run,
        "learners": [[one_line(name), int(name in info.baselines)] for name in learners],
        "shares": list(found.shares),
        "apart": _apart(len(learners)) if len(boards) > 1 else [],
        "sets": [
            {
                "name": one_line(board.dataset),
                "data": one_line(board.same_as or board.dataset),
                "accounting": one_line(board.accounting),
                "unit": one_line(board.unit),
                "reference": one_line(board.reference),
                "standIn": int(board.stand_in),
                "marks": _marks(board, learners),
                "area": _areas(board, learners),
                "views": [
                    _view_value(view, learners, found.shares, first=k == 0, fine=fine)
                    for k, view in enumerate(views)
                ],
                "pairs": found.pairs.get(board.dataset),
                "pictures": found.pictures.get(board.dataset),
            }
            for board, views in ((board, found.views[board.dataset]) for board in boards)
        ],
    }


def _areas(board: Board, learners: Sequence[str]) -> dict[str, list[float | None]]:
    """By learner area and regret, each with its interval; ranks need areas as they are."""
    return {
        str(learners.index(row.learner)): [
            float(f"{row.area.value:.9g}"),
            *map(_rounded, row.area.interval),
            *(
                (_rounded(row.regret.value), *map(_rounded, row.regret.interval))
                if row.regret
                else ()
            ),
        ]
        for row in board.rows
        if row.area and row.learner in learners and math.isfinite(row.area.value)
    }


def _rounded(value: float) -> float | None:
    return float(f"{value:.4g}") if math.isfinite(value) else None


def _apart(learners: int) -> list[float]:
    """By number of learners less two what separates two mean ranks on one data set; on n of them it
    is this over the root of n (``least_difference``)."""
    return [round(least_difference(1, k), 6) for k in range(2, learners + 1)]


def learner_order(of: Mapping[str, Sequence[View]]) -> list[str]:
    """All learners; the place of one decides its colour, the same in all charts."""
    names = (c.learner for found in of.values() for view in found for c in view.curves)
    return list(dict.fromkeys(names))


def _marks(board: Board, learners: Sequence[str]) -> dict[str, str]:
    marks = {row.learner: ", ".join(board.marks_of(row)) for row in board.rows}
    return {str(learners.index(name)): one_line(text) for name, text in marks.items() if text}


def _view_value(
    view: View, learners: Sequence[str], grid: Sequence[float], *, first: bool, fine: bool
) -> dict[str, Any]:
    """A view in JSON. Qualities are whole multiples of 1 / ``scale``, each less the one before.

    Unless ``fine`` a curve steps at places of the slider, and only the ``first`` view has costs and
    settings.
    """
    most = max(float(np.abs(curve.quality).max()) for curve in view.curves)
    scale = 10.0 ** (4 if most < 10 else 5 - math.floor(math.log10(most)))
    curves = []
    written = float if view.kind == "cap" else exact  # a cap is a place of the slider to the bit
    for curve in view.curves:
        steps = range(len(curve.budget)) if fine else _held_somewhere(curve, view, grid)
        places = _places(curve, view, grid, steps)
        curves.append(
            {
                "l": learners.index(curve.learner),
                **({"x": [written(curve.budget[i]) for i in steps]} if fine else {"k": places}),
                "y": np.diff(np.rint(scale * curve.quality[[*steps]]), prepend=0)
                .astype(int)
                .tolist(),
                **(_extras(curve, steps, fine) if fine or first else {}),
                **_certainty(curve, view, grid, scale, fine),
            }
        )
    return {
        "metric": view.metric.name,
        "higher": int(view.metric.higher_is_better),
        "kind": view.kind,
        "whole": view.whole,
        "scale": scale,
        "columns": {key: [c.get(key) for c in curves] for key in _keys(curves)},
    }


def _keys(curves: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for curve in curves for key in curve))


def _held_somewhere(curve: Curve, view: View, grid: Sequence[float]) -> list[int]:
    """The steps that some place of the slider pays for, and the last."""
    held = {curve.held(share * view.whole) for share in grid} | {len(curve.budget) - 1}
    return sorted(held - {-1})


def _places(curve: Curve, view: View, grid: Sequence[float], steps: Sequence[int]) -> list[int]:
    """The first place of the slider at which each step can be had; the last place has no limit."""
    amounts = np.array([share * view.whole for share in grid])
    found: list[int] = np.searchsorted(amounts, curve.budget[[*steps]], "left").tolist()
    return found


def _extras(curve: Curve, steps: Sequence[int], fine: bool) -> dict[str, Any]:
    """Cost, its 95th percentile, features and settings, as far as known."""
    shown = shown_cost if fine else _brief
    extras: dict[str, Any] = {"c": [shown(curve.cost[i]) for i in steps]}
    if curve.chosen:
        extras["s"] = [curve.chosen[i] for i in steps]
    if fine and curve.chosen and not np.isnan(curve.p95).any():
        extras["p"] = [shown(curve.p95[i]) for i in steps]
    if fine and curve.chosen and not np.isnan(curve.features).any():
        extras["f"] = [round(float(curve.features[i]), 1) for i in steps]
    return extras


def _brief(value: float) -> float | None:
    return shown_cost(float(f"{value:.3g}"))


def _certainty(
    curve: Curve, view: View, grid: Sequence[float], scale: float, fine: bool
) -> dict[str, Any]:
    """By place of the slider how far the interval reaches down and up, the tier and the ranks; tier
    0 where there is none."""
    known = view.certainty.get(curve.learner)
    if not known or not any(known):
        return {}
    amounts = [*(share * view.whole for share in grid), math.inf]
    rows = []
    for amount, sure in zip(amounts, known, strict=True):
        if sure is None:
            rows.append((0, 0, 0, 0, 0))
            continue
        value = float(curve.quality[curve.held(amount)])
        ends = (round(scale * (value - sure.low)), round(scale * (sure.high - value)))
        rows.append((*ends, sure.tier, sure.first, sure.last))
    columns = dict(
        zip(("lo", "hi", "t", "r", "R"), map(list, zip(*rows, strict=True)), strict=True)
    )
    return columns if fine else {name: columns[name] for name in ("lo", "hi", "t")}


def shown_cost(value: float) -> float | None:
    """A cost with the digits that it is shown with; None where there is none."""
    return _number(cost_text(float(value)))


def _number(text: str) -> float | None:
    if text == "-" or not math.isfinite(float(text)):
        return None
    value = float(text)
    return int(value) if value == int(value) else value
