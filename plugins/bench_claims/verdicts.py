"""Verdicts of runs on the claims of papers.

Points are chosen on validation, figures are those of the test split, means over the repeats in
which every contender has results. Results on stand-ins never count.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_claims.claims import CURVES, MEASURES, PURCHASES, TIMES, Claim, Contender
from bench_claims.measures import (
    CONSTANT,
    FIGURES,
    caps_read,
    convergence,
    shortfall,
    too_few_trees,
)
from bench_claims.purchases import with_purchases
from bench_core.metrics.frontier import share_of
from bench_core.results.operating_points import Criterion, criterion

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.results.records import RunInfo
    from bench_core.results.store import Store

HOLDS, FAILS, SMALL, GROWING = "holds", "does not hold", "too small", "not converged"
ABSENT, UNRUN, ELSEWHERE = "data absent", "not run", "not in this run"
UNMEASURED = "not measured"
WORDS = (HOLDS, FAILS, SMALL, GROWING, ABSENT, UNRUN, ELSEWHERE, UNMEASURED)

PAPERS, SAMPLE, GENERATED = "the paper's data", "a sample", "generated"

OF_POINT = "point."
"""Begins a ``cost`` that is a number of the operating point: ``point.sent``."""

_REPEAT = ["fold", "seed"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A claim, the word for it, the figure measured (NaN: none) as it is shown, how, and what data
    it rests on (PAPERS, SAMPLE, GENERATED, "" where there is no figure)."""

    claim: Claim
    word: str
    measured: float = float("nan")
    shown: str = "-"
    how: str = ""
    data: str = ""

    @property
    def rests(self) -> str:
        """What the verdict rests on, in words: the data, what of them is ours, text or figure."""
        ours = f", of which ours: {self.claim.ours}" if self.claim.ours and self.data else ""
        return "; ".join(
            filter(None, (self.data + ours, "from a figure only" * self.claim.figure_only))
        )


def settle(claim: Claim, info: RunInfo, frame: pd.DataFrame, store: Store | None = None) -> Verdict:
    """Test a claim on one run; what is bought is in its store alone."""
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
        return Verdict(claim, ELSEWHERE, how=f"{claim.dataset} is not in this run")
    if use["stand_in"]:
        return Verdict(claim, ABSENT, how=f"{name} is generated, which never counts")
    if info.request.get("metrics") and not claim.metric and claim.measure not in (*TIMES, "sizes"):
        return Verdict(claim, UNRUN, how="the run was judged by metrics of its own: --metric")
    if len(claim.budgets) == 1:
        claim = replace(claim, budgets=(*claim.budgets, float(use["price_of_everything"])))
    if claim.measure in PURCHASES:
        if store is None:
            return Verdict(claim, UNRUN, how="the store has what is bought: bench claims")
        frame = with_purchases(frame, store, info.run, claim)
    if claim.measure == "sizes":
        found = _sizes(claim, use)
    else:
        found = judge(claim, frame, criterion(info, claim.metric or str(use["metrics"][0])))
    if found.word not in (UNRUN, SMALL) and use["rows"]["train"] < claim.rows:
        small = f"{use['rows']['train']} training rows, the paper has {claim.rows:g}"
        found = replace(found, word=SMALL, how=f"{found.how}; {small}")
    return _context(found, info, use)


def judge(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> Verdict:
    """Test a claim on the rows of its data set."""
    import pandas as pd

    real = frame[~frame["stand_in"]]
    more = [Contender(CONSTANT, {})] if claim.measure in CURVES else []
    parts = [
        contender.rows(real[real["dataset"] == (contender.dataset or claim.dataset)]).assign(
            dataset=claim.dataset
        )
        for contender in (*claim.learners, *more)
    ]
    usable = [own[(own["status"] == "ok") & (own["audit"] != "failed")] for own in parts]
    labels = (*claim.labels, *(contender.label for contender in more))
    missing = [at for at, own in zip(labels, usable, strict=True) if own.empty]
    if missing:
        return Verdict(claim, UNRUN, how=f"no results of {', '.join(missing)}")
    once = dict(zip(labels, usable, strict=True)).values()  # a learner may be named twice
    rows = _with_cost(_shared_repeats(pd.concat(once, ignore_index=True), parts), claim.cost)
    if rows.empty:
        return Verdict(claim, UNRUN, how=f"no repeat with results of {', '.join(claim.labels)}")
    for column in (claim.cost,) if claim.measure in TIMES else (metric.name, claim.cost):
        known = rows[rows[column].notna()] if column in rows.columns else rows.iloc[:0]
        if {*known["learner"]} != {*rows["learner"]}:
            return Verdict(claim, UNRUN, how=f"the run did not measure {column}")
    if claim.kind == "cap" and not caps_read(claim, rows):
        how = f"the run measured no cap of {_range(claim)}: bench run --caps"
        return Verdict(claim, UNRUN, how=how)
    return _weighed(claim, rows, metric, _how(claim, rows, metric) + _lacking(rows, parts))


def _weighed(claim: Claim, rows: pd.DataFrame, metric: Criterion, how: str) -> Verdict:
    """The verdict on the rows of all contenders' shared repeats."""
    measured = FIGURES[claim.measure](claim, rows, metric)
    growing, unknown = convergence(claim, rows, metric)
    how += f"; not known whether converged: {unknown}" if unknown else ""
    word, why = FAILS, ""
    if few := too_few_trees(claim, rows):
        word, why = SMALL, few
    elif np.isnan(measured):
        why = _lack(claim)
    elif short := shortfall(claim, rows, metric, measured):
        why = short
    elif claim.met(measured):
        word, why = (GROWING, f"the last trees still help {growing}") if growing else (HOLDS, "")
    how += f"; {why}" if why else ""
    return Verdict(claim, word, measured, _shown(claim, measured), how)


def _shown(claim: Claim, figure: float) -> str:
    return "-" if np.isnan(figure) else MEASURES[claim.measure].form.format(figure)


def _lack(claim: Claim) -> str:
    """Why there is no figure."""
    if claim.measure in CURVES:
        return "equal at every budget"
    if claim.measure in PURCHASES:
        return "what is bought there is not kept, or does not tell it"
    limited = claim.budget < float("inf")
    lack = "no operating point within the budget" if limited else "target not reached"
    return f"{lack} in at least one repeat"


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
    if claim.measure not in TIMES:
        how += f", {metric.name}"
    if claim.measure in ("saving", "cost"):
        how += f", keeping {share_of(1.0, claim.keeps, True):.0%} on validation"
    bounds = "" if claim.kind == "mean" else f"{claim.kind} "
    if claim.budget < float("inf"):
        how += f", up to {bounds}{_range(claim)}"
    if claim.budgets:
        how += f", budgets {bounds}{_range(claim)}"
    if claim.prices:
        how += ", sensors of cost {:g} to {:g}".format(*claim.prices)
    if claim.early:
        how += f", in the first {claim.early:.0%} of the trees"
    if claim.cost != "total_cost":
        how += f", by {claim.cost}"
    wanted = claim.holds or f"{claim.near:g} within {claim.within:g}"
    return f"{how}, wanted {wanted}{_by_repeat(claim, frame, metric)}"


def _range(claim: Claim) -> str:
    return "{:g} to {:g}".format(*claim.budgets) if claim.budgets else f"{claim.budget:g}"


def _by_repeat(claim: Claim, frame: pd.DataFrame, metric: Criterion) -> str:
    """The figure of each repeat, so that a mean near the border is seen to be one."""
    repeats = [part for _, part in frame.groupby(_REPEAT, sort=True)]
    if len(repeats) == 1:
        return "; 1 repeat"
    shown = (_shown(claim, FIGURES[claim.measure](claim, part, metric)) for part in repeats)
    return f"; {len(repeats)} repeats: {', '.join(shown)}"


def _context(found: Verdict, info: RunInfo, use: Mapping[str, Any]) -> Verdict:
    """With the conditions of run and data."""
    sampled = [str(note) for note in use.get("notes", ()) if str(note).startswith("sample")]
    asked = [f"--set {setting}" for setting in info.request.get("settings", ())]
    asked += [f"--costs {costs}"] if (costs := info.request.get("costs")) else []
    state = [] if info.state == "finished" else [f"{info.state} run"]
    how = "; ".join([found.how, f"profile {info.profile}", *asked, *state, *sampled])
    data = GENERATED if found.claim.ours else SAMPLE if sampled else PAPERS
    return replace(found, how=how, data="" if found.word == UNRUN else data)


def tally(verdicts: Sequence[Verdict]) -> str:
    """``holds: 3 (generated: 1), does not hold: 1, data absent: 4``."""
    counts = Counter(verdict.word for verdict in verdicts)
    data = Counter(verdict.data for verdict in verdicts if verdict.word == HOLDS)
    weak = ", ".join(f"{kind}: {data[kind]}" for kind in (SAMPLE, GENERATED) if data[kind])
    notes = {HOLDS: f" ({weak})" if weak else ""}
    shown = (f"{word}: {counts[word]}{notes.get(word, '')}" for word in WORDS if counts[word])
    return ", ".join(shown) or "no claims"
