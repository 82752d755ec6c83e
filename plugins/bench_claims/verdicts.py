"""Verdicts of runs on the claims of papers.

Points are chosen on validation. Figures are test-split values, averaged over the repeats in which
every contender has results. A claim is decided if its figure's entire 95% interval is on one side.
Results on stand-ins never count.

Intervals are computed as for boards (``bench_core.statistics``). Stored values per query or row are
drawn with replacement, the same for all contenders. Points are chosen again in every draw. Other
figures vary only over repeats, without an interval for one repeat. These are times, purchases, data
generated for a paper (constructed, not sampled) and runs without stored values.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from bench_claims.claims import CURVES, MEASURES, STAGES, TIMES, UNJUDGED, Claim
from bench_claims.measures import (
    FIGURES,
    Results,
    convergence,
    shortfall,
    too_few_trees,
)
from bench_core.leaderboard.certainty import quality_interval
from bench_core.metrics.frontier import best_within, cheapest, share_of, taken
from bench_core.results.operating_points import Criterion, criterion
from bench_core.splits import SAMPLE as SAMPLED
from bench_core.statistics.bootstrap import BLOCKS, Means, draw, lacking
from bench_core.statistics.comparison import Interval, interval
from bench_core.statistics.repeats import (
    Level,
    joined,
    of_units,
    over_repeats,
    stored_repeats,
    with_seeds,
)

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.arrays import FloatArray
    from bench_core.results.records import DatasetUse, RunInfo
    from bench_core.results.store import Store

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "not decided"
SMALL, GROWING, OTHER = "too small", "not converged", "on another data set"
ABSENT, UNRUN, ELSEWHERE = "data absent", "not run", "not in this run"
UNMEASURED, FIGURE = "not measured", "no verdict"
DECIDED = HOLDS, FAILS, UNDECIDED, GROWING, FIGURE
WORDS = (*DECIDED, SMALL, OTHER, ABSENT, UNRUN, ELSEWHERE, UNMEASURED)

PAPERS, SAMPLE, GENERATED = "the paper's data", "a sample", "generated"

OF_POINT = "point."  # begins a ``cost`` that is a number of the operating point: ``point.sent``
_DRAWN = (*CURVES, "saving", "quality", "quality-kept")
_BUDGETS = 32
"""Number of evenly spaced budgets at which draws compare curves."""

_DRAWS = 1000
_LEAST = 1e-6  # of a cost or a time, for its logarithm
_ROUNDING = 1e-5  # relative error of mean costs in draws, which are sums in 32 bits

_REPEAT = ["fold", "seed"]
_OWN_METRICS = "the run used other metrics (--metric)"
_IN_THE_STORE = "stages are counted on stored models: use bench claims"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a run for a claim."""

    claim: Claim
    word: str  # of WORDS
    measured: float = float("nan")  # NaN: no figure
    shown: str = "-"  # the figure, with its interval
    how: str = ""  # the measurement in words
    interval: Interval | None = None
    data: str = ""  # PAPERS, SAMPLE, GENERATED or a data set; "" without a figure
    unfinished: str = ""  # the run's state, if it is interrupted or running

    @property
    def rests(self) -> str:
        """Basis of the verdict in words: the data, our choices in them, text or figure, and the
        state of the run."""
        ours = f" (our choice: {self.claim.ours})" if self.claim.ours and self.data else ""
        figure = "from a figure only" * self.claim.figure_only
        state = f"{self.unfinished} run" * bool(self.unfinished)
        return "; ".join(filter(None, (self.data + ours, figure, state)))


def settle(claim: Claim, info: RunInfo, frame: pd.DataFrame, store: Store | None = None) -> Verdict:
    """Test a claim on one run; purchases need its store."""
    name = claim.dataset.partition("(")[0]
    use = next((use for use in info.datasets if use.name == claim.dataset), None)
    other = next((use for use in info.datasets if use.stand_in_for == name), None)
    own_metrics = claim.metric or claim.measure in (*TIMES, "sizes")
    # the first that applies
    for word, why, applies in (
        (UNMEASURED, claim.why, claim.measure == "none"),
        (ABSENT, f"no files of {name}: bench show {name}", name in info.absent),
        (ABSENT, f"{other and other.name} is a stand-in, which never counts", other and not use),
        (ELSEWHERE, f"{claim.dataset} is not in this run", not use),
        (ABSENT, f"{name} is generated, which never counts", use and use.stand_in),
        (UNRUN, _OWN_METRICS, info.request.get("metrics") and not own_metrics),
        (UNRUN, _IN_THE_STORE, claim.measure in STAGES and store is None),
    ):
        if applies:
            return Verdict(claim, word, how=why)
    assert use is not None
    result = _sizes(claim, use) if claim.measure == "sizes" else _on(use, claim, info, frame, store)
    if result.word not in (UNRUN, SMALL) and use.rows["train"] < claim.rows:
        small = f"{use.rows['train']} training rows, the paper has {claim.rows:g}"
        result = replace(result, word=SMALL, how=f"{result.how}; {small}")
    return _context(result, info, use)


def settle_elsewhere(
    claim: Claim, info: RunInfo, frame: pd.DataFrame, store: Store | None = None
) -> list[Verdict]:
    """Results of the run's other real data sets for a claim that is not tied to one."""
    verdicts = []
    for use in info.datasets if claim.anywhere else ():
        if use.name != claim.dataset and not use.stand_in:
            here = replace(claim, dataset=use.name, rows=0, trees=0)
            verdict = _context(_on(use, here, info, frame, store), info, use)
            if verdict.word != UNRUN:
                how = f"there: {verdict.word}; {verdict.how}"
                verdicts.append(replace(verdict, claim=claim, word=OTHER, data=use.name, how=how))
    return verdicts


def _on(
    use: DatasetUse, claim: Claim, info: RunInfo, frame: pd.DataFrame, store: Store | None
) -> Verdict:
    if len(claim.budgets) == 1:  # up to the price of all features
        budgets = *claim.budgets, use.price_of_everything
        claim = replace(claim, budgets=budgets, anywhere=False)
    metric = criterion(info, claim.metric or use.metrics[0])
    return judge(claim, frame, metric, store, info.run)


def judge(
    claim: Claim, frame: pd.DataFrame, metric: Criterion, store: Store | None = None, run: str = ""
) -> Verdict:
    """Test a claim on the rows of its data set; intervals of one repeat come from its store."""
    import pandas as pd

    contenders = {contender.label: contender for contender in claim.contenders}
    real = frame[~frame["stand_in"]]
    parts = [
        contender.rows(real[real["dataset"] == (contender.dataset or claim.dataset)])
        for contender in contenders.values()
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
    # compared columns must exist for every contender
    for column in (claim.cost,) if claim.measure in TIMES else (metric.name, claim.cost):
        known = rows[rows[column].notna()] if column in rows.columns else rows.iloc[:0]
        if {*known["learner"]} != {*rows["learner"]}:
            return Verdict(claim, UNRUN, how=f"the run did not measure {column}")
    return _weighed(Results(claim, rows, metric, store), every, store, run)


def _weighed(results: Results, every: pd.DataFrame, store: Store | None, run: str) -> Verdict:
    """The verdict on the repeats that all contenders share; ``every`` has all repeats' rows."""
    claim = results.claim
    measured = FIGURES[claim.measure](results)
    sure = None if np.isnan(measured) else interval_of(results, measured, store, run)
    helped, unknown = convergence(results)
    word, why = FAILS, ""
    if few := too_few_trees(results):
        word, why = SMALL, few
    elif np.isnan(measured):
        why = _lack(claim)
    elif claim.measure == UNJUDGED:
        word, why = FIGURE, "machines differ"
    elif short := shortfall(results, measured):
        why = short
    else:
        word = _decided(claim, sure or (measured, measured))
        if word == HOLDS and helped:
            word, why = GROWING, f"the last trees still help {helped}"
    how = _how(results) + _lacking(results.frame, every)
    how += f"; not known whether converged: {unknown}" if unknown else ""
    how += f"; {why}" if why else ""
    return Verdict(claim, word, measured, _shown(claim, measured, sure), how, sure)


def _decided(claim: Claim, ends: tuple[float, float]) -> str:
    """The word on a claim whose figure lies between the ends of its interval."""
    met = [claim.met(end) for end in ends]
    around = claim.two_sided and ends[0] < claim.near < ends[1]
    return HOLDS if all(met) else UNDECIDED if any(met) or around else FAILS


def _shown(claim: Claim, figure: float, sure: Interval | None = None) -> str:
    if np.isnan(figure):
        return "-"
    shown, *ends = map(MEASURES[claim.measure].form.format, (figure, *(sure or ())))
    return f"{shown} ({' to '.join(ends)})" if ends else shown


def _lack(claim: Claim) -> str:
    """The reason for a missing figure."""
    if claim.measure in CURVES:
        return "equal at every budget"
    if claim.measure in STAGES:
        return "a stored model or its data is gone, or no setting has the same tradeoff"
    limited = claim.budget < inf
    lack = "no operating point within the budget" if limited else "target not reached"
    return f"{lack} in at least one repeat"


def _lacking(rows: pd.DataFrame, every: pd.DataFrame) -> str:
    """Repeats and trials without a result that the figure leaves out."""
    more = every.groupby(_REPEAT).ngroups - rows.groupby(_REPEAT).ngroups
    bad = every[~every["status"].isin(["ok", "skipped"]) | (every["audit"] == "failed")]
    trials = len(bad.drop_duplicates(["learner", *_REPEAT, "params"]))
    lacking = f"; {more} more without results of every learner" if more else ""
    return f"{lacking}; failed trials: {trials}" if trials else lacking


def _sizes(claim: Claim, use: DatasetUse) -> Verdict:
    """Compare rows and features with the paper's; only data of full size can fail."""
    rows = [int(use.rows[split]) for split in ("train", "valid", "test")]
    shown = f"{'/'.join(map(str, rows))} x {use.features}"
    found = zip((*rows, use.features), claim.sizes, strict=True)
    word = HOLDS if all(size in (0, have) for have, size in found) else FAILS
    if word == FAILS and use.size != "paper":
        return Verdict(claim, UNRUN, shown=shown, how="the paper's rows are in profile paper")
    return Verdict(claim, word, shown=shown, how="rows to train/validate/test x features")


def _with_cost(frame: pd.DataFrame, cost: str) -> pd.DataFrame:
    """Add a column for a number of the operating point; 0 for learners without it."""
    if not cost.startswith(OF_POINT):
        return frame
    key = cost.removeprefix(OF_POINT)
    points = [json.loads(text) if isinstance(text, str) else {} for text in frame["point"]]
    return frame.assign(**{cost: [float(point.get(key, 0.0)) for point in points]})


def _how(results: Results) -> str:
    """The measurement in words, with each repeat's figure to show a mean near the border."""
    claim = results.claim
    wanted = f"{claim.near:g} within {claim.within:g}" if claim.two_sided else claim.holds
    words = [
        (f"{claim.measure} of {' against '.join(claim.labels)}", True),
        (results.metric.name, claim.measure not in TIMES),
        (
            f"keeping {share_of(1.0, claim.keeps, True):.0%} on validation",
            claim.measure in ("saving", "cost"),
        ),
        (f"up to {claim.budget:g}", claim.budget < inf),
        (f"budgets {' to '.join(f'{x:g}' for x in claim.budgets)}", claim.budgets),
        (f"by {claim.cost}", claim.cost != "cost"),
        (f"wanted {wanted}", wanted),
    ]
    how = ", ".join(word for word, said in words if said)
    if len(results.repeats) == 1:
        return f"{how}; 1 repeat"
    shown = [_shown(claim, FIGURES[claim.measure](repeat)) for repeat in results.repeats]
    return f"{how}; {len(shown)} repeats: {', '.join(shown)}"


def _context(verdict: Verdict, info: RunInfo, use: DatasetUse) -> Verdict:
    """Add the conditions of run and data."""
    sampled = [note.text for note in use.notes if note.kind == SAMPLED]
    asked = [f"--set {setting}" for setting in info.request.get("settings", ())]
    asked += [f"--costs {costs}"] if (costs := info.request.get("costs")) else []
    state = "" if info.state == "finished" else info.state
    how = "; ".join([verdict.how, f"profile {info.profile}", *asked, *sampled])
    data = GENERATED if verdict.claim.ours else SAMPLE if sampled else PAPERS
    data = "" if verdict.word == UNRUN else data
    return replace(verdict, how=how, data=data, unfinished=state)


def tally(verdicts: Sequence[Verdict]) -> str:
    """Counts such as ``holds: 3 (generated: 1), does not hold: 1, data absent: 4``."""
    counts = Counter(verdict.word for verdict in verdicts)
    data = Counter(verdict.data for verdict in verdicts if verdict.word == HOLDS)
    weak = ", ".join(f"{kind}: {data[kind]}" for kind in (SAMPLE, GENERATED) if data[kind])
    notes = {HOLDS: f" ({weak})" if weak else ""}
    shown = (f"{word}: {counts[word]}{notes.get(word, '')}" for word in WORDS if counts[word])
    return ", ".join(shown) or "no claims"


def interval_of(
    results: Results, measured: float, store: Store | None, run: str
) -> Interval | None:
    """The interval around a figure; None if its variation is unknown.

    A claim on several pairs, or on every budget, is about the least of several differences. Its
    interval reaches from the least of their lower ends to the least of their upper ones.
    """
    claim, frame, level = results.claim, results.frame, None
    # values are stored for the first metric and the total cost
    drawn = claim.measure in _DRAWN and not (claim.ours or claim.metric)
    if store and drawn and (frame[claim.cost] == frame["cost"]).all():
        level = _of_units(results, store, run)
    level = level or _of_repeats(results)
    if level is None or not np.isfinite(level.draws).all():
        return None
    name, parts = results.metric.name, [*np.eye(len(level.draws))]
    if claim.measure == "quality":
        ends = [quality_interval(name, level, part) for part in parts]
    else:
        ends = [interval(level, part) for part in parts]
    lows, highs = zip(*ends, strict=True)
    shift = _scaled(claim, measured) - float(level.observed.min())
    low, high = min(lows) + shift, min(highs) + shift
    if claim.measure == "saving":
        return Interval(1 - math.exp(high), 1 - math.exp(low))
    if claim.measure in TIMES:
        return Interval(math.exp(low), math.exp(high))
    return Interval(low, high)


def _scaled(claim: Claim, figure: float) -> float:
    """A figure on the scale of its draws: the logarithm of a time or of a ratio of times, which are
    above 0; for a saving that of the remaining cost."""
    if claim.measure in TIMES:
        return math.log(max(figure, _LEAST))
    return math.log(max(1 - figure, _LEAST)) if claim.measure == "saving" else figure


def _of_repeats(results: Results) -> Level | None:
    claim = results.claim
    values = [_scaled(claim, FIGURES[claim.measure](repeat)) for repeat in results.repeats]
    if len(values) < 2:
        return None
    # constant over units, for any number of them
    return joined([of_units(np.full((1, 1 + _DRAWS), one), _DRAWS) for one in values], True)


def _of_units(results: Results, store: Store, run: str) -> Level | None:
    """The level of the figure's parts (k,); None if some contender has no values."""
    claim, keys = results.claim, sorted(results.keys)
    each = [
        {
            (repeat.fold, repeat.seed): repeat
            for repeat in stored_repeats(
                store, run, c.dataset or claim.dataset, [c.learner], blocks=BLOCKS, has=c.has
            )
        }
        for c in claim.contenders
    ]
    if not all(by_key.keys() >= results.keys for by_key in each):
        return None
    repeats, values = [each[0][key] for key in keys], []
    kept = np.ones(1 + _DRAWS, dtype=bool)  # draws in which the metric is defined
    for key, (_, seed) in zip(keys, with_seeds(repeats), strict=True):
        candidates = [next(iter(by_key[key].candidates.values())) for by_key in each]
        means = [draw(candidate, _DRAWS, seed) for candidate in candidates]
        kept &= np.logical_and.reduce([mean.defined for mean in means])
        values.append(_parts(claim, means, results.higher))
    return None if lacking(kept) else over_repeats(repeats, [value[:, kept] for value in values])


def _best(means: Means, higher: bool, budget: float = inf) -> FloatArray:
    """The quality of the single best point within a mean cost in each draw, as papers report."""
    paid = budget * (1 + _ROUNDING)
    return taken(
        means.test_quality, best_within(means.valid_cost[0], means.valid_quality, paid, higher)
    )


def _costs(claim: Claim, means: Sequence[Means], higher: bool) -> tuple[FloatArray, FloatArray]:
    """Two costs by draw: the first's at which it keeps the share of the second's (or its own) best,
    and that best's. NaN where the share is not kept."""
    first, second = means[0], means[min(1, len(means) - 1)]
    sign = 1 if higher else -1
    best = best_within(second.valid_cost[0], second.valid_quality, inf, higher)
    aim = share_of(taken(second.valid_quality, best), claim.keeps, higher)
    reaches = sign * first.valid_quality >= sign * aim[:, None]
    kept = cheapest(first.valid_cost, reaches)
    return taken(first.test_cost, kept), taken(second.test_cost, best)


def _parts(claim: Claim, means: Sequence[Means], higher: bool) -> FloatArray:
    """The parts of a figure (k, draws), on its scale; the figure is the least of their means."""
    if claim.measure == "saving":
        paid, whole = _costs(claim, means, higher)
        left = np.where(np.isnan(paid), 1.0, paid / np.maximum(whole, _LEAST))
        return np.log(np.maximum(left, _LEAST))[None]
    if claim.measure not in CURVES:
        found = _best(means[0], higher, claim.budget)[None]
        return found if claim.measure == "quality" else found / _best(means[1], higher)
    # the last of the means are the constant's, at the start of all curves
    low, high = claim.budgets
    budgets = np.linspace(low, high, 2 * _BUDGETS + 1)[1::2]
    wholes = [Means(*map(np.hstack, zip(means[-1], own, strict=True))) for own in means[:-1]]
    curves = [np.stack([_best(whole, higher, b) for b in budgets]) for whole in wholes]
    gaps = [one - two if higher else two - one for one, two in pairwise(curves)]
    if claim.measure == "margin":
        gaps = [gap.mean(axis=0, keepdims=True) for gap in gaps]
    return np.concatenate(gaps)
