"""Boosting on growing sets of features, in step on several divisions of the training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from bench_models.boosting import binned
from bench_models.path_of_models import restricted
from bench_models.tradeoff import labels_of

from bench_core import Examples, FitContext, Queries, Task
from bench_core.arrays import BoolArray, Float32Array, FloatArray, IntArray

if TYPE_CHECKING:
    from bench_trees import Bins, Ensemble, Loss, Settings
    from bench_trees.arrays import UInt8Array
    from bench_trees.losses import Gradients, Labels
    from bench_trees.threads import Workers

Division = tuple[IntArray, IntArray]
"""Numbers of the units (queries, else rows) to fit on, and of those held out."""

CHUNK = 10
"""Least boosting iterations between two looks at the held-out loss; later a quarter more."""
PATIENCE = 2
LEAST_FALL = 2e-4
"""Of the constant's loss: a smaller fall is none."""


@dataclass(frozen=True)
class Continued:
    """A loss whose scores begin at ``start`` (K, n)."""

    loss: Loss
    start: FloatArray

    @property
    def outputs(self) -> int:
        """Number of scores K per row."""
        return self.loss.outputs

    def base(self, labels: Labels) -> FloatArray:
        """Nothing on top."""
        return np.zeros(self.outputs)

    def gradients(self, scores: FloatArray, labels: Labels, crew: Workers) -> Gradients:
        """Those of the loss at start + scores."""
        return self.loss.gradients(self.start + scores, labels, crew)


class MeasuredContinued(Continued):
    """The same of a loss with a value: boosting ends before it rises above that of the start."""

    def mean(self, scores: FloatArray, labels: Labels) -> float:
        """The mean loss at start + scores."""
        return float(self.loss.mean(self.start + scores, labels))  # type: ignore[attr-defined]


@dataclass(frozen=True)
class Binned:
    """Training rows with their bins and codes uint8 (d, n)."""

    rows: Examples
    bins: Bins
    codes: UInt8Array
    loss: Loss
    context: FitContext

    @classmethod
    def of(cls, train: Examples, max_bins: int, loss: Loss, context: FitContext) -> Binned:
        """All training rows."""
        return cls(train, *binned(train, max_bins, context), loss, context)

    @property
    def units(self) -> int:
        """Number of queries, else rows."""
        return len(self.rows if self.rows.queries is None else self.rows.queries)

    def take(self, units: IntArray) -> tuple[Binned, IntArray]:
        """The part of these units in their order in the data, and the numbers of its rows."""
        old, chosen, queries = self.rows, np.sort(units), None
        picked = chosen
        if old.queries is not None:
            inside = np.isin(old.queries.index(), chosen)
            picked, queries = np.flatnonzero(inside), Queries.from_sizes(old.queries.sizes[chosen])
        copies = None if old.multiplicity is None else old.multiplicity[picked]
        part = Examples(np.ascontiguousarray(old.X[picked]), old.y[picked], queries, copies)
        codes = np.ascontiguousarray(self.codes[:, picked])
        return replace(self, rows=part, codes=codes), picked

    def constant(self) -> FloatArray:
        """The best constant's scores (K, n)."""
        return np.repeat(self.loss.base(labels_of(self.rows))[:, None], len(self.rows), axis=1)

    def total(self, scores: FloatArray) -> float:
        """The summed loss at scores (K, n); the run's metric stands in where it has no value."""
        from bench_trees.losses import Measured

        rows, mass = self.rows, float(self.rows.weights.sum())
        if isinstance(self.loss, Measured):
            return self.loss.mean(scores, labels_of(rows)) * mass
        metric = self.context.metric
        found = metric.values(scores[0], rows.y, rows.queries, rows.multiplicity).mean
        return -found * mass if metric.higher_is_better else found * mass

    def gradient(self, scores: FloatArray) -> FloatArray:
        """First derivatives (K, n) at scores (K, n), copies counted."""
        from bench_trees.threads import workers

        with workers(1) as crew:
            gradient, _ = self.loss.gradients(scores, labels_of(self.rows), crew)
        weighted: FloatArray = gradient * self.rows.weights
        return weighted


@dataclass(frozen=True)
class Fold:
    """Rows to fit on, rows held out (with their numbers), and the scores (K, n) so far of both."""

    fit: Binned
    held: Binned
    numbers: IntArray
    scores: tuple[FloatArray, FloatArray]

    @classmethod
    def of(cls, whole: Binned, division: Division) -> Fold:
        """Before any tree: at the constant of all rows."""
        fit, _ = whole.take(division[0])
        held, numbers = whole.take(division[1])
        base = whole.loss.base(labels_of(whole.rows))[:, None]
        start = tuple(np.repeat(base, len(part.rows), axis=1) for part in (fit, held))
        return cls(fit, held, numbers, start)  # type: ignore[arg-type]

    @property
    def loss(self) -> float:
        """The held-out loss, summed."""
        return self.held.total(self.scores[1])

    @property
    def constant_loss(self) -> float:
        """The size of the summed held-out loss of the constant."""
        return abs(self.held.total(self.held.constant()))

    def grown(self, features: BoolArray, settings: Settings) -> tuple[Fold, Ensemble]:
        """Continued by trees that test these features (d,) only."""
        from bench_trees import boost
        from bench_trees.losses import Measured

        rows, chosen = self.fit.rows, np.flatnonzero(features)
        kind = MeasuredContinued if isinstance(self.fit.loss, Measured) else Continued
        trained = boost(
            np.ascontiguousarray(self.fit.codes[chosen]),
            restricted(self.fit.bins, chosen),
            rows.y,
            loss=kind(self.fit.loss, self.scores[0]),
            settings=settings,
            multiplicity=rows.multiplicity,
            queries=None if rows.queries is None else rows.queries.boundaries,
            threads=self.fit.context.threads,
        )
        numbers = np.append(chosen, -1).astype(np.int32)[trained.feature]
        trees = replace(trained, feature=numbers, features=len(features), diverged=False)
        threads = self.fit.context.threads
        own, far = (summed(trees, part.rows.X, threads) for part in (self.fit, self.held))
        return replace(self, scores=(self.scores[0] + own, self.scores[1] + far)), trees


def summed(trees: Ensemble, X: Float32Array, threads: int) -> FloatArray:
    """What the trees add to the scores (K, n) of rows X (n, d)."""
    from bench_trees.inference import Needs, lay_out, walk
    from bench_trees.kernels.records import Steps, Walked

    outputs = trees.outputs_count
    if trees.trees == 0:
        return np.zeros((outputs, len(X)))
    layout = lay_out(trees, Needs.plain(trees.features))
    steps = Steps(np.array([trees.trees]), np.zeros((1, outputs)), np.zeros(1, dtype=bool))
    begin = Walked.begin(len(X), outputs, layout.words)
    return np.ascontiguousarray(walk(layout, steps, X, begin, None, threads).scores[0].T)


Trees = list[list["Ensemble"]]
"""By fold, chunk after chunk."""


def converged(
    folds: Sequence[Fold], features: BoolArray, settings: Settings, most: int, patience: int
) -> tuple[list[Fold], Trees]:
    """All folds, continued until their held-out loss together has stopped falling."""
    now, best, steps = list(folds), list(folds), list[list["Ensemble"]]()
    lowest, kept, done = sum(fold.loss for fold in folds), 0, 0
    least = LEAST_FALL * sum(fold.constant_loss for fold in folds)
    while done < most and len(steps) < kept + patience and features.any():
        step = min(max(CHUNK, done // 4), most - done)
        grown = [fold.grown(features, replace(settings, trees=step)) for fold in now]
        if not any(own.trees for _, own in grown):
            break
        now, done = [fold for fold, _ in grown], done + step
        steps.append([own for _, own in grown])
        loss = sum(fold.loss for fold in now)
        if loss < lowest - least:
            lowest, best, kept = loss, now, len(steps)
    return best, [[step[k] for step in steps[:kept]] for k in range(len(folds))]


def divisions(whole: Binned, folds: int, rng: np.random.Generator) -> list[Division]:
    """Each of about equal parts held out once, classes evenly; at most ``folds`` parts."""
    units, parts = whole.units, min(folds, whole.units)
    if parts < 2:
        return [(np.arange(units), np.arange(units))]
    order = rng.permutation(units)
    if whole.context.task in (Task.BINARY, Task.MULTICLASS):
        order = order[np.argsort(whole.rows.y[order], kind="stable")]
    part = np.empty(units, dtype=np.int64)
    part[order] = np.arange(units) % parts
    return [(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(parts)]
