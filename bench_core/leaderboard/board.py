"""The content of a leaderboard, for any format: one ``Board`` per data set.

Everything is chosen on validation, separately in each repeat (a seed on a fold). Figures are from
test, means over repeats; see ``bench_core.results.operating_points``.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from bench_core.errors import one_line
from bench_core.results.budgets import CONSTANT, SHARE, Budget
from bench_core.results.records import DatasetUse
from bench_core.statistics.comparison import Interval
from bench_core.terminal.wording import (
    cost,
    count,
    listed,
    percent,
    rank_range,
    settings,
    stand_in_notice,
)


def lost_below(share: float) -> float:
    """Return the share of the reference's test quality below which a saving is refused, where
    ``share`` is to be kept. It then certainly loses more than twice the allowed quality: validation
    was lucky. A quality between the two shares may be bad luck on test and is accepted."""
    return max(2 * share - 1, 0.01)


LESS = 0.95
"""Share at which a board that finds no saving names one."""

CHEAPEST = 0.01
"""Areas and budgets begin no lower than this share of the cost of the reference's best point."""

ABOUT_AS_LIKELY = 0.1
"""Models whose probabilities differ by no more are about as likely to keep a quality."""

WORTH = 1.01
"""A saving that is not sure is named if it is larger."""

RANK = "quality rank"
"""Name of the column of ranks, in every format."""

OVER = "over budget"
"""Mark of a row whose mean cost on test exceeds a budget by more than its interval."""

NAMED = 5
"""Most exceeded budgets that this mark names; a page compares at many."""

SURROGATE = "trained on other prices"
"""Mark of a board whose costs are not those that learners trained with."""

UNREACHABLE = "unreachable"
"""Mark of the oracle's row."""

ONE_ANSWER = "always the same answer"
"""Mark of a row whose model is a constant."""

FALLS = "falls on test"
"""Mark of a learner whose quality falls from validation to test by more than chance."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A chosen setting of a learner: a point of its path, and parameters."""

    point: Mapping[str, object]
    params: Mapping[str, object]
    varied: frozenset[str]  # parameters that differ within the run
    repeats: int  # that chose it
    of: int

    @property
    def short(self) -> str:
        """Return ``trees=23 with tradeoff=0.1``, without parameters that never vary."""
        return self._worded(self.varied)

    @property
    def full(self) -> str:
        """Return the same with all parameters."""
        return self._worded(None)

    def _worded(self, named: frozenset[str] | None) -> str:
        params = {k: v for k, v in self.params.items() if named is None or k in named}
        point = {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in self.point.items()}
        parts = (settings(point), settings(params))
        words = " with ".join(part for part in parts if part) or "its defaults"
        words = "the constant" if CONSTANT in self.point else words
        return words if self.repeats == self.of else f"{words} ({self.repeats} of {self.of})"


@dataclass(frozen=True, slots=True)
class Pick:
    """Chosen points, one for each repeat: means on test."""

    quality: float
    cost: float
    choices: tuple[tuple[str, str], ...]  # by repeat: point and parameters as JSON
    varied: frozenset[str] = frozenset()  # parameters that differ within the run
    valid_quality: float = math.nan
    valid_cost: float = math.nan

    def __bool__(self) -> bool:
        return bool(self.choices)

    @property
    def constant(self) -> bool:
        """True if they are the best constant in every repeat."""
        return bool(self) and all(
            CONSTANT in json.loads(point or "{}") for point, _ in self.choices
        )

    @property
    def settings(self) -> tuple[Setting, ...]:
        """Return the settings of the repeats, most frequent first."""
        return tuple(
            Setting(json.loads(point or "{}"), json.loads(params or "{}"), self.varied, n, of)
            for of in [len(self.choices)]
            for (point, params), n in Counter(self.choices).most_common()
        )


NOTHING = Pick(math.nan, math.nan, ())
"""Pick of a learner that lacks a point in some repeat."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A learner's best point from ``budget`` (validation cost per row) up to the next one."""

    budget: float
    pick: Pick


UNKNOWN = Interval(math.nan, math.nan)
"""Interval of a run whose store has no values per query or row."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A learner at a budget: means over repeats on test, NaN unless all have a result."""

    learner: str = ""
    quality: float = math.nan
    interval: Interval = UNKNOWN  # 95%, of the quality
    cost: float = math.nan
    tier: int = 0  # 1 leads, 0 has no result
    ranks: tuple[int, int] = (0, 0)  # best and worst rank compatible with the data
    valid: tuple[float, float] = (math.nan, math.nan)  # quality and cost on validation
    over: bool = False  # the 95% interval of its mean test cost lies above the budget
    beyond: tuple[float, float] = (0.0, 0.0)  # share of rows over a cap, and their mean excess

    @property
    def rank(self) -> str:
        """Return its ranks as ``1-8``, or ``9`` if they are one; "" without an interval."""
        return "" if math.isnan(self.interval.low) else rank_range(self.ranks)


@dataclass(frozen=True, slots=True)
class Standings:
    """All learners of a data set at a budget, best tier first, then by quality."""

    budget: Budget | None  # None: without a limit
    rows: tuple[Standing, ...]
    note: str = ""  # why intervals are missing


@dataclass(frozen=True, slots=True)
class Saved:
    """Certainty of a saving. A draw in which no point of the learner is sure counts as 1x."""

    interval: Interval = UNKNOWN  # 95%
    wide: Interval = UNKNOWN  # 99%
    tier: int = 0  # 0 has no saving
    ranks: tuple[int, int] = (0, 0)
    lost: bool = False  # the point is certainly below ``lost_below`` on test; tier 0
    beaten_by: str = ""  # a learner with a point that is better and cheaper on validation
    quality: Interval = UNKNOWN  # 95%, of the model's test quality
    gap: Interval = UNKNOWN  # 95%, of that quality minus the reference's at its best
    # of two to four repeats: the factor on them that would separate the saving from another
    # learner's, by its name
    more: Mapping[str, float] = field(default_factory=dict)

    @property
    def significant(self) -> bool:
        """True if the interval, as displayed, is above 1."""
        return round(self.interval.low, 3) > 1


@dataclass(frozen=True, slots=True)
class Likely:
    """The point of a learner that is most likely to keep the quality, as none is sure to."""

    pick: Pick
    probability: float  # that it does, mean over repeats
    enough: float  # factor on the validation rows with which it would be sure, inf if unknown


@dataclass(frozen=True, slots=True)
class Measure:
    """A value with its 95% interval."""

    value: float = math.nan
    interval: Interval = UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Answer:
    """A learner's model that is sure to reach a target, and its saving; unknown figures are NaN."""

    learner: str
    audit: str
    cheap: Pick = NOTHING  # the cheapest that is sure to reach it, if all repeats have one
    likely: Likely | None = None  # instead of ``cheap``
    saving: float = math.nan  # the reference's cost over this learner's there
    saved: Saved = Saved()
    standing: Standing = Standing()  # within a budget
    baseline: bool = False  # a trivial method, listed below the others


@dataclass(frozen=True, slots=True, kw_only=True)
class Row(Answer):
    """A learner on the board; its answer keeps ``Board.keep`` of the reference's quality, its
    standing is that of its best point."""

    reference: bool
    repeats: int  # in which it has finished
    best: Pick  # without a limit
    reached: int  # repeats that are sure to keep ``Board.keep`` of the reference's quality
    curve: tuple[CurvePoint, ...]  # the frontier, cheapest first
    fits: int = 0  # settings tried, mean over repeats
    seconds: float = 0.0  # of training, mean over repeats
    marks: tuple[str, ...] = ()  # of the models at ``best`` and ``cheap``, and of the search
    area: Measure = Measure()  # mean quality over the board's costs
    regret: Measure = Measure()  # mean distance to the best learner at each cost
    over: tuple[Budget, ...] = ()  # budgets exceeded on test by more than chance

    @property
    def model(self) -> Pick:
        """The model that the row shows: the cheapest that is sure to keep the quality, else the
        likeliest, else the best."""
        return self.cheap or (self.likely.pick if self.likely else self.best)

    @property
    def model_interval(self) -> Interval:
        """The 95% interval of that model's test quality."""
        if self.cheap:
            return self.saved.quality
        return UNKNOWN if self.likely else self.standing.interval

    @property
    def probability(self) -> float:
        """The probability that the model keeps the quality, 1 if it is sure; NaN if unknown."""
        return 1.0 if self.cheap else self.likely.probability if self.likely else math.nan

    @property
    def sure_in(self) -> str:
        """The repeats that are sure to keep the quality, in words."""
        return f"{self.reached} of {self.repeats}"


@dataclass(frozen=True, slots=True)
class ClassRows:
    """Test rows of a class, and those of them that two models answer right: means over repeats."""

    label: str
    rows: float
    model: float  # of the model that the conclusion names
    reference: float = math.nan  # at its best, NaN if unknown


@dataclass(frozen=True, slots=True)
class Failure:
    """Trials of a learner with the same error, or refused by the audit."""

    learner: str
    status: str
    error: str
    params: str
    trials: int


@dataclass(frozen=True, slots=True)
class Board:
    """The leaderboard of one data set: rows sorted, failures apart."""

    dataset: str
    metric: str
    higher_is_better: bool
    accounting: str
    unit: str
    reference: str
    stand_in: bool
    stand_in_for: str
    marks: tuple[str, ...]  # shown next to every number
    repeats: int  # of a learner without failures
    rows: tuple[Row, ...]
    failures: tuple[Failure, ...]
    facts: tuple[str, ...]
    notes: tuple[str, ...]
    cautions: tuple[str, ...] = ()  # those notes that say why results are uncertain
    budgets: tuple[Budget, ...] = ()  # at which learners are compared
    standings: tuple[Standings, ...] = ()  # at these budgets
    unlimited: Standings = Standings(None, ())  # without a limit
    costs: tuple[float, float] | None = None  # the range of areas
    draws: int = 0  # behind the intervals
    keep: float = SHARE  # the share of the reference's quality that answers keep
    use: DatasetUse = field(default_factory=DatasetUse)  # facts of the data set
    same_as: str = ""  # the board under the run's first accounting, "" if this is it
    trees_paid: bool = False  # some evaluation of trees has a cost
    tested: int = 0  # test rows of one repeat, if each counts once in an accuracy
    checked: tuple[int, str] = (0, "rows")  # validation rows, groups or queries of one repeat
    undefined: str = ""  # where the metric is not defined, why, and the remedy
    sources: tuple[Row, ...] = ()  # of a choice: each source alone and the oracle, no learners
    extremes: tuple[float, float] | None = None  # total costs of buying everything and nothing
    constant: Pick = NOTHING  # the best constant answer, which buys nothing
    constant_class: str = ""  # its label, "" if unknown
    classes: tuple[ClassRows, ...] = ()  # of a classifier, if stored
    less: Answer | None = None  # the one at ``LESS``, if the reference is the answer

    def marks_of(self, row: Row) -> tuple[str, ...]:
        """Return the marks of the board that hold for the row, and those of the row."""
        budgets = [min(str(one), cost(one.amount), key=len) for one in row.over]
        exceeded = f" ({', '.join(budgets)})" if len(budgets) <= NAMED else ""
        marks = {
            "reference": row.reference,
            "baseline": row.baseline,
            # some learners, such as gbrt, do not read prices in training
            **{mark: mark != SURROGATE for mark in self.marks},
            f"{row.repeats} of {self.repeats} repeats": row.repeats < self.repeats,
            f"sure in {row.sure_in}": 0 < row.reached < row.repeats,
            f"below {percent(lost_below(self.keep))}": row.saved.lost,
            ONE_ANSWER: row.model.constant and not row.baseline,
            OVER + exceeded: bool(row.over),
        }
        return (*(mark for mark, there in marks.items() if there), *row.marks)

    @property
    def at(self) -> tuple[Standings, ...]:
        """Standings at its budgets; the last one has no limit."""
        return (*self.standings, self.unlimited)

    def lines(self) -> Iterator[tuple[Row, tuple[Standing, ...]]]:
        """Yield each learner with its standing at each budget."""
        standings = [{row.learner: row for row in at.rows} for at in self.at]
        for row in self.rows:
            if row.learner in standings[-1]:
                yield row, tuple(at[row.learner] for at in standings)

    @property
    def reference_row(self) -> Row | None:
        """The reference's row."""
        return next((row for row in self.rows if row.reference), None)

    @property
    def answer(self) -> Row | None:
        """The row of the learner to take: the first whose model is sure to keep the quality, costs
        less than the reference's, and is not dominated on validation; otherwise the reference. None
        if no saving is measured, or if the metric is not defined. Of total costs, the least on
        validation."""
        if self.totals and not self.undefined:
            done = (row for row in self.rows if row.best)
            return min(done, key=lambda r: (r.best.valid_quality, r.best.valid_cost, r.learner),
                       default=None)  # fmt: skip
        reference = self.reference_row
        if reference is None or not reference.cheap or self.undefined:
            return None
        return next((row for row in self.rows if saves(row, reference)), reference)

    @property
    def likely(self) -> list[Row]:
        """The learners to name if no model is sure to keep the quality for less: those whose model
        costs less than the reference's, is more likely to keep it than not, and is not beaten or
        equalled on validation in both quality and cost by another row's model or the constant.
        First the cheapest of those within ``ABOUT_AS_LIKELY`` of the best probability."""
        places = {id(row): k for k, row in enumerate(self.rows)}

        def beaten(row: Row) -> bool:
            """True if another row's model is at least as good and cheap; the last of equals is."""
            return self._beats(self.constant, row.model) or any(
                self._beats(other.model, row.model)
                and (places[id(other)] < places[id(row)] or not self._beats(row.model, other.model))
                for other in self.rows
                if other is not row and not other.saved.lost
            )

        kept = [row for row in self._perhaps if not (row.model.constant or beaten(row))]
        least = max((row.probability for row in kept), default=0.0) - ABOUT_AS_LIKELY

        def place(row: Row) -> tuple[float, ...]:
            near = row.probability >= least
            return (0, row.model.valid_cost) if near else (1, -row.probability)

        return sorted(kept, key=place)

    @property
    def _perhaps(self) -> list[Row]:
        """The rows whose model may keep the quality for less, constants included."""
        reference = self.reference_row
        if reference is None or not reference.cheap:
            return []
        paid = float(cost(reference.cheap.cost))  # as displayed
        return [
            row
            for row in self.rows
            if row.likely and row.probability > 0.5 and float(cost(row.model.cost)) < paid / WORTH
        ]

    @property
    def constant_holds(self) -> bool:
        """True if a constant, which costs nothing, is about as likely to keep the quality as any
        model of a learner, and none is sure to for less."""
        chance = max((r.probability for r in self._perhaps if r.model.constant), default=0.0)
        others = max((row.probability for row in self.likely), default=0.0)
        return chance > 0 and chance >= others - ABOUT_AS_LIKELY

    def _beats(self, model: Pick, other: Pick) -> bool:
        """True if a model is on validation at least as good and as cheap as another one."""
        better = model.valid_quality - other.valid_quality
        better = better if self.higher_is_better else -better
        return better >= 0 and model.valid_cost <= other.valid_cost

    @property
    def named(self) -> Row | None:
        """The row whose model the conclusion names next to the reference, if any."""
        answer, reference = self.answer, self.reference_row
        if answer is not reference or self.totals:
            return answer
        return None if self.constant_holds else next(iter(self.likely), None)

    @property
    def nothing_pays(self) -> bool:
        """True if the least total cost is that of the best constant in every repeat."""
        return self.totals and self.answer is not None and self.answer.best.constant

    @property
    def totals(self) -> bool:
        """True if the metric is in money."""
        return self.extremes is not None

    @property
    def counted(self) -> bool:
        """True if costs are numbers of features, as all prices are 1."""
        return self.use.counted and not self.trees_paid

    def wrong(self, accuracy: float) -> float:
        """Return the number of test rows with a wrong class, where ``tested``; over repeats a mean
        with one decimal."""
        return round((1 - accuracy) * self.tested, int(self.repeats > 1))

    def kept(self, row: Row) -> float:
        """Return the test quality of the point that saves, as a share of the reference's best.
        For errors the ratio is inverted, so that 99% is also slightly worse. NaN if undefined."""
        best = self.reference_row.best.quality if self.reference_row else math.nan
        if not (row.cheap and best > 0 and row.cheap.quality > 0):
            return math.nan
        share = row.cheap.quality / best
        return share if self.higher_is_better else 1 / share

    @property
    def saves(self) -> bool:
        """True if some learner has a saving."""
        return any(row.cheap for row in self.rows)

    def remarks(self) -> Iterator[str]:
        """Yield one-line notes on stand-ins, intervals, failures and the data."""
        if words := notice(self):
            yield words
        yield from dict.fromkeys(at.note for at in self.at if at.note)
        for lost in self.failures:
            what = "left out" if lost.status == "skipped" else lost.status
            about = f"{count(lost.trials, 'trial')}; {lost.params}"
            yield one_line(f"{lost.learner}: {what} ({about}): {lost.error}")
        yield from map(one_line, self.notes)


def saves(model: Answer, reference: Answer) -> bool:
    """True if a learner's sure model costs less than the reference's, and is not beaten on
    validation or refuted on test."""
    return (
        model is not reference
        and bool(model.cheap)
        and not (model.saved.lost or model.saved.beaten_by)
        and model.saving > 1
        and cost(model.cheap.cost) != cost(reference.cheap.cost)  # as displayed
    )


def beaten(models: Iterable[Answer], what: str, where: str = "validation") -> str:
    """Return that others beat the models that are sure to do ``what`` and cost less than the
    reference's, in words; "" if there are none."""
    by = {
        model.learner: model.saved.beaten_by
        for model in models
        if model.cheap and model.saving > 1 and model.saved.beaten_by and not model.saved.lost
    }
    are, it = ("is", "it") if len(by) == 1 else ("are", "them")
    others = [*dict.fromkeys(by.values())]
    beat = f"{listed(others)} {'beats' if len(others) == 1 else 'beat'} {it} on {where}"
    return f"{listed([*by])} {are} sure to {what}, but {beat}" if by else ""


def notice(board: Board) -> str:
    """Return the notice of a stand-in, or ""."""
    return stand_in_notice(board.dataset, board.stand_in_for) if board.stand_in else ""
