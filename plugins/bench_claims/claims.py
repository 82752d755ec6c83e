"""Claims of papers, as suites make them.

A suite names the quantitative sentences of its paper::

    [[claims]]
    id = "adapt-letters"
    source = "Nan and Saligrama, NIPS 2017, section 5"
    says = "ADAPT-GBRT saves 31% of the feature cost within 1% of the top accuracy"
    published = "31%"
    dataset = "letters"              # its name in results: "yahoo(relevant=1)"
    ours = "the layout"              # what this project chose of a generated data set
    measure = "saving"               # one of MEASURES, "sizes", or "none" with a reason, why
    learners = ["adapt-gbrt", { learner = "random-forest", trees = 100 }]
    keeps = 0.99
    holds = ">= 0.305"               # a published figure counts as met where it rounds to it
    rows = 12000                     # on fewer training rows or trees nothing is settled
    trees = 100

In place of ``holds`` an equality has ``near = 12`` and ``within = 0.005``. ``floor = ">= 0.9"`` is
the quality on test below which a saving, a cost or a quality shows nothing; a cost must have one.
Margins are read at ``budgets = [10, 30]``, the range of the paper's figure; ``[0]`` goes up to the
price of all features. ``kind = "p95"`` or ``"cap"`` says that ``budget`` or ``budgets`` bound what
95% of rows or every row costs; of caps those that the run measured are read. Measures
of what is bought count the sensors of ``prices = [150, 200]``; ``early = 0.1`` of the trees are
the first.

The first learner is the one that the claim is about, the second what it is compared with; a table
takes only the settings that have these values. ``sizes`` compares rows and features of the data
set itself.
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
from typing import TYPE_CHECKING, Any

from bench_core.errors import UsageError, blaming, unknown
from bench_core.results.budgets import KINDS

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Measure:
    """How many learners a measure compares at least, how its figure is written, and whether more
    or less of it is a merit ("": as the metric says, "=": neither)."""

    learners: int
    form: str
    merit: str = ">"


MEASURES: Mapping[str, Measure] = {
    "saving": Measure(2, "{:.1%}"),
    "quality": Measure(1, "{:.4g}", ""),
    "quality-kept": Measure(2, "{:.1%}"),
    "cost": Measure(1, "{:.4g}", "<"),
    "margin": Measure(2, "{:+.4f}"),
    "least-margin": Measure(2, "{:+.4f}"),
    "time-ratio": Measure(2, "{:.3g}x", "<"),
    "minutes": Measure(1, "{:.2g} min", "<"),
    "bought-early": Measure(2, "{:.1%}", "="),
    "bought-trend": Measure(2, "{:+.2f}", "="),
    "bought-first": Measure(2, "{:.1%}", "="),
    "bought-last": Measure(2, "{:.1%}", "="),
    "stages": Measure(2, "{:.3g}", "="),
    "passed": Measure(2, "{:+.1%}", "="),
}
CURVES = ("margin", "least-margin")
TIMES = ("minutes", "time-ratio")
FLOORED = ("saving", "cost", "quality")
GROUPED = ("bought-early", "bought-trend", "bought-first", "bought-last")
PURCHASES = (*GROUPED, "stages", "passed")
"""Measures of what the store keeps beside the export; the first learner shows nothing there unless
it keeps up with the second."""

_COMPARE = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}

_KINDS: Mapping[Any, tuple[Any, str]] = {"str": (str, "text"), "float": ((int, float), "a number")}


@dataclass(frozen=True)
class Contender:
    """A learner, or those of its settings that have the values in ``where``; where given, on
    ``dataset``, another than the claim's with the same test rows."""

    learner: str
    where: Mapping[str, Any]
    dataset: str = ""

    @classmethod
    def of(cls, entry: Any) -> Contender:
        """From ``"cegb"`` or ``{ learner = "cegb", depth = 4 }``."""
        if isinstance(entry, str):
            return cls(entry, {})
        if not isinstance(entry, Mapping) or not isinstance(entry.get("learner"), str):
            raise UsageError('a learner is a name or a table with "learner"')
        where = {k: v for k, v in entry.items() if k not in ("learner", "dataset")}
        return cls(entry["learner"], where, entry.get("dataset", ""))

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
    limits the cost a row: its mean, or as ``kind`` says. Raises UsageError for what cannot be
    understood.
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
    budgets: tuple[float, ...] = ()
    kind: str = "mean"
    prices: tuple[float, ...] = ()
    early: float = 0.0
    rows: float = 0
    trees: float = 0
    metric: str = ""
    cost: str = "total_cost"
    ours: str = ""
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
            self._check()

    def _check(self) -> None:
        """Raise UsageError for a rule that says nothing or that the measure cannot use."""
        if self.two_sided == bool(self.holds):
            raise UsageError('write either holds = ">= 0.31" or near = 12 and within = 0.005')
        self.met(0.0)
        if self.floor:
            compared(self.floor, 0.0)
        if self.floor and self.measure not in FLOORED:
            raise UsageError(f"measure {self.measure} has no floor")
        if self.measure == "cost" and not self.floor:
            raise UsageError('a cost shows nothing without its quality: floor = ">= 0.9"')
        numbers = all(isinstance(budget, (int, float)) for budget in self.budgets)
        low, high = [*self.budgets, inf][:2] if numbers and len(self.budgets) in (1, 2) else (0, 0)
        rising = 0 <= low < high
        if rising != (self.measure in CURVES) or (rising and self.budget < inf):
            raise UsageError(f"budgets = [from, to] are for {', '.join(CURVES)}, and needed there")
        self._check_purchases()
        if self.kind not in KINDS:
            raise UsageError(unknown("kind of budget", self.kind, KINDS))
        limited = rising or self.budget < inf
        if self.kind != "mean" and not (limited and self.cost == "total_cost"):
            raise UsageError(f'kind = "{self.kind}" needs a budget or budgets of the whole cost')
        if len(self.learners) < (least := MEASURES[self.measure].learners):
            raise UsageError(f"measure {self.measure} compares {least} learners")

    def _check_purchases(self) -> None:
        """Raise UsageError for a rule on what is bought that its measure does not have."""
        numbers = all(isinstance(price, (int, float)) for price in self.prices)
        low, high = self.prices if numbers and len(self.prices) == 2 else (0, -1)
        if (self.measure in GROUPED) != (0 <= low <= high) or (self.prices and low > high):
            raise UsageError(f"prices = [from, to] are for {', '.join(GROUPED)}, and needed there")
        if (self.measure == "bought-early") != (0 < self.early < 1):
            raise UsageError("early = 0.1, a part of the trees, is for bought-early, and needed")
        if self.measure in PURCHASES and any(one.dataset for one in self.learners):
            raise UsageError(f"measure {self.measure} has one data set")

    @property
    def labels(self) -> tuple[str, ...]:
        """The contenders' names in the frame that measures get."""
        return tuple(contender.label for contender in self.learners)

    @property
    def two_sided(self) -> bool:
        """Whether the claim is an equality."""
        return self.near == self.near

    @property
    def figure_only(self) -> bool:
        """Whether no text has the sentence, by its source."""
        return "figure" in self.source and not re.search("section|caption", self.source)

    @property
    def at_most(self) -> bool:
        """Whether the figure may be anything below a bound."""
        return self.holds.lstrip().startswith("<")

    def met(self, measured: float) -> bool:
        """Whether a figure is as claimed."""
        if self.two_sided:
            return abs(measured - self.near) <= self.within
        return compared(self.holds, measured)

    def adverse(self, higher_is_better: bool) -> bool:
        """Whether the claim bounds the merit of its first learner, so that a poorly trained one
        would satisfy it."""
        merit = MEASURES[self.measure].merit or (">" if higher_is_better else "<")
        return self.two_sided or not self.holds.lstrip().startswith(merit)

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
            lists = {key: tuple(table.get(key, ())) for key in ("sizes", "budgets", "prices")}
            learners = tuple(map(Contender.of, table.get("learners", ())))
            return cls(**{**table, **lists, "learners": learners})


def read_claims(tables: Sequence[Mapping[str, Any]]) -> tuple[Claim, ...]:
    """A suite's claims. Raises UsageError for the first that cannot be understood."""
    claims = tuple(Claim.of(table) for table in tables)
    for name, times in Counter(claim.id for claim in claims).items():
        if times > 1:
            raise UsageError(f"claim {name}: two claims have this id")
    return claims


def compared(rule: str, measured: float) -> bool:
    """Whether a figure satisfies a rule such as ``">= 0.31"``."""
    match = re.fullmatch(r"\s*(>=|<=|>|<)\s*([-+]?\d*\.?\d+(?:e[-+]?\d+)?)\s*", rule)
    if match is None:
        raise UsageError(f'holds = {rule!r}: write a comparison such as ">= 0.31"')
    return bool(_COMPARE[match[1]](measured, float(match[2])))
