"""The data that the page's script draws from, as plain JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench_core.errors import one_line
from bench_core.leaderboard.board import Board, Measure
from bench_core.leaderboard.ranks import least_difference
from bench_core.terminal.wording import cost, quality
from bench_reports.curves import Certainty, Curve, View, certify, slider, thinned, views
from bench_reports.pairwise import pairwise
from bench_reports.purchases import followed, purchases

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

FEW = 80
"""So many curves have finer steps than the slider, and all of their purchases are shown."""

PARTS = 4
"""Steps of a curve between two places of the slider, where curves are few."""


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """The views of each data set, the slider's places, and by data set the comparison of pairs and
    the purchases, where the store has them."""

    views: Mapping[str, Sequence[View]]
    shares: Sequence[float]
    pairs: dict[str, Any]
    bought: dict[str, Any]

    @property
    def learners(self) -> list[str]:
        """All learners; the place of one decides its colour in all charts."""
        names = (c.learner for found in self.views.values() for v in found for c in v.curves)
        return list(dict.fromkeys(names))

    @property
    def few(self) -> bool:
        """True if there is room for details of every curve."""
        return sum(len(found[0].curves) for found in self.views.values() if found) <= FEW


def content(
    info: RunInfo, boards: Sequence[Board], frame: pd.DataFrame, store: Store | None
) -> tuple[list[Board], Content]:
    """The boards with their certainty, and all that the page draws.

    Certainty, pairs and purchases need a store.
    """
    of = {board.dataset: views(info, board, frame) for board in boards}
    found = Content(of, slider(list(of.values())), {}, {})
    sure = list(boards)
    for k, board in enumerate(boards):
        own = of[board.dataset]
        if store is None or not own:
            continue
        sure[k] = certify(info, store, board, frame, own, found.shares)
        amounts = own[0].amounts(found.shares)
        found.pairs[board.dataset] = pairwise(info, store, board, own[0], found.learners, amounts)
        names = found.learners if found.few else followed(own[0], board.reference, amounts)
        found.bought[board.dataset] = purchases(
            store, info.run, board.dataset, own[0], found.learners, amounts, names
        )
    return sure, found


def page_data(info: RunInfo, boards: Sequence[Board], found: Content) -> dict[str, Any]:
    """The value that the page's script reads."""
    learners = found.learners
    counts = range(2, len(learners) + 1) if len(boards) > 1 else ()
    return {
        "run": one_line(info.run),
        "learners": [[one_line(name), int(name in info.baselines)] for name in learners],
        "shares": found.shares,
        # by number of learners less two: the difference of mean ranks on one data set that
        # separates two; on n data sets it is this over the root of n
        "apart": [round(least_difference(1, k), 6) for k in counts],
        "sets": [_set(board, found, learners) for board in boards],
    }


def _set(board: Board, found: Content, learners: Sequence[str]) -> dict[str, Any]:
    own = found.views[board.dataset]
    rows = {learners.index(row.learner): row for row in board.rows if row.learner in learners}
    marks = {place: ", ".join(board.marks_of(row)) for place, row in rows.items()}
    return {
        "name": one_line(board.dataset),
        "data": one_line(board.same_as or board.dataset),
        "accounting": one_line(board.accounting),
        "unit": one_line(board.unit),
        "reference": one_line(board.reference),
        "standIn": board.stand_in,
        "marks": {place: one_line(text) for place, text in marks.items() if text},
        "areas": {
            place: [*_measure(row.area), *_measure(row.regret)]
            for place, row in rows.items()
            if row.area and math.isfinite(row.area.value)
        },
        "views": [_view(view, found, learners, first=view is own[0]) for view in own],
        "pairs": found.pairs.get(board.dataset),
        "bought": found.bought.get(board.dataset),
    }


def _measure(measure: Measure | None) -> list[float | None]:
    """The value, as ranks go by it, and the ends of its interval as they are shown."""
    if measure is None or not math.isfinite(measure.value):
        return []
    return [float(f"{measure.value:.9g}"), *(shown(quality, end) for end in measure.interval)]


def _view(view: View, found: Content, learners: Sequence[str], *, first: bool) -> dict[str, Any]:
    amounts = view.amounts(found.shares)
    curves = [thinned(c, amounts, PARTS if found.few else 1) for c in view.curves]
    return {
        "metric": view.metric.name,
        "higher": view.metric.higher_is_better,
        "kind": view.kind,
        "whole": view.whole,
        "curves": [
            {
                "l": learners.index(curve.learner),
                **_steps(curve, whole=first or found.few),
                **_certainty(view.certainty.get(curve.learner, ())),
            }
            for curve in curves
        ],
    }


def _steps(curve: Curve, *, whole: bool) -> dict[str, list[Any]]:
    """Budgets ``x`` and qualities ``y``; of a ``whole`` curve also costs ``c``, costs of 95% of
    rows ``p``, features ``f`` and settings ``s``, as far as they are known."""
    made: dict[str, list[Any]] = {
        "x": [_short(budget) for budget in curve.budget],
        "y": [shown(quality, value) for value in curve.quality],
        "c": [shown(cost, value) for value in curve.cost],
        "p": [shown(cost, value) for value in curve.p95],
        "f": [shown("{:.3g}".format, value) for value in curve.features],
        "s": curve.settings(),
    }
    # settings are the longest part of a page of many curves, so other views go without them
    names = "xycpfs" if whole else "xy"
    return {name: made[name] for name in names if made[name] and None not in made[name]}


def _certainty(known: Iterable[Certainty | None]) -> dict[str, list[Any]]:
    """For each place of the slider ``[low, high, tier, best rank, worst rank]``, 0 for none."""
    rows = [
        [shown(quality, one.low), shown(quality, one.high), *one[2:]] if one else 0 for one in known
    ]
    return {"sure": rows} if any(rows) else {}


def shown(words: Callable[[float], str], value: float) -> float | None:
    """A number with the digits that it is shown with; None where there is none."""
    text = words(float(value))
    return None if text == "-" or not math.isfinite(float(text)) else _short(float(text))


def _short(value: float) -> float:
    """A whole number without decimals, which makes JSON shorter."""
    return int(value) if value == int(value) else float(value)


def json_text(value: object) -> str:
    """JSON without spaces, which cannot end the script element it stands in."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return text.replace("<", "\\u003c")
