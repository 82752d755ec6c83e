"""What rows got and paid."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bench_core.arrays import BoolArray, FloatArray, IntArray


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


@dataclass(frozen=True, slots=True, eq=False)
class Purchases:
    """Which of the ``payable`` sensors n rows have paid, where no row can pay another of the
    ``count`` sensors: bit ``k % 64`` of ``bits[:, k // 64]``, uint64 (n, w), says ``payable[k]``.

    Columns lie together, as they are written and unpacked.
    """

    bits: Any
    payable: IntArray
    count: int

    def unpack(self) -> BoolArray:
        """By sensor (n, count), column by column too."""
        n = len(self.bits)
        bytes_ = self.bits.T.astype("<u8", copy=False).view(np.uint8).reshape(-1, n, 8)
        bytes_ = np.ascontiguousarray(bytes_.transpose(0, 2, 1))
        paid = np.unpackbits(bytes_, axis=1, bitorder="little").reshape(-1, n)
        whole = np.zeros((self.count, n), dtype=bool)
        whole[self.payable] = paid[: len(self.payable)].view(bool)
        return whole.T


@dataclass(slots=True, eq=False)
class Answers:
    """Those of n rows: ``scores`` (n,) or (n, K), ``spent`` (n,), ``bought`` (n, s) by sensor,
    ``step`` (n,) and ``capped`` (n,)."""

    scores: FloatArray
    spent: FloatArray
    _paid: BoolArray | Purchases
    step: IntArray
    capped: BoolArray

    @property
    def bought(self) -> BoolArray:
        """Unpacked from bits when it is first looked at."""
        if isinstance(self._paid, Purchases):
            self._paid = self._paid.unpack()
        return self._paid
