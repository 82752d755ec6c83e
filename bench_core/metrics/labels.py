"""What the built-in metrics look at: labels, with what is computed from them once, checked scores
and the rows of every query by descending score."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.data import Queries
from bench_core.errors import InputError

T = TypeVar("T")
Number = TypeVar("Number", bound=np.generic)


class Labels:
    """Labels ``y`` (n,), query groups and multiplicities of one split, with derived arrays.

    Create one per split and pass it to ``evaluate`` for every operating point. Raises InputError
    for a label that is NaN and for a multiplicity below 1.
    """

    def __init__(
        self,
        y: FloatArray,
        queries: Queries | None = None,
        multiplicity: NDArray[np.int64] | None = None,
    ) -> None:
        self.y = unwritable(np.ascontiguousarray(y, dtype=np.float64))
        self.queries = queries
        self.multiplicity = multiplicity
        self._made: dict[object, object] = {}
        _refuse(np.isnan(self.y), "the label", "is NaN: give every row a label")
        if queries is not None and queries.rows != len(self.y):
            raise ValueError(f"queries cover {queries.rows} rows of {len(self.y)}")
        copies = np.ones(len(self.y)) if multiplicity is None else multiplicity
        self.copies: IntArray = unwritable(np.ascontiguousarray(copies, dtype=np.int64))
        _refuse(self.copies < 1, "the multiplicity", "is below 1: drop the row instead")

    def __len__(self) -> int:
        return len(self.y)

    @property
    def weights(self) -> FloatArray:
        """Multiplicity as float64 (n,)."""
        return self.once("weights", lambda: self.copies.astype(np.float64))

    @property
    def bounds(self) -> IntArray:
        """Row boundaries of the queries (q+1,)."""
        assert self.queries is not None
        return unwritable(np.ascontiguousarray(self.queries.boundaries, dtype=np.int64))

    def once(self, key: object, make: Callable[[], T]) -> T:
        """The value of ``make()``, made at the first call with this key."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]  # type: ignore[return-value]


class Ranked(NamedTuple):
    """Queries in rank order, perhaps no deeper than the metrics look.

    ``bounds`` (q+1,) row boundaries of the queries; ``order`` (n,) the rows of query j by
    descending score in ``order[bounds[j]:stop[j]]``, equal scores in row order; ``tied`` (n,)
    whether ``order[i]`` ties with ``order[i-1]`` of the same query; ``copies`` (n,) how many
    documents each row (not place) stands for.
    """

    bounds: IntArray
    order: IntArray
    stop: IntArray
    tied: BoolArray
    copies: IntArray


def unwritable(array: NDArray[Number]) -> NDArray[Number]:
    """A view that cannot be written, so that kernels are compiled for one kind of array whatever
    a caller brings."""
    view = array.view()
    view.flags.writeable = False
    return view


def checked_scores(scores: FloatArray, rows: int, metric: str) -> FloatArray:
    """Scores (n,) or (n, K) as float64; InputError that names the first row with a NaN."""
    values = np.ascontiguousarray(scores, dtype=np.float64)
    if len(values) != rows:
        raise ValueError(f"{metric}: {len(values)} scores for {rows} rows")
    bad = np.isnan(values).any(axis=tuple(range(1, values.ndim)))
    _refuse(bad, f"{metric}: the score", "is NaN: a model must give every row a number")
    return values


def _refuse(bad: ArrayLike, what: str, fault: str) -> None:
    if np.any(bad):
        raise InputError(f"{what} of row {int(np.argmax(bad))} (counted from 0) {fault}")
