"""``cstc-synthetic``: four quadrants, each with its own expensive expert (CSTC, section 5.1).

Points lie in the four quadrants of [-1, 1]^2, equally many in each. The signs of x and z cost 1
each and give the quadrant. Four features cost 10 each: the one of the row's own quadrant IS the
label, the other three are independent N(0, 1). Labels are N(mean of the quadrant, 1). A perfect
tree buys both signs and one expert: 12 per row at no error.

The paper does not give the quadrants' means and the numbers of rows. Here the means are 3, 1, -1
and -3: they sum to zero, since there is no constant feature, and give labels of variance 6.
"""

from typing import ClassVar

import numpy as np

from bench_core import Examples, Prices, Source, Splits, Task, provide_datasets

NAMES = ("sign_x", "sign_z", "y++", "y+-", "y-+", "y--")
SIGNS = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
MEANS = np.array([3.0, 1.0, -1.0, -3.0])
COSTS = np.array([1.0, 1.0, 10.0, 10.0, 10.0, 10.0])
ROWS = (4000, 2000, 4000)


class CSTCSynthetic:
    """The synthetic problem of the CSTC paper."""

    name: ClassVar[str] = "cstc-synthetic"
    task: ClassVar[Task] = Task.REGRESSION
    title: ClassVar[str] = "CSTC's synthetic problem: four quadrants, an expert feature for each"
    depends_on: ClassVar[tuple[str, ...]] = ("seed",)
    # no sign, x's sign, both, and also the own expert. Only the own expert is informative beyond
    # the quadrant: the error is at least the share of rows that do not buy it.
    optimum: ClassVar = {"mse": ((0.0, 6.0), (1.0, 2.0), (2.0, 1.0), (12.0, 0.0))}

    def prepare(self, source: Source, size: str, fold: int, seed: int) -> Splits:
        """Generate 4000, 2000 and 4000 rows for every size."""
        train, valid, test = (
            generate(np.random.default_rng([seed, split]), rows) for split, rows in enumerate(ROWS)
        )
        return Splits(train, valid, test, Prices.additive(COSTS), feature_names=NAMES)


def generate(rng: np.random.Generator, rows: int) -> Examples:
    """Rows in random order, a quarter of them in each quadrant."""
    quadrant = rng.permutation(np.repeat(np.arange(4), rows // 4))
    # labels are exact in float32, so that the expert feature equals them bit for bit
    y = (MEANS[quadrant] + rng.normal(size=rows)).astype(np.float32)
    X = np.empty((rows, len(NAMES)), dtype=np.float32)
    X[:, :2] = SIGNS[quadrant]  # the two signs give the quadrant
    X[:, 2:] = rng.normal(size=(rows, 4))
    X[np.arange(rows), 2 + quadrant] = y  # the own expert equals the label
    return Examples(X, y.astype(np.float64))


bench_datasets = provide_datasets(CSTCSynthetic)
