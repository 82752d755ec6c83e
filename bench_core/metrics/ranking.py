"""Ranking metrics, one value per query.

Ties. ``ties=expected`` (the default) gives the exact expected value over uniformly random order
of tied documents; ``ties=stable`` keeps tied documents in row order. A row with multiplicity m is
m documents of equal score and label.
Queries without a relevant document score 0; ``empty=1`` scores them 1, ``empty=skip`` gives them
weight 0. For ndcg and err, such a query has no grade above 0; for other metrics, no grade of at
least ``relevant`` (default 1).

Copies are not materialised: with a cut-off, memory and time do not grow with multiplicity, except
for err (cut-off times the documents of a tie group). Without a cut-off both grow with the documents
of the longest query, for err with the square of a tie group.

Grades are >= 0. Infinite scores are allowed and tie with one another; NaN is an error.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.data import Task
from bench_core.errors import InputError
from bench_core.metrics.built_in import (
    BuiltIn,
    Labels,
    Ranked,
    checked_scores,
    choice,
    number,
    unwritable,
)
from bench_core.protocols import MetricValues

_POWERS = np.exp2(np.arange(64)) - 1.0  # gains of integer grades
_ABOVE_ZERO = float(np.nextafter(0.0, 1.0))  # threshold for any grade above 0


@dataclass(frozen=True, slots=True)
class RankingMetric(BuiltIn):
    """Base class of ranking metrics; subclasses implement ``_per_query``."""

    tasks: ClassVar[frozenset[Task]] = frozenset({Task.RANKING})
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    order_only: ClassVar[bool] = True
    k: int | None = None
    ties: str = choice(
        "expected", ("expected", "stable"), "expected value over random order, or rows'"
    )
    empty: str = choice("0", ("0", "1", "skip"), "value of a query without a relevant document")

    def judge(
        self, scores: FloatArray, labels: Labels, ranked: Ranked | None = None
    ) -> MetricValues:
        """Return values per query with weight 1 (0 if skipped). ``labels`` must have queries;
        ``ranked`` must reach ``depth(labels)``."""
        if labels.queries is None:
            raise InputError(f"{self.name} needs queries: name the column of query numbers")
        if ranked is None:
            scores = checked_scores(scores, len(labels), self.name)
            ranked = rank(scores, labels, self.depth(labels))
        if self.ties == "stable":  # no ties
            ranked = ranked._replace(tied=np.zeros(len(ranked.tied), dtype=np.bool_))
        judged = _relevant_totals(labels, self._threshold) > 0
        values = np.where(judged, self._per_query(ranked, labels), float(self.empty == "1"))
        weights = judged.astype(np.float64) if self.empty == "skip" else np.ones(len(judged))
        return MetricValues(values, weights)

    @property
    def _threshold(self) -> float:
        return float(getattr(self, "relevant", _ABOVE_ZERO))

    def undefined(self, y: FloatArray) -> str:
        """Reason if all queries would be skipped."""
        none = self.empty == "skip" and not (y >= self._threshold).any()
        return "no document is relevant" if none else ""

    def depth(self, labels: Labels) -> int:
        """Number of places used: the cut-off, or all."""
        longest = labels.once("longest", lambda: int(_totals(labels).max(initial=0)))
        return longest if self.k is None else min(self.k, longest)

    def _per_query(self, ranked: Ranked, labels: Labels) -> FloatArray:
        """Values (q,) of queries with a relevant document, arbitrary values elsewhere."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class _Relevance(RankingMetric):
    """Base class of metrics with binary relevance."""

    relevant: float = number(1.0, "lowest grade that counts as relevant")

    def _relevant(self, labels: Labels) -> BoolArray:
        return labels.once(("relevant", self.relevant), lambda: labels.y >= self.relevant)

    def _tally(self, what: str, ranked: Ranked, labels: Labels) -> FloatArray:
        kernels, top = _kernels(), self.depth(labels)
        inverse = _running(labels, "inverse", top)[1]
        found = kernels.tally(ranked, self._relevant(labels), inverse, top, getattr(kernels, what))
        return np.asarray(found, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Ndcg(RankingMetric):
    """Discounted cumulative gain relative to the ideal order, gain 2^grade - 1, log2 discount.

    ``gain=linear`` uses the grade itself. Ties: McSherry and Najork, ECIR 2008.
    """

    family: ClassVar[str] = "ndcg"
    gain: str = choice("exponential", ("exponential", "linear"), "2^grade - 1, or the grade")

    def _per_query(self, ranked: Ranked, labels: Labels) -> FloatArray:
        table = _POWERS if self.gain == "exponential" else _POWERS[:0]
        top = self.depth(labels)
        terms, summed = _running(labels, "discount", top)

        def gained(order: Ranked) -> FloatArray:
            return np.asarray(_kernels().dcg(order, labels.y, table, terms, summed, top))

        ideal = labels.once(("ideal", self.gain, top), lambda: gained(rank(labels.y, labels, top)))
        return _ratio(gained(ranked), ideal)


@dataclass(frozen=True, slots=True)
class Precision(_Relevance):
    """Number of relevant documents in the first k places, over k (also for shorter queries)."""

    family: ClassVar[str] = "precision"
    needs_cut_off: ClassVar[bool] = True

    def _per_query(self, ranked: Ranked, labels: Labels) -> FloatArray:
        hits: Any = self._tally("AT_TOP", ranked, labels)
        return np.asarray(hits / self.k, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class AveragePrecision(_Relevance):
    """Sum of the precisions at the relevant documents in the first k places, over the number of ALL
    relevant documents of the query. trec_eval, ir-measures and ranx do the same; some libraries
    divide by min(k, that number)."""

    family: ClassVar[str] = "ap"

    def _per_query(self, ranked: Ranked, labels: Labels) -> FloatArray:
        summed = self._tally("PRECISIONS", ranked, labels)
        return _ratio(summed, _relevant_totals(labels, self.relevant).astype(np.float64))


@dataclass(frozen=True, slots=True)
class LeadingRunPrecision(_Relevance):
    """Length of the leading run of relevant documents in the first k places, over k; 1 if the run
    contains all documents of the query.

    The released code of BudgetRF, BudgetPrune, Adapt and CEGB computes this as "Average
    Precision@5". It is neither ``ap@5`` nor ``precision@5``.
    """

    family: ClassVar[str] = "leading_run_precision"
    needs_cut_off: ClassVar[bool] = True

    def _per_query(self, ranked: Ranked, labels: Labels) -> FloatArray:
        run: Any = self._tally("RUN", ranked, labels)
        all_of_them = _relevant_totals(labels, self.relevant) == _totals(labels)
        return np.where(all_of_them, 1.0, run / self.k)


@dataclass(frozen=True, slots=True)
class ExpectedReciprocalRank(RankingMetric):
    """Expected 1/place at which a user who reads from the top is satisfied (Chapelle et al.,
    CIKM 2009); a document of grade g satisfies with probability (2^g - 1) / 2^top.

    ``top`` is the highest grade of the scale, 4 by default; a higher grade is an error.
    """

    family: ClassVar[str] = "err"
    top: float = number(4.0, "highest grade of the scale")

    def _per_query(self, ranked: Ranked, labels: Labels) -> FloatArray:
        satisfies = labels.once(("satisfies", self.top), lambda: self._satisfies(labels.y))
        top = self.depth(labels)
        return np.asarray(_kernels().reciprocal_cascade(ranked, satisfies, top), np.float64)

    def _satisfies(self, y: FloatArray) -> FloatArray:
        if y.max(initial=0.0) > self.top:
            raise InputError(
                f"{self.name}: grade {y.max():g} of row {int(y.argmax())} (counted from 0) is "
                f"above top={self.top:g}: name the highest grade, such as err@5(top=5)"
            )
        return np.asarray((np.exp2(y) - 1.0) / 2.0**self.top, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class ReciprocalRank(_Relevance):
    """1 / place of the first relevant document; 0 beyond the cut-off."""

    family: ClassVar[str] = "mrr"

    def _per_query(self, ranked: Ranked, labels: Labels) -> FloatArray:
        return self._tally("FIRST", ranked, labels)


METRICS = (
    Ndcg,
    Precision,
    AveragePrecision,
    LeadingRunPrecision,
    ExpectedReciprocalRank,
    ReciprocalRank,
)


def _kernels() -> Any:
    from bench_core.metrics import kernels  # imports numba

    return kernels


def _totals(labels: Labels) -> IntArray:
    """Documents per query (q,); InputError for an invalid grade."""

    def make() -> IntArray:
        wrong = np.flatnonzero((labels.y < 0) | (labels.y == np.inf))
        if len(wrong):
            raise InputError(
                f"the label {labels.y[wrong[0]]:g} of row {wrong[0]} (counted from 0) is not a "
                "grade: ranking needs finite grades >= 0"
            )
        return np.add.reduceat(labels.copies, labels.bounds[:-1])

    return labels.once("totals", make)


def _relevant_totals(labels: Labels, threshold: float) -> IntArray:
    def make() -> IntArray:
        relevant = labels.y >= threshold
        counted = relevant if labels.multiplicity is None else relevant * labels.copies
        return np.add.reduceat(counted, labels.bounds[:-1], dtype=np.int64)

    return labels.once(("relevant totals", threshold), make)


def _running(labels: Labels, what: str, top: int) -> tuple[FloatArray, FloatArray]:
    """Terms by place (top,) and their cumulative sums (top + 1,), each rounded once."""

    def make() -> tuple[FloatArray, FloatArray]:
        # in higher precision, so that long sums are rounded once
        place = np.arange(1, top + 1, dtype=np.longdouble)
        terms = 1 / (np.log2(place + 1) if what == "discount" else place)
        summed = np.concatenate([[np.longdouble(0)], np.cumsum(terms)])
        return terms.astype(np.float64), summed.astype(np.float64)

    return labels.once((what, top), make)


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    """part / whole, at most 1 despite rounding, 0 if the denominator is 0."""
    safe = np.where(whole > 0, whole, 1.0)
    return np.minimum(part / safe, 1.0)


def rank(scores: FloatArray, labels: Labels, depth: int) -> Ranked:
    """Order the best ``depth`` rows of each query, and all ties with the last of them.

    ``scores`` (n,) float64, contiguous, without NaN.
    """
    bounds, kernels = labels.bounds, _kernels()
    if depth > kernels.SHORT:  # stable sort of complete queries
        query = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds))
        order = np.lexsort((-scores, query))
        tied = np.append(False, scores[order[1:]] == scores[order[:-1]])
        tied[bounds[:-1]] = False
        return Ranked(bounds, order, bounds[1:].copy(), tied, labels.copies)
    ranked = Ranked(
        bounds=bounds,
        order=np.empty(len(scores), dtype=np.int64),
        stop=np.empty(len(bounds) - 1, dtype=np.int64),
        tied=np.empty(len(scores), dtype=np.bool_),
        copies=labels.copies,
    )
    kernels.rank(ranked, unwritable(scores), depth)
    return ranked
