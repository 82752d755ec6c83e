"""A ledger of what papers claim, and what was measured here.

A suite names the quantitative sentences of its paper::

    [[claims]]
    id = "adapt-letters"
    source = "Nan and Saligrama, NIPS 2017, section 5"
    says = "ADAPT-GBRT saves 31% of the feature cost within 1% of the top accuracy"
    published = "31%"
    dataset = "letters"
    measure = "saving"               # one of MEASURES, or "none" where nothing here can measure it
    learners = ["adapt-gbrt", "random-forest"]
    keeps = 0.99
    holds = ">= 0.31"

The first learner is the one that the claim is about, the second what it is compared with. Points
are chosen on validation, figures are those of the test split, means over repeats. Results on
stand-ins never count.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_core.errors import UsageError
from bench_core.metrics.tradeoff import share_of
from bench_core.protocols import Metric
from bench_core.selection import best_points, mean_curve, over_repeats, savings, under_budget

if TYPE_CHECKING:
    import pandas as pd

HOLDS, FAILS = "holds", "does not hold"
ABSENT, STAND_IN, UNRUN, UNMEASURED = (
    "data absent",
    "stand-in: not counted",
    "not run",
    "not measured",
)

_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of a paper, in our words, and how it is put to the test.

    ``holds`` compares the measured figure with a number: ``">= 0.31"``. ``metric`` defaults to the
    suite's primary one, ``cost`` is a cost column of the export, ``budget`` limits the cost a row.
    Raises UsageError for what cannot be understood.
    """

    id: str
    source: str
    says: str
    published: str
    dataset: str
    measure: str
    learners: tuple[str, ...] = ()
    holds: str = ""
    keeps: float = 0.99
    budget: float = float("inf")
    metric: str = ""
    cost: str = "total_cost"
    why: str = ""  # measure "none": what stands in the way

    def __post_init__(self) -> None:
        if self.measure != "none" and self.measure not in MEASURES:
            from bench_core.registry import unknown

            raise UsageError(f"claim {self.id}: {unknown('measure', self.measure, MEASURES)}")
        if self.measure == "none":
            return
        compared(self.holds, 0.0, self.id)
        least = 2 if self.measure not in ("quality", "cost") else 1
        if len(self.learners) < least:
            raise UsageError(f"claim {self.id}: measure {self.measure} compares {least} learners")

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Claim:
        """From a suite's ``[[claims]]`` table."""
        known = {f.name: f for f in fields(cls)}
        at = table.get("id", "?")
        for key in table:
            if key not in known:
                from bench_core.registry import unknown

                raise UsageError(f"claim {at}: {unknown('key', key, known)}")
        for name, f in known.items():
            if f.default is MISSING and name not in table:
                raise UsageError(f"claim {at}: key {name!r} is missing")
        values = dict(table)
        values["learners"] = tuple(values.get("learners", ()))
        return cls(**values)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim, the figure measured (NaN: none), the word for it, and how it was measured."""

    claim: Claim
    word: str
    measured: float = float("nan")
    how: str = ""


def judge(claim: Claim, frame: pd.DataFrame, metric: Metric) -> Verdict:
    """Put a claim to the test on the rows of its data set of one run."""
    if claim.measure == "none":
        return Verdict(claim, UNMEASURED, how=claim.why)
    part = frame[frame["dataset"] == claim.dataset]
    missing = [name for name in claim.learners if name not in set(part["learner"])]
    if part.empty or missing:
        return Verdict(claim, UNRUN, how=f"no results of {', '.join(missing) or claim.dataset}")
    if bool(part["stand_in"].any()):
        return Verdict(claim, STAND_IN)
    measured = MEASURES[claim.measure](claim, part, metric)
    how = _how(claim, part, metric)
    if np.isnan(measured):
        return Verdict(claim, FAILS, measured, f"{how}; the quality asked for was not reached")
    return Verdict(claim, HOLDS if compared(claim.holds, measured) else FAILS, measured, how)


def compared(rule: str, measured: float, at: str = "") -> bool:
    """Whether a figure satisfies a rule such as ``">= 0.31"``."""
    match = re.fullmatch(r"\s*(>=|<=|>|<)\s*([-+0-9.e]+)\s*", rule)
    if match is None:
        raise UsageError(f'claim {at}: holds = {rule!r}: write a comparison such as ">= 0.31"')
    return bool(_COMPARE[match[1]](measured, float(match[2])))


def saving(claim: Claim, frame: pd.DataFrame, metric: Metric) -> float:
    """1 - the cost at which the first learner keeps a share of the second's best quality, over
    the second's cost at its best."""
    both = savings(frame, metric, claim.learners[1], claim.keeps, claim.cost)
    own = both[both["learner"] == claim.learners[0]]
    if own.empty or not own["reached"].all():
        return float("nan")
    share = own["test_cost"] / own["reference_cost"]
    return 1.0 - float(share.mean())


def quality(claim: Claim, frame: pd.DataFrame, metric: Metric) -> float:
    """The first learner's quality within the budget."""
    return _of(claim, under_budget(frame, metric, claim.budget, claim.cost), "test_quality")


def cost(claim: Claim, frame: pd.DataFrame, metric: Metric) -> float:
    """The first learner's cost at its cheapest point that keeps a share of its own best quality."""
    own = frame[frame["learner"] == claim.learners[0]]
    found = savings(own, metric, claim.learners[0], claim.keeps, claim.cost)
    return float(found["test_cost"].mean()) if found["reached"].all() else float("nan")


def margin(claim: Claim, frame: pd.DataFrame, metric: Metric) -> float:
    """The least, over neighbours in the list, of the first's mean quality minus the second's, over
    all budgets that both can afford up to where both have their best."""
    sign = 1.0 if metric.higher_is_better else -1.0
    curves = [mean_curve(frame, metric, name, claim.cost) for name in claim.learners]
    gaps = []
    for better, worse in pairwise(curves):
        low = max(float(c["budget"].iloc[0]) for c in (better, worse))
        high = max(
            low, min(claim.budget, max(float(c["budget"].iloc[-1]) for c in (better, worse)))
        )
        budgets = np.linspace(low, high, 101)
        a, b = (
            c["test_quality"].to_numpy()[np.searchsorted(c["budget"], budgets, "right") - 1]
            for c in (better, worse)
        )
        gaps.append(float(np.mean(sign * (a - b))))
    return min(gaps)


def time_ratio(claim: Claim, frame: pd.DataFrame, metric: Metric) -> float:
    """Median seconds of the first learner's fits over those of the second's."""
    fits = frame.drop_duplicates(["learner", "fold", "seed", "params"])
    first, second = (
        float(fits.loc[fits["learner"] == name, "fit_seconds"].median())
        for name in claim.learners[:2]
    )
    return first / second


def quality_kept(claim: Claim, frame: pd.DataFrame, metric: Metric) -> float:
    """The first learner's quality within the budget over the second's best."""
    own = _of(claim, under_budget(frame, metric, claim.budget, claim.cost), "test_quality")
    best = best_points(frame, metric, claim.cost)
    other = over_repeats(best[best["learner"] == claim.learners[1]])
    return own / float(other["test_quality"].iloc[0])


MEASURES: Mapping[str, Callable[[Claim, pd.DataFrame, Metric], float]] = {
    "saving": saving,
    "quality": quality,
    "cost": cost,
    "margin": margin,
    "time-ratio": time_ratio,
    "quality-kept": quality_kept,
}


def _of(claim: Claim, chosen: pd.DataFrame, column: str) -> float:
    own = chosen[chosen["learner"] == claim.learners[0]]
    return float(own[column].mean()) if len(own) else float("nan")


def _how(claim: Claim, frame: pd.DataFrame, metric: Metric) -> str:
    repeats = len(frame[["fold", "seed"]].drop_duplicates())
    profile = ", ".join(map(str, frame["profile"].unique()))
    said = f"{claim.measure} of {' against '.join(claim.learners)}, {metric.name}"
    if claim.measure == "saving":
        least = share_of(1.0, claim.keeps, True)
        said += f", keeping {least:.0%} on validation"
    return f"{said}; profile {profile}, {repeats} {'repeat' if repeats == 1 else 'repeats'}"


def read_claims(tables: Sequence[Mapping[str, Any]]) -> tuple[Claim, ...]:
    """A suite's claims. Raises UsageError for the first that cannot be understood."""
    claims = tuple(Claim.of(table) for table in tables)
    names = [claim.id for claim in claims]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"claim {name}: two claims have this id")
    return claims
