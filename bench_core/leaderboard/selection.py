"""The answer at a limit: one operating point of one learner's model in each repeat, and why.

``bench best``, ``features``, ``compare``, ``model export``, Python and the page take it from here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bench_core.errors import UsageError, option
from bench_core.leaderboard.assembly import (
    Picks,
    audit_mark,
    draws_of,
    likely,
    primary_metric,
    trials_of,
)
from bench_core.leaderboard.board import SHARE, Likely, Pick, Saved, Standing, saves_at
from bench_core.leaderboard.certainty import (
    kept,
    lost_below,
    ratios,
    saving_order,
    savings,
    standings,
)
from bench_core.leaderboard.draws import NO_LIMIT, Chosen, Draws
from bench_core.protocols import GIVEN
from bench_core.results import operating_points as table
from bench_core.results.budgets import CAP, KEEP, Budget, Limit, Target, limit_words

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.operating_points import Criterion
    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store


UNSAVED, UNRANKED = Saved(), Standing()


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """A learner's model at a limit, with its test figures and the validation figures that chose
    it; ``points`` has a row of ``operating_points`` for each repeat that has a point."""

    dataset: str
    learner: str
    limit: Limit
    metric: Criterion
    pick: Pick
    points: pd.DataFrame
    audit: str
    of: int  # repeats of the run
    sure: bool = True  # in every repeat; False at a likeliest point
    likely: Likely | None = None
    saving: float = math.nan  # at a share to keep: the reference's cost over this learner's
    saved: Saved = UNSAVED
    standing: Standing = UNRANKED  # within a budget
    reference: str = ""
    baseline: bool = False

    @property
    def repeats(self) -> int:
        """Number of repeats with a point."""
        return len(self.points)

    @property
    def words(self) -> str:
        """The limit in words: ``at 99% of gbrt's accuracy``, ``within 10 on average``."""
        return limit_words(self.limit, self.metric.name, self.reference)

    def of_repeat(self, seed: int | None = None, fold: int | None = None) -> pd.Series[Any]:
        """Return the row of the first repeat, or of the first with this seed and fold."""
        rows = self.points.sort_values(["fold", "seed"], kind="stable")
        for column, wanted in (("seed", seed), ("fold", fold)):
            if wanted is not None:
                rows = rows[rows[column] == wanted]
        if rows.empty:
            raise UsageError(f"{self.dataset}: no point of {self.learner} in that repeat")
        return rows.iloc[0]


class Answers(NamedTuple):
    """The learners at a limit, the answer first; ``reason`` for another limit than asked for or for
    an answer that is not cheaper, and ``note`` on missing intervals."""

    limit: Limit
    found: Sequence[Selection]
    reason: str = ""
    note: str = ""

    def of(self, learner: str | None = "") -> Selection | None:
        """Return the answer, or that of a learner; at a target only a sure one."""
        budget = isinstance(self.limit, Budget)
        named = (one for one in self.found if learner in ("", None, one.learner))
        return next((one for one in named if one.sure or budget), None)


class Choice:
    """The answers of one data set of a run at any limits, by its primary or another metric."""

    def __init__(
        self,
        info: RunInfo,
        store: Store | None,
        frame: pd.DataFrame,
        dataset: str,
        metric: str = "",
    ) -> None:
        self.info, self.store, self.dataset = info, store, dataset
        self.frame = frame[frame["dataset"] == dataset]
        self.metric = primary_metric(info, dataset, metric)
        self.draws = draws_of(info, store, self.frame, dataset, self.metric)
        self._trials = trials_of(self.frame)

    def usual(self, learner: str = "") -> Answers:
        """Return the answers at the least cost that keeps ``SHARE`` of the reference's quality; at
        any cost, with the reason, if none is measured or the ``learner`` has no such point."""
        kept = self.at(Target(SHARE))
        if any(one.sure and learner in ("", one.learner) for one in kept.found):
            return kept
        why = self.why_not(Target(SHARE), learner)
        free = self.at(NO_LIMIT)
        return free._replace(reason=f"{why}; shown is the best at any cost")

    def at(self, limit: Limit) -> Answers:
        """Return the answers at a limit. Learners that lack a point in some repeat come last; those
        whose point is not sure to reach a target, after those whose point is."""
        draws, cap = self.draws, limit.kind == CAP
        if cap and isinstance(limit, Budget):
            draws = draws_of(
                self.info, self.store, self.frame, self.dataset, self.metric, cap=limit
            )
        limits = [limit, NO_LIMIT] if limit.kind == KEEP else [limit]
        chosen, _ = draws.chosen(limits)
        found = self._selections(draws, limit, chosen[limit])
        note = "" if draws.places else draws.note
        if isinstance(limit, Budget):
            return Answers(limit, self._within(draws, limit, chosen[limit], found), note=note)
        if limit.kind != KEEP or not draws.reference:
            found = [one for one in found if limit.kind != KEEP]
            return Answers(limit, sorted(found, key=_by_cost), note=note)
        return self._kept(draws, limit, chosen, found, note)

    def _selections(self, draws: Draws, limit: Limit, chosen: Chosen) -> list[Selection]:
        picks = Picks(draws, self._trials)
        found = []
        for k, name in enumerate(draws.names):
            rows = chosen.row[:, k]
            rows = rows[rows >= 0]
            if len(rows):
                whole = picks.pick(chosen, k)
                found.append(
                    Selection(
                        dataset=self.dataset,
                        learner=name,
                        limit=limit,
                        metric=self.metric,
                        pick=whole if whole else picks.at(rows, name),
                        points=draws.points.iloc[rows],
                        audit=audit_mark(picks.trials[name]),
                        of=len(draws.repeats),
                        sure=kept(draws, chosen, k),
                        likely=likely(picks, chosen, k) if isinstance(limit, Target) else None,
                        reference=self.info.reference,
                        baseline=name in self.info.baselines,
                    )
                )
        return found

    def _within(
        self, draws: Draws, limit: Budget, chosen: Chosen, found: Sequence[Selection]
    ) -> list[Selection]:
        """Return learners within a budget, best on validation first."""
        within = None if math.isinf(limit.amount) else limit
        of = {one.learner: one for one in standings(draws, within, chosen).rows}
        sign = -1 if draws.higher else 1
        return sorted(
            (replace(one, standing=of[one.learner]) for one in found),
            key=lambda one: (
                one.repeats < one.of,
                sign * one.pick.valid_quality,
                one.pick.valid_cost,
                one.learner,
            ),
        )

    def _kept(
        self,
        draws: Draws,
        limit: Target,
        chosen: dict[Limit, Chosen],
        found: Sequence[Selection],
        note: str,
    ) -> Answers:
        """Return learners that keep a share, in the order of a board: the answer first, which is
        the reference where no learner is sure to save."""
        of = {name: k for k, name in enumerate(draws.names)}
        reference = draws.points[draws.points["learner"] == draws.reference]
        given = bool(table.marked(reference, GIVEN).any())
        best = chosen[NO_LIMIT]
        ratio = ratios(draws, chosen[limit], best, given)
        sure = savings(draws, chosen[limit], best, ratio, lost_below(limit.amount))
        saving = draws.mean(ratio)
        found = [
            replace(
                one,
                saving=float(saving[of[one.learner]]) if one.sure else math.nan,
                saved=sure.get(one.learner, Saved()),
            )
            for one in found
        ]
        own = next((one for one in found if one.learner == draws.reference), None)
        least = 1.0 if own is None or math.isnan(own.saving) else own.saving

        def place(one: Selection) -> tuple[object, ...]:
            order = saving_order(one.saved, one.saving, one.pick.cost, least)
            return one.repeats < one.of, not one.sure, one.baseline, *order, one.learner

        found, why = sorted(found, key=place), ""
        if own is not None and own.sure:
            answer = next((one for one in found if _saves(one, own)), own)
            found.sort(key=lambda one: one is not answer)
            if answer is own and len(found) > 1:
                words = limit.words(self.metric.name, own.learner)
                why = f"no learner is sure to keep {words} for less than {own.learner}"
        return Answers(limit, found, why, note)

    @property
    def best(self) -> Selection | None:
        """The reference at its best; without a reference, the best learner on validation."""
        found = self.at(NO_LIMIT).found
        best = (one for one in found if one.learner == self.draws.reference)
        return next(best, found[0] if found else None)

    def why_not(self, target: Limit, learner: str = "") -> str:
        """Return why a learner ("": any) has no point within a budget, or none that is sure to
        reach a target, and the remedy."""
        draws, name = self.draws, self.info.reference
        if isinstance(target, Budget):
            words = limit_words(target, draws.metric, name)
            who = learner or "any learner"
            return f"no result of {who} {words}; 'bench log --failed' shows why"
        words = target.words(draws.metric, name)
        if target.kind == KEEP and not draws.reference:
            named = option("reference", like="NAME")
            remedy = f"choose by a budget or a quality, or run it with {named}"
            return f"the run has no reference with a result: {remedy}"
        if target.kind == KEEP and not any(one.sure for one in self.at(target).found):
            return f"the best constant already reaches {words} on validation, at no cost"
        best = draws.chosen([NO_LIMIT])[0][NO_LIMIT].row
        rows = [best[:, k] for k, own in enumerate(draws.names) if learner in ("", own)]
        qualities = draws.valid(np.concatenate([own[own >= 0] for own in rows]))[1]
        several, who = len(draws.repeats) > 1, learner or "any learner"
        sign = 1 if draws.higher else -1
        most = sign * max(sign * qualities, default=math.nan)
        where = "on validation in every repeat" if several else "on validation"
        return f"no point of {who} is sure to reach {words} {where} ({most:.4g} is the best)"


def _by_cost(one: Selection) -> tuple[object, ...]:
    return one.repeats < one.of, not one.sure, one.pick.valid_cost, one.learner


def _saves(one: Selection, own: Selection) -> bool:
    """True if a selection costs less than the reference's."""
    less = saves_at(one.saved, one.saving, one.pick, own.saving, own.pick)
    return one is not own and one.sure and less
