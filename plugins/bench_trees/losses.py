"""Losses that boosting minimises: gradients and hessians per copy of a row.

A loss is a small value; ``Loss`` is the required interface of a custom one. ``Measured`` is
optional and lets boosting detect divergence. Scores are (K, n). In all losses a row of multiplicity
m weighs the same as m copies.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from bench_trees.arrays import Float64Array, Int64Array, frozen
from bench_trees.kernels.gradients import class_gradients
from bench_trees.kernels.lambdarank import LANES, LONG, Ranking, lambdas
from bench_trees.threads import PIECE, Workers

FEW_ROWS = 8192
TINY = 1e-15  # keeps logarithms of shares finite


@dataclass(frozen=True)
class Labels:
    """Targets of a fit."""

    y: Float64Array  # (n,)
    multiplicity: Int64Array | None = None  # (n,)
    queries: Int64Array | None = None  # (q + 1,) row boundaries
    # data derived once from these labels, by loss
    memory: dict[object, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def mass(self) -> Float64Array:
        """Copies of each row (n,)."""
        copies = self.multiplicity
        return np.ones(len(self.y)) if copies is None else copies.astype(np.float64)

    def mean(self, values: Float64Array) -> float:
        """The mean of values (n,) over copies."""
        return float(np.average(values, weights=self.multiplicity))


Gradients = tuple[Float64Array, Float64Array | None]
"""Gradient (K, n) and hessian (K, n), None if it is 1; per copy."""


class Loss(Protocol):
    """A differentiable loss of K scores per row."""

    @property
    def outputs(self) -> int:
        """Number of scores K per row."""

    def base(self, labels: Labels) -> Float64Array:
        """The best constant scores (K,). Raises ValueError for unfit labels."""

    def gradients(self, scores: Float64Array, labels: Labels, pool: Workers) -> Gradients:
        """First and second derivatives at scores (K, n)."""


@runtime_checkable
class Measured(Protocol):
    """A loss whose value at given scores can be computed.

    With ``convex = True`` it is convex in the scores and has that value's gradients: these rule out
    most rises without computing the value.
    """

    def mean(self, scores: Float64Array, labels: Labels) -> float:
        """The mean over all copies at scores (K, n)."""


def named(name: str, y: Float64Array) -> Loss:
    """The loss with that name. Raises ValueError for an unknown one."""
    losses: dict[str, Callable[[], Loss]] = {
        "squared": Squared,
        "logistic": Logistic,
        "lambdarank": LambdaRank,
        "softmax": lambda: Softmax(int(y.max()) + 1 if len(y) else 2),
    }
    if name not in losses:
        raise ValueError(f"loss must be one of {[*losses]}, got {name!r}")
    return losses[name]()


@dataclass(frozen=True, slots=True)
class Squared:
    """(y - f)^2 / 2."""

    outputs: int = 1

    def base(self, labels: Labels) -> Float64Array:
        """The mean."""
        return np.array([labels.mean(labels.y)])

    def mean(self, scores: Float64Array, labels: Labels) -> float:
        """The mean of (y - f)^2 / 2."""
        return labels.mean((labels.y - scores[0]) ** 2) / 2

    def gradients(self, scores: Float64Array, labels: Labels, pool: Workers) -> Gradients:
        """Gradient f - y, hessian 1."""
        return scores - labels.y, None


@dataclass(frozen=True, slots=True)
class Logistic:
    """log(1 + exp(-z f)), z = 2y - 1, for y in {0, 1}; f is the log-odds of 1."""

    convex: ClassVar[bool] = True
    outputs: int = 1

    def base(self, labels: Labels) -> Float64Array:
        """The log-odds of the share of ones."""
        if not bool(np.all((labels.y == 0) | (labels.y == 1))):
            raise ValueError("logistic loss needs labels 0 and 1")
        share = float(np.clip(labels.mean(labels.y), TINY, 1 - TINY))
        return np.array([np.log(share / (1 - share))])

    def mean(self, scores: Float64Array, labels: Labels) -> float:
        """The mean of log(1 + exp(-z f))."""
        margin = (1 - 2 * labels.y) * scores[0]
        # as logaddexp(0, margin), which takes ten times as long
        return labels.mean(np.log(1 + np.exp(-np.abs(margin))) + np.maximum(margin, 0))

    def gradients(self, scores: Float64Array, labels: Labels, pool: Workers) -> Gradients:
        """Gradient p - y, hessian p (1 - p)."""
        return _of_classes(scores, labels, pool)


@dataclass(frozen=True, slots=True)
class Softmax:
    """-log softmax(f)_y for y in 0..K-1, one score per class.

    The diagonal hessian K / (K - 1) p (1 - p) is LightGBM's; Friedman's (2001) leaf values for K
    classes have the same factor.
    """

    convex: ClassVar[bool] = True
    outputs: int

    def base(self, labels: Labels) -> Float64Array:
        """Logarithms of the class shares."""
        y = labels.y.astype(np.int64)
        if bool(np.any((y != labels.y) | (y < 0) | (y >= self.outputs))) or self.outputs < 2:
            raise ValueError(f"softmax loss needs labels 0..{max(self.outputs, 2) - 1}")
        counts = np.bincount(y, labels.multiplicity, minlength=self.outputs)
        return np.asarray(np.log(np.maximum(counts / counts.sum(), TINY)), np.float64)

    def mean(self, scores: Float64Array, labels: Labels) -> float:
        """The mean of log sum_k exp(f_k) - f_y."""
        top = scores.max(axis=0)
        own = scores[labels.y.astype(np.int64), np.arange(len(labels.y))]
        return labels.mean(np.log(np.exp(scores - top).sum(axis=0)) + top - own)

    def gradients(self, scores: Float64Array, labels: Labels, pool: Workers) -> Gradients:
        """Gradient p - [y = k], hessian K / (K - 1) p (1 - p)."""
        return _of_classes(scores, labels, pool)


@dataclass(frozen=True, slots=True)
class LambdaRank:
    """LambdaRank (Burges, 2010) with the weights of NDCG, as computed by LightGBM.

    Over pairs i, j of a query with y_i > y_j and one of them within the first ``truncation`` by
    score: cost log(1 + exp(-(f_i - f_j))) times |change of NDCG if they swapped|, with the ideal
    DCG equally truncated and gain 2^y - 1. A pair is divided by 0.01 + |f_i - f_j| and a query's
    gradients by their sum over its logarithm, so that no query dominates. Ties keep row order.
    Copies of a row take consecutive ranks, and their mean is the row's gradient. Documents more
    than 700 below the best of their query count as equally far, where powers of e end.
    """

    truncation: int = 30
    outputs: int = 1

    def base(self, labels: Labels) -> Float64Array:
        """Zero: a constant changes no rank."""
        queries = labels.queries
        if queries is None or queries[0] != 0 or queries[-1] != len(labels.y):
            raise ValueError("lambdarank needs query boundaries that cover all rows")
        if bool(np.any((labels.y < 0) | (labels.y > 50))):
            raise ValueError("lambdarank needs grades 0..50")
        return np.zeros(1)

    def gradients(self, scores: Float64Array, labels: Labels, pool: Workers) -> Gradients:
        """Lambdas and their derivatives."""
        if self not in labels.memory:
            labels.memory[self] = self._rank(labels)
        ranking: Ranking = labels.memory[self]
        f = np.ascontiguousarray(scores[0])
        gradient, hessian = np.empty_like(f), np.empty_like(f)

        def piece(start: int, stop: int) -> None:
            _rank_long(f, ranking, start, stop)
            lambdas(f, ranking, (start, stop), self.truncation, gradient, hessian)

        # a few pieces for each thread, as queries of one length are adjacent; fewer than FEW_ROWS,
        # some 0.2 ms, are not worth a thread
        pieces = max(1, min(4 * pool.threads, len(f) // FEW_ROWS))
        blocks = -(-len(ranking.lengths) // LANES)
        pool.run(piece, len(ranking.lengths), max(1, -(-blocks // pieces)) * LANES)
        return gradient[None, :], hessian[None, :]

    def _rank(self, labels: Labels) -> Ranking:
        """Constants of the fit: lengths of queries, discounts, and ideal DCG."""
        queries, n = np.array(labels.queries, np.int64), len(labels.y)
        copies = np.ones(n, np.int64) if labels.multiplicity is None else labels.multiplicity
        each = np.arange(len(queries) - 1).repeat(np.diff(queries))  # the query of each row
        gain = np.exp2(labels.y) - 1
        best_first = np.argsort(-gain)
        number = each[best_first].astype(np.min_scalar_type(len(queries)))  # short: by its digits
        best_first = best_first[np.argsort(number, kind="stable")]
        ideal = best_first.repeat(copies[best_first])
        lengths = np.bincount(each[ideal], minlength=len(queries) - 1)
        discount = np.array([1 / math.log2(2 + k) for k in range(lengths.max(initial=0))])
        position = np.arange(len(ideal)) - (lengths.cumsum() - lengths).repeat(lengths)
        first = position < self.truncation
        gains = gain[ideal] * discount[position] * first
        best = np.bincount(each[ideal], gains, minlength=len(lengths))
        scale = np.divide(1.0, best, out=np.zeros_like(best), where=best > 0)
        by_length = np.argsort(lengths, kind="stable")
        share = gain * scale[each]
        if labels.multiplicity is None:
            copies = np.empty(0, np.int64)
        places = np.zeros(n, np.int64)
        return Ranking(queries, lengths, by_length, copies, share, discount, places)


def _rank_long(f: Float64Array, ranking: Ranking, start: int, stop: int) -> None:
    """Positions by falling score, ties in row order, of queries in a block with a long one."""
    queries = ranking.by_length[start:stop]
    if ranking.lengths[queries[-1]] <= LONG:
        return
    short = int(np.searchsorted(ranking.lengths[queries], LONG, side="right"))
    for q in queries[short // LANES * LANES :]:
        rows = slice(ranking.queries[q], ranking.queries[q + 1])
        order = np.argsort(-f[rows], kind="stable")
        copies = ranking.copies[rows][order] if len(ranking.copies) else np.ones_like(order)
        ranking.place[rows][order] = copies.cumsum() - copies


def _of_classes(
    scores: Float64Array, labels: Labels, pool: Workers
) -> tuple[Float64Array, Float64Array]:
    """Gradients and hessians (K, n) at scores (K, n), on all threads."""
    gradient, hessian = np.empty(scores.shape), np.empty(scores.shape)
    f, y = np.require(scores, np.float64, ("C", "W")).reshape(-1, 1), frozen(labels.y, np.float64)
    flat = gradient.reshape(-1), hessian.reshape(-1)

    def piece(start: int, stop: int) -> None:
        class_gradients(f, y, start, stop, *flat)

    pool.run(piece, len(y), -(-PIECE // len(scores)))
    return gradient, hessian
