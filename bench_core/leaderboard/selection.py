"""The answer at a limit: one operating point of one learner's model in each repeat, and why.

``bench best``, ``features``, ``compare``, ``model export``, Python and the page take it from here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from bench_core.errors import UsageError, option
from bench_core.leaderboard.assembly import DatasetRun, Picks, audit_mark, likely
from bench_core.leaderboard.board import NOTHING, SHARE, Likely, Pick, Saved, Standing, saves
from bench_core.leaderboard.certainty import kept, missing, saving_order, savings, standings
from bench_core.leaderboard.draws import NO_LIMIT, Chosen
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
    def cheap(self) -> Pick:
        """The model if it is sure to reach the target in every repeat."""
        return self.pick if self.sure else NOTHING

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


class Choice(DatasetRun):
    """The answers of one data set of a run at any limits, by its primary or another metric."""

    def __init__(
        self,
        info: RunInfo,
        store: Store | None,
        frame: pd.DataFrame,
        dataset: str,
        metric: str = "",
    ) -> None:
        super().__init__(info, store, frame[frame["dataset"] == dataset], dataset, metric)

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
        """Return the answers at a limit: within a budget the best on validation first, at a quality
        the cheapest, at a share to keep in the order of a board, with the answer first. Learners
        that lack a point in some repeat come last; those whose point is not sure to reach a target,
        after those whose point is."""
        picks = self.picks_within(limit) if limit.kind == CAP else self.picks
        chosen, _ = picks.draws.chosen([limit, NO_LIMIT] if limit.kind == KEEP else [limit])
        found, reason = self._selections(picks, limit, chosen), ""
        reference = next((one for one in found if one.learner == picks.draws.reference), None)

        def place(one: Selection) -> tuple[object, ...]:
            lacks, sign = one.repeats < one.of, -picks.draws.sign
            if isinstance(limit, Budget):
                order: tuple[object, ...] = sign * one.pick.valid_quality, one.pick.valid_cost
            elif limit.kind == KEEP:
                order = saving_order(one.saved, one.saving, one.pick.cost)
                order = not one.sure, one.baseline, *order
            else:
                order = not one.sure, one.pick.valid_cost
            return lacks, *order, one.learner

        found.sort(key=place)
        if limit.kind == KEEP and isinstance(limit, Target) and reference and reference.sure:
            answer = next((one for one in found if saves(one, reference)), reference)
            found.sort(key=lambda one: one is not answer)  # the reference unless some model saves
            if answer is reference and len(found) > 1:
                words = limit.words(self.metric.name, reference.learner)
                reason = f"no learner is sure to keep {words} for less than {reference.learner}"
        return Answers(limit, found, reason, missing(picks.draws))

    def _selections(
        self, picks: Picks, limit: Limit, chosen: Mapping[Limit, Chosen]
    ) -> list[Selection]:
        """Return the learners that have a point at a limit in some repeat."""
        draws, points = picks.draws, chosen[limit]
        saved, standing_of = [(math.nan, UNSAVED)] * len(draws.names), {}
        if isinstance(limit, Budget):
            within = None if math.isinf(limit.amount) else limit
            rows_at = standings(draws, within, points).rows
            standing_of = {standing.learner: standing for standing in rows_at}
        elif limit.kind == KEEP:
            saved = savings(draws, points, chosen[NO_LIMIT], limit.amount)
        selections = []
        for k, name in enumerate(draws.names):
            rows = points.row[:, k]
            rows = rows[rows >= 0]
            if len(rows):
                selections.append(
                    Selection(
                        dataset=self.dataset,
                        learner=name,
                        limit=limit,
                        metric=self.metric,
                        pick=picks.pick(points, k) or picks.at(rows, name),
                        points=draws.points.iloc[rows],
                        audit=audit_mark(picks.trials[name]),
                        of=len(draws.repeats),
                        sure=kept(draws, points, k),
                        likely=likely(picks, points, k) if isinstance(limit, Target) else None,
                        saving=saved[k][0],
                        saved=saved[k][1],
                        standing=standing_of.get(name, UNRANKED),
                        reference=self.info.reference,
                        baseline=name in self.info.baselines,
                    )
                )
        return selections

    @property
    def best(self) -> Selection | None:
        """The reference at its best; without a reference, the best learner on validation."""
        found = self.at(NO_LIMIT).found
        best = (one for one in found if one.learner == self.draws.reference)
        return next(best, found[0] if found else None)

    def why_not(self, target: Limit, learner: str = "") -> str:
        """Return why a learner ("": any) has no point within a budget, or none that is sure to
        reach a target, and the remedy."""
        draws, name, who = self.draws, self.info.reference, learner or "any learner"
        if isinstance(target, Budget):
            words = limit_words(target, draws.metric, name)
            return f"no result of {who} {words}; 'bench log --failed' shows why"
        words = target.words(draws.metric, name)
        if target.kind == KEEP and not draws.reference:
            named = option("reference", like="NAME")
            remedy = f"choose by a budget or a quality, or run it with {named}"
            return f"the run has no reference with a result: {remedy}"
        if target.kind == KEEP and not any(one.sure for one in self.at(target).found):
            return f"the best constant already reaches {words} on validation, at no cost"
        best = draws.chosen([NO_LIMIT])[0][NO_LIMIT].row
        rows = best[:, [k for k, own in enumerate(draws.names) if learner in ("", own)]]
        qualities = draws.valid(rows[rows >= 0])[1]
        most = draws.sign * max(draws.sign * qualities, default=math.nan)
        where = "on validation in every repeat" if len(draws.repeats) > 1 else "on validation"
        return f"no point of {who} is sure to reach {words} {where} ({most:.4g} is the best)"
