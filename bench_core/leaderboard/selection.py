"""The answer at a limit: one operating point of one learner's model in each repeat, and why.

``bench best``, ``features``, ``compare``, ``model export``, Python and the page take it from here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from bench_core.errors import UsageError, option, shortened
from bench_core.leaderboard.board import (
    NOTHING,
    Answer,
    Pick,
    Saved,
    Setting,
    Standing,
    beaten,
    saves,
)
from bench_core.leaderboard.certainty import kept, missing, saving_order, savings, standings
from bench_core.leaderboard.draws import NO_LIMIT, Chosen, Draws
from bench_core.leaderboard.picks import audit_mark, likely, pick, pick_at, trials_of
from bench_core.leaderboard.rare_class import class_rows, rare_class
from bench_core.metrics import parse_metric
from bench_core.results.budgets import KEEP, Budget, Limit, Target, limit_words

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.operating_points import Criterion
    from bench_core.statistics.comparison import Interval


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Selection(Answer):
    """A learner's model at a limit, with its test figures and the validation figures that chose
    it; ``points`` has a row of ``operating_points`` for each repeat that has a point."""

    dataset: str
    limit: Limit
    metric: Criterion
    pick: Pick
    points: pd.DataFrame
    of: int  # repeats of the run
    reached: int = 0  # repeats in which the point is sure to reach a target
    reference: str = ""

    @property
    def sure(self) -> bool:
        """True if ``pick`` is sure to reach the target in every repeat, not just likeliest."""
        return bool(self.cheap)

    @property
    def sure_in(self) -> str:
        """The repeats in which ``pick`` is sure to reach the target, in words."""
        return f"{self.reached} of {self.of}"

    @property
    def quality(self) -> float:
        """Quality on test, mean over repeats."""
        return self.pick.quality

    @property
    def cost(self) -> float:
        """Cost per row on test, mean over repeats."""
        return self.pick.cost

    @property
    def valid_quality(self) -> float:
        """Quality on validation, mean over repeats."""
        return self.pick.valid_quality

    @property
    def setting(self) -> Setting:
        """Parameters and operating point chosen by most repeats."""
        return self.pick.settings[0]

    @property
    def interval(self) -> Interval:
        """The 95% interval of the quality."""
        return self.standing.interval if isinstance(self.limit, Budget) else self.saved.quality

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
            others = shortened(
                f"seed {seed} of fold {fold}"
                for seed, fold in zip(self.points["seed"], self.points["fold"], strict=True)
            )
            raise UsageError(f"{self.dataset}: {self.learner} has no such repeat; known: {others}")
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


class Choice(Draws):
    """The answers of one data set of a run at any limits, by its primary or another metric."""

    def usual(self, learner: str = "") -> Answers:
        """Return the answers at the least cost that keeps the run's share of the reference's
        quality; at any cost, with the reason, if none is measured or the ``learner`` has no such
        point. Of total costs, the least is the answer."""
        if self.metric.in_money:
            return self.at(NO_LIMIT)
        share = Target(self.info.keep)
        kept = self.at(share)
        if any(one.sure and learner in ("", one.learner) for one in kept.found):
            return kept
        why = self.why_not(share, learner)
        free = self.at(NO_LIMIT)
        if not free.found:
            return free
        return free._replace(reason=f"{why}; shown is the best at any cost")

    def at(self, limit: Limit) -> Answers:
        """Return the answers at a limit: within a budget the best on validation first, at a quality
        the cheapest, at a share to keep in the order of a board, with the answer first. Learners
        that lack a point in some repeat come last; those whose point is not sure to reach a target,
        after those whose point is."""
        draws = self.under(limit)
        chosen, _ = draws.chosen([limit, NO_LIMIT] if limit.kind == KEEP else [limit])
        selections, reason = _selections(draws, limit, chosen), ""
        reference = next((s for s in selections if s.learner == draws.reference), None)

        def place(model: Selection) -> tuple[object, ...]:
            lacks, quality = model.repeats < model.of, -self.sign * model.pick.valid_quality
            if isinstance(limit, Budget):
                order: tuple[object, ...] = quality, model.pick.valid_cost
            elif limit.kind == KEEP:
                order = saving_order(model.saved, model.saving, model.pick.cost)
                order = not model.sure, model.baseline, *order
            else:
                order = not model.sure, model.pick.valid_cost
            return lacks, *order, model.learner

        selections.sort(key=place)
        if limit.kind == KEEP and isinstance(limit, Target) and reference and reference.sure:
            answer = next((s for s in selections if saves(s, reference)), reference)
            selections.sort(key=lambda s: s is not answer)  # the reference unless some model saves
            if answer is reference and len(selections) > 1:
                reason = self._unsaved(limit.words(self.metric.name, reference.learner), selections)
        if selections and draws.undefined:  # without any, ``why_not`` tells it
            reason = draws.undefined
        return Answers(limit, selections, reason, missing(draws))

    def _unsaved(self, words: str, selections: Sequence[Selection]) -> str:
        """Return why no learner is the answer at a share to keep, in words."""
        other = f"no learner is sure to keep {words} for less than {self.reference}"
        return beaten(selections, f"keep {words}") or other

    def answer(self, limit: Limit | None, learner: str = "") -> tuple[Answers, Selection]:
        """Return the answers at a limit (None: ``usual``), and the first, or the learner's. Raises
        UsageError with the reason if there is none."""
        answers = self.usual(learner) if limit is None else self.at(limit)
        if (answer := answers.of(learner)) is None:
            raise UsageError(f"{self.dataset}: {self.why_not(answers.limit, learner)}")
        return answers, answer

    @property
    def best(self) -> Selection | None:
        """The reference at its best; without a reference, the best learner on validation."""
        found = self.at(NO_LIMIT).found
        best = (one for one in found if one.learner == self.reference)
        return next(best, found[0] if found else None)

    def rare_class(self, answer: Selection) -> str:
        """Return the sentence on a rare class of which an answer finds few test rows, or another
        number than the reference at its best; "" if there is none, or if they are not stored."""
        best = self.points.iloc[[*self._best.values()]]
        classes = class_rows(self.store, self.info, answer.points, best)
        return rare_class(classes, answer.learner, self.reference, answer.repeats)

    def why_not(self, target: Limit, learner: str = "") -> str:
        """Return why a learner ("": any) has no point within a budget, or none that is sure to
        reach a target, and the remedy."""
        if self.unchosen:
            return self.unchosen
        name, who = self.reference, learner or "any learner"
        if isinstance(target, Budget):
            words = limit_words(target, self.metric.name, name)
            trials = self.frame[self.frame["learner"] == learner] if learner else self.frame
            lacking = trials[trials["status"] != "ok"]
            skipped, why = lacking["status"] == "skipped", ""
            if not lacking.empty:
                only = f": {lacking['error'].iloc[0]}"
                why = only if skipped.all() else "; 'bench log --failed' shows why"
            return f"no result of {who} {words}{why}"
        words = target.words(self.metric.name, name)
        if target.kind == KEEP and self.metric.in_money:
            return f"a total cost has no share to keep; choose by {option('budget')}"
        if target.kind == KEEP and not self.reference:
            named = option("reference", like="NAME")
            remedy = f"choose by a budget or a quality, or run it with {named}"
            return f"the run has no reference with a result: {remedy}"
        if target.kind == KEEP and not any(one.sure for one in self.at(target).found):
            return f"the best constant already reaches {words} on validation, at no cost"
        with suppress(UsageError):  # a run does not store the bounds of plugins' metrics
            most = (getattr(parse_metric(self.metric.name), "bounds", None) or (0, math.inf))[1]
            if target.kind != KEEP and target.amount > most:
                meant = f"; did you mean {target.amount / 100:g}?"
                hint = meant if most == 1 and target.amount <= 100 else ""
                return f"{words} is out of reach: it is at most {most:g}{hint}"
        best = self.chosen([NO_LIMIT])[0][NO_LIMIT].row
        places = [k for k, name in enumerate(self.names) if learner in ("", name)]
        reached = [self.valid(rows[rows >= 0])[1] for rows in best[:, places]]
        most = [max(self.sign * of) for of in reached if len(of)]
        least = self.sign * min(most, default=math.nan)  # a point is needed in each repeat
        several = len(self.repeats) > 1
        where = "on validation in every repeat" if several else "on validation"
        has = f"{least:.4g} is the best{' of its weakest repeat' * several}"
        return f"no point of {who} is sure to reach {words} {where} ({has})"


def _selections(draws: Draws, limit: Limit, chosen: Mapping[Limit, Chosen]) -> list[Selection]:
    """Return the learners that have a point at a limit in some repeat."""
    points, standing_of, selections = chosen[limit], {}, []
    saved = [(math.nan, Saved())] * len(draws.names)
    if isinstance(limit, Budget):
        within = None if math.isinf(limit.amount) else limit
        standing_of = {row.learner: row for row in standings(draws, within, points).rows}
    elif limit.kind == KEEP:
        saved = savings(draws, points, chosen[NO_LIMIT], limit.amount)
    for k, name in enumerate(draws.names):
        if len(rows := points.row[points.row[:, k] >= 0, k]):
            model = pick(draws, points, k) or pick_at(draws, rows, name)
            selection = Selection(
                dataset=draws.dataset,
                learner=name,
                limit=limit,
                metric=draws.metric,
                pick=model,
                cheap=model if kept(draws, points, k) else NOTHING,
                points=draws.points.iloc[rows],
                audit=audit_mark(trials_of(draws, name)),
                of=len(draws.repeats),
                reached=int(points.sure[:, k].sum()),
                likely=likely(draws, points, k) if isinstance(limit, Target) else None,
                saving=saved[k][0],
                saved=saved[k][1],
                standing=standing_of.get(name, Standing()),
                reference=draws.reference,
                baseline=name in draws.info.baselines,
            )
            selections.append(selection)
    return selections
