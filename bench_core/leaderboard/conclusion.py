"""The conclusion of a board in plain sentences, which every format shows first: the model to take,
its cost and what it loses on test, the reference at its best and at the same quality, and learners
that save about as much.

Where no learner is sure to keep the quality for less, the reference is the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bench_core.errors import one_line
from bench_core.leaderboard.board import SHARE, Board, Pick, Row, Standings, saves
from bench_core.leaderboard.ranks import least_difference, over_datasets, ranked_by
from bench_core.protocols import DIVERGED, ELSEWHERE
from bench_core.results.budgets import CAP
from bench_core.statistics.comparison import Interval
from bench_core.terminal.wording import cost, difference, in_brackets, listed, quality, saving

UNMEASURED = "The uncertainty was not measured."


def conclusion(board: Board) -> tuple[str, ...]:
    """Return the conclusion of one data set, on the board's answer; empty without rows. Where the
    metric is not defined, that is all that can be concluded."""
    if not board.rows:
        return ()
    if board.undefined:
        return (one_line(f"No conclusion: {board.undefined}."),)
    row, reference = board.answer, board.reference_row
    if reference is None:
        sentences = [*_best(board), "No saving is measured without a reference learner."]
    elif row is None:
        sentences = [*_best(board), _no_target(board, reference)]
    elif row is reference:
        sentences = [*_nothing_saves(board, reference)]
    else:
        sentences = [*_saves(board, row, reference)]
    sentences += _caps(board)
    if board.repeats > 1:
        sentences.append(f"Figures are means over {board.repeats} repeats.")
    return tuple(map(one_line, sentences))


def overall_conclusion(boards: Sequence[Board]) -> tuple[str, ...]:
    """Return the conclusion over several data sets, by the ranks of ``over_datasets``; empty if no
    learner is ranked."""
    names, ranked = over_datasets(boards)
    if not ranked:
        return ()
    rows = {row.learner: row for board in boards for row in board.rows}
    best = [min(ranks) for ranks in zip(*(r.by_dataset for r in ranked), strict=True)]
    leads = {
        r.learner: [rank == least for rank, least in zip(r.by_dataset, best, strict=True)]
        for r in ranked
    }
    tied = [r for r in ranked if r.tier == 1]
    top = min(tied, key=lambda r: (rows[r.learner].baseline, -sum(leads[r.learner]), r.mean))
    sentences = [
        f"{_name(rows[top.learner])} is first on {sum(leads[top.learner])} of {len(names)} "
        f"data sets, by {ranked_by(boards)}."
    ]
    mean = f"Its mean rank among {len(ranked)} learners is {top.mean:.2f}"
    if least_difference(len(names), len(ranked)) >= len(ranked) - 1:  # more than any difference
        sentences.append(f"{mean}. {len(names)} data sets are too few for a test of ranks.")
    else:
        ends = in_brackets(Interval(*top.interval), "{:.2f}".format, " by Nemenyi's test")
        sentences.append(f"{mean}{ends}.")
        others = [rows[r.learner] for r in tied if r is not top]
        sentences += _ties(others, "mean rank") or ["No other learner ties in mean rank."]
    ahead = min(tied, key=lambda r: r.mean)
    if ahead.mean < top.mean:
        sentences.append(f"{_name(rows[ahead.learner])} has the best mean rank, {ahead.mean:.2f}.")
    by_methods = [lead for name, lead in leads.items() if not rows[name].baseline]
    beaten = sum(not any(lead) for lead in zip(*by_methods, strict=True))
    if beaten:
        sentences.append(f"On {beaten} of {len(names)} data sets a baseline is first.")
    return tuple(map(one_line, sentences))


def _saves(board: Board, row: Row, reference: Row) -> Iterator[str]:
    """Yield sentences on the model to take, the reference next to it, and equal learners."""
    price = f"{cost(row.cheap.cost)} {board.unit}".rstrip()
    yield f"{_name(row)} costs {price} per row and {_reached(board, row.cheap)}."
    yield _compared(board, reference, f", {_times(row)}")
    if ELSEWHERE in reference.marks:  # the model of today: what is lost by its replacement
        gap = difference(row.cheap.quality - reference.best.quality)
        words = f"On test, {row.learner}'s {board.metric} minus {reference.learner}'s"
        yield f"{words}: {gap}{in_brackets(row.saved.gap, difference)}."
    if math.isnan(row.saved.interval.low):
        yield UNMEASURED
        return
    alike = [
        _name(other)
        for other in board.rows
        if other is not row and other.saved.tier == row.saved.tier > 0 and saves(other, reference)
    ]
    if alike:
        yield f"{listed(alike)} {'saves' if len(alike) == 1 else 'save'} about as much."


def _nothing_saves(board: Board, reference: Row) -> Iterator[str]:
    """Yield sentences on why no learner is named, and the reference at its best."""
    others = [row for row in board.rows if not row.reference]
    keeps = f"keep {SHARE:.0%} of" if board.higher_is_better else f"stay within {1 - SHARE:.0%} of"
    what = f"{keeps} {reference.learner}'s {board.metric}"
    sure = [row for row in others if row.cheap and not row.saved.lost]
    paid = float(cost(reference.cheap.cost))  # as displayed
    cheaper = [row for row in others if row.likely and float(cost(row.model.cost)) < paid]
    likeliest = max(cheaper, key=lambda row: row.probability, default=None)
    if likeliest is not None and likeliest.probability <= 0.5:
        likeliest = None
    if beaten := [row.learner for row in sure if row.saving > 1 and row.saved.dominated]:
        better = "a model of another learner is better and cheaper, but not sure to"
        yield f"On validation, next to {listed(beaten)} {better} {what}."
    elif sure:
        yield f"No learner that is sure to {what} costs less than {reference.learner}."
    else:
        few = "" if likeliest is None else _too_few(board, likeliest)
        lucky = [row.learner for row in others if row.saved.lost]
        only = f"; {listed(lucky)} only on validation" if lucky else ""
        yield f"No other learner is sure to {what}{few}{only}."
    if likeliest is not None:
        price = f"{cost(likeliest.model.cost)} instead of {cost(reference.cheap.cost)}"
        reached = _reached(board, likeliest.model)
        likely = saving(likeliest.saving, likeliest.probability)
        yield f"Likeliest: {_name(likeliest)}, {price}, {likely}; it {reached}."
    yield _compared(board, reference)


def _too_few(board: Board, likeliest: Row) -> str:
    """Return how many validation rows would make a likely model sure, "" if unknown."""
    enough = likeliest.likely.enough if likeliest.likely else math.inf
    number, units = board.checked
    if not (math.isfinite(enough) and number):
        return ""
    much = math.ceil(float(f"{enough * number:.1g}"))
    return f": {number} validation {units} are too few (about {much} would do)"


def _reached(board: Board, pick: Pick) -> str:
    if board.tested and not math.isnan(pick.quality):
        wrong = f"{board.wrong(pick.quality)} of {board.tested} test rows"
        return f"is wrong for {wrong} ({1 - pick.quality:.1%})"
    return f"has {board.metric} {quality(pick.quality)} on test"


def _compared(board: Board, reference: Row, more: str = "") -> str:
    """Return what the reference costs at its best and at the same quality, with ``more`` on the
    cost that is saved."""
    best, cheap = reference.best, cost(reference.cheap.cost)
    reached = _reached(board, best).replace(" test rows", "")
    words = f"{reference.learner} at its best costs {cost(best.cost)} and {reached}"
    if cheap == cost(best.cost):
        return f"{words}{more}."
    return f"{words}; cut to the same quality it costs {cheap}{more}."


def _times(row: Row) -> str:
    """Return ``1.9x as much (1.8x to 2.0x)``."""
    if math.isinf(row.saving):
        return "where this one costs nothing"
    return f"{saving(row.saving)} as much{in_brackets(row.saved.interval, saving)}"


def _no_target(board: Board, reference: Row) -> str:
    """Return the reason why no saving is measured against an existing reference."""
    if DIVERGED in reference.marks:
        return f"No saving is measured, as {reference.learner} diverged."
    some = " in some repeats" if reference.reached else ""
    share = f"{SHARE:.0%} of" if board.higher_is_better else f"an error within {1 - SHARE:.0%} of"
    what = f"keeps {share} {reference.learner}'s {board.metric} on validation"
    return f"No saving is measured, as a constant {what} at no cost{some}."


def _best(board: Board) -> Iterator[str]:
    """Yield sentences on the best learner, its cost, and learners tied with it."""
    rows = {row.learner: row for row in board.rows if not math.isnan(row.best.quality)}
    if not rows:
        return
    sign = 1 if board.higher_is_better else -1
    measured = [one for one in board.unlimited.rows if not math.isnan(one.interval.low)]
    first = [rows[one.learner] for one in measured if one.tier == 1] or [*rows.values()]
    top = max(first, key=lambda row: sign * row.best.quality)
    price = f"at cost {cost(top.best.cost)}"
    if board.unit:
        price = f"for {cost(top.best.cost)} {board.unit}"
    if len(rows) == 1:
        reached = f"{board.metric} {quality(top.best.quality)} {price}"
        yield f"{top.learner} is the only learner: {reached}."
        return
    yield f"{_name(top)} has the best {board.metric}, {quality(top.best.quality)} {price}."
    yield from _ties_at(board, board.unlimited, top.learner) if measured else [UNMEASURED]


def _caps(board: Board) -> Iterator[str]:
    """Yield a sentence on the best learner under each cap of the board."""
    sign = 1 if board.higher_is_better else -1
    for at in board.standings:
        first = [one for one in at.rows if one.tier == 1]
        if at.budget is not None and at.budget.kind == CAP and first:
            top = max(first, key=lambda one: sign * one.quality)
            reached = f"the best {board.metric}, {quality(top.quality)}"
            yield f"With no row above {at.budget.amount:.6g}, {top.learner} has {reached}."
            yield from _ties_at(board, at, top.learner)


def _ties_at(board: Board, at: Standings, first: str) -> list[str]:
    """Return a sentence on the other learners of the first tier at a budget, if any."""
    rows = {row.learner: row for row in board.rows}
    tied = [rows[one.learner] for one in at.rows if one.tier == 1 and one.learner != first]
    return _ties(tied, board.metric)


def _ties(rows: Sequence[Row], by: str) -> list[str]:
    names = [_name(row) for row in rows]
    return [f"{listed(names)} {'ties' if len(names) == 1 else 'tie'} in {by}."] if names else []


def _name(row: Row) -> str:
    return f"{row.learner} (a baseline)" if row.baseline else row.learner
