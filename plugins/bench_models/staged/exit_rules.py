"""Rules that say at every exit of a chain which rows go on, for many settings side by side.

A row is judged by its partial score among the rows of its query that are still on their way.
Rows without queries are alone: nothing is known of others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from bench_core import Queries
from bench_models.staged.stage_costs import Bools
from bench_models.staged.stages import Floats, Ints

RULES = ("score", "rank", "capacity", "proximity", "class")


@dataclass(frozen=True, eq=False)
class Groups:
    """The queries of n rows: ``starts`` and ``sizes`` (q,), and each row's query ``of`` (n,)."""

    starts: Ints
    sizes: Ints

    @classmethod
    def over(cls, rows: int, queries: Queries | None) -> Groups:
        """Every row is a query of its own where there are none."""
        ends = np.arange(rows + 1) if queries is None else queries.boundaries
        return cls(ends[:-1], np.diff(ends))

    @cached_property
    def of(self) -> Ints:
        """Each row's query."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)


@dataclass(frozen=True, slots=True, eq=False)
class Rule:
    """Who goes on at exit e under setting p, with v = ``values[p, e]``; values are (P, E).

    ``score``: score >= v. ``proximity``: score >= that of the ``k``-th best survivor of the query
    - v; all, while fewer than k survive. ``rank``: at most v - 1 survivors of the query score
    higher. ``capacity``: at most v - 1 of the survivors that stand before it in the query do.
    ``class``: the largest class probability is at most v.
    """

    kind: str
    values: Floats
    k: int = 1

    def __post_init__(self) -> None:
        if self.kind not in RULES or self.values.ndim != 2 or self.k < 1:
            raise ValueError(f"a rule is one of {RULES} with values (P, E) and k >= 1")

    def stays(self, exit: int, scores: Floats, on: Bools, groups: Groups) -> Bools:
        """Which rows go on, (P, n), by their ``scores`` (n, K); ``on`` (P, n) are on their way."""
        value = self.values[:, exit, None]
        if self.kind == "class":
            return largest_probability(scores) <= value
        own = scores[:, 0]
        if self.kind == "score":
            return own >= value
        if self.kind == "capacity":
            return _among_seen(own, on, groups, self.values[:, exit])
        if self.kind == "rank":
            return ranks(own, on, groups) <= value
        return own >= kth_best(own, on, groups, self.k)[:, groups.of] - value

    def state(self) -> dict[str, Any]:
        """Arrays and JSON."""
        return {"rule.values": self.values, "rule": {"kind": self.kind, "k": self.k}}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of ``state``."""
        return cls(values=state["rule.values"], **state["rule"])


def largest_probability(scores: Floats) -> Floats:
    """Of the likeliest class, (n,), from log-odds (n, 1) or one score per class (n, K)."""
    if scores.shape[1] == 1:
        low: Floats = -np.abs(scores)
        others = np.exp(low[:, 0])
    else:
        others = np.exp(scores - scores.max(axis=1, keepdims=True)).sum(axis=1) - 1.0
    likeliest: Floats = 1.0 / (1.0 + others)
    return likeliest


def kth_best(scores: Floats, on: Bools, groups: Groups, k: int) -> Floats:
    """The k-th best score among the rows of each query that are ``on``, (P, q), or -inf."""
    order = np.lexsort((-scores, groups.of))
    here = on[:, order]
    setting, place = np.nonzero(here & (_counted(here, groups) == k))
    best = np.full((len(on), len(groups.sizes)), -np.inf)
    best[setting, groups.of[place]] = scores[order[place]]
    return best


def ranks(scores: Floats, on: Bools, groups: Groups, weights: Ints | None = None) -> Ints:
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


def _counted(here: Any, groups: Groups) -> Ints:
    """Sums along the sorted rows, begun anew with each query: (P, n)."""
    total = np.cumsum(here, axis=1, dtype=np.int64)
    before = total[:, groups.starts] - here[:, groups.starts]
    inside: Ints = total - before[:, groups.of]
    return inside


def _among_seen(scores: Floats, on: Bools, groups: Groups, most: Floats) -> Bools:
    """Rows among the best ``most`` (P,) of those of their query seen up to and with them, (P, n).

    All queries advance together, row by row, each with the best scores it has seen.
    """
    longest = int(groups.sizes.max(initial=0))
    room = np.minimum(most, longest)
    slots = np.arange(max(1, int(room.max(initial=1))))
    unused = slots > room[:, None, None] - 1
    best = np.where(unused, np.inf, np.full((1, len(groups.sizes), 1), -np.inf))
    stays = np.zeros(on.shape, dtype=bool)
    setting = np.arange(len(on))[:, None]
    for place in range(longest):
        some = np.flatnonzero(groups.sizes > place)
        rows = groups.starts[some] + place
        own = np.where(on[:, rows], scores[rows], -np.inf)
        at = (setting, some, best[:, some].argmin(axis=2))
        lowest = best[at]
        stays[:, rows] = own >= lowest
        best[at] = np.maximum(own, lowest)
    return stays
