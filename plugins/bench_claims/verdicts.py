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
    Results,
    convergence,
    shortfall,
    too_few_trees,
    with_purchases,
)
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

OF_POINT = "point."  # begins a ``cost`` that is a number of the operating point: ``point.sent``
_REPEAT = ["fold", "seed"]
_OWN_METRICS = "the run was judged by metrics of its own: --metric"
_IN_THE_STORE = "the store has what is bought: bench claims"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a run says on a claim."""

    claim: Claim
    word: str  # of WORDS
    measured: float = float("nan")  # NaN: no figure
    shown: str = "-"  # the figure
    how: str = ""  # it was measured
    data: str = ""  # PAPERS, SAMPLE or GENERATED; "" where there is no figure

    @property
    def rests(self) -> str:
        """What the verdict rests on, in words: the data, what of them is ours, text or figure."""
        ours = f", of which ours: {self.claim.ours}" if self.claim.ours and self.data else ""
        return "; ".join(
            filter(None, (self.data + ours, "from a figure only" * self.claim.figure_only))
        )


def settle(claim: Claim, info: RunInfo, frame: pd.DataFrame, store: Store | None = None) -> Verdict:
    """Test a claim on one run; what is bought is in its store alone."""
    name = claim.dataset.partition("(")[0]
    use = next((use for use in info.datasets if use["name"] == claim.dataset), None)
    other = next((use for use in info.datasets if use["stand_in_for"] == name), None)
    own_metrics = claim.metric or claim.measure in (*TIMES, "sizes")
    # the first of these that is so
    for word, why, found in (
        (UNMEASURED, claim.why, claim.measure == "none"),
        (ABSENT, f"no files of {name}: bench show {name}", name in info.absent),
        (ABSENT, f"{other and other['name']} stood in, which never counts", other and not use),
        (ELSEWHERE, f"{claim.dataset} is not in this run", not use),
        (ABSENT, f"{name} is generated, which never counts", use and use["stand_in"]),
        (UNRUN, _OWN_METRICS, info.request.get("metrics") and not own_metrics),
        (UNRUN, _IN_THE_STORE, claim.measure in PURCHASES and store is None),
    ):
        if found:
            return Verdict(claim, word, how=why)
    assert use is not None
    if len(claim.budgets) == 1:  # up to the price of all features
        claim = replace(claim, budgets=(*claim.budgets, float(use["price_of_everything"])))
    if claim.measure in PURCHASES and store is not None:
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

    baseline = [Contender(CONSTANT, {})] if claim.measure in CURVES else []
    contenders = {one.label: one for one in (*claim.learners, *baseline)}
    real = frame[~frame["stand_in"]]
    parts = [
        one.rows(real[real["dataset"] == (one.dataset or claim.dataset)])
        for one in contenders.values()
    ]
    every = pd.concat(parts, ignore_index=True).assign(dataset=claim.dataset)
    sound = every[(every["status"] == "ok") & (every["audit"] != "failed")]
    if missing := [label for label in contenders if label not in {*sound["learner"]}]:
        return Verdict(claim, UNRUN, how=f"no results of {', '.join(missing)}")
    # only repeats in which every contender has results
    rows = sound[sound.groupby(_REPEAT)["learner"].transform("nunique") == len(contenders)]
    if rows.empty:
        return Verdict(claim, UNRUN, how=f"no repeat with results of {', '.join(claim.labels)}")
    rows = _with_cost(rows, claim.cost)
    # what is compared must be there for every contender
    for column in (claim.cost,) if claim.measure in TIMES else (metric.name, claim.cost):
        known = rows[rows[column].notna()] if column in rows.columns else rows.iloc[:0]
        if {*known["learner"]} != {*rows["learner"]}:
            return Verdict(claim, UNRUN, how=f"the run did not measure {column}")
    return _weighed(Results(claim, rows, metric), every)


def _weighed(results: Results, every: pd.DataFrame) -> Verdict:
    """The verdict on the rows of all contenders' shared repeats; ``every``: also of others."""
    claim = results.claim
    measured = FIGURES[claim.measure](results)
    helped, unknown = convergence(results)
    word, why = FAILS, ""
    if few := too_few_trees(results):
        word, why = SMALL, few
    elif np.isnan(measured):
        why = _lack(claim)
    elif short := shortfall(results, measured):
        why = short
    elif claim.met(measured):
        word, why = (GROWING, f"the last trees still help {helped}") if helped else (HOLDS, "")
    how = _how(results) + _lacking(results.frame, every)
    how += f"; not known whether converged: {unknown}" if unknown else ""
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


def _lacking(rows: pd.DataFrame, every: pd.DataFrame) -> str:
    """What the figure leaves out: repeats, and trials without a result."""
    more = every.groupby(_REPEAT).ngroups - rows.groupby(_REPEAT).ngroups
    bad = every[~every["status"].isin(["ok", "skipped"]) | (every["audit"] == "failed")]
    trials = len(bad.drop_duplicates(["learner", *_REPEAT, "params"]))
    lacking = f"; {more} more without results of all" if more else ""
    return f"{lacking}; failed trials: {trials}" if trials else lacking


def _sizes(claim: Claim, use: Mapping[str, Any]) -> Verdict:
    """Compare rows and features with the paper's; only data of full size can fail."""
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


def _how(results: Results) -> str:
    """How the figure is measured, and that of each repeat, so that a mean near the border is seen
    to be one."""
    claim, frame = results.claim, results.frame
    wanted = claim.holds or f"{claim.near:g} within {claim.within:g}"
    words = [
        (f"{claim.measure} of {' against '.join(claim.labels)}", True),
        (results.metric.name, claim.measure not in TIMES),
        (
            f"keeping {share_of(1.0, claim.keeps, True):.0%} on validation",
            claim.measure in ("saving", "cost"),
        ),
        (f"up to {claim.budget:g}", claim.budget < float("inf")),
        (f"budgets {' to '.join(f'{x:g}' for x in claim.budgets)}", claim.budgets),
        (f"sensors of cost {' to '.join(f'{x:g}' for x in claim.prices)}", claim.prices),
        (f"in the first {claim.early:.0%} of the trees", claim.early),
        (f"by {claim.cost}", claim.cost != "total_cost"),
        (f"wanted {wanted}", True),
    ]
    how = ", ".join(word for word, said in words if said)
    repeats = [replace(results, frame=part) for _, part in frame.groupby(_REPEAT, sort=True)]
    if len(repeats) == 1:
        return f"{how}; 1 repeat"
    shown = [_shown(claim, FIGURES[claim.measure](repeat)) for repeat in repeats]
    return f"{how}; {len(repeats)} repeats: {', '.join(shown)}"


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
