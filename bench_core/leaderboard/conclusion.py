"""The conclusion of a board in plain sentences, which every format shows first: the model to take,
its cost and what it loses on test, the reference at its best and at the same quality, and learners
that save about as much; over several data sets, ranks with tie tiers.

Where no learner is sure to keep the quality for less, the reference is the answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bench_core.errors import one_line
from bench_core.leaderboard.board import SHARE, Board, Pick, Row, Standings, saves
from bench_core.protocols import DIVERGED, ELSEWHERE
from bench_core.results.budgets import CAP
from bench_core.statistics import LEVEL
from bench_core.statistics.comparison import Interval, tiers_and_ranks
from bench_core.terminal.wording import cost, difference, in_brackets, listed, quality, saving


@dataclass(frozen=True, slots=True)
class Ranked:
    """A learner's ranks."""

    learner: str
    mean: float  # over data sets
    by_dataset: tuple[float, ...]
    interval: Interval  # of the mean: two of them overlap unless Nemenyi's test separates them
    tier: int  # by Nemenyi's test
    ranks: tuple[int, int]  # best and worst rank by the test


def over_datasets(boards: Sequence[Board]) -> tuple[tuple[str, ...], tuple[Ranked, ...]]:
    """Return the data sets, and the learners that are on all of their boards, best tier first.

    Ranks are by area, or by best quality on boards on which a learner has no area; ties share the
    mean rank. Nemenyi's test separates learners; it treats data sets as fixed. Only the first of
    several boards of the same data counts, and none on which the metric is not defined. Empty for
    fewer than two boards with rows, or for fewer than two learners on all boards.
    """
    import pandas as pd

    boards = [b for b in boards if b.rows and not b.same_as and not b.undefined]
    names = [
        row.learner
        for row in (boards[0].rows if boards else ())
        if all(any(row.learner == other.learner for other in board.rows) for board in boards)
    ]
    if len(boards) < 2 or len(names) < 2:
        return (), ()
    ranks = pd.DataFrame([_losses(board, names) for board in boards]).rank(axis=1).to_numpy()
    apart = least_difference(*ranks.shape)
    better = np.subtract.outer(mean := ranks.mean(axis=0), mean) < -apart
    low, high = np.clip([mean - apart / 2, mean + apart / 2], 1, len(names))
    ends = [Interval(*pair) for pair in zip(low.tolist(), high.tolist(), strict=True)]
    tiers = tiers_and_ranks(better)
    rows = [
        Ranked(name, float(mean[k]), tuple(ranks[:, k].tolist()), ends[k], *tiers[k])
        for k, name in enumerate(names)
    ]
    rows.sort(key=lambda one: (one.tier, one.mean, one.learner))
    return tuple(board.dataset for board in boards), tuple(rows)


_MIXED = "mean quality over all budgets, on some data sets by best quality"


def ranked_by(boards: Sequence[Board]) -> str:
    """Return what ``over_datasets`` ranks by, in words."""
    datasets, ranked = over_datasets(boards)
    names = {one.learner for one in ranked}
    has_area = [
        not any(math.isnan(row.area.value) for row in board.rows if row.learner in names)
        for board in boards
        if board.dataset in datasets
    ]
    if all(has_area):
        return "mean quality over all budgets"
    return _MIXED if any(has_area) else "best quality"


def least_difference(datasets: int, learners: int, share: float = LEVEL) -> float:
    """Return the critical difference of mean ranks (Nemenyi 1963; Demsar 2006)."""
    q = normal_range(share, learners) / math.sqrt(2)
    return q * math.sqrt(learners * (learners + 1) / (6 * datasets))


def normal_range(share: float, count: int) -> float:
    """Return the quantile of the range of ``count`` standard normal values, the studentized range
    of known variance. Importing scipy.stats instead would add half a second to every board."""
    from scipy.special import ndtr

    least, step = np.linspace(-9, 9, 721, retstep=True)  # trapezoids over the least value
    density = count * np.exp(-(least**2) / 2) / math.sqrt(2 * math.pi) * step
    low, high = 0.0, 20.0
    while high - low > 1e-10:
        middle = (low + high) / 2
        within = float(density @ (ndtr(least + middle) - ndtr(least)) ** (count - 1))
        low, high = (middle, high) if within < share else (low, middle)
    return high


def _losses(board: Board, names: Sequence[str]) -> list[float]:
    """Return losses, lower is better: from areas if all learners have one, else best qualities."""
    rows = {row.learner: row for row in board.rows}
    areas = [rows[name].area.value for name in names]
    if any(map(math.isnan, areas)):
        areas = [rows[name].best.quality for name in names]
    return [-value if board.higher_is_better else value for value in areas]


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
