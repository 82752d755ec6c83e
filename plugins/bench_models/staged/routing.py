"""Where the rows of a block are on their ways, who passes a gate, and what they finally score."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bench_core import Queries
from bench_models.staged.stage_costs import Bools, Words
from bench_models.staged.stages import END, Floats, Gate, Ints, Rejected, Stage

if TYPE_CHECKING:
    from bench_trees.inference import Walked


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """The state of n rows. Arrays are replaced, never written."""

    scores: Floats  # (n, K)
    bits: Words  # (n, w) sensors bought
    splits: Floats  # (n,) multipliers of the splits evaluated
    last: Ints  # (n,) the stage last evaluated
    next: Ints  # (n,) the stage to come, or END
    rejected: Bools  # (n,) ended at a gate that did not let them pass

    @classmethod
    def begin(cls, rows: int, outputs: int, words: int) -> Rows:
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

    def waiting(self, stage: int) -> Ints | None:
        """The rows whose next stage it is; None when all are."""
        rows = np.flatnonzero(self.next == stage)
        return None if len(rows) == len(self.next) else rows

    def copied(self) -> Rows:
        """With own scores, bits and splits."""
        own = (self.scores.copy(), self.bits.copy(), self.splits.copy())
        return Rows(*own, self.last, self.next, self.rejected)

    def walked(self, rows: Ints | None) -> Walked:
        """The state of ``rows`` as the start of a walk."""
        from bench_trees.inference import Walked

        who = slice(None) if rows is None else rows
        return Walked(self.scores[None, who], self.bits[None, who], self.splits[None, who])

    def evaluated(
        self, rows: Ints | None, stage: int, scores: Floats, bits: Words, splits: Floats
    ) -> Rows:
        """``rows`` have been through ``stage``."""
        return replace(
            self,
            scores=_put(self.scores, rows, scores),
            bits=_put(self.bits, rows, bits),
            splits=_put(self.splits, rows, splits),
            last=_put(self.last, rows, np.full(len(scores), stage, dtype=np.int64)),
        )

    def turned(self, rows: Ints | None, stage: Stage, queries: Queries | None) -> Rows:
        """``rows`` go where the gate of ``stage`` sends them."""
        who = np.arange(len(self.next)) if rows is None else rows
        passed = passes(stage.gate, self.scores[who, 0], who, queries)
        onward = np.where(passed, stage.then, stage.otherwise)
        out = ~passed & (stage.otherwise == END)
        return replace(
            self,
            next=_put(self.next, rows, onward),
            rejected=_put(self.rejected, rows, out),
        )


def _put(array: NDArray[Any], rows: Ints | None, values: NDArray[Any]) -> NDArray[Any]:
    """The array with ``values`` at ``rows``; the old one stays as it was."""
    if rows is None:
        return values
    if len(rows) == 0:
        return array
    new = array.copy()
    new[rows] = values
    return new


def passes(gate: Gate, scores: Floats, rows: Ints, queries: Queries | None) -> Bools:
    """Which of ``rows`` with these scores pass."""
    if gate.kind == "score":
        return scores >= gate.value
    if gate.kind == "rank" and queries is not None:
        return ranks(scores, queries.index()[rows]) <= gate.value
    return np.ones(len(scores), dtype=bool)


def ranks(scores: Floats, query: Ints) -> Ints:
    """1 + the number of rows of the same query that score higher, per row."""
    order = np.lexsort((-scores, query))
    place = np.arange(len(order))
    new_query = np.r_[True, np.diff(query[order]) != 0][: len(order)]
    new_score = new_query | np.r_[True, np.diff(scores[order]) != 0][: len(order)]
    start = np.maximum.accumulate(np.where(new_query, place, 0))
    better = np.maximum.accumulate(np.where(new_score, place, 0))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = better - start + 1
    return rank


def final_scores(rows: Rows, rule: Rejected, queries: Queries | None) -> Floats:
    """The scores to report, (n,) or (n, K), rejected rows by ``rule``."""
    if rows.scores.shape[1] > 1:
        return rows.scores
    scores = rows.scores[:, 0]
    if rule == "score" or not rows.rejected.any():
        return scores
    if rule != "below":
        return np.where(rows.rejected, float(rule), scores)
    return scores if queries is None else below(scores, rows.rejected, rows.last, queries)


def below(scores: Floats, rejected: Bools, last: Ints, queries: Queries) -> Floats:
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
