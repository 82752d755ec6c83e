"""Syn1 to Syn3: the sign of feature 11 selects the relevant others (Yoon et al., ICLR 2019).

Eleven features N(0, 1); the label is 1 with probability 1 / (1 + exp(logit)), where the logit is
one of two of

    a = 4 x1 x2
    b = 1.2 (x3^2 + x4^2 + x5^2 + x6^2) - 4.2
    c = -10 sin(0.2 x7) + |x8| + x9 + exp(-x10) - 2.4

by the sign of x11. With x11 < 0 it is a, a, b in Syn1, Syn2, Syn3, otherwise b, c, c. So a row's
relevant features are x11 and two or four more. A perfect policy buys 4, 4 and 5 on average.

These are the data of SEFA (Norcliffe et al., ICML 2025; ``datasets/create_synthetic.py`` at
a-norcliffe/SEFA 3af8da2c), whose a and b have larger factors than INVASE's. One numpy stream from
seed 8139 gives 80000 rows each, Syn1 first, cut in order into 60000, 10000 and 10000. The rows here
are the same bit by bit; features are kept as drawn, as 32-bit floats.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from bench_core import Examples, Prices, Source, Splits, Task, param
from bench_core.arrays import FloatArray

SEED = 8139
FEATURES = 11
ROWS = (60_000, 10_000, 10_000)
QUICK = (15_000, 2_500, 2_500)
RULES = ("ab", "ac", "bc")  # the logit where x11 < 0, and elsewhere


def logits(x: FloatArray) -> dict[str, FloatArray]:
    """The three logits (n,) of features (n, 11)."""
    c = -10 * np.sin(0.2 * x[:, 6]) + abs(x[:, 7]) + x[:, 8] + np.exp(-x[:, 9]) - 2.4
    return {"a": 4 * x[:, 0] * x[:, 1], "b": 1.2 * np.sum(x[:, 2:6] ** 2, axis=-1) - 4.2, "c": c}


def generate(number: int) -> Examples:
    """All rows of Syn1, Syn2 or Syn3."""
    stream = np.random.RandomState(SEED)
    for rule in RULES[:number]:  # earlier rules use their part of the stream
        x = stream.normal(size=(sum(ROWS), FEATURES))
        below, above = map(logits(x).__getitem__, rule)
        y = stream.binomial(1, 1 / (1 + np.exp(np.where(x[:, -1] < 0, below, above))))
    return Examples(x.astype(np.float32), y.astype(np.float64))


@dataclass(frozen=True)
class Syn1:
    """Two features whose product decides, or four squares."""

    name: ClassVar[str] = "syn1"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "Syn1: one of 11 features says which others decide (generated)"
    depends_on: ClassVar[tuple[str, ...]] = ("size",)
    number: ClassVar[int] = 1

    rows: int = param(0, f"the first training rows; 0: {QUICK[0]}, beyond quick all", least=0)

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """The published rows for every seed; in profile quick the first of each part."""
        whole, ends = generate(self.number), np.cumsum(ROWS)
        counts = list(QUICK if size == "quick" else ROWS)
        counts[0] = min(self.rows, ROWS[0]) or counts[0]
        train, valid, test = (
            Examples(whole.X[end - rows :][:count], whole.y[end - rows :][:count])
            for end, rows, count in zip(ends, ROWS, counts, strict=True)
        )
        return Splits(train, valid, test, Prices.additive(np.ones(FEATURES)))


@dataclass(frozen=True)
class Syn2(Syn1):
    """Two features whose product decides, or a sum of four others."""

    name: ClassVar[str] = "syn2"
    title: ClassVar[str] = "Syn2: as Syn1, with a sum of four functions (generated)"
    number: ClassVar[int] = 2


@dataclass(frozen=True)
class Syn3(Syn1):
    """Four squares, or a sum of four others."""

    name: ClassVar[str] = "syn3"
    title: ClassVar[str] = "Syn3: as Syn1, with four features on both sides (generated)"
    number: ClassVar[int] = 3
