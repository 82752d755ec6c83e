"""The conclusion of a board in plain sentences, which every format shows first: the model to take,
its cost and what it loses on test, the reference at its best and at the same quality, and learners
that save about as much; over several data sets, who is first and who might be as good.

Where no learner is sure to keep the quality for less, the reference is the answer. A constant is
never credited to a learner: it is the answer that costs nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from bench_core.data import Task
from bench_core.datasets.cautions import FEW_UNITS
from bench_core.errors import one_line, option
from bench_core.leaderboard.board import (
    LESS,
    Answer,
    Board,
    Pick,
    Row,
    Standing,
    Standings,
    beaten,
    saves,
)
from bench_core.leaderboard.certainty import FEW_REPEATS
from bench_core.leaderboard.rare_class import FEW_OF_A_CLASS, rare_class
from bench_core.protocols import DIVERGED, ELSEWHERE
from bench_core.results.budgets import CAP
from bench_core.statistics import LEVEL
from bench_core.statistics.comparison import Interval, tiers_and_ranks
from bench_core.terminal.wording import (
    cost,
    difference,
    in_brackets,
    listed,
    percent,
    quality,
    saving,
)


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

POOR_JUDGE = 0.85
"""Above this accuracy of a constant, the conclusion names another metric to judge by."""

FIRST = 3
"""Most learners of which a conclusion tells where they are first."""

MANY = 100
"""Most repeats that a conclusion recommends."""


def conclusion(board: Board) -> tuple[str, ...]:
    """Return the conclusion of one data set, on the board's answer; empty without rows. Where the
    metric is not defined, that is all that can be concluded."""
    if not board.rows:
        return ()
    if board.undefined:
        return (one_line(f"No conclusion: {board.undefined}."),)
    row, reference = board.answer, board.reference_row
    if board.totals:
        sentences = [*_total(board, row)]
    elif reference is None:
        sentences = [*_best(board), "No saving is measured without a reference learner."]
    elif row is None:
        sentences = [*_no_target(board, reference), *_best(board)]
    elif row is reference:
        sentences = [*_nothing_saves(board, reference)]
    else:
        sentences = [*_saves(board, row, reference)]
    if judge := _judge(board, *sentences[:1]):
        sentences.insert(1, judge)
    sentences += _caps(board)
    if board.repeats > 1:
        sentences += _repeats(board, row, reference)
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
        r.learner: [
            n for n, rank, least in zip(names, r.by_dataset, best, strict=True) if rank == least
        ]
        for r in ranked
    }
    tied = [r for r in ranked if r.tier == 1]

    def place(one: Ranked) -> tuple[object, ...]:
        where = leads[one.learner]
        return not where, rows[one.learner].baseline, -len(where), one.mean

    top = min(tied, key=place)
    first = f"{_subject(rows[top.learner])} is first on {len(leads[top.learner])} of {len(names)}"
    parts = [f"{first} data sets, by {ranked_by(boards)}"]
    for one in sorted(ranked, key=lambda r: -len(leads[r.learner])):
        if (where := leads[one.learner]) and one is not top and len(parts) < FIRST:
            parts.append(f"{_subject(rows[one.learner])} is first on {listed(where)}")
    sentences = [f"{'; '.join(parts)}."]
    others = [rows[r.learner] for r in tied if r is not top]
    if len(tied) == len(ranked):
        sentences.insert(0, f"{len(names)} data sets cannot tell the learners apart.")
    elif others:
        sentences.append(f"{listed([*map(_name, others)])} might be as good, by Nemenyi's test.")
    else:
        there = " with results on all data sets" if len(ranked) < len(rows) else ""
        sentences.append(f"It has a better mean rank than all others{there}, by Nemenyi's test.")
    ahead = min(tied, key=lambda r: r.mean)
    if ahead.mean < top.mean:
        sentences.append(f"{_name(rows[ahead.learner])} has the best mean rank, {ahead.mean:.2f}.")
    return tuple(map(one_line, sentences))


def _saves(board: Board, row: Row, reference: Row) -> Iterator[str]:
    """Yield sentences on the model to take, the reference next to it, and equal learners."""
    baselines = [] if row.baseline else _cheaper_baselines(board, row, reference)
    for first in [*baselines[:1], row]:
        reached = f"{_reached(board, first.cheap)}{_few(board)}"
        yield f"{_subject(first)} {_paid(board, first.cheap)} and {reached}."
    yield _compared(board, reference, f", {_times(row)}")
    if not (math.isnan(row.saved.interval.low) or row.saved.significant):
        yield "This saving may be chance."
    yield from _rare_class(board, row, reference)
    if ELSEWHERE in reference.marks:  # the model of today: what is lost by its replacement
        taken, best = row.cheap.quality, reference.best.quality
        shown = partial(difference, size=max(abs(taken), abs(best)))
        words = f"On test, {row.learner}'s {board.metric} minus {reference.learner}'s"
        yield f"{words}: {shown(taken - best)}{in_brackets(row.saved.gap, shown)}."
    yield from _better_on_test(board, row, baselines[:1])
    if math.isnan(row.saved.interval.low):
        yield UNMEASURED
        return
    alike = [_name(other) for other in _alike(board, row, reference) if other not in baselines[:1]]
    if alike:
        yield f"{listed(alike)} {'saves' if len(alike) == 1 else 'save'} about as much."


def _cheaper_baselines(board: Board, row: Row, reference: Row) -> list[Row]:
    """Return the baselines that are sure to keep the quality for less than a row's model does,
    cheapest first."""
    cheaper = [
        other
        for other in board.rows
        if other.baseline
        and saves(other, reference)
        and other.cheap.valid_cost < row.cheap.valid_cost
    ]
    return sorted(cheaper, key=lambda other: other.cheap.valid_cost)


def _alike(board: Board, row: Row, reference: Row) -> list[Row]:
    """Return the other learners whose saving ties with a row's."""
    return [
        other
        for other in board.rows
        if other is not row and other.saved.tier == row.saved.tier > 0 and saves(other, reference)
    ]


def _better_on_test(board: Board, row: Row, without: Sequence[Row] = ()) -> Iterator[str]:
    """Yield a sentence on the cheapest other model that costs less on test than a row's and is no
    worse there."""
    sign = 1 if board.higher_is_better else -1
    better = [
        other
        for other in board.rows
        if not (other is row or other.reference or other in without or other.model.constant)
        and not other.saved.lost
        and (other.cheap or (other.likely and other.probability > 0.5))
        and float(cost(other.model.cost)) < float(cost(row.model.cost))
        and sign * (other.model.quality - row.model.quality) >= 0
    ]
    if better:
        best = min(better, key=lambda other: other.model.cost)
        chance = "" if best.cheap else f", {saving(best.saving, best.probability, best.sure_in)}"
        reached = _reached(board, best.model).partition(" of ")[0]
        price = f"{cost(best.model.cost)}{chance}"
        yield f"{_name(best)}, {price}, {reached}: cheaper and no worse on test."


def _total(board: Board, row: Row | None) -> Iterator[str]:
    """Yield sentences on the model of least total cost, next to buying everything and nothing."""
    if row is None or board.extremes is None:
        return
    total, paid, (everything, nothing) = row.best.quality, row.best.cost, board.extremes
    amount = f"{cost(total)} {board.unit}".rstrip()
    ends = in_brackets(row.standing.interval, cost)
    if board.nothing_pays:
        yield f"The best constant answer, which buys nothing, costs {amount} per row{ends}."
        words = f"buying everything costs {cost(everything)} with the best answers"
        yield f"No model is sure to cost less; {words}."
        return
    if float(cost(nothing)) <= float(cost(total)):
        same = "the same" if cost(nothing) == cost(total) else cost(total)
        yield f"Buying nothing costs {cost(nothing)} {board.unit}".rstrip() + " per row."
        yield f"{_subject(row)} costs {same}{ends}: no feature pays for itself."
        yield f"Buying everything costs {cost(everything)} with the best answers."
        return
    parts = f"{cost(paid)} for features, {cost(total - paid)} for errors{_few(board)}"
    yield f"{_subject(row)} costs {amount} per row{ends}: {parts}."
    ends_of = f"{cost(everything)} with the best answers, buying nothing {cost(nothing)}"
    yield f"Buying everything costs {ends_of}."
    if math.isnan(row.standing.interval.low):
        yield UNMEASURED
    elif row.standing.tier == 1:
        yield from _ties_at(board, board.unlimited, row.learner)
    yield from _rare_class(board, row, board.reference_row)


def _nothing_saves(board: Board, reference: Row) -> Iterator[str]:
    """Yield sentences on why no learner is named, likely ones, and the reference at its best."""
    others = [row for row in board.rows if not row.reference]
    what = f"{_keep(board)} {reference.learner}'s {board.metric}"
    sure = [row for row in others if row.cheap and not row.saved.lost]
    likely = [] if board.constant_holds else board.likely
    number, units = board.checked
    few, are_few = _few(board), f": {number} validation {units} are few" * bool(_few(board))
    if board.constant_holds:
        yield from _constant_is_it(board, reference)
    if lesser := beaten(sure, what, f"{number} validation {units}" if few else "validation"):
        yield f"{lesser}."
    elif sure:
        yield f"No learner that is sure to {what} costs less than {reference.learner}{are_few}."
    elif any(not row.baseline for row in others):
        enough = (_too_few(board, likely[0]) if likely else "") or are_few
        lucky = [row.learner for row in others if row.saved.lost]
        only = f"; {listed(lucky)} only on validation" if lucky else ""
        yield f"No other learner is sure to {what}{enough}{only}."
    else:
        yield f"{reference.learner} is the only learner."
    for row in _likely_ones(likely):
        price = f"{cost(row.model.cost)} {board.unit}".rstrip()
        price += f" instead of {cost(reference.cheap.cost)}"
        chance = saving(row.saving, row.probability, row.sure_in)
        first = f"{'Likely' if row is likely[0] else 'Next'}: {_subject(row).rstrip(',')}"
        yield f"{first}, {price}, {chance}; it {_reached(board, row.model)}."
    if likely:
        yield from _better_on_test(board, likely[0], _likely_ones(likely))
    yield _compared(board, reference)
    if likely:
        yield from _rare_class(board, likely[0], reference)
    at = cost(reference.cheap.cost)
    at = "at its best" if at == cost(reference.best.cost) else f"at {at}"
    yield f"The answer is {reference.learner} {at}."
    if board.less:
        yield _less(board, board.less)


def _less(board: Board, answer: Answer) -> str:
    """Return the sentence on the answer at a lower share of quality."""
    saved = f", {saving(answer.saving)} cheaper" * math.isfinite(answer.saving)
    reached = _reached(board, answer.cheap).replace(" test rows", "")
    interval = in_brackets(answer.saved.interval, saving) * bool(saved)
    words = f"{_paid(board, answer.cheap)} and {reached}{saved}{interval}"
    return f"With {option('keep', percent(LESS))}, {answer.learner} {words}."


def _likely_ones(likely: Sequence[Row]) -> list[Row]:
    """Return the likely model to name first; if it is a baseline's, also the first learner's."""
    learners = [row for row in likely if not row.baseline]
    return [*likely[:1], *(learners[:1] if likely and likely[0].baseline else [])]


def _too_few(board: Board, likeliest: Row) -> str:
    """Return how many validation rows would make a likely model sure, "" if unknown."""
    enough = likeliest.likely.enough if likeliest.likely else math.inf
    number, units = board.checked
    if not (math.isfinite(enough) and number):
        return ""
    much = math.ceil(float(f"{enough * number:.1g}"))
    times = f"{much / number:.2g} times the data"
    return f": {number} validation {units} are too few (about {much} would do: {times})"


def _few(board: Board) -> str:
    """Return that points were chosen on few validation rows, "" otherwise."""
    number, units = board.checked
    few = 0 < number < FEW_UNITS
    return f", chosen on only {number} validation {units}" if few else ""


def _paid(board: Board, pick: Pick) -> str:
    """Return ``costs 24.57 dollars per row``, or ``reads 29.54 of 64 features per row``."""
    if board.counted:
        return f"reads {cost(pick.cost)} of {board.use.features} features per row"
    return f"costs {cost(pick.cost)} {board.unit}".rstrip() + " per row"


def _reached(board: Board, pick: Pick) -> str:
    if board.tested and not math.isnan(pick.quality):
        wrong = f"{_rows(board, board.wrong(pick.quality))} of {board.tested} test rows"
        return f"is wrong for {wrong} ({1 - pick.quality:.1%})"
    return f"has {board.metric} {quality(pick.quality)} on test"


def _rows(board: Board, number: float) -> str:
    """Return a number of rows; a mean over repeats has one decimal."""
    return f"{number:.1f}" if board.repeats > 1 else f"{number:.0f}"


def _compared(board: Board, reference: Row, more: str = "") -> str:
    """Return what the reference costs at its best and at the same quality, with ``more`` on the
    cost that is saved."""
    best, cheap = reference.best, cost(reference.cheap.cost)
    reached = _reached(board, best).replace(" test rows", "")
    costs = "reads" if board.counted else "costs"
    words = f"{reference.learner} at its best {costs} {cost(best.cost)} and {reached}"
    if cheap == cost(best.cost):
        return f"{words}{more}."
    return f"{words}; to {_keep(board)} its {board.metric} it {costs} {cheap}{more}."


def _keep(board: Board) -> str:
    """Return ``keep 99% of``, or ``stay within 1% of`` for errors."""
    if board.higher_is_better:
        return f"keep {percent(board.keep)} of"
    return f"stay within {percent(1 - board.keep)} of"


def _times(row: Row) -> str:
    """Return ``1.9x as much (1.8x to 2.0x)``."""
    if math.isinf(row.saving):
        return "where this one costs nothing"
    return f"{saving(row.saving)} as much{in_brackets(row.saved.interval, saving)}"


def _rare_class(board: Board, row: Row, reference: Row | None) -> Iterator[str]:
    """Yield the sentence on a rare class, if there is one."""
    name = reference.learner if reference else ""
    if line := rare_class(board.classes, row.learner, name, board.repeats):
        yield line


def _always(board: Board) -> str:
    """Return ``Always answering 'no'``."""
    label = f"'{board.constant_class}'" if board.constant_class else "the most frequent class"
    return f"Always answering {label}"


def _constant_is_it(board: Board, reference: Row | None) -> Iterator[str]:
    """Yield the sentence on a constant that no learner beats, next to the reference at its best."""
    reached = board.constant.quality
    if reference is None or reference.best.constant:
        whose = "learner" if reference is None else f"model of {reference.learner}"
        other = f"no {whose} is better on validation"
    elif board.tested:
        other = f"{reference.learner} at its best is right for {reference.best.quality:.1%}"
    else:
        other = f"{reference.learner} at its best has {quality(reference.best.quality)}"
    if board.tested:
        right = f"is right for {reached:.1%} of test rows"
        yield f"{_always(board)} {right} and costs nothing; {other}."
    else:
        what = f"has {board.metric} {quality(reached)} on test and costs nothing"
        yield f"The best constant answer {what}; {other}."


def _judge(board: Board, first: str = "") -> str:
    """Return the sentence that names a metric to judge by where accuracy is a poor one: a constant
    is nearly as good, which the ``first`` sentence may have said, or the named model never finds a
    class; "" otherwise."""
    if not board.tested:
        return ""
    metric = "auc" if board.use.task == Task.BINARY else "balanced_accuracy"
    costs = option("error_costs")
    remedy = f"udge by {option('metrics', metric)}, or give errors a price ({costs})."
    if board.constant and board.constant.quality > POOR_JUDGE:
        if first.startswith(_always(board)):
            return f"J{remedy}"
        return f"{_always(board)} is right for {board.constant.quality:.1%}: j{remedy}"
    missed = [one for one in board.classes if one.rows >= FEW_OF_A_CLASS and one.model == 0]
    if (row := board.named) is None or not missed:
        return ""
    rows = f"{_rows(board, missed[0].rows)} test rows of '{missed[0].label}'"
    return f"{row.learner} finds none of {rows}: j{remedy}"


def _no_target(board: Board, reference: Row) -> Iterator[str]:
    """Yield the reason why no saving is measured against an existing reference."""
    if DIVERGED in reference.marks:
        yield f"No saving is measured, as {reference.learner} diverged."
        return
    if board.constant and not reference.reached:
        yield from _constant_is_it(board, reference)
        return
    some = "In some repeats a" if reference.reached else "A"
    share = f"{percent(board.keep)} of"
    if not board.higher_is_better:
        share = f"an error within {percent(1 - board.keep)} of"
    what = f"keeps {share} {reference.learner}'s {board.metric} on validation"
    yield f"{some} constant {what} at no cost: no saving is measured."


def _first(board: Board, at: Standings) -> Standing | None:
    """Return the best learner on validation, which ``bench best`` names too."""
    sign = 1 if board.higher_is_better else -1
    known = [one for one in at.rows if not math.isnan(one.valid[0] + one.quality)]
    order = [(-sign * one.valid[0], one.valid[1], one.learner) for one in known]
    return min(zip(order, known, strict=True), default=(None, None))[1]


def _best(board: Board) -> Iterator[str]:
    """Yield sentences on the best learner on validation, its cost, and learners tied with it."""
    rows = {row.learner: row for row in board.rows}
    first = _first(board, board.unlimited)
    if first is None:
        return
    top = rows[first.learner]
    if board.reference_row is None and top.best.constant:
        yield from _constant_is_it(board, None)
    gain = top.best.quality - board.constant.quality
    if top.best.constant or (gain if board.higher_is_better else -gain) <= 0:
        return  # the constant has been named
    price = f"at cost {cost(top.best.cost)}"
    if board.unit:
        verb = "reading" if board.counted else "for"
        price = f"{verb} {cost(top.best.cost)} {board.unit}"
    reached = f"{board.metric} {quality(top.best.quality)} on test {price}"
    if len(rows) == 1:
        yield f"{top.learner} is the only learner: {reached}."
        return
    few = _few(board).removeprefix(", chosen on ")
    yield f"{_subject(top)} is best on {few or 'validation'}: {reached}."
    if math.isnan(first.interval.low):
        yield UNMEASURED
    else:
        yield from _ties_at(board, board.unlimited, top.learner)


def _caps(board: Board) -> Iterator[str]:
    """Yield a sentence on the best learner on validation under each cap of the board."""
    for at in board.standings:
        if at.budget is None or at.budget.kind != CAP or (top := _first(board, at)) is None:
            continue
        within = f"With no row above {at.budget.amount:.6g}"
        if _is_constant(board, top):
            answer = _always(board) if board.constant_class else "A constant answer"
            yield f"{within}, nothing is better on validation than {answer[0].lower()}{answer[1:]}."
            continue
        reached = f"{board.metric} {quality(top.quality)} on test at cost {cost(top.cost)}"
        yield f"{within}, {top.learner} is best on validation: {reached}."
        yield from _ties_at(board, at, top.learner)


def _is_constant(board: Board, standing: Standing) -> bool:
    """True if a learner's model is the best constant, by its validation quality and cost."""
    nothing = board.constant
    return bool(nothing) and standing.valid == (nothing.valid_quality, nothing.valid_cost)


def _ties_at(board: Board, at: Standings, first: str) -> Iterator[str]:
    """Yield sentences on the learners that tie with the ``first`` at a budget, and on those that
    are better on test."""
    rows = {row.learner: row for row in board.rows}
    tier = next(standing.tier for standing in at.rows if standing.learner == first)
    others = [
        standing
        for standing in at.rows
        if standing.tier and standing.learner != first and not _is_constant(board, standing)
    ]
    tied = [_name(rows[standing.learner]) for standing in others if standing.tier == tier]
    better = [_name(rows[standing.learner]) for standing in others if standing.tier < tier]
    if tied and board.totals:
        do = "does" if len(tied) == 1 else "do"
        yield f"{listed(tied)} {do} not cost significantly more."
    elif tied:
        yield f"{listed(tied)} {'is' if len(tied) == 1 else 'are'} about as good."
    if better:
        yield f"{listed(better)} {'is' if len(better) == 1 else 'are'} better on test."


def _repeats(board: Board, row: Row | None, reference: Row | None) -> Iterator[str]:
    """Yield sentences on repeats: their number, the spread in intervals, and of few repeats how
    many would separate two learners."""
    yield f"Figures are means over {board.repeats} repeats."
    if reference is None or board.totals:
        return
    if row is reference:  # no saving is named: the first one that another model dominates
        saving_ones = (r for r in board.rows if r.cheap and r.saving > 1 and not r.saved.lost)
        row = next(saving_ones, None)
    if row is None or math.isnan(row.saved.interval.low):
        return
    if row is board.answer:
        yield f"The interval includes the spread of {board.repeats} fits; one run has none."
    others = _alike(board, row, reference) if row.saved.significant else [reference]
    factors = [
        (one, row.saved.more[one.learner]) for one in others if one.learner in row.saved.more
    ]
    if board.repeats <= FEW_REPEATS and factors:
        other, factor = factors[0]
        much = board.repeats * factor
        number = f"About {math.ceil(much)}" if much <= MANY else f"More than {MANY}"
        yield f"{number} repeats would separate {row.learner} from {other.learner} in cost."


def _name(row: Row) -> str:
    return f"{row.learner} (a baseline)" if row.baseline else row.learner


def _subject(row: Row) -> str:
    """Return the name as the subject of a sentence."""
    return f"{row.learner}, a baseline," if row.baseline else row.learner
