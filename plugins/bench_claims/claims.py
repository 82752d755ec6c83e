"""Claims of papers and the verdicts of runs on them.

A suite names the quantitative sentences of its paper::

    [[claims]]
    id = "adapt-letters"
    source = "Nan and Saligrama, NIPS 2017, section 5"
    says = "ADAPT-GBRT saves 31% of the feature cost within 1% of the top accuracy"
    published = "31%"
    dataset = "letters"              # its name in results: "yahoo(relevant=1)"
    measure = "saving"               # one of MEASURES, "sizes", or "none" with a reason, why
    learners = ["adapt-gbrt", { learner = "random-forest", trees = 100 }]
    keeps = 0.99
    holds = ">= 0.305"               # a published figure counts as met where it rounds to it

The first learner is the one that the claim is about, the second what it is compared with; a table
takes only the settings that have these values. ``sizes`` compares rows and features of the data
set itself. Points are chosen on validation, figures are those of the test split, means over
the repeats in which every contender has results. Results on stand-ins never count.
"""

from __future__ import annotations

import json
import operator
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_claims.measures import MEASURES
from bench_core.errors import UsageError, blaming, unknown
from bench_core.metrics.frontier import share_of
from bench_core.results.operating_points import Criterion, criterion

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo

HOLDS, FAILS = "holds", "does not hold"
ABSENT, UNRUN, UNMEASURED = "data absent", "not run", "not measured"
WORDS = (HOLDS, FAILS, ABSENT, UNRUN, UNMEASURED)

OF_POINT = "point."
"""Begins a ``cost`` that is a number of the operating point: ``point.sent``."""

_REPEAT = ["fold", "seed"]

_TIMES = ("minutes", "time-ratio")
"""Measures that no metric enters."""

_KINDS: Mapping[Any, tuple[Any, str]] = {"str": (str, "text"), "float": ((int, float), "a number")}

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True)
class Contender:
    """A learner, or those of its settings that have the values in ``where``."""

    learner: str
    where: Mapping[str, Any]

    @classmethod
    def of(cls, entry: Any) -> Contender:
        """From ``"cegb"`` or ``{ learner = "cegb", depth = 4 }``."""
        if isinstance(entry, str):
            return cls(entry, {})
        if not isinstance(entry, Mapping) or not isinstance(entry.get("learner"), str):
            raise UsageError('a learner is a name or a table with "learner"')
        return cls(entry["learner"], {k: v for k, v in entry.items() if k != "learner"})

    @cached_property
    def label(self) -> str:
        """``cegb(depth=4)``."""
        inside = ", ".join(f"{k}={_short(v)}" for k, v in self.where.items())
        return f"{self.learner}({inside})" if inside else self.learner

    def rows(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Its rows, under its label."""
        own = frame[frame["learner"] == self.learner]
        if self.where:
            params = own["params"].astype(str)
            fit = {text: _agrees(json.loads(text or "{}"), self.where) for text in params.unique()}
            own = own[params.map(fit).astype(bool)]
        return own.assign(learner=self.label)


def _short(value: Any) -> str:
    return str(value.get("learner", value) if isinstance(value, Mapping) else value)


def _agrees(value: Any, wanted: Any) -> bool:
    """Whether a setting is as wanted; a learner may be wanted by its name alone."""
    if isinstance(value, Mapping):
        wanted = {"learner": wanted} if isinstance(wanted, str) else wanted
        return isinstance(wanted, Mapping) and all(
            key in value and _agrees(value[key], part) for key, part in wanted.items()
        )
    return bool(value == wanted or (value is None and wanted == "none"))


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper, in our words, and how it is tested.

    ``holds`` compares the measured figure with a number: ``">= 0.31"``. ``metric`` defaults to the
    suite's primary one, ``cost`` is a cost column of the export or ``point.NAME``, ``budget``
    limits the cost a row. Raises UsageError for what cannot be understood.
    """

    id: str
    source: str
    says: str
    published: str
    dataset: str
    measure: str
    learners: tuple[Contender, ...] = ()
    holds: str = ""
    keeps: float = 0.99
    budget: float = float("inf")
    metric: str = ""
    cost: str = "total_cost"
    sizes: tuple[int, ...] = ()  # measure "sizes": rows of the splits, features; 0: not stated
    why: str = ""  # measure "none": what stands in the way

    def __post_init__(self) -> None:
        if self.measure == "none":
            if not self.why:
                raise UsageError('measure "none" needs a reason, why')
        elif self.measure == "sizes":
            if len(self.sizes) != 4:
                raise UsageError("sizes = [train, valid, test, features]")
        elif self.measure not in MEASURES:
            raise UsageError(unknown("measure", self.measure, [*MEASURES, "sizes", "none"]))
        else:
            compared(self.holds, 0.0)
            least = MEASURES[self.measure].learners
            if len(self.learners) < least:
                raise UsageError(f"measure {self.measure} compares {least} learners")

    @property
    def labels(self) -> tuple[str, ...]:
        """The contenders' names in the frame that measures get."""
        return tuple(contender.label for contender in self.learners)

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Claim:
        """From a suite's ``[[claims]]`` table."""
        known = {f.name: f for f in fields(cls)}
        with blaming(f"claim {table.get('id', '?')}"):
            for key, value in table.items():
                if key not in known:
                    raise UsageError(unknown("key", key, known))
                kind, wanted = _KINDS.get(known[key].type, (list, "a list"))
                if not isinstance(value, kind):
                    raise UsageError(f"key {key!r}: {wanted} is wanted, not {value!r}")
            for name, f in known.items():
                if f.default is MISSING and name not in table:
                    raise UsageError(f"key {name!r} is missing")
            learners = tuple(map(Contender.of, table.get("learners", ())))
            return cls(**{**table, "learners": learners, "sizes": tuple(table.get("sizes", ()))})


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim, the word for it, the figure measured (NaN: none) as it is shown, and how."""

    claim: Claim
    word: str
    measured: float = float("nan")
    shown: str = "-"
    how: str = ""


def settle(claim: Claim, info: RunInfo, frame: pd.DataFrame) -> Verdict:
    """Test a claim on one run."""
    if claim.measure == "none":
        return Verdict(claim, UNMEASURED, how=claim.why)
    name = claim.dataset.partition("(")[0]
    if name in info.absent:
        return Verdict(claim, ABSENT, how=f"no files of {name}: bench show {name}")
    use = next((use for use in info.datasets if use["name"] == claim.dataset), None)
    if use is None:
        for other in info.datasets:
            if other["stand_in_for"] == name:
                return Verdict(claim, ABSENT, how=f"{other['name']} stood in, which never counts")
        return Verdict(claim, UNRUN, how=f"{claim.dataset} is not in this run")
    if use["stand_in"]:
        return Verdict(claim, ABSENT, how=f"{name} is generated, which never counts")
    if info.request.get("metrics") and not claim.metric and claim.measure not in (*_TIMES, "sizes"):
        return Verdict(claim, UNRUN, how="the run was judged by metrics of its own: --metric")
    if claim.measure == "sizes":
        found = _sizes(claim, use)
    else:
        found = judge(claim, frame, criterion(info, claim.metric or str(use["metrics"][0])))
    return replace(found, how=_context(found, info, use))


def judge(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> Verdict:
    """Test a claim on the rows of its data set."""
    import pandas as pd

    part = frame[(frame["dataset"] == claim.dataset) & ~frame["stand_in"]]
    parts = [contender.rows(part) for contender in claim.learners]
    usable = [own[(own["status"] == "ok") & (own["audit"] != "failed")] for own in parts]
    missing = [at for at, own in zip(claim.labels, usable, strict=True) if own.empty]
    if missing:
        return Verdict(claim, UNRUN, how=f"no results of {', '.join(missing)}")
    rows = _with_cost(_shared_repeats(pd.concat(usable, ignore_index=True), parts), claim.cost)
    if rows.empty:
        return Verdict(claim, UNRUN, how=f"no repeat with results of {', '.join(claim.labels)}")
    for column in (claim.cost,) if claim.measure in _TIMES else (metric.name, claim.cost):
        known = rows[rows[column].notna()] if column in rows.columns else rows.iloc[:0]
        if {*known["learner"]} != {*rows["learner"]}:
            return Verdict(claim, UNRUN, how=f"the run did not measure {column}")
    measure = MEASURES[claim.measure]
    measured = measure.figure(claim, rows, metric)
    how = _how(claim, rows, metric) + _lacking(rows, parts)
    if np.isnan(measured):
        limited = claim.budget < float("inf")
        lack = "no operating point within the budget" if limited else "target not reached"
        return Verdict(claim, FAILS, how=f"{how}; {lack} in at least one repeat")
    word = HOLDS if compared(claim.holds, measured) else FAILS
    return Verdict(claim, word, measured, measure.form.format(measured), how)


def _shared_repeats(rows: pd.DataFrame, parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The rows of those repeats in which every contender has some."""
    every = len({label for own in parts for label in own["learner"].unique()})
    return rows[rows.groupby(_REPEAT)["learner"].transform("nunique") == every]


def _lacking(rows: pd.DataFrame, parts: Sequence[pd.DataFrame]) -> str:
    """What the figure leaves out: repeats, and trials without a result."""
    repeats = {repeat for own in parts for repeat, _ in own.groupby(_REPEAT)}
    lost = len(repeats) - rows.groupby(_REPEAT).ngroups
    bad = [
        own[~own["status"].isin(["ok", "skipped"]) | (own["audit"] == "failed")] for own in parts
    ]
    trials = sum(len(own.drop_duplicates([*_REPEAT, "params"])) for own in bad)
    lacking = f"; {lost} more without results of all" if lost else ""
    return f"{lacking}; failed trials: {trials}" if trials else lacking


def compared(rule: str, measured: float) -> bool:
    """Whether a figure satisfies a rule such as ``">= 0.31"``."""
    match = re.fullmatch(r"\s*(>=|<=|>|<)\s*([-+]?\d*\.?\d+(?:e[-+]?\d+)?)\s*", rule)
    if match is None:
        raise UsageError(f'holds = {rule!r}: write a comparison such as ">= 0.31"')
    return bool(_COMPARE[match[1]](measured, float(match[2])))


def _sizes(claim: Claim, use: Mapping[str, Any]) -> Verdict:
    """Whether the data set has the paper's rows and features; only whole data can fail."""
    rows = [int(use["rows"][split]) for split in ("train", "valid", "test")]
    shown = f"{'/'.join(map(str, rows))} x {use['features']}"
    found = zip((*rows, use["features"]), claim.sizes, strict=True)
    word = HOLDS if all(size in (0, have) for have, size in found) else FAILS
    if word == FAILS and use["size"] != "paper":
        return Verdict(claim, UNRUN, shown=shown, how="the paper's rows are in profile paper")
    return Verdict(claim, word, shown=shown, how="rows to train/validate/test x features")


def _with_cost(frame: pd.DataFrame, cost: str) -> pd.DataFrame:
    """With a column for a number of the operating point; 0 where a learner has none."""
    if not cost.startswith(OF_POINT):
        return frame
    key = cost.removeprefix(OF_POINT)
    points = [json.loads(text) if isinstance(text, str) else {} for text in frame["point"]]
    return frame.assign(**{cost: [float(point.get(key, 0.0)) for point in points]})


def _how(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> str:
    how = f"{claim.measure} of {' against '.join(claim.labels)}"
    if claim.measure not in _TIMES:
        how += f", {metric.name}"
    if claim.measure in ("saving", "cost"):
        how += f", keeping {share_of(1.0, claim.keeps, True):.0%} on validation"
    if claim.budget < float("inf"):
        how += f", up to {claim.budget:g}"
    if claim.cost != "total_cost":
        how += f", by {claim.cost}"
    return how + _by_repeat(claim, frame, metric)


def _by_repeat(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> str:
    """The figure of each repeat, so that a mean near the border is seen to be one."""
    repeats = [part for _, part in frame.groupby(_REPEAT, sort=True)]
    if len(repeats) == 1:
        return "; 1 repeat"
    measure = MEASURES[claim.measure]
    figures = [measure.figure(claim, part, metric) for part in repeats]
    shown = ("-" if np.isnan(x) else measure.form.format(x) for x in figures)
    return f"; {len(repeats)} repeats: {', '.join(shown)}"


def _context(found: Verdict, info: RunInfo, use: Mapping[str, Any]) -> str:
    """How the claim was measured, with the conditions of run and data."""
    notes = [str(note) for note in use.get("notes", ()) if str(note).startswith("sample")]
    asked = [f"--set {setting}" for setting in info.request.get("settings", ())]
    asked += [f"--costs {costs}"] if (costs := info.request.get("costs")) else []
    state = [] if info.state == "finished" else [f"{info.state} run"]
    return "; ".join([found.how, f"profile {info.profile}", *asked, *state, *notes])


def read_claims(tables: Sequence[Mapping[str, Any]]) -> tuple[Claim, ...]:
    """A suite's claims. Raises UsageError for the first that cannot be understood."""
    claims = tuple(Claim.of(table) for table in tables)
    for name, times in Counter(claim.id for claim in claims).items():
        if times > 1:
            raise UsageError(f"claim {name}: two claims have this id")
    return claims


def tally(verdicts: Sequence[Verdict]) -> str:
    """``holds: 3, does not hold: 1, data absent: 4``."""
    counts = Counter(verdict.word for verdict in verdicts)
    return ", ".join(f"{w}: {counts[w]}" for w in WORDS if counts[w]) or "no claims"
