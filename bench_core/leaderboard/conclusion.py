"""The conclusion of a board in plain sentences, which every format shows first: the learner that
keeps the reference's quality, its cost and saving with an interval, and tied learners.

A saving is called certain only if its displayed interval excludes 1. Where a learner reaches more
than the reference on test for less, a sentence says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from bench_core.errors import one_line
from bench_core.leaderboard.board import SHARE, Board, Row, Standings
from bench_core.leaderboard.ranks import least_difference, over_datasets, ranked_by
from bench_core.protocols import DIVERGED, GIVEN
from bench_core.results.budgets import CAP
from bench_core.statistics import CONFIDENCE
from bench_core.terminal.wording import cost, listed, quality, times

UNMEASURED = "The uncertainty was not measured."

ALIKE = 1.05
"""Ratio of costs up to which a single point is not named next to a mixture of two."""


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Sentences, and the row whose cost they name, if any."""

    sentences: tuple[str, ...] = ()
    row: Row | None = None

    def __str__(self) -> str:
        return " ".join(self.sentences)


def conclusion(board: Board) -> Conclusion:
    """Return the conclusion of one data set; empty without rows."""
    if not board.rows:
        return Conclusion()
    row = None
    reference = next((row for row in board.rows if row.reference), None)
    if reference is None:
        sentences = [*_best(board), "No saving is measured without a reference learner."]
    elif not reference.cheap:
        sentences = [*_best(board), _no_target(board, reference)]
    else:
        row, sentences = _cheapest(board, reference)
    sentences += _caps(board)
    if board.repeats > 1:
        sentences.append(f"Figures are means over {board.repeats} repeats.")
    return Conclusion(tuple(map(one_line, sentences)), row)


def overall_conclusion(boards: Sequence[Board]) -> tuple[str, ...]:
    """Return the conclusion over several data sets, by the ranks of ``over_datasets``; empty if no
    learner is ranked."""
    names, ranked = over_datasets(boards)
    if not ranked:
        return ()
    roles = {row.learner: row.baseline for board in boards for row in board.rows}
    best = [min(ranks) for ranks in zip(*(one.by_dataset for one in ranked), strict=True)]
    leads = {
        one.learner: [rank == top for rank, top in zip(one.by_dataset, best, strict=True)]
        for one in ranked
    }
    tied = [one for one in ranked if one.tier == 1]
    top = min(tied, key=lambda one: (roles[one.learner], -sum(leads[one.learner]), one.mean))
    others = [_named(one.learner, roles[one.learner]) for one in tied if one is not top]
    by_methods = [lead for name, lead in leads.items() if not roles[name]]
    beaten = sum(any(own) for own in zip(*by_methods, strict=True))
    low, high = top.interval
    mean = f"Its mean rank among {len(ranked)} learners is {top.mean:.2f}"
    certain = [
        f"{mean} ({CONFIDENCE} by Nemenyi's test: {low:.2f} to {high:.2f}).",
        *(_ties(others, "mean rank") if others else ["No other learner ties in mean rank."]),
    ]
    if least_difference(len(names), len(ranked)) >= len(ranked) - 1:  # more than any difference
        certain = [f"{mean}. {len(names)} data sets are too few for a test of ranks."]
    if (ahead := min(tied, key=lambda one: one.mean)).mean < top.mean:
        who = _named(ahead.learner, roles[ahead.learner])
        certain.append(f"{who} has the best mean rank, {ahead.mean:.2f}.")
    sentences = [
        f"{_named(top.learner, roles[top.learner])} is first on {sum(leads[top.learner])} of "
        f"{len(names)} data sets, by {ranked_by(boards)}.",
        *certain,
    ]
    if by_methods and beaten < len(names):
        sentences.append(f"On {len(names) - beaten} of {len(names)} data sets a baseline is first.")
    return tuple(map(one_line, sentences))


def _cheapest(board: Board, reference: Row) -> tuple[Row, list[str]]:
    """Return the first row on the board that keeps the quality, and sentences on it."""
    kept = [row for row in board.rows if row.cheap and not row.saved.lost and not row.reference]
    cheaper = [row for row in kept if row.saving > reference.saving and _less(row, reference)]
    sure = [row for row in cheaper if round(row.saved.interval.low, 3) > 1]  # as displayed
    if not cheaper:
        return reference, [*_itself(board, reference, kept)]
    top = cheaper[0]
    who, measured = _named(top.learner, top.baseline), not math.isnan(top.saved.interval.low)
    certain = top in sure
    saved = f"{times(top.saving)} cheaper"
    if measured:
        low, high = map(times, top.saved.interval)
        saved += f" ({CONFIDENCE} interval: {low} to {high})"
        if certain and not _shorter(reference) and reference.saved.tier == top.saved.tier:
            saved += ", not significantly if all pairs are tested jointly"
    own = _shorter(reference) and round(reference.saved.interval.low, 3) > 1
    if measured and not certain:
        saved += f"; {'this saving is not' if own or sure else 'no saving is'} significant"
    sentences = [f"{who} {_keeps(board, top)} {_instead(board, reference)}.", f"It is {saved}."]
    if top.single > ALIKE * top.cheap.cost:
        alone = cost(top.single)
        sentences.append(f"This cost mixes two models at random; a single one costs {alone}.")
    if _shorter(reference):
        alone = f"{_fewer(reference)} keeps it {_price(board, reference.cheap.cost)}"
        level = measured and reference.saved.tier == top.saved.tier
        more = ", a significant saving" if own and not certain else " and ties in saving" * level
        sentences.append(f"{alone}{more}.")
    sentences += _more_for_less(board, reference, top)
    if not measured:
        return top, [*sentences, UNMEASURED]
    ahead = [r.learner for r in kept if r.baseline and 0 < r.saved.tier < top.saved.tier]
    sentences += [f"{listed(ahead)}, a baseline, saves significantly more."] if ahead else []
    return top, [*sentences, *_ties(_names(cheaper, top.saved.tier, top), "saving")]


def _itself(board: Board, reference: Row, kept: Sequence[Row]) -> Iterator[str]:
    """Yield sentences for the case that no learner costs less than the reference."""
    name, keeps = reference.learner, _keeps(board, reference)
    instead = _instead(board, reference)
    if shorter := _shorter(reference):
        name = _fewer(reference)
    if kept:
        end = "" if shorter else f", which {keeps}"
        yield f"No learner is cheaper than {name}{end}."
        yield from [f"It {keeps} {instead}."] if shorter else []
        yield from _more_for_less(board, reference, reference)
        yield from _ties(_names(kept, reference.saved.tier, reference), "saving")
        return
    others = [row for row in board.rows if not (row.reference or row.baseline)]
    lucky = [row.learner for row in others if row.saved.lost]
    if others:
        does = "does" if len(lucky) == 1 else "do"
        only = f" and test; {listed(lucky)} {does} on validation only" if lucky else ""
        yield f"No other learner {_keeps(board)}{only}."
    yield from _more_for_less(board, reference, reference)
    yield f"{name} {keeps} {instead if shorter else f'instead of {cost(reference.best.cost)}'}."


def _less(row: Row, reference: Row) -> bool:
    """True if the row's cost is lower as displayed, not ``1.00 instead of 1.00``."""
    return cost(row.cheap.cost) != cost(reference.cheap.cost)


def _shorter(reference: Row) -> bool:
    """True if fewer trees of an existing model are cheaper than all of it."""
    return GIVEN in reference.marks and cost(reference.cheap.cost) != cost(reference.best.cost)


def _fewer(reference: Row) -> str:
    return f"{reference.learner} with fewer trees"


def _instead(board: Board, reference: Row) -> str:
    """Return ``instead of 26.40``, of an existing model ``instead of today's 26.40``."""
    today = "today's " if GIVEN in reference.marks else ""
    return f"instead of {today}{cost(board.replaced.cost)}"


def _more_for_less(board: Board, reference: Row, named: Row) -> Iterator[str]:
    """Yield a sentence on the learner whose best point, on test, is above the reference's and costs
    less than the named row's point."""
    sign = 1 if board.higher_is_better else -1
    least = sign * float(quality(reference.best.quality))  # as displayed
    above = [
        row
        for row in board.rows
        if sign * float(quality(row.best.quality)) > least and row.best.cost < named.cheap.cost
    ]
    if above:
        top = max(above, key=lambda row: sign * row.best.quality)
        who = _named(top.learner, top.baseline)
        reached = f"{board.metric} {quality(top.best.quality)} {_price(board, top.best.cost)}"
        own = f"{reference.learner} reaches {quality(reference.best.quality)} at its best"
        # without the reference's quality on validation
        lead = f"On test, {who} has" if top.reached else f"On test alone, {who} is ahead:"
        yield f"{lead} {reached}; {own}."


def _no_target(board: Board, reference: Row) -> str:
    """Return the reason why no saving is measured against an existing reference."""
    if DIVERGED in reference.marks:
        return f"No saving is measured, as {reference.learner} diverged."
    some = " in some repeats" if reference.reached else ""
    return f"No saving is measured, as a constant {_keeps(board)} at no cost{some}."


def _best(board: Board) -> Iterator[str]:
    """Yield sentences on the best learner, its cost, and learners tied with it."""
    rows = {row.learner: row for row in board.rows if not math.isnan(row.best.quality)}
    if not rows:
        return
    pick = max if board.higher_is_better else min
    sure = [one for one in board.unlimited.rows if not math.isnan(one.interval.low)]
    first = [rows[one.learner] for one in sure if one.tier == 1] or [*rows.values()]
    top = pick(first, key=lambda row: row.best.quality)
    reached = f"{quality(top.best.quality)} {_price(board, top.best.cost)}"
    if len(rows) == 1:
        yield f"{top.learner} is the only learner: {board.metric} {reached}."
        return
    yield f"{_named(top.learner, top.baseline)} has the best {board.metric}, {reached}."
    yield from _tied(board, board.unlimited, top.learner) if sure else [UNMEASURED]


def _caps(board: Board) -> Iterator[str]:
    """Yield a sentence on the best learner under each cap of the board."""
    for at in board.standings:
        if at.budget is not None and at.budget.kind == CAP:
            first = [one for one in at.rows if one.tier == 1]
            pick = max if board.higher_is_better else min
            top = pick(first, key=lambda one: one.quality, default=None)
            if top is not None:
                reached = f"the best {board.metric}, {quality(top.quality)}"
                yield f"With no row above {at.budget.amount:.6g}, {top.learner} has {reached}."
                yield from _tied(board, at, top.learner)


def _tied(board: Board, at: Standings, first: str) -> Iterator[str]:
    """Yield a sentence on the other learners of the first tier at a budget."""
    roles = {row.learner: row.baseline for row in board.rows}
    tied = (one.learner for one in at.rows if one.tier == 1 and one.learner != first)
    return _ties([_named(name, roles[name]) for name in tied], board.metric)


def _names(rows: Iterable[Row], tier: int, but: Row) -> list[str]:
    """Return the names of a tier of savings, except one row."""
    own = (row for row in rows if row is not but and row.saved.tier == tier > 0)
    return [_named(row.learner, row.baseline) for row in own]


def _ties(names: Sequence[str], by: str) -> Iterator[str]:
    if names:
        yield f"{listed(names)} {'ties' if len(names) == 1 else 'tie'} in {by}."


def _named(learner: str, baseline: bool) -> str:
    return f"{learner} (a baseline)" if baseline else learner


def _keeps(board: Board, row: Row | None = None) -> str:
    """Return ``keeps 99% of gbrt's accuracy on validation``, for an error ``stays within 1% of``;
    of a row also its share on test and its cost."""
    whose = "its" if row and row.reference else f"{board.reference}'s"
    up = board.higher_is_better
    words = f"keeps {SHARE:.0%} of" if up else f"stays within {1 - SHARE:.0%} of"
    words += f" {whose} {board.metric} on validation"
    if row is None:
        return words
    if not math.isnan(share := board.kept(row)):
        more = 1 / share - 1
        test = f"{share:.1%}" if up else f"{abs(more):.1%} {'worse' if more >= 0 else 'better'}"
        words += f", {test} on test,"
    return f"{words} {_price(board, row.cheap.cost)}"


def _price(board: Board, paid: float) -> str:
    """Return ``at cost 12.30``, or ``for 12.30 euro`` if costs have a unit."""
    return f"for {cost(paid)} {board.unit}" if board.unit else f"at cost {cost(paid)}"
