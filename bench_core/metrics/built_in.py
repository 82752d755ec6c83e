"""Base of the built-in metrics: spelling, labels and rank order.

The spelling is ``family``, ``@cut-off``, ``(option=value,...)``. A metric is a frozen dataclass.
Its fields are its options; a field ``k`` is its cut-off. The canonical spelling omits options at
their default and sorts the others. Equal metrics therefore have the same name, and the name
determines the metric.
"""

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.costs.error_costs import ErrorCosts
from bench_core.data import Queries, Task
from bench_core.errors import InputError
from bench_core.protocols import MetricValues

T = TypeVar("T")
Number = TypeVar("Number", bound=np.generic)


class Labels:
    """Labels ``y`` (n,), query groups and multiplicities of one split, with derived arrays.

    Create it once per split and pass it to ``evaluate`` for every operating point. ``errors`` are
    the costs of answers for ``total_cost``, ``paid`` (n, c) the rows' columns of costs. Raises
    InputError for NaN labels and for multiplicities below 1.
    """

    def __init__(
        self,
        y: FloatArray,
        queries: Queries | None = None,
        multiplicity: NDArray[np.int64] | None = None,
        errors: ErrorCosts | None = None,
        paid: FloatArray | None = None,
    ) -> None:
        self.errors, self.paid = errors, paid
        self.y = unwritable(np.ascontiguousarray(y, dtype=np.float64))
        self.queries = queries
        self.multiplicity = multiplicity
        self._made: dict[object, object] = {}  # cache of metrics between operating points
        lacking = np.isnan(self.y).any(axis=tuple(range(1, self.y.ndim)))
        _refuse(lacking, "the label", "is NaN: give every row a label")
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
        """Return ``make()``, computed at the first call with this key and cached."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]  # type: ignore[return-value]


class Ranked(NamedTuple):
    """Rows of queries in rank order, possibly only the top rows that metrics need.

    ``order[bounds[j]:stop[j]]`` are the rows of query j by descending score, ties in row order.
    """

    bounds: IntArray  # (q + 1,) row boundaries of the queries
    order: IntArray  # (n,) rows
    stop: IntArray  # (q,)
    tied: BoolArray  # (n,) True if order[i] ties with order[i - 1] of its query
    copies: IntArray  # (n,) number of documents per row (not place)


def unwritable(array: NDArray[Number]) -> NDArray[Number]:
    """Return a read-only view, so that kernels are compiled for only one kind of array."""
    view = array.view()
    view.flags.writeable = False
    return view


def checked_scores(scores: FloatArray, rows: int, metric: str) -> FloatArray:
    """Convert scores (n,) or (n, K) to float64; InputError names the first row with a NaN."""
    values = np.ascontiguousarray(scores, dtype=np.float64)
    if len(values) != rows:
        raise ValueError(f"{metric}: {len(values)} scores for {rows} rows")
    bad = np.isnan(values).any(axis=tuple(range(1, values.ndim)))
    _refuse(bad, f"{metric}: the score", "is NaN: a model must give every row a number")
    return values


def _refuse(bad: ArrayLike, what: str, fault: str) -> None:
    if np.any(bad):
        raise InputError(f"{what} of row {int(np.argmax(bad))} (counted from 0) {fault}")


class BuiltIn:
    """Base class of the built-in metrics. The name consists of family, cut-off and non-default
    options. Evaluation uses labels prepared once."""

    __slots__ = ()

    family: ClassVar[str]
    needs_cut_off: ClassVar[bool] = False
    higher_is_better: ClassVar[bool] = True
    tasks: ClassVar[frozenset[Task]]

    @property
    def name(self) -> str:
        """Canonical spelling, such as ``ndcg@5`` or ``ndcg@5(empty=skip,ties=stable)``."""
        fields = sorted(dataclasses.fields(self), key=lambda f: f.name)  # type: ignore[arg-type]
        options = [
            f"{f.name}={_show(value)}"
            for f in fields
            if f.name != "k" and (value := getattr(self, f.name)) != f.default
        ]
        k = getattr(self, "k", None)
        cut_off = "" if k is None else f"@{k}"
        return f"{self.family}{cut_off}" + (f"({','.join(options)})" if options else "")

    def values(
        self,
        scores: FloatArray,
        y: FloatArray,
        queries: Queries | None = None,
        multiplicity: NDArray[np.int64] | None = None,
    ) -> MetricValues:
        """As ``Metric.values``."""
        return self.judge(scores, Labels(y, queries, multiplicity))

    def undefined(self, y: FloatArray) -> str:
        """As ``CompleteMetric.undefined``."""
        return ""

    def judge(self, scores: FloatArray, labels: Labels) -> MetricValues:
        """Evaluate as ``values`` does, with labels prepared once."""
        raise NotImplementedError


def _show(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)


def choice(default: str, values: tuple[str, ...], doc: str) -> Any:
    """Declare an option with a fixed set of words."""

    def read(text: str) -> str:
        if text not in values:
            raise ValueError(f"must be {' or '.join(values)}")
        return text

    return dataclasses.field(default=default, metadata={"doc": doc, "read": read})


def number(default: float, doc: str) -> Any:
    """Declare an option that is a finite number > 0."""

    def read(text: str) -> float:
        value = float(text)
        if not 0 < value < float("inf"):
            raise ValueError("must be a number above 0")
        return value

    return dataclasses.field(default=default, metadata={"doc": doc, "read": read})
