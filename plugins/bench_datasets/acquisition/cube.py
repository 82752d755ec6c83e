"""CUBE: eight classes, each shown by three features of its own; the others are noise.

Class k (0..7) is a corner of the unit cube: bit b of k, the least significant first, is the mean of
feature k + b. All other features are noise. So only features 0 to 9 are informative, and the useful
ones depend on the class. The publications under this name differ, hence three data sets:

- ``cube``: informative features N(bit, .1), noise N(.5, .3), .1 and .3 being standard deviations;
  20 features, the last ten of which are always noise (SEFA, Norcliffe et al., ICML 2025; AFABench,
  whose configurations have .3 in place of .1: ``sd``).
- ``cube-uniform``: informative N(bit, .3), noise uniform on [0, 1) (AACO, Valancius et al., ICML
  2024).
- ``cube-prices``: as ``cube``, but the second ten features copy the first, with their own noise, at
  twice the price (AFABench). Prices have mean 1.

``cube-nm`` (AFABench) has five such blocks of ten features. One of five equally frequent contexts,
independent of the class, says which block is informative; all others are noise. Five features, N(0
or 1, .1), are a noisy one-hot code of the context, bought together at the price of one. They say
nothing about the class, so one-step look-ahead never buys them: 55 features, 51 purchases.

Departures
- Classes (and contexts) are drawn, as in AFABench; SEFA has equally many rows of each class.
- Rows are drawn by numpy from the seed; the published rows come from torch's generator.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from bench_core import Examples, Prices, Source, Splits, Task, param, price_list
from bench_core.arrays import FloatArray, IntArray

CLASSES = 8
BLOCK = 10  # features of a block: class 7 shows in its last three
CENTRE, SPREAD = 0.5, 0.3  # mean and standard deviation of normal noise
CONTEXTS = 5
CONTEXT_SPREAD = 0.1
QUICK, LARGE = 600, 6000  # training rows

SD = "standard deviation of informative features"
ROWS = f"training rows; a third as many for validation and test; 0: {QUICK}, beyond quick {LARGE}"


class Mixture(NamedTuple):
    """Equally likely hypotheses; under each, features are independent."""

    label: IntArray  # (h,) the class
    mean: FloatArray  # (h, d)
    sd: FloatArray  # (h, d); NaN: uniform on [0, 1)

    def draw(self, rng: np.random.Generator, rows: int) -> Examples:
        """Draw rows of random hypotheses."""
        each = rng.integers(0, len(self.label), rows)
        mean, sd = self.mean[each], self.sd[each]
        normal = mean + sd * rng.normal(size=mean.shape)
        X = np.where(np.isnan(sd), rng.uniform(size=mean.shape), normal)
        return Examples(X.astype(np.float32), self.label[each].astype(np.float64))


def shown_in(blocks: IntArray, features: int, sd: float, noise: float = SPREAD) -> Mixture:
    """The classes in turn, each in the blocks that begin at these features (h, b); the rest is
    noise."""
    label, shape = np.arange(len(blocks)) % CLASSES, (len(blocks), features)
    mixture = Mixture(label, np.full(shape, CENTRE), np.full(shape, noise))
    for bit in range(3):
        place = np.arange(len(blocks))[:, None], blocks + label[:, None] + bit
        mixture.mean[place], mixture.sd[place] = (label[:, None] >> bit) & 1, sd
    return mixture


@dataclass(frozen=True)
class Cube:
    """Ten features, three of them informative for each class, and ten of noise."""

    name: ClassVar[str] = "cube"
    task: ClassVar[Task] = Task.MULTICLASS
    title: ClassVar[str] = "CUBE: each of 8 classes shows in three of 20 features (generated)"
    depends_on: ClassVar[tuple[str, ...]] = ("size", "seed")
    stream: ClassVar[int] = 1
    noise: ClassVar[float] = SPREAD
    blocks: ClassVar[tuple[int, ...]] = (0,)

    sd: float = param(0.1, SD, above=0)
    rows: int = param(0, ROWS, least=0)

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Draw 600/200/200 rows, beyond profile quick 6000/2000/2000."""
        rows = self.rows or (QUICK if size == "quick" else LARGE)
        mixture = self.mixture()
        train, valid, test = (
            mixture.draw(np.random.default_rng([seed, self.stream, split]), count)
            for split, count in enumerate((rows, -(-rows // 3), -(-rows // 3)))
        )
        return Splits(
            *(train, valid, test), self.prices(), classes=CLASSES, truth=mixture._asdict()
        )

    def mixture(self) -> Mixture:
        """The distribution of rows."""
        blocks = np.tile(self.blocks, (CLASSES, 1))
        return shown_in(blocks, 2 * BLOCK, self.sd, self.noise)

    def prices(self) -> Prices:
        """Every feature costs 1."""
        return Prices.additive(np.ones(2 * BLOCK))


@dataclass(frozen=True)
class CubeUniform(Cube):
    """Weaker features among uniform noise."""

    name: ClassVar[str] = "cube-uniform"
    title: ClassVar[str] = "CUBE with uniform noise, as in AACO (generated)"
    stream: ClassVar[int] = 2
    noise: ClassVar[float] = np.nan

    sd: float = param(0.3, SD, above=0)


@dataclass(frozen=True)
class CubePrices(Cube):
    """Two informative blocks, one at twice the price of the other."""

    name: ClassVar[str] = "cube-prices"
    title: ClassVar[str] = "CUBE with a second informative block at twice the price (generated)"
    stream: ClassVar[int] = 3
    blocks: ClassVar[tuple[int, ...]] = (0, BLOCK)

    def prices(self) -> Prices:
        """1 and 2, divided by their mean."""
        price = np.repeat([1.0, 2.0], BLOCK)
        return Prices.additive(price / price.mean())


@dataclass(frozen=True)
class CubeNM(Cube):
    """A context, useless alone, determines the block of features to buy."""

    name: ClassVar[str] = "cube-nm"
    title: ClassVar[str] = "CUBE-NM: a worthless context opens one of five blocks (generated)"
    stream: ClassVar[int] = 4

    sd: float = param(0.3, SD, above=0)

    def mixture(self) -> Mixture:
        """The classes of each context in turn; the first five features are its code."""
        context = np.repeat(np.arange(CONTEXTS), CLASSES)
        first = CONTEXTS + context[:, None] * BLOCK
        made = shown_in(first, CONTEXTS + CONTEXTS * BLOCK, self.sd)
        made.mean[:, :CONTEXTS] = context[:, None] == np.arange(CONTEXTS)
        made.sd[:, :CONTEXTS] = CONTEXT_SPREAD
        return made

    def prices(self) -> Prices:
        """1 for each feature, and 1 for the five of the context together."""
        return price_list(np.ones(CONTEXTS + CONTEXTS * BLOCK), shared=[range(CONTEXTS)])
