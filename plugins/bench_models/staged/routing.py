"""Where rows are on their ways, what they finally score; ranks in queries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bench_core import Queries
from bench_core.arrays import BitArray, BoolArray, FloatArray, IntArray
from bench_models.staged.stages import END, Rejected, Stage

if TYPE_CHECKING:
    from bench_trees.inference import Walked


@dataclass(frozen=True, slots=True, eq=False)
class RowState:
    """The state of n rows. Arrays are replaced, never written."""

    scores: FloatArray  # (n, K)
    bits: BitArray  # (n, w) sensors bought
    splits: FloatArray  # (n,) multipliers of the splits evaluated
    last: IntArray  # (n,) the stage last evaluated
    next: IntArray  # (n,) the stage to come, or END
    rejected: BoolArray  # (n,) ended below a bar

    @classmethod
    def begin(cls, rows: int, outputs: int, words: int) -> RowState:
        """All rows before stage 0."""
        stage = np.zeros(rows, dtype=np.int64)
        return cls(
            scores=np.zeros((rows, outputs)),
            bits=np.zeros((rows, words), dtype=np.uint64),
            splits=np.zeros(rows),
            last=stage,
            next=stage,
            rejected=np.zeros(rows, dtype=bool),
        )

    def at(self, stage: int) -> IntArray | None:
        """The rows whose next stage it is; None when all are."""
        rows = np.flatnonzero(self.next == stage)
        return None if len(rows) == len(self.next) else rows

    def copied(self) -> RowState:
        """With own scores, bits and splits."""
        own = (self.scores.copy(), self.bits.copy(), self.splits.copy())
        return RowState(*own, self.last, self.next, self.rejected)

    def walked(self, rows: IntArray | None) -> Walked:
        """The state of ``rows`` as the start of a walk."""
        from bench_trees.inference import Walked

        who = slice(None) if rows is None else rows
        return Walked(self.scores[None, who], self.bits[None, who], self.splits[None, who])

    def updated(
        self,
        rows: IntArray | None,
        stage: int,
        scores: FloatArray,
        bits: BitArray,
        splits: FloatArray,
    ) -> RowState:
        """``rows`` have been through ``stage``."""
        return replace(
            self,
            scores=_put(self.scores, rows, scores),
            bits=_put(self.bits, rows, bits),
            splits=_put(self.splits, rows, splits),
            last=_put(self.last, rows, np.full(len(scores), stage, dtype=np.int64)),
        )

    def routed(self, rows: IntArray | None, stage: Stage) -> RowState:
        """``rows`` go where the bar of ``stage`` sends them."""
        who = np.arange(len(self.next)) if rows is None else rows
        every = stage.bar is None
        passed = np.ones(len(who), dtype=bool) if every else self.scores[who, 0] >= stage.bar
        onward = np.where(passed, stage.then, stage.otherwise)
        out = ~passed & (stage.otherwise == END)
        return replace(
            self, next=_put(self.next, rows, onward), rejected=_put(self.rejected, rows, out)
        )


def _put(array: NDArray[Any], rows: IntArray | None, values: NDArray[Any]) -> NDArray[Any]:
    """The array with ``values`` at ``rows``; the old one stays as it was."""
    if rows is None:
        return values
    if len(rows) == 0:
        return array
    new = array.copy()
    new[rows] = values
    return new


def final_scores(rows: RowState, rule: Rejected, queries: Queries | None) -> FloatArray:
    """The scores to report, (n,) or (n, K), rejected rows by ``rule``."""
    if rows.scores.shape[1] > 1:
        return rows.scores
    scores = rows.scores[:, 0]
    if rule == "score" or not rows.rejected.any():
        return scores
    if rule != "below":
        return np.where(rows.rejected, float(rule), scores)
    return scores if queries is None else below(scores, rows.rejected, rows.last, queries)


def below(scores: FloatArray, rejected: BoolArray, last: IntArray, queries: Queries) -> FloatArray:
    """Rejected rows below their query's worst survivor, by exit stage, then by stage score.

    All (n,). Survivors keep their scores; rejected ones follow in steps of one, equal ones
    together.
    """
    query = queries.index()
    kept = ~rejected
    worst = np.zeros(len(queries))
    survives = np.unique(query[kept])
    worst[survives] = np.inf
    np.minimum.at(worst, query[kept], scores[kept])
    out = np.flatnonzero(rejected)
    order = out[np.lexsort((-scores[out], -last[out], query[out]))]
    fields = (query[order], last[order], scores[order])
    new = [np.r_[True, np.diff(f) != 0] for f in fields]
    level = np.cumsum(new[0] | new[1] | new[2])
    base = np.maximum.accumulate(np.where(new[0], level, 0))
    lowered = scores.copy()
    lowered[order] = worst[query[order]] - 1.0 - (level - base)
    return lowered


@dataclass(frozen=True, eq=False)
class QueryGroups:
    """The queries of n rows."""

    starts: IntArray  # (q,)
    sizes: IntArray  # (q,)

    @classmethod
    def over(cls, rows: int, queries: Queries | None) -> QueryGroups:
        """Every row is a query of its own where there are none."""
        ends = np.arange(rows + 1) if queries is None else queries.boundaries
        return cls(ends[:-1], np.diff(ends))

    @cached_property
    def of(self) -> IntArray:
        """Each row's query (n,)."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


def kth_best(scores: FloatArray, on: BoolArray, groups: QueryGroups, k: int) -> FloatArray:
    """The k-th best score among the rows of each query that are ``on``, (P, q), or -inf."""
    order = np.lexsort((-scores, groups.of))
    here = on[:, order]
    setting, place = np.nonzero(here & (_counted(here, groups) == k))
    best = np.full((len(on), len(groups.sizes)), -np.inf)
    best[setting, groups.of[place]] = scores[order[place]]
    return best


def ranks(
    scores: FloatArray, on: BoolArray, groups: QueryGroups, weights: IntArray | None = None
) -> IntArray:
    """1 + the number of rows of the query that are ``on`` and score higher, (P, n).

    ``weights`` (n,): how many rows each stands for.
    """
    order = np.lexsort((-scores, groups.of))
    here = on[:, order].astype(np.int64)
    if weights is not None:
        here *= weights[order]
    sorted_scores, query = scores[order], groups.of
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = (sorted_scores[1:] != sorted_scores[:-1]) | (query[1:] != query[:-1])
    first_equal = np.maximum.accumulate(np.where(fresh, np.arange(len(order)), 0))
    higher = (_counted(here, groups) - here)[:, first_equal]
    rank = np.empty(on.shape, dtype=np.int64)
    rank[:, order] = higher + 1
    return rank


def _counted(here: Any, groups: QueryGroups) -> IntArray:
    """Sums along the sorted rows, begun anew with each query: (P, n)."""
    total = np.cumsum(here, axis=1, dtype=np.int64)
    before = total[:, groups.starts] - here[:, groups.starts]
    inside: IntArray = total - before[:, groups.of]
    return inside
