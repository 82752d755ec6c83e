"""The two 2-D data sets that illustrate ADAPT (Nan and Saligrama, NIPS 2017, figures 2 and 3).

Synthetic-2: four equally frequent clusters, each a square of half width ``jitter`` around

    1 (-1, 2) +     2 (1, 2) -     3 (1, 0) +     4 (1, -1) -

and both features cost 1. Two horizontal cuts solve it. A gate near y = 1 sends clusters 1 and 2 to
a classifier that reads both features. One cut near y = -0.5 separates clusters 3 and 4: 1.5 per row
at full accuracy. A model that reads x first needs at least 1.75.

The paper gives clusters 1 and 2 more points, but its costs 1.75 and 1.5 need equal shares, so the
shares here are equal. Its coordinates appear only in a figure, from which these were read.

Synthetic-1: features are free; the question is which rows need the large model. Its layout also
appears only in a figure; this one is ours. Points are uniform on the square [-1, 1]^2. Left of x =
-0.2, for exactly 40% of them, the classes meet at the line y = 0, right of it at

    y = 0.55 sin(1.5 pi (x + 0.2)),

one full wave. No point is within 0.05 (in y) of this border. A linear classifier is right on the
left, so a gate that sends 60% of the rows loses nothing.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bench_core import Examples, Prices, Source, Splits, Task, param, provide_datasets

CENTRES = np.array([(-1.0, 2.0), (1.0, 2.0), (1.0, 0.0), (1.0, -1.0)])
LABELS = np.array([1.0, 0.0, 1.0, 0.0])
PER_CLUSTER = (250, 125, 250)  # training, validation, test

CURVED = -0.2  # where synthetic-1's border begins to bend
MARGIN = 0.05
ROWS = (1000, 500, 1000)


@dataclass(frozen=True)
class AdaptSynthetic2:
    """Four clusters that a joint choice of gate and classifier solves at cost 1.5."""

    name: ClassVar[str] = "adapt-synthetic-2"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "ADAPT's Synthetic-2: four clusters, best cost 1.5 (generated)"
    depends_on: ClassVar[tuple[str, ...]] = ("seed",)

    jitter: float = param(0.3, "half width of the clusters", least=0, below=np.inf)

    @property
    def optimum(self) -> dict[str, tuple[tuple[float, float], ...]]:
        """The solution for some rows, a guess for the others, while the clusters do not overlap."""
        return {"accuracy": ((0.0, 0.5), (1.5, 1.0))} if self.jitter < 0.5 else {}

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Generate 250/125/250 rows per cluster, shuffled; every size is the same."""
        rng = np.random.default_rng([seed, 2])
        train, valid, test = (self._part(n, rng) for n in PER_CLUSTER)
        return Splits(train, valid, test, Prices.additive(np.ones(2)), feature_names=("x", "y"))

    def _part(self, each: int, rng: np.random.Generator) -> Examples:
        cluster = rng.permutation(np.repeat(np.arange(4), each))
        X = CENTRES[cluster] + rng.uniform(-self.jitter, self.jitter, (4 * each, 2))
        return Examples(X.astype(np.float32), LABELS[cluster])


class AdaptSynthetic1:
    """A straight border that begins to wave: 40% of the rows are easy."""

    name: ClassVar[str] = "adapt-synthetic-1"
    task: ClassVar[Task] = Task.BINARY
    title: ClassVar[str] = "After ADAPT's Synthetic-1: a curved border, features free (generated)"
    depends_on: ClassVar[tuple[str, ...]] = ("seed",)

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Generate 1000/500/1000 rows, shuffled; every size is the same."""
        rng = np.random.default_rng([seed, 1])
        train, valid, test = (_waves(n, rng) for n in ROWS)
        return Splits(train, valid, test, Prices.additive(np.zeros(2)), feature_names=("x", "y"))


def border(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The height of synthetic-1's border at x; above it is the positive class."""
    return np.where(x < CURVED, 0.0, 0.55 * np.sin(1.5 * np.pi * (x - CURVED)))


def _waves(rows: int, rng: np.random.Generator) -> Examples:
    straight = 2 * rows // 5  # left of the bend of the border
    x = np.concatenate([rng.uniform(-1, CURVED, straight), rng.uniform(CURVED, 1, rows - straight)])
    x = rng.permutation(x)
    height = border(x)
    room = 2 * (1 - MARGIN)  # heights in -1..1 near the border are left out
    y = rng.uniform(-1, -1 + room, rows)
    y += np.where(y > height - MARGIN, 2 * MARGIN, 0.0)
    return Examples(np.column_stack([x, y]).astype(np.float32), (y > height).astype(np.float64))


bench_datasets = provide_datasets(AdaptSynthetic1, AdaptSynthetic2)
