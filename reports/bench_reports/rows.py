"""The page's tables and sentences where there is no limit; its script writes those at budgets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from bench_core.errors import one_line
from bench_core.leaderboard.board import SHARE, Board, Row
from bench_core.leaderboard.ranks import over_datasets
from bench_core.terminal.wording import cost, duration, quality, times
from bench_reports.console import explained_marks, of_few_draws, selection_line, target
from bench_reports.svg import Look
from bench_reports.views import Certainty, Curve, View

NAMES_LISTED = 3


@dataclass(frozen=True, slots=True)
class Head:
    """A column: ``first`` is the direction in which its best values come first."""

    name: str
    title: str
    first: str = "up"
    numeric: bool = True


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell's text, and what it is sorted by where that is not the text."""

    text: str
    value: float | None = None


@dataclass(frozen=True, slots=True)
class TableRow:
    """A learner's row."""

    index: int
    look: Look
    css: str
    cells: tuple[tuple[Head, Cell], ...]


def heads(board: Board, view: View) -> list[Head]:
    """The columns that say something on this board."""
    better = "down" if view.metric.higher_is_better else "up"
    rows = board.rows
    columns = {
        Head("rank", "rank"): True,
        Head("learner", "learner", numeric=False): True,
        Head("quality", view.metric.name, better): True,
        Head("range", "95% interval", better): bool(view.certainty),
        Head("cost", "cost"): True,
        Head("p95", "p95 cost"): not all(math.isnan(c.p95[-1]) for c in view.curves),
        Head("features", "features"): not all(math.isnan(c.features[-1]) for c in view.curves),
        Head("cheap", f"{SHARE:.0%} cost"): any(row.cheap for row in rows),
        Head("saving", "saving", "down"): any(row.cheap for row in rows),
        Head("gap", "to optimum"): any(row.gap for row in rows),
        Head("trained", "training"): any(row.seconds for row in rows),
        Head("marks", "marks", numeric=False): any(_marks(board, row) for row in rows),
    }
    return [head for head, there in columns.items() if there]


def table_rows(board: Board, view: View, learners: Sequence[str]) -> Iterator[TableRow]:
    """The rows, best first, baselines below."""
    own = {row.learner: row for row in board.rows}
    columns = heads(board, view)
    ranked = [(curve, sure, place) for place, (curve, sure) in enumerate(view.ranking(), 1)]
    tier = 0
    for curve, sure, place in sorted(ranked, key=lambda item: own[item[0].learner].baseline):
        row = own[curve.learner]
        cells = _cells(board, row, curve, sure, place)
        now = sure.tier if sure else 0
        css = {
            "baseline": row.baseline,
            "lead": now == 1 or (not now and place == 1),
            "edge": 0 < tier < now and not row.baseline,
        }
        tier = now or tier
        index = learners.index(curve.learner)
        words = " ".join(name for name, there in css.items() if there)
        shown = tuple((head, cells[head.name]) for head in columns)
        yield TableRow(index, Look(index, row.baseline), words, shown)


def row_html(row: TableRow) -> str:
    """A row of the table as HTML."""
    css = f' class="{row.css}"' if row.css else ""
    cells = []
    for head, cell in row.cells:
        tag = "td"
        if head.name == "learner":
            tag = f'th scope="row" class="{row.look.css} g{row.look.glyph}"'
        elif cell.value is not None:
            tag = f'td data-v="{cell.value:.3g}"'
        cells.append(f"<{tag}>{escape(cell.text)}")
    return f'<tr data-l="{row.index}"{css}>{"".join(cells)}\n'


def split_rows(board: Board, view: View, learners: Sequence[str], most: int) -> tuple[str, str]:
    """The rows that the page has as they are, ``most`` of them, and those that its script adds."""
    made = [row_html(row) for row in table_rows(board, view, learners)]
    return "".join(made[:most]), "".join(made[most:])


def _cells(
    board: Board, row: Row, curve: Curve, sure: Certainty | None, place: int
) -> dict[str, Cell]:
    features = curve.features[-1]
    return {
        "rank": Cell(rank_text(sure, place)),
        "learner": Cell(one_line(curve.learner)),
        "quality": Cell(quality(curve.quality[-1])),
        "range": Cell(f"{quality(sure.low)} to {quality(sure.high)}" if sure else "-"),
        "cost": Cell(cost(curve.cost[-1])),
        "p95": Cell(cost(curve.p95[-1])),
        "features": Cell("-" if math.isnan(features) else f"{features:.3g}"),
        "cheap": Cell(cost(row.cheap.cost) if row.cheap else "-"),
        "saving": Cell(_saving_text(row)),
        "gap": Cell(quality(row.gap.value) if row.gap else "-"),
        "trained": Cell(f"{row.fits} in {duration(row.seconds)}", round(row.seconds, 2)),
        "marks": Cell(", ".join(_marks(board, row)) or "-"),
    }


def _saving_text(row: Row) -> str:
    """The saving with its 95% interval."""
    text = times(row.saving)
    if not row.cheap or not row.saved or math.isnan(row.saved.interval.low):
        return text
    low, high = map(times, row.saved.interval)
    return f"{text} ({low} to {high})"


def _marks(board: Board, row: Row) -> list[str]:
    """Marks of the row; those of the whole board stand in its heading, an audit that all rows have
    in its legend."""
    audits = {one.audit for one in board.rows}
    same = {*board.marks, "baseline"}
    marks = [one_line(mark) for mark in board.marks_of(row) if mark not in same]
    return marks + ([f"audit {row.audit}"] if len(audits) > 1 else [])


def legend(board: Board, view: View) -> list[str]:
    """The table's columns explained, those that it has."""
    name = one_line(board.reference)
    mean = "the mean of repeats, " if board.repeats > 1 else ""
    lines = {
        "range": f"rank: what the data leave open (95%{of_few_draws(board)}); shaded: not "
        "separable from the best.",
        "saving": f"{SHARE:.0%} cost: that of the cheapest point with {target(board)}; "
        f"saving: what {name} pays for {SHARE:.0%} over what the learner pays for it, "
        f"between two points in proportion ({mean}with its 95% interval).",
        "gap": "to optimum: what the curve lacks to the known optimum, a mean over costs.",
        "trained": "training: settings tried, and the time of all fits.",
    }
    there = {head.name for head in heads(board, view)}
    explained = [line for column, line in lines.items() if column in there]
    return [selection_line(board), *explained, *explained_marks(board)]


def rank_text(sure: Certainty | None, place: int) -> str:
    """The ranks that the data leave open, or the place in the order."""
    if sure is None:
        return str(place)
    return str(sure.first) if sure.first == sure.last else f"{sure.first}–{sure.last}"


def story(board: Board, view: View) -> str:
    """Who is ahead, by how much and how surely, and who keeps the reference's quality cheapest."""
    (top, sure), *others = view.ranking()
    between = f" ({quality(sure.low)} to {quality(sure.high)})" if sure else ""
    baselines = {row.learner for row in board.rows if row.baseline}
    level = [c.learner for c, _ in view.ranking() if c.quality[-1] == top.quality[-1]]
    unbeaten = [one_line(name) for name in level if name in baselines]
    who = f"{one_line(top.learner)} is ahead"
    if unbeaten:
        plural = "s" * (len(unbeaten) > 1)
        who = f"nothing beats the baseline{plural} {listed(unbeaten)}"
    words = [
        f"Without a limit, {who}: {view.metric.name} "
        f"{quality(top.quality[-1])}{between} at a cost of {cost(top.cost[-1])}."
    ]
    if others and not unbeaten:
        words += _ahead(top, sure, others)
    return " ".join([*words, *saving_sentences(board)])


def _ahead(
    top: Curve, sure: Certainty | None, others: Sequence[tuple[Curve, Certainty | None]]
) -> Iterator[str]:
    level = [one_line(curve.learner) for curve, own in others if own and own.tier == 1]
    behind = [curve for curve, own in others if own and own.tier > 1]
    following = (behind or [others[0][0]])[0]
    name = one_line(following.learner)
    gap = quality(abs(float(top.quality[-1] - following.quality[-1])))
    if sure is None:
        yield f"{name} is next, {gap} behind; how sure that is was not measured here."
    elif not level:
        yield f"With 95% certainty it is better than all others; {name} is next, {gap} behind."
    else:
        yield f"The data do not separate it from {listed(level)}."
        if behind:
            yield f"It is better than {name}, {gap} behind, with 95% certainty."


def saving_sentences(board: Board) -> Iterator[str]:
    """Who keeps the quality at the least cost, and who surely saves most where that is another; a
    saving that was found by luck on validation does not count."""
    kept = [row for row in board.rows if row.cheap and not row.reference and row.saving > 1]
    kept = [row for row in kept if not (row.saved and row.saved.lost)]
    if not (kept and board.reference):
        return
    cheapest = min(kept, key=lambda r: (r.cheap.cost if r.cheap else math.inf, r.learner))
    surest = max(kept, key=lambda r: (_surely(r), r is cheapest, r.learner))
    yield (
        f"{one_line(cheapest.learner)} keeps {SHARE:.0%} of {one_line(board.reference)}'s "
        f"{board.metric} at the least cost, {_paid(board, cheapest)}."
    )
    if surest is not cheapest:
        yield f"The surest saving is {one_line(surest.learner)}'s: {_paid(board, surest)}."


def _surely(row: Row) -> float:
    """The saving that a row surely reaches."""
    return row.saved.interval.low if row.saved else row.saving


def _paid(board: Board, row: Row) -> str:
    """What the learner pays, and of what the reference pays for as much, with its interval. The
    saving of several repeats is the mean of theirs, which is not the ratio of mean costs."""
    paid, sure = row.cheap.cost if row.cheap else math.nan, ""
    mean = f" by the mean saving of {board.repeats} repeats" if board.repeats > 1 else ""
    if row.saved and not math.isnan(row.saved.interval.low):
        low, high = (1 / edge for edge in reversed(row.saved.interval))
        sure = f" (95%: {low:.0%} to {high:.0%})"
    return f"{cost(paid)}: {1 / row.saving:.0%} of what that pays for it{mean}{sure}"


def listed(names: Sequence[str]) -> str:
    """``a, b, c and 4 more``."""
    more = len(names) - NAMES_LISTED
    shown = [*names[:NAMES_LISTED], f"{more} more"] if more > 1 else list(names)
    return f"{', '.join(shown[:-1])} and {shown[-1]}" if len(shown) > 1 else shown[0]


@dataclass(frozen=True, slots=True)
class Overall:
    """A learner over all data sets; ``lacks``: no result on some of them, so it has no ``mean``."""

    index: int
    learner: str
    baseline: bool
    lacks: bool
    mean: str
    firsts: str
    cells: tuple[tuple[str, bool], ...]


def overview(
    boards: Sequence[Board], learners: Sequence[str], baselines: Sequence[str]
) -> list[Overall]:
    """All learners without a limit, ranked as on a terminal (``over_datasets``); then baselines,
    then those that lack a result on some data set."""
    names, found = over_datasets(boards)
    ranked = {one.learner: dict(zip(names, one.by_dataset, strict=True)) for one in found}
    first = {k: min(own[k] for own in ranked.values()) for k in names}
    means = {one.learner: one.mean for one in found}
    there = {board.dataset: {row.learner for row in board.rows} for board in boards}
    counted = [there[board.dataset] for board in shown(boards)]
    rows = []
    for index, name in enumerate(learners):
        own = ranked.get(name, {})
        cells = tuple(
            (f"{own[k]:g}", own[k] == first[k]) if k in own else ("✓" * (name in has) or "-", False)
            for k, has in there.items()
        )
        firsts, has = sum(lead for _, lead in cells), sum(name in one for one in counted)
        words = ("-", f"on {has} of {len(counted)}")
        if own:
            words = f"{means[name]:.2f}", f"{firsts} of {len(names)}"
        row = Overall(index, one_line(name), name in baselines, not own, *words, cells)
        rows.append(((row.lacks, row.baseline, means.get(name, 0.0), name), row))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def overall_sentence(boards: Sequence[Board]) -> str:
    """Who has the best mean rank, by how much and how surely; of learners on every data set."""
    names, ranked = over_datasets(boards)
    area = by_area(boards)
    if not ranked:
        return f"No two learners have a result on all {len(shown(boards))} data sets."
    top, *others = sorted(ranked, key=lambda one: (one.mean, one.learner))
    best = [min(ranks) for ranks in zip(*(one.by_dataset for one in ranked), strict=True)]
    firsts = sum(rank == least for rank, least in zip(top.by_dataset, best, strict=True))
    second = one_line(others[0].learner)
    same = others[0].mean == top.mean
    return (
        f"{'Over whole curves (area)' if area else 'Without a limit'}, {one_line(top.learner)} "
        f"has the best mean rank of {len(ranked)} learners on {len(names)} data sets, "
        f"{top.mean:.2f}, and is {'first' if area else 'best or tied'} on {firsts}; "
        f"{second} {'has the same' if same else f'is next with {others[0].mean:.2f}'}. "
        + separated(*([one_line(o.learner) for o in others if (o.tier > 1) == k] for k in (0, 1)))
    )


def shown(boards: Sequence[Board]) -> list[Board]:
    """The boards that ranks over data sets are of."""
    return [board for board in boards if board.rows and not board.same_as]


def by_area(boards: Sequence[Board]) -> bool:
    """Whether ranks without a limit are by area."""
    return any(row.area for board in boards for row in board.rows)


def separated(level: Sequence[str], behind: Sequence[str]) -> str:
    """What Nemenyi's test says of the first, which ``level`` are and ``behind`` are not tied to."""
    if not behind:
        return "Nemenyi's test (95%) does not separate it from any of them."
    words = f"Nemenyi's test (95%) finds it better than {listed(behind)}"
    return f"{words}, not certainly than {listed(level)}." if level else f"{words}."
