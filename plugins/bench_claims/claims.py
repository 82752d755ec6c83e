"""Claims of papers, as suites make them.

A suite names the quantitative sentences of its paper::

    [[claims]]
    id = "adapt-letters"
    source = "Nan and Saligrama, NIPS 2017, section 5"
    says = "ADAPT-GBRT saves 31% of the feature cost within 1% of the top accuracy"
    published = "31%"
    dataset = "letters"              # its name in results: "yahoo(relevant=1)"
    ours = "the layout"              # this project's choice in a generated data set
    measure = "saving"               # one of MEASURES, "sizes", or "none" with a reason, why
    learners = ["adapt-gbrt", { learner = "random-forest", trees = 100 }]
    keeps = 0.99
    holds = ">= 0.305"               # a published figure is met if the result rounds to it
    rows = 12000                     # fewer training rows or trees settle nothing
    trees = 100

In place of ``holds`` an equality has ``near = 12`` and ``within = 0.005``. ``floor = ">= 0.9"`` is
the test quality below which a saving, a cost or a quality shows nothing; a cost must have one.
Margins are read at ``budgets = [10, 30]``, the range of the paper's figure; ``[0]`` goes up to the
price of all features.

The claim is about the first learner, compared with the second; a table selects only the settings
with these values. ``sizes`` compares rows and features of the data set. A claim with ``anywhere =
true`` compares only learners: other data sets can show it too, but do not settle it. A quality
within a budget is that of a single operating point, also where a paper mixes two at random.
``minutes`` have no bound: machines differ.
"""

from __future__ import annotations

import json
import operator
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from bench_core.errors import UsageError, blaming, unknown
from bench_core.results.budgets import CAP

if TYPE_CHECKING:
    import pandas as pd


class Measure(NamedTuple):
    """Number of learners, format and requirements of a claim's measure."""

    learners: int  # least number compared
    form: str  # of its figure
    merit: str = ">"  # better direction; "": by the metric, "=": neither
    needs: tuple[str, ...] = ()  # keys of the claim


MEASURES: Mapping[str, Measure] = {
    "saving": Measure(2, "{:.1%}"),
    "quality": Measure(1, "{:.4g}", ""),
    "quality-kept": Measure(2, "{:.1%}"),
    "cost": Measure(1, "{:.4g}", "<", ("floor",)),
    "margin": Measure(2, "{:+.4f}", ">", ("budgets",)),
    "least-margin": Measure(2, "{:+.4f}", ">", ("budgets",)),
    "time-ratio": Measure(2, "{:.3g}x", "<"),
    "minutes": Measure(1, "{:.2g} min", "<"),
    "stages": Measure(2, "{:.3g}", "="),
    "passed": Measure(2, "{:+.1%}", "="),
}
CONSTANT = "constant"  # the baseline at the start of every curve
CURVES = ("margin", "least-margin")
TIMES = ("minutes", "time-ratio")
UNJUDGED = "minutes"
FLOORED = ("saving", "cost", "quality")
STAGES = ("stages", "passed")
"""Measures of values in the store that are not exported. The first learner shows nothing there
unless it keeps up with the second."""

_FORMS = {"budgets": "[from, to]", "floor": '">= 0.9"'}
_KINDS: Mapping[Any, Any] = {"str": str, "float": (int, float), "bool": bool}
_COMPARE = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}


@dataclass(frozen=True)
class Contender:
    """A learner, or some of its settings."""

    learner: str
    where: Mapping[str, Any]  # values of the settings
    dataset: str = ""  # a data set other than the claim's, with the same test rows

    @classmethod
    def of(cls, entry: Any) -> Contender:
        """Parse ``"cegb"`` or ``{ learner = "cegb", depth = 4 }``."""
        if isinstance(entry, str):
            return cls(entry, {})
        if not isinstance(entry, Mapping) or not isinstance(entry.get("learner"), str):
            raise UsageError('a learner is a name or a table with "learner"')
        where = {k: v for k, v in entry.items() if k not in ("learner", "dataset")}
        return cls(entry["learner"], where, entry.get("dataset", ""))

    @cached_property
    def label(self) -> str:
        """A name such as ``cegb(depth=4)``."""
        short = {
            k: v.get("learner", v) if isinstance(v, Mapping) else v for k, v in self.where.items()
        }
        inside = ", ".join(f"{k}={v}" for k, v in short.items())
        return f"{self.learner}({inside})" if inside else self.learner

    def rows(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Its rows, under its label."""
        rows = frame[frame["learner"] == self.learner]
        if self.where:
            params = rows["params"].astype(str)
            fit = {text: self.has(json.loads(text or "{}")) for text in params.unique()}
            rows = rows[params.map(fit).astype(bool)]
        return rows.assign(learner=self.label)

    def has(self, params: Mapping[str, Any]) -> bool:
        """True if a trial with these parameters belongs to it."""
        return _agrees(params, self.where)


def _agrees(value: Any, wanted: Any) -> bool:
    """True if a setting matches ``wanted``; a learner may be given by its name only."""
    if isinstance(value, Mapping):
        wanted = {"learner": wanted} if isinstance(wanted, str) else wanted
        return isinstance(wanted, Mapping) and all(
            key in value and _agrees(value[key], part) for key, part in wanted.items()
        )
    return bool(value == wanted or (value is None and wanted == "none"))


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper, in our words, and its test.

    ``holds`` compares the measured figure with a number: ``">= 0.31"``. ``metric`` defaults to the
    suite's primary one. ``cost`` is a cost column of the export or ``point.NAME``. ``budget``
    limits the mean cost of a row or, with ``kind = "cap"`` and measure ``quality``, the cost of
    every row. Raises UsageError for an invalid claim.
    """

    id: str
    source: str
    says: str
    published: str
    dataset: str
    measure: str
    learners: tuple[Contender, ...] = ()
    holds: str = ""
    near: float = float("nan")
    within: float = 0.0
    floor: str = ""
    keeps: float = 0.99
    budget: float = inf
    kind: str = "mean"
    budgets: tuple[float, ...] = ()
    rows: float = 0
    trees: float = 0
    metric: str = ""
    cost: str = "cost"
    ours: str = ""
    anywhere: bool = False
    sizes: tuple[float, ...] = ()  # measure "sizes": rows of the splits, features; 0: not stated
    why: str = ""  # measure "none": the obstacle

    def __post_init__(self) -> None:
        if self.measure == "none" and not self.why:
            raise UsageError('measure "none" needs a reason: why = "..."')
        if self.measure == "sizes" and len(self.sizes) != 4:
            raise UsageError("sizes = [train, valid, test, features]")
        if self.measure in ("none", "sizes"):
            return
        if self.kind not in ("mean", CAP) or (self.kind == CAP and self.measure != "quality"):
            raise UsageError('kind is "mean" or, only for measure quality, "cap"')
        if self.measure not in MEASURES:
            raise UsageError(unknown("measure", self.measure, [*MEASURES, "sizes", "none"]))
        least, _, _, needs = MEASURES[self.measure]
        if len(self.learners) < least:
            raise UsageError(f"measure {self.measure} compares {least} learners")
        if self.measure == UNJUDGED and (self.two_sided or self.holds):
            raise UsageError(f"measure {UNJUDGED} takes neither holds nor near: machines differ")
        if self.measure != UNJUDGED and self.two_sided == bool(self.holds):
            raise UsageError('write either holds = ">= 0.31" or near = 12 and within = 0.005')
        if self.anywhere and (self.floor or self.budgets not in ((), (0,))):
            raise UsageError("anywhere = true excludes floor and budgets above 0")
        for rule in (self.holds, self.floor):
            compared(rule or "> 0", 0.0)
        for key, form in _FORMS.items():
            # each key belongs to some measures; only a floor is optional for some
            given, optional = bool(getattr(self, key)), key == "floor" and self.measure in FLOORED
            if given != (key in needs) and not (given and optional):
                word = "has no" if given else "needs"
                raise UsageError(f"measure {self.measure} {word} {key} = {form}")
        limits = self.budgets
        numbers = all(isinstance(x, int | float) for x in limits)
        low, high, *more = (*limits, inf, inf)[: max(2, len(limits))] if numbers else (1, 0)
        if more or not 0 <= low <= high:
            raise UsageError(f"budgets = {_FORMS['budgets']}, rising, not {list(limits)}")

    @property
    def contenders(self) -> tuple[Contender, ...]:
        """The learners whose results it needs; for a curve the last is the constant."""
        curve = self.measure in CURVES
        return (*self.learners, Contender(CONSTANT, {})) if curve else self.learners

    @property
    def labels(self) -> tuple[str, ...]:
        """The contenders' names in the frame given to measures."""
        return tuple(contender.label for contender in self.learners)

    @property
    def two_sided(self) -> bool:
        """True if the claim is an equality."""
        return self.near == self.near

    @property
    def figure_only(self) -> bool:
        """True if its source names only a figure, not a text."""
        return "figure" in self.source and not re.search("section|caption", self.source)

    @property
    def at_most(self) -> bool:
        """True if the claim is an upper bound on the figure."""
        return self.holds.lstrip().startswith("<")

    def met(self, measured: float) -> bool:
        """True if the claim holds for a figure."""
        if self.two_sided:
            return abs(measured - self.near) <= self.within
        return compared(self.holds, measured)

    def adverse(self, higher_is_better: bool) -> bool:
        """True if the claim bounds its first learner's merit: poor training would satisfy it."""
        merit = MEASURES[self.measure].merit or (">" if higher_is_better else "<")
        return self.two_sided or not self.holds.lstrip().startswith(merit)

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Claim:
        """Read a suite's ``[[claims]]`` table."""
        by_name = {f.name: f for f in fields(cls)}
        with blaming(f"claim {table.get('id', '?')}"):
            for key, value in table.items():
                if key not in by_name:
                    raise UsageError(unknown("key", key, by_name))
                if not isinstance(value, _KINDS.get(by_name[key].type, list)):
                    raise UsageError(f"key {key!r}: {value!r} has the wrong type")
            for name, f in by_name.items():
                if f.default is MISSING and name not in table:
                    raise UsageError(f"key {name!r} is missing")
            values: dict[str, Any] = {
                key: tuple(value) if isinstance(value, list) else value
                for key, value in table.items()
            }
            return cls(**values | {"learners": tuple(map(Contender.of, table.get("learners", ())))})


def read_claims(tables: Sequence[Mapping[str, Any]]) -> tuple[Claim, ...]:
    """A suite's claims. Raises UsageError for the first invalid one."""
    claims = tuple(Claim.of(table) for table in tables)
    for name, times in Counter(claim.id for claim in claims).items():
        if times > 1:
            raise UsageError(f"claim {name}: two claims have this id")
    return claims


def compared(rule: str, measured: float) -> bool:
    """True if a figure satisfies a rule such as ``">= 0.31"``."""
    match = re.fullmatch(r"\s*(>=|<=|>|<)\s*([-+]?\d*\.?\d+(?:e[-+]?\d+)?)\s*", rule)
    if match is None:
        raise UsageError(f'holds = {rule!r}: write a comparison such as ">= 0.31"')
    return bool(_COMPARE[match[1]](measured, float(match[2])))
