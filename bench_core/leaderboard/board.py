"""The content of a leaderboard, for any format: one ``Board`` per data set.

Everything is chosen on validation, by each repeat (a seed on a fold) for itself, and shown on
test as the mean over repeats; see ``bench_core.results.operating_points``.
"""

import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from bench_core.results.budgets import Budget
from bench_core.statistics.comparison import Interval
from bench_core.terminal.wording import settings, stand_in_notice

SHARE = 0.99
"""The part of the reference's best validation quality at which savings are measured."""

LOST = 1 - 2 * (1 - SHARE)
"""A saving whose test quality is certainly below this part of the reference's was found by luck on
validation: it loses more than twice as much as was asked for. What is between may have been unlucky
on test, and stands as it is."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The ``point`` on its path and the parameters at which a learner was chosen by ``repeats``
    of ``of`` repeats. ``varied`` names the parameters that differ within the run."""

    point: Mapping[str, object]
    params: Mapping[str, object]
    varied: frozenset[str]
    repeats: int
    of: int

    @property
    def short(self) -> str:
        """``trees=23 with tradeoff=0.1``: what differs from the learner's other settings."""
        return self._worded({k: v for k, v in self.params.items() if k in self.varied})

    @property
    def full(self) -> str:
        """The same with all parameters."""
        return self._worded(self.params)

    def _worded(self, params: Mapping[str, object]) -> str:
        parts = (settings(self.point), settings(params))
        words = " with ".join(part for part in parts if part) or "its defaults"
        return words if self.repeats == self.of else f"{words} ({self.repeats} of {self.of})"


@dataclass(frozen=True, slots=True)
class Pick:
    """Chosen points: mean ``quality`` and ``cost`` on test, the sample standard deviation of
    quality over repeats (NaN for one), and the ``choices`` of the repeats: point and parameters as
    JSON, of which ``varied`` differ within the run."""

    quality: float
    spread: float
    cost: float
    choices: tuple[tuple[str, str], ...]
    varied: frozenset[str] = frozenset()

    @property
    def settings(self) -> tuple[Setting, ...]:
        """The settings of the repeats, the most frequent first."""
        return tuple(
            Setting(
                json.loads(point or "{}"),
                json.loads(params or "{}"),
                self.varied,
                n,
                len(self.choices),
            )
            for (point, params), n in Counter(self.choices).most_common()
        )


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The best a learner can do for ``budget`` (in validation cost per row)."""

    budget: float
    pick: Pick


UNKNOWN = Interval(math.nan, math.nan)
"""Of a run whose store has no values per query or row."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A learner at a budget.

    ``quality`` is on test, the mean over repeats, with its 95% ``interval``, and NaN unless every
    repeat can afford something; ``cost`` is the mean test cost. Tier 1 leads, tier 0 can afford
    nothing. ``ranks`` are the best and the worst rank that the data leave it.
    """

    learner: str
    quality: float
    interval: Interval
    cost: float
    tier: int
    ranks: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Standings:
    """All learners of a data set at a budget (None: without a limit), the best tier first, then by
    quality; ``note`` says why intervals are missing."""

    budget: Budget | None
    rows: tuple[Standing, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class Saved:
    """Certainty of a row's saving: its 95% ``interval``, its 99% one (``wide``), and tie tier and
    ranks among those that keep the quality. A draw in which the learner does not reach the quality
    counts as no saving, 1x. ``lost``: the point is certainly below ``LOST`` on test; tier 0."""

    interval: Interval
    wide: Interval
    tier: int
    ranks: tuple[int, int]
    lost: bool


@dataclass(frozen=True, slots=True)
class Measure:
    """A value with its 95% interval."""

    value: float
    interval: Interval


@dataclass(frozen=True, slots=True)
class Row:
    """A learner on the board; ``baseline``: a trivial method, listed below the others.

    ``best`` is without a limit; ``cheap`` the cheapest that keeps ``SHARE`` of the reference's
    quality, None unless all of ``repeats`` reach it (``reached`` do); ``saving`` is what the
    reference pays for just that quality over what the learner pays for it, both as mixtures of two
    points. ``curve`` is the frontier, cheapest first. ``fits``
    settings were tried in ``seconds`` of training, ``alike`` of which gave the path of another one,
    means over repeats; ``marks`` are those of the models at ``best`` and ``cheap``, and of the
    search. ``within`` is what it reaches at each of the board's budgets, None unless all repeats
    can afford something. How sure all this is, ``certified`` adds: ``standing`` of the best point,
    ``saved``, and over the board's costs ``area``, the mean quality, and ``regret``, what it lacks
    to the best learner at each cost, and ``gap``, what it lacks to the known optimum.
    """

    learner: str
    reference: bool
    audit: str
    repeats: int
    best: Pick
    reached: int
    cheap: Pick | None
    saving: float
    curve: tuple[CurvePoint, ...]
    baseline: bool = False
    fits: int = 0
    alike: int = 0
    seconds: float = 0.0
    marks: tuple[str, ...] = ()
    within: tuple[Pick | None, ...] = ()
    standing: Standing | None = None
    saved: Saved | None = None
    area: Measure | None = None
    regret: Measure | None = None
    gap: Measure | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """Trials of a learner that ended alike without a result, or that the audit refused."""

    learner: str
    status: str
    error: str
    params: str
    trials: int


@dataclass(frozen=True, slots=True)
class Board:
    """The leaderboard of one data set: rows sorted, failures apart. ``marks`` stand next to every
    number; ``repeats`` is what a learner without failures has; ``budgets`` are those that learners
    are compared at. ``certified`` adds the ``standings`` at these budgets, ``unlimited`` those
    without a limit, ``costs``, the range that areas are taken over, and how many ``draws``
    intervals are of. ``optimum`` are the corners of the best that can be expected, where that is
    known (``CompleteDataset.optimum``). ``same_as`` names the board of the same data under the
    run's first accounting, "" on that board itself."""

    dataset: str
    metric: str
    higher_is_better: bool
    accounting: str
    unit: str
    reference: str
    stand_in: bool
    stand_in_for: str
    marks: tuple[str, ...]
    repeats: int
    rows: tuple[Row, ...]
    failures: tuple[Failure, ...]
    facts: tuple[str, ...]
    notes: tuple[str, ...]
    budgets: tuple[Budget, ...] = ()
    standings: tuple[Standings, ...] = ()
    unlimited: Standings | None = None
    costs: tuple[float, float] | None = None
    draws: int = 0
    optimum: tuple[tuple[float, float], ...] = ()
    same_as: str = ""

    def marks_of(self, row: Row) -> tuple[str, ...]:
        """The board's marks and those of the row."""
        own = {
            "reference": row.reference,
            "baseline": row.baseline,
            **dict.fromkeys(self.marks, True),
            f"{row.repeats} of {self.repeats} repeats": row.repeats < self.repeats,
            f"{SHARE:.0%} in {row.reached} of {row.repeats}": 0 < row.reached < row.repeats,
            f"below {LOST:.0%}": row.saved is not None and row.saved.lost,
        }
        return (*(mark for mark, there in own.items() if there), *row.marks)


def notice(board: Board) -> str:
    """The sentence that goes with a stand-in, or nothing."""
    return stand_in_notice(board.dataset, board.stand_in_for) if board.stand_in else ""


def notes_of(board: Board) -> tuple[str, ...]:
    """The data set's notes, without those that repeat the notice of a stand-in."""
    return tuple(n for n in board.notes if not (board.stand_in and "stand-in" in n.lower()))
