"""Division of the training rows, and boosters on some features evaluated on held-out rows.

Fits are continued on one set of features after another, with early stopping by the held-out loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

from bench_core import Examples, Queries, Task
from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_models.dictionary import sums
from bench_models.nested_sets.subsets import Subsets, rows_of
from bench_models.tradeoff import labels_of

if TYPE_CHECKING:
    from bench_trees import Ensemble, Settings

PARTS = 5
"""Equal parts of the rows, some of them held out in turn."""

HELD_OUT = 1000
"""Rows held out at least, if there are as many."""

LEAST_FALL = 1e-3
"""Smallest relative fall of the held-out loss that counts."""

PATIENCE = 2
"""Evaluations of the held-out rows without such a fall that end boosting."""


def divided(
    whole: Subsets, parts: int = PARTS, *, most: int, enough: int = HELD_OUT
) -> list[tuple[Subsets, Examples]]:
    """Divisions of the training rows into fitted and held-out rows.

    One after the other of ``parts`` equal parts is held out, until ``enough`` rows were. At most
    ``most`` rows are used, copies counted; queries are kept together and classes spread evenly.
    """
    train, n = whole.train, len(whole.train)
    row = np.repeat(np.arange(n), 1 if train.multiplicity is None else train.multiplicity)
    unit = _units(train, row, whole.context.seed)
    size = np.bincount(unit)
    taken = np.flatnonzero(np.cumsum(size) <= max(most, size[0]))
    if whole.context.task in (Task.BINARY, Task.MULTICLASS):  # stratify the parts
        # the label of a unit is its last row's
        label = np.zeros(len(size))
        label[unit] = train.y[row]
        taken = taken[np.argsort(label[taken], kind="stable")]
    if len(taken) < 2:
        return [(whole, train)]
    of_unit = np.full(len(size), -1)
    of_unit[taken] = np.arange(len(taken)) % parts
    part, divisions, held = of_unit[unit], [], 0
    for k in range(min(parts, len(taken))):
        out = np.bincount(row[part == k], minlength=n)
        rest = np.bincount(row[(part != k) & (part >= 0)], minlength=n)
        divisions.append((whole.of_rows(rest), rows_of(train, out)))
        held += int(out.sum())
        if held >= enough:
            break
    return divisions


def joined(examples: Sequence[Examples]) -> Examples:
    """The rows of all examples; those without multiplicity have one copy of each row."""
    copies, queries = None, None
    if any(rows.multiplicity is not None for rows in examples):
        copies = np.concatenate([rows.weights for rows in examples]).astype(np.int64)
    if examples[0].queries is not None:
        sizes = [rows.queries.sizes for rows in examples if rows.queries is not None]
        queries = Queries.from_sizes(np.concatenate(sizes))
    X, y = (np.concatenate([getattr(rows, name) for rows in examples]) for name in ("X", "y"))
    return Examples(X, y, queries, copies)


def _units(train: Examples, row: IntArray, seed: int) -> IntArray:
    """Units that are held out together, for each copy of a ``row`` (c,), in random order.

    Units are queries or single copies. The order depends on the rows' cells, not their positions,
    so a row of multiplicity m is divided like m rows.
    """
    rng = np.random.default_rng(seed)
    if train.queries is not None:
        return np.asarray(rng.permutation(len(train.queries))[train.queries.index()[row]])
    factor = rng.integers(1 << 63, size=train.X.shape[1] + 2, dtype=np.uint64) * 2 + 1
    # a hash of the row, cells and label
    key = train.y.view(np.uint64) * factor[0]
    for j, other in enumerate(factor[2:]):
        key += np.ascontiguousarray(train.X[:, j]).view(np.uint32) * other
    copy = key[row]
    order = np.argsort(copy, kind="stable")
    first = np.flatnonzero(np.append(True, np.diff(copy[order]) > 0))
    number = np.empty(len(row), np.uint64)  # index of a copy among equal ones
    number[order] = np.arange(len(row)) - np.repeat(first, np.diff(np.append(first, len(row))))
    return np.unique(copy + number * factor[1], return_inverse=True)[1].reshape(-1)


@dataclass(frozen=True, eq=False)
class HeldOutFit:
    """Boosted trees so far, in parts, and their scores."""

    subsets: Subsets
    held: Examples  # rows held out
    scores: FloatArray  # (K, n) scores of the training rows
    held_scores: FloatArray  # (K, m) scores of the held-out rows
    parts: tuple[Ensemble, ...] = ()

    @classmethod
    def begin(cls, subsets: Subsets, held: Examples, constant: FloatArray | None = None) -> Self:
        """A fit without trees at the ``constant`` (K,), by default the training rows' best."""
        base = subsets.loss.base(labels_of(subsets.train)) if constant is None else constant
        scores, held_scores = (np.repeat(base[:, None], len(x), 1) for x in (subsets.train, held))
        return cls(subsets, held, scores, held_scores)

    def more(self, features: BoolArray, settings: Settings) -> HeldOutFit:
        """The fit continued with trees that test only these features (d,)."""
        trees = self.subsets.boost(features, lambda *_: None, start=self.scores, settings=settings)
        trees = replace(trees, diverged=False)
        scores, held_scores = (
            old + scores_of(trees, rows)
            for old, rows in ((self.scores, self.subsets.train), (self.held_scores, self.held))
        )
        return replace(self, scores=scores, held_scores=held_scores, parts=(*self.parts, trees))

    @cached_property
    def loss(self) -> float:
        """The mean loss of the held-out rows, or the negative metric; lower is better."""
        from bench_trees.losses import Measured

        loss, metric, rows = self.subsets.loss, self.subsets.context.metric, self.held
        scores = self.held_scores
        if isinstance(loss, Measured):
            return loss.mean(scores, labels_of(rows))
        own = scores[0] if len(scores) == 1 else scores.T
        value = metric.values(own, rows.y, rows.queries, rows.multiplicity).mean
        return -value if metric.higher_is_better else value


def scores_of(trees: Ensemble, rows: Examples) -> FloatArray:
    """The sum of all trees (K, n), without a bill, which would take longer than the trees."""
    return sums(trees, rows.X).T


Fits = Sequence[HeldOutFit]


def converged(
    fits: Fits,
    features: BoolArray,
    settings: Settings,
    most: int,
    *,
    chunk: int,
    patience: int = PATIENCE,
    growth: float = 0.25,
) -> list[HeldOutFit]:
    """The fits continued in step while their mean loss falls, for at most ``most`` iterations.

    They are compared after ``chunk`` iterations and then, if that is more, after the share
    ``growth`` of those made. They end after ``patience`` comparisons without a fall.
    """
    now = best = list(fits)
    done = waited = 0
    while done < most and waited < patience:
        step = min(max(chunk, int(growth * done)), most - done)
        now, done = [fit.more(features, replace(settings, trees=step)) for fit in now], done + step
        if not any(fit.parts[-1].trees for fit in now):
            break
        waited = 0 if falls(now, best) else waited + 1
        best = best if waited else now
    return best


def mean_loss(fits: Fits) -> float:
    """Mean loss over all held-out parts."""
    return float(np.mean([fit.loss for fit in fits]))


def falls(new: Fits, old: Fits) -> bool:
    """True if the loss fell by more than the share ``LEAST_FALL``."""
    before = mean_loss(old)
    return mean_loss(new) < before - LEAST_FALL * abs(before)


def whole_ensemble(fit: HeldOutFit) -> Ensemble:
    """All trees of a fit as one ensemble."""
    from bench_trees import Ensemble

    base = fit.subsets.loss.base(labels_of(fit.subsets.train))
    if not fit.parts:
        return Ensemble.of_trees([], [], base, fit.subsets.prices.features)
    return replace(Ensemble.concat(fit.parts), base=base)
