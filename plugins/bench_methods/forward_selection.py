"""Boosting on features selected forward by gain per price: a practitioner's yardstick.

What one would do without any method for costs: greedy forward selection (the wrapper of R. Kohavi,
G. John, "Wrappers for feature subset selection", Artificial Intelligence 97, 1997), by price, and
one gradient boosted model (see ``gbrt``) for each of several of the nested subsets.

From the features that are free, purchases are made one after the other. A purchase is a set of
sensors that some feature still lacks: its price is what these sensors add, and it brings every
feature that can then be read. Of the purchases the one with the highest

    (L(S) - L(S + a)) / price(a)^price_power,    price_power = 1 by default

is next. L is the mean loss on training rows that were held out, of boosted trees on the others:
those of S, continued by 10 trees that may also test what a brings. So a feature that helps only
together with bought ones is seen. Trees on S are continued until L stops falling.

An operating point is a model of its own on a subset, boosted on all training rows until the loss of
the validation rows stops falling. The sizes of the subsets (in features) grow by about the same
factor; the first has what is free, the last has everything. There is no lambda.

Departures
- A wrapper tries every feature with cross-validation. Here only the 8 purchases that promise most
  are tried: by how much their best feature alone explains of the residuals
  (``Subsets.explained``), per price. The others come behind those that gain.
- Between two points there are at most 4 rounds, so that late rounds make several purchases.
- Rows are held out in turn, a fifth each time, until 1000 were (copies counted); at most 10000
  take part in the selection (whole queries). For K classes 10 trees are 10 / K iterations, at
  least one.
- ``lambdarank`` has no loss to be measured: the run's metric stands in for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
from bench_models.boosting import BoostedTrees, bench_warm_up
from bench_models.path_of_models import PathOfModels, Subsets, growing, readable, rows_of
from bench_models.staged import MOST_POINTS, StagedModel
from bench_models.tradeoff import labels_of

from bench_core import (
    Examples,
    FitContext,
    Prices,
    Task,
    hookimpl,
    linear,
    log,
    param,
    provide_learners,
)
from bench_core.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from bench_trees import Ensemble, Loss
    from bench_trees.losses import Gradients, Labels
    from bench_trees.threads import Workers

bench_warm_up = hookimpl(bench_warm_up)

TRIED = 8
"""Purchases of a round that are tried with trees."""

TRIAL_TREES = 10
ROUNDS = 4
"""Rounds between two operating points, at most."""

PARTS = 5
HELD_OUT = 1000
"""Rows held out, one part of five after the other, after which no further part is."""

SELECTION_ROWS = 10000
LEAST_FALL = 1e-3
"""A loss that falls by a smaller share has stopped falling."""

PATIENCE = 2


@dataclass(frozen=True, kw_only=True)
class ForwardSelection(BoostedTrees):
    """Boosted trees on features selected forward by held-out gain per price."""

    name: ClassVar[str] = "forward-selection"
    adds_up: ClassVar[bool] = False

    steps: int = param(
        12,
        "operating points: numbers of features, growing by the same factor",
        least=1,
        most=MOST_POINTS - 1,
    )
    price_power: float = param(
        1.0, "gain is divided by price to this power", least=0, most=1, search=linear(0, 1)
    )
    trees: int = param(
        1000, "most boosting iterations of each model (for K classes K trees each)", least=0
    )
    learning_rate: float = param(
        0.2, "shrinkage of every tree's output (eta)", above=0, search=log(0.03, 1)
    )
    leaves: int = param(16, "most leaves of a tree", least=2, search=log(4, 64))
    depth: int | None = param(None, "most split levels of a tree, none = no limit", least=1)

    def fit(
        self, train: Examples, valid: Examples, prices: Prices, context: FitContext
    ) -> PathOfModels:
        """Select on ``train``; ``valid`` ends boosting only."""
        whole = Subsets(self, self.settings(context.task, self.leaves), train, prices, context)
        subsets = self._selected(whole)
        models: list[StagedModel] = []
        for k, features in enumerate(subsets):
            context.progress(len(subsets) + k, 2 * len(subsets))
            ensemble = Fit.begin(whole, valid).converged(features, self.trees).ensemble
            models.append(whole.whole(ensemble, {"features": int(features.sum())}))
        context.progress(1, 1)
        return PathOfModels(models)

    def _selected(self, whole: Subsets) -> list[BoolArray]:
        """The nested subsets of features that are reported."""
        prices, progress = whole.prices, whole.context.progress
        bought = readable(prices, np.zeros(prices.features, dtype=bool))
        found = [bought]
        fits = settled([Fit.begin(*part) for part in held_out(whole)], bought)
        sizes = growing(prices.features, self.steps)
        for k, size in enumerate(sizes):
            progress(k, 2 * len(sizes))
            batch = -(-(size - int(bought.sum())) // ROUNDS)
            while size < prices.features and int(bought.sum()) < size:
                goal = min(size, int(bought.sum()) + batch)
                bought = self._extended(fits, bought, goal)
                fits = settled(fits, bought)
            if size == prices.features:
                bought = np.ones_like(bought)
            if int(bought.sum()) > int(found[-1].sum()):
                found.append(bought)
        return found

    def _extended(self, fits: Sequence[Fit], bought: BoolArray, goal: int) -> BoolArray:
        """Purchases, the best first, until ``goal`` features can be read."""
        prices = fits[0].subsets.prices
        found = purchases(prices, bought)
        price = np.array([prices.sensor[list(sensors)].sum() for sensors in found])
        per, brings = price**self.price_power, list(found.values())
        alone = np.sum([fit.subsets.explained(fit.own) for fit in fits], axis=0)
        promise = np.array([alone[features].max() for features in brings]) / per
        order = np.argsort(-promise, kind="stable")
        tried = order[:TRIED]
        new = [continued(fits, bought_too(prices, bought, brings[k])) for k in tried]
        gain = (mean_loss(fits) - np.array([mean_loss(one) for one in new])) / per[tried]
        best = tried[np.argsort(-gain, kind="stable")][: int((gain > 0).sum())]
        for k in (*best, *(k for k in order if k not in best)):
            bought = bought_too(prices, bought, brings[k])
            if int(bought.sum()) >= goal:
                break
        return bought


def bought_too(prices: Prices, bought: BoolArray, features: list[int]) -> BoolArray:
    """What can be read (d,) once these features are bought besides."""
    more = bought.copy()
    more[features] = True
    return readable(prices, more)


def purchases(prices: Prices, bought: BoolArray) -> dict[tuple[int, ...], list[int]]:
    """The sets of unpaid sensors that some feature needs, each with the features that need just
    these."""
    unpaid = ~prices.bought_for(bought) & (prices.sensor > 0)
    found: dict[tuple[int, ...], list[int]] = {}
    for j in np.flatnonzero(~bought).tolist():
        sensors = prices.sensors_of(j)
        found.setdefault(tuple(sensors[unpaid[sensors]].tolist()), []).append(j)
    return found


def held_out(whole: Subsets) -> list[tuple[Subsets, Examples]]:
    """Training rows and those held out from them, several times where these are few."""
    train, n = whole.train, len(whole.train)
    row = np.repeat(np.arange(n), 1 if train.multiplicity is None else train.multiplicity)
    unit = _units(train, row, whole.context.seed)
    size = np.bincount(unit)
    taken = np.flatnonzero(np.cumsum(size) <= max(SELECTION_ROWS, size[0]))
    if whole.context.task in (Task.BINARY, Task.MULTICLASS):  # each part gets of every class
        label = np.zeros(len(size))
        label[unit] = train.y[row]
        taken = taken[np.argsort(label[taken], kind="stable")]
    if len(taken) < 2:
        return [(whole, train)]
    of_unit = np.full(len(size), -1)
    of_unit[taken] = np.arange(len(taken)) % PARTS
    part, found, held = of_unit[unit], [], 0
    for k in range(min(PARTS, len(taken))):
        out = np.bincount(row[part == k], minlength=n)
        rest = np.bincount(row[(part != k) & (part >= 0)], minlength=n)
        found.append((whole.of_rows(rest), rows_of(train, out)))
        held += int(out.sum())
        if held >= HELD_OUT:
            break
    return found


def _units(train: Examples, row: IntArray, seed: int) -> IntArray:
    """What is held out together, for each copy of a ``row`` (c,): numbers in random order.

    Whole queries, or single copies. The order of copies comes from the rows' cells and not from
    their places, so that a row of multiplicity m is divided as m rows are.
    """
    rng = np.random.default_rng(seed)
    if train.queries is not None:
        return np.asarray(rng.permutation(len(train.queries))[train.queries.index()[row]])
    factor = rng.integers(1 << 63, size=train.X.shape[1] + 2, dtype=np.uint64) * 2 + 1
    key = train.y.view(np.uint64) * factor[0]
    for j, other in enumerate(factor[2:]):
        key += np.ascontiguousarray(train.X[:, j]).view(np.uint32) * other
    copy = key[row]
    order = np.argsort(copy, kind="stable")
    first = np.flatnonzero(np.append(True, np.diff(copy[order]) > 0))
    number = np.empty(len(row), np.uint64)  # of a copy among equal ones
    number[order] = np.arange(len(row)) - np.repeat(first, np.diff(np.append(first, len(row))))
    return np.unique(copy + number * factor[1], return_inverse=True)[1].reshape(-1)


@dataclass(frozen=True, eq=False)
class Fit:
    """Boosted trees so far, with the scores of the rows they were fitted to, ``own`` (K, n), and of
    ``other`` rows, ``far`` (K, m)."""

    subsets: Subsets
    other: Examples
    own: FloatArray
    far: FloatArray
    parts: tuple[Ensemble, ...] = ()

    @classmethod
    def begin(cls, subsets: Subsets, other: Examples) -> Self:
        """The best constant."""
        base = subsets.loss.base(labels_of(subsets.train))[:, None]
        own, far = (np.repeat(base, len(rows), axis=1) for rows in (subsets.train, other))
        return cls(subsets, other, own, far)

    def more(self, features: BoolArray, iterations: int) -> Fit:
        """Continued by iterations that test these features (d,)."""
        loss = _From(self.subsets.loss, self.own)
        part = self.subsets.boost(features, lambda *_: None, loss=loss, trees=iterations)
        model = self.subsets.whole(part, {})
        own, far = (
            old + next(iter(model.predict_path(rows.features))).scores.reshape(len(rows), -1).T
            for old, rows in ((self.own, self.subsets.train), (self.far, self.other))
        )
        return replace(self, own=own, far=far, parts=(*self.parts, part))

    @cached_property
    def loss(self) -> float:
        """The mean loss of the other rows, or what stands in for it; lower is better."""
        from bench_trees.losses import Measured

        loss, metric, rows = self.subsets.loss, self.subsets.context.metric, self.other
        if isinstance(loss, Measured):
            return loss.mean(self.far, labels_of(rows))
        value = metric.values(self.far[0], rows.y, rows.queries, rows.multiplicity).mean
        return -value if metric.higher_is_better else value

    def converged(self, features: BoolArray, most: int) -> Fit:
        """Continued until the loss of the other rows stops falling, by at most ``most``."""
        best = now = self
        done = waited = 0
        while done < most and waited < PATIENCE:
            step = min(max(5, done // 4), most - done)
            now, done = now.more(features, step), done + step
            if now.parts[-1].trees == 0:
                break
            waited = 0 if falls([now], [best]) else waited + 1
            best = best if waited else now
        return best

    @property
    def ensemble(self) -> Ensemble:
        """All trees as one ensemble."""
        from bench_trees import Ensemble

        base = self.subsets.loss.base(labels_of(self.subsets.train))
        if not self.parts:
            return Ensemble.of_trees([], [], base, self.subsets.prices.features)
        return replace(Ensemble.concat(self.parts), base=base)


def mean_loss(fits: Sequence[Fit]) -> float:
    """The mean over all parts held out."""
    return float(np.mean([fit.loss for fit in fits]))


def falls(new: Sequence[Fit], old: Sequence[Fit]) -> bool:
    """Whether the loss is lower by more than a trifle."""
    before = mean_loss(old)
    return mean_loss(new) < before - LEAST_FALL * abs(before)


def continued(fits: Sequence[Fit], features: BoolArray) -> list[Fit]:
    """All fits with the trees of one trial more."""
    outputs = fits[0].subsets.loss.outputs
    return [fit.more(features, max(1, TRIAL_TREES // outputs)) for fit in fits]


def settled(fits: list[Fit], features: BoolArray) -> list[Fit]:
    """The fits continued, trial by trial, while their loss falls."""
    while falls(new := continued(fits, features), fits):
        fits = new
    return fits


@dataclass(frozen=True, eq=False)
class _From:
    """A loss whose scores count from ``start`` (K, n)."""

    loss: Loss
    start: FloatArray

    @property
    def outputs(self) -> int:
        return self.loss.outputs

    def base(self, labels: Labels) -> FloatArray:
        return np.zeros(self.outputs)

    def gradients(self, scores: FloatArray, labels: Labels, crew: Workers) -> Gradients:
        return self.loss.gradients(self.start + scores, labels, crew)


bench_learners = provide_learners(ForwardSelection)
