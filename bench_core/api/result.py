"""The result of a run, for scripts and notebooks: boards, curves, comparisons, purchases."""

from __future__ import annotations

import math
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property
from html import escape
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

from bench_core.api.display import html_table, lines
from bench_core.api.keywords import in_python
from bench_core.errors import UsageError, unknown
from bench_core.execution.runner import RunResult
from bench_core.leaderboard.board import UNKNOWN, Board, Row
from bench_core.results.budgets import Budget, as_budgets
from bench_core.results.records import RunInfo
from bench_core.results.store import Store
from bench_core.statistics.comparison import Interval
from bench_core.terminal.wording import cost, notices, quality

if TYPE_CHECKING:
    from pandas import DataFrame

    from bench_core.leaderboard.standings import Standing, Standings

    Amount = float | str | Budget

METHODS = "board() at(budgets) best(budget) compare(a, b) curve() features() plot() to_latex()"


@dataclass(frozen=True, repr=False)
class Best:
    """The learner and setting that are best within a budget on validation.

    ``params`` and ``point`` are those most repeats chose, ``at`` says so in words; ``quality`` and
    ``cost`` are on test, the means over repeats; ``features`` says what is bought, a table as of
    ``Result.features``.
    """

    dataset: str
    learner: str
    params: Mapping[str, Any]
    point: Mapping[str, Any]
    at: str
    metric: str
    quality: float
    cost: float
    audit: str
    features: DataFrame
    interval: Interval
    tier: int
    level: tuple[str, ...]

    def __repr__(self) -> str:
        """One line: who, how good, for how much, at which point."""
        low, high = map(quality, self.interval)
        sure = "" if math.isnan(self.interval.low) else f" (95%: {low} to {high})"
        reached = f"{self.metric} {quality(self.quality)}{sure} at a cost of {cost(self.cost)}"
        level = f"; not told apart from {', '.join(self.level)}" if sure and self.level else ""
        return f"{self.dataset}: {self.learner}, {reached} ({self.at}){level}"


@dataclass(frozen=True, repr=False)
class Figure:
    """A picture of a run's curves: shown by notebooks, kept by ``save``."""

    svg: str
    run: str
    write: Callable[[str | PathLike[str]], Path]

    def __repr__(self) -> str:
        """One line: of which run."""
        return f"Figure(curves of {self.run}; save(path) writes .svg, .pdf or .png)"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the picture as .svg, .pdf or .png, by the name's ending."""
        return self.write(path)


@dataclass(frozen=True, repr=False)
class Result(RunResult):
    """The result of a run; its tables are pandas data frames.

    Points are chosen on validation, figures are from test, means over repeats. Of a run on several
    data sets a method takes ``dataset=``, or gives a table with a column ``dataset``. Budgets are
    costs per row: numbers are mean costs, ``kind="p95"`` limits that of 95% of rows, ``"cap"`` that
    of every row (measured under ``caps=`` of ``run``). A method raises UsageError, in one line,
    for a name that is not of the run and where nothing has finished.
    """

    @classmethod
    def of(cls, result: RunResult) -> Self:
        """The same result, with these methods."""
        return cls(**{f.name: getattr(result, f.name) for f in fields(RunResult)})

    @classmethod
    def load(cls, run: str = "last", store: str | PathLike[str] = "") -> Self:
        """The result of a run that a store has: ``last``, a number, a name or its beginning."""
        with in_python():
            kept = Store(fspath(store))
            info, ended = kept.info(run), kept.trials(run)
        return cls(
            run=info.run,
            store=kept.path,
            counts=dict(info.counts),
            reused=sum(info.counts.values()),
            audit_failures=tuple(t.title for t in ended if t.audit == "failed"),
            notes=info.notes,
            warnings=info.warnings,
            interrupted=info.state == "interrupted",
            failures=tuple((t.title, t.status, t.error) for t in ended if t.status != "ok"),
        )

    @cached_property
    def info(self) -> RunInfo:
        """The record of the run in the store: data sets, notes, the request."""
        return Store(self.store).info(self.run)

    @cached_property
    def _rows(self) -> DataFrame:
        with in_python():
            frame = self.frame()
        if frame.empty or not (frame["status"] == "ok").any():
            why = "; ".join(f"{title}: {error}" for title, _, error in self.failures[:1])
            raise UsageError(f"run {self.run} has no finished trial{why and f' ({why})'}")
        return frame

    @cached_property
    def _boards(self) -> Mapping[str, Board]:
        from bench_core.leaderboard.assembly import boards

        return {board.dataset: board for board in boards(self.info, self._rows)}

    def _names(self, dataset: str | None) -> list[str]:
        if dataset is not None and dataset not in self._boards:
            raise UsageError(unknown("data set of this run", dataset, self._boards))
        return [*self._boards] if dataset is None else [dataset]

    def _one(self, dataset: str | None) -> str:
        names = self._names(dataset)
        if len(names) > 1:
            raise UsageError(f"the run has several data sets: say dataset={names[0]!r} or another")
        return names[0]

    def board(self, dataset: str | None = None) -> DataFrame:
        """One row for each learner at its best: quality with its 95% interval and tier (1: not told
        apart from the best), cost, that of its cheapest point with 99% of the reference's quality,
        the saving at that quality, area and regret of the curve, these with 95% intervals, settings
        tried, seconds of training, audit and marks."""
        rows = []
        for name in self._names(dataset):
            board, by_name = self._boards[name], {r.learner: r for r in self._sure(name).rows}
            standing = self._standings(name, None)
            for row in (by_name[plain.learner] for plain in board.rows):
                stands = standing[row.learner]
                rows.append(
                    {
                        "dataset": name,
                        "learner": row.learner,
                        board.metric: row.best.quality,
                        **_certainty(stands),
                        "cost": row.best.cost,
                        "cost at 99%": row.cheap.cost if row.cheap else math.nan,
                        "saving": row.saving,
                        **_of_the_curve(row),
                        "settings": row.fits,
                        "seconds": row.seconds,
                        "audit": row.audit,
                        "marks": ", ".join(board.marks_of(row)),
                    }
                )
        return self._table(rows, dataset)

    def at(
        self, budgets: Amount | Iterable[Amount], kind: str = "mean", dataset: str | None = None
    ) -> DataFrame:
        """Each learner within each budget, the best first: quality with its interval,
        tier and ranks, and cost. Quality is NaN where not every repeat can afford anything."""
        rows = []
        for name in self._names(dataset):
            for budget in as_budgets(budgets, kind):
                for learner, stands in self._standings(name, budget).items():
                    rows.append(
                        {
                            "dataset": name,
                            "budget": str(budget) if budget.kind != "mean" else budget.amount,
                            "learner": learner,
                            self._boards[name].metric: stands.quality,
                            **_certainty(stands),
                            "cost": stands.cost,
                            "best rank": stands.ranks[0],
                            "worst rank": stands.ranks[1],
                        }
                    )
        return self._table(rows, dataset)

    def best(
        self, budget: Amount | None = None, kind: str = "mean", dataset: str | None = None
    ) -> Best:
        """The learner and setting that are best within a budget on validation (None: at all)."""
        from bench_core.leaderboard.assembly import least_cost, offers, primary_metric

        name, within = self._one(dataset), _within(budget, kind)
        own = self._rows[self._rows["dataset"] == name]
        metric = primary_metric(self.info, name)
        found = offers(own, metric, within)
        if not found:
            least = cost(least_cost(own, metric, within.kind))
            why = "measure it with run(..., caps=...)" if within.kind == "cap" else ""
            why = why or f"the cheapest operating point costs {least}"
            raise UsageError(f"nothing is affordable at {within.words}: {why}")
        top = found[0]
        setting = top.pick.settings[0]
        bought = self.features(top.learner, budget, kind, name)
        about = (name, top.learner, dict(setting.params), dict(setting.point), setting.short)
        stands = self._standings(name, None if math.isinf(within.amount) else within)
        own_tier = stands[top.learner].tier
        level = [one.learner for one in stands.values() if one.tier == own_tier]
        return Best(
            *(*about, metric.name, top.pick.quality, top.pick.cost, top.audit, bought),
            interval=stands[top.learner].interval,
            tier=own_tier,
            level=tuple(one for one in level if one != top.learner),
        )

    def compare(
        self,
        *learners: str,
        budget: Amount | None = None,
        kind: str = "mean",
        dataset: str | None = None,
        interest: float = 0.01,
    ) -> DataFrame:
        """Each pair of learners within a budget (None: at their best): the difference a - b with
        its 95% interval, its p-value and that by Holm over all pairs, the probability that they
        differ by less than ``interest`` (a share of the better quality), what b pays for the
        quality of a, over what a pays, with its 95% interval, how many times the data would
        separate them, and the difference on thirds of the rows or queries by kind.

        Within a mean cost each is a mixture of two points that costs just that, so that none is
        favoured by where its points lie; ``at`` shows the single point that can be deployed."""
        from bench_core.leaderboard.pairs import pairs_within
        from bench_core.statistics.pairs import THIRDS

        name = self._one(dataset)
        names = list(dict.fromkeys(learners))
        self._known(name, names)
        if len(names) < 2:
            raise UsageError("compare needs two learners: compare('miser', 'cegb')")
        within = _within(budget, kind)
        store = Store(self.store)
        _, pairs, others = pairs_within(self.info, store, name, names, within, interest=interest)
        if others:
            warnings.warn(
                f"not all can be had at {within.words}: {', '.join(others)}", stacklevel=2
            )
        rows = [
            {
                "a": pair.a,
                "b": pair.b,
                "quality a": pair.quality[0],
                "quality b": pair.quality[1],
                "difference": pair.difference.value,
                "low": pair.difference.interval.low,
                "high": pair.difference.interval.high,
                "p": pair.difference.p,
                "p adjusted": pair.difference.adjusted,
                "alike": pair.difference.equivalent,
                "cost ratio": pair.cost_ratio,
                "cost low": pair.cost_interval.low,
                "cost high": pair.cost_interval.high,
                "more data": pair.difference.more_units,
                **{
                    f"by {'cost to a' if kind.startswith('cost to') else kind}, {third}": value
                    for kind, thirds in pair.parts.items()
                    for third, (value, _) in zip(THIRDS, thirds, strict=True)
                },
            }
            for pair in pairs
        ]
        return _frame(rows)

    def curve(self, learner: str | None = None, dataset: str | None = None) -> DataFrame:
        """Quality with its 95% interval, and cost, at every mean budget at which a learner (None:
        each) changes its point."""
        name = self._one(dataset)
        self._known(name, [] if learner is None else [learner])
        shown = [row for row in self._boards[name].rows if learner in (None, row.learner)]
        budgets = dict.fromkeys(Budget(point.budget) for row in shown for point in row.curve)
        sure = {
            (one.learner, found.budget): one.interval
            for found in self._standings_at(name, [*budgets])
            for one in found.rows
        }
        rows = [
            {
                "learner": row.learner,
                "budget": point.budget,
                "cost": point.pick.cost,
                self._boards[name].metric: point.pick.quality,
                "low": sure[row.learner, Budget(point.budget)].low,
                "high": sure[row.learner, Budget(point.budget)].high,
                "at": point.pick.settings[0].short,
            }
            for row in shown
            for point in row.curve
        ]
        return _frame(rows)

    def features(
        self,
        learner: str | None = None,
        budget: Amount | None = None,
        kind: str = "mean",
        dataset: str | None = None,
    ) -> DataFrame:
        """Purchases of a learner (None: the best) within a budget: price of each measurement, the
        share of rows that buy it, and cost per row, the costliest first."""
        from bench_core.leaderboard.bought_sensors import chosen_within, purchases

        name, within = self._one(dataset), _within(budget, kind)
        own = self._rows[self._rows["dataset"] == name]
        chosen = chosen_within(self.info, own, name, learner, within)
        if chosen.empty:
            raise UsageError(f"{name}: {learner or 'nothing'} is not affordable at {within.words}")
        bought = purchases(Store(self.store), self.run, chosen)
        rows = [{**one._asdict(), "cost per row": one.price * one.share} for one in bought]
        return _frame(rows, ("features", "price", "share", "cost per row"))

    def report(self, path: str | PathLike[str]) -> Path:
        """Write the run as a file of the format that the name ends in: .html, .tex, .md, .csv,
        .json, .txt, .svg, .pdf, .png, and those of plugins."""
        from bench_core.leaderboard.reports import write_report
        from bench_core.plugins import load_registry

        with in_python():
            named = self.info.request.get("plugins", ())  # a store by itself imports nothing
            registry = load_registry([name for name in named if name in sys.modules])
            write_report(registry, self.store, self.run, Path(path), warn=warnings.warn)
        return Path(path)

    def _text(self, name: str) -> str:
        with TemporaryDirectory() as folder:
            return self.report(Path(folder) / name).read_text(encoding="utf-8")

    def plot(self) -> Figure:
        """The curves of all learners as a picture; needs matplotlib."""
        return Figure(self._text("curves.svg"), self.run, self.report)

    def to_latex(self) -> str:
        """A LaTeX table of quality at budgets for each data set, and a paragraph on methods."""
        return self._text("board.tex")

    def __repr__(self) -> str:
        """Three lines: how the run went, who leads on each data set, what can be asked."""
        return "\n".join([*self._lines(), f"methods: {METHODS}"])

    def _repr_html_(self) -> str:
        """The boards as tables, best and ties marked, and the curves where matplotlib is there."""
        parts = [f"<p>{escape(line)}</p>" for line in self._lines()]
        for name in self._boards if self._finished else ():
            parts.append(html_table(self._sure(name), self._standings(name, None)))
        if self._finished and find_spec("matplotlib"):
            parts.append(self.plot().svg)
        return "\n".join(parts)

    @property
    def _finished(self) -> bool:
        return self.counts.get("ok", 0) > 0

    def _lines(self) -> list[str]:
        noticed = notices(self.info) if self._finished else []
        return [*lines(self, self._boards.values() if self._finished else ()), *noticed]

    @cached_property
    def _sure(self) -> Callable[[str], Board]:
        """The board of a data set with intervals; each is computed once."""
        from bench_core.leaderboard.certainty import certified

        store = Store(self.store)
        return cache(lambda name: certified(self.info, store, self._boards[name], self._rows))

    @cached_property
    def _standings(self) -> Callable[[str, Budget | None], Mapping[str, Standing]]:
        """Standings on a data set within a budget by learner, the best tier first; likewise."""

        def stands(dataset: str, budget: Budget | None) -> Mapping[str, Standing]:
            (found,) = self._standings_at(dataset, [budget])
            return {one.learner: one for one in found.rows}

        return cache(stands)

    def _standings_at(
        self, dataset: str, budgets: Sequence[Budget | None]
    ) -> tuple[Standings, ...]:
        from bench_core.leaderboard.standings import standings

        return standings(self.info, Store(self.store), dataset, self._rows, budgets)

    def _known(self, dataset: str, learners: Sequence[str]) -> None:
        known = [row.learner for row in self._boards[dataset].rows]
        for name in learners:
            if name not in known:
                raise UsageError(unknown("learner of this run", name, known))

    def _table(self, rows: Sequence[Mapping[str, Any]], dataset: str | None) -> DataFrame:
        """A data frame; without the column ``dataset`` where there is only one."""
        frame = _frame(rows)
        one = dataset is not None or len(self._boards) == 1
        return frame.drop(columns="dataset") if one else frame


def _within(budget: Amount | None, kind: str) -> Budget:
    """One budget; None is no limit."""
    if budget is None:
        return Budget(math.inf)
    found = as_budgets(budget, kind)
    if len(found) > 1:
        raise UsageError(f"budget: give one here, as {found[0]}; at() takes several")
    return found[0]


def _certainty(stands: Standing) -> dict[str, Any]:
    return {"low": stands.interval.low, "high": stands.interval.high, "tier": stands.tier}


def _frame(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> DataFrame:
    import pandas as pd

    return pd.DataFrame(rows, columns=list(columns)) if columns else pd.DataFrame(rows)


def _of_the_curve(row: Row) -> dict[str, float]:
    """The interval of the saving, and area and regret with theirs."""
    saved = row.saved.interval if row.saved else UNKNOWN
    found = {"saving low": saved.low, "saving high": saved.high}
    for name, one in (("area", row.area), ("regret", row.regret)):
        low, high = one.interval if one else UNKNOWN
        found |= {name: one.value if one else math.nan, f"{name} low": low, f"{name} high": high}
    return found
