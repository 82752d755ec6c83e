"""What the page knows, as one compact value for JSON; ``expanded`` in data.js reads it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.errors import one_line, visible
from bench_core.leaderboard.board import Board, Measure
from bench_core.leaderboard.ranks import least_difference
from bench_core.terminal.wording import cost as cost_text
from bench_reports.rows import split_rows
from bench_reports.svg import MOST
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
    texts: dict[str, list[str]] = {}
    return {"data": gathered(_whole(info, boards, found), texts), "texts": texts}


def _whole(info: RunInfo, boards: Sequence[Board], found: Content) -> dict[str, Any]:
    learners = learner_order(found.views)
    fine = found.fine
    return {
        "run": one_line(info.run),
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
                **_areas(board, views, learners),
                "rows": _rows_left(board, views, learners, fine),
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


def _areas(board: Board, views: Sequence[View], learners: Sequence[str]) -> dict[str, Any]:
    """By learner the area, as it is for ranks, and by row, in parts of the view's scale, how far
    its interval reaches down and up, the regret, and its interval; -1 for what is not known."""
    known = [
        (learners.index(row.learner), row.area, row.regret)
        for row in board.rows
        if row.area and row.learner in learners and math.isfinite(row.area.value)
    ]
    known.sort(key=itemgetter(0))
    scale = scale_of(views[0]) if views else 1.0
    return {
        "area": {str(place): float(f"{area.value:.9g}") for place, area, _ in known},
        "reach": packed_rows(_reaches(scale, area, regret) for _, area, regret in known),
    }


def _reaches(scale: float, area: Measure, regret: Measure | None) -> list[int]:
    """The ends of area's interval, regret, and the ends of regret's."""
    ends: list[float] = [*_ends(area)]
    ends += [regret.value, *_ends(regret)] if regret and math.isfinite(regret.value) else []
    return [round(scale * end) if math.isfinite(end) else -1 for end in ends]


def _ends(measure: Measure) -> tuple[float, float]:
    """How far the interval reaches down and up."""
    return measure.value - measure.interval.low, measure.interval.high - measure.value


def _rows_left(board: Board, views: Sequence[View], learners: Sequence[str], fine: bool) -> str:
    """The rows of the board that the page leaves to its script."""
    left = not fine and bool(views)
    return Packed(visible(split_rows(board, views[0], learners, MOST)[1]) if left else "")


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


BASE, PAIRS, BITS = 35, 0xF000, 15
"""The character of 0, the first of those that begin a pair, and the bits of a pair's second."""

MOST_CHANGE = (1 << 26) - 1
"""What a pair can hold; a larger change is cut."""


class Packed(str):
    """A text that stands beside others of its kind, where gzip makes it shorter (``gathered``)."""

    __slots__ = ()


def gathered(value: Any, texts: dict[str, list[str]], key: str = "") -> Any:
    """The value with "" for each packed text, which goes to the ``texts`` of its key. ``filled`` in
    data.js puts them back, in the order of JavaScript: keys that are numbers rise."""
    if isinstance(value, Packed):
        texts.setdefault(key, []).append(value)
        return ""
    if isinstance(value, dict):
        return {k: gathered(one, texts, k) for k, one in value.items()}
    return [gathered(one, texts, key) for one in value] if isinstance(value, list) else value


def packed_rows(rows: Iterable[Sequence[int]]) -> Packed:
    """Rows of whole numbers as one text: of each row its length, its first number and then what
    each adds, where 0, -1, 1, -2, ... are the characters from ``BASE`` on, so that gzip comes near
    their entropy. ``rowsOf`` in data.js reads it."""
    found: list[str] = []
    for row in rows:
        found.append(_character(len(row)))
        changes = np.diff(np.asarray(row, dtype=np.int64), prepend=0).clip(
            -MOST_CHANGE, MOST_CHANGE
        )
        places = np.where(changes < 0, -2 * changes - 1, 2 * changes)
        found.extend(map(_character, places.tolist()))
    return Packed("".join(found))


def _character(number: int) -> str:
    """A character, of large numbers a pair."""
    if number < 1 << BITS:
        return chr(BASE + number)
    high, low = divmod(number, 1 << BITS)
    return chr(PAIRS + high) + chr(BASE + low)


def _view_value(
    view: View, learners: Sequence[str], grid: Sequence[float], *, first: bool, fine: bool
) -> dict[str, Any]:
    """A view in JSON. Qualities are whole multiples of 1 / ``scale``.

    Unless ``fine`` a curve steps at places of the slider, and only the ``first`` view has costs and
    settings.
    """
    scale = scale_of(view)
    curves = []
    written = float if view.kind == "cap" else exact  # a cap is a place of the slider to the bit
    for curve in view.curves:
        steps = range(len(curve.budget)) if fine else held_somewhere(curve, view, grid)
        places = places_of(curve, view, grid, steps)
        curves.append(
            {
                "l": [learners.index(curve.learner)],
                **({"x": [written(curve.budget[i]) for i in steps]} if fine else {"k": places}),
                "y": np.rint(scale * curve.quality[[*steps]]).astype(int).tolist(),
                **(_extras(curve, steps, view.whole, fine) if fine or first else {}),
                **_certainty(curve, view, grid, scale, fine),
            }
        )
    return {
        "metric": view.metric.name,
        "higher": int(view.metric.higher_is_better),
        "kind": view.kind,
        "whole": view.whole,
        "scale": scale,
        "columns": {
            key: packed_rows(c.get(key, ()) for c in curves)
            if key in WHOLE or (key == "c" and not fine)
            else Packed("\n".join("\t".join(c.get(key, ())) for c in curves))
            if key == "s"
            else [c.get(key) for c in curves]
            for key in _keys(curves)
        },
    }


WHOLE = ("l", "k", "y", "lo", "hi", "t", "r", "R")
"""Columns of whole numbers."""


def scale_of(view: View) -> float:
    """How many parts of 1 a view's qualities are written in: four decimals, or six digits."""
    most = max(float(np.abs(curve.quality).max()) for curve in view.curves)
    return 10.0 ** (4 if most < 10 else 5 - math.floor(math.log10(most)))


def _keys(curves: Sequence[Mapping[str, Any]]) -> list[str]:
    return list(dict.fromkeys(key for curve in curves for key in curve))


def held_somewhere(curve: Curve, view: View, grid: Sequence[float]) -> list[int]:
    """The steps that some place of the slider pays for, and the last."""
    held = {curve.held(share * view.whole) for share in grid} | {len(curve.budget) - 1}
    return sorted(held - {-1})


def places_of(curve: Curve, view: View, grid: Sequence[float], steps: Sequence[int]) -> list[int]:
    """The first place of the slider at which each step can be had; the last place has no limit."""
    amounts = np.array([share * view.whole for share in grid])
    found: list[int] = np.searchsorted(amounts, curve.budget[[*steps]], "left").tolist()
    return found


def _extras(curve: Curve, steps: Sequence[int], whole: float, fine: bool) -> dict[str, Any]:
    """Cost, its 95th percentile, features and settings, as far as known."""
    costs = [float(curve.cost[i]) for i in steps]
    extras: dict[str, Any] = {
        "c": [*map(shown_cost, costs)] if fine else [_logarithm(cost, whole) for cost in costs]
    }
    if curve.chosen:
        extras["s"] = [one_line(curve.chosen[i]) for i in steps]
    if fine and curve.chosen and not np.isnan(curve.p95).any():
        extras["p"] = [shown_cost(curve.p95[i]) for i in steps]
    if fine and curve.chosen and not np.isnan(curve.features).any():
        extras["f"] = [round(float(curve.features[i]), 1) for i in steps]
    return extras


FREE = -20_000


def _logarithm(cost: float, whole: float) -> int:
    """A cost to 0.1%, three digits: in steps of 0.2% from ``whole``, ``FREE`` for none."""
    return max(round(500 * math.log(cost / whole)), FREE + 1) if cost > 0 else FREE


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
        ends = [round(scale * (value - sure.low)), round(scale * (sure.high - value))]
        ends = ends if fine else [*map(_two_digits, ends)]
        rows.append((ends[0], ends[1], sure.tier, sure.first, sure.last))
    columns = dict(
        zip(("lo", "hi", "t", "r", "R"), map(list, zip(*rows, strict=True)), strict=True)
    )
    return columns if fine else {name: columns[name] for name in ("lo", "hi", "t")}


def _two_digits(number: int) -> int:
    """As much as is known of an interval's end from 2000 draws."""
    return round(number, 2 - len(str(abs(number)))) if abs(number) > 99 else number


def shown_cost(value: float) -> float | None:
    """A cost with the digits that it is shown with; None where there is none."""
    return _number(cost_text(float(value)))


def _number(text: str) -> float | None:
    if text == "-" or not math.isfinite(float(text)):
        return None
    value = float(text)
    return int(value) if value == int(value) else value
