"""What rows got and paid."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from bench_core.arrays import BoolArray, FloatArray, IntArray
from bench_core.costs.acquired import Acquired


@dataclass(slots=True, eq=False, repr=False)  # frozen, it takes four times as long to make
class Answer:
    """What one row got and paid.

    ``score``: log-odds, label units or a ranking score; K scores for K classes. ``step``: the last
    of the model's steps that counts, -1 for none; ``stopped``: ``"end"``, ``"gate"`` (let go early)
    or ``"cap"``.
    """

    score: Any
    spent: float
    _asked: Any  # what ``bought`` is, or its places in ``_names``
    step: int
    stopped: str
    _names: Any = None  # (d,); those bought are looked up when they are looked at
    _bought: Any = field(default=None, init=False)

    @property
    def bought(self) -> Any:
        """The features that were asked for, in that order: a tuple of names, or as ``predict_into``
        asks an array of numbers."""
        if self._names is None:
            return self._asked
        if self._bought is None:
            self._bought = tuple(self._names[self._asked].tolist())
        return self._bought

    def __reduce__(self) -> tuple[Any, ...]:
        return Answer, (self.score, self.spent, self.bought, self.step, self.stopped)

    def __repr__(self) -> str:
        names = ("score", "spent", "bought", "step", "stopped")
        return f"Answer({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


@dataclass(slots=True, eq=False)
class Answers:
    """Those of n rows: ``scores`` (n,) or (n, K), ``spent`` (n,), ``bought`` (n, s) by sensor,
    ``step`` (n,) and ``capped`` (n,)."""

    scores: FloatArray
    spent: FloatArray
    _paid: BoolArray | Acquired
    step: IntArray
    capped: BoolArray

    @property
    def bought(self) -> BoolArray:
        """Unpacked from bits when it is first looked at."""
        if isinstance(self._paid, Acquired):
            self._paid = self._paid.unpack()
        return self._paid
