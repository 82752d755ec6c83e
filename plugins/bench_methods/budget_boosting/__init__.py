"""Budget boosting: nested sets of features bought by price, a booster on each, and early exits.

A construction of this project from known parts: forward selection by gain per price (the wrapper of
R. Kohavi, G. John, Artificial Intelligence 97, 1997), boosted trees (``gbrt``), averages over
cross-validation folds (L. Breiman, "Stacked regressions", 1996, uses them all), and optimal
stopping by thresholds, as in cascades.

Methods that charge each split (``cegb``, ``miser``) charge a feature's full price to its first
split, though hundreds of later trees share it. Here the price is compared with the held-out gain of
several trees, and trees grown to convergence use the bought features.

    sets      S_1 c S_2 c ... c all features                              selection
    stage k   f_k = constant + mean over folds of a booster on S_k        folds
    routes    which rows stop at which stage                              policies
    model     the routes as operating points                              model

1. Training rows are divided into ``folds`` parts. The next features bought are those with the
   largest fall of held-out loss per price; sets grow by a quarter. If no single feature helps
   beyond chance, pairs with products that explain the residuals are tried. If the next set at least
   doubles the cost, cheaper sets of helpful features are added as points outside the chain.
2. On each set a booster per held-out part is trained on the other parts, in step, until their total
   held-out loss stops falling. Each stage restarts from the constant. The model is the mean of
   these boosters, or of fewer if their evaluation would cost more than a tenth of the set's price.
   Every training row is held out somewhere, so the following estimates are not optimistic.
3. Operating points are every set alone, and settings of early exits from a chain of stages. In
   classification rows with a likely enough class leave, in ranking documents of low rank. Settings
   are searched on the held-out rows; dominated ones are dropped.

``leaves = none`` chooses among 4, 16 and 64 by held-out loss. There is no lambda: the path covers
all costs. Folds depend on the seed. If ``valid`` is predicted worse than held-out training rows by
three standard errors, training rows differ from future rows (encoded by their own labels, or
older). ``valid`` is then the held-out part, with one booster per stage.

Departures
- Pairs are tried only if single features fail: at most 6, among the 500 most promising features,
  with a product that explains 20 variances of the residuals.
- Number of parts held out in turn, with n rows and K outputs: all if n K is at most 8000 (two
  divisions below 500 rows with no more features), three up to 400000, two up to a million, or one.
- Features are selected on at most 6000 rows; parts are held out until they have 1500 rows. With
  that many, the next two first purchases are operating points too. Sets with as many features as
  rows, or after 200 purchases, are doubled in order of promise, without trials. The effect on wide
  tables stands under "Results" of the learner's page.
- The number of leaves is chosen for the first set, for sets of twice as many features as at the
  last choice, and for the largest set of no more features than rows.
- The last stage is boosted on while the loss or, with 1500 held-out rows, the run's metric on them
  improves.
- Leaf values of classes have l2 = 1 and a split leaves second derivatives of .1, as ``gbrt``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from bench_models.boosting import BoostedTrees
from bench_models.nested_sets.held_out import Fits, HeldOutFit
from bench_models.nested_sets.routes import NestedBoosters, Route
from bench_models.nested_sets.subsets import Subsets
from bench_models.staged import MOST_POINTS
from bench_models.tradeoff import labels_of

from bench_core import (
    ON_VALIDATION,
    Examples,
    Features,
    FitContext,
    Prices,
    Task,
    log,
    param,
    provide_learners,
)
from bench_core.arrays import BoolArray
from bench_methods.budget_boosting.policies import Held, by_class, by_rank, kept, static
from bench_methods.budget_boosting.selection import (
    SELECTION_HELD_OUT,
    Division,
    converged,
    copies_of,
    divisions,
    drifts,
    fold,
    hastened,
    nested_sets,
    total,
    units,
)

if TYPE_CHECKING:
    from bench_trees import Settings

LEAVES = (4, 16, 64)
FEW_ROWS = 500
"""Fewer rows are divided into folds twice."""
FOLDS = ((8000, 10**9), (400_000, 3), (1_000_000, 2))
"""Limits of rows times outputs, and the maximum number of parts held out in turn."""
SELECTION_ROWS = 6000
SETTLED_ROWS = 10000
"""Maximum held-out rows for the search of exits."""
EVALUATION_SHARE = 0.1
MOST_SETTINGS = 60
MOST_CHAINED = 6
"""Maximum stages of a chain if evaluation has a price, paid at each stage."""


@dataclass(frozen=True, kw_only=True)
class BudgetBoosting(BoostedTrees):
    """Boosters on nested sets of features chosen by price, with early exits."""

    name: ClassVar[str] = "budget-boosting"
    adds_up: ClassVar[bool] = False

    trees: int = param(
        1000, "most boosting iterations of each stage (for K classes K trees each)", least=0
    )
    learning_rate: float = param(
        0.2, "shrinkage of every tree's output (eta)", above=0, search=log(0.05, 0.5)
    )
    depth: int | None = param(None, "most split levels of a tree, none = no limit", least=1)
    leaves: int | None = param(
        None, "most leaves of a tree; none: 4, 16 or 64, by held-out loss", least=2
    )
    min_rows: int = param(
        10, "least rows (copies counted) on each side of a split", least=1, search=log(3, 50)
    )
    folds: int = param(5, "parts that training rows are divided into, each held out once", least=2)
    exits: bool = param(True, "let rows leave early")

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> NestedBoosters:
        """Select sets of features and boost on each; ``valid`` detects drift of the rows."""
        # few rows: leaves may be smaller than min_rows
        least = max(1, min(self.min_rows, int(train.weights.sum()) // 30))
        settings = self.settings(context.task, self.leaves or LEAVES[1], min_rows=least)
        whole = Subsets(self, settings, train, prices, context)
        rng = np.random.default_rng(context.seed)
        selection = self._selection_folds(whole, rng)
        drifted = drifts(selection, valid, hastened(settings))
        if drifted:
            selection = [HeldOutFit.begin(selection[0].subsets, valid)]
            folds = [HeldOutFit.begin(whole, valid)]
        else:
            folds = [fold(whole, part) for part in self._divisions(whole, rng)]
        sets, extra = nested_sets(selection, settings)
        extra = extra[: max(0, MOST_POINTS - MOST_SETTINGS - len(sets))]
        sized = self._with_leaves(settings, folds, sets)
        many = sum(len(fold.held) for fold in folds) >= SELECTION_HELD_OUT
        ended, live = [folds], [np.zeros(prices.features, dtype=bool)]
        for k, features in enumerate([*sets, *extra]):
            own = sized[_size_of(sized, features)]
            # no later stage can correct the last one; on few rows the metric rises by chance
            by_metric = many and k + 1 == len(sets)
            now = converged(folds, features, own, self.trees, 2, by_metric=by_metric)
            context.progress(k + 1, len(sets) + len(extra))
            if any(booster.parts for booster in now):
                ended.append(now)
                live.append(features)
            if k + 1 == len(sets):
                chained = len(ended)
        model = _assembled(ended, live, whole, sized)
        facts = {**model.facts, **({"marks": [ON_VALIDATION]} if drifted else {})}
        return replace(model, routes=self._routes(model, ended[:chained], context), facts=facts)

    def _divisions(self, whole: Subsets, rng: np.random.Generator) -> list[Division]:
        n, folds = len(whole.train), divisions(whole, self.folds, rng)
        if whole.prices.features <= n < FEW_ROWS:
            return folds + divisions(whole, self.folds, rng)
        # a booster's time grows with rows times outputs
        work = n * whole.loss.outputs
        return folds[: next((most for limit, most in FOLDS if work <= limit), 1)]

    def _selection_folds(self, whole: Subsets, rng: np.random.Generator) -> list[HeldOutFit]:
        n, count = len(whole.train), units(whole)
        if n > SELECTION_ROWS:
            some = rng.permutation(count)[: max(2, count * SELECTION_ROWS // n)]
            whole = whole.of_rows(copies_of(whole, some))
        folds, held = [], 0
        for division in divisions(whole, self.folds, rng):
            folds.append(fold(whole, division))
            held += len(folds[-1].held)
            if held >= SELECTION_HELD_OUT:
                break
        return folds

    def _with_leaves(
        self, settings: Settings, folds: Fits, sets: Sequence[BoolArray]
    ) -> dict[int, Settings]:
        """Settings by number of features, with the number of leaves of least held-out loss. It is
        chosen for the first set, the last, and each set with twice the features of the last choice,
        among sets of no more features than rows."""
        rows = len(folds[0].subsets.train) + len(folds[0].held)
        sized: dict[int, Settings] = {}
        some = folds if len(folds[0].subsets.train) <= 4000 else folds[:1]
        few = [one for one in sets if one.sum() <= rows] or sets[:1]
        for features in few:
            size, last = int(features.sum()), max(sized, default=0)
            if size >= 2 * last or features is few[-1]:
                sized[size] = (
                    settings if self.leaves else self._best_leaves(settings, some, features)
                )
        return sized

    def _best_leaves(self, settings: Settings, folds: Fits, features: BoolArray) -> Settings:
        # large steps suffice to compare sizes of trees
        quick = replace(settings, learning_rate=max(0.3, self.learning_rate))
        loss = []
        for leaves in LEAVES:
            tried = replace(quick, max_leaves=leaves)
            loss.append(total(converged(folds, features, tried, min(self.trees, 60), 1)))
        return replace(settings, max_leaves=LEAVES[int(np.argmin(loss))])

    def _routes(
        self, model: NestedBoosters, ended: Sequence[Fits], context: FitContext
    ) -> list[Route]:
        """Routes with early exits through the stages of ``ended``, then every stage alone."""
        count = len(ended)
        alone = [Route([k], {"stage": k}) for k in range(count)]
        extra = [Route([k], {"stage": k}) for k in range(count, len(model.members))]
        if not self.exits or count < 3 or context.task == Task.REGRESSION:
            return [*extra, *alone]
        held = _held(model, ended, context)
        if context.task == Task.RANKING:
            return [*_pairs(held), *extra, *alone]
        if held.evaluation.any():
            stages = np.linspace(0, count - 1, MOST_CHAINED).round().astype(np.int64)
            return [_chained(held, np.unique(stages).tolist()), *extra, *alone]
        way, fixed = _chained(held, list(range(count))), [v.tolist() for v in static(count)]
        values, points = [*way.values, *fixed], [*way.points, *(dict(r.full) for r in alone[:-1])]
        return [*extra, replace(way, full=alone[-1].full, values=values, points=points)]


def _size_of(sized: Mapping[int, Settings], features: BoolArray) -> int:
    """Largest number of features with settings that does not exceed the set's."""
    return max((size for size in sized if size <= features.sum()), default=min(sized))


def _assembled(
    stages: Sequence[Fits],
    sets: Sequence[BoolArray],
    whole: Subsets,
    sized: Mapping[int, Settings],
) -> NestedBoosters:
    """The boosters of all stages as one ensemble, with the number averaged per stage."""
    from bench_trees import Ensemble

    prices, base = whole.prices, whole.loss.base(labels_of(whole.train))
    parts = [Ensemble.of_trees([], np.zeros(0, np.int32), base, prices.features)]
    start, members = [0, 0], [1]
    for boosters, features in zip(stages[1:], sets[1:], strict=True):
        count = sum(e.trees for e in boosters[0].parts)
        paid = float(prices.sensor[prices.bought_for(features)].sum())
        # a tree of L leaves has about log2 L splits on a path
        splits = np.log2(sized[_size_of(sized, features)].max_leaves or 2)
        share = (prices.tree + prices.split * splits) * count
        # their evaluation may cost a tenth of the features' price
        most = EVALUATION_SHARE * paid / share if share else len(boosters)
        members.append(int(np.clip(most, 1, len(boosters))))
        parts += [e for booster in boosters[: members[-1]] for e in booster.parts]
        start.append(sum(e.trees for e in parts))
    ensemble = Ensemble.concat(parts)
    leaves = {str(size): settings.max_leaves for size, settings in sized.items()}
    facts = {"leaves": leaves, "sets": [np.flatnonzero(s).tolist() for s in sets]}
    return NestedBoosters(ensemble, np.array(start), np.array(members), prices, (), facts)


def _held(model: NestedBoosters, ended: Sequence[Fits], context: FitContext) -> Held:
    """At most ``SETTLED_ROWS`` held-out rows with scores and costs at every stage."""
    # enough folds for SETTLED_ROWS rows
    fold_sizes = np.cumsum([len(fold.held) for fold in ended[0]])
    few = max(1, int(np.searchsorted(fold_sizes, SETTLED_ROWS, side="right")))
    folds = [stage[:few] for stage in ended]
    rows = _joined([fold.held for fold in folds[0]])
    scores = np.array([np.concatenate([f.held_scores for f in stage], axis=1) for stage in folds])
    chain, n = model.chain(range(len(ended))), len(rows)
    features, evaluation = [], []
    for walked in chain.stage_by_stage(Features(rows.X)):
        bill = chain.bills(walked)["path"]
        features.append(np.broadcast_to(bill.feature_cost(model.prices, n), n).copy())
        evaluation.append(np.broadcast_to(bill.evaluation_cost(model.prices, n), n).copy())
    # each stage's own evaluation cost
    own = np.diff(np.array(evaluation), axis=0, prepend=0.0)
    return Held(rows, scores, np.array(features), own, context.metric)


def _joined(parts: Sequence[Examples]) -> Examples:
    from bench_core import Queries

    first = parts[0]
    copies, queries = None, None
    if first.multiplicity is not None:
        copies = np.concatenate([examples.multiplicity for examples in parts])
    if first.queries is not None:
        sizes = [examples.queries.sizes for examples in parts if examples.queries is not None]
        queries = Queries.from_sizes(np.concatenate(sizes))
    X, y = (np.concatenate([getattr(examples, name) for examples in parts]) for name in ("X", "y"))
    return Examples(X, y, queries, copies)


def _chained(held: Held, stages: list[int]) -> Route:
    """A chain of stages with exits by the largest class probability."""
    found = kept(by_class(held.only(stages)), MOST_SETTINGS)
    values = [policy.values.tolist() for policy in found]
    points = [{"stage": stages[-1], "expected_cost": policy.cost} for policy in found]
    return Route(stages, values=values, points=points)


def _pairs(held: Held) -> list[Route]:
    """Routes of two stages, with settings of the number of documents that go on."""
    found = by_rank(held)
    routes: dict[tuple[int, int], list[int]] = {}
    best = {id(policy) for policy in kept([policy for *_, policy in found], MOST_SETTINGS)}
    for first, last, policy in found:
        if first < last and id(policy) in best:
            routes.setdefault((first, last), []).append(int(policy.values[0]))
    return [
        Route(
            pair,
            kind="rank",
            values=[[float(top)] for top in tops],
            points=[{"stage": pair[1], "after": pair[0], "best": top} for top in tops],
        )
        for pair, tops in sorted(routes.items())
    ]


bench_learners = provide_learners(BudgetBoosting, family="boosted trees")
