"""Measures of claims: one figure each from the results of a claim's contenders; and reasons why a
figure does not settle its claim.

Points are chosen on validation. Figures are test-split values, averaged over repeats. More
operating points never lose a claim if validation orders them as test does. A learner's curve begins
at the constant predictor, which is free. It holds the best affordable point up to the next better
one, and is read at the claim's budgets.

Stages of a cascade are counted on its stored model, through which the test rows walk. They are its
remaining stages: the models served have no others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bench_claims.claims import CONSTANT, FLOORED, STAGES, TIMES, Claim, compared
from bench_core.datasets.cache import open_prepared
from bench_core.errors import InputError
from bench_core.metrics.frontier import frontier, share_of
from bench_core.results import operating_points as selection
from bench_core.results.budgets import CAP
from bench_core.results.operating_points import REPEAT, Criterion, growing
from bench_core.results.store_files import load_model, state_path, states_folder
from bench_core.serving.block_walk import BlockWalk

if TYPE_CHECKING:
    import pandas as pd

    from bench_core.arrays import FloatArray
    from bench_core.results.store import Store

NAN, inf = float("nan"), float("inf")
_KEPT = ("test_quality", "test_cost", "reference_quality", "reference_cost")


def stages_of(store: Store, trial: str, point: str) -> tuple[float, float]:
    """Number of stages of a trial's model at a point (JSON), and the share of test rows that pass
    the first; NaN if the model or its data are gone."""
    spec, states = store.trial(trial), states_folder(store.path)
    try:
        splits = open_prepared(Path(spec.data))
        model = load_model(state_path(states, spec.fit))
    except InputError:
        return NAN, NAN
    program = model.program(json.loads(point))
    if all(step.gate == "always" for step in program.steps):
        return 1.0, 1.0
    test = splits.test
    boundaries = None if test.queries is None else test.queries.boundaries
    rows, _ = BlockWalk(program, splits.costs).run(test.X, boundaries)
    return float(len(program.steps)), float(np.average(rows.last > 0, weights=test.weights))


@dataclass(frozen=True, eq=False)
class Results:
    """Rows of a claim's contenders on its data set; ``learner`` holds the contenders' labels."""

    claim: Claim
    frame: pd.DataFrame
    metric: Criterion
    store: Store | None = None  # for stages

    @property
    def higher(self) -> bool:
        """True if more of the metric is better."""
        return self.metric.higher_is_better

    @cached_property
    def repeats(self) -> list[Results]:
        """The results of each repeat."""
        return [replace(self, frame=part) for _, part in self.frame.groupby([*REPEAT], sort=True)]

    @property
    def keys(self) -> set[tuple[int, int]]:
        """Fold and seed of each repeat."""
        return {*zip(*(map(int, self.frame[name]) for name in REPEAT), strict=True)}

    @cached_property
    def points(self) -> pd.DataFrame:
        """Operating points of all contenders."""
        claim = self.claim
        cap = claim.budget if claim.kind == CAP else None
        return selection.operating_points(self.frame, self.metric.name, claim.cost, cap=cap)

    def of(self, place: int, table: pd.DataFrame | None = None) -> pd.DataFrame:
        """The points, or the rows of a table, of the contender at this place of the claim's list.
        The first replaces a missing second."""
        label = self.claim.labels[min(place, len(self.claim.labels) - 1)]
        table = self.points if table is None else table
        return table[table["learner"] == label]

    def best(self, place: int) -> pd.DataFrame:
        """The best point on validation of each repeat."""
        return selection.best_points(self.of(place), self.higher)

    @cached_property
    def keeping(self) -> pd.DataFrame:
        """For each repeat the first learner's cheapest point whose validation quality is a share of
        the second's (or its own) best, as papers report: without a margin. Columns: test quality
        and cost, those of the second at its best, and ``reached``; the others are NaN without it,
        without a sound fit of the second, or if the constant has that quality."""
        import pandas as pd

        sign, rows = 1 if self.higher else -1, []
        constant = selection.constants(self.points)
        for _, repeat in self.points.groupby([*REPEAT]):
            others = self.of(1, repeat)
            others = others[~selection.marked(others)]
            row = dict.fromkeys(_KEPT, NAN) | {"reached": False}
            if len(best := selection.best_points(others, self.higher)):
                top = best.iloc[0]
                aim = share_of(float(top["valid_quality"]), self.claim.keeps, self.higher)
                enough = sign * (repeat["valid_quality"] - aim) >= 0
                first = self.of(0, repeat)
                first = first[enough[first.index]].sort_values("valid_cost", kind="stable")
                row |= {"reference_quality": top["test_quality"]}
                row |= {"reference_cost": top["test_cost"]}
                if len(first) and not (enough & constant[repeat.index]).any():
                    row |= {name: first.iloc[0][name] for name in ("test_quality", "test_cost")}
                    row |= {"reached": True}
            rows.append(row)
        return pd.DataFrame(rows)

    def falls_short(self, quality: float, of: float) -> bool:
        """True if a quality is below the claim's share of another."""
        least = share_of(of, self.claim.keeps, self.higher)
        return quality < least if self.higher else quality > least

    def stages(self, points: pd.DataFrame) -> FloatArray:
        """Number of stages, and share of test rows that pass the first, at each point (p, 2)."""
        assert self.store is not None
        keys = ["learner", *REPEAT, "params", "point"]
        test = self.frame[self.frame["split"] == "test"]
        trials = points[keys].merge(test[[*keys, "trial"]], on=keys, how="left")
        names = zip(trials["trial"].astype(str), trials["point"].astype(str), strict=True)
        return np.array([stages_of(self.store, *name) for name in names])


def saving(results: Results) -> float:
    """1 - (the first learner's cost at which it keeps a share of the second's best quality) / (the
    second's cost at its best).

    A learner that never keeps it saves nothing if the claim is an upper bound; otherwise there is
    no figure.
    """
    own, most = results.keeping, results.claim.at_most
    # by repeat; NaN where the quality is not kept
    spent = (own["test_cost"] / own["reference_cost"]).where(own["reached"])
    return 1.0 - float(spent.fillna(1.0).mean() if most else spent.mean(skipna=False))


def quality(results: Results) -> float:
    """The first learner's quality within the budget. NaN unless every repeat affords a point: a
    mean over the others would be biased."""
    claim = results.claim
    limit = inf if claim.kind == CAP else claim.budget
    chosen = selection.best_points(results.of(0), results.higher, limit)
    every = results.of(0, results.frame).groupby([*REPEAT]).ngroups
    return float(chosen["test_quality"].mean(skipna=False)) if len(chosen) == every else NAN


def quality_kept(results: Results) -> float:
    """The first learner's quality within the budget over the second's best."""
    return quality(results) / float(results.best(1)["test_quality"].mean(skipna=False))


def cost(results: Results) -> float:
    """The first learner's cost at its cheapest point that keeps a share of the best quality: the
    second learner's, or its own without a second."""
    return float(results.keeping["test_cost"].mean(skipna=False))


def margin(results: Results) -> float:
    """The first's mean quality minus the second's over the claim's budgets; the least over
    neighbouring pairs of the list."""
    return round(min(float(gap @ width / width.sum()) for gap, width in _gaps(results)), 12)


def least_margin(results: Results) -> float:
    """Like ``margin``, at the budget where it is least: for "always above". NaN for curves that are
    equal everywhere."""
    gaps = [gap for gap, _ in _gaps(results)]
    equal = any(gap.min() == 0.0 == gap.max() for gap in gaps)
    return NAN if equal else float(min(gap.min() for gap in gaps))


def _gaps(results: Results) -> list[tuple[FloatArray, FloatArray]]:
    """The first's advantage for each pair of neighbours, on each interval (s,) of budgets with both
    curves flat; and the widths (s,). The last budget is included."""
    sign, (low, high) = 1.0 if results.higher else -1.0, results.claim.budgets
    points, curves, gaps = results.points, [], []
    for label in results.claim.labels:
        own = points[points["learner"].isin([label, CONSTANT])].assign(learner=label)
        curves.append(_curve(own, results.higher))
    for pair in pairwise(curves):
        # budgets at which either curve rises, and the ends of the range
        steps = np.unique(np.concatenate([[low, high], *(budgets for budgets, _ in pair)]))
        steps = steps[(steps >= low) & (steps <= high)]
        # qualities from such a budget up to the next
        better, worse = (
            quality[np.searchsorted(budgets, steps, "right") - 1] for budgets, quality in pair
        )
        gaps.append((sign * (better - worse), np.diff(steps, append=high)))
    return gaps


def _curve(points: pd.DataFrame, higher: bool) -> tuple[FloatArray, FloatArray]:
    """Return the budgets at which the mean test quality over repeats changes, from the first that
    allows a point in every repeat, and that quality."""
    repeats = []
    for _, repeat in points.groupby([*REPEAT]):
        valid, paid, test = (
            repeat[name].to_numpy(dtype=np.float64)
            for name in ("valid_quality", "valid_cost", "test_quality")
        )
        chosen = frontier(paid, valid, higher)
        repeats.append((paid[chosen], test[chosen]))
    budgets = np.unique(np.concatenate([paid for paid, _ in repeats]))
    budgets = budgets[budgets >= max(paid[0] for paid, _ in repeats)]
    held = [test[np.searchsorted(paid, budgets, "right") - 1] for paid, test in repeats]
    quality = np.mean(held, axis=0)
    known = ~np.isnan(quality)
    return budgets[known], quality[known]


def minutes(results: Results, place: int = 0) -> float:
    """Median minutes of the first learner's fits, without its base learner's."""
    fits = results.of(place, results.frame).drop_duplicates([*REPEAT, "params"])
    return float(fits["fit_seconds"].median()) / 60.0


def time_ratio(results: Results) -> float:
    """Median seconds of the first learner's fits over the second's."""
    return minutes(results) / minutes(results, 1)


def stages(results: Results) -> float:
    """Number of remaining stages."""
    return float(results.stages(results.best(0))[:, 0].mean())


def passed(results: Results) -> float:
    """The share of rows that pass the first stage, minus the second learner's at the same
    trade-off."""
    import pandas as pd

    def tradeoff(params: Any) -> Any:
        return json.loads(str(params)).get("tradeoff")

    differences = []
    for repeat in results.repeats:
        best, others = repeat.best(0), repeat.of(1)
        others = others[others["params"].map(tradeoff) == tradeoff(best["params"].iloc[0])]
        if others["params"].nunique() != 1:
            return NAN
        pair = pd.concat([best, selection.best_points(others, results.higher)])
        first, second = repeat.stages(pair)[:, 1]
        differences.append(first - second)
    return float(np.mean(differences))


_MEASURES = (
    *(saving, quality, quality_kept, cost, margin, least_margin, time_ratio, minutes),
    *(stages, passed),
)
FIGURES: Mapping[str, Callable[[Results], float]] = {
    measure.__name__.replace("_", "-"): measure for measure in _MEASURES
}
"""Measures by name."""


def shortfall(results: Results, measured: float) -> str:
    """A message if the chosen points miss the required quality on test, for a saving, a cost, a
    quality or stages; otherwise "". A quality lost on test is not a saving."""
    claim = results.claim
    if claim.measure in STAGES:  # stages of a model without quality show nothing
        own, other = (float(results.best(k)["test_quality"].mean(skipna=False)) for k in range(2))
        short = results.falls_short(own, other)
        return f"on test its best quality is {own:.4g}, and the other's {other:.4g}" * short
    if claim.measure not in FLOORED:
        return ""
    have, best = measured, NAN  # a quality is its own figure
    if claim.measure != "quality":
        columns = (results.keeping[x] for x in ("test_quality", "reference_quality"))
        have, best = (float(column.mean(skipna=False)) for column in columns)
    if claim.floor and not compared(claim.floor, have):
        return f"the quality there is {have:.4g}, not {claim.floor}"
    if claim.measure == "saving" and not claim.at_most and results.falls_short(have, best):
        return f"on test the quality there is {have:.4g}, and the other's best {best:.4g}"
    return ""


def too_few_trees(results: Results) -> str:
    """A message on the first contender with fewer trees than the claim requires; "" if there is
    none."""
    for place, label in enumerate(results.claim.labels):
        params = results.of(place, results.frame)["params"].astype(str).unique()
        most = max((_trees(text) for text in params), default=0)
        if 0 < most < results.claim.trees:
            return f"{label} has {most} trees, the paper {results.claim.trees:g}"
    return ""


def convergence(results: Results) -> tuple[str, str]:
    """Contenders that had not converged, and contenders for which that is unknown. The contender
    whose merit is claimed is left out: more trees may only help it.

    A learner is growing if in some repeat the last trees of its best setting raised its best
    quality. That is unknown if its points do not show its trees.
    """
    claim, higher = results.claim, results.higher
    helped, unknown = [], []
    judged = range(0 if claim.adverse(higher) else 1, len(claim.labels))
    for place in judged if claim.measure not in TIMES else ():
        states, points = [], results.of(place).dropna(subset="valid_quality")
        trained = points[~points["point"].astype(str).str.contains(f'"{CONSTANT}"')]
        for _, repeat in trained.groupby([*REPEAT]):
            best = repeat.loc[repeat["valid_quality"].agg("idxmax" if higher else "idxmin")]
            if _trees(str(best["params"])):
                fit = repeat[repeat["params"] == best["params"]]
                state = growing(fit, higher)
                states.append(state if state is None else state or len(fit) < 2)
        if True in states:
            helped.append(claim.labels[place])
        if None in states:
            unknown.append(claim.labels[place])
    return ", ".join(helped), ", ".join(unknown)


def _trees(params: str) -> int:
    """The trees of a setting, or of its base learner; 0 if there are none."""
    setting = json.loads(params or "{}")
    while isinstance(setting, Mapping):
        if setting.get("trees"):
            return int(setting["trees"])
        setting = setting.get("base")
    return 0
