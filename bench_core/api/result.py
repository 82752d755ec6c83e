"""The result of a run, for scripts and notebooks: boards, curves, comparisons, purchases."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial
from html import escape
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Self

from bench_core.errors import UsageError, require
from bench_core.execution.runner import RunResult
from bench_core.leaderboard.assembly import boards
from bench_core.leaderboard.board import FALLS, Board, Standing
from bench_core.leaderboard.bought_sensors import purchases
from bench_core.leaderboard.columns import columns as board_columns
from bench_core.leaderboard.columns import rule_words, standing_fields
from bench_core.leaderboard.conclusion import conclusion, overall_conclusion
from bench_core.leaderboard.draws import primary_metric, reference_of
from bench_core.leaderboard.pairs import lacking, pairs_within, usual_limit
from bench_core.leaderboard.reports import ReportRequest, write_report
from bench_core.leaderboard.selection import Answers, Choice, Selection
from bench_core.plugins import load_registry
from bench_core.results.budgets import (
    CAP,
    Budget,
    as_budgets,
    limit_of,
    limit_words,
)
from bench_core.results.operating_points import caps_of
from bench_core.results.records import RunInfo
from bench_core.results.store import Store
from bench_core.statistics.split_shift import falling
from bench_core.terminal.wording import (
    CHEAPER,
    cost,
    counted,
    duration,
    in_brackets,
    listed,
    notices,
    quality,
)

if TYPE_CHECKING:
    from pandas import DataFrame

    from bench_core.plugins import Registry
    from bench_core.serving import Folder, Predictor

Amount = float | str | Budget
_Given = tuple[Amount | None, str, float | str | None, float | None]
SHOWN = ("cost", CHEAPER, f"{CHEAPER} low", f"{CHEAPER} high", "errors", "wrong", "sure", "marks")
"""Columns of a board by default, next to its names and the metric."""
_NAMES = ["dataset", "learner"]
METHODS = "conclusion board() at(budgets) best() compare(a, b) curve() features() plot() to_latex()"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Best(Selection):
    """The best learner and setting within a budget on validation, or the cheapest that is sure to
    reach a target there: one operating point of one model, with its purchases."""

    features: DataFrame  # purchases, as ``Result.features``
    measured: bool  # False for a cap that the run did not measure
    falls: bool  # the learner is worse on test than on validation by more than chance
    level: tuple[str, ...]  # the other learners of its tier
    reason: str  # why no learner is cheaper, or why another limit was taken
    exported: Callable[[], Folder]
    transformed: bool = False  # the run had a transformer

    def model(self) -> Predictor:
        """Return the model that ``bench model export`` writes: it asks for features and reports
        their cost. See ``bench_core.serving``."""
        from bench_core.serving import Predictor  # loads compiled code

        return Predictor(self.exported())

    def export(self, folder: str | PathLike[str]) -> Path:
        """Write that model as a folder for ``bench_core.serving.load``. An older model there is
        replaced; UsageError if the folder contains other files."""
        from bench_core.serving.folder import check_folder, write_folder

        check_folder(path := Path(folder))
        write_folder(path, self.exported())
        if self.transformed:
            line = "the model reads transformed rows: save result.transformer too (joblib.dump)"
            warnings.warn(line, stacklevel=2)
        return path

    def _repr_html_(self) -> str:
        """Return the line and the purchases as a table."""
        table = self.features.to_html(index=False, na_rep="-", float_format="{:.4g}".format)
        return f"<p>{escape(repr(self))}</p>\n{table}"

    def __repr__(self) -> str:
        """Return one line: learner, quality, cost and operating point."""
        sure = in_brackets(self.interval, quality)
        valid = f"{quality(self.valid_quality)} on validation"
        reached = f"{self.metric.name} {valid}, {quality(self.quality)} on test{sure}"
        # the exported model may pay less
        most = "at most " if CAP in self.setting.point and self.cost else ""
        reached += f" at a cost of {most}{cost(self.cost)}"
        ties = f"{listed(self.level)} {'ties' if len(self.level) == 1 else 'tie'}"
        level = f"; {ties} in {self.metric.name}" if sure and self.level else ""
        falls = f"; {self.learner} {FALLS} by more than chance" if self.falls else ""
        how = self.words + ("" if self.measured else " (a cap that was not measured)")
        at, why = self.setting.short, f"; {self.reason}" if self.reason else ""
        return f"{self.dataset}: {self.learner} {how}, {reached} ({at}){level}{falls}{why}"


@dataclass(frozen=True, repr=False)
class Figure:
    """A figure of a run's curves, shown by notebooks; ``save`` writes it to a file."""

    svg: str
    run: str
    write: Callable[[str | PathLike[str]], Path]

    def __repr__(self) -> str:
        """Return one line that names the run."""
        return f"Figure(curves of {self.run}; save(path) writes .svg, .pdf or .png)"

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the figure as .svg, .pdf or .png, by suffix. Raises UsageError for another one."""
        if Path(path).suffix.lower() not in (".svg", ".pdf", ".png"):
            raise UsageError(
                f"{path}: a figure is .svg, .pdf or .png; 'report' of the result writes other files"
            )
        return self.write(path)


@dataclass(frozen=True, repr=False)
class Result(RunResult):
    """The result of a run; its tables are pandas data frames.

    Operating points are chosen on validation; figures are from test, means over repeats. If a run
    has several data sets, methods take ``dataset=`` or return a column ``dataset``. Budgets are
    costs per row: numbers limit the mean, ``budget_kind="cap"`` the cost of every row
    (``run(caps=...)`` measures more). Methods raise UsageError, in one line, for a name that is not
    in the run, and if nothing has finished.
    """

    transformer: Any = None  # fitted, of ``run(transformer=...)``

    @classmethod
    def made_of(cls, result: RunResult) -> Self:
        """Return the same result with these methods."""
        return cls(**{f.name: getattr(result, f.name) for f in fields(RunResult)})

    @classmethod
    def load(cls, run: str | int = "last", store: str | PathLike[str] = "") -> Self:
        """Return the result of a run in a store: ``last``, a number, or the start of its name."""
        kept = Store(fspath(store))
        info = kept.info(run)
        return cls.of(
            kept,
            info.run,
            reused=sum(info.counts.values()),
            notes=info.notes,
            warnings=info.warnings,
            interrupted=info.state == "interrupted",
        )

    @cached_property
    def info(self) -> RunInfo:
        """Record of the run in the store: data sets, notes, the request."""
        return Store(self.store).info(self.run)

    @cached_property
    def _rows(self) -> DataFrame:
        frame = self.frame()
        if frame.empty or not (frame["status"] == "ok").any():
            why = "; ".join(f"{title}: {error}" for title, _, error in self.failures[:1])
            raise UsageError(f"run {self.run} has no finished trial{why and f' ({why})'}")
        return frame

    @cached_property
    def _boards(self) -> Mapping[str, Board]:
        made = boards(self.info, self._rows, Store(self.store))
        return {board.dataset: board for board in made}

    def _standings(self, dataset: str, *budgets: Budget) -> list[dict[str, Standing]]:
        """Return the standings on a data set by budget and learner, best tier first."""
        (board,) = boards(
            self.info,
            self._rows,
            Store(self.store),
            datasets=(dataset,),
            budgets={dataset: budgets},
        )
        of = {at.budget: {one.learner: one for one in at.rows} for at in board.standings}
        return [of[budget] for budget in budgets]

    def _names(self, dataset: str | None) -> list[str]:
        known = list(dict.fromkeys(map(str, self._rows["dataset"])))
        names = known if dataset is None else [dataset]
        require("data set of this run", names, known)
        return names

    def _one(self, dataset: str | None) -> str:
        names = self._names(dataset)
        if len(names) > 1:
            raise UsageError(f"the run has several data sets: give dataset={names[0]!r} or another")
        return names[0]

    def _known(self, dataset: str, learners: Iterable[str]) -> None:
        rows = self._rows[self._rows["dataset"] == dataset]
        require("learner of this run", learners, dict.fromkeys(map(str, rows["learner"])))
        done = {*rows[rows["status"] == "ok"]["learner"]}
        for lost in (learner for learner in learners if learner not in done):
            why = rows[rows["learner"] == lost]["error"].iloc[0]
            raise UsageError(f"{lost} has no result: {why}")

    def _table(self, rows: Sequence[Mapping[str, Any]], dataset: str | None) -> DataFrame:
        """Return a data frame; without the column ``dataset`` if there is only one."""
        frame = _frame(rows)
        one = dataset is not None or len(self._names(None)) == 1
        return frame.drop(columns="dataset") if one else frame

    def board(self, dataset: str | None = None, columns: str | Iterable[str] = SHOWN) -> DataFrame:
        """Return one row for each learner's model, in the order of the terminal.

        Columns: mean cost of the cheapest model that is sure to keep 99% of the reference's
        quality (``run(keep=...)``); how many times cheaper it is than the reference's, with its 95%
        interval; its test quality, and wrong rows of an accuracy; ``sure``, the probability that it
        keeps the quality (1 if at least 95%); marks. A learner without a sure model shows its
        likeliest one; all are at their best if no saving is measured. ``columns`` names others, or
        ``"all"``: also the interval of quality (``low``, ``high``) and ``kept``; quality, cost,
        rank and tier at its best; area and regret of the curve, its setting, settings tried,
        seconds of training and audit."""
        rows, registry = [], self._registry()
        for name in self._names(dataset):
            board = self._boards[name]
            for row in (*board.rows, *board.sources):
                figures: dict[str, Any] = {"dataset": name, "learner": row.learner}
                for column in board_columns(board, registry):
                    # "cost" next to total costs, too
                    title = "cost" if column.name == "cost" else column.title
                    figures |= column.fields(row, title)
                rows.append(figures)
        table = self._table(rows, dataset)
        if columns == "all":
            return table
        metrics = [board.metric for board in self._boards.values()]
        wanted = [columns] if isinstance(columns, str) else [*columns]
        if columns is SHOWN:
            wanted = [name for name in table if name in (*SHOWN, *metrics)]
            empty = {name for name in ("errors", "wrong") if table[name].isna().all()}
            wanted = [name for name in wanted if name not in empty]
        require("column of this board", wanted, [*table])
        return table[list(dict.fromkeys([*table.columns.intersection(_NAMES), *wanted]))]

    def at(
        self,
        budgets: Amount | Iterable[Amount],
        budget_kind: str = "mean",
        dataset: str | None = None,
    ) -> DataFrame:
        """Return each learner within each budget, best first: quality with its interval, tier and
        ranks, and cost. Quality is NaN if a repeat has no result."""
        limits = as_budgets(budgets, budget_kind)
        if not limits:
            raise UsageError("budgets is empty: give costs per row, as [10, 20]")
        rows = [
            {
                "dataset": name,
                "budget": str(budget) if budget.kind != "mean" else budget.amount,
                "learner": learner,
                **standing_fields(stands, self._boards[name].metric),
            }
            for name in self._names(dataset)
            for budget, found in zip(limits, self._standings(name, *limits), strict=True)
            for learner, stands in found.items()
        ]
        return self._table(rows, dataset)

    def best(
        self,
        budget: Amount | None = None,
        budget_kind: str = "mean",
        dataset: str | None = None,
        keep: float | str | None = None,
        quality: float | None = None,
        learner: str | None = None,
        metric: str | None = None,
    ) -> Best:
        """Return the best learner and setting, or the best setting of a ``learner``, chosen on
        validation.

        With a ``budget`` it is the best within it (``math.inf``: at any cost). With ``keep=0.95``
        it is sure to keep 95% of the reference's quality: the model of the board's conclusion. With
        ``quality`` it is the cheapest that is sure to reach it. The default is ``keep=0.99``; if no
        saving is measured, the best at any cost. ``metric``: of the run, instead of its first, then
        without an interval and ties.
        """
        given = budget, budget_kind, keep, quality
        choice, answers, top = self._chosen(dataset, given, learner or "", metric or "")
        limit, tier = answers.limit, top.standing.tier  # 0: without intervals, or at a target
        level = [s.learner for s in answers.found if s.standing.tier == tier > 0 and s is not top]

        def exported() -> Folder:
            from bench_core.leaderboard.export import export

            known = self._registry().metrics
            return export(Store(self.store), self.info, top, known, best=choice.best)

        return Best(
            **{field.name: getattr(top, field.name) for field in fields(Selection)},
            features=self._bought(top),
            measured=limit.kind != CAP or limit.amount in caps_of(choice.frame),
            falls=bool(choice.places) and top.learner in falling(choice.found, choice.higher),
            level=tuple(level),
            reason=answers.reason,
            exported=exported,
            transformed=self.transformer is not None,
        )

    def _registry(self) -> Registry:
        named = self.info.request.get("plugins", ())  # a store must not import code
        return load_registry([name for name in named if name in sys.modules])

    def compare(
        self,
        *learners: str,
        budget: Amount | None = None,
        budget_kind: str = "mean",
        dataset: str | None = None,
        interest: float = 0.01,
        keep: float | str | None = None,
        quality: float | None = None,
        against: str | None = None,
    ) -> DataFrame:
        """Compare each pair of learners within a budget, or at the least cost that keeps a share of
        the reference's quality or reaches a quality. The default is ``keep=0.99``; if one of them
        does not keep it, all are at their best, as with ``budget=math.inf``.

        With ``against`` only this learner (a) and each other one (b), of those named or of the run.

        Columns: the difference a - b with its 95% interval, its p-value, raw and Holm-corrected;
        the probability that they differ by less than ``interest`` (a share of the better quality);
        the cost of b at the quality of a over the cost of a, with its 95% interval; the multiple of
        the data that would separate them; ``compared``, where: at 99% of gbrt's accuracy, within 20
        on average, or at any cost."""
        names = list(dict.fromkeys([*filter(None, [against]), *learners]))
        self._known(self._one(dataset), names)  # before the values are read
        if names == [against]:
            rows = self._rows[self._rows["dataset"] == self._one(dataset)]
            names += [n for n in dict.fromkeys(map(str, rows["learner"])) if n != against]
        if len(names) < 2:
            raise UsageError("compare needs two learners: compare('miser', 'cegb')")
        name, asked = self._one(dataset), limit_of(budget, budget_kind, keep, quality)
        of = self.info, Store(self.store), self._rows, name, names
        limit = asked or usual_limit(*of)[0]
        given = *of, limit
        _, pairs, others = pairs_within(*given, interest=interest, against=against or "")
        where = limit_words(
            limit, primary_metric(self.info, name).name, reference_of(self.info, name)
        )
        if others:
            warnings.warn(lacking(limit, others, where.removeprefix("at ")), stacklevel=3)
        return _frame({**pair.fields(), "compared": where} for pair in pairs)

    def curve(self, learner: str | None = None, dataset: str | None = None) -> DataFrame:
        """Return quality with its 95% interval, and cost, at each mean budget at which the curve
        of a learner (None: of each) rises. Between two budgets it is flat."""
        name = self._one(dataset)
        self._known(name, [] if learner is None else [learner])
        shown = [row for row in self._boards[name].rows if learner in (None, row.learner)]
        budgets = list(dict.fromkeys(point.budget for row in shown for point in row.curve))
        found = self._standings(name, *map(Budget, budgets))
        sure = dict(zip(budgets, found, strict=True))
        rows = [
            {
                "learner": row.learner,
                "budget": point.budget,
                "cost": point.pick.cost,
                self._boards[name].metric: point.pick.quality,
                **sure[point.budget][row.learner].interval._asdict(),
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
        budget_kind: str = "mean",
        dataset: str | None = None,
        keep: float | str | None = None,
        quality: float | None = None,
    ) -> DataFrame:
        """Return the purchases of a learner (None: the best) at the point that ``best`` chooses
        with the same ``budget``, ``keep`` or ``quality``.

        Columns: price of each measurement, share of rows that buy it, and cost per row, the
        costliest first; for a policy also the mean step of the purchase, 1 for a row's first; with
        prices by row also the share of purchases that gave no value, if some did."""
        given = budget, budget_kind, keep, quality
        return self._bought(self._chosen(dataset, given, learner or "")[2])

    def _chosen(
        self, dataset: str | None, limits: _Given, learner: str = "", metric: str = ""
    ) -> tuple[Choice, Answers, Selection]:
        """Return the answers of a data set at a limit, or at the default one, and the first or the
        learner's. Raises UsageError with the reason if there is none."""
        name, limit = self._one(dataset), limit_of(*limits)
        self._known(name, [learner] if learner else [])
        choice = Choice(self.info, Store(self.store), self._rows, name, metric)
        return choice, *choice.answer(limit, learner)

    def _bought(self, answer: Selection) -> DataFrame:
        bought = purchases(Store(self.store), self.run, answer.points)
        ordered = any(purchase.steps for purchase in bought)
        lost = any(purchase.lost for purchase in bought)
        return _frame(
            {
                **dict(zip(purchase._fields[:3], purchase[:3], strict=True)),
                "cost per row": purchase.price * purchase.share,
                **({"mean step": purchase.step} if ordered else {}),
                **({"nothing came": purchase.lost} if lost else {}),
            }
            for purchase in bought
        )

    def report(
        self,
        path: str | PathLike[str],
        *,
        learners: str | Iterable[str] = (),
        dataset: str | None = None,
    ) -> Path:
        """Write the run, or these learners (a list, or "a,b") or a data set alone, to a file; its
        suffix sets the format: .html, .tex, .md, .csv, .json, .txt, .svg, .pdf, .png, and formats
        of plugins."""
        request = ReportRequest(
            self.store,
            self.run,
            Path(path),
            data=[] if dataset is None else [dataset],
            learners=[learners] if isinstance(learners, str) else [*learners],
        )
        write_report(self._registry(), request, warnings.warn)
        return Path(path)

    def plot(self, *, learners: str | Iterable[str] = (), dataset: str | None = None) -> Figure:
        """Return the curves of all learners and data sets, or of these, as a figure; needs
        matplotlib."""
        write = partial(self.report, learners=learners, dataset=dataset)
        with TemporaryDirectory() as folder:
            svg = write(Path(folder) / "curves.svg").read_text(encoding="utf-8")
        return Figure(svg, self.run, write)

    def to_latex(self) -> str:
        """Return a LaTeX table of quality at budgets for each data set, and a paragraph on
        methods."""
        with TemporaryDirectory() as folder:
            return self.report(Path(folder) / "board.tex").read_text(encoding="utf-8")

    @cached_property
    def conclusion(self) -> str:
        """The conclusion in sentences: a line for each data set, after the one over several."""
        if not self.counts.get("ok"):
            return ""
        boards = [*self._boards.values()]
        lines = [" ".join(overall_conclusion(boards))]
        lines += [f"{board.dataset}: {' '.join(conclusion(board))}" for board in boards]
        return "\n".join(filter(None, lines))

    def __repr__(self) -> str:
        """Return the conclusion, counts of trials, and the methods."""
        return "\n".join([*self._lines(), f"methods: {METHODS}"])

    def _repr_html_(self) -> str:
        """Return the boards as tables, and the curves if matplotlib is installed."""
        parts = [f"<p>{escape(line)}</p>" for line in self._lines()]
        for name, board in self._boards.items() if self.counts.get("ok") else ():
            unit = f" in {board.unit}" if board.unit else ""
            rule = f"each row is one model: {rule_words(board)}; "
            legend = f"{'' if board.totals else rule}figures are from test"
            parts.append(f"<p>{escape(name)}: {legend}; costs are per row{escape(unit)}</p>")
            empty = {"wrong": not board.tested, "errors": not board.totals}
            known = [title for title in SHOWN[:-1] if not empty.get(title)]
            titles = [*known, board.metric, "low", "high", "marks"]
            shown = self.board(name, titles)
            parts.append(shown.to_html(index=False, na_rep="-", float_format="{:.4g}".format))
        boards = self._boards.values() if self.counts.get("ok") else ()
        if find_spec("matplotlib") and any(row.curve for board in boards for row in board.rows):
            parts.append(self.plot().svg)
        return "\n".join(parts)

    def _lines(self) -> Iterator[str]:
        """Yield the conclusions, counts of trials, the first failure, and notices."""
        yield from self.conclusion.splitlines()
        state = "interrupted, " if self.interrupted else ""
        took = f" in {duration(self.seconds)}" if self.seconds else ""
        counts = {**self.counts, "refused by the audit": len(self.audit_failures)}
        yield f"run {self.run}: {state}{counted(counts) or 'no trials'}{took}, in {self.store}"
        for title, status, error in self.failures[:1]:
            yield f"{status}: {title}: {error}"
        yield from notices(self.info) if self.counts.get("ok") else ()


def _frame(rows: Iterable[Mapping[str, Any]]) -> DataFrame:
    import pandas as pd  # slow to import, not needed by ``bench plan``

    return pd.DataFrame([*rows])
